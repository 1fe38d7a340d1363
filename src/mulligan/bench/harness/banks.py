"""The bank of a benchmark run. A frozen bank only recalls; an online bank learns from each episode before the next one.

Each call of an online bank's model is a step of the episode that it learns from. So a resumed run does not pay for it
again, and `reuse` and the report find it.
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
"""The prefix of the journal keys of steps in which a bank learned."""
_POLL_SECONDS = 0.05


def with_memory(parts: Parts, memory: str | None) -> Parts:
    """The parts, with a frozen bank if `memory` is "frozen"."""
    return replace(parts, bank=FrozenBank(parts.bank)) if memory == "frozen" and parts.bank is not None else parts


class FrozenBank:
    """A bank that recalls and never changes.

    Cases run in any order, so it does not count uses, which would change what the next case is shown: it passes
    `counted=False` if the bank's `recall` has that parameter.
    """

    def __init__(self, inner: Bank) -> None:
        self._inner = inner
        parameters = inspect.signature(inner.recall).parameters
        self._uncounted: dict[str, Any] = {"counted": False} if "counted" in parameters else {}

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        return await self._inner.recall(task, top_k=top_k, **self._uncounted)

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        return Learned(nothing_because="the bank is frozen")


class TextBank:
    """A memory under test, used as the bank of a run.

    It is made at its first use. When a run is resumed, it is taught the earlier episodes again, so it need not store
    anything. Its run works on one case at a time.

    Args:
        make: returns a new memory.
        earlier: returns the finished episodes that the run learned from.
    """

    def __init__(self, make: Callable[[], TextMemory], earlier: Callable[[], Awaitable[Sequence[Episode]]]) -> None:
        self._make, self._earlier = make, earlier
        self._memory: TextMemory | None = None

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        text: object = await (await self._memory_in_use()).recall(task)
        if not isinstance(text, str):
            raise InvalidInput(f"A memory's 'recall' must return a string, not {type(text).__name__}.")
        return Recall("", formatted_prompt=text)

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        memory = await self._memory_in_use()
        for episode in episodes:
            await memory.learn(episode)
        return Learned(nothing_because="the memory keeps its own record")

    async def close(self) -> None:
        if hasattr(self._memory, "close"):
            await cast(Any, self._memory).close()

    async def _memory_in_use(self) -> TextMemory:
        if self._memory is None:
            memory = self._make()
            for episode in await self._earlier():
                await memory.learn(episode)
            self._memory = memory
        return self._memory


class BankModel:
    """The model of a bank. While it has a journal, each call is a step there, with a key made from the request.

    A request that was answered before gets the same answer, even in another arm or process.
    """

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
            except Unreadable as error:
                return not_json_row(error)

        with scope(LEARN, digest(request)[:16], anew=True):
            row = cast(dict[str, Any], await self.journal.step("model.bank", request, call))
        return read_result(row, Usage(**row["usage"]))


class OnlineBank:
    """A bank of lessons whose `learn` returns only after all learning and upkeep are done.

    Args:
        model: the bank's model, whose calls go into the journal of the episode.
        known: see `StoredJournal`.
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
                    await asyncio.sleep(_POLL_SECONDS)  # the claim of a process that died has yet to expire
                await self._finish_upkeep()
            finally:
                if self._model is not None:
                    self._model.journal = None
        return learned

    async def _finish_upkeep(self) -> None:
        """Runs the pending jobs, and waits for those that already run in the background."""
        while True:
            await self._inner.work()
            if not any(job.status == "running" for job in await self._inner.pending()):
                return
            await asyncio.sleep(_POLL_SECONDS)


def learning_usage(steps: Sequence[StepRow]) -> Usage:
    """The usage of the bank's model while it learned from the episode with these steps."""
    return usage_under(LEARN, steps)
