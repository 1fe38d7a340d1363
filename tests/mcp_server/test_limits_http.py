"""Limits over HTTP: how much, how deep, how often, how many at once."""

import asyncio
import json
import select
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from posting import OLDER, Answer, Poster, Stream, connected, head, modern, ping
from serving import Running, served
from wire_client import KEY, Wire, running

from mulligan.core.errors import InvalidInput
from mulligan.mcp_server.http.admission import Admission
from mulligan.mcp_server.http.guard import RateLimit
from mulligan.mcp_server.http.transports import MAX_SESSIONS, Sessions

MB = 1 << 20
SOLVE = {"name": "solve", "arguments": {"task": "What is six times seven?", "expected": "42"}}
RECALL = {"name": "retrieve_memory", "arguments": {"query": "x"}}
MODEL = ("--model", "openai:gpt-4o")


@pytest.fixture(scope="module", params=["modern", "older"])
def era(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    with served("--rate", "0", env={"MULLIGAN_HOME": str(tmp_path_factory.mktemp("home"))}) as server:
        yield server


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        yield wire


def poster(server: Running, era: str, params: Any = SOLVE) -> Poster:
    """One whose headers are those of this revision, for calls of this tool."""
    if era == "modern":
        return Poster(server.url, modern("tools/call", params)[1])
    plain = Poster(server.url)
    plain.headers |= {"Mcp-Session-Id": plain.session(), "MCP-Protocol-Version": OLDER}
    return plain


def calling(era: str, params: Any, id: Any = 1) -> dict[str, Any]:
    if era == "modern":
        return modern("tools/call", params, id)[0]
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def error(answer: Answer) -> tuple[int, int, Any]:
    """The status, the code and the id of a refusal."""
    said = json.loads(answer[2])
    return answer[0], said["error"]["code"], said["id"]


def until(true: Any, seconds: float = 30.0) -> None:
    over = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < over
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("body", "code", "id"),
    [
        (b"", -32700, None),
        (b'{"jsonrpc":', -32700, None),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"a":"\xff"}}', -32700, 4),
        (b"[" * 100_000, -32700, None),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, -32700, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b"[" + b"[]," * 300_000 + b"1]", -32600, None),
    ],
    ids=["empty", "half", "no UTF-8", "deep lists", "deep objects", "a batch", "an id", "many values"],
)
def test_what_is_not_a_message_is_refused(server: Running, era: str, body: bytes, code: int, id: Any) -> None:
    assert error(poster(server, era).post(body)) == (400, code, id)


@pytest.mark.parametrize("depth", [60, 70, 150])
def test_arguments_of_any_depth_get_an_answer(server: Running, era: str, depth: int) -> None:
    deep = json.loads("[" * depth + "]" * depth)
    params = {"name": "retrieve_memory", "arguments": {"query": "x", "y": deep}}
    status, _, body = poster(server, era, params).post(calling(era, params))
    assert status == 200
    assert (b"nested more than 64" in body) == (depth > 62)


@pytest.mark.slow
def test_a_body_over_16_mb_is_refused_whether_its_length_was_said_or_not(server: Running, era: str) -> None:
    with connected(server.url) as connection:
        connection.sendall(head(server.url, f"Content-Length: {17 * MB}") + b"\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")
    with connected(server.url) as connection:
        connection.sendall(head(server.url, "Transfer-Encoding: chunked") + b"\r\n")
        for _ in range(17):
            connection.sendall(b"100000\r\n" + b" " * MB + b"\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")
    long = {"name": "retrieve_memory", "arguments": {"query": "x" * (15 * MB)}}
    status, _, body = poster(server, era, long).post(calling(era, long))
    assert (status, b"at most" in body) == (200, True)


@pytest.mark.parametrize("lines", [{"Connection": "close"}, {}, {"Content-Length": "20000000", "Connection": "close"}])
def test_a_client_that_sends_all_before_it_reads_gets_the_refusal(server: Running, lines: dict[str, str]) -> None:
    with closing(HTTPConnection(urlsplit(server.url).netloc, timeout=30)) as connection:
        body = b" " * 20_000_000
        whole = body if "Content-Length" in lines else iter([body[n : n + MB] for n in range(0, len(body), MB)])
        connection.request("POST", "/mcp", whole, {"Content-Type": "application/json", **lines}, encode_chunked=True)
        assert connection.getresponse().status == 413


def test_headers_that_are_too_long_get_the_refusal(server: Running) -> None:
    with connected(server.url) as connection:
        connection.sendall(head(server.url, f"X: {'x' * 20_000_000}") + b"\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")


def test_bodies_that_are_held_at_once_have_a_bound_together(server: Running) -> None:
    before = server.memory()
    several = [connected(server.url) for _ in range(5)]
    try:
        connections = [one.__enter__() for one in several]
        for connection in connections:
            connection.sendall(head(server.url, f"Content-Length: {16 * MB}") + b"\r\n" + b" " * (15 * MB))
        (refused, *_), _, _ = select.select(connections, (), (), 25)  # whichever was read last
        assert refused.recv(1000).startswith(b"HTTP/1.1 503")
        assert server.memory() - before < 160 * MB
    finally:
        for one in several:
            one.__exit__(None, None, None)
    until(lambda: Poster(server.url).post(*modern("tools/list"))[0] == 200)


def test_each_caller_has_a_rate(tmp_path: Any) -> None:
    a, b = "a" * 20, "b" * 20
    with served("--rate", "4", env={"MULLIGAN_TOKEN": f"{a} {b}"}) as server:
        first = Poster(server.url, {"Authorization": f"Bearer {a}"})
        answers = [first.post(*modern("tools/list")) for _ in range(16)]
        statuses = [status for status, _, _ in answers]
        assert statuses[:8] == [200] * 8
        assert 429 in statuses[8:]
        refused = answers[statuses.index(429)]
        assert (refused[1]["retry-after"], json.loads(refused[2])["error"]["code"]) == ("1", -32010)
        assert Poster(server.url, {"Authorization": f"Bearer {b}"}).post(*modern("tools/list"))[0] == 200
        assert Poster(server.url).status(ping()) == 401, "whoever guesses has the rate of the address"
        guesses = [Poster(server.url, {"Authorization": f"Bearer {'x' * n}"}).status(ping()) for n in range(16, 40)]
        assert 429 in guesses
        until(lambda: first.post(*modern("tools/list"))[0] == 200)


async def nothing(scope: Any, receive: Any, send: Any) -> None: ...


def test_the_bucket_fills_with_time_and_never_over() -> None:
    rate = RateLimit(nothing, 10)
    assert [rate.wait("a", 0.0) for _ in range(20)] == [0.0] * 20
    assert rate.wait("a", 0.0) == pytest.approx(0.1)
    assert rate.wait("b", 0.0) == 0.0
    assert [rate.wait("a", 0.1), rate.wait("a", 0.15) > 0] == [0.0, True]
    assert [rate.wait("a", 1000.0) for _ in range(20)] == [0.0] * 20
    assert rate.wait("a", 1000.0) > 0
    for n in range(20_000):
        rate.wait(str(n), 1000.0)
    assert len(rate._left) == 10_000  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
def test_limits_that_cannot_be_are_refused(rate: float) -> None:
    with pytest.raises(InvalidInput):
        RateLimit(nothing, rate)
    with pytest.raises(InvalidInput):
        Admission(0)


@pytest.mark.light_cases(1)
def test_more_calls_than_are_served_at_once_are_told_when_to_come_again(model: Wire, era: str) -> None:
    with served(*MODEL, "--concurrency", "2") as server, ThreadPoolExecutor(2) as pool:
        model.plays({"when": "", "answer": "42", "held": True})
        asks = [poster(server, era) for _ in range(3)]
        waiting = [pool.submit(one.post, calling(era, SOLVE)) for one in asks[:2]]
        until(lambda: len(model.requests) == 2)
        refused = asks[2].post(calling(era, SOLVE))
        assert error(refused)[:2] == (503, -32010)
        assert refused[1]["retry-after"] == "1"
        model.release()
        assert [one.result(30)[0] for one in waiting] == [200, 200]
        assert asks[2].post(calling(era, SOLVE))[0] == 200


@pytest.mark.slow
def test_a_call_whose_client_has_hung_up_still_counts(model: Wire) -> None:
    with served(*MODEL, "--concurrency", "1", "--log-level", "info") as server:
        model.plays({"when": "", "answer": "42", "held": True})
        asks = poster(server, "older")
        body = json.dumps(calling("older", SOLVE)).encode()
        more = (f"{name}: {value}" for name, value in asks.headers.items())
        with connected(server.url) as connection:
            connection.sendall(head(server.url, *more, f"Content-Length: {len(body)}") + b"\r\n" + body)
            until(lambda: len(model.requests) == 1)
        until(lambda: server.said().count("POST /mcp 200") == 2)  # the handshake, and the call that nobody waits for
        assert asks.status(ping(2)) == 503
        model.release()
        until(lambda: asks.status(ping(2)) == 200)


@pytest.mark.slow
def test_an_id_in_flight_is_not_taken_twice_in_a_session(model: Wire) -> None:
    with served(*MODEL) as server, ThreadPoolExecutor(1) as pool:
        model.plays({"when": "", "answer": "42", "held": True})
        asks = poster(server, "older")
        first = pool.submit(asks.post, calling("older", SOLVE, 7))
        until(lambda: len(model.requests) == 1)
        assert error(asks.post(ping("7"))) == (400, -32600, "7")
        assert asks.status(ping(8)) == 200
        model.release()
        assert b'"solved":true' in first.result(30)[2]
        assert asks.status(ping(7)) == 200


@pytest.mark.slow
def test_who_takes_the_id_of_a_call_that_was_left_does_not_get_its_answer(server: Running) -> None:
    """Each call is left at once; its id is refused while it is in flight, and then free."""
    asks = poster(server, "older")
    body = json.dumps(calling("older", RECALL, 7)).encode()
    more = [f"{name}: {value}" for name, value in asks.headers.items()]
    whole = head(server.url, *more, f"Content-Length: {len(body)}") + b"\r\n" + body
    for _ in range(25):
        with connected(server.url) as connection:
            connection.sendall(whole)
        answers = [answer for _ in range(4) if (answer := asks.post(ping(7)))[0] == 200]
        assert all(b'"result":{}' in answer[2] for answer in answers)
    until(lambda: asks.status(ping(7)) == 200)


@pytest.mark.light_cases(1)
def test_an_id_is_free_as_soon_as_its_answer_was_read(server: Running, era: str) -> None:
    one = poster(server, era, RECALL)
    parts = urlsplit(server.url)
    with closing(HTTPConnection(parts.hostname or "", parts.port, timeout=30)) as connection:
        for _ in range(300):
            usual = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
            connection.request("POST", parts.path, json.dumps(calling(era, RECALL, 7)), {**usual, **one.headers})
            response = connection.getresponse()
            assert (response.status, b"no_memories" in response.read()) == (200, True)


@pytest.mark.slow
def test_an_id_is_free_as_soon_as_its_answer_was_read_from_a_stream(tmp_path: Any) -> None:
    with served("--rate", "0", transport="sse", env={"MULLIGAN_HOME": str(tmp_path)}) as server:
        stream, one = Stream(server.url), Poster(server.url)
        for _ in range(300):
            assert one.post(ping(7), path=stream.path)[0] == 202
            assert stream.next() == {"jsonrpc": "2.0", "id": 7, "result": {}}
        stream.close()


@pytest.mark.parametrize(
    "lines",
    [("Transfer-Encoding: chunked",), ("Transfer-Encoding: chunked", "Content-Length: 40")],
    ids=["alone", "both"],
)
def test_a_body_that_is_not_in_chunks_is_refused_at_the_end_of_its_first_line(
    server: Running, lines: tuple[str, ...]
) -> None:
    for apart in (False, True):
        with connected(server.url) as connection:
            first, then = head(server.url, *lines) + b"\r\n", json.dumps(ping()).encode() + b"\r\n"
            connection.sendall(first if apart else first + then)
            if apart:
                connection.sendall(then)
            assert connection.recv(1000).startswith(b"HTTP/1.1 400")


def test_a_body_that_is_too_long_is_refused_to_its_id(server: Running, era: str) -> None:
    long = {"name": "retrieve_memory", "arguments": {"query": "x" * (17 * MB)}}
    body = json.dumps(calling(era, long, 7)).encode()
    for lines, sent in (
        ((f"Content-Length: {len(body)}",), body[:60_000]),
        (("Transfer-Encoding: chunked",), b"%x\r\n" % len(body) + body),
    ):
        with connected(server.url) as connection:
            connection.sendall(head(server.url, *lines) + b"\r\n" + sent)
            said = b""
            while b'"error"' not in said:
                part = connection.recv(4000)
                assert part, said
                said += part
        assert said.startswith(b"HTTP/1.1 413")
        assert b'"id":7' in said


async def test_the_end_of_an_answer_leaves_after_all_else_of_it_is_done() -> None:
    admission, sent, last = Admission(1), list[str](), {"type": "http.response.body", "body": b"", "more_body": False}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send(last)
        await asyncio.sleep(0)
        sent.append("put away")

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}"}

    scope: dict[str, Any] = {"type": "http", "method": "GET", "headers": []}
    await admission.before(app)(scope, receive, send)
    assert sent == ["http.response.start", "put away", "http.response.body"]


@pytest.mark.slow
def test_event_streams_are_counted_apart(server: Running) -> None:
    with served("--concurrency", "1", "--rate", "0", transport="sse") as server:
        streams = [Stream(server.url) for _ in range(256)]
        assert Poster(server.url).request("GET")[0] == 503
        assert Poster(server.url).post(ping(), path=streams[0].path)[0] == 202
        assert streams[0].next()["id"] == 1
        streams.pop().close()
        until(lambda: Poster(server.url).request("HEAD")[0] != 503)
        for stream in streams:
            stream.close()


def test_sessions_are_kept_in_mind_up_to_a_number() -> None:
    class Context:
        protocol_version = OLDER

        def __init__(self, session: str | None) -> None:
            self.request = type("Request", (), {"headers": {"mcp-session-id": session}})

    sessions = Sessions(None)
    first = sessions.state(Context("0"))
    assert sessions.state(Context(None)) is None
    for n in range(MAX_SESSIONS - 1):
        sessions.state(Context(str(n)))
    assert sessions.state(Context("0")) is first
    for n in ("x", "y"):
        sessions.state(Context(n))
    assert sessions.state(Context("0")) is first
    sessions.forget("0")
    assert sessions.state(Context("0")) is not first


@pytest.mark.slow
def test_sessions_have_a_number(server: Running) -> None:
    asks = Poster(server.url)
    mine = asks.session()
    opened = 1
    while opened <= MAX_SESSIONS + 200:
        status, _, _ = asks.post(
            {
                **ping(),
                "method": "initialize",
                "params": {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
            }
        )
        if status == 503:
            break
        opened += 1
    assert opened <= MAX_SESSIONS
    assert asks.post(ping(), {"Mcp-Session-Id": mine})[0] == 200
    assert asks.request("DELETE", None, {"Mcp-Session-Id": mine})[0] == 200
    assert asks.session()


@pytest.mark.slow
def test_clients_that_send_too_slowly_are_let_go(server: Running) -> None:
    began = time.monotonic()
    with connected(server.url) as silent, connected(server.url) as slow_head, connected(server.url) as slow_body:
        for connection in (silent, slow_head, slow_body):
            connection.settimeout(0.5)
        slow_head.sendall(head(server.url))
        slow_body.sendall(head(server.url, "Content-Length: 100") + b"\r\n")
        said, ended = b"", {silent: 0.0, slow_head: 0.0, slow_body: 0.0}
        while not all(ended.values()) and time.monotonic() - began < 70:
            for connection in [one for one, at in ended.items() if not at]:
                try:
                    if connection is slow_head:
                        connection.sendall(b"X-A: b\r\n")
                    if connection is slow_body and not said:
                        connection.sendall(b" ")
                    got = connection.recv(1000)
                    said += got if connection is slow_body else b""
                    ended[connection] = 0.0 if got else time.monotonic() - began
                except TimeoutError:
                    pass
                except OSError:
                    ended[connection] = time.monotonic() - began
    assert said.startswith(b"HTTP/1.1 408")
    assert 25 < ended[slow_body] < 40
    assert 40 < ended[silent] < 55
    assert 40 < ended[slow_head] < 55


@pytest.mark.slow
def test_a_stream_that_is_not_read_takes_up_no_more_than_there_is_room_for(server: Running) -> None:
    with served("--rate", "0", transport="sse") as server:
        stream, asks = Stream(server.url), Poster(server.url)
        before, statuses = server.memory(), list[int]()
        about = {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        asks.post({**ping(0), "method": "initialize", "params": about}, path=stream.path)
        for id in range(1, 3000):
            statuses.append(asks.post({**ping(id), "method": "tools/list"}, path=stream.path)[0])
            if statuses[-1] != 202:
                break
        assert statuses[-1] == 503, "it was never held back"
        assert server.memory() - before < 64 * MB
        until(lambda: asks.post(ping(), path=stream.path)[0] == 404, 60)
        stream.close()
