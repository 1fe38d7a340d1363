"""The command as a process: signals, a real terminal, pipes that close, odd encodings."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from terminals import on_terminal

from mulligan.cli.main import main
from mulligan.web.signals import stop_signals

Run = Callable[..., Any]

WAITS = '''
import asyncio, sys
from mulligan.core.records import Attempt

class Waits:
    """Fails once, then waits until it is cancelled; with `stubborn`, even then."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self._stubborn = stubborn

    async def act(self, episode, past):
        if not episode.trials:
            return Attempt("wrong")
        try:
            print("waiting", file=sys.stderr, flush=True)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("cancelled", file=sys.stderr, flush=True)
            if self._stubborn:
                await asyncio.Event().wait()
            raise
'''


@pytest.fixture
def waiting(here: Path) -> Callable[..., "subprocess.Popen[str]"]:
    """Starts an episode whose second trial waits, and returns when it does."""
    (here / "waits.py").write_text(WAITS)

    def start(*more: str) -> "subprocess.Popen[str]":
        arguments = ("solve", "x", "--actor", "./waits.py", "--evaluator", "./judge.py", "--strategy", "none", *more)
        process = subprocess.Popen(
            _command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        _until(process, "waiting")
        return process

    return start


def _command(*arguments: str) -> Sequence[str]:
    return [sys.executable, "-m", "mulligan", *arguments]


def _until(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stderr is not None
    seen: list[str] = []
    for said in process.stderr:
        seen.append(said)
        if said.strip() == line:
            return
    raise AssertionError(f"it never said {line!r}: {seen}")


@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGTERM, signal.SIGHUP))]
)
def test_a_signal_leaves_a_resumable_run(
    waiting: Callable[..., "subprocess.Popen[str]"], number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    process = waiting()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (3, "wrong\n")
    assert "Traceback" not in err
    assert err.count("cancelled") == 1
    run = re.search(r"^Interrupted\. Resume it with: mulligan runs resume (\w{8})$", err, re.MULTILINE)
    assert run
    with pytest.raises(SystemExit):
        main(["runs", "list"])
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith(run[1])
    assert "paused: interrupted" in line


@pytest.mark.slow
def test_a_second_signal_ends_it_at_once(waiting: Callable[..., "subprocess.Popen[str]"]) -> None:
    process = waiting("--set", "actor.stubborn=true")
    process.send_signal(signal.SIGINT)
    _until(process, "cancelled")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == -signal.SIGINT
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["dumb", pytest.param("quiet", marks=pytest.mark.slow)])
def test_a_terminal_without_a_block(here: Path, second: tuple[str, ...], how: str) -> None:
    more, env = ((), {"TERM": "dumb"}) if how == "dumb" else (("--quiet",), {})
    status, out, shown = on_terminal(_command(*second, *more), 80, **env)
    assert (status, out) == (0, "right\n")
    assert "\x1b" not in shown
    assert ("try 1 of 4: failed" in shown) == (how == "dumb")


@pytest.mark.slow
def test_a_reader_that_hangs_up_is_no_error(here: Path, second: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(_command(*second, "-q"), stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_stream_that_takes_nothing(here: Path, second: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        untold = subprocess.run(_command(*second), stdout=subprocess.PIPE, stderr=full, text=True, timeout=60)
        assert (untold.returncode, untold.stdout) == (0, "right\n")
        lost = subprocess.run(_command(*second, "-q"), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert lost.returncode == 3
    assert "No space left on device" in lost.stderr
    assert re.search(r"are recorded: mulligan runs show \w{8}$", lost.stderr.strip())


@pytest.mark.slow
def test_a_poor_encoding_and_a_task_on_standard_input(process: Run, here: Path) -> None:
    (here / "accents.txt").write_text("right, déjà vu ✓")
    poor = {**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    arguments = ("solve", "-", "--evaluator", "./judge.py", "--model", "scripted:accents.txt")
    ended = process(*arguments, stdin="a/b, but on standard input", env=poor)
    assert (ended.status, ended.out) == (0, "right, d\\xe9j\\xe0 vu \\u2713\n")
    assert "a/b, but on standard input" in process("runs", "list").out
    assert process(*arguments, stdin="   ").status == 2


@pytest.mark.slow
def test_a_person_who_judges_gets_lines_and_the_prompt(here: Path) -> None:
    arguments = ("solve", "x", "--evaluator", "human", "--model", "scripted:second.txt", "--strategy", "none")
    status, out, shown = on_terminal(_command(*arguments), 80, answers=("say more", "pass"))
    assert (status, out) == (0, "Say right.\n")
    assert "\x1b" not in shown
    assert "try 1 of 4: failed: say more" in shown
    assert "solved on try 2 of 4" in shown


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    """With `nohup` a run goes on when its terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert signal.SIGHUP not in stop_signals()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert signal.SIGHUP in stop_signals()
    finally:
        signal.signal(signal.SIGHUP, before)
