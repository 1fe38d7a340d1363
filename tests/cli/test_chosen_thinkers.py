"""Who judges and reflects where nobody says: never the small model that nobody named, for an actor that is another."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from mulligan.app.config import load
from mulligan.store import open_store
from mulligan.text.formatting import EVIDENCE

Run = Callable[..., Any]

TEXTKIT = """def slug(title):
    return title.lower().replace(" ", "-")


def initials(name):
    return "".join(part[0] for part in name.split())
"""
TESTS = """from textkit import initials, slug


def test_slugs_look_as_in_this_house():
    assert slug("Second Try") == "second_try.v1"


def test_initials_look_as_in_this_house():
    assert initials("Ada Lovelace") == "A.L."
"""
MENDS = '''"""Mends what the prompt names: of the ways that it knows, the first that gives what a failed test expected."""
import re, sys
WAYS = {
    "slug": ['title.lower().replace(" ", "_")', 'title.lower().replace(" ", "_") + ".v1"'],
    "initials": ['"".join(part[0] + "." for part in name.split())'],
}
prompt = sys.stdin.read()
if "An attempt of yours at this task failed" in prompt:
    print("slug() must join by underscores and end in .v1.")
    sys.exit()
text = open("textkit.py").read()
for name, ways in WAYS.items():
    for given, expected in re.findall(rf'assert {name}\\("(.*?)"\\) == "(.*?)"', prompt):
        right = [way for way in ways if eval(way, {"title": given, "name": given}) == expected]
        for way in right[:1]:
            text = re.sub(rf"(def {name}.*\\n    return ).*", lambda found: found[1] + way, text)
open("textkit.py", "w").write(text)
'''
CHECK = f"env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {quote(sys.executable)} -m pytest -q -p no:cacheprovider"
TASK = ("solve", "Make the failing tests pass")


def nothing(name: str) -> None:
    """What `find_spec` says of a package that is not installed."""


@pytest.fixture
def repository(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With two failing tests, an agent beside it, and no package that a local model needs."""
    monkeypatch.setattr("mulligan.core.extras.find_spec", nothing)
    folder = here / "repository"
    folder.mkdir()
    (folder / "textkit.py").write_text(TEXTKIT)
    (folder / "test_textkit.py").write_text(TESTS)
    (here / "agent.py").write_text(MENDS)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=u", "-c", "user.email=u@e", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True, capture_output=True, timeout=60)
    return folder


def agent(repository: Path) -> tuple[str, ...]:
    script = repository.parent / "agent.py"
    return ("--actor", f"command:{quote(sys.executable)} {quote(str(script))}", "--workspace", str(repository))


def prompts() -> dict[str, str]:
    """What the agent was given in the newest run, by the journal's keys."""

    async def read() -> dict[str, str]:
        store = open_store(load().store)
        try:
            newest = (await store.list())[0]
            rows = await store.steps(newest.id)
            return {row.key: row.request["prompt"] for row in rows if row.key.endswith("/command#1")}
        finally:
            await store.close()

    return asyncio.run(read())


@pytest.mark.slow
def test_a_coding_agent_is_shown_what_the_check_printed_and_nobody_reflects(mulligan: Run, repository: Path) -> None:
    ended = mulligan(*TASK, *agent(repository), "--check", CHECK)
    assert ended.status == 0, ended.err
    assert ended.err.splitlines()[0] == (
        "strategy evidence: the actor is a command and no model is named, so there is no reflection; the check's output is "
        "shown"
    )
    assert "solved on try 2 of 4" in ended.err
    first, second = prompts().values()
    assert first.startswith("Make the failing tests pass\n\nChange the files")
    assert '>       assert slug("Second Try") == "second_try.v1"\n' in second
    assert "E       AssertionError: assert 'AL' == 'A.L.'\n" in second
    assert re.search(r"\n2 failed in [\d.]+s\n```\n\nThe files are as your previous attempt left them", second)
    assert "Lessons from" not in second
    page = (Path(__file__).parents[2] / "docs" / "command-agents.md").read_text()
    assert f"\n{EVIDENCE}:\n" in second
    assert f"\n{EVIDENCE}:\n" in page, "the page shows the prompt as it is worded"


@pytest.mark.slow
def test_the_end_of_a_long_output_is_kept(mulligan: Run, repository: Path) -> None:
    says = "print('the head', 'word ' * 30_000, '3 failed in 0.01s', sep='\\n'); sys.exit('warn ' * 30_000)"
    check = f"{quote(sys.executable)} -c {quote(f'import sys; {says}')}"
    ended = mulligan(*TASK, *agent(repository), "--check", check, "--trials", "2")
    assert ended.status == 1
    shown = prompts()["trial.2/act/command#1"]
    assert "the head" in shown
    assert "\n3 failed in 0.01s\n" in shown
    assert len(shown) < 12_000


@pytest.mark.slow
def test_an_agent_reflects_itself_when_that_is_asked_for(mulligan: Run, repository: Path) -> None:
    ended = mulligan(*TASK, *agent(repository), "--check", CHECK, "--reflector", "self")
    assert ended.status == 0, ended.err
    assert ended.err.splitlines()[0] == (
        "strategy evidence_and_reflexion: the default; the check's output is shown, and what the agent itself says it would "
        "do otherwise"
    )
    asked, second = prompts()["trial.1/reflect/command#1"], prompts()["trial.2/act/command#1"]
    assert "E       AssertionError: assert 'AL' == 'A.L.'\n" in asked
    assert "- slug() must join by underscores and end in .v1.\n" in second
    assert "E       AssertionError: assert 'AL' == 'A.L.'\n" in second


@pytest.mark.slow
def test_a_model_that_is_named_reflects_for_a_coding_agent(mulligan: Run, repository: Path, here: Path) -> None:
    (here / "lesson.txt").write_text('slug("Second Try") should be second_try.v1.')
    for named in ("--reflect-model", "--model"):
        ended = mulligan(*TASK, *agent(repository), "--check", CHECK, named, "scripted:lesson.txt")
        assert ended.status == 0, ended.err
        assert ended.err.startswith("strategy evidence_and_reflexion: the default; the check's output is shown, and ")
        assert '- slug("Second Try") should be second_try.v1.\n' in prompts()["trial.2/act/command#1"]


@pytest.mark.parametrize("strategy", ["reflexion", "last_attempt_and_reflexion", "evidence_and_reflexion"])
def test_a_strategy_that_reflects_needs_somebody_who_does(mulligan: Run, repository: Path, strategy: str) -> None:
    ended = mulligan(*TASK, *agent(repository), "--check", CHECK, "--strategy", strategy)
    assert (ended.status, ended.out) == (2, "")
    for way in ("--reflect-model", "--model", "--reflector self", "--strategy evidence"):
        assert way in ended.err
    assert "No runs recorded" in mulligan("runs", "list").err


def test_a_named_reflector_that_asks_a_model_needs_one(mulligan: Run, repository: Path) -> None:
    ended = mulligan(*TASK, *agent(repository), "--check", CHECK, "--reflector", "verbal")
    assert ended.status == 2
    assert "The reflector 'verbal' needs a model, but none is set" in ended.err


@pytest.mark.parametrize("command", [(), ("--actor", "command:true", "--workspace", ".")])
def test_without_a_judge_and_a_model_nothing_is_tried(mulligan: Run, command: tuple[str, ...]) -> None:
    ended = mulligan("solve", "x", *command)
    assert (ended.status, ended.out) == (2, "")
    for way in ("--check", "--tests", "--judge-model"):
        assert way in ended.err
    assert "No runs recorded" in mulligan("runs", "list").err


def test_a_rubric_for_a_coding_agent_needs_a_model_that_is_named(mulligan: Run) -> None:
    judged = ("--evaluator", "model_judge:- It is short.")
    ended = mulligan("solve", "x", "--actor", "command:true", "--workspace", ".", *judged)
    assert ended.status == 2
    assert "The evaluator 'model_judge' needs a model, but none is set" in ended.err
    assert "--judge-model" in ended.err


def test_a_rubric_that_is_named_lets_the_local_model_judge_itself(
    mulligan: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mulligan.core.extras.find_spec", nothing)
    ended = mulligan("solve", "x", "--evaluator", "model_judge:- It is short.")
    assert ended.err.startswith("Error: Models that run inside Mulligan need an extra")


@pytest.mark.slow
def test_a_fork_with_a_strategy_that_reflects_needs_somebody_who_does(mulligan: Run, repository: Path) -> None:
    judged = ("--check", CHECK, "--trials", "1")
    run = mulligan(*TASK, *agent(repository), *judged).err.split()[-1]
    fork = ("runs", "resume", run, "--fork", "--trials", "2", "--strategy")
    refused = mulligan(*fork, "reflexion")
    assert refused.status == 2
    assert "let the acting agent reflect with --reflector self" in refused.err
    assert mulligan(*fork, "evidence").status == 0


@pytest.mark.slow
def test_a_key_is_not_mentioned_to_who_has_an_agent_of_their_own(
    mulligan: Run, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-at-all")
    ended = mulligan(*TASK, *agent(repository), "--check", CHECK, "--trials", "1")
    assert "OPENAI_API_KEY" not in ended.err


def test_who_cannot_be_asked_does_not_reflect_itself(mulligan: Run, second: tuple[str, ...]) -> None:
    ended = mulligan(*second, "--reflector", "self")
    assert ended.status == 2
    assert "'self' needs an agent, but there is none here" in ended.err


def test_an_actor_of_the_user_that_asks_no_model_of_ours_is_shown_evidence(mulligan: Run, here: Path) -> None:
    (here / "mine.py").write_text(
        "from mulligan.core.records import Attempt\n"
        "class Mine:\n"
        "    async def act(self, episode, past):\n"
        "        return Attempt('right' if past.evidence else 'wrong')\n"
    )
    ended = mulligan("solve", "say it", "--actor", "./mine.py", "--evaluator", "./judge.py")
    assert (ended.status, ended.out) == (0, "right\n")
    assert ended.err.startswith(
        "strategy evidence: the actor asks no model of Mulligan's and no model is named, so there is no reflection; what the "
        "judge found is shown\n"
    )
