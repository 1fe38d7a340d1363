"""Embedded models as LangChain's chat models: whatever they say, it is a call that fits, or an answer in words.

`MULLIGAN_TEST_MODELS` names a folder with weights that are kept from one run to the next.
"""

import os
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from mulligan.graphs.sample import schema_info
from mulligan.langgraph import BioCypherPromptEngine, chat_model

pytest.importorskip("xllamacpp", reason='needs the extra: pip install "mulligan[local]"')
pytestmark = pytest.mark.slow
BIG = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"


class Verdict(BaseModel):
    """Whether it is true."""

    true: bool
    sure: int = Field(description="From 0 to 10.")


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@pytest.fixture(autouse=True)
def weights(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.environ.get("MULLIGAN_TEST_MODELS") or tmp_path_factory.mktemp("models"))
    monkeypatch.setenv("MULLIGAN_MODELS", str(folder))
    monkeypatch.setenv("MULLIGAN_THREADS", "1")
    return folder


def test_the_smallest_model_can_be_held_to_a_schema_and_to_tools() -> None:
    chat = chat_model("local", temperature=0, max_tokens=60)
    assert isinstance(chat.with_structured_output(Verdict).invoke("Is water wet?"), Verdict)
    bound = chat.bind_tools([add])
    first = bound.invoke("What is 2 + 3? Use the tool.")
    messages = [HumanMessage("What is 2 + 3? Use the tool."), first]
    if first.tool_calls:
        assert set(first.tool_calls[0]["args"]) == {"a", "b"}
        second = bound.invoke([*messages, add.invoke(first.tool_calls[0])])
        assert second.tool_calls or second.content or second.invalid_tool_calls
    assert first.usage_metadata is not None
    assert first.response_metadata["cost"] == 0.0
    assert "@sha256:" in first.response_metadata["model_name"]


def test_a_model_that_can_think_a_little_finds_the_part_of_the_sample_that_is_meant(weights: Path) -> None:
    if not (weights / BIG).is_file():
        pytest.skip("its weights (1.1 GB) are not here")
    engine = BioCypherPromptEngine(schema_config_or_info_dict=schema_info(), model="local:qwen2.5-coder-1.5b")
    found = engine.select("Which pathways does the gene TP53 participate in?")
    assert {"Gene", "Pathway"} <= set(found.entities)
    assert "PARTICIPATES_IN" in found.labels
    assert "name" in found.entities["Gene"]
