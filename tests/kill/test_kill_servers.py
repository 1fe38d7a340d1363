"""kill -9 of servers and of PostgreSQL under load: nothing acknowledged is lost, nothing finished is asked for again.

Three servers on one store, behind a balancer that remembers nobody, and official clients that learn, recall, lead
episodes, fill groups and have tasks solved. A kill comes after so many answers, while other calls are under way.

    MULLIGAN_TEST_REPEATS=25 pytest tests/kill/test_kill_servers.py -m slow -s        # more of them, and the figures
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import postgres_server
import pytest
from balancing import Balancer
from mcp import Client
from mcp.shared.exceptions import MCPError
from memory_clients import EXTRACTED, LESSON, MODEL, SETTINGS, TRAJECTORY
from postgres_server import PostgresServer
from reflexion_clients import step
from repetition import repeats
from serving import MULLIGAN, Running
from wire_client import KEY, Wire, running

import mulligan
from mulligan.core.errors import NotFound
from mulligan.core.lessons import Selection
from mulligan.core.protocols import Store
from mulligan.core.records import Episode
from mulligan.recording.drivers import led_by_client
from mulligan.recording.leases import leased
from mulligan.store import open_store

KILLS = repeats(8)
SERVERS, CLIENTS = 3, 6
EVERY = 4
"""Each so manyth kill hits PostgreSQL."""
CALL, PHASE = 100.0, 120.0
"""Seconds that a call may take (a store that is down is tried for 30), and that anything else is waited for."""

WHO = re.compile(r"\[((?:solve|task|group) [\d.]+)\]")
FILL = {"fill": {"who": WHO.pattern}, "delay": 0.3}


def drawn(steps: list[int]) -> Any:
    lesson = LESSON | {"title": "Lesson {who}", "content": "Do as {who} did.", "steps": steps}
    return EXTRACTED | {"lessons": [lesson]}


PLAYS: list[dict[str, Any]] = [
    {"when": "[task ", "answer": drawn([2, 3])},
    {"when": "[group ", "answer": drawn([1])},
    {"when": "HINT", "answer": "42"},
    {"when": "GUESS", "answer": "HINT for {who}: it is larger."},
    {"when": "[solve ", "answer": "GUESS of {who}"},
]


def asked_for(body: Any) -> str:
    """What a question to the model is about: the task, and for a solve the step of its episode."""
    text = json.dumps(body)
    found = WHO.search(text)
    assert found is not None
    if not found[1].startswith("solve"):
        return found[1]
    return f"{found[1]} " + (
        "trial.2/act" if "HINT" in text else "trial.1/reflect" if "GUESS" in text else "trial.1/act"
    )


class Lost(Exception):
    """Nobody knows what became of a call: its server was killed, or its store."""


_UNSURE = (
    "It may or may not be stored",
    "cannot be reached",
    "closed: open the store again",
    "is in use by",  # by a server that lives, and could not give its lease back: see `free`
)


class Siege:
    """The servers, their store, what was acknowledged, and what was killed."""

    def __init__(self, postgres: PostgresServer, wire: Wire, seed: int) -> None:
        self.postgres, self.wire, self.chance = postgres, wire, random.Random(seed)
        self.servers = [self._start() for _ in range(SERVERS)]
        self.balancer = Balancer(lambda: [server.url for server in self.servers])
        self.over = False
        self.answers, self.lost = 0, Counter[str]()
        self.killed = Counter[str]()
        self.tasks: dict[str, tuple[str, str]] = {}
        self.begun: set[str] = set()
        self.episodes: dict[str, list[str]] = {}
        self.receipts: dict[str, str] = {}
        self.solved: dict[str, str] = {}
        self.finished: dict[str, int] = {}
        self._answered = asyncio.Event()

    def _start(self) -> Running:
        words = ["--transport", "http", "--port", "0", "--tools", "all,scaling,solve", "--rate", "0", "--model", MODEL]
        server = Running([*MULLIGAN, *words], {}, None, -3, -3)
        server.url = server.wait_until_said(r"Serving MCP at (http://\S+)")[1]
        return server

    # --- killing ------------------------------------------------------------------------------------------------

    async def kill(self, number: int) -> None:
        """Kills something once some more calls were answered, and starts it again."""
        wanted = self.answers + self.chance.randint(2, 15)
        async with asyncio.timeout(PHASE):
            while self.answers < wanted:
                self._answered.clear()
                await self._answered.wait()
        if number % EVERY == EVERY - 1:
            self.killed["PostgreSQL"] += 1
            await asyncio.to_thread(self.postgres.kill)
            await asyncio.to_thread(self.postgres.start)
        else:
            self.killed["a server"] += 1
            at = self.chance.randrange(SERVERS)
            self.servers[at].process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(self._again, at)
        await asyncio.to_thread(self._note_finished)

    def _again(self, at: int) -> None:
        assert self.servers[at].ended() == -signal.SIGKILL
        self.servers[at].clean_up()
        self.servers[at] = self._start()

    def _note_finished(self) -> None:
        """What the store says is finished, with how often the model was asked for it until now."""
        extracted = {id for (id,) in self.postgres.sql("SELECT id FROM mulligan.work WHERE status = 'done'")}
        done = [who for who, (_, task) in self.tasks.items() if task.removeprefix("extract_") in extracted]
        steps = self.postgres.sql(
            "SELECT e.record, s.key FROM mulligan.steps s JOIN mulligan.results r ON r.step = s.n"
            " JOIN mulligan.episodes e ON e.n = s.episode WHERE s.key LIKE '%/model.%'"
        )
        for record, key in steps:
            found = WHO.search(str(record))
            assert found is not None
            done.append(f"{found[1]} {'/'.join(str(key).split('/')[:2])}")
        asked = self.asked()
        for one in done:
            self.finished.setdefault(one, asked[one])

    def asked(self) -> Counter[str]:
        return Counter(map(asked_for, self.wire.bodies))

    # --- the clients --------------------------------------------------------------------------------------------

    async def live(self, number: int) -> None:
        """One client after the other, each until a call is lost. What was lost and may be repeated is repeated."""
        round, begun = 0, dict[str, Any]()
        while not self.over:
            try:
                mode = ("legacy", "auto")[number % 2]
                async with asyncio.timeout(CALL), Client(self.balancer.over(), mode=mode) as client:
                    await client.list_tools()
                    while not self.over and await self._round(client, f"{number}.{round}", begun):
                        round, begun = round + 1, {}
            except Exception as error:
                self._note(error)

    def _note(self, error: Any) -> None:
        """A connection that was lost; another error is a fault."""
        if isinstance(error, ExceptionGroup):
            for one in error.exceptions:  # pyright: ignore
                self._note(one)
        elif isinstance(error, httpx2.TransportError | MCPError | TimeoutError):
            self.lost[type(error).__name__] += 1
        else:
            raise error

    async def _round(self, client: Client, who: str, begun: dict[str, Any]) -> bool:
        """Does a round of calls, from where it was lost; False: a call was lost."""
        agent = f"agent {who.partition('.')[0]}"
        try:
            await self._learn(client, f"task {who}", agent)
            await self._lead(client, who, agent, begun.setdefault("episode", {"said": []}))
            await self._group(client, f"group {who}", agent, begun)
            await self._recall(client, who, agent)
            if not begun.get("solve"):
                begun["solve"] = True
                await self._solve(client, f"solve {who}", agent)
        except Lost as lost:
            self.lost[str(lost)] += 1
            return False
        return True

    async def _call(self, client: Client, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """The answer, which was acknowledged with that. Raises `Lost`."""
        try:
            result = await client.call_tool(tool, arguments)
        except (MCPError, httpx2.TransportError) as error:
            raise Lost(type(error).__name__) from error
        if result.is_error:
            said = getattr(result.content[0], "text", "")
            if any(text in said for text in _UNSURE):
                raise Lost("the store was down")
            raise AssertionError(f"{tool}: {said}")
        self.answers += 1
        self._answered.set()
        assert result.structured_content is not None
        return result.structured_content

    async def _learn(self, client: Client, who: str, agent: str) -> None:
        if who in self.tasks:
            return
        task = {"trajectory": TRAJECTORY, "query": f"[{who}] Find it.", "success_signal": True, "agent_id": agent}
        self.tasks[who] = agent, (await self._call(client, "extract_memory", **task))["task_id"]

    async def _lead(self, client: Client, who: str, agent: str, begun: dict[str, Any]) -> None:
        """An episode of two trials; `said`: the steps that were answered."""
        steps: list[dict[str, Any]] = []
        for trial in (1, 2):
            judged = {"actorOutputText": f"out {trial} of {who}", "evaluatorScore": "wrong"}
            steps += [step("actor", trial, 2, actorInputText=f"Task of {who}")]
            steps += [step("evaluator", trial, 2, actorOutputText=f"out {trial} of {who}")]
            steps += [step("self-reflection", trial, 2, **judged)]
            steps += [step("self-reflection", trial, 2, **judged, reflectionText=f"reflection {trial} of {who}")]
        for one in steps[len(begun["said"]) :]:
            named = {"episodeId": begun["id"]} if "id" in begun else {"agentId": agent, "reset": True}
            answer = await self._call(client, "reflexion-thinking", **one, **named)
            begun["id"] = answer["episodeId"]
            self.begun.add(begun["id"])
            begun["said"].append(one)
        self.episodes[begun["id"]] = [f"{what} {trial} of {who}" for trial in (1, 2) for what in ("out", "reflection")]

    async def _group(self, client: Client, who: str, agent: str, begun: dict[str, Any]) -> None:
        if who in self.tasks:
            return
        of = {"agent_id": agent}
        if "group" not in begun:
            opened = await self._call(client, "memory_group", action="open", query=f"[{who}] Find it.", **of)
            begun["group"] = opened["group_id"]
        of["group_id"] = begun["group"]
        for n in (1, 2):
            way = [{"step": 1, "role": "assistant", "content": f"Way {n}"}]
            given = {"trajectory": way, "success_signal": n == 2}
            assert (await self._call(client, "memory_group", action="submit", **given, **of))["trajectory"] == n
        closed = await self._call(client, "memory_group", action="close", **of)
        assert closed["best"] == 2
        self.tasks[who] = agent, closed["learning"]["task_id"]

    async def _recall(self, client: Client, who: str, agent: str) -> None:
        found = await self._call(client, "retrieve_memory", query=f"Find it as {who} did.", agent_id=agent)
        self.receipts[found["retrieval_id"]] = agent

    async def _solve(self, client: Client, who: str, agent: str) -> None:
        ask = {"task": f"[{who}] What is six times seven?", "expected": "42", "agentId": agent}
        answer = await self._call(client, "solve", **ask)
        assert answer["solved"]
        self.solved[answer["episodeId"]] = who

    # --- afterwards ---------------------------------------------------------------------------------------------

    async def settle(self, store: Store) -> None:
        """Waits until all that was accepted is learned."""
        async with asyncio.timeout(PHASE):
            while True:
                if not any(work.kind == "extract" for work in await store.memory.queue.pending(None)):
                    break
                await asyncio.sleep(0.1)

    async def free(self, store: Store) -> None:
        """Checks that each episode can be driven again, with all servers running: none is held for good."""
        for id in self.begun:
            async with asyncio.timeout(PHASE), leased(store, id, wait=PHASE):
                pass

    async def stop(self) -> None:
        for server in self.servers:
            assert await asyncio.to_thread(server.stop) == 0

    async def missing(self, store: Store) -> list[str]:
        """What was acknowledged and is not there, or appears twice."""
        wrong: list[str] = []
        lessons = await store.memory.lessons.list(None, Selection(limit=None))
        titles = Counter((one.agent_id, one.title, one.support) for one in lessons)
        wrong += [who for who, (agent, _) in self.tasks.items() if titles[agent, f"Lesson {who}", 1] != 1]
        for id, said in self.episodes.items():
            episode = await store.load(id)
            told = [text for trial in episode.trials for text in (trial.attempt.output, trial.lesson)]
            wrong += [id] if told != said or episode.stop is None else []
        for id, agent in self.receipts.items():
            try:
                await store.memory.lessons.receipt(agent, id)
            except NotFound:
                wrong.append(id)
        wrong += [id for id in self.solved if not (await store.load(id)).solved]
        return wrong

    async def resume(self, store: Store) -> list[Episode]:
        """The episodes that were cut off, each brought to its end."""
        open_ones = [one for one in await store.list(limit=100_000) if not led_by_client(one)]
        return [
            await mulligan.resume(one.run, store=store)
            for one in open_ones
            if one.stop is None or one.stop.reason == "interrupted"
        ]


@pytest.fixture
def postgres() -> Generator[PostgresServer]:
    with postgres_server.mortal() as made:
        yield made


@asynccontextmanager
async def besieged(postgres: PostgresServer, wire: Wire, seed: int) -> AsyncGenerator[Siege]:
    siege = Siege(postgres, wire, seed)
    try:
        yield siege
    finally:
        for server in siege.servers:
            server.clean_up()


@pytest.mark.slow
async def test_servers_and_their_store_are_killed(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mulligan.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULLIGAN_STORE", address := postgres.address("postgres"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        wire.plays(*(FILL | one for one in PLAYS))
        async with besieged(postgres, wire, 20261126) as siege, open_store(address) as store:
            began = time.monotonic()
            async with asyncio.TaskGroup() as clients:
                for number in range(CLIENTS):
                    clients.create_task(siege.live(number))
                try:
                    for number in range(KILLS):
                        await siege.kill(number)
                finally:
                    siege.over = True
            took = time.monotonic() - began
            await siege.settle(store)
            await siege.free(store)
            await siege.stop()
            resumed = await siege.resume(store)
            missing = await siege.missing(store)
            ended = [one for one in resumed if not one.solved]
            asked = siege.asked()
            again = {one: asked[one] - count for one, count in siege.finished.items() if asked[one] > count}
    with capsys.disabled():
        print(
            f"\n{took:.0f} s, killed: {dict(siege.killed)}; {siege.answers} calls answered, lost: {dict(siege.lost)}; "
            f"acknowledged: {len(siege.tasks)} tasks, {len(siege.episodes)} episodes, {len(siege.receipts)} receipts, "
            f"{len(siege.solved)} solved, {len(resumed)} resumed; the model was asked {asked.total()} times, "
            f"{asked.total() - len(asked)} of them again after a kill, {len(siege.finished)} known to be finished at one"
        )
    assert (missing, again, ended) == ([], {}, [])
    assert siege.tasks
    assert siege.finished
    assert siege.killed.total() == KILLS
