from collections.abc import Iterator
from pathlib import Path

import pytest
from bolt_server import BoltServer
from library_graph import tables
from sample_graphs import a_ladybug, a_server, loaded, opened

from mulligan.graphs.protocol import Graph


@pytest.fixture(scope="session")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample and odd values in a Ladybug file."""
    return a_ladybug(tmp_path_factory.mktemp("ladybug"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoltServer]:
    """The same in a Bolt server. It works on at queries that its client has given up, so it ends with its module."""
    with a_server(tmp_path_factory.mktemp("bolt")) as server:
        yield server


@pytest.fixture(scope="session")
def ladybug(kg: Path) -> Iterator[Graph]:
    with opened(kg) as graph:
        yield graph


@pytest.fixture(scope="module")
def bolt(server: BoltServer) -> Iterator[Graph]:
    with opened(server.access) as graph:
        yield graph


@pytest.fixture(scope="module")
def ladybug_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """The library of `library_graph` in a Ladybug file."""
    with loaded(tables(), tmp_path_factory.mktemp("library")) as graph:
        yield graph


@pytest.fixture(params=["ladybug", pytest.param("bolt", marks=pytest.mark.slow)])
def graph(request: pytest.FixtureRequest) -> Graph:
    """Each of the databases, with the same in it."""
    return request.getfixturevalue(request.param)
