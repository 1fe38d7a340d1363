"""A question to a graph that an earlier version recorded goes on where it stopped."""

import json
import os
from pathlib import Path

import pytest
from graph_agents import GOOD
from stored_runs import RUNS, restored
from wire_client import running

from mulligan.langgraph import resume_graph

SPOKEN = "EOMES regulates CREBBP, IL1R1, LRP6, NOTCH3 and VHL."


async def test_a_recorded_question_is_resumed_with_its_options(
    kg: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored(tmp_path, Path(os.environ["MULLIGAN_HOME"]))
    (tmp_path / "kg").symlink_to(kg)
    good = {"score": 9, "reason": "They are the genes that it regulates."}
    with running() as wire:
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        again = {"answer": GOOD, "reflection": "Perhaps the arrow is reversed."}
        wire.plays(*({"answer": json.dumps(each)} for each in (again, good, {"answer": SPOKEN})))
        result = await resume_graph(RUNS["graph"])
        assert len(wire.requests) == 3, "the draft is asked for again, as its prompt says less since design/158"
    assert (result.answer, result.sentence, result.stop) == (GOOD, SPOKEN, "solved")
