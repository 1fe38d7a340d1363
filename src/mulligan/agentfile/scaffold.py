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
    """The agents that ship as files, by name: the folder of each."""
    return {folder.name: folder for folder in sorted((_HERE / "builtin").iterdir()) if (folder / "AGENT.md").is_file()}


def init(folder: Path, name: str) -> list[Path]:
    """A project in `folder`, which is made if need be: mulligan.toml, agents/, .env.example, .gitignore.

    Returns what was written or added to. A .gitignore gets the lines that it lacks; an .env.example that is there
    stays. Raises `InvalidInput` when there is a mulligan.toml, the name cannot be one, or something cannot be written.
    """
    check_name("project", name)
    toml = folder / "mulligan.toml"
    if os.path.lexists(toml):
        raise InvalidInput(f"{toml} already exists, and nothing was changed.")
    files = {folder / ".gitignore": _ignoring(folder / ".gitignore")}
    if not os.path.lexists(folder / "agents"):
        files[folder / "agents" / ".gitkeep"] = b""  # so that git keeps the folder
    if not os.path.lexists(folder / ".env.example"):
        files[folder / ".env.example"] = _template("project/env.example", name)
    files[toml] = _template("project/mulligan.toml", name)  # last: from now on it is a project
    return _written(files)


def add(kind: str, name: str, project: Path) -> list[Path]:
    """A working agent in `project`/agents/`name`, or a skill in skills/`name`; the files that were written.

    Raises `UnknownName` for another kind, `InvalidInput` for a name that cannot be one or is taken, and when something
    cannot be written; then nothing is left behind.
    """
    if kind not in KINDS:
        raise UnknownName("kind", kind, KINDS)
    what = "skill" if kind == "skill" else "agent"
    check_name(what, name)
    folder = project / f"{what}s" / name
    if os.path.lexists(folder):
        raise InvalidInput(
            f"{folder} already exists, and nothing was changed. Choose another name, or remove it first."
        )
    names = sorted(file.name for file in (_HERE / "scaffolds" / kind).iterdir())
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as beside:
            made = Path(beside) / name
            made.mkdir()
            for file in names:
                (made / file).write_bytes(_template(f"{kind}/{file}", name))
            made.rename(folder)
    except OSError as error:
        raise _unwritten(folder, error) from error
    return [folder / file for file in names]


def check_name(what: str, name: str) -> None:
    """Raises `InvalidInput`, which suggests a spelling, for a name that is not in kebab-case or longer than 64."""
    if _NAME.fullmatch(name) and len(name) <= _LONGEST:
        return
    meant = kebab(name)
    hint = f" Write {meant}." if meant else ""
    raise InvalidInput(
        f"The name of {'an' if what == 'agent' else 'a'} {what} consists of lower-case letters, digits and single "
        f"hyphens, such as my-{what}, {_LONGEST} at most; {name!r} is not.{hint}"
    )


def kebab(text: str) -> str:
    """The text as a name of this kind; empty when nothing of it can stand in one."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", plain)
    return re.sub(r"[^a-z0-9]+", "-", apart.lower()).strip("-")[:_LONGEST].rstrip("-")


def _template(file: str, name: str) -> bytes:
    return (_HERE / "scaffolds" / file).read_bytes().replace(b"{{name}}", name.encode())


def _ignoring(file: Path) -> bytes:
    """What .gitignore has to hold: what it holds, and the lines that it lacks."""
    try:
        old = file.read_bytes() if os.path.lexists(file) else b""
    except OSError as error:
        raise _unwritten(file, error) from error
    there = {line.strip().strip(b"/") for line in old.splitlines()}
    lacking = [line for line in _IGNORED if line.strip("/").encode() not in there]
    end = b"\n" if lacking and old and not old.endswith(b"\n") else b""
    return old + end + "".join(f"{line}\n" for line in lacking).encode()


def _written(files: Mapping[Path, bytes]) -> list[Path]:
    """Writes the files, all or none; one that would stay as it is is left out. An error puts back what was there."""
    undo: list[tuple[Path, bytes | None]] = []
    made: list[Path] = []
    try:
        for file, text in files.items():
            made += [folder for folder in reversed((file.parent, *file.parents)) if not folder.exists()]
            file.parent.mkdir(parents=True, exist_ok=True)
            before = file.read_bytes() if file.exists() else None
            if before == text:
                continue
            with file.open("xb" if before is None else "wb") as out:
                undo.append((file, before))
                out.write(text)
    except OSError as error:
        for done, old in reversed(undo):
            with suppress(OSError):
                done.unlink() if old is None else done.write_bytes(old)
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        raise _unwritten(file, error) from error  # pyright: ignore[reportPossiblyUnboundVariable]
    return [file for file, _ in undo]


def _unwritten(path: Path, error: OSError) -> InvalidInput:
    why = error.strerror or str(error)
    return InvalidInput(f"{path} cannot be written: {why}. Nothing was changed.")
