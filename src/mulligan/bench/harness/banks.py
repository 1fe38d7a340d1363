"""The bank of a benchmark run: frozen it only recalls; online it learns from one episode before the next begins.

Online, the calls of the bank's model are steps of the episode that is learned from, so that a resumed run pays for none
of them twice, and `reuse` and the report find them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from mulligan.app.compose import Parts
from mulligan.app.scaling import usage_under
from mulligan.bank.bank import Bank as LessonBank
from mulligan.core.codec import digest
from mulligan.core.errors import InvalidInput
from mulligan.core.loop import scope
from mulligan.core.protocols import Bank, Journal, Learned, Model, StepRow, Store, TextMemory
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Episode, Json, Recall, Task, Usage
from mulligan.models.failures import Unreadable
from mulligan.models.gate import not_json_row, read_result
from mulligan.models.requests import request_of, result_of
from mulligan.recording.journal import AnswerLookup, StoredJournal
from mulligan.recording.ledger import Ledger

LEARN = "learn"
"""What the keys of the steps begin with in which a bank learned from the episode."""
_POLL = 0.05
"""Seconds between two looks at work that another task or process does."""


def with_memory(parts: Parts, memory: str | None) -> Parts:
    """The parts; where memory is "frozen", their bank only recalls."""
    return replace(parts, bank=FrozenBank(parts.bank)) if memory == "frozen" and parts.bank is not None else parts


class FrozenBank:
    """A bank that recalls and never changes.

    It does not count uses, which would change what the next case is shown, as cases run in any order. A bank whose
    `recall` has no parameter `counted` is called without it.
    """

    def __init__(self, inner: Bank) -> None:
        self._inner = inner
        takes = inspect.signature(inner.recall).parameters
        self._uncounted: dict[str, Any] = {"counted": False} if "counted" in takes else {}

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        return await self._inner.recall(task, top_k=top_k, **self._uncounted)

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        return Learned(nothing_because="the bank is frozen")


class TextBank:
    """A memory under exam as the bank of a run. It is made when it is first used, and taught again what a run that is
    resumed had taught it: it need not keep anything itself.

    earlier: the finished episodes that the run had learned from.
    """

    def __init__(self, make: Callable[[], TextMemory], earlier: Callable[[], Awaitable[Sequence[Episode]]]) -> None:
        self._make, self._earlier = make, earlier
        self._memory: TextMemory | None = None

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        text: object = await (await self._ready()).recall(task)
        if not isinstance(text, str):
            raise InvalidInput(f"'recall' of a memory must return a string, not {type(text).__name__}.")
        return Recall("", formatted_prompt=text)

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        memory = await self._ready()
        for episode in episodes:
            await memory.learn(episode)
        return Learned(nothing_because="the memory keeps its own record")

    async def close(self) -> None:
        if hasattr(self._memory, "close"):
            await cast(Any, self._memory).close()

    async def _ready(self) -> TextMemory:
        if self._memory is None:
            memory = self._make()
            for episode in await self._earlier():
                await memory.learn(episode)
            self._memory = memory
        return self._memory


class BankModel:
    """The model of a bank. While it has a journal, each call is a step there, named by its request: a request that was
    answered before gets the same answer, whichever arm or process asks it."""

    def __init__(self, model: Model) -> None:
        self.name, self.id = model.name, model.id
        self._model = model
        self.journal: Journal | None = None

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        if self.journal is None:
            return await self._model.ask(question, sampling)
        request = request_of(self.id, question, sampling)

        async def call() -> Json:
            try:
                return result_of(await self._model.ask(question, sampling))
            except Unreadable as bad:
                return not_json_row(bad)

        with scope(LEARN, digest(request)[:16], anew=True):
            row = cast(dict[str, Any], await self.journal.step("model.bank", request, call))
        return read_result(row, Usage(**row["usage"]))


class OnlineBank:
    """A bank of lessons that has learned all that it can from an episode, its upkeep included, when `learn` returns.

    model: the bank's, which is given the journal of that episode. known: see `StoredJournal`.
    """

    def __init__(self, inner: LessonBank, store: Store, model: BankModel | None, known: AnswerLookup | None) -> None:
        self._inner, self._model, self._known = inner, model, known
        self._ledger = Ledger(store)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        return await self._inner.recall(task, top_k=top_k)

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        async with self._ledger.hold(episodes[-1].id) as entry:
            if self._model is not None:
                self._model.journal = StoredJournal(entry, known=self._known)
            try:
                while True:
                    learned = await self._inner.learn(episodes)
                    if not learned.pending:
                        break
                    await asyncio.sleep(_POLL)  # until the claim of a process that died runs out
                await self._keep_up()
            finally:
                if self._model is not None:
                    self._model.journal = None
        return learned

    async def _keep_up(self) -> None:
        """Does the work that is due, and waits for what is under way in the background of this process."""
        while True:
            await self._inner.work()
            if not any(work.status == "running" for work in await self._inner.pending()):
                return
            await asyncio.sleep(_POLL)


def learning_usage(steps: Sequence[StepRow]) -> Usage:
    """What the bank's model used to learn from the episode with these steps."""
    return usage_under(LEARN, steps)
