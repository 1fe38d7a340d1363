"""Asks the command-line agent that made the attempt what it would do differently, in a throw-away copy of its folder.

The actor must be an `Agent`, such as `command`. None of Mulligan's models is called.
"""

from __future__ import annotations

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Agent, Prompts
from mulligan.core.records import Episode, Reflection
from mulligan.text.formatting import TOKENS, attempt_text, feedback_text, newest, reflections_text, task_text
from mulligan.text.truncate import truncate_text

SLOTS = ("task", "attempt", "feedback", "reflections")
NAMED = 20
"""Changed files that a note names."""


class Self:
    """Takes what the agent prints as the reflection. Files that it changes are discarded and named in the record.

    An agent that fails, is stopped or prints nothing gives no lesson; a note in the record says why.

    Args:
        tokens: what the attempt and the check's output may each take of the prompt.
        length: tokens that are kept of the answer, from its head and tail.
        window: how many earlier reflections the agent is shown. None shows all.
    """

    in_words = "what the agent itself says it would do otherwise"

    def __init__(
        self, *, agent: Agent, prompts: Prompts, tokens: int = TOKENS, length: int = 400, window: int | None = 3
    ) -> None:
        newest((), window)  # refuses a window below 1 before anything is tried
        if length < 1:
            raise InvalidInput(f"The length of a reflection must be at least 1 token, not {length}.")
        self._agent = agent
        self._prompt = prompts.get("self.reflect").check(*SLOTS)
        self._tokens, self._length, self._window = tokens, length, window

    async def reflect(self, episode: Episode) -> Reflection | None:
        trial, earlier = episode.trials[-1], episode.newest_reflections(self._window)
        prompt = self._prompt.text(
            task=task_text(episode.task),
            attempt=attempt_text(trial.attempt, tokens=self._tokens),
            feedback=feedback_text(trial.feedback, tokens=self._tokens),
            reflections=reflections_text(r.text for r in newest(earlier, self._window)),
        )
        reply = await self._agent.ask(episode, prompt)
        notes: list[str] = []
        if reply.discarded:
            more = f" and {len(reply.discarded) - NAMED} more" if len(reply.discarded) > NAMED else ""
            notes.append(
                f"changes that the agent made while it was asked were discarded: "
                f"{', '.join(reply.discarded[:NAMED])}{more}"
            )
        text = truncate_text(reply.text.strip(), self._length)
        if reply.halted:
            said = f": {text}" if text else ""
            return Reflection("", notes=(*notes, f"no lesson, as {reply.halted}{said}"))
        if not text:
            notes.append("no lesson, as the agent printed nothing")
        return Reflection(text, notes=tuple(notes))
