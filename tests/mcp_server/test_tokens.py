"""Tokens over HTTP: who may call, as whom, and whose session it is."""

import os
from collections.abc import Generator
from typing import Any

import pytest
from forked import run_forked
from mcp import Client
from posting import OLDER, Poster, Stream, modern, ping
from serving import MULLIGAN, Running, over, served

from mulligan.core.errors import InvalidInput
from mulligan.mcp_server.tokens import Verifier
from mulligan.web.tokens import Token

A, B, ANY = "a-token-of-agent-a-0001", "b-token-of-agent-b-0002", "~any+body/0123456789=="
TOKENS = f"a:{A} b:{B}\n {ANY}"
"""Two that are bound to an agent, one that is not."""


def read(monkeypatch: pytest.MonkeyPatch, said: str, agent_id: str | None = None) -> Any:
    monkeypatch.setenv("MULLIGAN_TOKEN", said)
    return Token.all_in_environment(agent_id)


def test_tokens_are_read_once_and_taken_out_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = read(monkeypatch, f"a:{A} urn:x:b:{B}\t{ANY}\n")
    assert [(token.agent_id, token.secret) for token in tokens] == [("a", A), ("urn:x:b", B), (None, ANY)]
    assert "MULLIGAN_TOKEN" not in os.environ
    assert Token.all_in_environment() == ()
    assert all(token.secret not in repr(tokens) for token in tokens)


def test_agent_id_binds_all_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [token.agent_id for token in read(monkeypatch, f"a:{A} {ANY}", "a")] == ["a", "a"]
    with pytest.raises(InvalidInput, match="--bank"):
        read(monkeypatch, f"b:{B}", "a")


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("a" * 15, "16"),
        ("agent:" + "a" * 15, "16"),
        (":" + "a" * 20, "colon"),
        ("a:", "characters"),
        ("a" * 10 + "é" + "a" * 10, "characters"),
        ("a" * 10 + "=" + "a" * 10, "characters"),
        (f"{A} {A}", "same"),
        (f"a:{A} b:{A}", "same"),
    ],
)
def test_tokens_that_cannot_be_are_refused_and_not_quoted(
    monkeypatch: pytest.MonkeyPatch, said: str, word: str
) -> None:
    with pytest.raises(InvalidInput, match=word) as caught:
        read(monkeypatch, said)
    assert "a" * 10 not in str(caught.value)


async def test_only_the_whole_token_is_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = Verifier(read(monkeypatch, TOKENS))
    known = await verifier.verify_token(A)
    assert known
    assert (known.subject, A in repr(known)) == ("a", False)
    for wrong in ("", A[:-1], f"{A}x", f"a:{A}", A.upper(), "\ud800", "é" * 20):
        assert await verifier.verify_token(wrong) is None


@pytest.mark.parametrize(
    ("options", "env", "said"),
    [
        (("--host", "0.0.0.0"), {}, "MULLIGAN_TOKEN"),
        ((), {"MULLIGAN_TOKEN": "short"}, "16"),
        (("--agent-id", "x"), {"MULLIGAN_TOKEN": f"a:{A}"}, "--bank"),
    ],
)
def test_a_server_that_could_not_be_safe_does_not_start(
    options: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    command = [*MULLIGAN, "--transport", "http", "--port", "0", *options]
    ran = run_forked(command, env={**os.environ, **env})
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert A not in ran.stderr


@pytest.fixture(scope="module", params=["http", "sse"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    env = {"MULLIGAN_HOME": str(tmp_path_factory.mktemp("home")), "MULLIGAN_TOKEN": TOKENS}
    with served("--log-level", "debug", transport=request.param, env=env) as server:
        yield server
        server.stop()
        for secret in (A, B, ANY):
            assert secret not in server.said()


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer ", f"Basic {A}", f"Bearer {A}x", f"Bearer  {A}", A, f"Bearer a:{A}"]
)
def test_without_a_known_token_nothing_is_served(server: Running, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    for method in ("POST", "GET", "DELETE"):
        status, told, body = Poster(server.url).request(method, None, headers)
        assert (status, told["www-authenticate"].split()[0]) == (401, "Bearer"), method
        assert b"agent" not in body


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_bound_token_is_its_agent_and_no_other(server: Running, mode: str) -> None:
    async with Client(over(server.url, A), mode=mode) as client:
        own = await client.call_tool("retrieve_memory", {"query": "x", "agent_id": "a"})
        other = await client.call_tool("retrieve_memory", {"query": "x", "agent_id": "b"})
        assert (own.is_error, other.is_error) == (False, True)
    async with Client(over(server.url, ANY), mode=mode) as client:
        assert not (await client.call_tool("retrieve_memory", {"query": "x", "agent_id": "b"})).is_error


def answers(server: Running, token: str, session: str, method: str = "POST") -> tuple[int, bytes]:
    """What a request in this session gets."""
    headers = {"Authorization": f"Bearer {token}", "Mcp-Session-Id": session, "MCP-Protocol-Version": OLDER}
    if method == "POST":
        status, _, body = Poster(server.url).post(ping(), headers)
    else:
        status, _, body = Poster(server.url).request(method, None, headers)
    return status, body


def test_the_session_of_one_token_is_unknown_to_another() -> None:
    with served(env={"MULLIGAN_TOKEN": f"{TOKENS} a:{A}{A}"}) as server:
        session = Poster(server.url, {"Authorization": f"Bearer {A}"}).session()
        for token in (B, ANY, A + A):
            for method in ("POST", "GET", "DELETE"):
                assert answers(server, token, session, method) == answers(server, token, "0" * 32, method)
                assert answers(server, token, session, method)[0] == 404
        assert answers(server, A, session)[0] == 200
        assert answers(server, A, session, "DELETE")[0] == 200
        assert answers(server, A, session)[0] == 404


def test_the_stream_of_one_token_is_unknown_to_another() -> None:
    with served(transport="sse", env={"MULLIGAN_TOKEN": TOKENS}) as server:
        stream = Stream(server.url, {"Authorization": f"Bearer {A}"})
        path = stream.path
        other = path[:-4] + ("0000" if not path.endswith("0000") else "1111")
        for token, status in ((B, 404), (ANY, 404), (A, 202)):
            poster = Poster(server.url, {"Authorization": f"Bearer {token}"})
            answer = poster.post(ping("mine"), path=path)
            assert answer[0] == status
            if status == 404:
                assert answer[2] == poster.post(ping(), path=other)[2]
        assert stream.next()["id"] == "mine"
        stream.close()


def test_the_modern_revision_asks_for_the_token_each_time(server: Running) -> None:
    if not server.url.endswith("/mcp"):
        return
    body, headers = modern("tools/list")
    assert Poster(server.url, {"Authorization": f"Bearer {A}"}).status(body, headers) == 200
    assert Poster(server.url).status(body, headers) == 401
