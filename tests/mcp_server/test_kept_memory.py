"""How much a server remembers for clients that name no episode: of one connection, and of all together."""

from __future__ import annotations

import pytest
from reflexion_clients import a_service, step, told

from mulligan.mcp_server.http import transports
from mulligan.mcp_server.http.transports import ConnectionStates
from mulligan.mcp_server.tool import ConnectionState
from mulligan.mcp_server.tools import reflexion_thinking

LONG = 1_900


@pytest.fixture(autouse=True)
def a_thousandth(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousandth of the room of a connection: to mask megabytes takes seconds."""
    monkeypatch.setattr(reflexion_thinking, "MAX_WEIGHT", 4_000)


async def test_a_connection_forgets_the_agents_that_it_did_not_hear_of_for_longest() -> None:
    async with a_service() as service:
        link = ConnectionState()
        for agent in ("a", "b", "c"):
            said = {"actorOutputText": "x", "evaluatorScore": 0, "reflectionText": agent * LONG}
            assert not (await told(service, link, step("self-reflection", 1, 9, agentId=agent, **said))).error
        assert link.weight == 2 * LONG
        shown = [await told(service, link, step("actor", 1, 9, agentId=agent, actorInputText="t")) for agent in "bca"]
        assert [reply.data["current_memory"] for reply in shown] == [["b" * LONG], ["c" * LONG], []]


async def test_a_connection_forgets_an_agent_s_oldest_reflections() -> None:
    async with a_service(depth=50) as service:
        link = ConnectionState()
        for text in "123":
            said = {"actorOutputText": "x", "evaluatorScore": 0, "reflectionText": text * LONG}
            await told(service, link, step("self-reflection", 1, 9, **said))
        shown = await told(service, link, step("actor", 1, 9, actorInputText="t"))
        assert shown.data["current_memory"] == ["3" * LONG, "2" * LONG]


def test_of_all_connections_the_least_used_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_WEIGHT", 100)
    links = ConnectionStates()
    for name in ("first", "second", "third"):
        links.of(name).weight = 40
    links.of("third")
    first = links.of("first")
    assert first.weight == 0, "forgotten for the third"
    assert links.of("second").weight == links.of("third").weight == 40
    first.weight = 1000
    assert links.of("first") is first, "the one that is asked for is kept, whatever it holds"
    assert links.of("second").weight == 0
    links.forget("first")
    links.forget("never there")
    assert links.of("first") is not first
