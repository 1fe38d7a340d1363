"""`mulligan bench run` as a person meets it: progress, the end in a line or as JSON, signals, an agent of files."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from terminals import on_terminal, without_controls
from toy_bench import HERE, cases

from mulligan.core.benchmarks import BenchRun, CaseResult

Run = Callable[..., Any]

WAITS = '''
import asyncio, sys
from mulligan.core.records import Attempt

class Waits:
    """Answers; the case c2 waits until it is cancelled."""

    async def act(self, episode, past):
        if "c2" in episode.task.prompt:
            print("waiting", file=sys.stderr, flush=True)
            await asyncio.Event().wait()
        return Attempt("right")
'''


def toy(here: Path, *wishes: str) -> tuple[str, ...]:
    return ("bench", "run", HERE, "--data", str(cases(here, *wishes)), "--model", "scripted:said.jsonl")


def said(here: Path, *answers: str) -> None:
    (here / "said.jsonl").write_text("\n".join(map(json.dumps, answers)))


def test_a_run_its_progress_and_its_end(mulligan: Run, here: Path) -> None:
    said(here, "right", "wrong", "unclear")
    ended = mulligan(*toy(here, "a", "b", "c"), "--method", "simple")
    assert ended.status == 1
    how, head, *lines = ended.err.splitlines()
    assert how == "Method simple: one attempt of each case."
    run = head.split()[1].rstrip(":")
    assert head == f"run {run}: {HERE}, 3 cases"
    assert [line.partition("try, ")[0] for line in lines[:3]] == [
        "1 of 3: c1: solved, 1 ",
        "2 of 3: c2: failed, 1 ",
        "3 of 3: c3: unjudged, 1 ",
    ]
    assert lines[3:] == [f"report: mulligan bench report {run}", f"lessons of case N: mulligan runs show {run}.N"]
    assert ended.out == f"{run}: 1 of 3 solved, 1 failed, 1 unjudged, 0 errors\n"

    again = mulligan("bench", "run", "--resume", run[:4], "--format", "json")
    assert again.err.splitlines()[0] == f"run {run}: {HERE}, 3 cases, 3 of them ended before"
    assert len(again.err.splitlines()) == 3
    numbers = {"n": 3, "solved": 1, "failed": 1, "unjudged": 1, "errors": 0}
    assert json.loads(again.out) == {"run": run, "benchmark": HERE, **numbers}
    assert mulligan("bench", "run", "--resume", run, "-q").err == ""

    refused = mulligan("bench", "run", "--resume", run, "--limit", "1", "--model", "local")
    assert refused.status == 2
    assert "omit --model, --limit" in refused.err


def test_its_episodes_are_shown_and_do_not_crowd_the_list(mulligan: Run, here: Path) -> None:
    said(here, "right", "right")
    mulligan(*toy(here, "a"), "--method", "simple", "-q")
    run = mulligan("bench", "runs").out.splitlines()[1].split()[0]
    assert mulligan("runs", "list") == (
        0,
        "",
        "No runs recorded here yet. For benchmark runs: mulligan bench runs\n",
    )
    assert f", Run {run}.1.1\n" in mulligan("runs", "show", f"{run}.1.1").out
    refused = mulligan("runs", "resume", f"{run}.1.1")
    assert refused.status == 2
    assert f"mulligan bench run --resume {run}" in refused.err


def test_a_run_names_its_strategy_and_goes_on_from_any_folder(
    mulligan: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(here, "right", "right")
    mulligan(*toy(here, "a"), "-q")
    run, *_ = row = mulligan("bench", "runs").out.splitlines()[1].split()
    assert "reflexion" in row  # the benchmark's first, as none was named
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert mulligan("bench", "run", "--resume", run, "-q").status == 0


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--parallel", "0"), "parallel must be at least 1"),
        (("--limit", "0"), "limit must be at least 1"),
        (("--agent-id", "someone"), "'agent_id' selects a bank, but 'memory' is not set"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_begun(
    mulligan: Run, here: Path, given: tuple[str, str], why: str
) -> None:
    said(here, "right")
    refused = mulligan(*toy(here, "a"), *given)
    assert (refused.status, why in refused.err) == (2, True)
    assert mulligan("bench", "runs").out == ""


def test_what_goes_wrong_everywhere_is_reported_at_once(mulligan: Run, here: Path) -> None:
    said(here, "right")
    ended = mulligan(*toy(here, *["a"] * 5), "--method", "simple")
    lines = ended.err.splitlines()
    assert ended.status == 3
    assert "c2: error, 0 tries" in lines[3]
    assert "said.jsonl has 1 answer but was asked for number 2" in lines[3]
    assert not any("same error" in line for line in lines)  # the first was solved
    said(here, "judging breaks", *["judging breaks"] * 4)
    ended = mulligan(*toy(here, *["a"] * 5))
    assert sum("The first 3 cases all ended with the same error" in line for line in ended.err.splitlines()) == 1
    assert "0 of 5 solved, 0 failed, 0 unjudged, 5 errors" in ended.out


def test_the_time_left_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from mulligan.bench.commands import _progress as benching

    clock = iter([100.0, 160.0, 160.0, 160.0, 160.0])
    monkeypatch.setattr("mulligan.bench.commands._progress.time.monotonic", lambda: next(clock))
    progress = benching.Progress(False)
    run = BenchRun("b1", "toy", 0.0, {}, tuple(f"c{n}" for n in range(1, 11)), {})
    for n in range(1, 5):
        progress.on_case(run, CaseResult(n, f"c{n}", "solved"))
    progress.on_case(run, None)
    progress.on_case(run, CaseResult(5, "c5", "failed"))
    progress.on_case(run, CaseResult(6, "c6", "solved"))
    assert capsys.readouterr().err.splitlines() == [
        "run b1: toy, 10 cases, 4 of them ended before",
        "5 of 10: c5: failed, 0 tries, 0.0 s",
        "6 of 10: c6: solved, 0 tries, 0.0 s (5 solved so far, 2.0 cases/min, about 2 min left)",
    ]


@pytest.mark.slow
def test_on_a_terminal_a_last_line_says_what_is_under_way(here: Path) -> None:
    said(here, "wrong", "Say right, c1.", "right")
    command = [sys.executable, "-m", "mulligan", *toy(here, "a")]
    status, _, shown = on_terminal(command, 200, NO_COLOR="1")
    assert status == 0
    text = without_controls(shown)
    parts = [
        "run b",
        "0 of 1 ended; c1: try 1: judging",
        "c1: try 1: reflecting",
        "c1: try 2: trying",
        "✓ 1 of 1: c1: solved, 2 tries (failed, passed)",
        "· report:",
    ]
    assert sorted(parts, key=text.index) == parts


@pytest.mark.slow
def test_an_interrupt_is_recorded_and_says_how_to_go_on(here: Path) -> None:
    (here / "waits.py").write_text(WAITS)
    data = str(cases(here, "a", "b", "c"))
    command = [sys.executable, "-m", "mulligan", "bench", "run"]
    chosen = [HERE, "--data", data, "--method", "waits"]
    process = subprocess.Popen([*command, *chosen], stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stderr is not None
    heard = list[str]()
    while not heard or "waiting" not in heard[-1]:
        heard.append(process.stderr.readline())
        assert heard[-1], heard
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=30)
    assert process.returncode == 3
    run = heard[1].split()[1].rstrip(":")
    assert rest.splitlines()[-1] == f"Interrupted. Resume it with: mulligan bench run --resume {run}"
    (here / "waits.py").write_text(WAITS.replace('"c2" in', '"c9" in'))
    again = subprocess.run([*command, "--resume", run], capture_output=True, text=True, timeout=60, check=False)
    assert again.returncode == 2
    assert "waits.py" in again.stderr  # what it rests on has changed
    (here / "waits.py").write_text(WAITS)


ACT = "---\npattern: oneshot\n---\nYou answer.\n"
REFLECT = "---\npattern: oneshot\n---\nYou say what was wrong.\n"
AGENT = '---\nname: toyer\ndescription: Answers.\nversion: "1.0.0"\npattern: reflexion\nmax_iter: 9\n---\n'


def test_an_agent_of_files_plays(mulligan: Run, here: Path) -> None:
    folder = here / "agents" / "toyer"
    folder.mkdir(parents=True)
    for name, text in {"AGENT.md": AGENT, "act.md": ACT, "reflect.md": REFLECT}.items():
        (folder / name).write_text(text)
    (here / "mulligan.toml").write_text("")
    said(here, "wrong", "It says wrong: say right.", "right")
    ended = mulligan(*toy(here, "a"), "--agent", "toyer")
    assert (ended.status, ended.out.partition(": ")[2]) == (0, "1 of 1 solved, 0 failed, 0 unjudged, 0 errors\n")
    run = mulligan("bench", "runs").out.splitlines()[1].split()[0]
    shown = mulligan("runs", "show", f"{run}.1.1").out
    parts = ["Actor      agent", "Try 1: failed", "Feedback from judge", "It says wrong: say right.", "Try 2: passed"]
    assert sorted(parts, key=shown.index) == parts
    assert mulligan("bench", "run", "--resume", run, "-q").status == 0
    (folder / "act.md").write_text(ACT + "Briefly.\n")
    refused = mulligan("bench", "run", "--resume", run)
    assert refused.status == 2
    assert "act.md" in refused.err
