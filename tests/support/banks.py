"""Banks for tests: a real SQLite file, an embedder without weights, scripted minds. `Mind` answers by what it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mulligan import Attempt, Bank, Episode, Feedback, ScriptedModel, Task, Trial
from mulligan.app.memory import open_bank
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Stop
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.store import open_store


def a_bank(file: Path, agent_id: str | None = "", **given: Any) -> Bank:
    """On `file`, with the hash embedder unless another is given."""
    given.setdefault("embedder", HashEmbedder())
    return open_bank(agent_id, store=open_store(file).memory, **given)


def an_episode(id: str, prompt: str, *outputs: str, passed: bool | None = True) -> Episode:
    """One trial for each output; the last one passed, failed or was not judged, those before it failed."""
    trials = tuple(
        Trial(n, Attempt(output), Feedback(passed if n == len(outputs) else False, "", source="t"))
        for n, output in enumerate(outputs, 1)
    )
    stop = Stop("solved" if passed else "exhausted")
    return Episode(id, Task(prompt), run=id, trials=trials, stop=stop)


def lessons_of(*said: tuple[str, str]) -> dict[str, Any]:
    """The answer of an extractor: lessons of title and content that cite the first step."""
    rows = [
        {"title": title, "description": f"When {title}.", "content": content, "steps": [1]} for title, content in said
    ]
    return {"lessons": rows, "nothing_because": ""}


def mind(extract: Callable[[str], Any], *, judge: str = "success", merge: Any = None) -> ScriptedModel:
    """Extracts by the whole question, judges always alike, merges to one lesson."""

    def answer(question: Question, sampling: Sampling) -> Any:
        keys = question.schema["properties"]
        text = "\n".join(message.text for message in question.messages)
        if "verdict" in keys:
            return {"reasoning": "It looks so.", "verdict": judge}
        return extract(text) if "lessons" in keys else merge

    return ScriptedModel(answer, "mind")


def as_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
