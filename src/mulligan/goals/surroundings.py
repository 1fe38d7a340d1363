"""The files outside git's sight that a check rests on: a record of each, when a goal is set and when it is reached.

These are settings of test runners above the repository, programs on PATH that start tests, what an environment of
Python runs by itself (`sitecustomize`, `.pth` files, plug-ins of pytest), pytest, and files that the check names.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mulligan.text.runner_reports import settings_files, words_in

_PROGRAMS = re.compile(
    r"(?:ba|da|z)?sh|env|python[\d.]*|pypy[\d.]*|py\.?test|g?make|just|tox|nox|uv|uvx|poetry|pdm|hatch|coverage|node|npm|npx"
    r"|pnpm|yarn|bunx?|deno|jest|vitest|mocha|cargo|rustc|go|rspec|bundle|ruby|php|phpunit|java|mvn|gradle|cmake|ctest|git"
)
_OF_PYTHON = (
    *("*.pth", "sitecustomize.py", "usercustomize.py", "*.dist-info/entry_points.txt"),
    *("pytest/*.py", "_pytest/**/*.py", "pluggy/*.py", "unittest/*.py", "pytest.py", "unittest.py"),
)
_MOST, _LARGE = 5000, 1 << 20
"""Files that are looked at, and bytes of one whose contents are read; of a larger one, size and times count."""
_SETTLED = 2_000_000_000
"""Nanoseconds since a file last changed after which another change shows in its times."""

Record = Sequence[str]
"""A digest, and the `_stamp` by which a file is known to be the same without reading it; "" for none."""


def surroundings(
    env: Mapping[str, str],
    argv: Sequence[str],
    folder: str,
    prefix: str,
    git_files: Iterable[str],
    before: Mapping[str, Record] | None = None,
) -> dict[str, Record]:
    """A record of each such file, by its path.

    Args:
        env: that of the check.
        argv: the check's words.
        folder: where it runs.
        prefix: the folder as git_files from the top of its tree.
        git_files: the files that git keeps, from the top.
        before: earlier records. A file that they show as untouched is not read.
    """
    top = folder.removesuffix(prefix).rstrip(os.sep) if prefix else folder
    in_git = {os.path.join(top, path) for path in git_files}
    words = (*words_in(argv), env.get("BASH_ENV") or "")
    files_named = [os.path.normpath(os.path.join(folder, word)) for word in words]
    paths = [
        *(path for path in files_named if os.path.isfile(path) and path not in in_git),
        os.path.join(top, ".git", "info", "attributes"),
        *_above(top),
        *_programs(env, argv),
        *_of_python(env, folder),
    ]
    earlier = before or {}
    records = {path: _record(path, earlier.get(path)) for path in list(dict.fromkeys(paths))[:_MOST]}
    return {path: record for path, record in records.items() if record}


def differing(before: Mapping[str, Record], after: Mapping[str, Record]) -> list[str]:
    """The paths of the files that differ."""
    absent = ("", "")
    return sorted(path for path in before.keys() | after if before.get(path, absent)[0] != after.get(path, absent)[0])


def _above(top: str) -> Iterator[str]:
    """Settings of test runners in the folders above a tree."""
    folder = os.path.dirname(top)
    while True:
        try:
            names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
        except OSError:
            names = []
        for name in (*settings_files(names), ".cargo/config.toml", ".cargo/config"):
            yield os.path.join(folder, name)
        if folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)


def _programs(env: Mapping[str, str], argv: Sequence[str]) -> Iterator[str]:
    """The programs that start tests, in the folders of PATH that this user may write to."""
    words = {os.path.basename(word) for word in words_in(argv)}
    for folder in env.get("PATH", "").split(os.pathsep):
        if os.path.isdir(folder) and os.access(folder, os.W_OK):
            names = (name for name in os.listdir(folder) if name in words or _PROGRAMS.fullmatch(name))
            yield from (os.path.join(folder, name) for name in names)


def _of_python(env: Mapping[str, str], folder: str) -> Iterator[str]:
    """What the environments of Python run by themselves that the check may use."""
    prefixes = (os.path.dirname(directory) for directory in env.get("PATH", "").split(os.pathsep) if directory)
    roots = [os.path.join(folder, ".venv"), os.path.join(folder, "venv"), env.get("VIRTUAL_ENV", ""), *prefixes]
    environments = [root for root in roots if root and os.path.isfile(os.path.join(root, "pyvenv.cfg"))]
    user = env.get("PYTHONUSERBASE") or os.path.join(env.get("HOME", ""), ".local")
    for root in dict.fromkeys(map(os.path.realpath, (*environments, user))):
        yield os.path.join(root, "pyvenv.cfg")
        for packages in glob.glob(os.path.join(glob.escape(root), "lib", "python*", "site-packages")):
            for pattern in _OF_PYTHON:
                yield from glob.iglob(os.path.join(glob.escape(packages), pattern), recursive=True)


def _record(path: str, before: Record | None) -> Record | None:
    """None for a file that is not there; the digest is "" for one that says of no plug-in of pytest."""
    try:
        status = os.stat(path)
        stamp = _stamp(status)
        if before and before[1] == stamp:
            return before
        if status.st_size > _LARGE:
            return f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}", ""
        with open(path, "rb") as file:
            contents = file.read(_LARGE)
    except OSError:
        return None
    no_plugin = path.endswith("entry_points.txt") and b"[pytest11]" not in contents
    settled = time.time_ns() - status.st_ctime_ns > _SETTLED
    return "" if no_plugin else hashlib.sha256(contents).hexdigest(), stamp if settled else ""


def _stamp(about: os.stat_result) -> str:
    """What changes with the contents of a file: nobody sets the time of the last change (ctime)."""
    return f"{about.st_dev} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"
