"""Runs test functions as pytest and unittest do, with their rows, fixtures, marks, set-up and teardown.

Runs inside the sandbox, in the examiner. The orders that pytest has are kept: fixtures by their scope; set-up of the
module and of the class before the fixtures of that scope; fixtures of the module that are autouse before
`setup_method`, other fixtures of a test after it; teardown in reverse, that of a class before the next class.
"""

# Values of any kind: nothing here is known to a type checker.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false
from __future__ import annotations

import sys

from mulligan.oracle.python.fixtures import PYTEST_FIXTURES
from mulligan.oracle.python.remote import Forgeable, Stopped, Undecided
from mulligan.oracle.python.shim import Fixture, Request, Skipped, bearer_of, is_skip, marks_of, unsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any


_CO_GENERATOR = 0x20
"""`inspect.CO_GENERATOR`, the flag of the code of a function with `yield`."""
_SCOPES = ("session", "package", "module", "class", "function")
"""The scopes of fixtures, in the order in which a test makes its fixtures."""


class Row:
    """One run of a test. `run` raises what failed it, or the wish to skip it."""

    def __init__(self, label: str, values: Mapping[str, Any], run: Callable[[], None]) -> None:
        self.label, self.values, self.run = label, values, run


class _Combination:
    """A row of `parametrize`, a param of a fixture, or a combination of such."""

    def __init__(self, label: str = "", values: Mapping[str, Any] | None = None, marks: tuple[Any, ...] = ()) -> None:
        self.label, self.values, self.marks = label, values or {}, marks

    def joined(self, other: _Combination) -> _Combination:
        label = "-".join(filter(None, (self.label, other.label)))
        return _Combination(label, {**self.values, **other.values}, (*self.marks, *other.marks))


def _combinations(groups: Iterable[list[_Combination]]) -> list[_Combination]:
    """All combinations that have one of each group."""
    found = [_Combination()]
    for group in groups:
        found = [one.joined(other) for one in found for other in group]
    return found


class _Stage:
    """A module, a class or one run of a test, while it runs: the values of its fixtures, and what comes after it."""

    def __init__(self, owner: Any = None) -> None:
        self.owner = owner
        self.values: dict[Any, Any] = {}
        self.teardowns: list[Callable[[], Any]] = []
        self._begun = False
        self._error: BaseException | None = None

    def set_up(self, steps: list[tuple[Any, Any]], argument: Any) -> None:
        """Call the first function of each step, once, and note the second for the end.

        A set-up that failed raises its error again at each later call.
        """
        if not self._begun:
            self._begun = True
            try:
                for before, after in steps:
                    _call_hook(before, argument)
                    self.teardowns.append(lambda after=after: _call_hook(after, argument))
            except BaseException as error:
                self._error = error
        if self._error is not None:
            raise self._error

    def tear_down(self) -> list[BaseException]:
        """Call all that comes after it, the last one first. Returns what was raised."""
        errors: list[BaseException] = []
        while self.teardowns:
            try:
                self.teardowns.pop()()
            except BaseException as error:
                errors.append(error)
        return errors


class _TestFunction:
    """A test function, or a method of the class `owner`: its marks, and the fixtures that it can ask for and uses."""

    def __init__(self, module: Any, owner: Any, name: str) -> None:
        self.owner, self.name = owner, name
        self.by_unittest = hasattr(owner, "assertEqual")
        function = _bound(owner, name) if owner else vars(module)[name]
        self.marks = marks_of(function, *((owner,) if owner else ()), module)
        self.fixtures = {**PYTEST_FIXTURES, **_fixtures_in(vars(module))}
        for kind in reversed(owner.__mro__ if owner else ()):
            self.fixtures.update(_fixtures_in(vars(kind)))
        given = {argument for rows in self.marks["oracle_cases"] for _, values, _ in rows for argument in values}
        for argument in given & self.fixtures.keys():
            del self.fixtures[argument]  # the argument replaces the fixture of its name
        autouse = [fixture.name for fixture in self.fixtures.values() if fixture.autouse]
        marked = [used for names in self.marks["oracle_uses"] for used in names]
        self.parameters = [] if self.by_unittest else _parameters(function)
        if hasattr(function, "__wrapped__"):  # what nothing here gives, a decorator may
            self.parameters = [one for one in self.parameters if one in self.fixtures or one in given]
        self.needs = _needed([*autouse, *marked, *self.parameters], self.fixtures)
        """The names of its fixtures and arguments, and of those that they ask for."""

    def scope(self, name: str) -> str:
        return self.fixtures[name].scope if name in self.fixtures else "function"


class Runner:
    """Runs the tests of one file, which is run in the names of `module`."""

    def __init__(self) -> None:
        self.module: Any = type(sys)("tests")
        self._module_stage, self._class_stage = _Stage(), _Stage()

    def rows(self, owner: Any, name: str) -> Iterator[Row]:
        """Every run of a test: one for each combination of its `parametrize` rows and of the params of its fixtures.

        owner: the class of a method, or None. Rows that are marked to be skipped are left out.
        """
        if not hasattr(owner or self.module, name):  # a decorator of the class has taken it away
            return
        test = _TestFunction(self.module, owner, name)
        cases = _combinations([_Combination(*row) for row in rows] for rows in test.marks["oracle_cases"])
        fixtures = [test.fixtures[name] for name in test.needs if name in test.fixtures]
        params = _combinations(
            [_Combination(label, {fixture.name: value}) for label, value in fixture.rows]
            for fixture in fixtures
            if fixture.rows
        )
        for case in cases:
            marks = marks_of(bearer_of(case.marks))
            if any(test.marks["oracle_skip"] + marks["oracle_skip"]):
                continue
            expected = next(filter(None, marks["oracle_xfail"] + test.marks["oracle_xfail"]), None)
            for param in params:
                row = case.joined(param)
                yield Row(row.label, case.values, _Run(self, test, given=row.values, expected=expected))

    def begin(self, owner: Any) -> None:
        """Tear down the class before this one, and set up the module before its first test."""
        if owner is not self._class_stage.owner:
            _end(self._class_stage)
            self._class_stage = _Stage(owner)
            if cleanups := getattr(owner, "doClassCleanups", None):
                self._class_stage.teardowns.append(cleanups)  # last of all, and also if the set-up fails
        names = ("setUpModule", "tearDownModule"), ("setup_module", "teardown_module")
        space = vars(self.module)
        self._module_stage.set_up([(space.get(before), space.get(after)) for before, after in names], self.module)

    def set_up_class(self, owner: Any) -> None:
        """Set up the class before its first test."""
        names = "setUpClass", "tearDownClass", "setup_class", "teardown_class"
        set_up, tear_down, *hooks = (getattr(owner, name, None) for name in names)
        before, after = (getattr(hook, "__func__", hook) for hook in hooks)  # they need not be class methods
        self._class_stage.set_up([(set_up, tear_down), (before, after)], owner)

    def finish(self) -> None:
        """Tear down what is still set up. An error here fails no test."""
        _end(self._class_stage)
        _end(self._module_stage)

    def value(self, fixture: Fixture, run: _Run) -> Any:
        """The value of a fixture for one run, made when it is first asked for."""
        stage = run.stage
        if fixture.scope == "class" and run.test.owner:
            stage = self._class_stage
        elif fixture.scope not in ("class", "function"):
            stage = self._module_stage
        # A shared fixture is made anew for other params, also for those of the fixtures that it asks for. They are
        # compared as pytest does, by identity.
        params = [id(run.given[needed]) for needed in _needed([fixture.name], run.test.fixtures) if needed in run.given]
        key = (id(fixture), *params)
        if key not in stage.values:
            make = fixture.bound(run.instance)
            names = _parameters(make)
            if fixture.name in names:
                raise unsupported(f"the fixture {fixture.name!r} that asks for the one that it replaces")
            arguments = {
                name: Request(run.given.get(fixture.name), stage.teardowns) if name == "request" else run.value(name)
                for name in names
            }
            value = make(**arguments)
            if _is_generator_function(make):
                generator, value = value, next(value)
                stage.teardowns.append(lambda: next(generator, None))
            stage.values[key] = value
        return stage.values[key]


class _Run:
    """One run of a test.

    given: the values of its parametrized arguments, and the params of its fixtures. expected: the errors of its
    `xfail`, and whether a pass is a failure.
    """

    def __init__(self, runner: Runner, test: _TestFunction, *, given: Mapping[str, Any], expected: Any) -> None:
        self.test, self.given = test, given
        self.stage = _Stage()
        self.instance: Any = None
        self._runner, self._expected = runner, expected

    def __call__(self) -> None:
        """Raises the first error that is not expected, the test's own before those of its teardown."""
        expected, strict = self._expected or ((), False)
        errors: list[BaseException] = []
        try:
            self._run()
        except BaseException as error:
            errors.append(error)
        errors += self.stage.tear_down()
        for error in errors:
            if isinstance(error, Stopped) or not (is_skip(error) or isinstance(error, expected)):
                raise error
        if errors:
            raise next(filter(is_skip, errors), Skipped())
        if strict:
            raise AssertionError("passed, although a failure was expected (xfail, strict)")

    def _run(self) -> None:
        test, runner = self.test, self._runner
        if getattr(test.owner, "__unittest_skip__", False):
            raise Skipped
        runner.begin(test.owner)
        if test.owner:
            self.instance = test.owner(test.name) if test.by_unittest else test.owner()
        needs = sorted(test.needs, key=lambda name: _SCOPES.index(test.scope(name)))
        self._make(name for name in needs if test.scope(name) not in ("class", "function"))
        if test.owner:
            runner.set_up_class(test.owner)
        self._make(name for name in needs if self._precedes_set_up(name))
        place = self.instance if test.owner else runner.module
        function = getattr(place, test.name)
        before, after = ("setup_method", "teardown_method") if test.owner else ("setup_function", "teardown_function")
        _call_hook(getattr(place, before, None), function)
        self.stage.teardowns.append(lambda: _call_hook(getattr(place, after, None), function))
        self._make(needs)
        if test.by_unittest:
            _run_by_unittest(self.instance)
            return
        unasked = {name: value for name, value in self.given.items() if name not in test.needs}
        result = function(**unasked, **{name: self.value(name) for name in test.parameters})
        if hasattr(result, "__await__"):
            import asyncio

            asyncio.run(result)

    def _make(self, names: Iterable[str]) -> None:
        for name in names:
            self.value(name)

    def _precedes_set_up(self, name: str) -> bool:
        """Whether a fixture is made before `setup_method` or `setup_function` is called."""
        fixture = self.test.fixtures.get(name)
        if fixture is None:
            return False
        of_module = bool(self.test.owner) and fixture.autouse and not fixture.in_class
        return of_module or fixture.scope != "function"

    def value(self, name: str) -> Any:
        """The value of the argument or fixture of this name."""
        if name in self.test.fixtures:
            return self._runner.value(self.test.fixtures[name], self)
        if name in self.given:
            return self.given[name]
        raise unsupported(f"the fixture {name!r}")


def _run_by_unittest(case: Any) -> None:
    """Run a `unittest.TestCase`. Raises its first error, or `Skipped`."""
    unittest: Any = sys.modules["unittest"]
    result, errors, reasons = unittest.TestResult(), list[BaseException](), list[str]()
    result.addFailure = result.addError = lambda _, info: errors.append(info[1])
    result.addSubTest = lambda _, __, info: errors.append(info[1]) if info else None
    result.addSkip = lambda _, reason: reasons.append(reason)
    result.addUnexpectedSuccess = lambda _: errors.append(AssertionError("passed, although a failure was expected"))
    case.run(result)
    if errors:
        raise errors[0]
    if reasons:
        raise Skipped(reasons[0])


def _end(stage: _Stage) -> None:
    """Tear down a module or class. What leaves no verdict is raised; an error belongs to no test that is left."""
    for error in stage.tear_down():
        if isinstance(error, Forgeable | Undecided):
            raise error


def _fixtures_in(names: Mapping[str, Any]) -> dict[str, Fixture]:
    return {fixture.name: fixture for fixture in names.values() if isinstance(fixture, Fixture)}


def _needed(names: list[str], fixtures: Mapping[str, Fixture]) -> list[str]:
    """These names and those that their fixtures ask for, each once."""
    needed: dict[str, None] = {}
    queue = list(names)
    while queue:
        name = queue.pop(0)
        if name not in needed and name != "request":
            needed[name] = None
            if name in fixtures:
                queue += _parameters(fixtures[name].bound(object()))
    return list(needed)


def _bound(owner: Any, name: str) -> Any:
    """A method as it is called: without `self` or `cls`, which a static method does not have."""
    found = next(vars(kind)[name] for kind in owner.__mro__ if name in vars(kind))
    bind = getattr(found, "__get__", None)
    return bind(owner, owner) if bind else found


def _parameters(function: Any) -> list[str]:
    """The names of its parameters without a default, apart from those that a decorator of `mock.patch` gives."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return _parameters_by_signature(function)
    positional = code.co_varnames[: code.co_argcount]
    keyword_only = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    required = positional[: len(positional) - len(function.__defaults__ or ())]
    if hasattr(function, "__self__"):
        required = required[1:]
    return [*required, *(name for name in keyword_only if name not in (function.__kwdefaults__ or {}))]


def _parameters_by_signature(function: Any) -> list[str]:
    """The same for a function below decorators, whose import is not for every file."""
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [one.name for one in parameters if one.kind in kinds and one.default is one.empty]
    default: Any = getattr(sys.modules.get("unittest.mock"), "DEFAULT", None)
    patches: Any = getattr(function, "patchings", ())
    return names[sum(not patch.attribute_name and patch.new is default for patch in patches) :]


def _is_generator_function(function: Any) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and bool(code.co_flags & _CO_GENERATOR)


def _call_hook(function: Any, argument: Any) -> None:
    """Call a set-up or teardown function, with the argument if it takes one. A fixture of its name is none."""
    if function is not None and not isinstance(function, Fixture):
        taken = function.__code__.co_argcount - hasattr(function, "__self__")
        function(*[argument][: max(taken, 0)])
