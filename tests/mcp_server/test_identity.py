"""Access tokens of an identity provider over HTTP: who may call, as whom, and where a client finds the provider."""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm
from mcp import Client
from posting import Poster, modern
from serving import Running, over, served

from mulligan.core.errors import InvalidInput
from mulligan.web.identity import IdentityProvider

ISSUER, RESOURCE = "https://id.example.org", "https://mcp.example.org/mcp"
FIRST, SECOND = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())


def key_set(*keys: ec.EllipticCurvePrivateKey) -> str:
    public = [json.loads(ECAlgorithm.to_jwk(key.public_key())) for key in keys]
    return json.dumps({"keys": [{**one, "kid": str(n)} for n, one in enumerate(public)]})


def token(key: Any = FIRST, kid: str = "0", algorithm: str = "ES256", **changes: Any) -> str:
    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "anna", "exp": int(time.time()) + 600, **changes}
    told = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(told, key, algorithm, headers={"kid": kid})


@pytest.fixture
def provider(tmp_path: Path) -> IdentityProvider:
    (tmp_path / "jwks.json").write_text(key_set(FIRST))
    return IdentityProvider(ISSUER, str(tmp_path / "jwks.json"), RESOURCE)


def test_only_a_token_for_this_server_by_this_provider_is_taken(provider: IdentityProvider) -> None:
    now, absent = int(time.time()), dict[str, Any]
    assert (provider.claims(token()) or {})["sub"] == "anna"
    assert provider.claims(token(aud=["https://other.example.org", RESOURCE]))
    refused = {
        "another server's": token(aud="https://other.example.org/mcp"),
        "another provider's": token(iss="https://evil.example.org"),
        "expired": token(exp=now - 600),
        "not valid yet": token(nbf=now + 600),
        "another key's": token(SECOND),
        "of an unknown key": token(kid="9"),
        "another algorithm's": token(rsa.generate_private_key(65537, 2048), algorithm="RS256"),
        "signed with what is public": token(b"x" * 64, algorithm="HS256"),
        "not signed": token(None, algorithm="none"),
        "no token": "not a token",
        **{f"without {claim}": token(**absent({claim: None})) for claim in ("iss", "aud", "sub", "exp")},
    }
    assert [why for why, one in refused.items() if provider.claims(one) is not None] == []


def test_keys_are_rotated_and_a_broken_file_changes_nothing(provider: IdentityProvider, tmp_path: Path) -> None:
    def write(text: str, age: int) -> None:
        (tmp_path / "jwks.json").write_text(text)
        os.utime(tmp_path / "jwks.json", (age, age))

    write(key_set(FIRST, SECOND), 1000)
    assert provider.claims(token(SECOND, "1"))
    write("{", 2000)
    assert provider.claims(token(SECOND, "1"))
    write(key_set(SECOND), 3000)
    assert provider.claims(token()) is None
    for text in ("[]", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', '{"keys": [{"kty": "EC"}]}'):
        write(text, 4000)
        with pytest.raises(InvalidInput, match="--jwks"):
            IdentityProvider(ISSUER, str(tmp_path / "jwks.json"), RESOURCE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    file = tmp_path_factory.mktemp("identity") / "jwks.json"
    file.write_text(key_set(FIRST))
    options = ("--tools", "memory", "--issuer", ISSUER, "--jwks", str(file), "--resource", RESOURCE, "--metrics")
    with served(*options, env={"MULLIGAN_TOKEN": "0123456789abcdef-of-nobody"}) as running:
        yield running


def test_a_client_without_a_token_is_told_where_to_get_one(server: Running) -> None:
    poster = Poster(server.url, {"Host": "mcp.example.org"})
    body, headers = modern("tools/list")
    status, told, _ = poster.post(body, headers)
    page = "https://mcp.example.org/.well-known/oauth-protected-resource/mcp"
    assert status == 401
    assert f'resource_metadata="{page}"' in told["www-authenticate"]
    status, _, said = poster.request("GET", path="/.well-known/oauth-protected-resource/mcp")
    metadata = json.loads(said)
    assert status == 200
    assert (metadata["resource"], metadata["authorization_servers"]) == (RESOURCE, [ISSUER])
    assert metadata["bearer_methods_supported"] == ["header"]
    assert poster.status(body, {**headers, "Authorization": f"Bearer {token(exp=1)}"}) == 401
    assert poster.request("GET", headers={"Authorization": f"Bearer {token()}"}, path="/metrics")[0] == 401


async def test_a_user_is_the_agent_and_sees_no_other(server: Running) -> None:
    lesson = [{"title": "Round", "description": "d", "content": "Round at the end.", "steps": [1]}]
    learned = {"trajectory": [{"role": "tool", "content": "ok"}], "query": "Add VAT.", "success_signal": True}
    async with Client(over(server.url, token())) as anna, Client(over(server.url, token(sub="ben"))) as ben:
        (tool,) = [one for one in (await anna.list_tools()).tools if one.name == "extract_memory"]
        assert "agent_id" not in tool.input_schema["properties"]
        kept = await anna.call_tool("extract_memory", {**learned, "lessons": lesson, "async_mode": False})
        assert not kept.is_error, kept.content
        assert "Round" in str(await anna.list_resources())
        assert "Round" not in str(await ben.list_resources())
        named = await ben.call_tool("retrieve_memory", {"query": "VAT", "agent_id": "anna"})
        assert named.is_error


READ, WRITE, ADMINISTER = "memory.read", "https://mcp.example.org/memory.write", "memory.admin"


@pytest.fixture(scope="module")
def scoped(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    """A server whose tokens need a scope for each action."""
    file = tmp_path_factory.mktemp("scoped") / "jwks.json"
    file.write_text(key_set(FIRST))
    options = ("--tools", "memory", "--issuer", ISSUER, "--jwks", str(file), "--resource", RESOURCE, "--metrics")
    scopes = ("--scope", f"read={READ}", "--scope", f"write={WRITE}", "--scope", f"administer={ADMINISTER}")
    with served(*options, *scopes, env={"MULLIGAN_TOKEN": OWN}) as running:
        yield running


OWN = "0123456789abcdef-of-nobody"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "recall": ("tools/call", {"name": "retrieve_memory", "arguments": {"query": "VAT"}}),
    "list": ("tools/list", {}),
    "learn": ("tools/call", {"name": "extract_memory", "arguments": {"query": "VAT", "trajectory": "ok"}}),
    "cancel": ("tasks/cancel", {"taskId": "solve_1", "name": "retrieve_memory"}),
    "nonsense": ("tools/call", {"name": ["retrieve_memory"]}),
}


def allowed(poster: Poster, bearer: str) -> tuple[set[str], set[str]]:
    """The calls that a token is not refused, and the scopes that the refusals name."""
    calls, scopes = set[str](), set[str]()
    for name, (method, params) in CALLS.items():
        body, headers = modern(method, params)
        if "Mcp-Name" in headers:
            headers["Mcp-Name"] = str(headers["Mcp-Name"])
        status, told, _ = poster.post(body, {**headers, "Authorization": f"Bearer {bearer}"})
        if status != 403:
            calls.add(name)
            continue
        assert told["www-authenticate"].startswith('Bearer error="insufficient_scope"')
        assert "/.well-known/oauth-protected-resource/mcp" in told["www-authenticate"]
        scopes.add(told["www-authenticate"].partition('scope="')[2].partition('"')[0])
    return calls, scopes


def test_a_token_does_what_its_scopes_allow_and_learns_which_it_lacks(scoped: Running) -> None:
    poster = Poster(scoped.url, {"Host": "mcp.example.org"})
    reads, writes = {"recall", "list"}, {"learn", "cancel", "nonsense"}
    assert allowed(poster, token()) == (set(), {READ, WRITE})
    assert allowed(poster, token(scope=f"openid {READ}")) == (reads, {WRITE})
    assert allowed(poster, token(scp=WRITE)) == (writes, {READ})
    assert allowed(poster, token(scp=[READ, 7], scope=WRITE)) == (reads | writes, set())
    for broken in (7, {READ: 1}, f"{READ}x", f'{READ}"{WRITE}'):
        assert allowed(poster, token(scope=broken))[0] == set()
    assert allowed(poster, OWN) == (reads | writes, set()), "it is no token of the provider"
    body, headers = modern("server/discover")
    assert poster.status(body, {**headers, "Authorization": f"Bearer {token()}"}) == 200
    status, told, _ = poster.post(body, headers)
    assert (status, f'scope="{READ}"' in told["www-authenticate"]) == (401, True)
    metadata = json.loads(poster.request("GET", path="/.well-known/oauth-protected-resource/mcp")[2])
    assert metadata["scopes_supported"] == [READ, WRITE, ADMINISTER]


def test_who_administers_reads_the_metrics(scoped: Running) -> None:
    poster = Poster(scoped.url, {"Host": "mcp.example.org"})

    def read(bearer: str) -> tuple[int, str]:
        status, told, _ = poster.request("GET", path="/metrics", headers={"Authorization": f"Bearer {bearer}"})
        return status, told.get("www-authenticate", "")

    assert read(token(scope=ADMINISTER)) == (200, "")
    status, challenge = read(token(scope=f"{READ} {WRITE}"))
    assert (status, f'scope="{ADMINISTER}"' in challenge) == (403, True)
    assert read(token(scope=ADMINISTER, exp=1))[0] == 401


async def test_a_client_of_an_older_revision_needs_the_same_scopes(scoped: Running) -> None:
    learned = {"query": "Add VAT.", "trajectory": [{"role": "tool", "content": "ok"}]}
    async with Client(over(scoped.url, token(scope=READ)), mode="legacy") as anna:
        assert (await anna.list_tools()).tools
        assert not (await anna.call_tool("retrieve_memory", {"query": "VAT"})).is_error
        with pytest.raises(Exception, match=r"scope|403"):
            await anna.call_tool("extract_memory", learned)


@pytest.mark.parametrize("scope", ["read", "read=", "own=x", 'read=a"b', "read=a b", "read=\u00e4"])
def test_a_scope_that_no_token_can_have_is_refused(tmp_path: Path, scope: str) -> None:
    (tmp_path / "jwks.json").write_text(key_set(FIRST))
    with pytest.raises(InvalidInput, match="--scope must have the form"):
        IdentityProvider(ISSUER, str(tmp_path / "jwks.json"), RESOURCE, [scope])
