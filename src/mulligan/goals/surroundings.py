"""The files outside git's sight that a check rests on: a digest of each, when a goal is set and when it is reached.

These are settings of test runners above the repository, programs on PATH that start tests, what an environment of
Python runs by itself (`sitecustomize`, `.pth` files, plug-ins of pytest), pytest, and files that the check names.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
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


def surroundings(
    env: Mapping[str, str], argv: Sequence[str], folder: str, prefix: str, git_files: Iterable[str]
) -> dict[str, str]:
    """A digest of each such file, by its path.

    Args:
        env: that of the check.
        argv: the check's words.
        folder: where it runs.
        prefix: the folder as git_files from the top of its tree.
        git_files: the files that git keeps, from the top.
    """
    top = folder.removesuffix(prefix).rstrip(os.sep) if prefix else folder
    kept = {os.path.join(top, path) for path in git_files}
    named = [os.path.normpath(os.path.join(folder, word)) for word in (*words_in(argv), env.get("BASH_ENV") or "")]
    paths = [
        *(path for path in named if os.path.isfile(path) and path not in kept),
        os.path.join(top, ".git", "info", "attributes"),
        *_above(top),
        *_programs(env, argv),
        *_of_python(env, folder),
    ]
    digests = {path: _digest(path) for path in list(dict.fromkeys(paths))[:_MOST]}
    return {path: digest for path, digest in digests.items() if digest}


def _above(top: str) -> Iterator[str]:
    """Settings of test runners in the folders above a tree."""
    at = os.path.dirname(top)
    while True:
        try:
            names = [entry.name for entry in os.scandir(at) if entry.is_file()]
        except OSError:
            names = []
        for name in (*settings_files(names), ".cargo/config.toml", ".cargo/config"):
            yield os.path.join(at, name)
        if at == os.path.dirname(at):
            return
        at = os.path.dirname(at)


def _programs(env: Mapping[str, str], argv: Sequence[str]) -> Iterator[str]:
    """The programs that start tests, in the folders of PATH that this user may write to."""
    words = {os.path.basename(word) for word in words_in(argv)}
    for at in env.get("PATH", "").split(os.pathsep):
        if os.path.isdir(at) and os.access(at, os.W_OK):
            names = (name for name in os.listdir(at) if name in words or _PROGRAMS.fullmatch(name))
            yield from (os.path.join(at, name) for name in names)


def _of_python(env: Mapping[str, str], folder: str) -> Iterator[str]:
    """What the environments of Python run by themselves that the check may use."""
    beside = (os.path.dirname(at) for at in env.get("PATH", "").split(os.pathsep) if at)
    roots = [os.path.join(folder, ".venv"), os.path.join(folder, "venv"), env.get("VIRTUAL_ENV", ""), *beside]
    places = [root for root in roots if root and os.path.isfile(os.path.join(root, "pyvenv.cfg"))]
    user = env.get("PYTHONUSERBASE") or os.path.join(env.get("HOME", ""), ".local")
    for root in dict.fromkeys(map(os.path.realpath, (*places, user))):
        yield os.path.join(root, "pyvenv.cfg")
        for packages in glob.glob(os.path.join(glob.escape(root), "lib", "python*", "site-packages")):
            for pattern in _OF_PYTHON:
                yield from glob.iglob(os.path.join(glob.escape(packages), pattern), recursive=True)


def _digest(path: str) -> str:
    """ "" for a file that is not there, or that says of no plug-in of pytest."""
    try:
        about = os.stat(path)
        if about.st_size > _LARGE:
            return f"{os.path.realpath(path)} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"
        with open(path, "rb") as file:
            contents = file.read(_LARGE)
    except OSError:
        return ""
    if path.endswith("entry_points.txt") and b"[pytest11]" not in contents:
        return ""
    return hashlib.sha256(contents).hexdigest()
