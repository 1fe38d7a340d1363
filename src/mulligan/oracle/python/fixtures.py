"""The fixtures of pytest that test files use most: `tmp_path`, `monkeypatch` and `capsys`.

Runs inside the sandbox, in the examiner. All of them act on the process of the tests, so the candidate runs there, too.
"""

# Values of any kind: nothing here is known to a type checker.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

import sys

from mulligan.oracle.python.shim import fixture, unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any


@fixture
def tmp_path() -> Any:
    import pathlib
    import tempfile

    return pathlib.Path(tempfile.mkdtemp())


class MonkeyPatch:
    """Changes that `undo` takes back, the last one first."""

    def __init__(self) -> None:
        from contextlib import ExitStack

        self._changes = ExitStack()
        self.undo = self._changes.close

    def context(self) -> Any:
        from contextlib import contextmanager

        return contextmanager(_patching)()

    def setattr(self, target: Any, name: Any, *value: Any, raising: bool = True) -> None:
        """Set an attribute: `setattr(os, "getcwd", f)` or `setattr("os.getcwd", f)`."""
        from unittest.mock import patch

        change = patch.object(target, name, *value) if value else patch(target, name)
        change.create = not raising
        self._changes.enter_context(change)

    def delattr(self, target: Any, name: str = "", raising: bool = True) -> None:
        """Delete an attribute: `delattr(os, "getcwd")` or `delattr("os.getcwd")`."""
        from unittest.mock import patch

        change = patch.object(target, name) if name else patch(target)
        if raising or hasattr(change.getter(), change.attribute):
            self._changes.enter_context(change)
            delattr(change.target, change.attribute)

    def setitem(self, mapping: Any, key: Any, value: Any) -> None:
        from unittest.mock import patch

        self._changes.enter_context(patch.dict(mapping, {key: value}))

    def delitem(self, mapping: Any, key: Any, raising: bool = True) -> None:
        from unittest.mock import patch

        if raising or key in mapping:
            self._changes.enter_context(patch.dict(mapping))
            del mapping[key]

    def setenv(self, name: str, value: Any, prepend: str | None = None) -> None:
        import os

        old = os.environ.get(name) if prepend else None
        self.setitem(os.environ, name, str(value) if old is None else f"{value}{prepend}{old}")

    def delenv(self, name: str, raising: bool = True) -> None:
        import os

        self.delitem(os.environ, name, raising)

    def chdir(self, path: Any) -> None:
        import os

        self._changes.callback(os.chdir, os.getcwd())
        os.chdir(path)

    def syspath_prepend(self, path: Any) -> None:
        from unittest.mock import patch

        self._changes.enter_context(patch.object(sys, "path", [str(path), *sys.path]))


def _patching() -> Generator[MonkeyPatch]:
    changes = MonkeyPatch()
    try:
        yield changes
    finally:
        changes.undo()


monkeypatch = fixture(_patching, name="monkeypatch")


class PrintedText:
    """What is printed while `sys.stdout` and `sys.stderr` are these streams."""

    def __init__(self, out: Any, err: Any) -> None:
        self._streams = out, err

    def readouterr(self) -> Any:
        """Return the texts since the last call, as `out` and `err`."""
        from collections import namedtuple

        texts = [stream.getvalue() for stream in self._streams]
        for stream in self._streams:
            stream.seek(0)
            stream.truncate()
        return namedtuple("CaptureResult", "out err")(*texts)  # pyright: ignore[reportUntypedNamedTuple]

    def __getattr__(self, name: str) -> Any:
        raise unsupported(f"capsys.{name}")


@fixture
def capsys() -> Iterator[PrintedText]:
    import io
    from contextlib import redirect_stderr, redirect_stdout

    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        yield PrintedText(out, err)


PYTEST_FIXTURES = {"tmp_path": tmp_path, "monkeypatch": monkeypatch, "capsys": capsys}
