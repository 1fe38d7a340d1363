"""Reads text files that users name. Errors say which file, and what to do."""

from __future__ import annotations

import stat
from pathlib import Path

from mulligan.core.errors import InvalidInput


def read_text(file: Path, name: str = "", *, newline: str | None = "") -> str:
    """Returns the text of a UTF-8 file without its byte order mark.

    Args:
        name: the file's name in errors; "" for its path.
        newline: as for `open`: "" keeps line endings, and None converts them to line feeds.

    Raises:
        InvalidInput: the file cannot be read, is not UTF-8, or is a device or pipe, which may never end.
    """
    try:
        if endless := _endless(file):
            raise InvalidInput(f"{name or file} is {endless}, which may never end: copy what you need to a file.")
        with file.open(encoding="utf-8-sig", newline=newline) as opened:
            return opened.read()
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{name or file}:{line}: not valid UTF-8 (byte {error.start}): save it as UTF-8.") from error
    except OSError as error:
        raise InvalidInput(f"{name or file} cannot be read: {error.strerror or error}.") from error


def _endless(file: Path) -> str:
    """Returns "a device" or "a pipe" if reading the file may never end. A shell's `<(command)` and /dev/stdin end."""
    mode = file.stat().st_mode
    if stat.S_ISCHR(mode):
        return "" if str(file) in ("/dev/null", "/dev/stdin", "/dev/tty") else "a device"
    return "a pipe" if stat.S_ISFIFO(mode) and file.parts[1:2] not in (("dev",), ("proc",)) else ""
