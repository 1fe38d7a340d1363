"""The user's own functions, in HumanEval's JSONL format: `mulligan bench run mine.jsonl`."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.bench.programming._programs import Cut, ProgramBenchmark
from mulligan.plugins import Judges, Language

_TITLE = "functions of your own: rows with task_id, prompt, entry_point and test, as HumanEval has them"


class Programs(ProgramBenchmark):
    """A benchmark of the user's own functions.

    Args:
        language: the language of all rows.
        seconds: time limit for the hidden tests of an attempt.
    """

    data = "programs.jsonl"
    endings: Sequence[str] = (".jsonl", ".gz")
    where = "Name your file: mulligan bench run mine.jsonl"

    def __init__(self, language: Language = "py", *, judges: Judges, seconds: float = 10.0) -> None:
        super().__init__(Cut(_TITLE, None, language, typed=False), judges, seconds)
