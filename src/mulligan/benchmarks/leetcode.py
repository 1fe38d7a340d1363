"""LeetcodeHard (Shinn et al. 2023): a question's examples are its visible tests; only its site knows the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from mulligan.benchmarks import _programs
from mulligan.benchmarks._strategies import methods
from mulligan.core.benchmarks import Method, Score, Source
from mulligan.core.code import parsed
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Case, Episode, Task
from mulligan.core.specs import Spec

_VISIBLE = Spec("given_tests", {"tests": ["assert True"]})
"""What `play` puts a case's own tests into."""


class Leetcode:
    """Rows with `task_id`, `prompt`, `entry_point` and `visible_tests` (asserts). seconds: for each test."""

    title = "LeetcodeHard: visible tests drive the loop; the verdict is the site's, so cases end unjudged"
    data = "leetcode-hard-py*.jsonl"
    sources: Sequence[Source] = ()
    where = "https://github.com/GammaTauAI/leetcode-hard-gym makes it, with an account of your own"

    def __init__(self, *, seconds: float = 5.0) -> None:
        self._seconds = seconds
        self._visible: dict[str, list[str]] = {}

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        cases = list[Case]()
        for file, line, row in _programs.located(files):
            prompt, _, id = _programs.shown(file, line, row, "py")
            self._visible[id] = _tests(file, line, row.get("visible_tests"))
            cases.append(Case(id, Task(prompt), None))
        _programs.unique(files, [case.id for case in cases])
        return cases

    def methods(self) -> Mapping[str, Method]:
        return methods("py", _VISIBLE)

    def play(self, case: Case, method: Method) -> Method:
        if method.evaluator != _VISIBLE:
            return method
        tests = self._visible[case.id]
        return replace(method, evaluator=Spec("given_tests", {"tests": tests, "seconds": self._seconds}))

    async def score(self, case: Case, episode: Episode) -> Score:
        return Score(None, "Only leetcode.com has the hidden tests, and nothing is sent there: unjudged.")


def _tests(file: Path, line: int, given: Any) -> list[str]:
    where = f"{file}, line {line}: 'visible_tests'"
    tests = cast(list[Any], given) if isinstance(given, list) else []
    if not tests or not all(isinstance(test, str) for test in tests):
        raise InvalidInput(f"{where} should be a list of asserts.")
    for test in tests:
        if parsed(test) is None or "assert" not in test:
            raise InvalidInput(f"{where}: no assert that parses: {test[:80]!r}.")
    return tests
