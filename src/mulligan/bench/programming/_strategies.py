"""Who plays a programming benchmark under each strategy of the reference (1.1), and under plain resampling."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.benchmarks import Method
from mulligan.core.records import Json
from mulligan.core.specs import Spec
from mulligan.text.programs import Language

TRIALS = 5
"""Attempts at most, as in the reference's published runs."""
SEARCH_TEMPERATURE = 0.75


def methods(language: Language, tests: Spec | None = None) -> Mapping[str, Method]:
    """By name. tests: the evaluator that drives the loop, where it is not the model's own tests."""
    told: dict[str, Json] = {} if language == "py" else {"language": language}
    writes = Spec("complete", {"output": "code", **told})
    internal, whose = tests or Spec("internal_tests", told), "visible" if tests else "own"
    lesson = Spec("verbal", {"output": "code"})
    window = Spec("last_attempt_and_reflexion", {"window": 1})
    found = {
        "simple": Method(writes, Spec("unjudged"), summary="one attempt, nothing of the past", trials=1),
        "reflexion": Method(
            writes,
            internal,
            lesson,
            window,
            f"{whose} tests drive; the attempt, their results and a reflection shown",
            TRIALS,
        ),
        "immediate-reflexion": Method(
            writes, Spec("untested"), lesson, window, "no tests: a reflection after each attempt, all trials", TRIALS
        ),
        "immediate-refinement": Method(
            writes,
            internal,
            lesson,
            Spec("last_attempt"),
            f"{whose} tests drive; the attempt and their results shown, no reflection",
            TRIALS,
        ),
        "resample": Method(
            writes,
            internal,
            lesson,
            Spec("none"),
            f"{whose} tests drive, nothing of the past shown: the control",
            TRIALS,
        ),
        "reflexion-ucs": Method(
            writes.with_settings(temperatures=[0.0, SEARCH_TEMPERATURE]),
            internal,
            lesson,
            window,
            "a search over attempts: the one that fails the fewest tests is grown from",
            TRIALS,
            hand_in="best",
            expansion=3,
        ),
    }
    if language == "py" and tests is None:
        found["test-acc"] = Method(
            Spec("write_tests"), Spec("unjudged"), summary="are the tests that the model writes right?", trials=1
        )
    return found
