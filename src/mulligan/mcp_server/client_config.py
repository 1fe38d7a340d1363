"""The configuration with which an MCP client starts or finds this server, in the client's own format.

It does not import the SDK.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution, metadata
from pathlib import Path
from typing import Any, cast

from mulligan.core.records import Json

NAME = "mulligan"

TOKEN = "MULLIGAN_TOKEN"
_PLACEHOLDER = f"{TOKEN}_GOES_HERE"
PATHS = {"sse": "/sse", "http": "/mcp"}
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""Addresses that a server can bind to but no client can connect to, with the address to use on the same machine."""


@dataclass(frozen=True)
class ServerCommand:
    """How a server is started.

    Attributes:
        options: the options of `mulligan serve` except transport, host and port.
        command: the program, and its arguments before "serve".
        env: variables that the program needs.
        token: whether callers need a token, over sse and http.
        keys: variables that may hold the model's key.
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
        address = ("--transport", self.transport, "--host", self.host, "--port", str(self.port))
        return (*self.command, "serve", *(() if self.transport == "stdio" else address), *self.options)

    @property
    def url(self) -> str:
        """The address for a client on the same machine, over sse and http."""
        host = _WILDCARDS.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}{PATHS[self.transport]}"


@dataclass(frozen=True)
class ClientConfig:
    """The configuration to paste into a client.

    Attributes:
        config: the JSON.
        notes: where to paste it, and what else to do, a line each.
    """

    config: Json
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Client:
    """The format of a client's configuration.

    Attributes:
        where: where the user pastes it.
        key: the key of the table of servers.
        token: how a header refers to the token; None: the user fills it in.
        fields: further fields of an entry, by transport.
        url: the key of the address.
        inputs: what the client asks its user for if a token is needed; it stands next to the table.
    """

    where: str
    key: str = "mcpServers"
    token: str | None = None
    fields: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    url: str = "url"
    inputs: Json = None


def _read_clients() -> dict[str, _Client]:
    table = json.loads(Path(__file__).with_name("clients.json").read_text(encoding="utf-8"))
    return {name: _Client(**values) for name, values in table.items()}


_CLIENTS = _read_clients()

CLIENTS = tuple(_CLIENTS)


def client_config(client: str, server: ServerCommand) -> ClientConfig:
    """The configuration of one of `CLIENTS` for this server."""
    format, remote = _CLIENTS[client], server.transport != "stdio"
    entry = {**format.fields.get(server.transport, {}), **(_remote(format, server) if remote else _local(server))}
    inputs = {"inputs": format.inputs} if format.inputs and remote and server.token else {}
    notes = [f"Paste this into: {format.where}"]
    if not remote and server.keys:
        notes.append(
            f"The client must pass {' or '.join(server.keys)} to the server, for the model. Add it to the client's "
            f"env table"
        )
    if remote:
        guarded = f", with {TOKEN} set" if server.token else ""
        notes.append(f"Start the server first{guarded}: {shlex.join(server.line)}")
        if server.host in _WILDCARDS:
            notes.append(
                "The address is for clients on this machine: elsewhere, use the machine's name instead of "
                f"{_WILDCARDS[server.host]}"
            )
        if server.token and format.token is None:
            notes.append(f"Replace {_PLACEHOLDER} with the token")
        elif server.token and not format.inputs:
            notes.append(f"The client takes the token, without its AGENT_ID:, from {TOKEN} in its own environment")
    if client == "claude":
        notes += _claude(server)
    return ClientConfig({**inputs, format.key: {NAME: entry}}, tuple(notes))


_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_REGISTERED = "io.github.OWNER/mulligan"
_TRANSPORTS = {"http": "streamable-http"}
"""The registry's names of transports, where they differ."""


def registry_entry(server: ServerCommand) -> ClientConfig:
    """The server.json with which the MCP Registry lists this version of Mulligan, served with these options."""
    about = metadata(NAME)
    version = about["Version"]
    extras = "serve,models" if server.keys else "serve"
    transport: dict[str, Json] = {"type": _TRANSPORTS.get(server.transport, server.transport)}
    secrets = [{"name": key, "description": "The model's key.", "isSecret": True} for key in server.keys]
    if server.transport != "stdio":
        transport["url"] = server.url
    if server.transport != "stdio" and server.token:
        token = {"description": "The token of callers.", "isRequired": True, "isSecret": True}
        secrets.append({"name": TOKEN, **token})
        bearer = {"name": "Authorization", "value": f"Bearer {{{TOKEN}}}", "variables": {TOKEN: token}}
        transport["headers"] = [bearer]
    package: dict[str, Json] = {
        "registryType": "pypi",
        "identifier": NAME,
        "version": version,
        "runtimeHint": "uvx",
        "runtimeArguments": [{"type": "named", "name": "--with", "value": f"{NAME}[{extras}]=={version}"}],
        "packageArguments": [{"type": "positional", "value": word} for word in server.line[len(server.command) :]],
        "transport": transport,
    }
    if secrets:
        package["environmentVariables"] = secrets
    entry = {"$schema": _SCHEMA, "name": _REGISTERED, "title": "Mulligan", "description": about["Summary"]}
    notes = (
        "Save this as server.json, replace OWNER with your GitHub account, and run: mcp-publisher publish",
        f"The package's page on PyPI must contain: mcp-name: {_REGISTERED}",
    )
    return ClientConfig({**entry, "version": version, "packages": [package]}, notes)


def _local(server: ServerCommand) -> dict[str, Json]:
    command, *arguments = server.line
    env = {"env": dict(server.env)} if server.env else {}
    return {"command": command, "args": arguments, **env}


def _remote(client: _Client, server: ServerCommand) -> dict[str, Json]:
    headers = {"headers": {"Authorization": f"Bearer {client.token or _PLACEHOLDER}"}} if server.token else {}
    return {client.url: server.url, **headers}


def _claude(server: ServerCommand) -> list[str]:
    """The same as a Claude Code command, and what Claude Desktop needs instead."""
    if server.transport == "stdio":
        env = [part for name, value in server.env.items() for part in ("--env", f"{name}={value}")]
        return [f"Or, in Claude Code: {shlex.join(['claude', 'mcp', 'add', NAME, *env, '--', *server.line])}"]
    command = f"claude mcp add --transport {server.transport} {NAME} {shlex.quote(server.url)}"
    header = f' --header "Authorization: Bearer ${TOKEN}"' if server.token else ""
    desktop = "Claude Desktop can only start servers with a command. Omit --transport for it"
    return [f"Or, in Claude Code: {command}{header}", desktop]


def environment() -> dict[str, str]:
    """The variables of this process that a client would not pass on."""
    home = os.environ.get("MULLIGAN_HOME")
    return {"MULLIGAN_HOME": str(Path(home).absolute())} if home else {}


def program() -> tuple[str, ...]:
    """The command that starts this Mulligan, from any folder and with any PATH.

    In a temporary environment of uvx or `pipx run`, which may be deleted, it is the command that creates a new one.
    """
    prefix = Path(sys.prefix)
    if any(part.startswith(("archive-v", "environments-v", "builds-v")) for part in prefix.parts):
        options = ("--python", _interpreter(), "--from", _requirement())
        return (*_uvx(), *options, "python", "-m", NAME)  # the script that uvx installs would need a PATH
    if prefix.parent.name == ".cache" or prefix.parent.parts[-2:] == (".cache", "pipx"):
        return (_whole_path("pipx"), "run", "--spec", _requirement(), NAME)
    script = Path(sys.executable).with_name(NAME)
    return (str(script),) if _names_interpreter(script) else (sys.executable, "-m", NAME)


def _names_interpreter(script: Path) -> bool:
    """Whether the script names its interpreter, so that it does not need a PATH."""
    try:
        return sys.executable.encode() in script.read_bytes()[:1000]
    except OSError:
        return False


def _uvx() -> tuple[str, ...]:
    uv = os.environ.get("UV")  # uv sets it to its own path for the programs that it starts
    return (uv, "tool", "run") if uv and os.path.isabs(uv) else (_whole_path("uvx"),)


def _whole_path(name: str) -> str:
    path = shutil.which(name)
    return str(Path(path).absolute()) if path else name


def _interpreter() -> str:
    """The path of the Python interpreter. Without a PATH, uv would find none and download another."""
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


def _requirement() -> str:
    """The requirement that installs this Mulligan again with its extras, by its source or else by its version."""
    try:
        here = distribution(NAME)
    except PackageNotFoundError:
        return NAME
    name = NAME + (f"[{','.join(extras)}]" if (extras := _extras(here)) else "")
    source: dict[str, Any] = json.loads(here.read_text("direct_url.json") or "{}")
    if "url" not in source:
        return f"{name}=={here.version}"
    vcs = cast("dict[str, str]", source.get("vcs_info", {}))
    return f"{name} @ {vcs['vcs']}+{source['url']}@{vcs['commit_id']}" if vcs else f"{name} @ {source['url']}"


def _extras(here: Distribution) -> list[str]:
    """The extras whose requirements are all installed."""
    needed: dict[str, list[str]] = {}
    for line in here.requires or ():
        match = re.match(r"([\w.-]+).*\bextra == ['\"]([\w-]+)['\"]", line)
        if match and match[1] != NAME:  # not the extra `all`, which requires the other extras
            needed.setdefault(match[2], []).append(match[1])
    return sorted(extra for extra, names in needed.items() if all(map(_installed, names)))


def _installed(name: str) -> bool:
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False
