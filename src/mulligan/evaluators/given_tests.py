"""Judges code by a list of tests that the agent may see, such as LeetcodeHard's visible ones. No model is asked.

Each assert gets a verdict, by our own oracle or in the way of the reference. `internal_tests` uses the same functions.
Tests in Rust go to `rust_tests`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Job, Sandbox
from mulligan.core.records import Episode, Feedback, Json
from mulligan.evaluators.rust_tests import RustTests
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.oracle.python.feedback import FORGEABLE, Line, reference_text
from mulligan.oracle.python.names import names_in
from mulligan.text.plain import escaped
from mulligan.text.programs import meaning_solution, typed
from mulligan.text.python_code import asked_for, parsed, with_others
from mulligan.text.python_tests import modules
from mulligan.text.thoughts import output_of

Language: TypeAlias = Literal["py", "rs"]
Layout: TypeAlias = Literal["ours", "reference"]

_OUTPUT = 64_000_000
"""Bytes of a report in the reference's layout, where nothing is shortened."""

_MEMORY = 4096
"""MB, more than elsewhere, as the reference has no limit."""


def check(language: str, layout: str, seconds: float) -> None:
    """Raises `InvalidInput` if a setting cannot work, and `SandboxError` if Rust cannot be judged here."""
    if language not in ("py", "rs"):
        raise InvalidInput(f"language must be py or rs, not {language!r}.")
    if layout not in ("ours", "reference"):
        raise InvalidInput(f"layout must be ours or reference, not {layout!r}.")
    if seconds <= 0:
        raise InvalidInput(f"seconds must be greater than 0, not {seconds}.")
    if language == "rs":
        RustTests.ready()  # before a model is asked for code that cannot be judged here


async def judged(
    tests: Sequence[str], episode: Episode, *, sandbox: Sandbox, language: Language, layout: Layout, seconds: float
) -> Feedback:
    """The verdict on the newest attempt. `evidence` has `tests` and, if there is a verdict, `passed` for each.

    seconds: for each test.

    Raises:
        InvalidInput: the tests cannot be used.
        SandboxError: nothing could be run.
    """
    if layout == "reference" and language == "py":
        return await _as_reference(tests, episode, sandbox, seconds)
    if language == "py":
        text = "\n".join([*(f"import {name}" for name in modules(tests)), *tests])
        text = meaning_solution(text, asked_for(episode.task.prompt))
        judge = UnitTests(text, sandbox=sandbox, seconds=seconds * len(tests), name="the tests")
        feedback, passed = await judge.each(_typed(episode))
        return replace(feedback, evidence={**(feedback.evidence or {}), **evidence(tests, passed)})
    rust = RustTests(list(tests), sandbox=sandbox, seconds=seconds * len(tests), layout=layout)
    feedback = await rust.evaluate(episode)
    details: object = feedback.evidence
    passed = cast(dict[str, Any], details).get("passed") if isinstance(details, dict) else None
    return replace(feedback, evidence=evidence(tests, passed))


def evidence(tests: Sequence[str], passed: Sequence[bool] | None) -> Json:
    return {"tests": list(tests), "passed": list(passed or ())}


def usable(test: str, candidates: Collection[str] | None) -> bool:
    """Whether our oracle can judge by this Python test alone: it can be read, and uses only these names.

    candidates: the names that tests may use. None: those that it calls or passes on.
    """
    try:
        UnitTests.check(test)
        tree = parsed(test)
        names = tree and names_in(tree, test)
    except (InvalidInput, RecursionError, SyntaxError):
        return False
    if names is None:
        return False
    available = {*modules([test]), *(names.certain if candidates is None else candidates)}
    return set(names.wanted) <= available


def usable_rust(test: str) -> bool:
    try:
        RustTests.check([test])
    except InvalidInput:
        return False
    return True


def _typed(episode: Episode) -> Episode:
    """The episode with an import of the names of `typing` that its newest attempt uses without importing them."""
    *earlier, last = episode.trials
    attempt = replace(last.attempt, output=typed(output_of(last.attempt)))
    return replace(episode, trials=(*earlier, replace(last, attempt=attempt)))


async def _as_reference(tests: Sequence[str], episode: Episode, sandbox: Sandbox, seconds: float) -> Feedback:
    """Judge as the reference does: what earlier attempts of the episode defined is still defined, and nothing else."""
    *earlier, last = episode.trials
    code = with_others(last.attempt.output, [trial.attempt.output for trial in earlier])
    source = (Path(__file__).parents[1] / "oracle" / "python" / "reference_run.py").read_text(encoding="utf-8")
    job = Job(
        # Not isolated (-I): that would leave the seed of hashes out, by which sets of texts are printed.
        (sys.executable, "-s", "-P", "-c", "exec(open('program').read() + '\\njudge()')"),
        files={"program": source},
        stdin=json.dumps({"code": code, "tests": list(tests), "seconds": seconds}),
        env={"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
        seconds=2 * seconds * len(tests) + 5,
        memory=_MEMORY,
        output=_OUTPUT,
    )
    ran = await sandbox.run(job)
    try:
        report = [(bool(good), str(output)) for good, output in json.loads(ran.stdout)]
    except (ValueError, TypeError):
        report = []
    if len(report) != len(tests):
        reason = "out of time" if ran.timed_out else ran.stderr.strip()[-300:] or "it ended early"
        return Feedback(
            False, f"No test result: {reason}.", 0.0, "unit_tests", (FORGEABLE,), evidence=evidence(tests, ())
        )
    lines = [Line(test, good, escaped(output)) for test, (good, output) in zip(tests, report, strict=True)]
    passed = [line.passed for line in lines]
    return Feedback(
        all(passed),
        reference_text(lines),
        sum(passed) / len(passed),
        "unit_tests",
        (FORGEABLE,),
        evidence=evidence(tests, passed),
    )


class GivenTests:
    """Runs the tests against each attempt.

    `score` is the share of tests that passed, 0 to 1. `evidence` holds the `tests`, and under `passed` a verdict for
    each.

    Args:
        tests: one assert each.
        language: of the tests and the code: "py" or "rs".
        layout: of the feedback: Mulligan's ("ours"), or word for word as Reflexion's code prints it ("reference").
        seconds: for each test.

    Raises:
        InvalidInput: there is no test, or one cannot be read.
    """

    expects: Literal["text", "code", "workspace"] = "code"
    replayable = True

    def __init__(
        self,
        tests: Sequence[str],
        *,
        sandbox: Sandbox,
        language: Literal["py", "rs"] = "py",
        layout: Literal["ours", "reference"] = "ours",
        seconds: float = 5.0,
    ) -> None:
        check(language, layout, seconds)
        if isinstance(tests, str) or not tests:
            raise InvalidInput("given_tests needs a list of tests, but there are none.")
        for number, test in enumerate(tests, 1):
            if not test.strip() or (language == "py" and parsed(test) is None):
                raise InvalidInput(f"given_tests, test {number} cannot be parsed: {test[:80]!r}.")
        self._tests = tuple(tests)
        self._sandbox, self._seconds = sandbox, seconds
        self._language: Literal["py", "rs"] = language
        self._layout: Literal["ours", "reference"] = layout

    async def evaluate(self, episode: Episode) -> Feedback:
        return await judged(
            self._tests,
            episode,
            sandbox=self._sandbox,
            language=self._language,
            layout=self._layout,
            seconds=self._seconds,
        )
