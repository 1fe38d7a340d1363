"""The verbal reflector: its prompt as a reader sees it, and what it does with answers that are no lesson."""

import pytest
from inline_snapshot import snapshot

from mulligan.app.prompts import FilePrompts
from mulligan.core.errors import BadAnswer
from mulligan.core.records import Attempt, Episode, Feedback, Reflection, Step, Task, Trial
from mulligan.models.scripted import ScriptedModel
from mulligan.reflectors.verbal import Verbal


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


async def test_the_lesson_is_what_the_model_said() -> None:
    reflector = Verbal(model=ScriptedModel(["  Look elsewhere.\n"]), prompts=FilePrompts())
    assert await reflector.reflect(EPISODE) == Reflection("Look elsewhere.")


async def test_an_empty_lesson_is_asked_for_once_more() -> None:
    model = ScriptedModel(["  ", "Look elsewhere."])
    reflection = await Verbal(model=model, prompts=FilePrompts()).reflect(EPISODE)
    assert reflection == Reflection("Look elsewhere.")
    assert "cannot be used" in model.questions[1].messages[-1].text


async def test_two_empty_lessons_are_an_error() -> None:
    with pytest.raises(BadAnswer, match="a few plain sentences"):
        await Verbal(model=ScriptedModel(["", ""]), prompts=FilePrompts()).reflect(EPISODE)
