"""Clients that know one older revision and nothing newer, spoken by hand: the handshake, then the seeds' examples."""

from typing import Any, Protocol

import pytest
from raw_http import RawHttp, raw_sse
from serving import piped, served
from walks import Report, Step, check, filled, memory_walk, reflexion_walk

pytestmark = pytest.mark.slow
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18"]


class ByHand(Protocol):
    def ask(self, method: str, params: Any = None) -> Any: ...
    def call(self, tool: str, arguments: Any) -> Any: ...
    def handshake(self, revision: str) -> Any: ...


def by_hand(client: ByHand, revision: str, steps: list[Step]) -> Report:
    """What an older client knows of an answer: text, and structured content since 2025-06-18."""
    hello = client.handshake(revision)["result"]
    seen: dict[str, Any] = {}
    report: Report = {
        "server": hello["serverInfo"],
        "revision": hello["protocolVersion"],
        "tools": client.ask("tools/list")["result"]["tools"],
        "results": [],
    }
    for step in steps:
        result = client.call(step["tool"], filled(step["arguments"], seen))
        seen.update(result.get("structuredContent") or {})
        report["results"].append({"structuredContent": None, "isError": False, **result})
    return report


@pytest.mark.parametrize("revision", REVISIONS)
def test_stdio(revision: str) -> None:
    steps = [*reflexion_walk(), *memory_walk()]
    with piped() as server:
        report = by_hand(server, revision, steps)
    check(report, steps)
    assert report["revision"] == revision


@pytest.mark.parametrize("revision", REVISIONS)
def test_sse(revision: str) -> None:
    steps = [*reflexion_walk(), *memory_walk()]
    with served(transport="sse") as server, raw_sse(server.url) as client:
        report = by_hand(client, revision, steps)
    check(report, steps)
    assert report["revision"] == revision


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_http_with_a_session(revision: str) -> None:
    steps = [*reflexion_walk(), *memory_walk()]
    with served() as server:
        client = RawHttp(server.url)
        report = by_hand(client, revision, steps)
        check(report, steps)
        assert report["revision"] == revision
        assert client.session
        gone, _ = client.request("DELETE")
        assert gone in (200, 204)
        status, _ = client.post({"jsonrpc": "2.0", "id": 99, "method": "tools/list"})
        assert status == 404, "a session that was ended is not there any more"


def test_a_revision_that_nobody_knows_is_answered_with_one_that_we_speak() -> None:
    with piped() as server:
        hello = server.handshake("1999-01-01")["result"]
        assert hello["protocolVersion"] == "2025-11-25"
        assert server.ask("tools/list")["result"]["tools"]
