"""A stand-in for the part of pytest that a plain tests file uses: raises, approx, mark.parametrize, fail, skip.

Written for the examiner, where pytest is not installed and its import would cost more than all the tests.
"""

from __future__ import annotations

import sys

from mulligan.oracle.python.wire import is_a

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class Skipped(BaseException):
    """The test asked not to be run."""


def skip(reason: str = "", **_: Any) -> None:
    raise Skipped(reason)


def fail(reason: str = "", **_: Any) -> None:
    raise AssertionError(reason)


class Raises:
    """`with raises(E, match=...) as info`: passes when the block raises E; `info.value` is then the exception."""

    def __init__(self, expected: Any, *, match: str | None = None) -> None:
        self.expected = expected
        self.wanted = match
        self.value: Any = None
        self.type: Any = None

    def __enter__(self) -> Raises:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: object) -> bool:
        kinds = self.expected if is_a(self.expected, tuple) else (self.expected,)
        if value is None:
            raise AssertionError(f"nothing was raised, expected {' or '.join(k.__name__ for k in kinds)}")
        if not isinstance(value, self.expected):
            return False
        self.value, self.type = value, kind
        if self.wanted is not None:
            self.match(self.wanted)
        return True

    def match(self, pattern: str) -> bool:
        import re

        if not re.search(pattern, str(self.value)):
            raise AssertionError(f"the message {str(self.value)!r} does not match {pattern!r}")
        return True


def raises(expected: Any, *call: Any, match: str | None = None, **named: Any) -> Raises:
    context = Raises(expected, match=match)
    if call:
        with context:
            call[0](*call[1:], **named)
    return context


class approx:
    """Equal within `rel` (default 1e-6 of the expected value) or `abs` (default 1e-12), whichever is wider."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None, nan_ok: bool = False) -> None:
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def __eq__(self, actual: object) -> bool:
        return self._near(self.expected, actual)

    def _near(self, expected: Any, actual: Any) -> bool:
        if is_a(expected, dict):
            return (
                is_a(actual, dict)
                and expected.keys() == actual.keys()
                and all(self._near(expected[key], actual[key]) for key in expected)
            )
        if is_a(expected, list | tuple):
            return (
                is_a(actual, list | tuple) and len(expected) == len(actual) and all(map(self._near, expected, actual))
            )
        if isinstance(expected, str | bytes | bool) or expected is None:
            return expected == actual
        try:
            if expected == actual:
                return True
            if expected != expected:
                return self.nan_ok and actual != actual
            off = abs(expected - actual)
            if off == float("inf"):
                return False
            share = (1e-6 if self.rel is None else self.rel) * abs(expected)
            least = (1e-12 if self.rel is None else 0.0) if self.abs is None else self.abs
            return bool(off <= (least if self.rel is None and self.abs is not None else max(share, least)))
        except TypeError:
            return False

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"


class Param:
    """One row of `parametrize`, with an id of its own."""

    def __init__(self, *values: Any, id: str | None = None, marks: Any = ()) -> None:
        self.values, self.id, self.marks = values, id, marks


class Mark:
    """`mark.parametrize`, `mark.skip`, `mark.skipif`; any other mark changes nothing."""

    def parametrize(self, names: str | Iterable[str], rows: Iterable[Any], ids: Any = None, **_: Any) -> Any:
        keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        cases: list[tuple[str, dict[str, Any]]] = []
        for number, row in enumerate(rows):
            values = row.values if isinstance(row, Param) else (row if len(keys) > 1 else (row,))
            own = row.id if isinstance(row, Param) else None
            given = ids[number] if is_a(ids, list | tuple) else None
            label = own or given or "-".join(_label(key, value) for key, value in zip(keys, values, strict=True))
            cases.append((str(label), dict(zip(keys, values, strict=True))))

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            function.__dict__.setdefault("oracle_cases", []).append(cases)
            return function

        return decorate

    def skip(self, reason: Any = "", **_: Any) -> Any:
        if callable(reason):
            return self.skipif(True)(reason)
        return self.skipif(True)

    def skipif(self, condition: Any, **_: Any) -> Any:
        def decorate(function: Any) -> Any:
            function.oracle_skip = bool(condition) or getattr(function, "oracle_skip", False)
            return function

        return decorate

    def __getattr__(self, name: str) -> Any:
        def decorate(*args: Any, **_: Any) -> Any:
            return args[0] if len(args) == 1 and callable(args[0]) else decorate

        return decorate


def _label(key: str, value: Any) -> str:
    return repr(value)[:60] if isinstance(value, int | float | str | bool | None) else f"{key}={repr(value)[:60]}"


def install() -> None:
    """Makes `import pytest` find this."""
    module: Any = type(sys)("pytest")
    module.raises, module.approx, module.fail, module.skip, module.param = raises, approx, fail, skip, Param
    module.mark = Mark()
    sys.modules["pytest"] = module
