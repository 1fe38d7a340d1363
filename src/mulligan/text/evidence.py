"""Findings of a judge as data, beside the text of its feedback, and collected over an episode.

Works alone, inside somebody else's agent: `findings_of(feedback)`, `gathered(episode)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, cast

from mulligan.core.records import Episode, Feedback, Finding, Image, Json, Recall
from mulligan.text.images import image_text
from mulligan.text.python_code import parsed

LOOKED_AT = 100
"""Trials, the newest, whose findings are gathered: a try costs the same however many there were."""
CHECKS = "checks"
TASK = "task"
_IMAGE: Json = {"image": "of the feedback, in the order before, after"}
_TEXTS = ("asked", "expected", "got", "where")


def evidence_of(findings: Iterable[Finding], **own: Json) -> Json:
    """Returns findings in the form of `Feedback.evidence`, with the evaluator's own entries."""
    return {**own, CHECKS: [asdict(finding) for finding in findings]}


def findings_of(feedback: Feedback | None) -> tuple[Finding, ...]:
    """Returns what the judge found, in its order. If it recorded no findings, its text is the only one.

    Empty for a try that could not be judged, as the attempt is not to blame.
    """
    if feedback is None or feedback.passed is None:
        return ()
    kept: Any = feedback.evidence
    rows: Any = cast(Mapping[str, Any], kept).get(CHECKS) if isinstance(kept, Mapping) else None
    if isinstance(rows, list):
        return tuple(
            _finding(cast(Mapping[str, Json], row)) for row in cast(list[Any], rows) if isinstance(row, Mapping)
        )
    text = feedback.text.strip()
    return (Finding(got=text, passed=feedback.passed),) if text else ()


def gathered(episode: Episode) -> tuple[Finding, ...]:
    """What failed in the newest trials of the episode: the newest judged trial's findings, then those of earlier ones.

    Each check, by where it stands and what it asks, is there once, with what came back the last time that it failed. A
    check that a later trial passed stays: what it expects still holds.
    """
    kept: dict[tuple[str, str], Finding] = {}
    for trial in reversed(episode.trials[-LOOKED_AT:]):
        for finding in findings_of(trial.feedback):
            if not finding.passed:
                kept.setdefault((finding.where, finding.asked or finding.got), finding)
    return tuple(kept.values())


def recalled_beside(evidence: Iterable[Finding], recall: Recall | None) -> Recall | None:
    """The recall as it is shown beside this evidence: once a check of the task itself has said what it expects, without
    the facts that this evidence holds, and without doubtful ones about checks of other tasks. A model that failed with
    such a fact goes on to follow it."""
    if recall is None or recall.retry_prompt is None:
        return recall
    said = any(one.asked and (one.expected or expected_by(one.asked)) for one in evidence)
    return replace(recall, formatted_prompt=recall.retry_prompt) if said else recall


def finding_text(finding: Finding) -> str:
    """A failed check and what came back, on one line where they fit: `assert f(2) == 4  # f(2) returned 3`."""
    asked = ": ".join(part for part in (finding.where, finding.asked) if part)
    hidden = finding.expected if finding.expected not in finding.asked else ""
    got = f"expected {hidden}, got {finding.got}" if hidden else finding.got
    between = "\n" if "\n" in got else "  # "
    return between.join(part for part in (asked, got) if part)


def expected_by(check: str) -> str:
    """The value that an assert compares a call's result with, as it is written there; "" where there is none.

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
    plain = [side for side in sides if not any(isinstance(part, ast.Call) for part in ast.walk(side))]
    return (ast.get_source_segment(check.strip(), plain[0]) or "") if len(plain) == 1 else ""


def _finding(row: Mapping[str, Json]) -> Finding:
    """A row of a record, by any writer: a field that is missing or of the wrong type is left out."""
    texts = {name: row[name] for name in _TEXTS if isinstance(row.get(name), str)}
    return Finding(**texts, passed=row.get("passed") is True)


# Short names for what went wrong, and when each is meant. An environment may use names of its own.
ERROR_TYPES: Mapping[str, str] = {
    "timeout": "it did not end in time",
    "not_found": "the thing that the action names is not there",
    "wrong_element": "the action met something else than it had to",
    "wrong_value": "the right place, but the wrong text or value",
    "no_effect": "the action was done, but nothing changed",
    "refused": "the action was not allowed, such as a missing permission",
    "bad_action": "the action could not be read, or does not exist here",
    "wrong_state": "all was done, and the end is not the one that was asked for",
    "gave_up": "the agent ended before the task was done",
    "crashed": "the program or service under the agent failed",
}


@dataclass(frozen=True)
class TaskFeedback:
    """How a task went, in parts. Missing parts are left out of the text.

    Attributes:
        error_type: a short name, of `ERROR_TYPES` or another.
        expected_state, actual_state, details: free text.
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
        """What happened in words that a reflector can use, one line for each part that is known."""
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
        """Returns the same as a `Feedback`, which `from_feedback` reads back. `source` names the judge."""
        got = "\n".join(part for part in (self.actual_state, self.details, *self._states()) if part)
        finding = Finding(self.error_type or "", self.expected_state or "", got, passed=self.success)
        images = tuple(state for state in (self.before, self.after) if isinstance(state, Image))
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        whole = {name: _IMAGE if isinstance(part, Image) else part for name, part in parts.items()}
        evidence = evidence_of([finding], **{TASK: whole})
        return Feedback(self.success, self.to_text(), source=source, evidence=evidence, images=images)

    @classmethod
    def from_feedback(cls, feedback: Feedback | None) -> TaskFeedback | None:
        """The parts of a feedback that `to_feedback` made; None for any other."""
        evidence: Any = feedback.evidence if feedback else None
        whole: Any = cast(Mapping[str, Any], evidence).get(TASK) if isinstance(evidence, Mapping) else None
        if feedback is None or not isinstance(whole, Mapping):
            return None
        images, parts = iter(feedback.images), dict[str, Any]()
        for field in fields(cls):
            part = cast(Mapping[str, Any], whole).get(field.name, field.default)
            parts[field.name] = next(images, None) if part == _IMAGE else part
        return cls(**parts)

    def _states(self) -> tuple[str, ...]:
        states = (("Before", self.before), ("After", self.after))
        return tuple(f"{name}: {_state_text(state)}" for name, state in states if state)


def _state_text(state: str | Image) -> str:
    return f"an image ({image_text(state)})" if isinstance(state, Image) else state
