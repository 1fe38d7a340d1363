"""Reads a test file, before any model is called, into a plan: its tests, and the instrumented file."""

from __future__ import annotations

import ast
import importlib.util
import marshal
import warnings
import zlib
from dataclasses import dataclass, field
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.oracle.python import wire
from mulligan.oracle.python.instrument import MAX_POINTS, Instrument, Point, Test, helpers
from mulligan.oracle.python.literals import folded, unfolded
from mulligan.oracle.python.names import SOLUTION, Names, foreign, names_in, needs_process, uses_network

_RESERVED = 100_000
"""Characters that are reserved for the code of an attempt."""
_MAX_CHARACTERS = 2 * wire.LIMIT
"""Characters that a test file has at most. Except for comments, a longer one does not fit on the wire."""
_ADVICE = "Write the asserts as a loop over rows, create large values in code, or use a smaller part of the file."


@dataclass(frozen=True)
class Plan:
    """An instrumented test file.

    Attributes:
        tests, points: by their indices.
        calls: the texts of the calls whose values are noted, and whether they call the candidate.
        functions: the tests that are functions or methods: index and name.
        starts: for each such test, the point that stands for its beginning.
        code: compiled and compressed.
        why: why the tests need the candidate in their own process; None if they do not.
        modules: the modules that the file imports and Python does not have.
        uses_network: whether the file imports a module that opens sockets.
    """

    tests: tuple[Test, ...]
    points: tuple[Point, ...]
    calls: tuple[tuple[str, bool], ...]
    functions: tuple[tuple[int, str], ...]
    starts: dict[int, int]
    code: bytes
    names: Names
    why: str | None
    modules: frozenset[str] = field(default_factory=frozenset[str])
    uses_network: bool = False

    @property
    def size(self) -> int:
        return sum(not test.quiet for test in self.tests)

    def job(self, code: str, in_process: bool, seconds: float, limit: float) -> dict[str, Any]:
        """The job for the examiner, as plain values. seconds: for all tests. limit: seconds for one test."""
        return {
            "code": code,
            "tests": self.code,
            "points": [{"test": p.test, "line": p.line, "names": p.names, "binds": p.binds} for p in self.points],
            "functions": [list(pair) for pair in self.functions],
            "starts": {str(test): point for test, point in self.starts.items()},
            "wanted": self.names.wanted,
            "firm": self.names.certain,
            "in_process": in_process,
            "seconds": seconds,
            "limit": limit,
        }

    def share(self, seconds: float) -> float:
        """The default time for one test, out of that for the file."""
        return seconds / min(max(self.size, 1), 4)


def read(text: str, name: str = "tests.py") -> Plan:
    """The plan of a test file. Raises `InvalidInput`, with the file and the line, if it cannot be used."""
    text = text.removeprefix("\ufeff")
    if len(text) > _MAX_CHARACTERS:  # parsing it takes seconds, and no signal can interrupt that
        raise InvalidInput(
            f"{name} is too large: {len(text):,} characters (the limit is {_MAX_CHARACTERS:,}). {_ADVICE}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = folded(ast.parse(text, name))
            names = names_in(tree, text)
    except SyntaxError as error:
        if error.lineno is None:  # a NUL in it, say
            raise InvalidInput(f"{name} cannot be read as Python: {error.msg}") from error
        line = (error.text or "").strip()
        raise InvalidInput(f"{name}, line {error.lineno}: {error.msg}: {line}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidInput(f"{name} cannot be read as Python: {error}") from error
    if sum(isinstance(node, ast.Assert) for node in tree.body) > MAX_POINTS:
        raise _too_many(name)
    _check_imports(tree, name)
    why, network = needs_process(tree, names), uses_network(tree)
    work, tree = _instrumented(tree, text, names, name)
    code = zlib.compress(marshal.dumps(compile(tree, name, "exec", dont_inherit=True)))
    plan = Plan(
        tuple(work.tests),
        tuple(work.points),
        tuple(work.calls),
        tuple(work.functions),
        work.starts,
        code,
        names,
        why,
        foreign(text),
        network,
    )
    _check_size(plan, name)
    return plan


def _too_many(name: str) -> InvalidInput:
    return InvalidInput(f"{name} is too large: more than {MAX_POINTS:,} asserts cannot be judged. {_ADVICE}")


def _instrumented(tree: ast.Module, text: str, names: Names, name: str) -> tuple[Instrument, ast.Module]:
    """The instrumented file. Raises `InvalidInput` if it has no test."""
    judges = helpers(tree) & {getattr(node, "name", "") for node in tree.body}
    for broad in (False, True):  # `if f(1) != 2: raise ...` is a test in a file that has no other
        work = Instrument(text, names, name, broad=broad)
        try:
            instrumented = ast.fix_missing_locations(work.module(folded(ast.parse(text)) if broad else tree))
        except wire.TooMuch:
            raise _too_many(name) from None
        if any(not test.quiet for test in work.tests):
            return work, unfolded(instrumented)
    advice = "write asserts such as `assert add(1, 2) == 3`, or functions `def test_...():`"
    if judges:
        advice = f"{min(judges)} asserts, and nothing calls it: add a line such as `{min(judges)}(add)`"
    raise InvalidInput(f"{name} contains no test: {advice}.")


def _check_size(plan: Plan, name: str) -> None:
    """Refuse a plan that does not fit on the wire as one value, together with the code of an attempt."""
    try:
        wire.encode(plan.job("x" * _RESERVED, False, 1.0, 1.0))
    except wire.TooMuch as error:
        raise InvalidInput(
            f"{name} is too large: {len(plan.points):,} asserts and other statements that can fail, and with the "
            f"values in them more than {wire.LIMIT - _RESERVED:,} characters when compiled and compressed. {_ADVICE}"
        ) from error


def _check_imports(tree: ast.Module, name: str) -> None:
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            if node.level:
                raise InvalidInput(
                    f"{name}, line {node.lineno}: a relative import; the attempt's code is `{SOLUTION}`."
                )
            modules = [node.module or ""]
        for module in modules:
            top = module.partition(".")[0]
            if top not in (SOLUTION, "pytest") and importlib.util.find_spec(top) is None:
                line = getattr(node, "lineno", 0)
                raise InvalidInput(
                    f"{name}, line {line}: no module {top!r} is installed here. The attempt's code is imported as "
                    f"`{SOLUTION}`, or used without an import."
                )
