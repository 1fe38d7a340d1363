"""Plug-in files of a user: finds the file, checks its class without running it, and hashes its code."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from mulligan.core.errors import InvalidInput, described
from mulligan.core.trusted import is_foreign

CODE = frozenset(
    (
        *(".py", ".pyw", ".pyc", ".pth", ".so", ".pyd", ".dll", ".dylib", ".zip", ".egg", ".whl", ".sh", ".bash"),
        *(".bat", ".cmd", ".ps1", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl"),
    )
)
"""Endings of files that a program beside them may run."""
MOST_FILES, MOST_BYTES = 5_000, 32 << 20
_SKIPPED = frozenset({".git", ".mulligan", "node_modules"})


def file_of(name: str) -> str | None:
    """The path in a plug-in's name, if it names a file of the user's."""
    path = name.partition(":")[0]
    return path if path.endswith(".py") or path.startswith((".", "/", "~")) else None


def real_path(path: str, folder: Path | None = None) -> Path:
    """The file that a path leads to, from a folder (the working folder); one that leads in a circle stays as it is.

    Raises `InvalidInput` for a NUL in it.
    """
    if "\0" in path:
        raise InvalidInput(f"The path {path!r} contains a NUL character.")
    return Path(os.path.realpath(os.path.join(folder or "", os.path.expanduser(path))))


def is_own(name: str) -> bool:
    """Whether a plug-in is the user's own file, or a module by its dotted path: not one of an installed name."""
    return file_of(name) is not None or "." in name.partition(":")[0]


class Unsafe(Exception):
    """Why files cannot be trusted by their content."""


def is_code(path: Path) -> bool:
    """Whether a program may run this file, by its ending or its permission."""
    return path.suffix.lower() in CODE or os.access(path, os.X_OK)


def code_digest(file: Path) -> str:
    """The hash of this file and of all code in its folder and below.

    A link counts by its target and by what it leads to. Raises `Unsafe` for files of another user, and for a folder
    that is too large.
    """
    folder = file.parent
    made, left = hashlib.sha256(), MOST_BYTES
    for number, (name, path) in enumerate(_entries(folder, "", frozenset())):
        if number >= MOST_FILES:
            raise Unsafe(f"{folder} has more than {MOST_FILES:,} files: put {file.name} into its own folder")
        if path.suffix.lower() not in CODE and path != file:
            continue
        if is_foreign(path) or is_foreign(path.parent):
            raise Unsafe(f"{path} belongs to another user")
        target = os.readlink(path) if path.is_symlink() else ""
        data = content(path, left)
        left -= len(data)
        if path.parent.name == "__pycache__" and data[4:5] in (b"\0", b""):
            continue  # of a source and its time, which Python writes itself; any other would run in the source's place
        for part in (os.fsencode(name), os.fsencode(target), data):
            made.update(b"%d:" % len(part) + part)
    return made.hexdigest()


def content(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file; b"" of any other. Raises `Unsafe` for more bytes, or one that is unreadable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:  # a link that leads nowhere
        return b""
    except OSError as error:
        raise Unsafe(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return b""
    with open(descriptor, "rb") as opened:
        data = opened.read(most + 1)
    if len(data) > most:
        raise Unsafe(f"{path.parent} contains more than {MOST_BYTES >> 20} MB of code")
    return data


def _entries(folder: Path, within: str, above: frozenset[tuple[int, int]]) -> Iterator[tuple[str, Path]]:
    """Every file below a folder by its name from there, in order, links followed; no folder twice on one way down."""
    try:
        here = folder.stat()
        found = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise Unsafe(f"{folder} cannot be read: {error.strerror}") from error
    known = above | {(here.st_dev, here.st_ino)}
    for entry in found:
        path, name = folder / entry.name, within + entry.name
        if not entry.is_dir():
            yield name, path
        elif entry.name not in _SKIPPED and not (path / "pyvenv.cfg").exists():
            yield f"{name}/", path
            below = path.stat()
            if (below.st_dev, below.st_ino) not in known:
                yield from _entries(path, f"{name}/", known)


_trusted: dict[Path, str] = {}


def guard(file: Path, digest: str) -> None:
    """From now on this file is loaded only while its folder has this hash."""
    _trusted[file] = digest


def check_unchanged(file: Path) -> None:
    """Raises `InvalidInput` for a plug-in that was trusted and has changed since, in this process."""
    try:
        changed = file in _trusted and code_digest(file) != _trusted[file]
    except Unsafe as error:
        raise InvalidInput(f"The plug-in file {file} is not loaded: {error}.") from error
    if changed:
        raise InvalidInput(f"The code next to {file} has changed since it was trusted: run mulligan trust again.")


@lru_cache(maxsize=64)
def outline(file: Path, method: str, class_name: str, changed: int, size: int) -> type[Any]:
    """A class with the parameters and methods of the plug-in in this file, which is read and not run.

    What only running it could say (a base class, a decorator) counts as right. changed, size: of the file. Raises
    `InvalidInput` for a file that is not Python or holds no such class.
    """
    try:
        tree = ast.parse(content(file), str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidInput(f"The plug-in file {file} cannot be loaded: {described(error)}.") from error
    except Unsafe as error:
        raise InvalidInput(f"The plug-in file {file} cannot be loaded: {error}.") from error
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    named = [node for node in classes if node.name == class_name]
    fitting = named or [
        node for node in classes if not node.name.startswith("_") and (_based(node) or method in _methods(node))
    ]
    certain = [node for node in fitting if method in _methods(node)] or fitting
    if class_name and not named and not _made_otherwise(tree, class_name):
        raise InvalidInput(f"{file} has no class {class_name!r} with a method {method!r}.")
    if not class_name and len(certain) != 1 and not _made_otherwise(tree):
        which = f"{len(certain)} of them: write {file}:{certain[0].name}, for example" if certain else "none"
        raise InvalidInput(f"{file} should contain one class with a method {method!r}; it has {which}.")
    return _outlined(certain[0]) if len(certain) == 1 else Unread


class Unread:
    """A plug-in that is not known before it runs."""

    unread = True


def _outlined(node: ast.ClassDef) -> type[Any]:
    known: dict[str, Any] = dict.fromkeys(_methods(node))
    init = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if _based(node) or node.decorator_list or node.keywords:
        return type(node.name, (), {**known, "unread": True, "__init__": object.__init__})
    parameters = _parameters(init.args) if init else []
    known["__init__"] = object.__init__
    return type(node.name, (), {**known, "__signature__": inspect.Signature(parameters)})


def _parameters(arguments: ast.arguments) -> list[inspect.Parameter]:
    one, empty = inspect.Parameter, inspect.Parameter.empty
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[Any] = [empty] * (len(plain) - len(arguments.defaults)) + [None] * len(arguments.defaults)
    found = [one(a.arg, one.POSITIONAL_OR_KEYWORD, default=d) for a, d in zip(plain, defaults, strict=True)][1:]
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(one(argument.arg, one.KEYWORD_ONLY, default=empty if default is None else None))
    return [*found, one(arguments.kwarg.arg, one.VAR_KEYWORD)] if arguments.kwarg else found


def _methods(node: ast.ClassDef) -> set[str]:
    names: set[str] = set()
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(each.name)
        elif isinstance(each, ast.Assign):
            names |= {target.id for target in each.targets if isinstance(target, ast.Name)}
    return names


def _based(node: ast.ClassDef) -> bool:
    return any(not (isinstance(base, ast.Name) and base.id == "object") for base in node.bases)


def _made_otherwise(tree: ast.Module, name: str = "") -> bool:
    """Whether the module has names that are not seen without running it: assigned, imported, made in a branch."""
    for node in tree.body:
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For):
            return True
        if isinstance(node, ast.ImportFrom) and name and any((a.asname or a.name) in (name, "*") for a in node.names):
            return True
        if isinstance(node, ast.Assign):
            targets = {cast(Any, target).id for target in node.targets if isinstance(target, ast.Name)}
            if (name in targets) if name else isinstance(node.value, ast.Call):
                return True
    return False
