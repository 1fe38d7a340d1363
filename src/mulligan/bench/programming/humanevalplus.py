"""HumanEval+ (Liu et al. 2023): HumanEval with 80 times as many tests; base and plus scores apart, as in EvalPlus."""

from __future__ import annotations

from mulligan.bench.programming._plus import Form, Plus
from mulligan.bench.programming._programs import cuts
from mulligan.core.benchmarks import Judges


class HumanEvalPlus(Plus):
    """form: "full" has base and plus tests apart; "origin" is HumanEval's own. seconds: for a call of the function."""

    def __init__(self, form: Form = "full", *, judges: Judges, seconds: float = 1.0) -> None:
        super().__init__(cuts("humanevalplus")[form], judges, seconds)
