"""Feedback of an agent that knows what it expected and what it saw."""

import dataclasses

import pytest

from mulligan.core.records import Finding
from mulligan.text.evidence import TaskFeedback, findings_of


def test_a_failure_says_all_that_is_known() -> None:
    told = TaskFeedback(False, "element_not_found", "the inbox is open", "the login page", "Button 'Mail' is absent.")
    assert told.to_text() == (
        "The task failed: element_not_found.\n"
        "Expected: the inbox is open\n"
        "Actual: the login page\n"
        "Button 'Mail' is absent."
    )
    said = told.to_feedback("phone")
    assert (said.passed, said.text, said.source) == (False, told.to_text(), "phone")
    (finding,) = findings_of(said)
    assert finding == Finding("element_not_found", "the inbox is open", "the login page\nButton 'Mail' is absent.")


def test_absent_parts_are_left_out() -> None:
    assert TaskFeedback(False).to_text() == "The task failed."
    assert TaskFeedback(False, actual_state="blank").to_text() == "The task failed.\nActual: blank"


def test_a_success() -> None:
    assert TaskFeedback(True).to_text() == "The task succeeded."
    said = TaskFeedback(True, details="In 3 steps.").to_feedback("phone")
    assert (said.passed, said.text, said.source) == (True, "The task succeeded.\nIn 3 steps.", "phone")
    assert findings_of(said) == (Finding(got="In 3 steps.", passed=True),)


def test_it_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TaskFeedback(True).success = False  # pyright: ignore[reportAttributeAccessIssue]
