"""A judge's findings as data, for one feedback and for a whole episode.

Use it alone in your own agent: `findings_of(feedback)`, `failed_findings(episode)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, cast

from mulligan.core.records import Episode, Feedback, Finding, Image, Json, Recall
from mulligan.text.images import image_text
from mulligan.text.python_code import parsed

MAX_TRIALS = 100
"""The number of newest trials whose findings are collected, so that the cost of a try is bounded."""
CHECKS = "checks"
TASK = "task"
_IMAGE: Json = {"image": "of the feedback, in the order before, after"}
_TEXTS = ("asked", "expected", "got", "where")


def evidence_of(findings: Iterable[Finding], **own: Json) -> Json:
    """Returns findings in the format of `Feedback.evidence`, with the evaluator's own entries."""
    return {**own, CHECKS: [asdict(finding) for finding in findings]}


def findings_of(feedback: Feedback | None) -> tuple[Finding, ...]:
    """Returns the judge's findings, in the judge's order. If it recorded none, its text is the only finding.

    A trial without a verdict has no findings, because the attempt may not be at fault.
    """
    if feedback is None or feedback.passed is None:
        return ()
    evidence: Any = feedback.evidence
    rows: Any = cast(Mapping[str, Any], evidence).get(CHECKS) if isinstance(evidence, Mapping) else None
    if isinstance(rows, list):
        return tuple(
            _finding(cast(Mapping[str, Json], row)) for row in cast(list[Any], rows) if isinstance(row, Mapping)
        )
    text = feedback.text.strip()
    return (Finding(got=text, passed=feedback.passed),) if text else ()


def failed_findings(episode: Episode) -> tuple[Finding, ...]:
    """Returns the checks that the newest trials failed, those of the newest trial first.

    Each check is included once, with the result of its last failure, even if a later trial passed it, because what it
    expects is still true.
    """
    findings: dict[tuple[str, str], Finding] = {}
    for trial in reversed(episode.trials[-MAX_TRIALS:]):
        for finding in findings_of(trial.feedback):
            if not finding.passed:
                findings.setdefault((finding.where, finding.asked or finding.got), finding)
    return tuple(findings.values())


def recall_with_evidence(evidence: Iterable[Finding], recall: Recall | None) -> Recall | None:
    """Returns the recall to show with this evidence.

    If a check in the evidence states what it expects, the recall omits facts that the evidence contains, and doubtful
    facts about other tasks' checks, because a model that failed with such a fact would follow it again.
    """
    if recall is None or recall.retry_prompt is None:
        return recall
    stated = any(finding.asked and (finding.expected or expected_by(finding.asked)) for finding in evidence)
    return replace(recall, formatted_prompt=recall.retry_prompt) if stated else recall


def finding_text(finding: Finding) -> str:
    """Returns a failed check and its result, on one line if it fits: `assert f(2) == 4  # f(2) returned 3`."""
    check = ": ".join(part for part in (finding.where, finding.asked) if part)
    expected = finding.expected if finding.expected not in finding.asked else ""
    got = f"expected {expected}, got {finding.got}" if expected else finding.got
    separator = "\n" if "\n" in got else "  # "
    return separator.join(part for part in (check, got) if part)


def expected_by(check: str) -> str:
    """Returns the source of the value that an assert compares a call's result with, or "".

    >>> expected_by("assert area(2, 3) == 6")
    '6'
    """
    tree = parsed(check.strip())
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if not isinstance(node, ast.Assert) or not isinstance(node.test, ast.Compare) or len(node.test.ops) != 1:
        return ""
    if not isinstance(node.test.ops[0], ast.Eq | ast.Is):
        return ""
    sides = (node.test.left, node.test.comparators[0])
    values = [side for side in sides if not any(isinstance(part, ast.Call) for part in ast.walk(side))]
    return (ast.get_source_segment(check.strip(), values[0]) or "") if len(values) == 1 else ""


def _finding(row: Mapping[str, Json]) -> Finding:
    """Returns the finding in a row of a record. A field that is missing or of the wrong type keeps its default."""
    texts = {name: row[name] for name in _TEXTS if isinstance(row.get(name), str)}
    return Finding(**texts, passed=row.get("passed") is True)


# Short names for what went wrong, and their meanings. An environment may use its own names.
ERROR_TYPES: Mapping[str, str] = {
    "timeout": "it did not end in time",
    "not_found": "what the action names does not exist",
    "wrong_element": "the action was done to the wrong element",
    "wrong_value": "the right place, but the wrong text or value",
    "no_effect": "the action was done, but nothing changed",
    "refused": "the action was not allowed, such as a missing permission",
    "bad_action": "the action could not be parsed, or does not exist",
    "wrong_state": "all actions were done, but the final state is wrong",
    "gave_up": "the agent ended before the task was done",
    "crashed": "the program or service under the agent failed",
}


@dataclass(frozen=True)
class TaskFeedback:
    """How a task went. The text omits empty fields.

    Attributes:
        error_type: a short name, from `ERROR_TYPES` or your own.
        before, after: the state before and after the decisive action, as text or an image.
    """

    success: bool
    error_type: str | None = None
    expected_state: str | None = None
    actual_state: str | None = None
    details: str = ""
    before: str | Image | None = None
    after: str | Image | None = None

    def to_text(self) -> str:
        """Returns the text for a reflector, with one line for each field that is set."""
        failed = f"The task failed: {self.error_type}." if self.error_type else "The task failed."
        lines = (
            "The task succeeded." if self.success else failed,
            f"Expected: {self.expected_state}" if self.expected_state else "",
            f"Actual: {self.actual_state}" if self.actual_state else "",
            self.details,
            *self._states(),
        )
        return "\n".join(line for line in lines if line)

    def to_feedback(self, source: str) -> Feedback:
        """Returns a `Feedback` that `from_feedback` reads back. `source` names the judge."""
        got = "\n".join(part for part in (self.actual_state, self.details, *self._states()) if part)
        finding = Finding(self.error_type or "", self.expected_state or "", got, passed=self.success)
        images = tuple(state for state in (self.before, self.after) if isinstance(state, Image))
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        record = {name: _IMAGE if isinstance(value, Image) else value for name, value in values.items()}
        evidence = evidence_of([finding], **{TASK: record})
        return Feedback(self.success, self.to_text(), source=source, evidence=evidence, images=images)

    @classmethod
    def from_feedback(cls, feedback: Feedback | None) -> TaskFeedback | None:
        """Returns the `TaskFeedback` from which `to_feedback` created this feedback, or None if it did not."""
        evidence: Any = feedback.evidence if feedback else None
        task: Any = cast(Mapping[str, Any], evidence).get(TASK) if isinstance(evidence, Mapping) else None
        record: Mapping[str, Any] = cast(Mapping[str, Any], task) if isinstance(task, Mapping) else {}
        if feedback is None or not isinstance(record.get("success"), bool):
            return None
        images, values = iter(feedback.images), dict[str, Any]()
        for field in fields(cls):
            value = record.get(field.name, field.default)
            values[field.name] = next(images, None) if value == _IMAGE else value
        return cls(**values)

    def _states(self) -> tuple[str, ...]:
        states = (("Before", self.before), ("After", self.after))
        return tuple(f"{name}: {_state_text(state)}" for name, state in states if state)


def _state_text(state: str | Image) -> str:
    return f"an image ({image_text(state)})" if isinstance(state, Image) else state
