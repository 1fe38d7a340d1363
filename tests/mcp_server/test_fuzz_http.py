"""Hostile requests over HTTP: nothing breaks, nothing hangs, nobody gets an answer to another's request.

The seed of a lane that failed is in its message: the same seed makes the same messages.
"""

from pathlib import Path

import pytest
from hostile_house import OURS, TAIL, THEIRS
from hostile_http_lane import HttpLane
from hostile_lane import StdioLane, intact, keep
from hostile_secrets import BYSTANDER, MARK, Caller, lived, said, stored
from hostile_sse import streamed
from repetition import repeats
from serving import served

from mulligan.app.config import load

MEMORY = 400 * 2**20
"""Bytes that the server may hold at most, whatever comes."""


@pytest.fixture
def database() -> Path:
    return Path(load().database)


async def lane(database: Path, seed: int, revision: str, count: int) -> None:
    known = await keep(database)
    with served("--embedder", "none", "--rate", "0", "--drain", "2", "--output-schemas") as server:
        driven = await HttpLane.open(server, seed, revision=revision)
        try:
            await driven.drive(count)
        finally:
            await driven.close()
        print(driven.report())
        assert server.stop() == 0
        said = server.said()
    assert driven.most < MEMORY
    await intact(database, known, said)


async def beside_a_bystander(database: Path, seed: int, revision: str, count: int) -> None:
    """The one whose messages are hostile is bound to its agent, and holds all ids of another."""
    known = await keep(database)
    tokens = {"MULLIGAN_TOKEN": f"canary:{OURS} {BYSTANDER}:{THEIRS}"}
    with served("--embedder", "none", "--rate", "0", "--drain", "2", "--output-schemas", env=tokens) as server:
        bystander = Caller(server, THEIRS)
        ids = [*await lived(bystander, said("life")), *await stored(database, BYSTANDER, MARK, TAIL)]
        names = [(name, id) for _, id in ids for name in ("episodeId", "task_id", "retrieval_id") if id != BYSTANDER]
        never = MARK.encode()
        driven = await HttpLane.open(server, seed, revision=revision, token=OURS, ids=names, never=never)
        driven.wrapping.sessions.append(bystander.session)
        try:
            await driven.drive(count)
        finally:
            await driven.close()
            await bystander.close()
        print("bound", driven.report())
        assert server.stop() == 0
        traces = server.said()
    await intact(database, known, traces, "canary")


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_many_hostile_requests_bring_out_nothing_of_another(database: Path, revision: str) -> None:
    await beside_a_bystander(database, 41, revision, repeats(1_250))


async def event_stream(database: Path, seed: int, count: int) -> None:
    known = await keep(database)
    with served("--embedder", "none", "--rate", "0", "--drain", "2", "--output-schemas", transport="sse") as server:
        with streamed(server) as line:
            driven = StdioLane(line, seed)
            driven.drive(count)
            driven.big(b"[" * 20_000_000)
            driven.big(b'{"jsonrpc":"2.0","id":1,"method":"' + b"a" * 10_000_000 + b'"}')
        print("SSE", driven.report())
        assert server.stop() == 0
        said = server.said()
    assert driven.most < MEMORY
    await intact(database, known, said)


@pytest.mark.slow
async def test_many_hostile_posts_beside_an_event_stream(database: Path) -> None:
    await event_stream(database, 31, repeats(2_500))


@pytest.mark.parametrize("revision", [pytest.param("2025-06-18", marks=pytest.mark.slow), "2026-07-28"])
async def test_hostile_requests_among_good_ones(database: Path, revision: str) -> None:
    await lane(database, 1, revision, 150)


@pytest.mark.slow
@pytest.mark.parametrize(("revision", "seed"), [("2025-06-18", 21), ("2026-07-28", 22)])
async def test_many_hostile_requests(database: Path, revision: str, seed: int) -> None:
    await lane(database, seed, revision, repeats(2_500))
