"""Checkpointed graphs whose process is killed: what a model or a tool answered is not asked for again."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import mortal_graph
import pytest
from forked import forked
from reflexion_graphs import recorded, steps_of

CALLS = ["0", "1", "2", "3"]
RUNS = ["answer 1", "answer 2", "answer 3"]


def process(folder: Path, side: str, durability: str, die_after: int, pause: float = 0.0) -> subprocess.Popen[str]:
    command = [sys.executable, mortal_graph.__file__, str(folder), side, durability, str(die_after), str(pause)]
    return forked(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(running: subprocess.Popen[str], seconds: float = 60) -> int:
    try:
        running.communicate(timeout=seconds)
    finally:
        running.kill()
    return running.returncode


def lines(folder: Path, name: str) -> list[str]:
    file = folder / name
    return file.read_text().split("\n")[:-1] if file.exists() else []


def done(folder: Path) -> set[str]:
    """The calls of the model and of the tool whose answers are in the journal."""
    if not (folder / "mulligan.db").exists():
        return set()
    rows = [row for episode in recorded(folder) for row in steps_of(folder, episode.id) if row.done]
    calls = {str(sum(m["type"] == "tool" for m in row.request["messages"])) for row in rows if "model" in row.key}
    return calls | {row.request["input"] for row in rows if "tool" in row.key}


def begun_after(running: subprocess.Popen[str], folder: Path, before: tuple[int, int], seconds: float) -> bool:
    """Kills the process so many seconds after its first call. True: it ended before."""
    until = time.monotonic() + 60
    while running.poll() is None and time.monotonic() < until:
        if (len(lines(folder, "calls.txt")), len(lines(folder, "runs.txt"))) != before:
            break
        time.sleep(0.005)
    try:
        running.wait(seconds)
    except subprocess.TimeoutExpired:
        running.kill()
        return False
    return True


@pytest.mark.parametrize("side", ["sync", pytest.param("async", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "after", [pytest.param(1, marks=pytest.mark.slow), 2, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 6))]
)
def test_killed_between_two_nodes_it_goes_on_without_a_second_call(side: str, after: int, tmp_path: Path) -> None:
    """Must-show 5."""
    assert ended(process(tmp_path, side, "async", after)) == -signal.SIGKILL
    assert len(lines(tmp_path, "calls.txt")) + len(lines(tmp_path, "runs.txt")) >= after
    assert ended(process(tmp_path, side, "async", -1)) == 0
    assert lines(tmp_path, "calls.txt") == CALLS
    assert lines(tmp_path, "runs.txt") == RUNS
    (episode,) = recorded(tmp_path)
    assert (len(episode.trials), episode.solved) == (3, True)


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("side", ["sync", "async"])
def test_killed_after_every_node_it_is_paid_once(side: str, durability: str, tmp_path: Path) -> None:
    """One node further each time; with the durability "exit" there is no checkpoint at all, only the record."""
    for after in range(1, 7):
        alive = 1 if durability != "exit" else after
        assert ended(process(tmp_path, side, durability, alive)) == -signal.SIGKILL
    assert ended(process(tmp_path, side, durability, -1)) == 0
    assert lines(tmp_path, "calls.txt") == CALLS
    assert lines(tmp_path, "runs.txt") == RUNS
    (episode,) = recorded(tmp_path)
    assert (len(episode.trials), episode.solved) == (3, True)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["sync", "async"])
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_any_moment_nothing_that_was_answered_is_asked_again(side: str, seed: int, tmp_path: Path) -> None:
    chance, known, kills, over = random.Random(seed), set[str](), 0, False
    while not over:
        before = len(lines(tmp_path, "calls.txt")), len(lines(tmp_path, "runs.txt"))
        running = process(tmp_path, side, "async", -1, 0.15)
        if kills < 20 and not begun_after(running, tmp_path, before, chance.uniform(0, 0.6)):
            kills += 1
        over = ended(running) == 0
        new = [*lines(tmp_path, "calls.txt")[before[0] :], *lines(tmp_path, "runs.txt")[before[1] :]]
        assert not known & set(new)
        known = done(tmp_path)
    assert kills > 2
    (episode,) = recorded(tmp_path)
    assert (len(episode.trials), episode.solved) == (3, True)
    assert known == {*CALLS, *RUNS}
