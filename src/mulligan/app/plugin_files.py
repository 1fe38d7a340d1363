"""Users' plug-in files: finds the file, reads its class without running it, and hashes its code."""

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
"""Suffixes of files that a program beside them may run."""
MOST_FILES, MOST_BYTES = 5_000, 32 << 20
_SKIPPED = frozenset({".git", ".mulligan", "node_modules"})


def file_of(name: str) -> str | None:
    """The path in a plug-in's name; None if it does not name a user's file."""
    path = name.partition(":")[0]
    return path if path.endswith(".py") or path.startswith((".", "/", "~")) else None


def real_path(path: str, folder: Path | None = None) -> Path:
    """The real path of a file, relative to a folder (default: the working folder). Circular links are left as they are.

    Raises `InvalidInput` for a NUL in the path.
    """
    if "\0" in path:
        raise InvalidInput(f"The path {path!r} contains a NUL character.")
    return Path(os.path.realpath(os.path.join(folder or "", os.path.expanduser(path))))


def is_own(name: str) -> bool:
    """Whether a plug-in is named by a file or a dotted path, and not by the name of an installed one."""
    return file_of(name) is not None or "." in name.partition(":")[0]


class Unsafe(Exception):
    """Why files cannot be trusted by their content."""


def is_code(path: Path) -> bool:
    """Whether a program may run this file, by its suffix or its permissions."""
    return path.suffix.lower() in CODE or os.access(path, os.X_OK)


def code_digest(file: Path) -> str:
    """The hash of this file and of all code in its folder and below.

    For a link, both its target and the content of the target count. Raises `Unsafe` for files of another user, and for
    a folder that is too large.
    """
    folder = file.parent
    hasher, bytes_left = hashlib.sha256(), MOST_BYTES
    for number, (name, path) in enumerate(_entries(folder, "", frozenset())):
        if number >= MOST_FILES:
            raise Unsafe(f"{folder} contains more than {MOST_FILES:,} files: put {file.name} into its own folder")
        if path.suffix.lower() not in CODE and path != file:
            continue
        if is_foreign(path) or is_foreign(path.parent):
            raise Unsafe(f"{path} belongs to another user")
        target = os.readlink(path) if path.is_symlink() else ""
        data = content(path, bytes_left)
        bytes_left -= len(data)
        if path.parent.name == "__pycache__" and data[4:5] in (b"\0", b""):
            continue  # written by Python, with the time of its source; other bytecode would run instead of the source
        for part in (os.fsencode(name), os.fsencode(target), data):
            hasher.update(b"%d:" % len(part) + part)
    return hasher.hexdigest()


def content(path: Path, limit: int = MOST_BYTES) -> bytes:
    """The content of a regular file; b"" for others. Raises `Unsafe` for a larger or unreadable file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:  # a link that leads nowhere
        return b""
    except OSError as error:
        raise Unsafe(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return b""
    with open(descriptor, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Unsafe(f"{path.parent} contains more than {MOST_BYTES >> 20} MB of code")
    return data


def _entries(folder: Path, prefix: str, parents: frozenset[tuple[int, int]]) -> Iterator[tuple[str, Path]]:
    """All files below a folder with their relative names, in order. Links are followed, but not in circles."""
    try:
        status = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise Unsafe(f"{folder} cannot be read: {error.strerror}") from error
    visited = parents | {(status.st_dev, status.st_ino)}
    for entry in entries:
        path, name = folder / entry.name, prefix + entry.name
        if not entry.is_dir():
            yield name, path
        elif entry.name not in _SKIPPED and not (path / "pyvenv.cfg").exists():
            yield f"{name}/", path
            status_below = path.stat()
            if (status_below.st_dev, status_below.st_ino) not in visited:
                yield from _entries(path, f"{name}/", visited)


_digest_by_file: dict[Path, str] = {}


def guard(file: Path, digest: str) -> None:
    """From now on, this file is loaded only if its folder has this hash."""
    _digest_by_file[file] = digest


def check_unchanged(file: Path) -> None:
    """Raises `InvalidInput` if the plug-in has changed since `guard` was called for it in this process."""
    try:
        changed = file in _digest_by_file and code_digest(file) != _digest_by_file[file]
    except Unsafe as error:
        raise InvalidInput(f"The plug-in file {file} was not loaded: {error}.") from error
    if changed:
        raise InvalidInput(f"The code next to {file} has changed since it was trusted: run mulligan trust again.")


@lru_cache(maxsize=64)
def outline(file: Path, method: str, class_name: str, changed: int, size: int) -> type[Any]:
    """A class with the parameters and methods of the plug-in in this file, which is parsed and not run.

    What only running it would show (a base class, a decorator) counts as valid. changed, size: of the file, for the
    cache. Raises `InvalidInput` for a file that is not Python or has no such class.
    """
    try:
        tree = ast.parse(content(file), str(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidInput(f"The plug-in file {file} cannot be loaded: {described(error)}.") from error
    except Unsafe as error:
        raise InvalidInput(f"The plug-in file {file} cannot be loaded: {error}.") from error
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    with_name = [node for node in classes if node.name == class_name]
    fitting = with_name or [
        node for node in classes if not node.name.startswith("_") and (_has_base(node) or method in _methods(node))
    ]
    candidates = [node for node in fitting if method in _methods(node)] or fitting
    if class_name and not with_name and not _may_define_otherwise(tree, class_name):
        raise InvalidInput(f"{file} has no class {class_name!r} with a method {method!r}.")
    if not class_name and len(candidates) != 1 and not _may_define_otherwise(tree):
        which = f"{len(candidates)} of them: write {file}:{candidates[0].name}, for example" if candidates else "none"
        raise InvalidInput(f"{file} should contain one class with a method {method!r}; it has {which}.")
    return _outline_of(candidates[0]) if len(candidates) == 1 else Unread


class Unread:
    """Stands for a plug-in about which nothing is known before it runs."""

    unread = True


def _outline_of(node: ast.ClassDef) -> type[Any]:
    members: dict[str, Any] = dict.fromkeys(_methods(node))
    functions = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    init = functions.get("__init__")
    if _has_base(node) or node.decorator_list or node.keywords:
        return type(node.name, (), {**members, "unread": True, "__init__": object.__init__})
    parameters = _parameters(init.args) if init else []
    members["__init__"] = object.__init__
    return type(node.name, (), {**members, "__signature__": inspect.Signature(parameters)})


def _parameters(arguments: ast.arguments) -> list[inspect.Parameter]:
    Parameter, empty = inspect.Parameter, inspect.Parameter.empty
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[Any] = [empty] * (len(positional) - len(arguments.defaults)) + [None] * len(arguments.defaults)
    either = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter(a.arg, either, default=d) for a, d in zip(positional, defaults, strict=True)][1:]
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(Parameter(argument.arg, Parameter.KEYWORD_ONLY, default=empty if default is None else None))
    return [*parameters, Parameter(arguments.kwarg.arg, Parameter.VAR_KEYWORD)] if arguments.kwarg else parameters


def _methods(node: ast.ClassDef) -> set[str]:
    names: set[str] = set()
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign):
            names |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return names


def _has_base(node: ast.ClassDef) -> bool:
    return any(not (isinstance(base, ast.Name) and base.id == "object") for base in node.bases)


def _may_define_otherwise(tree: ast.Module, name: str = "") -> bool:
    """Whether the module may define the class in a way that parsing does not show: by assignment, import or branch."""
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
