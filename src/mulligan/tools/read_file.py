"""Reads a text file of the workspace, a long one in parts."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Mapping
from typing import Annotated, Any

from mulligan.core.errors import ToolError
from mulligan.core.questions import Tool
from mulligan.core.records import Json
from mulligan.text.plain import count
from mulligan.tools._folder import OneTool, located, opened, parameters, tool_errors

SHOWN = 11_500
"""Characters of one answer. With the note of what is left it stays below what a step shows a model."""


class ReadFile(OneTool):
    """Reads a file of the workspace."""

    def __init__(
        self,
        *,
        folder: str,
        size: Annotated[int, "Maximum file size, in bytes. Larger files are refused."] = 2_000_000,
    ) -> None:
        self._folder, self._size = folder, size
        path = {"type": "string", "description": "From the workspace's folder on, such as src/main.py."}
        line = {"type": "integer", "minimum": 1, "description": "The line to begin with; left out: the first."}
        about = "Read a text file of the workspace. A long file comes in parts: read on with `line`."
        schema = parameters(path=path, line=line, optional=["line"])
        self._tool = Tool("read_file", about, schema, repeatable=True)

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> str:
        given: Mapping[str, Any] = arguments
        text = await asyncio.to_thread(self._read, given["path"])
        return _part(text, int(given.get("line", 1))) if text else "(the file is empty)"

    def _read(self, path: str) -> str:
        parts = located(self._folder, path)
        if not parts:
            raise ToolError(f"{path!r} is a folder: call list_files to see what is in it")
        with tool_errors(path), opened(self._folder, parts[:-1]) as folder:
            # NONBLOCK: a pipe without a writer would hold us up.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(parts[-1], flags, dir_fd=folder)
            with os.fdopen(file, "rb") as source:
                about = os.fstat(file)
                if stat.S_ISDIR(about.st_mode):
                    raise ToolError(f"{path!r} is a folder: call list_files to see what is in it")
                if not stat.S_ISREG(about.st_mode):
                    raise ToolError(f"{path!r} is not a regular file")
                if about.st_size > self._size:
                    raise ToolError(f"{path!r} has {about.st_size:,} bytes, more than the {self._size:,} that are read")
                data = source.read(self._size)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ToolError(f"{path!r} is not valid UTF-8 (byte {error.start})") from None
        if "\0" in text:
            raise ToolError(f"{path!r} is a binary file (it contains zero bytes)")
        return text


def _part(text: str, first: int) -> str:
    """As many lines from `first` on as fit, and where to continue."""
    lines = text.removesuffix("\n").split("\n")
    if first > len(lines):
        raise ToolError(f"the file has only {count(len(lines), 'line')}")
    last, size = first, len(lines[first - 1])
    while last < len(lines) and size + len(lines[last]) < SHOWN:
        size += len(lines[last]) + 1
        last += 1
    part = "\n".join(lines[first - 1 : last])
    notes: list[str] = []
    if len(part) > SHOWN:
        notes.append(f"line {first} is cut: {len(part) - SHOWN:,} more characters")
    if last < len(lines):
        notes.append(f"lines {first} to {last} of {len(lines)}; read on with line={last + 1}")
    if notes:
        return f"{part[:SHOWN]}\n[{'; '.join(notes)}]"
    return text if first == 1 else part
