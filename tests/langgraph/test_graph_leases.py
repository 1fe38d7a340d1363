"""Nodes that take longer than a lease, and two processes on one thread."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import mortal_graph
import pytest
from forked import forked
from reflexion_graphs import a_graph, a_store, an_open_store, asking, by_messages, on_thread, recorded

from mulligan.core.errors import LeaseLost
from mulligan.core.records import Episode
from mulligan.langgraph import ScriptedChat, working
from mulligan.store.sqlite import SqliteStore

SHORT = 0.3


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(working, "LEASE_SECONDS", SHORT)


async def until_past(seconds: float) -> None:
    """Waits as a tool does that takes its time."""
    loop = asyncio.get_running_loop()
    late = loop.create_future()
    loop.call_later(seconds, late.set_result, None)
    await late


def stolen(folder: Path, seconds: float) -> str:
    """Tries to take the episode's lease while it is held; who has it."""

    async def steal() -> str:
        async with an_open_store(folder) as store:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                for episode in await store.list():
                    with pytest.raises(LeaseLost):
                        await store.acquire(episode.id, "elsewhere:1:x", SHORT)
                await until_past(0.02)
            return await store.holder((await store.list())[0].id) or ""

    return asyncio.run(steal())


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_node_holds_its_lease_however_long_it_takes(way: str, tmp_path: Path) -> None:
    entered, done = threading.Event(), threading.Event()

    def tool(answer: str) -> str:
        entered.set()
        assert done.wait(20)
        return "ran"

    with a_store(tmp_path) as store:
        graph = a_graph(ScriptedChat(by_messages(8)), tool, store=store)
        found: list[Any] = []

        def work() -> None:
            if way == "invoke":
                found.append(graph.invoke(asking()))
            else:
                found.append(asyncio.run(graph.ainvoke(asking())))

        thread = threading.Thread(target=work)
        thread.start()
        assert entered.wait(20)
        assert stolen(tmp_path, 4 * SHORT)
        done.set()
        thread.join(20)
        assert not thread.is_alive()
    assert found[0]["reflexion"]["solved"]
    assert recorded(tmp_path)[0].solved


async def test_a_lease_that_was_lost_ends_the_work(tmp_path: Path) -> None:
    entered = asyncio.Event()

    async def tool(answer: str) -> str:
        entered.set()
        await asyncio.Event().wait()
        return "never"

    async with an_open_store(tmp_path) as store:
        graph = a_graph(ScriptedChat(by_messages(8)), tool, store=store)
        running = asyncio.create_task(graph.ainvoke(asking()))
        await asyncio.wait_for(entered.wait(), 10)
        (episode,) = await store.list()
        await force(store, episode.id)
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(running, 10)


async def force(store: SqliteStore, episode: str) -> None:
    """Takes the lease away, as after a pause of this machine that was longer than it."""

    def work(db: Any) -> None:
        db.execute("UPDATE leases SET owner = 'elsewhere:1:x', fence = fence + 1, until = ?", (time.time() + 60,))

    await store._db.write(work)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("side", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_two_processes_on_one_thread_pay_once(side: str, tmp_path: Path) -> None:
    """The second is refused while the first is at a node; whoever comes after goes on with what is there."""
    command = [sys.executable, mortal_graph.__file__, str(tmp_path), side, "sync", "-1", "0.1"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [forked(command, **pipes) for _ in range(2)]
    said = [running.communicate(timeout=60) for running in both]
    for running, (out, err) in zip(both, said, strict=True):
        assert running.returncode == 0 or "LeaseLost" in err or "locked" in err, (out, err)
    last = forked(command, **pipes)
    _, err = last.communicate(timeout=60)
    assert last.returncode == 0, err
    assert sorted((tmp_path / "calls.txt").read_text().split()) == ["0", "1", "2", "3"]
    (episode,) = recorded(tmp_path)
    assert episode.solved


class SlowToRead(SqliteStore):
    """An episode that is there is handed out only when the test lets it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.read, self.go_on = threading.Event(), threading.Event()

    async def load(self, episode: str, *, agent: str | None = None) -> Episode:
        found = await super().load(episode, agent=agent)
        self.read.set()
        assert self.go_on.wait(20)
        return found


def test_a_draft_that_another_drive_has_asked_for_is_not_asked_for_again(tmp_path: Path) -> None:
    answers, solved = by_messages(3, 8), list[bool]()
    store = SlowToRead(tmp_path / "mulligan.db")
    other = threading.Thread(target=lambda: solved.append(graph.invoke(*asked)["reflexion"]["solved"]))
    asked = asking(id="q"), on_thread()

    def answer(messages: Any) -> Any:
        if not other.ident:
            other.start()  # it finds the episode without a draft
            assert store.read.wait(20)
        return answers(messages)

    model = ScriptedChat(answer)
    graph = a_graph(model, store=store)
    drive = graph.stream(*asked)
    next(drive)
    store.go_on.set()
    other.join(20)
    assert list(drive)
    asyncio.run(store.close())
    assert solved == [True]
    assert len(model.asked) == 3


def test_one_thread_from_many_threads(tmp_path: Path) -> None:
    """In one process, too, an episode is worked on by one at a time."""
    model = ScriptedChat(by_messages(3, 8))
    with a_store(tmp_path) as store:
        graph = a_graph(model, store=store)
        ended: list[str] = []

        def work() -> None:
            try:
                graph.invoke(asking(id="q"), on_thread())
                ended.append("solved")
            except LeaseLost:
                ended.append("refused")
            except Exception as error:  # said by the assert below, not lost with the thread
                ended.append(f"{type(error).__name__}: {error}")

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(ended) == 6
        assert set(ended) <= {"solved", "refused"}
        assert graph.invoke(asking(id="q"), on_thread())["reflexion"]["solved"]
    assert len(model.asked) == 3
    (episode,) = recorded(tmp_path)
    assert (len(episode.trials), episode.solved) == (2, True)
