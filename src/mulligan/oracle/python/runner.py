"""Runs test functions as pytest and unittest do: rows, fixtures, marks, what comes before and after a test.

Runs inside the sandbox, in the examiner.
"""

# Values of any kind: nothing here is known to a type checker.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false
from __future__ import annotations

import sys

from mulligan.oracle.python.shim import Fixture, Request, Skipped, bearer_of, marks_of, unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


_HAS_YIELD = 0x20
"""The flag of the code of a function with `yield` (`inspect.CO_HAS_YIELD`)."""


class Row:
    """One run of a test function. `run` raises what failed it, and `Skipped`."""

    def __init__(self, label: str, values: Mapping[str, Any], run: Callable[[], None]) -> None:
        self.label, self.values, self.run = label, values, run


class Runner:
    """The test functions of one file. space: its global names."""

    def __init__(self, space: dict[str, Any]) -> None:
        self.space = space
        self._set_up: dict[Any, BaseException | None] = {}
        self._ends: list[Callable[[], Any]] = []
        self._made: dict[Any, Any] = {}

    def rows(self, owner: Any, name: str) -> Iterator[Row]:
        """owner: the class of a method, or None."""
        if hasattr(owner, "assertEqual"):
            yield Row("", {}, lambda: self._case(owner, name))
            return
        function: Any = getattr(owner, name) if owner else self.space[name]
        module: Any = type(sys)("tests")
        module.pytestmark = self.space.get("pytestmark", ())
        marks = marks_of(function, *((owner,) if owner else ()), module)
        fixtures = {one.name: one for one in self.space.values() if isinstance(one, Fixture)}
        for kind in reversed(owner.__mro__ if owner else ()):
            fixtures.update({one.name: one for one in vars(kind).values() if isinstance(one, Fixture)})
        wanted = [
            *(n for n, one in fixtures.items() if one.autouse),
            *(n for names in marks["oracle_uses"] for n in names),
        ]
        wanted = list(dict.fromkeys([*wanted, *_parameters(function)]))
        rows: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [("", {}, ())]
        for cases in marks["oracle_cases"]:
            rows = [("-".join(filter(None, (a, b))), {**x, **y}, (*m, *n)) for a, x, m in rows for b, y, n in cases]
        chosen: list[tuple[str, dict[str, Any]]] = [("", {})]
        for one in _needed(wanted, fixtures):
            if one.rows:
                chosen = [(f"{a}-{b}".strip("-"), {**x, one.name: y}) for a, x in chosen for b, y in one.rows]
        for label, values, own in rows:
            from_row = marks_of(bearer_of(own))
            skipped = any(marks["oracle_skip"] + from_row["oracle_skip"])
            expected = next(filter(None, from_row["oracle_xfail"] + marks["oracle_xfail"]), None)
            for other, params in [] if skipped else chosen:
                run = _Run(
                    self, owner, name, fixtures, [n for n in wanted if n not in values], values, params, expected
                )
                yield Row("-".join(filter(None, (label, other))), values, run)

    def prepare(self, owner: Any) -> None:
        """What a module and a class do once, before their first test. Raises what that raised each time."""
        stages: list[tuple[Any, tuple[str, ...], tuple[str, ...]]] = [
            (None, ("setUpModule", "setup_module"), ("tearDownModule", "teardown_module")),
            (owner, ("setUpClass", "setup_class"), ("tearDownClass", "teardown_class")),
        ]
        for key, before, after in stages if owner else stages[:1]:
            if key not in self._set_up:
                self._set_up[key] = self._begin(key, before, after)
            if (error := self._set_up[key]) is not None:
                raise error

    def _begin(self, owner: Any, before: tuple[str, ...], after: tuple[str, ...]) -> BaseException | None:
        """Does what comes before the first test, and keeps what comes after the last one. Returns what was raised."""

        def call(name: str) -> None:
            if owner is None:
                _call_hook(self.space.get(name), type(sys)("tests"))
            elif function := getattr(owner, name, None):  # with or without `classmethod`
                plain = getattr(function, "__func__", function)
                plain(*([owner] if plain.__code__.co_argcount else []))

        self._ends += [cleanups for cleanups in (getattr(owner, "doClassCleanups", None),) if cleanups]
        try:
            for name in before:
                call(name)
        except BaseException as error:
            return error
        self._ends += [lambda name=name: call(name) for name in after]
        return None

    def finish(self) -> None:
        """What they do after their last test; it fails nothing that has passed."""
        while self._ends:
            try:
                self._ends.pop()()
            except Exception:
                continue  # no test is left that it could belong to

    def _case(self, owner: Any, method: str) -> None:
        """A method of a `unittest.TestCase`, by unittest itself."""
        unittest: Any = sys.modules["unittest"]
        if getattr(owner, "__unittest_skip__", False):
            raise Skipped
        try:
            self.prepare(owner)
        except unittest.SkipTest:
            raise Skipped from None
        result, errors, skipped = unittest.TestResult(), list[BaseException](), list[str]()
        result.addFailure = result.addError = lambda _, info: errors.append(info[1])
        result.addSubTest = lambda _, __, info: errors.append(info[1]) if info else None
        result.addSkip = lambda _, reason: skipped.append(reason)
        result.addUnexpectedSuccess = lambda _: errors.append(AssertionError("passed, though a failure is expected"))
        owner(method).run(result)
        if errors:
            raise errors[0]
        if skipped:
            raise Skipped(skipped[0])

    def value(self, fixture: Fixture, run: _Run) -> Any:
        """The value of a fixture for one run, made when it is first asked for."""
        shared = fixture.scope != "function"
        made, ends = (self._made, self._ends) if shared else (run.made, run.ends)
        owner = run.owner if fixture.scope == "class" else None
        rests_on = [run.params.get(one.name) for one in _needed([fixture.name], run.fixtures)]
        key = (fixture.name, owner, repr(rests_on), id(fixture))
        if key not in made:
            given = {
                name: Request(run.params.get(fixture.name), ends) if name == "request" else run.fixture(name)
                for name in _parameters(fixture.make)
            }
            item = (run.item,) if _is_method(fixture.make) else ()
            value = fixture.make(*item, **given)
            if _is_generator(fixture.make):
                generator, value = value, next(value)
                ends.append(lambda: next(generator, None))
            made[key] = value
        return made[key]


class _Run:
    """One run of a function or method by pytest's rules."""

    def __init__(
        self,
        runner: Runner,
        owner: Any,
        name: str,
        fixtures: Mapping[str, Fixture],
        wanted: list[str],
        values: Mapping[str, Any],
        params: Mapping[str, Any],
        expected: Any,
    ) -> None:
        self.owner, self.params = owner, params
        self.made: dict[Any, Any] = {}
        self.ends: list[Callable[[], Any]] = []
        self.item: Any = None
        self.fixtures = fixtures
        self._runner, self._name, self._wanted = runner, name, wanted
        self._values, self._expected = values, expected

    def __call__(self) -> None:
        raises, strict = self._expected or ((), False)
        try:
            self._whole()
        except Exception as error:
            if self._expected and isinstance(error, raises):
                raise Skipped from None
            raise
        if strict:
            raise AssertionError("passed, though a failure is expected (xfail, strict)")

    def _whole(self) -> None:
        self._runner.prepare(self.owner)
        self.item = self.owner() if self.owner else None
        find: Any = (lambda name: getattr(self.item, name, None)) if self.owner else self._runner.space.get
        function = find(self._name)
        before, after = ("setup_method", "teardown_method") if self.owner else ("setup_function", "teardown_function")
        try:
            given = {name: self.fixture(name) for name in self._wanted if self._comes_first(name)}
            _call_hook(find(before), function)
            self.ends.append(lambda: _call_hook(find(after), function))
            given |= {name: self.fixture(name) for name in self._wanted if name not in given}
            needed = _parameters(function)
            result = function(**{**self._values, **{name: given[name] for name in needed if name in given}})
            if hasattr(result, "__await__"):
                import asyncio

                asyncio.run(result)
        finally:
            self._end()

    def _comes_first(self, name: str) -> bool:
        """Whether a fixture is made before `setup_method` or `setup_function` is called."""
        fixture = self.fixtures.get(name)
        if fixture is None:
            return False
        of_module = bool(self.owner) and fixture.autouse and not _is_method(fixture.make)
        return of_module or fixture.scope != "function"

    def _end(self) -> None:
        """Does all that comes after the test. Raises what was raised first."""
        errors: list[Exception] = []
        while self.ends:
            try:
                self.ends.pop()()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def fixture(self, name: str) -> Any:
        if name not in self.fixtures:
            raise unsupported(f"the fixture {name!r}")
        return self._runner.value(self.fixtures[name], self)


def _needed(names: list[str], fixtures: Mapping[str, Fixture]) -> list[Fixture]:
    """These fixtures and those that they need, each once."""
    found: dict[str, Fixture] = {}
    rest = list(names)
    while rest:
        name = rest.pop(0)
        if name in fixtures and name not in found:
            found[name] = fixtures[name]
            rest += _parameters(fixtures[name].make)
    return list(found.values())


def _parameters(function: Any) -> list[str]:
    """The names of its parameters without a default, without `self`."""
    if hasattr(function, "__wrapped__"):  # a decorator gives them
        return []
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    names = list(code.co_varnames[: code.co_argcount])
    names = names[: len(names) - len(function.__defaults__ or ())]
    return [
        *(names[1:] if _is_method(function) else names),
        *(
            name
            for name in code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
            if name not in (function.__kwdefaults__ or {})
        ),
    ]


def _is_generator(function: Any) -> bool:
    plain = getattr(function, "__func__", function)
    return bool(plain.__code__.co_flags & _HAS_YIELD) if hasattr(plain, "__code__") else False


def _is_method(function: Any) -> bool:
    return hasattr(function, "__func__") or function.__code__.co_varnames[:1] == ("self",)


def _call_hook(function: Any, argument: Any) -> None:
    """One of the functions before and after, with its argument if it takes one."""
    if function is not None:
        function(*([argument] if _parameters(function) else []))
