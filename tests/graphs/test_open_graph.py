"""Which database is meant, from a path, an address or the arguments that BioChatter takes; and what is said of errors."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from bolt_server import DATABASE, PASSWORD, USER, BoltServer
from each_row import each_row
from sample_graphs import GOOD, opened

from mulligan.app.trusting import trust
from mulligan.core.errors import GraphError, InvalidInput, QueryError
from mulligan.graphs.bolt import BoltGraph
from mulligan.graphs.ladybug import LadybugGraph
from mulligan.graphs.opening import open_graph


@each_row(
    ("where", "name"),
    [
        ("bolt://localhost", "bolt://localhost:7687"),
        ("bolt://localhost:7000/things", "bolt://localhost:7000/things"),
        ("neo4j+s://user:secret@example.org", "neo4j+s://example.org:7687"),
        ("bolt+ssc://[::1]:7000", "bolt+ssc://[::1]:7000"),
        ({"host": "", "port": "7687"}, "bolt://localhost:7687"),
        ({"host": "kg.example.org", "port": 7000, "db_name": "things"}, "bolt://kg.example.org:7000/things"),
        ({"host": "neo4j+s://kg.example.org", "port": "7000"}, "neo4j+s://kg.example.org:7000"),
        ({"host": "::1", "user": "u", "password": "p"}, "bolt://[::1]:7687"),
        ({"uri": "neo4j://example.org", "database": "d", "user": None}, "neo4j://example.org:7687/d"),
    ],
)
def test_servers_are_named_without_what_is_secret(where: Any, name: str) -> None:
    graph = open_graph(where)
    assert isinstance(graph, BoltGraph)
    assert graph.name == name
    asyncio.run(graph.close())


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("as_dict", [False, True])
def test_a_path_is_a_ladybug_file(kg: Path, as_dict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(kg.parent)
    with opened({"path": "./kg", "memory": "512"} if as_dict else "./kg") as graph:
        assert isinstance(graph, LadybugGraph)
        assert graph.name == "./kg"
        monkeypatch.chdir("/")
        assert len(asyncio.run(graph.run(GOOD)).rows) == 5


def test_procedures_that_only_read_are_named_in_mulligan_toml(
    kg: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "CALL my.reader() RETURN 1"
    monkeypatch.chdir(tmp_path)
    with opened(str(kg)) as graph, pytest.raises(QueryError, match="not known to be read-only"):
        asyncio.run(graph.run(query))
    (tmp_path / "mulligan.toml").write_text('[graphs]\nprocedures = ["my.Reader"]\n')
    with opened(str(kg)) as graph, pytest.raises(QueryError, match="not known to be read-only"):
        asyncio.run(graph.run(query))  # a stranger's folder says nothing
    trust(tmp_path)
    with opened(str(kg)) as graph, pytest.raises(QueryError) as error:
        asyncio.run(graph.run(query))
    assert error.value.kind != "refused", "the database was asked"
    for wrong in ('"my.reader"', '["my reader"]', "[1]"):
        (tmp_path / "mulligan.toml").write_text(f"[graphs]\nprocedures = {wrong}\n")
        trust(tmp_path)
        with pytest.raises(InvalidInput, match="procedures must be names"):
            open_graph(str(kg))


@each_row(
    ("where", "message"),
    [
        ("nowhere", r"There is no graph at nowhere"),
        ("http://localhost:7474", r"A graph address must start with one of bolt://, bolt\+s://"),
        ("bolt://", r"A graph address must start with one of bolt://"),
        ("bolt://localhost:seven", r"The graph address is not valid"),
        ({}, r"No graph was specified\. Pass a path, a URI, or a host and port"),
        ({"user": "u"}, r"No graph was specified"),
        ({"host": "h", "port": "x"}, r"must be a number from 1 to 65535, not 'x'"),
        ({"host": "h", "path": "p"}, r"must have only one of these: a path, a URI, or a host and port"),
        ({"host": "h", "passwd": "p"}, r"has no passwd; available: path, uri, host"),
        ({"path": "x", "memory": "1 GB"}, r"'memory' must be an integer, the number of MB per query, not '1 GB'"),
        ({"path": "x", "memory": 0}, r"'memory' must be an integer, the number of MB"),
        ({"path": "x", "user": "u"}, r"x is a file, which has no users or databases"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_opened(where: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        open_graph(where)


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with opened("bolt://user:secret@127.0.0.1:1") as graph:
        began = time.monotonic()
        with pytest.raises(
            GraphError, match=r"^bolt://127\.0\.0\.1:1 cannot be reached: Couldn't connect to"
        ) as caught:
            asyncio.run(graph.run("RETURN 1"))
    assert not isinstance(caught.value, QueryError)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert time.monotonic() - began < 30


@pytest.mark.slow
def test_the_password_may_stand_in_the_environment(server: BoltServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_GRAPH_PASSWORD", PASSWORD)
    graph = open_graph(server.address, user=USER, database=DATABASE)
    assert len(asyncio.run(graph.run(GOOD)).rows) == 5
    asyncio.run(graph.close())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"password": "wrong-secret"}, r"did not accept the user and password: Authentication failed$"),
        ({"database": "nowhere"}, r"/nowhere has no such database: "),
    ],
)
def test_a_server_that_does_not_let_us_in_is_one_sentence(
    server: BoltServer, changed: dict[str, Any], message: str
) -> None:
    with opened({**server.access, **changed}) as graph:
        with pytest.raises(GraphError, match=message) as caught:
            asyncio.run(graph.run("RETURN 1"))
        assert not isinstance(caught.value, QueryError)
        assert "wrong-secret" not in str(caught.value)


@pytest.mark.slow
def test_a_server_that_comes_back_is_asked_again(server: BoltServer) -> None:
    with opened(server.access) as graph:
        asyncio.run(graph.run(GOOD))
        server.stop()
        with pytest.raises(GraphError) as caught:
            asyncio.run(graph.run(GOOD, seconds=2))
        assert not isinstance(caught.value, QueryError)
        server.start()
        assert len(asyncio.run(graph.run(GOOD)).rows) == 5
