"""Who gets to the endpoints over HTTP at all: hosts, origins, paths."""

from collections.abc import Generator

import pytest
from each_row import each_row
from posting import Poster, modern, ping
from serving import Running, served

from mulligan.core.errors import InvalidInput
from mulligan.web.hosts import Bound, HostPolicy, bind, is_loopback

PAGE = "https://example.org"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    with served("--allow-origin", PAGE, env={"MULLIGAN_HOME": str(tmp_path_factory.mktemp("home"))}) as server:
        yield server


def status(server: Running, **headers: str) -> int:
    body, needed = modern("tools/list")
    return Poster(server.url).status(body, {**needed, **headers})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "localhost:1", "LOCALHOST", "[::1]:9", "127.9.9.9"])
def test_a_host_of_this_machine_is_served(server: Running, host: str) -> None:
    assert status(server, Host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example:8000",
        "localhost.evil",
        "10.0.0.1",
        "a@localhost",
        "[::1",
        "localhost:x",
        "",
    ],
)
def test_any_other_host_is_not(server: Running, host: str) -> None:
    assert status(server, Host=host) == 421


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:1", PAGE, PAGE.upper()])
def test_pages_of_this_machine_and_those_that_were_named_may_call(server: Running, origin: str) -> None:
    assert status(server, Origin=origin) == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.example",
        "http://example.org",
        f"{PAGE}:8443",
        f"{PAGE}.evil",
        "http://localhost.evil",
        "http://localhost/x",
        "file://localhost",
        "http://a@localhost",
        "http://[::1",
    ],
)
def test_pages_from_elsewhere_may_not(server: Running, origin: str) -> None:
    answer = Poster(server.url).post(ping(), {"Origin": origin})
    assert answer[0] == 403
    assert b"--allow-origin" in answer[2]


def test_a_browser_is_told_what_its_page_may_do(server: Running) -> None:
    asks = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "mcp-method"}
    status, headers, _ = Poster(server.url).request("OPTIONS", None, asks)
    assert (status, headers["access-control-allow-origin"]) == (200, PAGE)
    assert "mcp-method" in headers["access-control-allow-headers"]
    _, headers, _ = Poster(server.url).post(ping(), {"Origin": PAGE})
    assert headers["access-control-allow-origin"] == PAGE
    assert "Mcp-Session-Id" in headers["access-control-expose-headers"]
    assert Poster(server.url).request("OPTIONS", None, {**asks, "Origin": "https://evil.example"})[0] == 403


def test_there_is_nothing_beside_the_endpoint(server: Running) -> None:
    for path in ("/", "/sse", "/messages/", "/mcp/x", "/.env"):
        assert Poster(server.url).post(ping(), path=path)[0] == 404, path
    assert Poster(server.url).post(ping(), path="/mcp/")[0] == 400, "no session, but it is the endpoint"
    assert Poster(server.url).request("PUT", b"{}", {"Content-Type": "application/json"})[0] in (400, 405)


@each_row(
    "url",
    ["example.org", "ftp://a", "https://", "https://a/b", "https://a?b", "https://u@a", "*", "null", "https://a:x"],
)
def test_what_is_not_an_origin_cannot_be_allowed(url: str) -> None:
    with bound() as here, pytest.raises(InvalidInput, match="--allow-origin"):
        HostPolicy(here, [url])


class bound:
    def __enter__(self) -> Bound:
        self._bound = bind("127.0.0.1", 0, guarded=False)
        return self._bound

    def __exit__(self, *_: object) -> None:
        self._bound.listening.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_are_let_in_only_with_a_token(host: str) -> None:
    with pytest.raises(InvalidInput, match="MULLIGAN_TOKEN"):
        bind(host, 0, guarded=False)
    there = bind(host, 0, guarded=True)
    there.listening.close()
    assert not there.loopback
    doors = HostPolicy(there, [PAGE])
    assert doors.allows_host("anything.example")
    assert doors.allows_host(None)
    assert doors.allows_origin(PAGE)
    assert not doors.allows_origin("http://localhost")


def test_a_name_of_this_machine_is_as_good_as_its_address() -> None:
    there = bind("localhost", 0, guarded=False)
    there.listening.close()
    assert there.loopback
    assert there.url == f"http://localhost:{there.port}"
    assert [is_loopback(name) for name in ("127.0.0.1", "::1", "Localhost", "0.0.0.0", "localhost.evil")] == [
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("host", "port"), [("", 0), ("no.such.name.invalid", 0), ("127.0.0.1", -1), ("127.0.0.1", 70000), ("192.0.2.1", 0)]
)
def test_where_nothing_can_be_bound_is_reported(host: str, port: int) -> None:
    with pytest.raises(InvalidInput, match=r"--host|port"):
        bind(host, port, guarded=True)
