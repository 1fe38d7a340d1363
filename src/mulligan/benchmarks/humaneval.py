"""HumanEval (Chen et al. 2021): 164 Python functions to be written from a signature and a docstring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mulligan.benchmarks import _programs
from mulligan.core.benchmarks import Judges, Method, Score, Source
from mulligan.core.records import Case, Episode, Task
from mulligan.core.specs import Spec


class HumanEval:
    title = "HumanEval: 164 Python functions from their docstrings"
    data = "HumanEval.jsonl.gz"
    sources: Sequence[Source] = ()
    where = "https://github.com/openai/human-eval has it, under data/."

    def __init__(self, *, judges: Judges, seconds: float = 10.0) -> None:
        self._judges, self._seconds = judges, seconds

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        (file,) = files
        cases = list[Case]()
        for line, row in _programs.rows(file):
            prompt = _programs.field(file, line, row, "prompt")
            entry = _programs.field(file, line, row, "entry_point")
            test = _programs.field(file, line, row, "test")
            id = _programs.field(file, line, row, "task_id", "name")
            cases.append(Case(id, Task(prompt), f"{test}\n\ncheck({entry})\n"))
        _programs.unique(file, [case.id for case in cases])
        return cases

    def methods(self) -> Mapping[str, Method]:
        return _programs.methods()

    def play(self, case: Case, method: Method) -> Method:
        return method

    async def score(self, case: Case, episode: Episode) -> Score:
        judge = self._judges(Spec("unit_tests", {"tests": case.target, "seconds": self._seconds}))
        verdict = await judge.evaluate(episode)
        return Score(None if verdict.passed is None else float(verdict.passed), verdict.text)
