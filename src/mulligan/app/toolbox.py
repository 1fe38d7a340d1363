"""The tools that a step may call: found by name, opened for one move, on the episode's workspace."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mulligan.app.plugin_files import is_own
from mulligan.app.plugins import build, checked, examine, find, names, settings_of
from mulligan.core.episode import newest_state
from mulligan.core.errors import InvalidInput, MulliganError, SandboxError, ToolError, UnknownName
from mulligan.core.extras import require
from mulligan.core.operations import operation
from mulligan.core.protocols import Checkout, Sandbox, ToolResult, Toolset, Workspace
from mulligan.core.questions import Tool
from mulligan.core.records import Artifact, Check, Episode, Json, Spec, Step

MAX_ANSWER = 100_000
"""Characters of an answer that the record keeps; the model is shown far fewer."""
MAX_NOTES = 10
"""Notes on unsaved files that an answer ends with."""
MCP = "mcp"

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_SANDBOX = cast(Sandbox, object())
"""Enough to check settings: a tool uses no port before its first call."""
_NO_FOLDER = "works on a workspace's files, but there is no workspace: specify a folder (workspace=)"

log = logging.getLogger("mulligan")


@dataclass(frozen=True)
class ConfiguredTools:
    """`Tools`: the plug-ins of `tools/`, the user's own, and MCP servers as "mcp:SERVER".

    Attributes:
        tools, servers: the tables [tools] and [mcp] of mulligan.toml, see `check_tools`.
        root: the folder in which a server runs, unless its table has `cwd`.
        readable: folders that commands may read besides the workspace.
    """

    sandbox: Sandbox
    workspace: Workspace | None = None
    tools: Mapping[str, Json] = field(default_factory=dict[str, Json])
    servers: Mapping[str, Json] = field(default_factory=dict[str, Json])
    root: str = "."
    readable: tuple[str, ...] = ()

    @asynccontextmanager
    async def open(self, episode: Episode) -> AsyncGenerator[EpisodeToolbox]:
        toolbox = EpisodeToolbox(self, episode)
        try:
            yield toolbox
        finally:
            # In a separate task, which finishes even if this one is cancelled.
            await asyncio.shield(asyncio.create_task(toolbox.close()))

    def build(self, source: str, folder: str) -> Toolset:
        """Builds the toolset of this name. Raises `InvalidInput`."""
        spec = (
            _server(source, self.servers, self.root)
            if is_server(source)
            else _plugin(source, self.tools, find("tools", source))
        )
        if needs_workspace(source):
            spec = replace(spec, settings={**spec.settings, "folder": folder})
        if source == "run_command" and self.readable:
            configured = cast(Sequence[str], spec.settings.get("readable", ()))
            spec = replace(spec, settings={**spec.settings, "readable": [*configured, *self.readable]})
        return build("tools", spec, {"sandbox": self.sandbox})


def check_tools(sources: Iterable[str], tools: Mapping[str, Json], servers: Mapping[str, Json]) -> None:
    """Checks the tools that a skill unlocks, without starting them. Raises `InvalidInput` or `UnknownName`.

    tools: `http_hosts`, and a table of settings for each tool. servers: a table for each server, with the settings of
    `tools/mcp.py` and `seconds`.
    """
    for name, value in tools.items():
        if name != "http_hosts" and (name == MCP or name not in names("tools")):
            raise UnknownName("setting in [tools]", name, ["http_hosts", *(n for n in names("tools") if n != MCP)])
        if name != "http_hosts" and not isinstance(value, dict):
            raise InvalidInput(f"[tools.{name}] in mulligan.toml must be a table of settings, not {value!r}.")
    configured = ConfiguredTools(_NO_SANDBOX, None, tools, servers)
    for source in sources:
        if is_server(source) or not is_own(source):
            configured.build(source, os.sep)
        else:
            cls = examine("tools", source)
            folder = {"folder": os.sep} if "folder" in settings_of(cls) else {}
            checked(source, cls, {**_plugin(source, tools, cls).settings, **folder})


def check_packages(sources: Iterable[str]) -> None:
    """Raises `MissingExtra` for a tool whose packages are not installed. Its class lists them in `packages`, each with
    the extra that contains it."""
    for source in sources:
        needed = getattr(find("tools", MCP if is_server(source) else source), "packages", {})
        for package, extra in {**needed, "jsonschema": "models"}.items():
            require(f"The tool {source} needs {package}", package, extra)


def needs_workspace(source: str) -> bool:
    """Whether a tool works on files. Raises `UnknownName`."""
    return not is_server(source) and "folder" in settings_of(find("tools", source))


def _plugin(source: str, tools: Mapping[str, Json], cls: type[Any]) -> Spec:
    settings: dict[str, Json] = {}
    if "http_hosts" in tools and "hosts" in settings_of(cls):
        settings["hosts"] = tools["http_hosts"]
    return Spec(source, settings | cast(dict[str, Json], tools.get(source, {})))


def _server(source: str, servers: Mapping[str, Json], root: str) -> Spec:
    name = source.partition(":")[2]
    if not name:
        available = f"; available: {', '.join(sorted(servers))}" if servers else ""
        raise InvalidInput(f"{source!r} does not name an MCP server: write mcp:SERVER{available}.")
    if name not in servers:
        raise UnknownName("MCP server", name, servers, "Define a server in mulligan.toml, in a table [mcp.NAME].")
    table: Json = servers[name]
    if not isinstance(table, dict):
        raise InvalidInput(f"[mcp.{name}] in mulligan.toml must be a table with a command or a url, not {table!r}.")
    known = dict(cast(dict[str, Json], table))
    seconds = {"seconds": known.pop("seconds")} if "seconds" in known else {}
    if "command" in known and isinstance(known.get("cwd", ""), str):
        known["cwd"] = os.path.join(os.path.abspath(root), known.get("cwd", ""))
    return Spec(MCP, {"server": known, "name": name, **seconds})


class EpisodeToolbox:
    """A `Toolbox` for one move of one episode. It must be closed."""

    def __init__(self, tools: ConfiguredTools, episode: Episode) -> None:
        self._tools, self._episode = tools, episode
        self._sets: dict[str, Toolset] = {}
        self._offered: dict[str, dict[str, Tool]] = {}
        self._newest = newest_state(episode)
        self._folder_state: str | None = None  # None: unknown

    async def offer(self, source: str) -> tuple[Tool, ...]:
        toolset = await self._toolset(source)
        try:
            tools = tuple(await toolset.offer())
        except (ToolError, asyncio.CancelledError):
            raise
        except Exception as error:
            raise _tool_error(source, error) from error
        for tool in tools:
            if not _NAME.fullmatch(tool.name):
                raise ToolError(f"{source} offers a tool named {tool.name!r}, which models cannot call")
        self._offered[source] = {tool.name: tool for tool in tools}
        return tools

    async def call(self, source: str, tool: str, arguments: Mapping[str, Json]) -> ToolResult:
        try:
            if source not in self._offered:  # on a resume: the offer came from the record
                await self.offer(source)
            offered = self._offered[source].get(tool)
            if offered is None:
                raise ToolError(f"{source} no longer offers a tool {tool!r}")
            if problem := await asyncio.to_thread(misfit, arguments, offered.parameters):
                raise ToolError(f"the arguments of {tool} do not match its schema: {problem}")
        except ToolError as error:
            return ToolResult(_recorded(str(error)), failed=True)
        checkout = await self._newest_checkout() if needs_workspace(source) else None
        if offered.changes:
            self._folder_state = None
        with operation("tool", tool, content={"arguments": dict(arguments)}) as done:
            text, failed = await self._answer(source, tool, arguments)
            done.content["result"] = text
            done.error = "ToolError" if failed else ""
        if checkout is None or not offered.changes:
            return ToolResult(_recorded(text), failed)
        return await self._save(checkout, text, failed)

    async def check(self, action: str, tool: Tool, tools: Sequence[Tool], steps: Sequence[Step]) -> Check | None:
        """Never objects: with a foresight, `app.foresight` wraps this toolbox."""
        return None

    def saw(self, result: ToolResult) -> None:
        self._newest = result.state or self._newest

    async def artifacts(self, trial: int) -> tuple[Artifact, ...]:
        checkout = await self._newest_checkout()
        return (Artifact("git", self._newest or checkout.start, checkout.folder),) if checkout else ()

    async def close(self) -> None:
        """Closes the tools. Errors are logged."""
        while self._sets:
            source, toolset = self._sets.popitem()
            try:
                await toolset.close()
            except Exception:
                log.exception("the tool %s could not be closed", source)

    async def _toolset(self, source: str) -> Toolset:
        if source not in self._sets:
            check_packages([source])
            try:
                checkout = await self._checkout() if needs_workspace(source) else None
                if checkout is None and needs_workspace(source):
                    raise ToolError(f"{source} {_NO_FOLDER}")
                self._sets[source] = self._tools.build(source, checkout.folder if checkout else "")
            except InvalidInput as error:
                raise ToolError(str(error)) from error
        return self._sets[source]

    async def _answer(self, source: str, tool: str, arguments: Mapping[str, Json]) -> tuple[str, bool]:
        """The tool's answer, and whether it is an error."""
        try:
            return await self._sets[source].call(tool, arguments), False
        except ToolError as error:
            return str(error), True
        except Exception as error:
            return str(_tool_error(source, error)), True

    async def _save(self, checkout: Checkout, text: str, failed: bool) -> ToolResult:
        """The result of a call, with the state of the folder after it. A failed call may have changed files, too."""
        trial = len(self._episode.trials) + 1
        state, notes = await checkout.save(trial, self._newest or checkout.start)
        if not notes:  # else the folder has files that are not in the state
            self._folder_state = state
        lines = [_recorded(text), *(f"[note: {note}]" for note in notes[:MAX_NOTES])]
        return ToolResult("\n".join(lines), failed, state)

    async def _checkout(self) -> Checkout | None:
        return await self._tools.workspace.open(self._episode) if self._tools.workspace else None

    async def _newest_checkout(self) -> Checkout | None:
        """The folder in the newest state. After a resume it may be in an older one, because calls are not repeated."""
        checkout = await self._checkout()
        if checkout is not None:
            state = self._newest or checkout.start
            if self._folder_state != state:
                await checkout.reset(state)
                self._folder_state = state
        return checkout


def misfit(arguments: Mapping[str, Json], schema: Json) -> str:
    """The first mistake in the arguments by this JSON schema, in one line; "" if there is none."""
    import jsonschema.exceptions
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    try:
        # An empty registry: the default one would fetch references from the web.
        validator = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
        error = cast(Any, jsonschema.exceptions).best_match(validator.iter_errors(dict(arguments)))
    except Exception:  # a broken schema, or one with references: the tool itself checks
        return ""
    if error is None:
        return ""
    where = "".join(f"{part}: " for part in error.absolute_path)
    return f"{where}{error.message}"[:300]


def is_server(source: str) -> bool:
    """Whether a tool is an MCP server, such as `mcp:files`."""
    return source.partition(":")[0] == MCP


def _tool_error(source: str, error: Exception) -> ToolError:
    """The error that the model is shown. Raises the error itself if it is not the tool's, such as a `StoreError`."""
    if isinstance(error, InvalidInput | SandboxError):
        return ToolError(str(error))
    if isinstance(error, MulliganError):
        raise error
    return ToolError(f"{source} failed: {type(error).__name__}: {error}")


def _recorded(text: str) -> str:
    """The text for the record: without lone surrogates, and cut after `MAX_ANSWER` characters."""
    if len(text) > MAX_ANSWER:
        text = f"{text[:MAX_ANSWER]}\n[cut: {len(text) - MAX_ANSWER:,} more characters]"
    return text.encode("utf-8", "replace").decode()
