"""`mulligan serve` over pipes, with clients that do everything but what the protocol says."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO, Any, cast

import pytest
from serving import MULLIGAN, Piped, Running, piped
from terminals import terminal
from wire_client import KEY, Wire, running

from mulligan.app.trusting import trust

PING: dict[str, Any] = {"jsonrpc": "2.0", "id": "after", "method": "ping"}
SOLVE = {"name": "solve", "arguments": {"task": "What is six times seven?", "expected": "42"}}
MODEL = ("--model", "openai:gpt-4o")

NOISY = """
import os, sys

print("printed at import")
os.write(1, b"written to descriptor 1\\n")
os.system("echo said by a child")
sys.stdout.flush()


class Noisy:
    queries = False

    def rank(self, among, top_k, threshold=None):
        print("printed at work")
        raise RuntimeError(f"this child read {os.popen('cat').read()!r} from our client")
"""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    """A provider that answers late; its first answer solves."""
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        yield wire


def begin_to_solve(server: Piped, model: Wire, *entries: Any) -> None:
    """As request 1; comes back once the model was asked."""
    model.plays(*entries)
    server.handshake()
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": SOLVE})
    until = time.monotonic() + 30
    while not model.requests:
        assert time.monotonic() < until, server.said()


def still_serves(server: Piped) -> None:
    server.send(PING)
    assert server.receive() == {"jsonrpc": "2.0", "id": "after", "result": {}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Piped]:
    with piped(env={"MULLIGAN_HOME": str(tmp_path_factory.mktemp("home"))}) as server:
        server.handshake()
        yield server


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b'{"jsonrpc"\n', -32700, None),
        (b"\xff\xfe\x00\n", -32700, None),
        (b"[" * 100_000 + b"\n", -32700, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b"x" * (50 << 20) + b'"}}\n', -32600, 1),
    ],
    ids=["half", "no UTF-8", "deep", "a batch", "no id", "50 MB"],
)
def test_what_is_not_a_message_is_answered_and_the_next_line_is_served(
    server: Piped, line: bytes, code: int, id: int | None
) -> None:
    server.send(line)
    answer = server.receive()
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    still_serves(server)


def test_empty_lines_and_windows_line_ends_are_passed_over(server: Piped) -> None:
    server.send(b"\n \r\n" + json.dumps(PING).encode() + b"\r\n")
    assert server.receive()["id"] == "after"


@pytest.mark.slow
def test_a_long_line_is_not_held(server: Piped) -> None:
    before = server.memory()
    for _ in range(4):
        server.send(b"x" * (50 << 20))
    server.send(b"\n")
    assert server.receive()["error"]["code"] == -32600
    assert server.memory() - before < 48 << 20


def test_arguments_that_are_nested_too_deeply_are_answered(server: Piped) -> None:
    deep = {"a": json.loads("[" * 150 + "]" * 150)}
    assert "nested" in server.call("retrieve_memory", deep, id="deep")["content"][0]["text"]


@pytest.mark.slow
def test_a_client_that_reads_nothing_holds_us_back_and_not_our_memory() -> None:
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "deaf", "version": "1"}}
    with Running([*MULLIGAN], {}, None, subprocess.PIPE, subprocess.PIPE).closing() as server:
        into, out = cast("IO[bytes]", server.process.stdin), cast("IO[bytes]", server.process.stdout)
        into.write(json.dumps({**PING, "method": "initialize", "params": about}).encode() + b"\n")
        into.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        into.flush()
        assert b"protocolVersion" in out.readline()
        before, asked = server.memory(), 0
        os.set_blocking(into.fileno(), False)
        stuck = time.monotonic() + 3.0
        while time.monotonic() < stuck and asked < 100_000:
            try:
                os.write(into.fileno(), b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % asked)
                asked, stuck = asked + 1, time.monotonic() + 3.0
            except BlockingIOError:
                time.sleep(0.01)
        assert asked < 20_000, "it went on reading"
        assert server.memory() - before < 48 << 20
        assert server.stop() == 0


@pytest.mark.slow
def test_a_second_request_of_an_id_in_flight_is_refused_and_the_first_is_answered(model: Wire) -> None:
    with piped(*MODEL) as server:
        begin_to_solve(server, model, {"answer": "42", "held": True})
        server.send({**PING, "id": 1})
        refused = server.receive()
        assert (refused["id"], refused["error"]["code"]) == (1, -32600)
        model.release()
        answer = server.receive()
        assert (answer["id"], answer["result"]["isError"]) == (1, False)
        assert server.ask("ping", id=1)["result"] == {}


@pytest.mark.slow
def test_more_requests_than_there_is_room_for_are_refused_at_once(model: Wire) -> None:
    with piped(*MODEL) as server:
        begin_to_solve(server, model, {"when": "", "hang": True})
        for id in range(2, 258):
            server.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": SOLVE})
        answer = server.receive()
        assert (answer["id"], answer["error"]["code"]) == (257, -32010)
        assert "256 requests" in answer["error"]["message"]
        for id in range(2, 258):
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        until, asked = time.monotonic() + 30.0, 0
        while "error" in (answer := server.ask("ping", id=f"ping {asked}")):  # a call counts until it has ended
            assert answer["error"]["code"] == -32010
            assert time.monotonic() < until, "what was cancelled never ended"
            asked += 1
        assert answer["result"] == {}
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})


@pytest.mark.slow
def test_an_answer_outlives_the_end_of_the_input(model: Wire) -> None:
    with piped(*MODEL) as server:
        begin_to_solve(server, model, {"answer": "42", "held": True})
        server.send(b'{"jsonrpc":"2.0","id":2,"meth')
        server.close_input()
        assert server.receive()["error"]["code"] == -32700
        model.release()
        assert server.answer(1)["result"]["structuredContent"]["solved"]
        assert server.ended() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "by", [signal.SIGTERM, *(pytest.param(by, marks=pytest.mark.slow) for by in (signal.SIGINT, signal.SIGHUP))]
)
def test_a_signal_lets_calls_in_flight_be_answered(model: Wire, by: signal.Signals) -> None:
    with piped(*MODEL, "--log-level", "info") as server:
        begin_to_solve(server, model, {"answer": "42", "held": True})
        server.process.send_signal(by)
        server.wait_until_said("stopping")
        model.release()
        assert server.answer(1)["result"]["structuredContent"]["solved"]
        assert server.ended() == 0


@pytest.mark.slow
def test_a_call_that_takes_too_long_is_told_so(model: Wire) -> None:
    with piped(*MODEL) as server:
        begin_to_solve(server, model, {"hang": True})
        server.process.send_signal(signal.SIGTERM)
        assert server.answer(1, 20)["error"]["message"] == "Connection closed"
        assert server.ended() == 0


def test_a_second_signal_ends_at_once(model: Wire) -> None:
    with piped(*MODEL, "--log-level", "info") as server:
        begin_to_solve(server, model, {"hang": True})
        server.process.send_signal(signal.SIGTERM)
        server.wait_until_said("stopping")
        server.process.send_signal(signal.SIGTERM)
        assert server.ended(3) == -signal.SIGTERM
        server.close_input()


def test_what_is_printed_and_what_children_say_keeps_off_the_wire(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "mulligan.toml").write_text('[memory]\nretrieval = "./noisy.py"\nembedder = "none"\n')
    trust(tmp_path)
    with piped("--tools", "memory", cwd=tmp_path) as server:
        server.handshake()
        lesson = {"title": "Look twice", "description": "When in haste.", "content": "Look twice.", "steps": [1]}
        server.call(
            "extract_memory", {"trajectory": [{"role": "user", "content": "x"}], "query": "q", "lessons": [lesson]}
        )
        server.call("retrieve_memory", {"query": "look"})
        still_serves(server)
        for said in ("printed at import", "written to descriptor 1", "said by a child"):
            assert said in server.said()


@pytest.mark.slow
def test_without_standard_input_or_output_there_is_nobody_to_serve() -> None:
    for closed in ("<&-", ">&-"):
        ran = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *MULLIGAN], capture_output=True, timeout=60)
        assert ran.returncode == 2
        assert b"is closed" in ran.stderr


@pytest.mark.slow
def test_input_from_a_file_is_served_to_its_end(tmp_path: Path) -> None:
    asks = tmp_path / "asks"
    asks.write_text("".join(json.dumps({**PING, "id": id}) + "\n" for id in range(100)))
    with asks.open() as given, (tmp_path / "answers").open("w") as taken:
        assert subprocess.run(MULLIGAN, stdin=given, stdout=taken, timeout=60).returncode == 0
    answers = [json.loads(line) for line in (tmp_path / "answers").read_text().splitlines()]
    assert sorted(answer["id"] for answer in answers) == list(range(100))


@pytest.mark.slow
def test_a_client_that_hangs_up_on_our_answers_ends_the_server() -> None:
    process = subprocess.Popen(MULLIGAN, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin
    assert process.stdout
    process.stdout.close()
    process.stdin.write(json.dumps(PING).encode() + b"\n")
    process.stdin.flush()
    assert process.wait(30) == 0
    process.stdin.close()


@pytest.mark.slow
def test_the_library_serves_and_gives_standard_output_back(tmp_path: Path) -> None:
    script = tmp_path / "own.py"
    script.write_text(
        "import asyncio\n"
        "from mulligan.app.service import Service\n"
        "from mulligan.mcp_server.stdio import serve_stdio\n"
        "asyncio.run(serve_stdio(Service(), 'all'))\n"
        "print('back again')\n"
    )
    ran = subprocess.run([sys.executable, script], input=json.dumps(PING), capture_output=True, text=True, timeout=60)
    answer, back = ran.stdout.splitlines()
    assert json.loads(answer)["id"] == "after"
    assert back == "back again"


@pytest.mark.slow
def test_at_a_terminal_it_says_what_it_waits_for(tmp_path: Path) -> None:
    environment = {**os.environ, "MULLIGAN_HOME": str(tmp_path)}
    with (
        terminal() as (person, program),
        subprocess.Popen(
            MULLIGAN, stdin=program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        ) as server,
    ):
        os.write(person, b"\x04")  # the end of the input
        try:
            out, said = server.communicate(timeout=30)
        finally:
            server.kill()
    assert (server.returncode, out) == (0, b"")
    assert said.startswith(b"Serving MCP over this terminal; press Ctrl-C to stop.")
