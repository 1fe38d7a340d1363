"""What tools share: a toolset of one tool, and opening files of the workspace by relative path, never outside it.

The functions that open files block: call them in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from mulligan.core.errors import ToolError
from mulligan.core.questions import Tool
from mulligan.core.records import Json

OWN = frozenset({".git", ".mulligan"})
"""Names of git and of Mulligan, anywhere in a path: what is below them is not the agent's."""

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def located(folder: str, path: str) -> tuple[str, ...]:
    """The parts of the path below the folder, links followed; none for the folder itself.

    Raises `ToolError` for a path that leads out of the folder, or to what is git's or Mulligan's.
    """
    if os.path.isabs(path):
        raise ToolError(
            f"{path!r} is an absolute path: give it relative to the workspace's folder, such as src/main.py"
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
    """A descriptor of the folder with these parts, none of which may have become a link since they were `located`.

    make: whether missing folders are created. Raises `OSError`.
    """
    here = os.open(os.path.realpath(folder), _OPEN)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
            inner = os.open(part, _OPEN, dir_fd=here)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


@contextmanager
def tool_errors(path: str) -> Generator[None]:
    """Raises a `ToolError` that says what to do in place of an `OSError`."""
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
    """The name as valid Unicode, for the record."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class OneTool:
    """A toolset of one tool, which holds nothing open. A subclass sets `_tool` and has `call`."""

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
