"""Hostile messages over standard input: nothing breaks, nothing hangs, nobody gets an answer to another's request.

The seed of a lane that failed is in its message: the same seed makes the same messages.
"""

import re
from pathlib import Path

import pytest
from hostile_lane import StdioLane, intact, keep
from repetition import repeats
from serving import piped

from mulligan.app.config import load

MEMORY = 400 * 2**20
"""Bytes that the server may hold at most, whatever comes; it starts with 80 MB."""


@pytest.fixture
def database() -> Path:
    return Path(load().database)


async def lane(database: Path, seed: int, revision: str, count: int) -> None:
    known = await keep(database)
    with piped("--embedder", "none", "--output-schemas") as server:
        driven = StdioLane(server, seed, revision=revision)
        driven.drive(count)
        print(driven.report())
        server.close_input()
        assert server.ended() == 0
        said = server.said()
    assert driven.most < MEMORY
    await intact(database, known, said)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("revision", [pytest.param("2025-06-18", marks=pytest.mark.slow), "2026-07-28"])
async def test_hostile_lines_among_good_ones(database: Path, revision: str) -> None:
    await lane(database, 1, revision, 300)


@pytest.mark.slow
async def test_what_is_logged_of_hostile_lines_is_lines(database: Path) -> None:
    """With all that can be logged: no line of ours is made by a client, and nothing of what it said is repeated."""
    await keep(database)
    with piped("--embedder", "none", "--output-schemas", "--log-level", "debug") as server:
        driven = StdioLane(server, 7)
        driven.drive(500)
        server.close_input()
        assert server.ended() == 0
        lines = server.said().splitlines()
    assert len(lines) > 300
    for line in lines:
        assert re.match(r"\d\d:\d\d:\d\d (debug|info|warning) (mulligan|mcp|asyncio)[a-z_.]*: ", line), line
        assert line.isprintable()
        assert not any(text in line for text in ("DROP TABLE", "</lessons>", "jndi", "Open the door", "canary sings"))


def shown(text: bytes) -> bytes:
    """A call with this as its query."""
    params = b'{"name":"retrieve_memory","arguments":{"query":"' + text + b'"}}'
    return b'{"jsonrpc":"2.0","id":"big","method":"tools/call","params":' + params + b"}"


@pytest.mark.slow
async def test_lines_that_are_too_long_too_deep_or_too_wide(database: Path) -> None:
    known = await keep(database)
    with piped("--embedder", "none", "--output-schemas") as server:
        driven = StdioLane(server, 0)
        driven.big(shown(b"a" * 50_000_000))
        driven.big(shown(b"a " * 500_000))
        driven.big(shown(b"\\u0000" * 500_000))
        for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
            driven.big(opened * 100_000 + b"1" + closed * 100_000)
            driven.big(shown(b'"},"x":' + opened * 100_000 + b"1" + closed * 100_000 + b',"y":{"z":"'))
        driven.big(b"[" + b"0," * 5_000_000 + b"0]")
        driven.big(b"[" + b"{}," * 2_000_000 + b"{}]")
        driven.big(b'{"jsonrpc":"2.0","id":' + b"9" * 3_000_000 + b',"method":"ping"}')
        driven.big(b"\x00" * 20_000_000)
        print(driven.report())
        server.send(b'{"jsonrpc":"2.0","id":"half","method":"tools/li')  # and never the rest of it
        server.close_input()
        assert server.ended() == 0
        said = server.said()
    assert driven.most < MEMORY
    await intact(database, known, said)


@pytest.mark.slow
@pytest.mark.parametrize(("revision", "seed"), [("2024-11-05", 11), ("2025-06-18", 12), ("2026-07-28", 11)])
async def test_many_hostile_lines(database: Path, revision: str, seed: int) -> None:
    await lane(database, seed, revision, repeats(2_500))
