"""Functions of the user's own, in the shape of HumanEval's JSONL: `mulligan bench run mine.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mulligan.benchmarks import _programs
from mulligan.benchmarks._strategies import methods
from mulligan.core.benchmarks import Judges, Method, Score, Source
from mulligan.core.programs import Language
from mulligan.core.records import Case, Episode


class Programs:
    """`language`: of all rows, "py" or "rs". seconds: for the hidden tests of an attempt."""

    title = "functions of your own: rows with task_id, prompt, entry_point and test, as HumanEval has them"
    data = "programs.jsonl"
    sources: Sequence[Source] = ()
    where = "Name your file: mulligan bench run mine.jsonl"

    def __init__(self, language: Language = "py", *, judges: Judges, seconds: float = 10.0) -> None:
        self._language: Language = language
        self._judges, self._seconds = judges, seconds

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        return _programs.cases(files, self._language)

    def methods(self) -> Mapping[str, Method]:
        return methods(self._language)

    def play(self, case: Case, method: Method) -> Method:
        _programs.judgeable(self._judges, case, self._language, self._seconds)
        return method

    async def score(self, case: Case, episode: Episode) -> Score:
        return await _programs.score(self._judges, case, episode, self._language, False, self._seconds)
