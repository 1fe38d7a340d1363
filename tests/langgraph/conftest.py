import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bolt_server import BoltServer
from graph_agents import Chat, talking
from sample_graphs import a_ladybug, a_server, opened

from mulligan.graphs.protocol import Graph
from mulligan.langgraph import KGQueryReflexionAgent


@pytest.fixture(scope="session")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample graph in a Ladybug file."""
    return a_ladybug(tmp_path_factory.mktemp("ladybug"))


@pytest.fixture(scope="session")
def bolt_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoltServer]:
    """The same in a Bolt server."""
    with a_server(tmp_path_factory.mktemp("bolt")) as server:
        yield server


@pytest.fixture(scope="session")
def graph(kg: Path) -> Iterator[Graph]:
    """The Ladybug file, opened once: each agent that opens it itself starts a process."""
    with opened(kg) as graph:
        yield graph


@pytest.fixture(params=["ladybug", pytest.param("bolt", marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest) -> Any:
    """What an agent takes for each of the databases, with the same in it: an open graph, or `connection_args`."""
    if request.param == "ladybug":
        return request.getfixturevalue("graph")
    return request.getfixturevalue("bolt_server").access


@pytest.fixture(params=["ladybug", pytest.param("bolt", marks=pytest.mark.slow)])
def access(request: pytest.FixtureRequest) -> Any:
    """The `connection_args` of each of the databases, with the same in it."""
    if request.param == "ladybug":
        return {"path": str(request.getfixturevalue("kg"))}
    return request.getfixturevalue("bolt_server").access


@pytest.fixture
def agent_on() -> Iterator[Callable[..., tuple[KGQueryReflexionAgent, Chat]]]:
    """Makes an agent on a graph, and gives it with its chat model, which says what is told here."""
    agents: list[KGQueryReflexionAgent] = []

    def make(where: Any, *replies: Any, **given: Any) -> tuple[KGQueryReflexionAgent, Chat]:
        factory, chat = talking(*replies)
        agents.append(KGQueryReflexionAgent(factory, where, **given))
        return agents[-1], chat

    yield make
    for agent in agents:
        agent.close()


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
