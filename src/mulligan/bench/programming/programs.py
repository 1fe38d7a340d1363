"""Functions of the user's own, in the shape of HumanEval's JSONL: `mulligan bench run mine.jsonl`."""

from __future__ import annotations

from mulligan.bench.programming._programs import Cut, Judged
from mulligan.core.benchmarks import Judges
from mulligan.text.programs import Language

_TITLE = "functions of your own: rows with task_id, prompt, entry_point and test, as HumanEval has them"


class Programs(Judged):
    """`language`: of all rows, "py" or "rs". seconds: for the hidden tests of an attempt."""

    data = "programs.jsonl"
    where = "Name your file: mulligan bench run mine.jsonl"

    def __init__(self, language: Language = "py", *, judges: Judges, seconds: float = 10.0) -> None:
        super().__init__(Cut(_TITLE, None, language, typed=False), judges, seconds)
