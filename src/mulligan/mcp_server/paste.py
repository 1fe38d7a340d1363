"""What to paste into a client so that it finds the server: each client's own format. Imports nothing of the SDK."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mulligan.core.records import Json
from mulligan.mcp_server.program import NAME

TOKEN = "MULLIGAN_TOKEN"
_FILL_IN = f"{TOKEN}_GOES_HERE"
_PATHS = {"sse": "/sse", "http": "/mcp"}
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""Addresses that can be bound to and not connected to, and where such a server answers on the same machine."""


@dataclass(frozen=True)
class Serving:
    """How a server is started. options: those of `mulligan serve` beside transport, host and port, as typed.

    command: the program, and what comes before "serve". env: what the program has to find in its environment.
    token: whether callers have to bear one, over sse and http. keys: variables that the model's key may be in.
    """

    transport: str = "stdio"
    host: str = "127.0.0.1"
    port: int = 8000
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = (NAME,)
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    token: bool = False
    keys: tuple[str, ...] = ()

    @property
    def line(self) -> tuple[str, ...]:
        """The whole command line."""
        return (*self.command, "serve", *self._where, *self.options)

    @property
    def url(self) -> str:
        """Where a client on the same machine finds it, over sse and http."""
        host = _ANYWHERE.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}{_PATHS[self.transport]}"

    @property
    def _where(self) -> tuple[str, ...]:
        if self.transport == "stdio":
            return ()
        return ("--transport", self.transport, "--host", self.host, "--port", str(self.port))


@dataclass(frozen=True)
class Paste:
    """`config` is the JSON; `notes` say where it goes and what else is to be done, a line each."""

    config: Json
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Client:
    """key: of the table of servers. token: how a header takes the token; None: it has to be filled in by hand.

    local, remote: what its entries have besides, by transport. url: the key of the address.
    """

    where: str
    key: str = "mcpServers"
    token: str | None = None
    local: Mapping[str, Json] = field(default_factory=dict[str, Json])
    remote: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    url: str = "url"
    whole: Callable[[Serving], Mapping[str, Json]] = lambda serving: {}


def _inputs(serving: Serving) -> Mapping[str, Json]:
    if serving.transport == "stdio" or not serving.token:
        return {}
    asked = {"type": "promptString", "id": "mulligan-token", "description": "Token of Mulligan", "password": True}
    return {"inputs": [asked]}


_TYPED = {"sse": {"type": "sse"}, "http": {"type": "http"}}

_CLIENTS: Mapping[str, _Client] = {
    "claude": _Client(
        "Claude Code: .mcp.json in the project's folder. Claude Desktop: claude_desktop_config.json",
        token=f"${{{TOKEN}}}",
        remote=_TYPED,
    ),
    "cursor": _Client(
        "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder",
        token=f"${{env:{TOKEN}}}",
    ),
    "vscode": _Client(
        ".vscode/mcp.json in the workspace, or the user's own (command MCP: Open User Configuration)",
        key="servers",
        token="${input:mulligan-token}",
        local={"type": "stdio"},
        remote=_TYPED,
        whole=_inputs,
    ),
    "qoder": _Client("Qoder's settings, MCP, + Add", remote={"sse": {"type": "sse"}, "http": {}}),
    "cherry-studio": _Client(
        "Cherry Studio's settings, MCP servers, Add, Import from JSON",
        local={"type": "stdio", "isActive": True},
        remote={"sse": {"type": "sse", "isActive": True}, "http": {"type": "streamableHttp", "isActive": True}},
        url="baseUrl",
    ),
    "json": _Client("the client's table of MCP servers", remote=_TYPED),
}

CLIENTS = tuple(_CLIENTS)


def paste(client: str, serving: Serving) -> Paste:
    """client: one of `CLIENTS`."""
    one = _CLIENTS[client]
    entry = _local(one, serving) if serving.transport == "stdio" else _remote(one, serving)
    notes = [f"Paste this into: {one.where}"]
    if serving.transport == "stdio" and serving.keys:
        notes.append(f"The client has to hand on {' or '.join(serving.keys)}, for the model: put it into its env table")
    if serving.transport != "stdio":
        guarded = f", with {TOKEN} set" if serving.token else ""
        notes.append(f"Start the server first{guarded}: {shlex.join(serving.line)}")
        if serving.host in _ANYWHERE:
            notes.append(f"The address is that on this machine: elsewhere, put its name for {_ANYWHERE[serving.host]}")
        if serving.token and one.token is None:
            notes.append(f"Put the token for {_FILL_IN}")
        elif serving.token and client != "vscode":
            notes.append(f"The client takes the token, without its AGENT_ID:, from {TOKEN} in its own environment")
    if client == "claude":
        notes += _claude(serving)
    return Paste({**one.whole(serving), one.key: {NAME: entry}}, tuple(notes))


def _local(client: _Client, serving: Serving) -> Json:
    command, *arguments = serving.line
    env = {"env": dict(serving.env)} if serving.env else {}
    return {**client.local, "command": command, "args": arguments, **env}


def _remote(client: _Client, serving: Serving) -> Json:
    headers = {"headers": {"Authorization": f"Bearer {client.token or _FILL_IN}"}} if serving.token else {}
    return {**client.remote.get(serving.transport, {}), client.url: serving.url, **headers}


def _claude(serving: Serving) -> list[str]:
    """The same as a command of Claude Code, and what Claude Desktop needs instead."""
    if serving.transport == "stdio":
        env = [part for name, value in serving.env.items() for part in ("--env", f"{name}={value}")]
        return [f"Or, in Claude Code: {shlex.join(['claude', 'mcp', 'add', NAME, *env, '--', *serving.line])}"]
    command = f"claude mcp add --transport {serving.transport} {NAME} {shlex.quote(serving.url)}"
    header = f' --header "Authorization: Bearer ${TOKEN}"' if serving.token else ""
    desktop = "Claude Desktop starts servers by command alone: leave --transport out for it"
    return [f"Or, in Claude Code: {command}{header}", desktop]


def environment(names: Sequence[str] = ("MULLIGAN_HOME",)) -> dict[str, str]:
    """What is set here and a client would not hand on; folders by their whole path."""
    return {name: str(Path(os.environ[name]).absolute()) for name in names if os.environ.get(name)}
