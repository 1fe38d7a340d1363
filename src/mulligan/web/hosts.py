"""The address that a server is bound to, and which Host and Origin headers it accepts."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from mulligan.core.errors import InvalidInput


@dataclass(frozen=True)
class Bound:
    """A listening socket, its address, and whether only this machine reaches it."""

    listening: socket.socket
    host: str
    port: int
    loopback: bool

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def bind(host: str, port: int, *, guarded: bool) -> Bound:
    """Open a listening socket.

    Args:
        host: a name or address of this machine.
        port: the port; 0 takes a free one.
        guarded: whether callers need a token, so that other machines can be admitted.

    Raises:
        InvalidInput: the host is unknown, the port is in use, or other machines would be admitted without a token.
    """
    if not 0 <= port <= 65535:
        raise InvalidInput(f"The port must be from 0 to 65535, not {port}.")
    found = _addresses(host, port)
    loopback = all(is_loopback(address[0]) for _, address in found)
    if not loopback and not guarded:
        raise InvalidInput(
            f"--host {host} makes the server reachable from other machines, so it needs a token: set "
            "MULLIGAN_TOKEN to one of at least 16 characters, or omit --host to serve only this machine."
        )
    family, address = found[0]
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, so that asyncio sets TCP_NODELAY
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise InvalidInput(
            f"Port {port} on {host} cannot be opened ({error.strerror}): stop the program that uses it, or choose "
            "another --port (0 for any free port)."
        ) from None
    listening.setblocking(False)
    return Bound(listening, host, listening.getsockname()[1], loopback)


def is_loopback(host: str) -> bool:
    """Return whether this name or address means this machine only. Names other than `localhost` are not looked up."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class HostPolicy:
    """Decides which Host and Origin headers are accepted.

    It rejects web pages that are not allowed to call the server, and names that someone else pointed to it (DNS
    rebinding).
    """

    def __init__(self, bound: Bound, origins: Iterable[str], hosts: Iterable[str] = ()) -> None:
        """hosts: further names of this server."""
        self._loopback = bound.loopback
        self._origins = frozenset(map(parse_origin, origins))
        self._hosts = {bound.host.lower(), *hosts, *(urlsplit(one).hostname for one in self._origins)}

    def allows_host(self, header: str | None) -> bool:
        """Return whether the Host is accepted: on loopback, this machine or an allowed origin; otherwise, any host."""
        if not self._loopback:
            return True
        name = _host_name(f"//{header}") if header else None
        return name is not None and (is_loopback(name) or name in self._hosts)

    def allows_origin(self, header: str | None) -> bool:
        """Return whether the Origin is accepted: no origin (not a browser), an allowed origin or, on loopback, this
        machine.
        """
        if header is None or header.lower() in self._origins:
            return True
        name = _host_name(header) if header.lower().startswith(("http://", "https://")) else None
        return self._loopback and name is not None and is_loopback(name)


def parse_origin(url: str) -> str:
    """Return the origin as browsers write it. Raises `InvalidInput` for anything else."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and not (parts.path.strip("/") or parts.query)
        if whole and "@" not in parts.netloc and parts.port != 0:
            return f"{parts.scheme}://{parts.netloc}".lower()
    except ValueError:
        pass
    raise InvalidInput(
        f"--allow-origin must be an origin such as https://example.org or http://localhost:3000, not {url!r}."
    )


def _host_name(url: str) -> str | None:
    """Return the host of a URL; None if it is not a URL."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
        return parts.hostname if not parts.path and "@" not in parts.netloc else None
    except ValueError:
        return None


def _addresses(host: str, port: int) -> Sequence[tuple[int, tuple[str, int]]]:
    """Return the families and addresses of a host, IPv4 first."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM) if host.strip() else []
    except OSError:
        found = []
    if not found:
        raise InvalidInput(f"--host {host!r} is not an address or name of this machine: try 127.0.0.1.")
    return [(family, address) for family, *_, address in sorted(found, key=lambda one: one[0] != socket.AF_INET)]  # pyright: ignore
