"""A stand-in for the part of pytest that a plain test file uses: raises, approx, mark.parametrize, warns, fail, skip.

Written for the examiner, where pytest is not installed and its import would cost more than all the tests.
"""

from __future__ import annotations

import sys

from mulligan.oracle.python.remote import Undecided, tests_line
from mulligan.oracle.python.wire import is_a

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class Skipped(BaseException):
    """The test asked not to be run."""


def is_skip(error: BaseException) -> bool:
    """Whether the error asks that the test is not run, as pytest or unittest do."""
    return isinstance(error, (Skipped, getattr(sys.modules.get("unittest"), "SkipTest", Skipped)))


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
        self.values, self.id = values, id
        self.marks = marks if is_a(marks, list | tuple) else (marks,)


class Mark:
    """The marks that change how a test is run; any other changes nothing. Each decorates a function or class with what
    `marks_of` reads."""

    def parametrize(
        self, names: str | Iterable[str], rows: Iterable[Any], ids: Any = None, indirect: Any = False, **_: Any
    ) -> Any:
        if indirect:
            raise unsupported("pytest.mark.parametrize with indirect")
        keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        cases: list[tuple[str, dict[str, Any], Any]] = []
        for number, row in enumerate(rows):
            values = row.values if isinstance(row, Param) else (row if len(keys) > 1 else (row,))
            own = row.id if isinstance(row, Param) else None
            given = ids[number] if is_a(ids, list | tuple) else None
            label = own or given or "-".join(_label(key, value) for key, value in zip(keys, values, strict=True))
            cases.append((str(label), dict(zip(keys, values, strict=True)), getattr(row, "marks", ())))
        return _marking("oracle_cases", cases)

    def usefixtures(self, *names: str) -> Any:
        return _marking("oracle_uses", names)

    def skip(self, reason: Any = "", **_: Any) -> Any:
        return self.skipif(True)(reason) if callable(reason) else self.skipif(True)

    def skipif(self, *conditions: Any, **_: Any) -> Any:
        if any(isinstance(condition, str) for condition in conditions):
            raise unsupported("pytest.mark.skipif with a string")
        return _marking("oracle_skip", any(conditions))

    def xfail(self, *conditions: Any, raises: Any = None, run: bool = True, strict: bool = False, **_: Any) -> Any:
        if conditions and callable(conditions[0]):
            return self.xfail()(conditions[0])
        if not run:
            return self.skipif(all(conditions))
        return _marking("oracle_xfail", (raises or BaseException, strict) if all(conditions) else None)

    def __getattr__(self, name: str) -> Any:
        def decorate(*args: Any, **_: Any) -> Any:
            return args[0] if len(args) == 1 and callable(args[0]) else decorate

        return decorate


def _marking(name: str, value: Any) -> Callable[[Any], Any]:
    """A decorator that adds a mark. A class or function that inherits marks keeps those to itself."""

    def decorate(item: Any) -> Any:
        setattr(item, name, [*item.__dict__.get(name, ()), value])
        return item

    return decorate


def marks_of(*items: Any) -> dict[str, list[Any]]:
    """All marks of a test: of its function, class and module."""
    found: dict[str, list[Any]] = {}
    for item in items:
        listed = getattr(item, "pytestmark", ())
        bearer: Any = bearer_of(listed if is_a(listed, list | tuple) else (listed,))
        for one in (bearer, *(reversed(item.__mro__) if isinstance(item, type) else (item,))):
            for name in ("oracle_cases", "oracle_skip", "oracle_xfail", "oracle_uses"):
                found.setdefault(name, []).extend(vars(one).get(name, ()))
    return found


def bearer_of(marks: Iterable[Any]) -> Any:
    """Something with these marks."""

    def bearer() -> None: ...

    for mark in marks:
        mark(bearer)
    return bearer


class Fixture:
    """A function that makes a value for tests. `pytest.fixture` replaces it by this."""

    def __init__(self, make: Any, name: str | None, scope: Any, params: Any, autouse: bool, ids: Any) -> None:
        self.make, self.autouse, self.scope = make, autouse, scope
        self.in_class = False
        self.name: str = name or make.__name__
        self.rows = [
            (str(ids[n]) if is_a(ids, list | tuple) else _label(self.name, value), value)
            for n, value in enumerate(params or ())
        ]

    def __set_name__(self, owner: Any, name: str) -> None:
        self.in_class = True

    def __get__(self, item: Any, kind: Any = None) -> Fixture:
        return self

    def bound(self, instance: Any) -> Any:
        """Its function; if a class defines it, the method of an instance."""
        bind = getattr(self.make, "__get__", None) if self.in_class else None
        return bind(instance, type(instance)) if bind else self.make


def fixture(
    make: Any = None,
    *,
    name: str | None = None,
    scope: Any = "function",
    params: Any = None,
    autouse: bool = False,
    ids: Any = None,
) -> Any:
    if callable(scope):
        raise unsupported("a fixture whose scope is a function")
    if make is None:

        def decorate(function: Any) -> Fixture:
            return Fixture(function, name, scope, params, autouse, ids)

        return decorate
    return Fixture(make, name, scope, params, autouse, ids)


class Request:
    """What a fixture may ask for as `request`."""

    def __init__(self, param: Any, ends: list[Any]) -> None:
        self.param = param
        self.addfinalizer = ends.append

    def __getattr__(self, name: str) -> Any:
        raise unsupported(f"request.{name}")


def _label(key: str, value: Any) -> str:
    return repr(value)[:60] if isinstance(value, int | float | str | bool | None) else f"{key}={repr(value)[:60]}"


def xfail(reason: str = "", **_: Any) -> None:
    raise Skipped(reason)


class RecordedWarnings:
    """The warnings of a block with `warns`."""

    def __init__(self, warnings: Any) -> None:
        self.list = warnings

    def __len__(self) -> int:
        return len(self.list)

    def __getitem__(self, at: Any) -> Any:
        return self.list[at]

    def __getattr__(self, name: str) -> Any:
        raise unsupported(f"{name} of recorded warnings")


def warns(expected_warning: Any = Warning, *call: Any, match: str | None = None, **named: Any) -> Any:
    """`with warns(E, match=...) as record`: passes when the block warns with E."""
    from contextlib import contextmanager

    @contextmanager
    def recording() -> Any:
        import re
        import warnings

        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            yield RecordedWarnings(record)
        kinds = [one for one in record if issubclass(one.category, expected_warning)]
        if not any(re.search(match or "", str(one.message)) for one in kinds):
            raise AssertionError(f"{len(record)} warnings, none of them as expected")

    if not call:
        return recording()
    with recording():
        return call[0](*call[1:], **named)


def importorskip(name: str, *_: Any, **__: Any) -> Any:
    try:
        __import__(name)
    except ImportError:
        raise Skipped(name) from None
    return sys.modules[name]


def unsupported(what: str) -> BaseException:
    """There is no verdict, as this would be judged otherwise than by pytest."""
    return Undecided(f"{tests_line()} uses {what}, which is not supported here")


def install() -> None:
    """Makes `import pytest` find this."""
    module: Any = type(sys)("pytest")
    for function in (raises, approx, fail, skip, xfail, warns, fixture, importorskip):
        setattr(module, function.__name__, function)
    module.param, module.mark = Param, Mark()

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise unsupported(f"pytest.{name}")

    module.__dict__["__getattr__"] = __getattr__
    sys.modules["pytest"] = module
