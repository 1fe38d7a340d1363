"""Wraps the evaluator, the reflector and the bank of a call so that failures do not end it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from mulligan.core.errors import BadAnswer, ModelError
from mulligan.core.protocols import Bank
from mulligan.core.records import NO_REFLECTION, Episode, Feedback, Finding, Recall, Reflection, Task
from mulligan.recording.outages import Outages
from mulligan.text.evidence import evidence_of

log = logging.getLogger("mulligan")


class ResultJudge:
    """Asks the evaluator about tries that returned a result. If the function raised, that is the verdict."""

    expects: Literal["text"] = "text"

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def evaluate(self, episode: Episode) -> Feedback:
        outcome = episode.trials[-1].attempt.outcome
        if outcome and outcome.halted:
            why = outcome.halted
            return outcome.feedback or Feedback(False, why, 0.0, "exception", evidence=evidence_of([Finding(got=why)]))
        return await self._inner.evaluate(episode)


class TolerantReflector:
    """Reflects with a model. If the model fails, the call continues without a lesson."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def reflect(self, episode: Episode) -> Reflection | None:
        try:
            return await self._inner.reflect(episode)
        except (ModelError, BadAnswer) as error:
            Outages("reflect").warn("a lesson is not written; the call continues", str(error))
            return NO_REFLECTION


class TolerantBank:
    """A bank whose failures do not end the call: if it fails, nothing is recalled or learned.

    Args:
        name: Names the bank in warnings.
        open: Opens the bank.
        tell: Makes the bank learn from an episode that is over.
        run: Awaits a call of the bank in the event loop that the bank belongs to.
    """

    def __init__(
        self,
        name: str,
        open: Callable[[], Bank],
        tell: Callable[..., Awaitable[None]],
        run: Callable[[Awaitable[Any]], Awaitable[Any]],
    ) -> None:
        self._outages, self._open, self._tell, self._run = Outages(name), open, tell, run

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        async def recalled() -> Recall:
            return await self._run(self._open().recall(task, top_k=top_k))

        return await self._outages.tolerated("nothing is recalled; the call continues", recalled, Recall(""))

    async def tell(self, episode: Episode) -> None:
        async def told() -> None:
            await self._run(self._tell(self._open(), episode, log.info))

        await self._outages.tolerated("nothing is learned from a call", told, None)
