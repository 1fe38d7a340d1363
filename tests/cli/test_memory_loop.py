"""An episode teaches the bank at the command line, and the next one begins with what it taught."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seed_agents import lay

Mulligan = Callable[..., Any]
LESSON = {
    "title": "Say right",
    "description": "When asked to say it.",
    "content": "Answer with the word right.",
    "steps": [1],
}
EXTRACTED = {"why": "w", "lessons": [LESSON], "nothing_because": ""}
ASK = ("solve", "say it in one word", "--evaluator", "./judge.py", "--memory", "--trials", "1")


@pytest.fixture
def project(here: Path) -> Path:
    return lay(here, {"mulligan.toml": '[memory]\nembedder = "none"\n', "first.json": json.dumps(["wrong", EXTRACTED])})


def test_a_lesson_of_one_run_stands_in_the_first_prompt_of_the_next(mulligan: Mulligan, project: Path) -> None:
    taught = mulligan(*ASK, "--model", "scripted:first.json")
    assert taught.status == 1
    assert "1 lesson learned: " in taught.err
    (project / "second.json").write_text(json.dumps(["right", EXTRACTED]))
    again = mulligan(*ASK, "--model", "scripted:second.json", "--trace")
    assert again.status == 0
    assert "1 lesson recalled" in again.err
    assert "> Answer with the word right." in again.err
    assert "1 lesson learned: " in again.err  # the same words from a success are another lesson


def test_without_a_model_that_was_named_the_question_waits_to_be_thought_about(
    mulligan: Mulligan, project: Path
) -> None:
    lay(project, {"actor.py": ACTOR})
    ended = mulligan(*ASK, "--actor", "./actor.py", "--strategy", "none")
    assert "no model was named for the bank" in ended.err
    work = ended.err.partition("memory question ")[2].split()[0]
    asked = mulligan("memory", "question", work)
    assert asked.err.endswith(f": mulligan memory commit {work} FILE\n")
    assert mulligan("memory", "question", f"extract_{work}").out == asked.out, "as an agent is told of it"
    assert "lessons" in json.loads(asked.out)["schema"]["properties"]
    (project / "answer.json").write_text(json.dumps(EXTRACTED))
    assert mulligan("memory", "commit", work, "answer.json").status == 0
    assert mulligan("memory", "question", work).status == 2
    assert "Say right" in mulligan("memory", "list").out


ACTOR = """
from mulligan.core.records import Attempt

class Wrong:
    async def act(self, episode, past):
        return Attempt("wrong")
"""


def test_whose_bank_is_said_only_with_one(mulligan: Mulligan, project: Path) -> None:
    ended = mulligan("solve", "t", "--agent-id", "me", "--model", "scripted:first.json")
    assert ended.status == 2
    assert "--memory" in ended.err


def test_an_agents_memory_is_its_own(mulligan: Mulligan, project: Path) -> None:
    agent = "---\nname: one\ndescription: d\nversion: '1'\npattern: oneshot\nmemory: true\n---\nAnswer.\n"
    judged = {"reasoning": "It is not there.", "verdict": "failure"}
    lay(project, {"agents/one/AGENT.md": agent, "said.json": json.dumps(["v1", judged, EXTRACTED])})
    ended = mulligan("run", "one", "t", "--model", "scripted:said.json")
    assert (ended.status, ended.out) == (0, "v1\n")
    assert "1 lesson learned: " in ended.err
    assert "Say right" in mulligan("memory", "list", "--agent-id", "one").out
    assert "Say right" not in mulligan("memory", "list").out
