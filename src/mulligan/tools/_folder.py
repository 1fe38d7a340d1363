"""Shared by tools: a toolset of one tool, and access to files by relative path, only inside the workspace.

The functions that open files block, so call them in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from mulligan.core.errors import ToolError
from mulligan.core.questions import Tool
from mulligan.core.records import Json

OWN = frozenset({".git", ".mulligan"})
"""Folders of git and of Mulligan. Files below them, anywhere in the workspace, are closed to the agent."""

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def located(folder: str, path: str) -> tuple[str, ...]:
    """The parts of the path below the folder, with links resolved; empty for the folder itself.

    Raises `ToolError` if the path leads out of the folder, or into a folder of git or Mulligan.
    """
    if os.path.isabs(path):
        raise ToolError(
            f"{path!r} is an absolute path: use a path relative to the workspace's folder, such as src/main.py"
        )
    root = os.path.realpath(folder)
    try:
        real = os.path.realpath(os.path.join(root, path))
    except ValueError:  # a zero byte, half a surrogate pair
        raise ToolError(f"{path!r} is not a valid path") from None
    except OSError:  # a part of it changed while it was looked at
        raise ToolError(f"{path!r} changed in the meantime: try again") from None
    if os.path.commonpath((root, real)) != root:
        raise ToolError(f"{path!r} leads out of the workspace: only files in it can be reached")
    parts = tuple(part for part in os.path.relpath(real, root).split(os.sep) if part != ".")
    if own := next((part for part in parts if part.casefold() in OWN), None):
        raise ToolError(f"{path!r}: {own} is not part of the task")
    return parts


@contextmanager
def opened(folder: str, parts: Sequence[str], *, make: bool = False) -> Generator[int]:
    """Opens the folder with these parts, and yields its descriptor.

    make: whether missing folders are created. Raises `OSError`, also if a part has become a link since `located`.
    """
    descriptor = os.open(os.path.realpath(folder), _OPEN)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            inner = os.open(part, _OPEN, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def tool_errors(path: str) -> Generator[None]:
    """Turns an `OSError` in the block into a `ToolError` that says what to do."""
    try:
        yield
    except FileNotFoundError:
        raise ToolError(f"there is no {path!r}: call list_files to see the files") from None
    except NotADirectoryError:
        raise ToolError(f"{path!r}: the part before a / is not a folder") from None
    except IsADirectoryError:
        raise ToolError(f"{path!r} is a folder, not a file") from None
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else None
        raise ToolError(f"{path!r}: {said or error}") from None


def printable(name: str) -> str:
    """The name of a file as valid Unicode."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class OneTool:
    """A toolset of one tool without resources to close. A subclass sets `_tool` and defines `call`."""

    _tool: Tool

    async def offer(self) -> Sequence[Tool]:
        return (self._tool,)

    async def close(self) -> None:
        pass


def parameters(*, optional: Sequence[str] = (), **properties: Json) -> Json:
    """The JSON Schema of a tool's arguments: these and no others, each required unless it is among the optional."""
    required = [name for name in properties if name not in optional]
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}
