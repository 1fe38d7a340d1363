"""A `solve` with a reflector whose process can kill itself in the middle of any model call.

`python mortal_reflector.py LOG REFLECTOR CALLS N` dies in call N. Each call leaves a line in LOG.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import mulligan
from mulligan import ScriptedModel
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Episode

TASK, LIKE = "Name a drink without leaves.", "Name a cold drink without leaves."
LAYERS = {
    "tactical": "The answer tea was wrong: tea is made of leaves.",
    "strategic": "List drinks, strike out those with leaves, and answer with one that is left: not tea.",
    "metacognitive": "You answer with the first drink that comes to mind, tea.",
}
LESSON = "The answer tea was wrong because tea is made of leaves: answer with water instead of tea."


def model(log: Path, last: int | None = None) -> ScriptedModel:
    """Answers tea until it is shown a lesson. It kills the process in the call number `last`."""

    def answer(question: Question, sampling: Sampling) -> Any:
        made = said(question)
        with log.open("a") as out:
            out.write(f"{made}\n")
        if last is not None and len(log.read_text().splitlines()) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    return ScriptedModel(answer)


def said(question: Question) -> Any:
    told = "\n".join(message.text for message in question.messages)
    if question.schema is not None:
        return (
            LAYERS
            if "tactical" in question.schema["properties"]
            else {"why": "", "lessons": [], "nothing_because": "no"}
        )
    if told.startswith(("You review", "You compare")):
        return next((text for layer, text in LAYERS.items() if f"about is this {WORDS[layer]}" in told), LESSON)
    return "water" if "tea" in told else "tea"


WORDS = {"tactical": "action", "strategic": "plan", "metacognitive": "habit"}


async def attempted(reflector: str, calls: int, asked: ScriptedModel, task: str = TASK) -> Episode:
    settings = {"reflector": {"calls": calls}} if reflector == "layered" else {}
    return await mulligan.solve(
        task, evaluator="exact_match:water", reflector=reflector, model=asked, trials=3, settings=settings, bank="me"
    )


if __name__ == "__main__":
    asyncio.run(attempted(sys.argv[2], int(sys.argv[3]), model(Path(sys.argv[1]), int(sys.argv[4]))))
