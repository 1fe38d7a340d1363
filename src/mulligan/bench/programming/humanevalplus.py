"""HumanEval+ (Liu et al. 2023): HumanEval with 80 times as many tests; base and plus scores apart, as in EvalPlus."""

from __future__ import annotations

from mulligan.bench.programming._plus import Form, Plus, Release
from mulligan.core.benchmarks import Judges

RELEASE = Release(
    "HumanEval+: 164 Python functions, with base and plus tests (EvalPlus v0.1.10)",
    "HumanEvalPlus",
    "https://github.com/evalplus/humanevalplus_release/releases/download/v0.1.10",
    ("272720b90ac375502c8ed23cd791c2a93dfb22a911641a494da74a426c09f101", 925_932),
    ("daa7661c8189924068069b0872a440b491edb60f8bdf431d5957adc88d18bae5", 1_350_689),
)


class HumanEvalPlus(Plus):
    """form: "full" has base and plus tests apart; "origin" is HumanEval's own. seconds: for a call of the function."""

    def __init__(self, form: Form = "full", *, judges: Judges, seconds: float = 1.0) -> None:
        super().__init__(RELEASE, form, judges, seconds)
