"""The seams of tools: what a plug-in of `tools/` is, and what a step that calls tools is handed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mulligan.core.questions import Tool
from mulligan.core.records import Artifact, Episode, Json


@runtime_checkable
class Toolset(Protocol):
    """One tool, or those of one server: a plug-in of `tools/`. Made afresh for each drive, used by one task at a time.

    Its settings and ports are keyword parameters, like those of a role; `folder` (an absolute path) is the one that it
    may work in, and is there for the tools that ask for it.
    """

    async def offer(self) -> Sequence[Tool]:
        """What can be called. Raises `ToolError` when that cannot be found out, such as for a server that is down."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> str:
        """What the tool answers. Raises `ToolError`, whose message goes to the model."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class ToolResult:
    """What a call came to. `failed`: the text is an error. `state`: the workspace's after the call, if it has one."""

    text: str
    failed: bool = False
    state: str | None = None


@runtime_checkable
class Toolbox(Protocol):
    """The tools of one move, opened for it. They share one workspace, where there is one."""

    async def offer(self, source: str) -> Sequence[Tool]:
        """What the toolset of this name offers. Raises `ToolError` when it cannot be reached."""
        ...

    async def call(self, source: str, tool: str, arguments: Mapping[str, Json]) -> ToolResult:
        """Checks the arguments first. What a tool or its caller did wrong is a failed result and never raised."""
        ...

    def saw(self, result: ToolResult) -> None:
        """Is told of each result, new or recorded, so that the workspace is in the right state for the next call."""
        ...

    async def artifacts(self, trial: int) -> tuple[Artifact, ...]:
        """The state of the workspace as the artifact of this trial; nothing where there is no workspace."""
        ...


@runtime_checkable
class Tools(Protocol):
    """The way to tools by name, such as "read_file" or "mcp:SERVER"."""

    def open(self, episode: Episode) -> AbstractAsyncContextManager[Toolbox]: ...
