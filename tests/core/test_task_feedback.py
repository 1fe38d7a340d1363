"""Feedback of an agent that knows what it expected and what it saw."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.codec import from_json, to_json
from mulligan.core.records import Feedback, Finding, Image, Json
from mulligan.text.evidence import ERROR_TYPES, TaskFeedback, findings_of


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


STATES = st.one_of(st.none(), st.text(), st.builds(Image, st.just("image/png"), st.binary()))
WORDS = st.one_of(st.none(), st.text())


@given(
    st.builds(
        TaskFeedback,
        st.booleans(),
        st.one_of(st.none(), st.sampled_from(sorted(ERROR_TYPES)), st.text()),
        *(WORDS, WORDS, st.text()),
        *(STATES, STATES),
    )
)
def test_the_record_keeps_it_whole(said: TaskFeedback) -> None:
    kept = from_json(Feedback, to_json(said.to_feedback("phone")))
    assert TaskFeedback.from_feedback(kept) == said
    assert len(kept.images) == sum(isinstance(state, Image) for state in (said.before, said.after))


def test_what_was_there_before_and_after_is_evidence() -> None:
    screen = Image("image/png", b"no image at all")
    said = TaskFeedback(False, "wrong_element", "saved", "sent", before="an empty form", after=screen).to_feedback(
        "web"
    )
    assert said.text == (
        "The task failed: wrong_element.\nExpected: saved\nActual: sent\n"
        "Before: an empty form\nAfter: an image (image/png, 1 kB)"
    )
    (finding,) = findings_of(said)
    assert finding.got == "sent\nBefore: an empty form\nAfter: an image (image/png, 1 kB)"
    assert said.images == (screen,)


def test_other_feedback_has_no_parts() -> None:
    assert TaskFeedback.from_feedback(Feedback(False, "no")) is None
    assert TaskFeedback.from_feedback(None) is None


@pytest.mark.parametrize("task", [{}, {"name": "login"}, {"success": "yes"}])
def test_an_evaluator_may_keep_its_own_entry_named_task(task: Json) -> None:
    assert TaskFeedback.from_feedback(Feedback(False, "no", evidence={"task": task})) is None
