"""Lists the files of the workspace; of too many, those nearest to the top."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Mapping
from typing import Annotated, Any

from mulligan.core.questions import Tool
from mulligan.core.records import Json
from mulligan.tools._folder import OWN, OneTool, located, opened, parameters, printable, tool_errors


class ListFiles(OneTool):
    """Lists files of the workspace. Links are named and not followed; what is git's or Mulligan's is left out."""

    def __init__(
        self, *, folder: str, most: Annotated[int, "Maximum number of files that the tool lists."] = 400
    ) -> None:
        self._folder, self._most = folder, most
        path = {"type": "string", "description": "The folder to look in; left out: the whole workspace."}
        about = "List the files of the workspace, or of a folder in it, with those in the folders below."
        self._tool = Tool("list_files", about, parameters(path=path, optional=["path"]), repeatable=True)

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> str:
        given: Mapping[str, Any] = arguments
        return await asyncio.to_thread(self._list, given.get("path", "."))

    def _list(self, path: str) -> str:
        top = located(self._folder, path)
        found: list[str] = []
        waiting = deque([top])
        while waiting and len(found) <= self._most:
            parts = waiting.popleft()
            try:
                with opened(self._folder, parts) as folder, os.scandir(folder) as entries:
                    inside = sorted(
                        (entry.name, *_kind(entry)) for entry in entries if entry.name.casefold() not in OWN
                    )
            except OSError:
                if parts != top:  # gone or closed since its name was read
                    continue
                with tool_errors(path):
                    raise
            found += [printable("/".join((*parts, name))) + mark for name, mark, _ in inside]
            waiting.extend((*parts, name) for name, _, goes_on in inside if goes_on)
        if not found:
            return "(no files)"
        listed = sorted(found[: self._most])
        if len(found) > self._most or waiting:
            listed.append(f"[cut: more than {self._most} names; look into one folder with path]")
        return "\n".join(listed)


def _kind(entry: os.DirEntry[str]) -> tuple[str, bool]:
    """The mark behind a name, and whether it is a folder to list too."""
    if entry.is_symlink():
        return " (a link)", False
    return ("/", True) if entry.is_dir() else ("", False)
