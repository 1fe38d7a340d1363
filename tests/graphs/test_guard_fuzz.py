"""Pieces of Cypher put together at random, each with a write in it: what the guard lets through writes nothing.

Both databases are asked without our fences: Ladybug by a connection that may write, ArcadeDB by the plain driver.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ladybug
import pytest
from bolt_server import BoltServer, package
from sample_graphs import NEEDS_BOLT

from mulligan.core.errors import QueryError
from mulligan.graphs._guard import read_only

Ask = Callable[[str], list[Any]]
GIVEN = {"x": 1, "a": 1}
WRITES = (
    "CREATE (h:Hacked)", "SET n.hack = 1", "DELETE n", "DETACH DELETE n", "MERGE (h:Hacked)", "REMOVE n.name",
    "CREATE (n)-[:HACK]->(n)", "FOREACH (i IN [1] | CREATE (:Hacked))", "INSERT (h:Hacked)", "SET n:Hacked",
)  # fmt: skip
PIECES = (
    "MATCH (n:Node)", "MATCH (n:Node {k: 1})", "WITH n", "WITH *", "WITH 1 AS as", "WITH as", "WITH 1 AS x", "RETURN 1",
    "RETURN n", "RETURN n.k", "UNWIND [1] AS i", "WHERE true", "WHERE n.k > 0", "ORDER BY n.k", "ORDER BY n.k DESC",
    "LIMIT 1", "SKIP 0", "AS", "as", "AS set", "AS x", "AS create", "x", "n", "set", "create", "n.", "n.k", ".", "..",
    "1.", "1", "0x1", "1e1", "'", '"', "`", "'a'", '"b"', "`c`", "'\\''", "\\", "\\u0027", "\\u0022", "\\u0060", "//",
    "//\n", "/*", "*/", "/**/", "/*/", "\n", "\r", "\r\n", "\t", "\u00a0", "\u2028", "\u200b", "(", ")", "[", "]", "{",
    "}", "{a:", "{k: 1}", ":", ":Node", "|", "&", "!", "::", ",", ";", "*", "+", "-", "->", "=", "<", "%", "$x", "$",
    "$`a`", "CALL {", "CALL (n) {", "CALL (*) {", "EXISTS {", "COUNT {", "COLLECT {", "UNION", "UNION ALL", "CASE",
    "WHEN true", "THEN 1", "ELSE 2", "END", "NULL", "IS NOT NULL", "IN", "IN [1]", "NOT", "AND", "OR", "DISTINCT",
    "OPTIONAL", "[x IN [1] |", "[x IN [1] WHERE", "reduce(a = 1, b IN [1] |", "all(x IN [1] WHERE",
    "CALL db.labels() YIELD label", "YIELD", "STARTS WITH 'a'", "NEXT", "LET x = 1", "FILTER true", "FINISH",
    "ON CREATE", "IN TRANSACTIONS", "count(*)", "collect(n)", "(n)", "(n:Node)", "-[r]->", "()", "p =",
)  # fmt: skip
BEGINNINGS = (
    "MATCH (n:Node)", "MATCH (n:Node) WITH n", "WITH 1 AS as MATCH (n:Node)", "RETURN 1 AS x", "UNWIND [1] AS x",
    "MATCH (n:Node) WITH n, 1 AS x", "", "",
)  # fmt: skip
ENDS = ("RETURN 1 AS x", "RETURN n", "", "", "'", "`", "*/", "}")


def a_query(by: random.Random) -> str:
    parts = [by.choice(PIECES) for _ in range(by.randint(2, 9))]
    for _ in range(by.choice((1, 1, 1, 2))):
        parts.insert(by.randint(0, len(parts)), by.choice(WRITES))
    return by.choice((" ", " ", " ", "")).join((by.choice(BEGINNINGS), *parts, by.choice(ENDS)))


def let_through(count: int, seed: int) -> Iterator[str]:
    by = random.Random(seed)
    for _ in range(count):
        query = a_query(by)
        with contextlib.suppress(QueryError):
            read_only(query, GIVEN)
            yield query


def state(ask: Ask) -> list[Any]:
    return [
        ask("MATCH (n) RETURN count(n)"),
        ask("MATCH ()-[r]->() RETURN count(r)"),
        sorted(map(str, ask("MATCH (n:Node) RETURN n.k, n.name, n.hack"))),
    ]


def nothing_changes(ask: Ask, count: int, seed: int) -> int:
    """How many queries ran to their end."""
    ask("CREATE (:Node {k: 1, name: 'a'})")
    before, ran, since = state(ask), 0, list[str]()
    for query in let_through(count, seed):
        with contextlib.suppress(Exception):
            ask(query)
            ran += 1
        since.append(query)
        if len(since) == 50:
            assert state(ask) == before, since
            since.clear()
    assert state(ask) == before, since
    return ran


def ladybug_asked(connection: Any) -> Ask:
    def ask(query: str) -> list[Any]:
        found: Any = connection.execute(query, {"x": 1} if "$x" in query else {})
        return (found[-1] if isinstance(found, list) else found).get_all()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]

    return ask


@pytest.mark.parametrize("count", [8_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_what_goes_through_writes_nothing_into_ladybug(tmp_path: Path, count: int) -> None:
    with ladybug.Database(str(tmp_path / "kg")) as database, ladybug.Connection(database) as connection:
        connection.set_query_timeout(1000)
        ask = ladybug_asked(connection)
        ask("CREATE NODE TABLE Node(k INT64 PRIMARY KEY, name STRING, hack INT64)")
        ask("CREATE NODE TABLE Hacked(id SERIAL PRIMARY KEY)")
        ask("CREATE REL TABLE HACK(FROM Node TO Node)")
        assert nothing_changes(ask, count, seed=count) >= count // 10_000


@pytest.mark.slow
def test_what_goes_through_writes_nothing_into_arcadedb(tmp_path: Path) -> None:
    if package() is None:
        pytest.skip(NEEDS_BOLT)
    server = BoltServer(tmp_path / "server")
    server.start()
    try:
        with server.session() as session:

            def ask(query: str) -> list[Any]:
                return [list(row) for row in session.run(query, **GIVEN)]

            assert nothing_changes(ask, 100_000, seed=3) > 250
    finally:
        server.stop()
