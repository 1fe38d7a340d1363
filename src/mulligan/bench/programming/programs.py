"""Functions of the user's own, in the shape of HumanEval's JSONL: `mulligan bench run mine.jsonl`."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.bench.programming._programs import Judged
from mulligan.core.benchmarks import Judges, Source
from mulligan.text.programs import Language


class Programs(Judged):
    """`language`: of all rows, "py" or "rs". seconds: for the hidden tests of an attempt."""

    title = "functions of your own: rows with task_id, prompt, entry_point and test, as HumanEval has them"
    data = "programs.jsonl"
    sources: Sequence[Source] = ()
    where = "Name your file: mulligan bench run mine.jsonl"

    def __init__(self, language: Language = "py", *, judges: Judges, seconds: float = 10.0) -> None:
        super().__init__(judges, language, False, seconds)
