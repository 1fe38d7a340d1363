"""Two clients on one store, of which one is killed in the middle of a call: the other goes on, and what was said to be
kept is kept, once.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import hostile_pair
import pytest
from hostile_lane import intact, keep
from serving import served

from mulligan.app.config import load
from mulligan.core.lessons import Selection
from mulligan.store.sqlite import SqliteStore

Fact = Mapping[str, Any]
PATIENCE = 60.0
AFTER = pytest.mark.parametrize("after", [1, 2, 8, 9, 34])
"""What the one client is acknowledged before it is killed."""


class Client:
    """A client's process, and what it was acknowledged so far."""

    def __init__(self, where: str, agent: str) -> None:
        command = [sys.executable, hostile_pair.__file__, where, agent]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.agent, self.facts, self._begun = agent, list[Fact](), b""
        self.server = int(self._next()["pid"])
        os.set_blocking(self.process.stdout.fileno() if self.process.stdout else -1, False)

    def work_on(self, more: int) -> None:
        """Until so many more facts were acknowledged."""
        until, wanted = time.monotonic() + PATIENCE, len(self.facts) + more
        while len(self.facts) < wanted:
            assert time.monotonic() < until, f"{self.agent}: {len(self.facts)} of {wanted}"
            assert self.process.poll() is None, cast("IO[bytes]", self.process.stderr).read()
            if not self.take():
                time.sleep(0.002)

    def take(self) -> int:
        """What it has said since."""
        while part := cast("IO[bytes]", self.process.stdout).readline():
            self._begun += part  # a pipe may give a line in two parts
        *lines, self._begun = self._begun.split(b"\n")
        self.facts += [json.loads(line) for line in lines]
        return len(lines)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)
        self.take()

    def clean_up(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _next(self) -> Fact:
        line = cast("IO[bytes]", self.process.stdout).readline()
        assert line, cast("IO[bytes]", self.process.stderr).read()
        return json.loads(line)


@contextmanager
def clients(*where: str) -> Generator[Sequence[Client]]:
    started = list[Client]()
    try:
        for n, one in enumerate(where):
            started.append(Client(one, f"agent {n}"))
        yield started
    finally:
        for client in started:
            client.clean_up()
        for client in started:
            gone(client.server)


def gone(pid: int) -> None:
    """A server whose client was killed ends by itself."""
    until = time.monotonic() + PATIENCE
    while pid and Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < until, f"the server {pid} of a client that is gone goes on"
        time.sleep(0.02)


async def kept(store: SqliteStore, client: Client) -> None:
    """Everything that was acknowledged, once; an episode holds the steps that were, and no other of its task."""
    lessons = await store.memory.lessons.list(client.agent, Selection(limit=None))
    titles = Counter(lesson.title for lesson in lessons)
    told = [fact for fact in client.facts if "lesson" in fact]
    assert {fact["lesson"]: fact["title"] for fact in told}.items() <= {one.id: one.title for one in lessons}.items()
    assert set(titles.values()) <= {1}
    assert len(titles) - len(told) in (0, 1)  # what was under way when it was killed
    for id, fact in {fact["episode"]: fact for fact in client.facts if "episode" in fact}.items():
        episode = await store.load(id, agent=client.agent)
        assert episode.task.prompt == fact["task"]
        steps = [step for trial in episode.trials for step in _steps(trial, fact["task"])]
        mine = [one for one in client.facts if one.get("episode") == id and one["step"] != "actor"]
        assert steps[: len(mine)] == [(one["trial"], one["step"]) for one in mine]
        assert len(steps) - len(mine) in (0, 1)


def _steps(trial: Any, task: str) -> Sequence[tuple[int, str]]:
    """What a trial says of the client's steps: the actor's own leaves nothing but the task."""
    assert trial.attempt.output == f"{task} output {trial.number}"
    if trial.reflection is None and trial.feedback is None:
        return [(trial.number, "evaluator")]
    return [(trial.number, "evaluator"), (trial.number, "self-reflection")]


@pytest.mark.slow
@AFTER
def test_two_servers_of_which_one_loses_its_client(after: int) -> None:
    database = Path(load().database)
    known = asyncio.run(keep(database))
    with clients("stdio", "stdio") as (one, other):
        other.work_on(1)
        one.work_on(after)
        one.kill()
        other.work_on(30)
        gone(one.server)
        other.work_on(5)
        other.kill()
    asyncio.run(all_kept(database, known, (one, other)))


@pytest.mark.slow
@AFTER
def test_one_server_of_which_one_client_is_killed(after: int) -> None:
    database = Path(load().database)
    known = asyncio.run(keep(database))
    with served("--rate", "0") as server:
        with clients(server.url, server.url) as (one, other):
            other.work_on(1)
            one.work_on(after)
            one.kill()
            other.work_on(30)
            other.kill()
        assert server.stop() == 0
        said = server.said()
    asyncio.run(all_kept(database, known, (one, other), said))


async def all_kept(database: Path, known: Any, several: Sequence[Client], said: str = "") -> None:
    await intact(database, known, said)
    store = SqliteStore(database)
    try:
        for client in several:
            assert client.facts  # at least what it was told to wait for before the kill
            await kept(store, client)
    finally:
        await store.close()
