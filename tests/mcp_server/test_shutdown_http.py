"""The server over HTTP begins and ends: ports, signals, calls in flight, open streams, logs of all that."""

import json
import logging
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest
from each_row import each_row
from forked import run_forked
from mcp import Client
from posting import OLDER, Poster, Stream, modern, ping
from serving import MULLIGAN, Running, over, served
from wire_client import KEY, Wire, running

from mulligan.mcp_server.logs import logs_on_stderr

ARGUMENTS: dict[str, Any] = {"task": "What is six times seven?", "expected": "42"}
SOLVE = {"name": "solve", "arguments": ARGUMENTS}
MODEL = ("--model", "openai:gpt-4o")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        yield wire


def until_asked(model: Wire) -> None:
    over = time.monotonic() + 30
    while not model.requests:
        assert time.monotonic() < over
        time.sleep(0.02)


def hang_once_warm(model: Wire, server: Running) -> None:
    """Answer one call, then hang. The first call of a process imports the model's SDK, which on a busy
    machine takes longer than the 15 s after which MCP's SDK turns a silent answer into an event stream."""
    model.plays({"when": "", "answer": "42"})
    assert Poster(server.url).post(*modern("tools/call", SOLVE))[0] == 200
    model.plays({"when": "", "hang": True})


def refused(server: Running) -> bool:
    """Whether a new request gets nowhere."""
    try:
        return Poster(server.url).status(ping()) == 503
    except OSError:
        return True


TERM, INT = signal.SIGTERM, signal.SIGINT


@pytest.mark.parametrize(
    ("transport", "mode", "by"),
    [
        ("http", "auto", TERM),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("http", "legacy", INT), ("sse", "legacy", TERM), ("sse", "auto", INT))
        ),
    ],
)
async def test_calls_in_flight_are_answered(model: Wire, transport: str, mode: str, by: signal.Signals) -> None:
    model.plays({"when": "", "answer": "42", "held": True})
    with served(*MODEL, "--log-level", "info", transport=transport) as server:
        with anyio.fail_after(60):
            async with Client(over(server.url), mode=mode) as client, anyio.create_task_group() as tasks:
                await client.list_tools()
                answered, results = anyio.Event(), list[Any]()

                async def call() -> None:
                    results.append(await client.call_tool("solve", ARGUMENTS))
                    answered.set()

                tasks.start_soon(call)
                await anyio.to_thread.run_sync(until_asked, model)
                server.process.send_signal(by)
                await anyio.to_thread.run_sync(server.wait_until_said, "stopping")
                assert await anyio.to_thread.run_sync(refused, server)
                model.release()
                await answered.wait()
                assert results[0].structured_content["solved"]
                assert await anyio.to_thread.run_sync(server.ended) == 0
        assert "Traceback" not in server.said()


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_open_streams_are_ended_in_good_form(transport: str) -> None:
    with served(transport=transport) as server:
        headers = (
            {}
            if transport == "sse"
            else {"Mcp-Session-Id": Poster(server.url).session(), "MCP-Protocol-Version": OLDER}
        )
        stream = Stream(server.url, headers)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert stream.ended()
        stream.close()
        assert server.ended() == 0
        assert time.monotonic() - began < 10, "as long as the drain is unless it is set"
        assert "Traceback" not in server.said()


@pytest.mark.parametrize("era", ["modern", pytest.param("older", marks=pytest.mark.slow)])
def test_a_call_that_takes_longer_than_the_drain_is_ended(model: Wire, era: str) -> None:
    with served(*MODEL, "--drain", "0.5") as server, ThreadPoolExecutor(1) as pool:
        hang_once_warm(model, server)
        body, headers = modern("tools/call", SOLVE)
        if era == "older":
            del body["params"]["_meta"]
            headers = {"Mcp-Session-Id": Poster(server.url).session(), "MCP-Protocol-Version": OLDER}
        waiting = pool.submit(Poster(server.url).post, body, headers)
        until_asked(model)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 10, "as long as the drain is unless it is set"
        status, _, said = waiting.result(10)
        assert (status, b"stopped" in said) == ((503, True) if era == "modern" else (200, False))
        assert "Traceback" not in server.said()


def test_a_second_signal_ends_at_once(model: Wire) -> None:
    with served(*MODEL, "--log-level", "info") as server, ThreadPoolExecutor(1) as pool:
        hang_once_warm(model, server)
        waiting = pool.submit(Poster(server.url).post, *modern("tools/call", SOLVE))
        until_asked(model)
        server.process.send_signal(signal.SIGTERM)
        server.wait_until_said("stopping: 1 ")
        server.process.send_signal(signal.SIGINT)
        assert server.ended() == -signal.SIGINT
        assert isinstance(waiting.exception(10), OSError)


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [*MULLIGAN, "--transport", "http", "--port", port]
        ran = run_forked(command)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert f"Port {port} on 127.0.0.1 cannot be opened" in ran.stderr


@each_row(
    "options",
    [
        ("--rate", "-1"),
        ("--rate", "nan"),
        ("--concurrency", "0"),
        ("--drain", "-1"),
        ("--drain", "nan"),
        ("--allow-origin", "x"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: tuple[str, str]) -> None:
    ran = run_forked([*MULLIGAN, "--transport", "http", "--port", "0", *options])
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "Serving" not in ran.stderr
    assert ran.stderr.startswith("Error: ")


def test_a_server_starts_again_on_the_port_that_it_had() -> None:
    with served() as server:
        port = server.url.split(":")[2].partition("/")[0]
        assert Poster(server.url).post(*modern("tools/list"))[0] == 200
    with served("--port", port) as server:
        assert server.url == f"http://127.0.0.1:{port}/mcp"
        assert Poster(server.url).post(*modern("tools/list"))[0] == 200


@pytest.mark.slow
def test_logs_are_json_and_hold_nothing_that_was_said() -> None:
    token, secret = "a-token-that-nobody-logs-1", "the content of a call"
    env = {"MULLIGAN_TOKEN": f"me:{token}"}
    for transport in ("http", "sse"):
        with served("--log-level", "debug", "--log-json", transport=transport, env=env) as server:
            asks = Poster(server.url, {"Authorization": f"Bearer {token}"})
            stream = Stream(server.url, asks.headers) if transport == "sse" else None
            path = stream.path if stream else ""
            asks.post(*modern("tools/call", {"name": "retrieve_memory", "arguments": {"query": secret}}), path)
            asks.post({"jsonrpc": "2.0", "id": 1, "method": secret, "params": {"token": token}}, path=path)
            asks.post(f'{{"{secret}'.encode(), path=path)
            asks.post(ping(), {"Authorization": f"Bearer {token}x"}, f"{path}&x={secret.replace(' ', '+')}")
            server.stop()
            if stream:
                stream.close()
            lines = [json.loads(line) for line in server.said().splitlines() if not line.startswith("Serving")]
        assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
        said = json.dumps(lines)
        assert token not in said
        assert secret not in said
        requests = [line for line in lines if "status" in line]
        assert {line["status"] for line in requests} >= {400, 401}
        assert {line["peer"] for line in requests} == {"127.0.0.1"}
        assert {line["token"] for line in requests} == {"token 1", None}
        assert all("session" not in line["path"] for line in requests)
        calls = [line for line in lines if line["logger"] == "mulligan.serve.calls"]
        if transport == "http":
            assert [(line["method"], line["tool"], line["ended"]) for line in calls] == [
                ("tools/call", "retrieve_memory", "answered")
            ]


async def test_a_line_of_json_says_what_was_called_in_which_session_and_how_it_ended() -> None:
    with served("--log-level", "info", "--log-json") as server:
        for _ in range(2):
            async with Client(over(server.url), mode="legacy") as client:
                await client.call_tool("retrieve_memory", {"query": "x"})
                assert (await client.call_tool("retrieve_memory", {"query": ""})).is_error
        server.stop()
        lines = [json.loads(line) for line in server.said().splitlines() if not line.startswith("Serving")]
    calls = [line for line in lines if line["event"] == "call" and line["tool"]]
    assert [line["ended"] for line in calls] == ["answered", "refused"] * 2
    assert all(line["ms"] >= 0 for line in calls)
    first, second = calls[0]["session"], calls[2]["session"]
    assert [line["session"] for line in calls] == [first, first, second, second]
    assert first != second
    assert {line["event"] for line in lines} >= {"call", "request"}


def test_what_has_the_form_of_a_secret_is_masked_in_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLQ"
    for as_json in (True, False):
        with logs_on_stderr("info", as_json=as_json, secrets=["known-secret"]):
            try:
                raise ValueError(f"no access with {key}")
            except ValueError:
                logging.getLogger("mulligan.serve").exception("a library said %s and known-secret", key)
        said = capfd.readouterr().err
        assert key not in said
        assert "known-secret" not in said
        assert "a library said" in said
        if as_json:
            assert "no access with" in json.loads(said)["error"]


@pytest.mark.parametrize("transport", ["http", pytest.param("stdio", marks=pytest.mark.slow)])
def test_keys_that_are_set_and_not_used_are_named(transport: str) -> None:
    def said(*options: str, **env: str) -> str:
        port = ["--port", "0"] if transport == "http" else []
        command = [*MULLIGAN, "--transport", transport, *port, *options]
        with Running(command, env, None, subprocess.PIPE, subprocess.DEVNULL).closing() as server:
            if transport == "http":
                server.wait_until_said("Serving")
                server.stop()
            else:
                server.process.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]
                server.ended()
            return server.said()

    key = "sk-0123456789abcdef"
    told = said(DASHSCOPE_API_KEY=key, ANTHROPIC_API_KEY=" ")
    assert "DASHSCOPE_API_KEY is set, and no model was named" in told
    assert "--model alibaba:qwen-plus" in told
    assert "ANTHROPIC" not in told
    assert key not in told
    assert "API_KEY" not in said("--model", "alibaba:qwen-plus", DASHSCOPE_API_KEY=key)
    assert "no model that was named uses it" in said("--model", "ollama:qwen3", DASHSCOPE_API_KEY=key)
    assert "API_KEY" not in said(DASHSCOPE_API_KEY=key, MULLIGAN_MODEL_REFLECT="alibaba:qwen-plus")
