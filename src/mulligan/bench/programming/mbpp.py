"""MBPP (Austin et al. 2021) as Reflexion ran it: write a short function from one sentence, in Python or Rust."""

from __future__ import annotations

from mulligan.bench.programming._programs import ProgramBenchmark, cuts
from mulligan.plugins import Judges, Language

CUTS = cuts("mbpp")


class Mbpp(ProgramBenchmark):
    """The benchmark MBPP. seconds: time limit for the hidden tests of an attempt."""

    where = "https://github.com/noahshinn/reflexion has it, under programming_runs/benchmarks/."

    def __init__(self, language: Language = "py", *, judges: Judges, seconds: float = 10.0) -> None:
        super().__init__(CUTS[language], judges, seconds)
