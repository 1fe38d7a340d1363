"""GET against a real server on loopback: hosts that are allowed and others, redirects, caps, encodings."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from each_row import each_row

from mulligan.core.errors import InvalidInput, ToolError
from mulligan.tools.http_get import HttpGet

BOMB = gzip.compress(b"0" * 1_000_000) * 50
HTML = "<html><body>Grüße</body></html>"


class Pages(BaseHTTPRequestHandler):
    """`/to?LOCATION` redirects; the rest is by name. `seen` are the paths that were asked for."""

    seen: ClassVar[list[str]]
    let_go: ClassVar[threading.Event]

    def do_GET(self) -> None:
        self.seen.append(self.path)
        path, _, query = self.path.partition("?")
        pages: dict[str, tuple[int, str, bytes, str]] = {
            "/": (200, "text/html; charset=utf-8", HTML.encode(), ""),
            "/latin": (200, "text/plain; charset=iso-8859-1", "Grüße".encode("latin-1"), ""),
            "/odd": (200, "text/plain; charset=klingon", "Grüße".encode(), ""),
            "/strict": (200, "text/plain; charset=idna", "Grüße".encode(), ""),
            "/json": (200, "application/problem+json", b'{"a": 1}', ""),
            "/picture": (200, "image/png", b"\x89PNG", ""),
            "/long": (200, "text/plain", b"x" * 5_000, ""),
            "/gzip": (200, "text/plain", gzip.compress(b"packed"), "gzip"),
            "/bomb": (200, "text/plain", BOMB, "gzip"),
            "/brotli": (200, "text/plain", b"??", "br"),
            "/empty": (200, "text/plain", b"", ""),
            "/gone": (410, "text/plain", b"It is\n  no more.", ""),
        }
        if path == "/to":
            self.answer(302, "text/plain", b"", "", query)
        elif path == "/hang":
            self.let_go.wait(30)
        else:
            self.answer(*pages.get(path, (404, "text/html", b"no such page", "")))

    def answer(self, status: int, kind: str, body: bytes, packed: str, location: str = "") -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-encoding": packed, "location": location}.items():
            if value:
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # hung up on: too long
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[ThreadingHTTPServer]:
    class Handler(Pages):
        seen: ClassVar[list[str]] = []
        let_go: ClassVar[threading.Event] = threading.Event()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        Handler.let_go.set()
        server.shutdown()
        thread.join(10)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def top(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def seen(server: ThreadingHTTPServer) -> list[str]:
    return getattr(server.RequestHandlerClass, "seen")  # noqa: B009


async def got(server: ThreadingHTTPServer, path: str, **settings: Any) -> str:
    hosts = settings.pop("hosts", [f"127.0.0.1:{server.server_port}"])
    return await HttpGet(hosts=hosts, **settings).call("http_get", {"url": top(server) + path})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", HTML),
        ("/latin", "Grüße"),
        ("/odd", "Grüße"),
        ("/strict", "Grüße"),
        ("/json", '{"a": 1}'),
        ("/gzip", "packed"),
        ("/empty", "(an empty answer)"),
        ("/to?/json", '{"a": 1}'),
        ("/to?to?/json", '{"a": 1}'),
    ],
)
async def test_texts(path: str, text: str, pages: ThreadingHTTPServer) -> None:
    assert await got(pages, path) == text


async def test_an_answer_is_cut_to_a_size(pages: ThreadingHTTPServer) -> None:
    assert await got(pages, "/long", size=100) == f"{'x' * 100}\n[cut: only 100 bytes are read]"
    assert await got(pages, "/long", size=5_000) == "x" * 5_000
    assert await got(pages, "/bomb", size=1_000) == f"{'0' * 1_000}\n[cut: only 1,000 bytes are read]"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/picture", "is image/png, and only text can be read"),
        ("/gone", r"answered 410 Gone\. It is no more\.$"),
        ("/none", "answered 404 Not Found"),
        ("/brotli", "is compressed as br, which cannot be read"),
        ("/to?gopher://127.0.0.1/", "is not a web address"),
        ("/to?http://a:b/", "redirects to something that is not an address"),
        ("/to?to", "more than 5 redirects"),
    ],
)
async def test_what_is_not_text(path: str, why: str, pages: ThreadingHTTPServer) -> None:
    if path == "/to?to":  # each leads to the next
        path = "/to?/" + "to?/" * 7
    with pytest.raises(ToolError, match=why):
        await got(pages, path)
    assert len(seen(pages)) <= 6


async def test_a_redirect_to_another_host_is_not_followed(pages: ThreadingHTTPServer) -> None:
    elsewhere = f"http://localhost:{pages.server_port}/"
    with pytest.raises(ToolError, match=r"^localhost:\d+ is not among the hosts that can be reached: 127\.0\.0\.1:\d+"):
        await got(pages, f"/to?{elsewhere}")
    assert seen(pages) == [f"/to?{elsewhere}"]
    both = [f"127.0.0.1:{pages.server_port}", f"localhost:{pages.server_port}"]
    assert await got(pages, f"/to?{elsewhere}", hosts=both) == HTML


@pytest.mark.parametrize("seconds", [0.3])
async def test_it_does_not_wait_for_ever(seconds: float, pages: ThreadingHTTPServer) -> None:
    with pytest.raises(ToolError, match=r"did not answer within 0\.3 seconds"):
        await got(pages, "/hang", seconds=seconds)


async def test_nobody_is_there() -> None:
    with pytest.raises(ToolError, match=r"^http://127\.0\.0\.1:9/ could not be fetched: "):
        await HttpGet(hosts=["127.0.0.1:9"]).call("http_get", {"url": "http://127.0.0.1:9/"})


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/",
        "http://sub.allowed.org/",
        "http://allowed.org.evil.org/",
        "http://notallowed.org/",
        "http://allowed.org:8080/",
        "http://below.org/",
        "http://evilbelow.org/",
        "http://localhost/",
        "http://localhost:8001/",
        "http://allowed.org@example.org/",
        "http://allowed.org\\@example.org/",
        "http://user:word@allowed.org/",
        "//allowed.org/",
        "allowed.org/page",
        "ftp://allowed.org/",
        "file:///etc/passwd",
        "http:///",
        "http://[::1]/",
        "http://[",
        " http://allowed.org/",
        "",
        "http://\ud800/",
        "http://allowed.org/\0",
    ],
)
async def test_where_it_never_goes(url: str) -> None:
    tool = HttpGet(hosts=["allowed.org", "*.below.org", "localhost:8000"])
    with pytest.raises(ToolError, match=r"is not among the hosts|is not a web address|a user or a password"):
        await tool.call("http_get", {"url": url})


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("Allowed.org", "HTTP://ALLOWED.ORG/"),
        ("allowed.org", "http://allowed.org./"),
        ("allowed.org", "https://allowed.org:443/"),
        ("*.below.org", "http://a.b.below.org/"),
        ("bücher.example", "http://bücher.example/"),
        ("[::1]:8000", "http://[::1]:8000/"),
    ],
)
async def test_where_it_would_go(host: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nothing leaves this machine
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with pytest.raises(ToolError, match="could not be fetched"):
        await HttpGet(hosts=[host]).call("http_get", {"url": url})


@each_row("host", ["", "*", "*.", "https://allowed.org", "allowed.org/path", "a@b.org", "a:b", "a b:99999"])
def test_hosts_that_are_none(host: str) -> None:
    with pytest.raises(InvalidInput, match=r"^\[tools\] http_hosts in mulligan\.toml accepts hosts such as"):
        HttpGet(hosts=[host])
    with pytest.raises(InvalidInput, match=r"list them under \[tools\] http_hosts in mulligan\.toml"):
        HttpGet()
