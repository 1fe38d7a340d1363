"""Writes new projects, agents and skills that work without an edit, and lists the agents that ship with Mulligan.

No existing file is overwritten. Either all files are written, or none and an error says why.
"""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mulligan.core.errors import InvalidInput, UnknownName

KINDS = ("reflexion", "react", "oneshot", "skill")

_HERE = Path(__file__).parent
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST = 64
_IGNORED = (".env", ".mulligan/")


def builtin_agents() -> dict[str, Path]:
    """The folders of the agents that ship with Mulligan, by name."""
    return {folder.name: folder for folder in sorted((_HERE / "builtin").iterdir()) if (folder / "AGENT.md").is_file()}


def init(folder: Path, name: str) -> list[Path]:
    """Creates a project in `folder`: mulligan.toml, agents/, .env.example and .gitignore. Returns the changed files.

    A .gitignore gets the lines that it lacks; an existing .env.example stays. Raises `InvalidInput` if there is a
    mulligan.toml already, the name is not valid, or something cannot be written.
    """
    check_name("project", name)
    toml = folder / "mulligan.toml"
    if os.path.lexists(toml):
        raise InvalidInput(f"{toml} already exists. Nothing was changed.")
    files = {folder / ".gitignore": _gitignore(folder / ".gitignore")}
    if not os.path.lexists(folder / "agents"):
        files[folder / "agents" / ".gitkeep"] = b""  # so that git keeps the folder
    if not os.path.lexists(folder / ".env.example"):
        files[folder / ".env.example"] = _template("project/env.example", name)
    files[toml] = _template("project/mulligan.toml", name)  # last, because it makes the folder a project
    return _write_all(files)


def add(kind: str, name: str, project: Path) -> list[Path]:
    """Creates an agent in `project`/agents/`name`, or a skill in skills/`name`. Returns its files.

    Raises `UnknownName` for an unknown kind, and `InvalidInput` if the name is not valid or is taken, or something
    cannot be written; then nothing is left behind.
    """
    if kind not in KINDS:
        raise UnknownName("kind", kind, KINDS)
    thing = "skill" if kind == "skill" else "agent"
    check_name(thing, name)
    folder = project / f"{thing}s" / name
    if os.path.lexists(folder):
        raise InvalidInput(
            f"{folder} already exists. Nothing was changed. Choose another name, or remove the existing one first."
        )
    names = sorted(file.name for file in (_HERE / "scaffolds" / kind).iterdir())
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as temporary:
            new = Path(temporary) / name
            new.mkdir()
            for file in names:
                (new / file).write_bytes(_template(f"{kind}/{file}", name))
            new.rename(folder)
    except OSError as error:
        raise _write_error(folder, error) from error
    return [folder / file for file in names]


def check_name(what: str, name: str) -> None:
    """Raises `InvalidInput`, which suggests another name, for one that is too long or not in kebab-case."""
    if _NAME.fullmatch(name) and len(name) <= _LONGEST:
        return
    suggestion = kebab(name)
    hint = f" Write {suggestion}." if suggestion else ""
    raise InvalidInput(
        f"The name of {'an' if what == 'agent' else 'a'} {what} must consist of at most {_LONGEST} lower-case "
        f"letters, digits and single hyphens, such as my-{what}, not {name!r}.{hint}"
    )


def kebab(text: str) -> str:
    """The text as a name in kebab-case; "" if no character of it is allowed."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", plain)
    return re.sub(r"[^a-z0-9]+", "-", apart.lower()).strip("-")[:_LONGEST].rstrip("-")


def _template(file: str, name: str) -> bytes:
    return (_HERE / "scaffolds" / file).read_bytes().replace(b"{{name}}", name.encode())


def _gitignore(file: Path) -> bytes:
    """The content of .gitignore, with the lines that it lacks."""
    try:
        old = file.read_bytes() if os.path.lexists(file) else b""
    except OSError as error:
        raise _write_error(file, error) from error
    present = {line.strip().strip(b"/") for line in old.splitlines()}
    missing = [line for line in _IGNORED if line.strip("/").encode() not in present]
    end = b"\n" if missing and old and not old.endswith(b"\n") else b""
    return old + end + "".join(f"{line}\n" for line in missing).encode()


def _write_all(files: Mapping[Path, bytes]) -> list[Path]:
    """Writes the files, all or none, and returns those that changed. An error restores what was there."""
    undo: list[tuple[Path, bytes | None]] = []
    new_folders: list[Path] = []
    try:
        for file, text in files.items():
            new_folders += [folder for folder in reversed((file.parent, *file.parents)) if not folder.exists()]
            file.parent.mkdir(parents=True, exist_ok=True)
            before = file.read_bytes() if file.exists() else None
            if before == text:
                continue
            with file.open("xb" if before is None else "wb") as opened:
                undo.append((file, before))
                opened.write(text)
    except OSError as error:
        for written, old in reversed(undo):
            with suppress(OSError):
                written.unlink() if old is None else written.write_bytes(old)
        for folder in reversed(new_folders):
            with suppress(OSError):
                folder.rmdir()
        raise _write_error(file, error) from error  # pyright: ignore[reportPossiblyUnboundVariable]
    return [file for file, _ in undo]


def _write_error(path: Path, error: OSError) -> InvalidInput:
    why = error.strerror or str(error)
    return InvalidInput(f"{path} cannot be written: {why}. Nothing was changed.")
