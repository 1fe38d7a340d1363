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

KEPT = 100_000
"""Characters of an answer that the record keeps; the model is shown far fewer."""
MCP = "mcp"

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_FOLDER = "works on the files of a workspace, and there is none: name a folder (workspace=)"

log = logging.getLogger("mulligan")


@dataclass(frozen=True)
class ConfiguredTools:
    """`Tools`: the plug-ins of `tools/`, the user's own, and MCP servers as "mcp:SERVER".

    tools, servers: the tables [tools] and [mcp] of mulligan.toml, see `check_tools`. root: where a server runs unless
    its table says `cwd`.
    """

    sandbox: Sandbox
    workspace: Workspace | None = None
    tools: Mapping[str, Json] = field(default_factory=dict[str, Json])
    servers: Mapping[str, Json] = field(default_factory=dict[str, Json])
    root: str = "."
    readable: tuple[str, ...] = ()

    @asynccontextmanager
    async def open(self, episode: Episode) -> AsyncGenerator[EpisodeToolbox]:
        box = EpisodeToolbox(self, episode)
        try:
            yield box
        finally:
            # In a task of its own, so that it comes to its end when this one is cancelled.
            await asyncio.shield(asyncio.create_task(box.close()))

    def made(self, source: str, folder: str) -> Toolset:
        """The toolset of this name. Raises `InvalidInput`."""
        spec = (
            _server(source, self.servers, self.root)
            if _is_server(source)
            else _plugin(source, self.tools, find("tools", source))
        )
        if needs_workspace(source):
            spec = replace(spec, settings={**spec.settings, "folder": folder})
        if source == "run_command" and self.readable:
            own = cast(Sequence[str], spec.settings.get("readable", ()))
            spec = replace(spec, settings={**spec.settings, "readable": [*own, *self.readable]})
        return build("tools", spec, {"sandbox": self.sandbox})


def check_tools(sources: Iterable[str], tools: Mapping[str, Json], servers: Mapping[str, Json]) -> None:
    """Checks the tools that a skill unlocks; starts nothing. Raises `InvalidInput` or `UnknownName`.

    tools: `http_hosts`, and settings of a tool in a table of its name. servers: a server's table by its name, as
    `tools/mcp.py` has it, and `seconds`.
    """
    for name, value in tools.items():
        if name != "http_hosts" and (name == MCP or name not in names("tools")):
            raise UnknownName("setting in [tools]", name, ["http_hosts", *(n for n in names("tools") if n != MCP)])
        if name != "http_hosts" and not isinstance(value, dict):
            raise InvalidInput(f"[tools.{name}] in mulligan.toml must be a table of settings, not {value!r}.")
    made = ConfiguredTools(cast(Sandbox, object()), None, tools, servers)  # no port is used before a first call
    for source in sources:
        if _is_server(source) or not is_own(source):
            made.made(source, os.sep)
        else:
            cls = examine("tools", source)
            folder = {"folder": os.sep} if "folder" in settings_of(cls) else {}
            checked(source, cls, {**_plugin(source, tools, cls).settings, **folder})


def check_packages(sources: Iterable[str]) -> None:
    """Raises `MissingExtra` for a tool whose packages are not installed: those that its class names in `packages`, each
    with the extra that brings it."""
    for source in sources:
        needed = getattr(find("tools", MCP if _is_server(source) else source), "packages", {})
        for package, extra in {**needed, "jsonschema": "models"}.items():
            require(f"The tool {source} needs {package}", package, extra)


def needs_workspace(source: str) -> bool:
    """Whether a tool works on files. Raises `UnknownName`."""
    return not _is_server(source) and "folder" in settings_of(find("tools", source))


def _plugin(source: str, tools: Mapping[str, Json], cls: type[Any]) -> Spec:
    own = cast(dict[str, Json], tools.get(source, {}))
    asks_hosts = "http_hosts" in tools and "hosts" in settings_of(cls)
    return Spec(source, {**({"hosts": tools["http_hosts"]} if asks_hosts else {}), **own})


def _server(source: str, servers: Mapping[str, Json], root: str) -> Spec:
    name = source.partition(":")[2]
    if not name:
        there = f"; available: {', '.join(sorted(servers))}" if servers else ""
        raise InvalidInput(f"{source!r} names no MCP server: write mcp:SERVER{there}.")
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
    """A `Toolbox` for one move of one episode. To be closed."""

    def __init__(self, tools: ConfiguredTools, episode: Episode) -> None:
        self._tools, self._episode = tools, episode
        self._sets: dict[str, Toolset] = {}
        self._offered: dict[str, dict[str, Tool]] = {}
        self._newest = newest_state(episode)
        self._here: str | None = None  # the state that the folder is in; None: not known

    async def offer(self, source: str) -> tuple[Tool, ...]:
        toolset = await self._toolset(source)
        try:
            tools = tuple(await toolset.offer())
        except (ToolError, asyncio.CancelledError):
            raise
        except Exception as error:
            raise _wrong(source, error) from error
        for tool in tools:
            if not _NAME.fullmatch(tool.name):
                raise ToolError(f"{source} offers a tool named {tool.name!r}, which models cannot call")
        self._offered[source] = {tool.name: tool for tool in tools}
        return tools

    async def call(self, source: str, tool: str, arguments: Mapping[str, Json]) -> ToolResult:
        try:
            if source not in self._offered:  # a resumed move: that it was offered comes from the record
                await self.offer(source)
            known = self._offered[source].get(tool)
            if known is None:
                raise ToolError(f"{source} no longer offers a tool {tool!r}")
            if wrong := await asyncio.to_thread(misfit, arguments, known.parameters):
                raise ToolError(f"the arguments of {tool} do not match its schema: {wrong}")
        except ToolError as error:
            return ToolResult(_kept(str(error)), failed=True)
        works = needs_workspace(source)
        if works:
            await self._bring()
        if known.changes:
            self._here = None
        with operation("tool", tool, content={"arguments": dict(arguments)}) as done:
            text, failed = await self._answer(source, tool, arguments)
            done.content["result"] = text
            done.error = "ToolError" if failed else ""
        if not (works and known.changes):
            return ToolResult(_kept(text), failed)
        return await self._saved(text, failed)

    async def check(self, action: str, tool: Tool, tools: Sequence[Tool], steps: Sequence[Step]) -> Check | None:
        return None

    def saw(self, result: ToolResult) -> None:
        self._newest = result.state or self._newest

    async def artifacts(self, trial: int) -> tuple[Artifact, ...]:
        place = await self._place()
        if place is None:
            return ()
        await self._bring()
        return (Artifact("git", self._newest or place.start, place.folder),)

    async def close(self) -> None:
        """Ends what the tools have started. What fails in that is logged."""
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
                place = await self._place() if needs_workspace(source) else None
                if place is None and needs_workspace(source):
                    raise ToolError(f"{source} {_NO_FOLDER}")
                self._sets[source] = self._tools.made(source, place.folder if place else "")
            except InvalidInput as error:
                raise ToolError(str(error)) from error
        return self._sets[source]

    async def _answer(self, source: str, tool: str, arguments: Mapping[str, Json]) -> tuple[str, bool]:
        """What the tool says, and whether that is an error."""
        try:
            return await self._sets[source].call(tool, arguments), False
        except ToolError as error:
            return str(error), True
        except Exception as error:
            return str(_wrong(source, error)), True

    async def _saved(self, text: str, failed: bool) -> ToolResult:
        """The result with the state that the call left; a call that failed may have changed files, too."""
        place = await self._place()
        assert place is not None
        trial = len(self._episode.trials) + 1
        state, notes = await place.save(trial, self._newest or place.start)
        text = _kept(text)
        if notes:  # the folder holds what the state does not
            text = "\n".join([text, *(f"[note: {note}]" for note in notes[:10])])
        else:
            self._here = state
        return ToolResult(text, failed, state)

    async def _place(self) -> Checkout | None:
        return await self._tools.workspace.open(self._episode) if self._tools.workspace else None

    async def _bring(self) -> None:
        """Brings the folder to the newest state. After a resume it may be behind, as calls are not repeated."""
        place = await self._place()
        assert place is not None
        state = self._newest or place.start
        if self._here != state:
            await place.reset(state)
            self._here = state


def misfit(arguments: Mapping[str, Json], schema: Json) -> str:
    """What is wrong with the arguments by this JSON schema, in one line; empty for nothing."""
    import jsonschema.exceptions
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    try:
        # A registry of its own: the default one would fetch what a schema refers to from the web.
        validator = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
        error = cast(Any, jsonschema.exceptions).best_match(validator.iter_errors(dict(arguments)))
    except Exception:  # a schema that is broken, or refers elsewhere: the tool judges
        return ""
    if error is None:
        return ""
    where = "".join(f"{part}: " for part in error.absolute_path)
    return f"{where}{error.message}"[:300]


def _is_server(source: str) -> bool:
    return source.partition(":")[0] == MCP


def _wrong(source: str, error: Exception) -> ToolError:
    """The error for the model. Errors of the store, a lease or the like are raised again instead."""
    if isinstance(error, InvalidInput | SandboxError):
        return ToolError(str(error))
    if isinstance(error, MulliganError):
        raise error
    return ToolError(f"{source} failed: {type(error).__name__}: {error}")


def _kept(text: str) -> str:
    """The text for the record: without lone surrogates, at most `KEPT` characters."""
    if len(text) > KEPT:
        text = f"{text[:KEPT]}\n[cut: {len(text) - KEPT:,} more characters]"
    return text.encode("utf-8", "replace").decode()
