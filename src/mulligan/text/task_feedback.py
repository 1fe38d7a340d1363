"""Feedback of an agent that knows what it expected to see and what it saw instead.

Works alone, inside somebody else's agent: `TaskFeedback(False, "timeout", "inbox", "spinner").to_text()`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mulligan.core.records import Feedback, Finding
from mulligan.text.evidence import evidence_of


@dataclass(frozen=True)
class TaskFeedback:
    """How a task went. `error_type` is a short name such as "timeout"; states and details are free text.

    Absent parts are left out of the text.
    """

    success: bool
    error_type: str | None = None
    expected_state: str | None = None
    actual_state: str | None = None
    details: str = ""

    def to_text(self) -> str:
        """What happened in words that a reflector can use, one line for each part that is known."""
        failed = f"The task failed: {self.error_type}." if self.error_type else "The task failed."
        lines = (
            "The task succeeded." if self.success else failed,
            f"Expected: {self.expected_state}" if self.expected_state else "",
            f"Actual: {self.actual_state}" if self.actual_state else "",
            self.details,
        )
        return "\n".join(line for line in lines if line)

    def to_feedback(self, source: str) -> Feedback:
        """The same as an evaluator would say it; `source` names who judged."""
        got = "\n".join(part for part in (self.actual_state, self.details) if part)
        finding = Finding(self.error_type or "", self.expected_state or "", got, passed=self.success)
        return Feedback(self.success, self.to_text(), source=source, evidence=evidence_of([finding]))
