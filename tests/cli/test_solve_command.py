"""`mulligan solve`: what stands on stdout and stderr, and the exit status of each end."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
NEVER = ("solve", "say it", "--evaluator", "./judge.py", "--strategy", "none", "--trials", "3")


def test_the_result_is_all_that_stands_on_stdout(mulligan: Run, second: tuple[str, ...]) -> None:
    ended = mulligan(*second)
    assert (ended.status, ended.out) == (0, "right\n")
    lines = ended.err.splitlines()
    run = re.fullmatch(r"run (\w{8}): scripted:second.txt@\w+, judged by judge.py, at most 4 tries", lines[0])
    assert run
    assert lines[1:4] == [
        "try 1 of 4: failed, score 5.00: it says wrong",
        "try 1 of 4: lesson: Say right.",
        "try 2 of 4: passed, score 5.00",
    ]
    assert re.fullmatch(r"solved on try 2 of 4 \(3 calls, \d+ tokens in, \d+ out, \d+\.\d s\)", lines[-3])
    assert lines[-2:] == ["note: by a toy", f"recorded: mulligan runs show {run[1]}"]


def test_unsolved_prints_the_best_attempt(mulligan: Run) -> None:
    ended = mulligan(*NEVER, "--model", "scripted:never.txt")
    assert (ended.status, ended.out) == (1, "longer, but wrong\n")
    assert "not solved: 3 of 3 tries used; printing the best attempt, try 2, score 17.00" in ended.err


def test_never_judged_is_4(mulligan: Run) -> None:
    ended = mulligan(*NEVER, "--model", "scripted:unclear.txt", "--trials", "2")
    assert (ended.status, ended.out) == (4, "as unclear\n")
    assert "could not be judged: 2 of 2 tries used" in ended.err
    assert "no verdict: there is nothing to judge" in ended.err


def test_equal_attempts_are_stuck_unless_that_is_turned_off(mulligan: Run, here: Path) -> None:
    (here / "same.txt").write_text("wrong\n---\nwrong\n---\nwrong")
    ended = mulligan(*NEVER, "--model", "scripted:same.txt", "--identical", "2")
    assert ended.status == 1
    assert "the last 2 attempts are identical" in ended.err
    ended = mulligan(*NEVER, "--model", "scripted:same.txt", "--identical", "0")
    assert "3 of 3 tries used" in ended.err


def test_an_error_of_the_model_is_3_and_resumable(mulligan: Run) -> None:
    ended = mulligan(*NEVER, "--model", "scripted:unclear.txt", "--quiet")
    assert (ended.status, ended.out) == (3, "as unclear\n")
    assert "stopped by an error: act of try 3: scripted:unclear.txt has 2 answers" in ended.err
    assert re.search(r"Resume it with: mulligan runs resume \w{8}$", ended.err.strip())


def test_over_budget_is_3_and_a_higher_limit_goes_on(mulligan: Run) -> None:
    ended = mulligan(*NEVER, "--model", "scripted:second.txt", "--max-tokens", "30")
    assert (ended.status, ended.out) == (3, "wrong\n")
    assert "stopped over budget" in ended.err
    assert "Resume it with a higher limit (--max-tokens" in ended.err
    run = ended.err.split()[-1]
    ended = mulligan("runs", "resume", run[:6], "--max-tokens", "100000")
    assert (ended.status, ended.out) == (0, "Say right.\n")  # the script begins anew
    assert "resuming after 1 try" in ended.err
    assert mulligan("runs", "resume", run).status == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("solve", ""), "The task is empty"),
        (("solve", "x", "--tests", "no.py"), "no.py does not exist"),
        (("solve", "no/such/folder"), "The task folder no/such/folder does not exist"),
        (("solve", "x", "--tests", "judge.py", "--check", "true"), "pass only one"),
        (("solve", "x", "--evaluator", "exact_math:1"), "Did you mean 'exact_match'"),
        (("solve", "x", "--trials", "0"), "'trials' must be at least 1"),
        (("solve", "x", "--trials", "many"), "not a valid integer"),
        (("solve", "x", "--temperatures", "warm"), "list of numbers"),
        (("solve", "x", "--set", "actor=warm"), "role.key=value"),
        (("solve", "x", "--set", "actor.warmth=1"), "'warmth'"),
        (("solve", "x", "--mystery"), "No such option"),
        (("solve", "x", "--model", "nobody"), "nobody"),
        (("sovle", "x"), "sovle"),
        (("solve", "judge.py"), "judge.py is a file"),
        (("solve", "h\udce9"), "not valid UTF-8"),
        (("solve", "x", "--model", ""), "name is empty"),
        (("solve", "x", "--strategy", "reflexion", "--window", "0"), "at least 1, not 0"),
        (("solve", "x", "--evaluator", "unit_tests:marked.py"), "use --tests marked.py"),
        (("solve", "x", "--evaluator", "exact_match"), "exact_match:ANSWER"),
        (("solve", "x", "--mode", "copy"), "--workspace DIR"),
        (("solve", "x", "--strategy", "reflexion", "--set", "strategy.window=no"), "must be an integer or null"),
        (("solve", "x", "--strategy", "evidence", "--window", "2"), "No setting of 'evidence' is called 'window'"),
        (
            ("solve", "x", "--strategy", "evidence", "--window", "2"),
            "Strategy with this setting: evidence_and_reflexion, last",
        ),
        (
            ("solve", "x", "--strategy", "evidence", "--set", "reflector.window=2"),
            "'evidence' has no reflector. Strategies with a reflector: evidence_and_reflexion",
        ),
        (("solve", "x", "--tests", "empty.py"), "empty.py contains no test"),
        (("solve", "x", "--tests", "idle.py"), "idle.py contains no test: check asserts, and nothing calls it"),
        (("solve", "x", "--tests", "latin.py"), "latin.py:1: not valid UTF-8 (byte 2): save it as UTF-8"),
        (("solve", "x", "--tests", "/dev/zero"), "/dev/zero is a device, which may never end"),
        (("solve", "x", "--tests", "pipe"), "pipe is a pipe, which may never end"),
        (("solve", "x", "--tests", "nul.py"), "nul.py cannot be read as Python"),
        (("solve", "x", "--evaluator", "./mute.py"), "Mute.expects must be 'text' or 'code' or 'workspace', not None"),
        (("solve", "x", "--tests", "marked.py", "--actor", "command:true", "--workspace", "."), "changes files"),
    ],
)
def test_bad_input_is_2_before_anything_is_recorded(
    mulligan: Run, here: Path, arguments: tuple[str, ...], said: str
) -> None:
    (here / "empty.py").write_text("")
    (here / "idle.py").write_text("def check(candidate):\n    assert candidate(1)\n")
    (here / "latin.py").write_bytes(b"# \xe9\n")
    (here / "nul.py").write_bytes(b"assert add(1, 2) == 3\0\n")
    os.mkfifo(here / "pipe")
    (here / "mute.py").write_text("class Mute:\n    async def evaluate(self, episode): ...\n")
    (here / "marked.py").write_bytes(b"\xef\xbb\xbfassert add(1, 2) == 3\n")
    mine = () if "--evaluator" in arguments or "--tests" in arguments else ("--evaluator", "./judge.py")
    model = () if "--model" in arguments else ("--model", "scripted:never.txt")
    ended = mulligan(*arguments, *mine, *model)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert "No runs recorded" in mulligan("runs", "list").err


def test_what_is_wrong_in_mulligan_toml_is_reported_with_the_file(mulligan: Run, here: Path) -> None:
    for text, said in (
        ("[limits]\ntrials = 0\n", "[limits]: The limit 'trials' must be at least 1"),
        ('[calls]\ntimeout = "x"\n', "[calls]: The model setting 'timeout' must be a number"),
    ):
        (here / "mulligan.toml").write_text(text)
        ended = mulligan("solve", "x", "--evaluator", "./judge.py", "--model", "scripted:never.txt")
        assert (ended.status, ended.out) == (2, "")
        assert f"{here / 'mulligan.toml'}, {said}" in ended.err


def test_quiet_says_nothing_when_all_is_well(mulligan: Run, second: tuple[str, ...]) -> None:
    assert mulligan(*second, "--quiet") == (0, "right\n", "")


def test_json_tells_each_event_and_the_result_last(mulligan: Run, second: tuple[str, ...]) -> None:
    ended = mulligan(*second, "--json")
    events = [json.loads(line) for line in ended.out.splitlines()]
    names = ["started", "acted", "evaluated", "reflected", "acted", "evaluated", "stopped", "result"]
    assert [event["event"] for event in events] == names
    assert len({(event["run"], event["episode"]) for event in events}) == 1
    result = events[-1]
    assert (result["solved"], result["output"], result["trial"], result["exit_status"]) == (True, "right", 2, 0)
    assert result["used"] == events[-2]["used"]
    assert ended.err == ""


def test_json_ends_with_the_error(mulligan: Run) -> None:
    ended = mulligan("solve", "x", "--tests", "no.py", "--json")
    (event,) = (json.loads(line) for line in ended.out.splitlines())
    assert (event["event"], event["exit_status"], ended.status) == ("error", 2, 2)
    assert "no.py does not exist" in event["message"]


def test_restarts_say_which(mulligan: Run) -> None:
    ended = mulligan(*NEVER, "--model", "scripted:never.txt", "--restarts", "2", "--trials", "1")
    assert ended.status == 1
    assert "(restart 2 of 2)" in ended.err
    assert [line.split()[0][-2:] for line in mulligan("runs", "list").out.splitlines()[1:]] == [".2", ".1"]


def test_a_restart_that_an_error_stopped_leaves_the_run_unfinished(mulligan: Run) -> None:
    arguments = (*NEVER, "--model", "scripted:unclear.txt", "--strategy", "none", "--trials", "1", "--restarts", "3")
    ended = mulligan(*arguments, "--quiet")
    assert ended.status == 3
    assert "The run is not finished (restart 3 of 3): act of try 1: scripted:unclear.txt has 2 answers" in ended.err
    assert re.search(r"Resume it with: mulligan runs resume \w{8}$", ended.err.strip())
    ended = mulligan(*arguments, "--json")
    assert (ended.status, json.loads(ended.out.splitlines()[-1])["exit_status"]) == (3, 3)


def test_settings_reach_their_roles(mulligan: Run, second: tuple[str, ...]) -> None:
    options = ("--window", "1", "--temperatures", "0.5,1", "--set", "actor.max_tokens=7", "--set", "reflector.window=2")
    assert mulligan(*second, *options, "-q").status == 0
    run = json.loads(mulligan("runs", "list", "--json").out)[0]["run"]
    settings = json.loads(mulligan("runs", "export", run).out)["episodes"][0]["episode"]["head"]["settings"]
    assert settings["actor"]["settings"] == {"temperatures": [0.5, 1.0], "max_tokens": 7}
    assert settings["strategy"]["settings"] == {"window": 1}
    assert settings["reflector"]["settings"] == {"window": 2}


def test_a_found_key_is_mentioned_and_never_used(mulligan: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    bad = ("solve", "x", "--tests", "no.py")
    assert re.match(r"OPENAI_API_KEY found; add --model openai:\S+ to use it\n", mulligan(*bad).err)
    assert "OPENAI_API_KEY" not in mulligan(*bad, "--quiet").err
    monkeypatch.setenv("MULLIGAN_MODEL", "scripted:never.txt")
    assert "OPENAI_API_KEY" not in mulligan(*bad).err


def test_an_unexpected_error_is_a_line_unless_the_traceback_is_wanted(
    mulligan: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "broken.py").write_text(
        "class Broken:\n    @property\n    def expects(self):\n        raise KeyError('boom')\n"
        "    async def evaluate(self, episode): ...\n"
    )
    broken = ("solve", "x", "--evaluator", "./broken.py", "--model", "scripted:never.txt")
    ended = mulligan(*broken)
    assert ended.status == 3
    assert ended.err.startswith("Error: KeyError: 'boom'\n")
    assert "MULLIGAN_DEBUG=1" in ended.err
    assert "Traceback" not in ended.err
    monkeypatch.setenv("MULLIGAN_DEBUG", "1")
    assert "Traceback" in mulligan(*broken).err


def test_a_reflection_without_a_lesson_is_shown_with_the_reason(mulligan: Run, here: Path) -> None:
    (here / "noted.py").write_text(
        "from mulligan.core.records import Reflection\n"
        "class Noted:\n"
        "    async def reflect(self, episode):\n"
        "        return Reflection('', notes=('it only repeats the task',))\n"
    )
    (here / "script.txt").write_text("wrong\n---\nright")
    judged = ("--evaluator", "./judge.py", "--model", "scripted:script.txt")
    ended = mulligan("solve", "say it", *judged, "--reflector", "./noted.py", "--strategy", "reflexion")
    assert "try 1 of 4: no lesson (note: it only repeats the task)" in ended.err.splitlines()
    run = ended.err.split()[-1]
    assert "\n    No lesson.\n\nNote: it only repeats the task\n" in mulligan("runs", "show", run).out
    assert "Note: it only repeats the task" in mulligan("runs", "export", run, "--format", "md").out
