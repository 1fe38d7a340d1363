"""`mulligan goal` at a terminal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from each_row import each_row
from goal_kit import Folder

from mulligan.app.goals import in_words
from mulligan.cli.main import cli
from mulligan.core.errors import InvalidInput
from mulligan.goals.person import MARKS, agent_above
from mulligan.goals.setting import Wish, set_goal
from mulligan.goals.state import Goals
from mulligan.hooks.goal_prompt import wished
from mulligan.hooks.holding import agents_that_hold
from mulligan.sessions.agents import agent


@pytest.fixture
def home(place: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home in which the hooks of Claude Code are installed."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "user" / ".claude"))
    monkeypatch.chdir(place.path)
    assert CliRunner().invoke(cli, ["hooks", "install", "claude", "--yes"]).exit_code == 0
    return tmp_path / "user"


def test_a_goal_is_set_shown_paused_and_cleared(home: Path, place: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    if agent_above():
        pytest.skip("needs a terminal that no coding agent has started")
    run = CliRunner()
    assert run.invoke(cli, ["goal"]).exit_code == 1
    said = run.invoke(cli, ["goal", "python3 check.py", "--trials", "9", "--protect", "check.py"])
    assert said.exit_code == 0, said.exception
    assert "outside the agent's sandbox" in said.stderr
    assert "It currently fails, as it should." in said.stderr
    assert "Kept working: Claude Code." in said.stderr
    assert "ends a turn after 8 blocked stops in a row" in said.stderr
    place.prompt()
    place.write("words.txt", "bad-one\n")
    assert "try 1 of 9" in place.stop()
    shown = run.invoke(cli, ["goal"]).stdout
    assert "1 of 9 tries, in progress" in shown
    assert "failed: check.py::bad-one" in shown
    assert json.loads(run.invoke(cli, ["goal", "--json"]).stdout)["sessions"][0]["tries"][0]["passed"] is False
    checked = run.invoke(cli, ["goal", "check"])
    assert (checked.exit_code, "bad-one" in checked.stdout) == (1, True)
    for action, state in (("pause", "paused"), ("resume", "active"), ("clear", "cleared")):
        assert run.invoke(cli, ["goal", action]).exit_code == 0
        assert place.now().state == state
    assert isinstance(run.invoke(cli, ["goal", "clear"]).exception, InvalidInput)


def test_a_first_check_without_a_verdict_is_no_failure(place: Folder) -> None:
    with Goals() as goals:
        goal = set_goal(goals, Wish("python3 check.py", first_check=False), str(place.path), "", "person")
        goals.keep_first(goal.id, {"passed": None, "text": "The judge was down."})
        row = goals.goal(goal.id)
        assert row is not None
        assert "when set: no verdict" in in_words(goals, row)


def test_an_agent_that_cannot_be_started_sets_no_goal(home: Path) -> None:
    ran = CliRunner().invoke(cli, ["goal", "--run", "no-such-agent -p", "python3 check.py", "Make the words right."])
    assert "'no-such-agent' was not found: install it" in str(ran.exception)
    with Goals() as goals:
        assert goals.standing() == []


@each_row("mark", MARKS)
def test_an_agents_session_is_known_by_its_environment(mark: str) -> None:
    assert mark in agent_above({mark: "1"})


def test_an_agents_session_is_known_by_the_processes_above(tmp_path: Path) -> None:
    claude = tmp_path / "claude"
    claude.write_text(f'#!/bin/sh\n{sys.executable} -c "$1"\nexit 0\n')
    claude.chmod(0o755)
    code = "from mulligan.goals.person import agent_above; print(agent_above({}))"
    env = {name: value for name, value in os.environ.items() if name not in MARKS}
    ran = subprocess.run([str(claude), code], capture_output=True, text=True, env=env, timeout=60, check=True)
    assert "it runs below claude" in ran.stdout


def test_it_is_refused_where_no_hook_would_hold_the_agent(home: Path, place: Folder) -> None:
    file = home / ".claude" / "settings.json"
    good = file.read_text()
    assert agents_that_hold(str(place.path), 5) == ["Kept working: Claude Code."]
    file.write_text(good.replace("3600", "5"))
    with pytest.raises(InvalidInput, match="comes from an older version of Mulligan"):
        agents_that_hold(str(place.path), 5)
    file.write_text('{"disableAllHooks": true, ' + good.lstrip()[1:])
    with pytest.raises(InvalidInput, match="disableAllHooks"):
        agents_that_hold(str(place.path), 5)
    file.write_text(good)
    (home / ".codex").mkdir()
    (home / ".codex" / "hooks.json").write_text(good.replace("claude", "codex"))
    kept, codex = agents_that_hold(str(place.path), 5)
    assert kept == "Kept working: Claude Code."
    assert codex.startswith("Codex CLI would not run the check")
    with pytest.raises(InvalidInput, match="Codex CLI would not run the check"):
        agents_that_hold(str(place.path), 5, "codex")
    (home / ".codex" / "hooks.json").unlink()
    file.write_text("{}")
    for has_opencode in (False, True):
        if has_opencode:
            Path(agent("opencode").folder()).mkdir(parents=True)
        with pytest.raises(InvalidInput, match="mulligan hooks install") as refusal:
            agents_that_hold(str(place.path), 5)
        assert ("opencode" in str(refusal.value)) is has_opencode


@pytest.mark.parametrize(
    ("line", "check", "trials", "protect"),
    [
        ("pytest -q", "pytest -q", 5, ()),
        ("--trials 6 --protect tests/ make check", "make check", 6, ("tests/",)),
        ('"make check" --tries=6 --protect tests/ --protect a.py', "make check", 6, ("tests/", "a.py")),
        ("pytest --protect", "pytest --protect", 5, ()),
    ],
)
def test_a_prompt_words_a_goal(line: str, check: str, trials: int, protect: tuple[str, ...]) -> None:
    wish = wished(line)
    assert (wish.check, wish.trials, wish.protect) == (check, trials, protect)


@pytest.mark.parametrize("line", ["--trials many pytest", '"make check" and then some'])
def test_a_prompt_that_words_none_says_why(line: str) -> None:
    with pytest.raises(InvalidInput):
        wished(line)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pytest", "-q"], 'Quote a check that contains spaces: mulligan goal "pytest -q".'),
        (["check.sh"], "It is a file here: write ./check.sh."),
        (["no-such-runner -q"], "Install it, or write its path."),
        (["python3 check.py", "--tests", "check.py"], "Use only one judge"),
        (["python3 check.py", "--tries", "0"], "--tries must be at least 1"),
    ],
)
def test_what_is_no_goal_is_said_before_anything_else(home: Path, place: Folder, words: list[str], said: str) -> None:
    if agent_above():
        pytest.skip("needs a terminal that no coding agent has started")
    place.write("check.sh", "exit 1\n")
    ended = CliRunner().invoke(cli, ["goal", *words])
    assert said in f"{ended.exception} {ended.output}"
    assert "outside the agent's sandbox" not in ended.output


@pytest.mark.slow
def test_a_check_that_takes_too_long_at_the_start_is_named(home: Path, place: Folder) -> None:
    if agent_above():
        pytest.skip("needs a terminal that no coding agent has started")
    said = CliRunner().invoke(cli, ["goal", "sleep 60", "--check-seconds", "0.5"]).stderr
    assert "The check was stopped after 0.5 seconds. --check-seconds allows more time." in said


def test_an_option_that_a_prompt_does_not_have_is_named() -> None:
    with pytest.raises(InvalidInput, match="--maximise is not an option of /mulligan-goal"):
        wished("--maximise x pytest -q")


def test_a_home_that_cannot_be_made_is_named(place: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(place.path / "words.txt" / "home"))
    assert "Set MULLIGAN_HOME to another folder." in str(CliRunner().invoke(cli, ["goal"]).exception)
