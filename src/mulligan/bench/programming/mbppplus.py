"""MBPP+ (Liu et al. 2023): MBPP with 35 times as many tests, and scores for base and plus."""

from __future__ import annotations

from mulligan.bench.programming._plus import EvalPlusBenchmark, Form
from mulligan.bench.programming._programs import cuts
from mulligan.plugins import Judges


class MbppPlus(EvalPlusBenchmark):
    """The benchmark MBPP+.

    Args:
        form: "full" has base and plus tests apart; "origin" is in MBPP's own format.
        seconds: time limit for one call of the function.
    """

    def __init__(self, form: Form = "full", *, judges: Judges, seconds: float = 1.0) -> None:
        super().__init__(cuts("mbppplus")[form], judges, seconds)
