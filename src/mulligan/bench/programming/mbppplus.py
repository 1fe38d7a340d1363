"""MBPP+ (Liu et al. 2023): MBPP with 35 times as many tests; base and plus scores apart, as in EvalPlus."""

from __future__ import annotations

from mulligan.bench.programming._plus import Form, Plus, Release
from mulligan.core.benchmarks import Judges

RELEASE = Release(
    "MBPP+: 378 Python functions, with base and plus tests (EvalPlus v0.2.0)",
    "MbppPlus",
    "https://github.com/evalplus/mbppplus_release/releases/download/v0.2.0",
    ("af43697e8791c4c149bdfd6b489d8b5412507551ac20e28a439f650b8225db63", 336_032),
    ("7a5aec547b134fa297ee6c45f829298aa3f58de02547b8d8a5c3d85d9cb10efc", 549_938),
)


class MbppPlus(Plus):
    """form: "full" has base and plus tests apart; "origin" is MBPP's own. seconds: for a call of the function."""

    def __init__(self, form: Form = "full", *, judges: Judges, seconds: float = 1.0) -> None:
        super().__init__(RELEASE, form, judges, seconds)
