"""Seed 001's example, word for word but for the import and where the database is: over HTTP to a provider that says
what it is told to, on both databases.

Lines that the seed's text lacks (closing brackets and the agent's arguments) are as its reference names them.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graph_agents import GOLDEN, REGULATED, draft, revision
from wire_client import Wire, running

from mulligan.graphs.sample import schema_info

SEED = (GOLDEN / "seed_example.txt").read_text(encoding="utf-8")
QUESTION = "Which genes does EOMES regulate?"
FAILS = "MATCH (g:Gene {name: 'EOMES'})-[:REGULATES]->(t:Gene RETURN t.name AS name"
MENDED = "MATCH (g:Gene {name: 'EOMES'})-[:REGULATES]->(t:Gene) RETURN t.name AS name ORDER BY name"
ANSWERS: list[Any] = [
    {"entities": ["Gene"]},
    {"relationships": ["GeneRegulatesGene"]},
    {"properties": {"Gene": ["name"]}},
    draft(FAILS)["arguments"],
    revision(1, MENDED)["arguments"],
    revision(9)["arguments"],
]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("MULLIGAN_MODEL", "openai:gpt-3.5-turbo")  # the engine's model, which the seed leaves open
        wire.plays(*({"answer": json.dumps(answer)} for answer in ANSWERS))
        yield wire


def test_the_seeds_example_runs_after_changing_the_import(access: Any, provider: Wire, tmp_path: Path) -> None:
    code = re.sub(r"from biochatter\.\w+ import", "from mulligan.langgraph import", SEED)
    assert "biochatter" not in code
    code = code.replace('{\n    "host": "",\n    "port": "7687",\n}', repr(access))
    space: dict[str, Any] = {"schema_dict": schema_info(), "question": QUESTION}
    exec(compile(code, "seed_example", "exec"), space)
    result, agent = space["cypher_query"], space["agent"]
    agent.close()
    assert f"{result}" == MENDED
    assert (result.answer, result.tool_result, result.stop) == (MENDED, REGULATED, "solved")
    assert "not closed" in agent.get_logs()
    asked = [json.dumps(body) for body in provider.bodies]
    assert len(asked) == len(ANSWERS)
    assert all("(:Gene)-[:REGULATES]->(:Gene)" in body for body in asked[3:]), "what the engine chose, at revise too"
    assert "Disease" not in asked[3], "what it did not choose"
