"""EvalPlus (Liu et al. 2023): HumanEval and MBPP with many more inputs, and separate scores for base and plus tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from mulligan.bench.programming._programs import Cut, ProgramBenchmark, check_unique, read_rows, with_code, writes_tests
from mulligan.plugins import (
    Case,
    Episode,
    Evaluator,
    InvalidInput,
    Json,
    Judges,
    Score,
    Spec,
    Task,
    program,
    text_in,
)

Form: TypeAlias = Literal["full", "origin"]
BASE, PLUS = "base", "plus"
_CALLS = "mulligan.oracle.calls.judge:Calls"
_TESTS_SECONDS = 10.0
"""The time limit for tests that a model has written."""
_RULES = {
    "find_zero": "root",
    "are_equivalent": "any",
    "sum_div": "zero",
    "surface_Area": "surface",
    "digit_distance_nums": "digits",
    **dict.fromkeys(("check_str", "text_match_three", "text_starta_endb"), "some"),
    **dict.fromkeys(("similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly"), "set"),
    **dict.fromkeys(("larg_nnum", "intersection_array", "find_dissimilar", "Diff"), "set"),
}
"""The functions whose results are not compared for equality, with the names of EvalPlus's rules."""


class EvalPlusBenchmark(ProgramBenchmark):
    """The base class of HumanEval+ and MBPP+.

    The score is 1 if the base and plus tests pass, and its part "base" is 1 if the base tests pass. In the form
    "origin", the format of HumanEval and MBPP, the data does not say which tests are base tests.
    """

    def __init__(self, cut: Cut, judges: Judges, seconds: float) -> None:
        super().__init__(cut, judges, _TESTS_SECONDS)
        self._call_seconds = seconds
        self.where = cut.source.url.rpartition("/")[0] if cut.source else ""
        self._evaluators: dict[str, Evaluator] = {}

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        cases = [_case(file, line, row) for file, line, row in read_rows(files)]
        check_unique(files, [case.id for case in cases])
        self._evaluators.clear()
        return cases

    async def score(self, case: Case, episode: Episode) -> Score:
        target, output = cast(Mapping[str, Any], case.target), episode.trials[-1].attempt.output
        if writes_tests(episode):
            return await self._score_tests(case.id, target["solution"], output)
        is_own = "actor" in episode.head.settings  # then the loop has judged exactly this code
        code = program(output, case.task.prompt, is_code=is_own)
        if case.id not in self._evaluators:
            settings = {"seconds": self._call_seconds, **_settings(case)}
            self._evaluators[case.id] = self._judges(Spec(_CALLS, settings))
        verdict = await self._evaluators[case.id].evaluate(with_code(episode, code))
        if verdict.passed is None:
            return Score(None, verdict.text)
        passed = cast(dict[str, bool], cast(dict[str, Json], verdict.evidence)["parts"])
        value = float(verdict.passed)
        base = {BASE: float(passed[BASE])} if BASE in passed else {}
        return Score(value, verdict.text, {**base, PLUS: value})


def _case(file: Path, line: int, row: Mapping[str, Any]) -> Case:
    """The case of a row. Raises `InvalidInput`.

    Its target has "solution" (the canonical program), and the row's "base_input", "plus_input" and "atol", or its
    "test".
    """

    def text(key: str) -> str:
        return text_in(str(file), line, row, key)

    prompt, entry = text("prompt"), ""
    if "base_input" in row:
        entry = text("entry_point")
        target = {key: row.get(key) for key in ("base_input", "plus_input", "atol")}
        lists = isinstance(target["base_input"], list) and isinstance(target["plus_input"], (list, dict))
        if not lists or not isinstance(target["atol"], (int, float)):
            raise InvalidInput(
                f"{file}, line {line}: 'base_input' and 'plus_input' should be lists and 'atol' a number."
            )
        id, solution = text("task_id"), prompt + text("canonical_solution")
    elif "test_list" in row:  # the format of MBPP
        if not isinstance(asserts := row["test_list"], list):
            raise InvalidInput(f"{file}, line {line}: 'test_list' should be a list.")
        prompt = f'"""\n{prompt}\n{cast(list[Any], asserts)[0] if asserts else ""}\n"""\n'
        id, solution, target = f"Mbpp/{row.get('task_id')}", text("code"), {"test": text("test")}
    else:
        entry, target = text("entry_point"), {"test": text("test")}
        id, solution = text("task_id"), prompt + text("canonical_solution")
    if "test" in target:
        form = _LOOP.search(str(target["test"]))
        if form is None or not _INPUTS.search(str(target["test"])):
            raise InvalidInput(
                f"{file}, line {line}: 'test' is not in EvalPlus's format: inputs, and a loop over them."
            )
        entry = entry or form[1]
    return Case(id, Task(prompt), {"entry_point": entry, "solution": solution, **target})


def _settings(case: Case) -> dict[str, Any]:
    """The settings of the evaluator that judges this case."""
    target = cast(Mapping[str, Any], case.target)
    entry = str(target["entry_point"])
    settings: dict[str, Any] = {"entry_point": entry, "canonical": target["solution"], "rule": _RULES.get(entry, "")}
    if "test" not in target:
        shape = _SHAPES.get(case.id, list)
        inputs: dict[str, list[Any]] = {BASE: target["base_input"], PLUS: list(target["plus_input"])}
        parts = {name: [shape(call) for call in calls] for name, calls in inputs.items()}
        return {**settings, "parts": parts, "tolerance": target["atol"]}
    test = str(target["test"])
    calls, results, loop = _INPUTS.search(test), _RESULTS.search(test), _LOOP.search(test)
    assert calls is not None
    assert loop is not None
    expected = {"expected": {PLUS: _literal(results[1])}} if results else {}  # else the canonical program gives them
    return {**settings, "parts": {PLUS: _literal(calls[1])}, "tolerance": float(loop[2]), **expected}


_INPUTS = re.compile(r"^[ ]*inputs = (.+)$", re.MULTILINE)
_RESULTS = re.compile(r"^[ ]*results = (.+)$", re.MULTILINE)
_LOOP = re.compile(r"(?:assertion\(|_poly\(\*)(\w+)\(\*inp\), .*?([\d.e-]+)\)?\s*\Z")


def _literal(text: str) -> Any:
    return ast.literal_eval(_Infinite().visit(ast.parse(text, mode="eval")))


class _Infinite(ast.NodeTransformer):
    """Replaces the names `inf` and `nan` with constants, because Python has no literals for them."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(float(node.id)) if node.id in ("inf", "nan") else node


Shape: TypeAlias = Callable[[Sequence[Any]], list[Any]]


def _each(convert: Callable[[Any], Any]) -> Shape:
    """Converts each argument."""
    return lambda call: [convert(argument) for argument in call]


def _first(convert: Callable[[Any], Any]) -> Shape:
    """Converts the first argument."""
    return lambda call: [convert(call[0]), *call[1:]]


def _tuples(value: Any) -> list[Any]:
    return [tuple(part) for part in value]


def _deep(value: Any) -> Any:
    """The value with tuples in place of lists, at all levels."""
    return tuple(map(_deep, cast(Sequence[Any], value))) if isinstance(value, list) else value


def _tasks(numbers: str, shape: Shape) -> dict[str, Shape]:
    return dict.fromkeys((f"Mbpp/{number}" for number in numbers.split()), shape)


_SHAPES: dict[str, Shape] = {
    **_tasks("2 116 132 143 222 261 273 394 399 421 424 429 470 560 579 596 616 630 726 740 744 809", _each(tuple)),
    **_tasks("63 64 70 94 120 237 272 299 400 409 417 438 473 614 780", _each(_tuples)),
    **_tasks("259 401 445", _each(lambda value: tuple(_tuples(value)))),
    **_tasks("580 615 791", _each(_deep)),
    **_tasks("75 413 444 753", _first(_tuples)),
    **_tasks("250 307 405 446 617 720 763 808", _first(tuple)),
    **_tasks("278", _first(_deep)),
    **_tasks("722", _first(lambda value: {key: tuple(part) for key, part in value.items()})),
    **_tasks("115", _first(lambda value: [set(part) if part else {} for part in value])),
    **_tasks("106 750", lambda call: [call[0], tuple(call[1])]),
    **_tasks("124", lambda call: [float(call[0]), complex(call[1])]),
    **_tasks("252", _each(complex)),
}
"""How EvalPlus converts the arguments of tasks of MBPP+, because JSON has no tuples, sets or complex numbers."""
