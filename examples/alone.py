"""An agent of somebody else's that borrows parts of Mulligan, and none of its loop, store or models.

    python examples/alone.py

The agent looks for a key in a house; its own loop is `try_once`. From Mulligan it takes `LoopDetector`, which notices
that it goes round in circles, `TaskFeedback`, which puts into words how it went, the verbal reflector's question and
the reading of the answer (`ask` and `take`), and `reflections_text`, which words the lessons. The model is the agent's
own function from chat messages to text: here a scripted one, so that the example runs without network or key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mulligan import Attempt, Episode, LoopDetector, ScriptedModel, Step, Task, TaskFeedback, Trial
from mulligan.app.prompts import FilePrompts
from mulligan.plugins import reflections_text
from mulligan.reflectors.verbal import Verbal

Chat = Callable[[Sequence[tuple[str, str]]], str]
"""Messages as (role, text), the answer as text: whatever client the agent already has."""

TASK = Task("Find the key. Look somewhere with `look PLACE`; places: table, drawer, shelf.")
HOUSE = {"table": "a cup", "drawer": "it is locked", "shelf": "the key"}


def try_once(chat: Chat, lessons: str) -> tuple[Attempt, TaskFeedback]:
    """The agent's own loop: it asks, acts and looks, until it has the key or goes round in circles."""
    detector, steps = LoopDetector(repeats=3), list[Step]()
    prompt = f"{TASK.prompt}\n\nLessons:\n{lessons}" if lessons else TASK.prompt
    for _ in range(9):
        told = "\n".join(f"> {step.action}\n{step.observation}" for step in steps)
        action = chat([("user", f"{prompt}\n\n{told}".strip())])
        seen = HOUSE.get(action.removeprefix("look "), "there is no such place")
        steps.append(Step(action=action, observation=seen))
        if seen == "the key":
            return Attempt("found", tuple(steps)), TaskFeedback(True)
        if why := detector.add(action):
            return Attempt("gave up", tuple(steps)), TaskFeedback(False, "loop", "the key", seen, why)
    return Attempt("gave up", tuple(steps)), TaskFeedback(False, "too many steps", "the key", "no key")


def main(chat: Chat) -> list[Trial]:
    unasked = ScriptedModel([])  # a reflector has a model; `ask` and `take` never call it
    reflector = Verbal(model=unasked, prompts=FilePrompts(), output="text")
    trials: list[Trial] = []
    while len(trials) < 3:
        lessons = reflections_text(trial.reflection.text for trial in trials if trial.reflection)
        attempt, feedback = try_once(chat, lessons)
        trials.append(Trial(len(trials) + 1, attempt, feedback.to_feedback("house")))
        print(f"trial {len(trials)}: {feedback.to_text()}")
        if feedback.success:
            break
        episode = Episode("alone", TASK, trials=tuple(trials))
        question = reflector.ask([episode])
        lesson = reflector.take([episode], chat([(message.role, message.text) for message in question.messages]))
        print(f"lesson: {lesson.text}")
        trials[-1] = replace(trials[-1], reflection=lesson)
    return trials


def scripted(messages: Sequence[tuple[str, str]]) -> str:
    """A model that tries the locked drawer again and again, until a lesson tells it not to."""
    text = messages[-1][1]
    if text.endswith("Lesson:"):
        return "I tried the locked drawer three times. Next time look at the shelf."
    return "look shelf" if "look at the shelf" in text else "look drawer"


if __name__ == "__main__":
    main(scripted)
