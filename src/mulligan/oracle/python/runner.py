"""Runs test functions as pytest and unittest do, with their rows, fixtures, marks, set-up and teardown.

Runs inside the sandbox, in the examiner. The orders that pytest has are kept: module before class before test; shared
fixtures and autouse fixtures of the module before `setup_method`, other fixtures after it; teardown in reverse.
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


_CO_GENERATOR = 0x20
"""`inspect.CO_GENERATOR`, the flag of the code of a function with `yield`."""


class Row:
    """One run of a test. `run` raises what failed it, or `Skipped`."""

    def __init__(self, label: str, values: Mapping[str, Any], run: Callable[[], None]) -> None:
        self.label, self.values, self.run = label, values, run


class _Combination:
    """A row of `parametrize`, a param of a fixture, or a combination of such."""

    def __init__(self, label: str = "", values: Mapping[str, Any] | None = None, marks: tuple[Any, ...] = ()) -> None:
        self.label, self.values, self.marks = label, values or {}, marks

    def joined(self, other: _Combination) -> _Combination:
        label = "-".join(filter(None, (self.label, other.label)))
        return _Combination(label, {**self.values, **other.values}, (*self.marks, *other.marks))


class _TestFunction:
    """A test function, or a method of the class `owner`: its marks, and the fixtures that it can ask for and uses."""

    def __init__(self, space: Mapping[str, Any], owner: Any, name: str) -> None:
        self.owner, self.name = owner, name
        function: Any = getattr(owner, name) if owner else space[name]
        module = _new_module()
        module.pytestmark = space.get("pytestmark", ())
        self.marks = marks_of(function, *((owner,) if owner else ()), module)
        self.fixtures = _fixtures_in(space)
        for kind in reversed(owner.__mro__ if owner else ()):
            self.fixtures.update(_fixtures_in(vars(kind)))
        autouse = [name for name, fixture in self.fixtures.items() if fixture.autouse]
        marked = [name for names in self.marks["oracle_uses"] for name in names]
        self.uses = list(dict.fromkeys([*autouse, *marked, *_parameters(function)]))


class Runner:
    """Runs the tests of one file. space: its global names."""

    def __init__(self, space: dict[str, Any]) -> None:
        self.space = space
        self._set_up_errors: dict[Any, BaseException | None] = {}
        self._teardowns: list[Callable[[], Any]] = []
        self._shared_values: dict[Any, Any] = {}

    def rows(self, owner: Any, name: str) -> Iterator[Row]:
        """Every run of a test: one for each combination of its `parametrize` rows and of the params of its fixtures.

        owner: the class of a method, or None. Rows that are marked to be skipped are left out.
        """
        if hasattr(owner, "assertEqual"):
            yield Row("", {}, lambda: self._run_by_unittest(owner, name))
            return
        test = _TestFunction(self.space, owner, name)
        cases = [_Combination()]
        for rows in test.marks["oracle_cases"]:
            cases = [case.joined(_Combination(*row)) for case in cases for row in rows]
        params = [_Combination()]
        for fixture in _needed(test.uses, test.fixtures):
            if not fixture.rows:
                continue
            own = [_Combination(label, {fixture.name: value}) for label, value in fixture.rows]
            params = [param.joined(other) for param in params for other in own]
        for case in cases:
            marks = marks_of(bearer_of(case.marks))
            if any(test.marks["oracle_skip"] + marks["oracle_skip"]):
                continue
            expected = next(filter(None, marks["oracle_xfail"] + test.marks["oracle_xfail"]), None)
            for param in params:
                run = _Run(self, test, values=case.values, params=param.values, expected=expected)
                yield Row(case.joined(param).label, case.values, run)

    def prepare(self, owner: Any) -> None:
        """Set up the module and the class, each before its first test. A set-up that failed raises its error again."""
        stages: list[tuple[Any, tuple[str, ...], tuple[str, ...]]] = [
            (None, ("setUpModule", "setup_module"), ("tearDownModule", "teardown_module")),
            (owner, ("setUpClass", "setup_class"), ("tearDownClass", "teardown_class")),
        ]
        for key, before, after in stages if owner else stages[:1]:
            if key not in self._set_up_errors:
                self._set_up_errors[key] = self._set_up(key, before, after)
            if (error := self._set_up_errors[key]) is not None:
                raise error

    def _set_up(self, owner: Any, before: tuple[str, ...], after: tuple[str, ...]) -> BaseException | None:
        """Call what comes before the first test, and note what comes after the last one. Returns what was raised."""

        def call(name: str) -> None:
            if owner is None:
                _call_hook(self.space.get(name), _new_module())
            elif function := getattr(owner, name, None):  # with or without `classmethod`
                plain = getattr(function, "__func__", function)
                plain(*([owner] if plain.__code__.co_argcount else []))

        if cleanups := getattr(owner, "doClassCleanups", None):
            self._teardowns.append(cleanups)  # first here, so last of all, and also if the set-up fails
        try:
            for name in before:
                call(name)
        except BaseException as error:
            return error
        self._teardowns += [lambda name=name: call(name) for name in after]
        return None

    def finish(self) -> None:
        """Tear down classes, modules and shared fixtures. An error here fails no test."""
        while self._teardowns:
            try:
                self._teardowns.pop()()
            except Exception:
                continue  # no test is left that it could belong to

    def _run_by_unittest(self, owner: Any, method: str) -> None:
        """Run a method of a `unittest.TestCase`."""
        unittest: Any = sys.modules["unittest"]
        if getattr(owner, "__unittest_skip__", False):
            raise Skipped
        try:
            self.prepare(owner)
        except unittest.SkipTest:
            raise Skipped from None
        result, errors, reasons = unittest.TestResult(), list[BaseException](), list[str]()
        result.addFailure = result.addError = lambda _, info: errors.append(info[1])
        result.addSubTest = lambda _, __, info: errors.append(info[1]) if info else None
        result.addSkip = lambda _, reason: reasons.append(reason)
        result.addUnexpectedSuccess = lambda _: errors.append(AssertionError("passed, though a failure is expected"))
        owner(method).run(result)
        if errors:
            raise errors[0]
        if reasons:
            raise Skipped(reasons[0])

    def value(self, fixture: Fixture, run: _Run) -> Any:
        """The value of a fixture for one run, made when it is first asked for."""
        shared = fixture.scope != "function"
        values, teardowns = (self._shared_values, self._teardowns) if shared else (run.fixture_values, run.teardowns)
        owner = run.test.owner if fixture.scope == "class" else None
        # A shared fixture is made anew for other params, also for those of the fixtures that it asks for.
        params = [run.params.get(needed.name) for needed in _needed([fixture.name], run.test.fixtures)]
        key = (fixture.name, owner, repr(params), id(fixture))
        if key not in values:
            arguments = {
                name: Request(run.params.get(fixture.name), teardowns) if name == "request" else run.value(name)
                for name in _parameters(fixture.make)
            }
            instance = (run.instance,) if _is_method(fixture.make) else ()
            value = fixture.make(*instance, **arguments)
            if _is_generator_function(fixture.make):
                generator, value = value, next(value)
                teardowns.append(lambda: next(generator, None))
            values[key] = value
        return values[key]


class _Run:
    """One run of a function or method by pytest's rules.

    values: of its parametrized arguments. params: of its fixtures. expected: the errors of its `xfail`, and whether a
    pass is a failure.
    """

    def __init__(
        self,
        runner: Runner,
        test: _TestFunction,
        *,
        values: Mapping[str, Any],
        params: Mapping[str, Any],
        expected: Any,
    ) -> None:
        self.test, self.params = test, params
        self.fixture_values: dict[Any, Any] = {}
        self.teardowns: list[Callable[[], Any]] = []
        self.instance: Any = None
        self._runner, self._values, self._expected = runner, values, expected

    def __call__(self) -> None:
        raises, strict = self._expected or ((), False)
        try:
            self._run()
        except Exception as error:
            if self._expected and isinstance(error, raises):
                raise Skipped from None
            raise
        if strict:
            raise AssertionError("passed, though a failure is expected (xfail, strict)")

    def _run(self) -> None:
        owner = self.test.owner
        self._runner.prepare(owner)
        self.instance = owner() if owner else None
        find: Any = (lambda name: getattr(self.instance, name, None)) if owner else self._runner.space.get
        function = find(self.test.name)
        before, after = ("setup_method", "teardown_method") if owner else ("setup_function", "teardown_function")
        names = [name for name in self.test.uses if name not in self._values]
        try:
            fixtures = {name: self.value(name) for name in names if self._precedes_set_up(name)}
            _call_hook(find(before), function)
            self.teardowns.append(lambda: _call_hook(find(after), function))
            fixtures |= {name: self.value(name) for name in names if name not in fixtures}
            arguments = {name: fixtures[name] for name in _parameters(function) if name in fixtures}
            result = function(**{**self._values, **arguments})
            if hasattr(result, "__await__"):
                import asyncio

                asyncio.run(result)
        finally:
            self._tear_down()

    def _precedes_set_up(self, name: str) -> bool:
        """Whether a fixture is made before `setup_method` or `setup_function` is called."""
        fixture = self.test.fixtures.get(name)
        if fixture is None:
            return False
        of_module = bool(self.test.owner) and fixture.autouse and not _is_method(fixture.make)
        return of_module or fixture.scope != "function"

    def _tear_down(self) -> None:
        """Call all that comes after the test, then raise the first error."""
        errors: list[Exception] = []
        while self.teardowns:
            try:
                self.teardowns.pop()()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def value(self, name: str) -> Any:
        """The value of the fixture of this name."""
        if name not in self.test.fixtures:
            raise unsupported(f"the fixture {name!r}")
        return self._runner.value(self.test.fixtures[name], self)


def _new_module() -> Any:
    return type(sys)("tests")


def _fixtures_in(names: Mapping[str, Any]) -> dict[str, Fixture]:
    return {fixture.name: fixture for fixture in names.values() if isinstance(fixture, Fixture)}


def _needed(names: list[str], fixtures: Mapping[str, Fixture]) -> list[Fixture]:
    """These fixtures and those that they ask for, each once."""
    needed: dict[str, Fixture] = {}
    queue = list(names)
    while queue:
        name = queue.pop(0)
        if name in fixtures and name not in needed:
            needed[name] = fixtures[name]
            queue += _parameters(fixtures[name].make)
    return list(needed.values())


def _parameters(function: Any) -> list[str]:
    """The names of its parameters without a default, apart from `self`."""
    if hasattr(function, "__wrapped__"):  # its decorator passes them
        return []
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    positional = code.co_varnames[: code.co_argcount]
    required = list(positional[: len(positional) - len(function.__defaults__ or ())])
    keyword_only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if _is_method(function):
        del required[:1]
    return required + [name for name in keyword_only if name not in (function.__kwdefaults__ or {})]


def _is_generator_function(function: Any) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and bool(code.co_flags & _CO_GENERATOR)


def _is_method(function: Any) -> bool:
    return hasattr(function, "__func__") or function.__code__.co_varnames[:1] == ("self",)


def _call_hook(function: Any, argument: Any) -> None:
    """Call a set-up or teardown function, with the argument if it takes one."""
    if function is not None:
        function(*([argument] if _parameters(function) else []))
