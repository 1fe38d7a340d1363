"""Writes a text file of the workspace, whole or not at all."""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

from mulligan.core.errors import ToolError
from mulligan.core.questions import Tool
from mulligan.core.records import Json
from mulligan.text.plain import count
from mulligan.tools._folder import OneTool, located, opened, parameters, tool_errors


class WriteFile(OneTool):
    """Writes a file of the workspace."""

    def __init__(self, *, folder: str, size: Annotated[int, "Maximum file size, in bytes."] = 2_000_000) -> None:
        self._folder, self._size = folder, size
        path = {"type": "string", "description": "From the workspace's folder on, such as src/main.py."}
        content = {"type": "string", "description": "The whole text of the file."}
        about = "Write a text file of the workspace: what it held is replaced, folders that are missing are made."
        self._tool = Tool("write_file", about, parameters(path=path, content=content), repeatable=True, changes=True)

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> str:
        given: Mapping[str, Any] = arguments
        return await asyncio.to_thread(self._write, given["path"], given["content"])

    def _write(self, path: str, content: str) -> str:
        parts = located(self._folder, path)
        if not parts or path.endswith("/"):
            raise ToolError(f"{path!r} is a folder: name a file")
        try:
            data = content.encode()
        except UnicodeEncodeError as error:
            raise ToolError(f"the content cannot be written as UTF-8 (character {error.start})") from None
        if len(data) > self._size:
            raise ToolError(f"the content has {len(data):,} bytes, more than the {self._size:,} that are written")
        with tool_errors(path), opened(self._folder, parts[:-1], make=True) as folder:
            before = _before(folder, parts[-1], path)
            _replace(folder, parts[-1], data, before)
        return f"{path} was {'written' if before is None else 'replaced'}: {count(len(data), 'byte')}."


def _before(folder: int, name: str, path: str) -> int | None:
    """The mode of the existing file; None if there is none."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode):
        raise ToolError(f"{path!r} is not a regular file; it was not changed")
    return stat.S_IMODE(mode)


def _replace(folder: int, name: str, data: bytes, mode: int | None) -> None:
    """Writes to a temporary name and renames it, so that no reader sees half a file."""
    temporary = f".mulligan-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
