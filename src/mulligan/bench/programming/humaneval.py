"""HumanEval (Chen et al. 2021), and four other cuts: write a function from its signature and docstring."""

from __future__ import annotations

from typing import Literal, TypeAlias

from mulligan.bench.programming._programs import ProgramBenchmark, cuts
from mulligan.plugins import Judges

Name: TypeAlias = Literal["openai", "reflexion", "hardest50", "rs", "rs-hardest50"]
CUTS = cuts("humaneval")


class HumanEval(ProgramBenchmark):
    """The benchmark HumanEval.

    Args:
        cut: OpenAI's file ("openai"), or a file that Reflexion's authors ran.
        seconds: time limit for the hidden tests of an attempt.
    """

    where = "https://github.com/openai/human-eval has it, and https://github.com/noahshinn/reflexion its cuts."

    def __init__(self, cut: Name = "openai", *, judges: Judges, seconds: float = 10.0) -> None:
        super().__init__(CUTS[cut], judges, seconds)
