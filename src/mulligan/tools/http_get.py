"""Fetches text from the web, only from hosts that the user has named."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from mulligan.core.errors import InvalidInput, ToolError
from mulligan.core.questions import Tool
from mulligan.core.records import Json
from mulligan.models.providers import check_proxies
from mulligan.text.plain import count
from mulligan.tools._folder import OneTool, parameters

if TYPE_CHECKING:
    import httpx2

REDIRECTS = 5
WHERE = "[tools] http_hosts in mulligan.toml"
_PORTS = {"http": 80, "https": 443}
_TEXTS = ("text/", "application/json", "application/xml", "application/javascript", "application/yaml")


@dataclass(frozen=True)
class _Host:
    """One entry of the list of hosts. `port` None: the default port of http or https."""

    name: str
    below: bool
    port: int | None

    @classmethod
    def parse(cls, text: str) -> _Host:
        try:
            split = urlsplit(f"//{text.strip().lower()}")
            name, port = split.hostname or "", split.port
            below, name = name.startswith("*."), name.removeprefix("*.").rstrip(".").encode("idna").decode()
        except ValueError:
            name, port, split, below = "", None, None, False
        if not name or "*" in name or split is None or split.path or split.query or "@" in text or "/" in text:
            raise InvalidInput(
                f"{WHERE} accepts hosts such as docs.python.org, *.example.org or localhost:8000, not {text!r}."
            )
        return cls(name, below, port)

    def allows(self, scheme: str, host: str, port: int | None) -> bool:
        named = host.endswith(f".{self.name}") if self.below else host == self.name
        return named and (port or _PORTS[scheme]) == (self.port or _PORTS[scheme])


def _httpx2():  # pyright gives it the type of the module
    import httpx2

    return httpx2


class HttpGet(OneTool):
    """Fetches pages from allowed hosts: "docs.python.org", "*.example.org" (all hosts below it), "localhost:8000".

    A host without a port is allowed only at the default ports of http and https.

    Raises:
        InvalidInput: no host is allowed.
    """

    packages: Mapping[str, str] = MappingProxyType({"httpx2": "models"})

    def __init__(
        self,
        *,
        hosts: Annotated[
            Sequence[str], "The hosts that the tool can contact, instead of those in `tools.http_hosts`."
        ] = (),
        seconds: Annotated[float, "The time limit for a call, including its redirects, in seconds."] = 20,
        size: Annotated[int, "Maximum number of bytes read from a response."] = 500_000,
    ) -> None:
        if not hosts:
            raise InvalidInput(f"http_get has no allowed hosts: list them under {WHERE}.")
        check_proxies()
        self._named = ", ".join(hosts)
        self._hosts = tuple(_Host.parse(host) for host in hosts)
        self._seconds, self._size = seconds, size
        url = {"type": "string", "description": "The whole address, with http:// or https://."}
        about = f"Get a text from the web (GET). Hosts that can be reached: {self._named}."
        self._tool = Tool("http_get", about, parameters(url=url), repeatable=True)

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> str:
        given: Mapping[str, Any] = arguments
        httpx2 = _httpx2()
        url: str = given["url"]
        try:
            async with asyncio.timeout(self._seconds), httpx2.AsyncClient(timeout=self._seconds) as client:
                return await self._got(client, url)
        except (TimeoutError, httpx2.TimeoutException):
            raise ToolError(f"{url} did not answer within {count(self._seconds, 'second')}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise ToolError(f"{url} could not be fetched: {str(error) or type(error).__name__}") from None

    async def _got(self, client: httpx2.AsyncClient, url: str) -> str:
        httpx2 = _httpx2()
        for _ in range(REDIRECTS + 1):
            self._check(url)
            headers = {"user-agent": "mulligan", "accept-encoding": "gzip, deflate"}
            async with client.stream("GET", url, headers=headers, follow_redirects=False) as response:
                if not response.has_redirect_location:
                    return await self._text(response)
                try:
                    url = str(response.url.join(response.headers["location"]))
                except (httpx2.InvalidURL, ValueError):
                    raise ToolError(f"{url} redirects to something that is not an address") from None
        raise ToolError(f"more than {REDIRECTS} redirects; the last one leads to {url}")

    def _check(self, url: str) -> None:
        """Raises `ToolError` unless the address is on an allowed host."""
        httpx2 = _httpx2()
        try:
            # What is checked is what the client will do, so it reads the address, and nobody else.
            address = httpx2.URL(url)
        except (httpx2.InvalidURL, ValueError):
            raise ToolError(f"{url!r} is not a web address: use a full one, such as https://example.org/page") from None
        if address.scheme not in _PORTS or not address.host:
            raise ToolError(f"{url!r} is not a web address: use a full one, such as https://example.org/page")
        if address.userinfo:
            raise ToolError("an address must not contain a user or a password")
        host = address.raw_host.decode("ascii").strip("[]").rstrip(".").lower()
        if not any(known.allows(address.scheme, host, address.port) for known in self._hosts):
            port = f":{address.port}" if address.port else ""
            raise ToolError(f"{host}{port} is not among the hosts that can be reached: {self._named} ({WHERE})")

    async def _text(self, response: httpx2.Response) -> str:
        kind = response.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
        if response.is_success and not kind.startswith(_TEXTS) and not kind.endswith(("+json", "+xml")):
            raise ToolError(f"{response.url} is {kind}, and only text can be read")
        data, cut = await self._read(response)
        try:
            text = data.decode(response.charset_encoding or "utf-8", "replace")
        except (LookupError, ValueError):  # an encoding that nobody knows, or that cannot pass over mistakes
            text = data.decode("utf-8", "replace")
        if not response.is_success:
            said = " ".join(text.split())[:500] if kind.startswith(_TEXTS) else ""
            raise ToolError(f"{response.url} answered {response.status_code} {response.reason_phrase}. {said}")
        return f"{text}\n[cut: only {self._size:,} bytes are read]" if cut else text or "(an empty answer)"

    async def _read(self, response: httpx2.Response) -> tuple[bytes, bool]:
        """The body, and whether it was cut. Decompresses in pieces, so that a small answer cannot become a huge one."""
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in ("identity", "gzip", "x-gzip", "deflate"):
            raise ToolError(f"{response.url} is compressed as {packed}, which cannot be read")
        unpack = None if packed == "identity" else zlib.decompressobj(zlib.MAX_WBITS | 32)
        data = bytearray()
        async for chunk in response.aiter_raw():
            try:
                data += unpack.decompress(chunk, self._size + 1) if unpack else chunk
            except zlib.error:
                raise ToolError(f"{response.url} is compressed as {packed}, and damaged") from None
            if len(data) > self._size:
                return bytes(data[: self._size]), True
        return bytes(data), False
