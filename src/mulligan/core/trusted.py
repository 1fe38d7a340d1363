"""What the user trusts on this machine: a small file in MULLIGAN_HOME for each folder, which no repository can bring.

There are two kinds of notes: `content`, the hash of what a project may run or redirect (`mulligan trust`), and `bank`,
for a folder `.mulligan` whose store was made here or was trusted.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from mulligan.core.home import home

BANK = ".mulligan"
"""The folder beside a project file that holds the project's store."""

HOME = "MULLIGAN_TRUST_HOME"
"""The environment variable with the home of the notes. Set if a `.env` names another MULLIGAN_HOME."""

_OWNER = "owner"

Kind: TypeAlias = Literal["content", "bank"]


def noted(kind: Kind, folder: Path) -> str:
    """The text of the note about this folder (by its real path); "" if there is none."""
    try:
        return _file(kind, folder).read_text("utf-8").partition("\n")[0]
    except (OSError, UnicodeDecodeError):
        return ""


def note(kind: Kind, folder: Path, text: str) -> None:
    """Write the note atomically. Raises `OSError`."""
    file = _file(kind, folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    temporary.write_text(f"{text}\n{os.fsencode(os.path.realpath(folder))!r}\n", "utf-8")
    os.replace(temporary, file)


def note_bank(folder: Path) -> None:
    """Note that the bank in this folder is the user's own. Raises `OSError`.

    The note holds a random word that a file beside the bank repeats: another repository in the same place lacks it.
    """
    word = os.urandom(12).hex()
    note("bank", folder, word)
    with suppress(FileNotFoundError):  # it may be a stranger's link to another file
        (folder / _OWNER).unlink()
    with (folder / _OWNER).open("x", encoding="utf-8") as file:
        file.write(word)


def is_noted_bank(folder: Path) -> bool:
    """Whether the bank in this folder is the user's own."""
    word = noted("bank", folder)
    try:
        return bool(word) and (folder / _OWNER).read_bytes() == word.encode()
    except OSError:
        return False


def note_store(file: Path) -> None:
    """Note a store that was just made, if it is the bank of a project. Without a writable home it stays unnoted."""
    if file.parent.name == BANK:
        with suppress(OSError):
            note_bank(file.parent)


def forget(kind: Kind, folder: Path) -> bool:
    """Remove the note. Returns whether there was one."""
    with suppress(FileNotFoundError):
        _file(kind, folder).unlink()
        return True
    return False


def is_foreign(path: str | os.PathLike[str]) -> bool:
    """Whether the path, or what it links to, belongs to a user who is neither this one nor root."""
    if not hasattr(os, "geteuid"):
        return False
    try:
        owners = {os.lstat(path).st_uid, os.stat(path).st_uid}
    except OSError:  # gone, or a link that leads nowhere: nothing to read
        return False
    return not owners <= {os.geteuid(), 0}


def _file(kind: Kind, folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return Path(os.environ.get(HOME) or home()) / "trust" / f"{name}.{kind}"
