"""Words the examiner's report as feedback: which tests passed, and for each that failed the expression and its value.

The text is for a weak model: two headings, and one line for each test. `reference_text` has the layout of the reference
implementation. This module knows nothing of how a report is made.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mulligan.core.records import Feedback, Finding
from mulligan.oracle.python.plan import Plan
from mulligan.text.evidence import evidence_of, expected_by, finding_text

SOURCE = "unit_tests"
UNDECIDED = "The tests could not judge the code"
BESIDE = " To run the tests in one process with the code, which can then forge the verdict: --tests-run beside"
FORGEABLE = "in-process: can be forged"
"""The note of a verdict that was computed in the process of the judged code."""
TEXT = 4_000
"""Characters that the whole text has at most. A value has at most 500, and its middle is left out first."""
_NOT_PERMITTED = str(PermissionError(errno.EPERM, os.strerror(errno.EPERM)))
_PASSED = 1_000
_LINE = 900
_KEPT = 50
"""Findings of each kind that are kept as data."""


def feedback(plan: Plan, report: Mapping[str, Any], seconds: float, notes: tuple[str, ...]) -> Feedback:
    """The feedback on a report."""
    if report["broken"]:
        text = f"The tests could not judge the code, they are broken themselves: {report['broken']}"
        return Feedback(None, shorter(text, _LINE), source=SOURCE, notes=notes)
    # The tests decide: an attempt that is refused something on purpose has failed.
    if plan.uses_network and (refused := _refusal(report)):
        return Feedback(None, shorter(refused, _LINE), source=SOURCE, notes=notes)
    if report["loading"]:
        return failed(f"{_loading(report['loading'], seconds)} No test was run.", notes)
    passed: list[Finding] = []
    broken: list[Finding] = []
    reached: set[int] = set()
    for number, label, good, bad, detail in report["results"]:
        test = int(number)
        reached.add(test)
        title = plan.tests[test].text + (f"[{label}]" if label else "")
        if detail is not None:
            broken.append(_failure(plan, title, good, bad, detail, seconds))
        elif not plan.tests[test].quiet:
            passed.append(Finding(shorter(title, _LINE), passed=True))
    if report.get("undecided") and not broken:
        text = f"{UNDECIDED}: {report['undecided']}.{'' if notes else BESIDE}"
        return Feedback(None, shorter(text, _LINE), source=SOURCE, notes=notes)
    unreached = [test for n, test in enumerate(plan.tests) if n not in reached and not test.quiet] if broken else []
    broken += [Finding(shorter(test.text, 400), got="not reached") for test in unreached]
    if not passed and not broken:
        return Feedback(None, "No test of the test file was run, so nothing was judged.", source=SOURCE, notes=notes)
    missing = _missing(report["missing"], report["defined"], plan)
    text = missing + _lists([finding.asked for finding in passed], [finding_text(finding) for finding in broken])
    data = [*([Finding(got=missing.strip())] if missing else []), *broken[:_KEPT], *passed[:_KEPT]]
    score = len(passed) / (len(passed) + len(broken))
    return Feedback(not broken, text, score, source=SOURCE, notes=notes, evidence=evidence_of(data))


def verdicts(plan: Plan, report: Mapping[str, Any]) -> tuple[bool, ...]:
    """Whether each test passed, in the order of the file. A test that was not reached did not."""
    bad: dict[int, bool] = {}
    try:
        for number, _, _, _, detail in report.get("results", ()):
            bad[int(number)] = bad.get(int(number), False) or detail is not None
    except (TypeError, ValueError):  # in-process, the code may have written it
        bad = {}
    return tuple(bad.get(number) is False for number, test in enumerate(plan.tests) if not test.quiet)


def failed(text: str, notes: tuple[str, ...]) -> Feedback:
    """The feedback if no test passed, for one reason."""
    return Feedback(False, shorter(text, TEXT), 0.0, source=SOURCE, notes=notes)


def _failure(plan: Plan, shown: str, good: int, bad: int, detail: Mapping[str, Any], seconds: float) -> Finding:
    """A failed test, with the value of its expression; of a test function, the assert that failed."""
    point = plan.points[int(detail["point"])]
    inside = point.text if point.test == -1 else ""
    details: list[str] = []
    if error := detail["error"]:
        details.append(_error(error, seconds))
    else:
        details += _values(plan, detail)
    if detail["message"]:
        details.append(detail["message"])
    if good + bad > 1:
        details.append(f"failed in {bad} of {good + bad} rounds")
    asked = inside or shown
    return Finding(
        shorter(asked, 400),
        shorter(expected_by(asked), 400),
        "; ".join(filter(None, details)) or "is false",
        shorter(shown, 200) if inside else "",
    )


def _values(plan: Plan, detail: Mapping[str, Any]) -> list[str]:
    """The results of calls of the candidate, else of other calls; and the values of variables."""
    seen = [(plan.calls[int(number)], str(value), dict(names)) for number, value, names in detail["seen"]]
    chosen = [row for row in seen if row[0][1]] or seen
    values: dict[str, Any] = dict(detail["names"])
    for _, _, names in chosen:
        values.update(names)
    details = list(dict.fromkeys(f"{shorter(call, 300)} returned {value}" for (call, _), value, _ in chosen))
    if values:
        details.append("with " + ", ".join(f"{name} = {value}" for name, value in values.items()))
    return details


def _error(error: Sequence[Any], seconds: float) -> str:
    kind, name, message, line, text = error
    message = str(message)
    if kind == "timeout" and message == "None":
        return f"not run: the {seconds:g} s for all tests were used up"
    if kind == "raised":
        where = f" (line {line}: `{text}`)" if line else ""
        return f"raised {name}{': ' if message else ''}{shorter(message, 500)}{where}"
    return {
        "timeout": f"timed out after {message} s",
        "gone": f"the process ended by itself during this test: {message}",
        "unbound": f"not reached: {message} has no value, see above",
    }.get(kind, message)


def _refusal(report: Mapping[str, Any]) -> str | None:
    """What the sandbox refused, if nothing else failed: the code may be right."""
    details = [detail for *_, detail in report["results"] if detail is not None]
    errors = [report["loading"]] if report["loading"] else [detail["error"] for detail in details]
    refusals = [error for error in errors if error and error[1:3] == ["PermissionError", _NOT_PERMITTED]]
    if not refusals or len(refusals) < len(errors):
        return None
    _, _, message, line, text = refusals[0]
    where = f" in line {line} of the code: `{text}`" if line else ""
    return f"{UNDECIDED}: the sandbox refused an operation{where} ({message}). It has no network."


def _loading(error: Sequence[Any], seconds: float) -> str:
    kind, name, message, line, text = error
    if kind == "timeout":
        return f"The code cannot be loaded: timed out after {seconds:g} s."
    if kind in ("gone", "refused"):
        return f"The code cannot be loaded: {_error(error, seconds).replace(' during this test', '')}."
    where = f" in line {line}: `{text}`" if line else ""
    return f"The code cannot be loaded: {name}: {message}{where}."


def _missing(missing: Sequence[str], defined: Sequence[str], plan: Plan) -> str:
    names = [name for name in missing if name in plan.names.certain]
    if not names:
        return ""
    defines = f"it defines {', '.join(defined)} instead" if defined else "it defines nothing"
    return (
        shorter(f"Missing: the tests use {', '.join(names)}, which the code does not define; {defines}.", 500) + "\n\n"
    )


def _lists(passed: Sequence[str], broken: Sequence[str]) -> str:
    return f"Tests passed:\n{fitting(passed, _PASSED)}\n\nTests failed:\n{fitting(broken, TEXT - _PASSED - 600)}"


def fitting(lines: Sequence[str], room: int) -> str:
    """As many lines as fit, and the number of those that do not."""
    kept: list[str] = []
    for line in lines:
        line = shorter(" ".join(line.splitlines()), _LINE)
        if kept and sum(map(len, kept)) + len(line) > room:
            return "\n".join([*kept, f"... and {len(lines) - len(kept)} more"])
        kept.append(line)
    return "\n".join(kept) or "(none)"


def shorter(text: str, room: int) -> str:
    """The text without its middle if it has more than `room` characters."""
    if len(text) <= room:
        return text
    half = (room - 40) // 2
    return f"{text[:half]} ... ({len(text) - 2 * half:,} characters left out) ... {text[-half:]}"


@dataclass(frozen=True)
class Line:
    """A test with its verdict. output: the value or the exception that a failed test saw."""

    test: str
    passed: bool
    output: str = ""


def reference_text(lines: Sequence[Line], mark: str = "#") -> str:
    """The feedback in the layout of the reference. mark: begins a comment in the language of the tests."""
    passed = "".join(f"\n{line.test}" for line in lines if line.passed)
    failed = "".join(f"\n{line.test} {mark} output: {line.output}" for line in lines if not line.passed)
    return f"Tested passed:{passed}\n\nTests failed:{failed}"
