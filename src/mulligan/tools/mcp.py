"""The tools of one MCP server, over stdio or streamable HTTP; connected at the first use."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from mulligan.core.errors import InvalidInput, ToolError, UnknownName
from mulligan.core.questions import Tool
from mulligan.core.records import Json
from mulligan.text.known_secrets import KnownSecrets
from mulligan.text.plain import count
from mulligan.text.secret_rules import secrets_of
from mulligan.tools._mcp_connection import Connection, Tail, over_http, over_stdio

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client

NAME = 64
"""Characters that a tool's name may have with all providers."""
PAGES = 50
"""Pages of a server's list of tools that are read."""

_LIST, _TABLE = "a list of strings", "a table of strings"
_KEYS = {"command": _LIST, "env": _TABLE, "cwd": "text", "url": "text", "headers": _TABLE}
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Mcp:
    """The tools of an MCP server. It runs as by hand, in no sandbox.

    A server that died or did not answer is started again by the next call. Raises `InvalidInput` for a table that is
    not valid.

    Args:
        server: {command: [program, arguments…], env: {…}, cwd: …} or {url: …, headers: {…}}. `${NAME}` in env and
            headers is taken from the environment, of which a server gets little more than PATH and HOME.
        name: the user's name of the server; its tools are called NAME_TOOL.
        seconds: for connecting, and for each call.
    """

    packages: Mapping[str, str] = MappingProxyType({"mcp": "serve"})

    def __init__(self, *, server: Mapping[str, Json], name: str, seconds: float = 60) -> None:
        self._where = f"The MCP server {name!r}"
        self._server = _checked(server, self._where)
        (self._env, filled), (self._headers, sent) = (
            _filled(self._server.get(key, {}), self._where) for key in ("env", "headers")
        )
        authorized = [text.rpartition(" ")[2] for name, text in self._headers.items() if "auth" in name.lower()]
        self._secrets = KnownSecrets([*filled, *sent, *authorized, *secrets_of(self._env), *secrets_of(self._headers)])
        self._name, self._seconds = name, seconds
        self._called: dict[str, str] = {}  # our name of each tool: the server's own
        self._connection: Connection | None = None
        self._said = Tail()

    async def offer(self) -> Sequence[Tool]:
        listed: list[mcp_types.Tool] = []
        cursor: str | None = None
        for _ in range(PAGES):
            async with self._asked("did not list its tools") as client:
                page = await client.list_tools(cursor=cursor)
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
        self._called.clear()
        return [self._tool(tool) for tool in listed]

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> str:
        if tool not in self._called:
            await self.offer()
        if tool not in self._called:
            raise ToolError(f"the MCP server {self._name} has no tool {tool!r}")
        async with self._asked(f"failed in {tool}") as client:
            result = await client.call_tool(self._called[tool], dict(arguments))
        text = "\n".join(_shown(block) for block in result.content)
        if not text and result.structured_content is not None:
            text = json.dumps(result.structured_content, ensure_ascii=False)
        text = self._secrets.mask(text)  # some servers echo what they were sent
        if result.is_error:
            raise ToolError(text or f"{tool} failed and said nothing")
        return text or "(an empty answer)"

    async def close(self) -> None:
        if connection := self._connection:
            self._connection = None
            await connection.close()

    def _tool(self, tool: mcp_types.Tool) -> Tool:
        full = re.sub(r"[^A-Za-z0-9_-]", "_", f"{self._name}_{tool.name}")
        if len(full) > NAME or full in self._called:
            full = f"{full[: NAME - 7]}_{sha256(tool.name.encode()).hexdigest()[:6]}"
        self._called[full] = tool.name
        hints = tool.annotations
        repeatable = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
        critical = hints is not None and bool(hints.destructive_hint) and not hints.read_only_hint
        schema = {**tool.input_schema, "type": "object"}
        about = self._secrets.mask(tool.description or tool.title or tool.name)
        return Tool(full, about, self._secrets.mask_json(schema), repeatable, critical=critical)

    @asynccontextmanager
    async def _asked(self, failed: str) -> AsyncGenerator[Client]:
        """The client, for one request. Raises `ToolError`; the connection is closed unless the server itself reported
        the error."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        late = f"it did not answer within {count(self._seconds, 'second')}"
        try:
            async with asyncio.timeout(self._seconds):
                yield await self._connected().client()
            return
        except TimeoutError:
            why = late
        except MCPError as error:
            broken = {CONNECTION_CLOSED: "it ended, or hung up", REQUEST_TIMEOUT: late}
            why = broken.get(error.code, error.message)
            if error.code not in broken:  # from connecting, one comes in a group
                raise self._failure(f"{failed}: {why}") from None
        except Exception as error:
            why = _innermost(error)
        await self.close()  # only now all has been read that it said
        said = [line[:300] for line in self._said.lines[-10:]]
        raise self._failure("\n".join([f"{failed}: {why}", *(said and ["It said:", *said])]))

    def _failure(self, why: str) -> ToolError:
        return ToolError(self._secrets.mask(f"the MCP server {self._name} {why}"))

    def _connected(self) -> Connection:
        if self._connection is None:
            self._said = Tail()
            if "url" in self._server:
                transport = over_http(self._server["url"], self._headers, self._seconds, self._said)
            else:
                transport = over_stdio(self._server["command"], self._env, self._server.get("cwd"), self._said)
            self._connection = Connection(transport, self._seconds)
        return self._connection


def _checked(server: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The table itself. Raises `InvalidInput` unless it is that of a server."""
    if ("command" in server) == ("url" in server):
        raise InvalidInput(f'{where} needs either a command, such as ["npx", "-y", "some-server"], or a url.')
    for key, value in server.items():
        if key not in _KEYS:
            raise UnknownName(f"key of {where[0].lower()}{where[1:]}", key, _KEYS)
        if not _fits(value, _KEYS[key]):
            raise InvalidInput(f"{where}: {key} must be {_KEYS[key]}, not {value!r}.")
    if "url" in server and not server["url"].startswith(("http://", "https://")):
        raise InvalidInput(f"{where}: url must begin with http:// or https://, not {server['url']!r}.")
    return server


def _fits(value: Any, kind: str) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == _LIST:
        parts = cast(list[Any], value) if isinstance(value, list) else []
        return bool(parts) and all(isinstance(one, str) for one in parts)
    return isinstance(value, dict) and all(isinstance(one, str) for one in cast(dict[str, Any], value).values())


def _filled(table: Mapping[str, str], where: str) -> tuple[dict[str, str], list[str]]:
    """The texts with each ${NAME} replaced, and the values that were inserted. Raises `InvalidInput` for a variable
    that is not set."""
    values: list[str] = []

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ:
            raise InvalidInput(f"{where} needs {found[0]}, which is not set: set it in .env or in the environment.")
        values.append(os.environ[found[1]])
        return values[-1]

    return {key: _VARIABLE.sub(value, text) for key, text in table.items()}, values


def _shown(block: mcp_types.ContentBlock) -> str:
    """The text of a block; for any other content, its kind."""
    match block.type:
        case "text":
            return block.text
        case "resource":
            text = getattr(block.resource, "text", None)
            return text if isinstance(text, str) else f"[a resource that is not text:  {block.resource.uri}]"
        case "resource_link":
            return f"[a link to {block.uri}]"
        case kind:
            return f"[{kind}, which is not text: {block.mime_type}]"


def _innermost(error: BaseException) -> str:
    """The message of the first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast(BaseExceptionGroup[BaseException], error).exceptions[0]
    return str(error) or type(error).__name__
