"""HumanEval (Chen et al. 2021): functions to be written from a signature and a docstring; four other cuts of it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from mulligan.bench.programming._programs import Judged, cuts
from mulligan.core.benchmarks import Judges

Name: TypeAlias = Literal["openai", "reflexion", "hardest50", "rs", "rs-hardest50"]
CUTS = cuts("humaneval")


class HumanEval(Judged):
    """`cut`: which file: openai's own, or one of those that Reflexion's authors ran. seconds: for the hidden tests."""

    where = "https://github.com/openai/human-eval has it, and https://github.com/noahshinn/reflexion its cuts."

    def __init__(self, cut: Name = "openai", *, judges: Judges, seconds: float = 10.0) -> None:
        super().__init__(CUTS[cut], judges, seconds)
