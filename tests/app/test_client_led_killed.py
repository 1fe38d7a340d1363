"""kill -9 between any two writes of a client's episode: the call that had no answer is made again, and heals it."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import mortal_client
import pytest
from forked import forked

from mulligan.core.codec import to_json
from mulligan.store.sqlite import SqliteStore

Step = dict[str, Any]


def step(kind: str, trial: int, **more: Any) -> Step:
    prompt = {"prompt": "Name a prime above 8."} if kind == "act" else {}
    return {"kind": kind, "trial": trial, "trials": 2, **prompt, **more}


EXHAUSTED = [
    step("act", 1, memory=["before"]),
    step("evaluate", 1, output="9"),
    step("reflect", 1, output="9", score="3 divides it."),
    step("reflect", 1, output="9", score="3 divides it.", reflection="r"),
    step("act", 2),
    step("evaluate", 2, output="10", memory=["m"]),
    step("reflect", 2, output="10", score=0.5, reflection="q"),
]
SOLVED = [
    step("act", 1),
    step("evaluate", 1, output="9"),
    step("reflect", 1, output="9", score=0, reflection="r"),
    step("act", 2),
    step("evaluate", 2, output="11"),
    step("reflect", 2, output="11", score=1, passed=True, reflection="Divide."),
]
SHORT = [step("act", 1), step("evaluate", 1, output="11", passed=True)]
COURSES = {"exhausted": EXHAUSTED, "solved": SOLVED, "short": SHORT}


def lead(store: Path, steps: list[Step], begin: str | None, writes: int, mode: str) -> tuple[int, list[Any]]:
    """The exit status of a process that leads on, and its answers."""
    order = {"store": str(store), "steps": steps, "begin": begin, "writes": writes, "mode": mode}
    command = [sys.executable, mortal_client.__file__]
    with forked(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as process:
        out, errors = process.communicate(json.dumps(order), timeout=60)
    assert errors == ""
    return process.returncode, [json.loads(line) for line in out.splitlines()]


def look(store: Path, id: str) -> Any:
    """All that is kept of it, but for its id and times."""

    async def read() -> Any:
        at = SqliteStore(store)
        episode = to_json(await at.load(id))
        steps = [(row.key, row.request, row.result, row.done) for row in await at.steps(id)]
        await at.close()
        for volatile in ("id", "run", "started"):
            episode.pop(volatile)
        return episode, steps

    return asyncio.run(read())


def through(store: Path, steps: list[Step], writes: int, mode: str) -> tuple[int, str, list[Any]]:
    """Led to the end, killed once after so many writes: how often it was killed, the episode's id, the answers."""
    killed, done, id, answers = 0, 0, None, list[Any]()
    while done < len(steps):
        status, said = lead(store, steps[done:], id, 0 if killed else writes, mode)
        assert status in (0, -signal.SIGKILL), status
        killed += status != 0
        done += len(said)
        id = said[-1]["episode"] if said else id
        answers += [answer["memory"] for answer in said]
    assert id is not None
    return killed, id, answers


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["take", "follow"])
@pytest.mark.parametrize("end", COURSES)
def test_killed_after_each_write(tmp_path: Path, end: str, mode: str) -> None:
    steps = COURSES[end]
    if mode == "follow":  # what the client was shown is said by it
        steps = [{**one, "memory": one.get("memory", [])} for one in steps]
    _, id, answers = through(tmp_path / "whole.db", steps, 0, mode)
    whole = look(tmp_path / "whole.db", id)
    assert whole[0]["stop"]["reason"] == ("exhausted" if end == "exhausted" else "solved")
    writes, killed = 0, 1
    while killed:
        writes += 1
        store = tmp_path / f"{writes}.db"
        killed, id, again = through(store, steps, writes, mode)
        assert again == answers, f"killed after write {writes}"
        assert look(store, id) == whole, f"killed after write {writes}"
    assert writes > 3 * len(steps), "it was killed between the writes of each call"
