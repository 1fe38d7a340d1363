"""An episode teaches the bank at the command line, and the next one begins with what it taught."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seed_agents import lay

from mulligan.app.trusting import trust

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
    return lay(
        here,
        {
            "mulligan.toml": '[memory]\nembedder = "none"\nlearn_share = 1\nreader = ""\n',
            "first.json": json.dumps(["wrong", EXTRACTED]),
        },
    )


def test_a_lesson_of_one_run_stands_in_the_first_prompt_of_the_next(mulligan: Mulligan, project: Path) -> None:
    taught = mulligan(*ASK, "--model", "scripted:first.json")
    assert taught.status == 1
    assert "1 lesson learned by scripted:first.json" in taught.err
    (project / "second.json").write_text(json.dumps(["right", EXTRACTED]))
    again = mulligan(*ASK, "--model", "scripted:second.json", "--trace")
    assert again.status == 0
    assert "1 lesson recalled" in again.err
    assert "> Answer with the word right." in again.err
    assert "1 lesson learned by scripted:second.json" in again.err  # the same words from a success are another lesson


def test_without_a_model_that_was_named_the_question_waits_to_be_thought_about(
    mulligan: Mulligan, project: Path
) -> None:
    lay(project, {"actor.py": ACTOR})
    ended = mulligan(*ASK, "--actor", "./actor.py", "--strategy", "none")
    assert "no model was named for the bank" in ended.err
    work = ended.err.partition("memory pending ")[2].split()[0]
    asked = mulligan("memory", "pending", work)
    assert asked.err.endswith(f": mulligan memory pending {work} FILE\n")
    assert mulligan("memory", "pending", f"extract_{work}").out == asked.out, "as an agent is told of it"
    assert "lessons" in json.loads(asked.out)["schema"]["properties"]
    (project / "answer.json").write_text(json.dumps(EXTRACTED))
    assert mulligan("memory", "pending", work, "answer.json").status == 0
    assert mulligan("memory", "pending", work).status == 2
    assert "Say right" in mulligan("memory", "list").out


ACTOR = """
from mulligan.core.records import Attempt

class Wrong:
    async def act(self, episode, past):
        return Attempt("wrong")
"""


WRITES = """
from mulligan.core.records import Attempt

class Writes:
    async def act(self, episode, past):
        with open("seen.txt", "w") as seen:
            seen.write(past.recall.formatted_prompt if past.recall else "")
        return Attempt("def release_name(year, week, tree):\\n    return f'{year}.{week}-{tree}'")
"""


@pytest.mark.slow
def test_a_check_that_failed_stands_in_the_next_tasks_prompt_without_any_model(
    mulligan: Mulligan, project: Path
) -> None:
    tests = 'assert release_name(2024, 31, "birch") == "24w31-Birch"\n'
    lay(project, {"writes.py": WRITES, "tests.py": tests, "next.py": 'assert branch_name(2024, 31) == "24w31"\n'})
    how = ("--actor", "./writes.py", "--strategy", "none", "--memory", "--trials", "1")
    first = mulligan("solve", "Write release_name: it names a release in our form.", "--tests", "tests.py", *how)
    assert first.status == 1
    (said,) = [line for line in first.err.splitlines() if "learned by rules" in line]
    assert said.startswith("1 fact learned by rules: ")
    assert "; no model was named for the bank" in said
    assert (project / "seen.txt").read_text() == ""
    mulligan("solve", "Write branch_name: it names a branch in our form.", "--tests", "next.py", *how)
    seen = (project / "seen.txt").read_text()
    assert (
        f"A fact of this project, not confirmed by a passing attempt yet:\n```\n{tests.strip()}\n```\n" in f"{seen}\n"
    )
    rows = mulligan("memory", "list", "--nature", "fact").out
    assert "fact?" in rows
    assert "release_name gives the form 24w31-Birch" in rows


def test_facts_of_another_project_are_found_when_asked_for(
    mulligan: Mulligan, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = ("--title", "How tests run", "--content", "`make check` runs the tests.", "--nature", "fact")
    id = mulligan("memory", "add", *added).out.strip()
    shown = mulligan("memory", "show", id).out
    assert f"fact of the project {project}\n" in shown
    search = ("memory", "search", "how do the tests run", "--threshold", "0")
    assert "(a fact of this project, " in mulligan(*search).out
    (project / "mulligan.toml").write_text(
        '[project]\nname = "another"\n\n[memory]\nembedder = "none"\nlearn_share = 1\nreader = ""\n'
    )
    trust(project)
    assert mulligan(*search).out == ""
    assert "(a fact of another project, " in mulligan(*search, "--all-projects").out


def test_whose_bank_is_reported_only_with_one(mulligan: Mulligan, project: Path) -> None:
    ended = mulligan("solve", "t", "--agent-id", "me", "--model", "scripted:first.json")
    assert ended.status == 2
    assert "--memory" in ended.err


def test_an_agents_memory_is_its_own(mulligan: Mulligan, project: Path) -> None:
    agent = "---\nname: one\ndescription: d\nversion: '1'\npattern: oneshot\nmemory: true\n---\nAnswer.\n"
    judged = {"reasoning": "It is not there.", "verdict": "failure"}
    lay(project, {"agents/one/AGENT.md": agent, "said.json": json.dumps(["v1", judged, EXTRACTED])})
    trust(project)
    ended = mulligan("run", "one", "t", "--model", "scripted:said.json")
    assert (ended.status, ended.out) == (0, "v1\n")
    assert "1 lesson learned by scripted:said.json" in ended.err
    assert "Say right" in mulligan("memory", "list", "--agent-id", "one").out
    assert "Say right" not in mulligan("memory", "list").out
