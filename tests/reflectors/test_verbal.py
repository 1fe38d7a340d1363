"""The verbal reflector: its prompt as a reader sees it, and what it does with answers that are no lesson."""

from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from mulligan.app.prompts import FilePrompts
from mulligan.core.errors import BadAnswer
from mulligan.core.records import Attempt, Episode, Feedback, Reflection, Step, Task, Trial
from mulligan.models.scripted import ScriptedModel
from mulligan.reflectors.verbal import EMPTY, Verbal


def trial(number: int, lesson: str | None = None) -> Trial:
    attempt = Attempt(f"guess {number}", (Step("maybe", "search[x]", "nothing found"),))
    return Trial(number, attempt, Feedback(False, "wrong"), Reflection(lesson) if lesson else None)


EPISODE = Episode(
    "e.1", Task("Find it."), trials=(trial(1, "one"), trial(2, "two"), trial(3, "three"), trial(4, "four"), trial(5))
)


def test_the_reflector_is_shown_task_attempt_feedback_and_the_window_of_lessons() -> None:
    reflector = Verbal(model=ScriptedModel([]), prompts=FilePrompts(), examples="")
    question = reflector.ask([EPISODE])
    assert question.schema is None
    assert [m.role for m in question.messages] == ["system", "user"]
    assert question.messages[1].text == snapshot("""\
Task:
Find it.

What was done:
```
Thought 1: maybe
Action 1: search[x]
Observation 1: nothing found
```

Attempt:
```
guess 5
```

Feedback:
```
wrong
```

Lessons already drawn, which were not enough:
- two
- three
- four

Lesson:\
""")


GOOD = "guess 5 was wrong: look elsewhere."
VAGUE = "Try harder and check all edge cases."


async def test_the_lesson_is_what_the_model_said() -> None:
    reflector = Verbal(model=ScriptedModel([f"  {GOOD}\n"]), prompts=FilePrompts())
    assert await reflector.reflect(EPISODE) == Reflection(GOOD)


async def test_an_empty_lesson_is_asked_for_once_more() -> None:
    model = ScriptedModel(["  ", GOOD])
    assert await Verbal(model=model, prompts=FilePrompts()).reflect(EPISODE) == Reflection(GOOD)
    assert "cannot be used" in model.questions[1].messages[-1].text


async def test_two_empty_lessons_leave_the_evidence_alone() -> None:
    reflection = await Verbal(model=ScriptedModel(["", ""]), prompts=FilePrompts()).reflect(EPISODE)
    assert reflection == Reflection("", withheld=EMPTY)


async def test_without_the_check_two_empty_lessons_are_an_error() -> None:
    with pytest.raises(BadAnswer, match="a few plain sentences"):
        await Verbal(model=ScriptedModel(["", ""]), prompts=FilePrompts(), check=False).reflect(EPISODE)


def copy_of_the_example() -> str:
    return FilePrompts().get("verbal.code.examples").parts[-1][1]


FAULTS = [
    pytest.param(copy_of_the_example(), "copies a worked example", id="copy"),
    pytest.param("Two.", "repeats an earlier lesson", id="repetition"),
    pytest.param(VAGUE, "It is too general", id="not grounded"),
]


@pytest.mark.parametrize(("lesson", "reason"), FAULTS)
async def test_a_lesson_that_does_not_earn_its_place_is_asked_for_once_more_with_the_reason(
    lesson: str, reason: str
) -> None:
    model = ScriptedModel([lesson, GOOD])
    assert await Verbal(model=model, prompts=FilePrompts(), output="code").reflect(EPISODE) == Reflection(GOOD)
    first, second = model.questions
    said, asked = second.messages[len(first.messages) :]
    assert (said.role, said.text, asked.role) == ("assistant", lesson, "user")
    assert reason in asked.text


@pytest.mark.parametrize(("lesson", "reason"), FAULTS)
async def test_one_that_fails_twice_is_kept_and_withheld(lesson: str, reason: str) -> None:
    model = ScriptedModel([lesson, lesson])
    reflection = await Verbal(model=model, prompts=FilePrompts(), output="code").reflect(EPISODE)
    assert reflection is not None
    assert reflection.text == lesson
    assert reason in reflection.withheld
    assert len(model.questions) == 2


@pytest.mark.parametrize(("lesson", "reason"), FAULTS)
async def test_without_the_check_it_is_taken_as_it_is(lesson: str, reason: str) -> None:
    model = ScriptedModel([lesson])
    reflector = Verbal(model=model, prompts=FilePrompts(), output="code", check=False)
    assert await reflector.reflect(EPISODE) == Reflection(lesson)


async def test_the_reason_is_no_lesson() -> None:
    echo = f"guess 5: {EMPTY}"
    reflection = await Verbal(model=ScriptedModel(["", echo]), prompts=FilePrompts()).reflect(EPISODE)
    assert reflection is not None
    assert (reflection.text, "copies" in reflection.withheld) == (echo, True)


async def test_an_empty_second_answer_leaves_the_first_in_the_record() -> None:
    reflection = await Verbal(model=ScriptedModel([VAGUE, ""]), prompts=FilePrompts()).reflect(EPISODE)
    assert reflection is not None
    assert (reflection.text, bool(reflection.withheld)) == (VAGUE, True)


async def test_what_an_agent_did_in_its_steps_is_of_the_trial() -> None:
    step = Step("", "go to microwave 1", "The microwave 1 is closed.")
    episode = Episode("e.1", Task("Heat it."), trials=(Trial(1, Attempt("", (step,)), Feedback(False)),))
    lesson = "It stood before the microwave and never opened it."
    assert await Verbal(model=ScriptedModel([lesson]), prompts=FilePrompts()).reflect(episode) == Reflection(lesson)


def test_whoever_asks_himself_gets_it_marked() -> None:
    reflector = Verbal(model=ScriptedModel([]), prompts=FilePrompts())
    assert "too general" in reflector.take([EPISODE], VAGUE).withheld
    assert reflector.take([EPISODE], GOOD) == Reflection(GOOD)


def test_a_withheld_lesson_is_not_among_those_already_drawn() -> None:
    trials = (
        replace(trial(1, "one"), reflection=Reflection("one", withheld="It is vague.")),
        trial(2, "two"),
        trial(3),
    )
    question = Verbal(model=ScriptedModel([]), prompts=FilePrompts()).ask([Episode("e.1", Task("t"), trials=trials)])
    assert "- two" in question.messages[-1].text
    assert "- one" not in question.messages[-1].text
