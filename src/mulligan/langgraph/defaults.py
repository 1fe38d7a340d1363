"""What a graph opens by itself when the caller names it or leaves it out: the store, a bank, the prompt files."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from mulligan.plugins import Bank, Episode, Learned, Lesson, Model, Recall, Task
from mulligan.running import (
    FilePrompts,
    Store,
    load,
    memory_command,
    open_store,
    portal,
)

T = TypeVar("T")
Notice: TypeAlias = Callable[[str], None]
"""Called with a sentence."""


def store_of(given: Store | bool | None) -> Store | None:
    """Return the given store; for None or True, open the default one; for False, return None."""
    if given is None or given is True:
        return open_store(load().store)
    return given or None


def prompts_of(folder: str | os.PathLike[str] | None = None) -> FilePrompts:
    """Return the prompts of this folder, or of the one that mulligan.toml names; then those that ship."""
    return FilePrompts([Path(folder)]) if folder else FilePrompts.of(load())


class OwnBank:
    """The bank of an agent_id. It is opened by its first use and runs on the portal's event loop.

    The portal outlives the callers' event loops, so background work of the bank goes on there.

    Args:
        model: The model that learns for the bank; None: as `Bank.open` chooses.
        notice: Called with a sentence about a query pair that was kept.
    """

    def __init__(self, agent_id: str, model: Model | None = None, notice: Notice | None = None) -> None:
        self.agent_id = agent_id
        self._model, self._notice = model, notice
        self._opened: Any = None

    async def do(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Return the result of `work`, a function of the bank."""
        if self._opened is None:
            from mulligan.running import Bank as LessonBank

            self._opened = LessonBank.open(self.agent_id, model=self._model)
        return await portal.within(work(self._opened))

    @property
    def pairs(self) -> _OwnPairs:
        """The query pairs of this bank."""
        return _OwnPairs(self, self._notice)

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        return await self.do(lambda bank: bank.recall(task, top_k=top_k))

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        return await self.do(lambda bank: bank.learn(episodes))

    async def close(self) -> None:
        bank, self._opened = self._opened, None
        if bank is not None:
            await portal.within(bank.close())


def bank_of(given: Bank | str | None) -> Bank | None:
    """Return the given bank; for an agent_id, that agent's own."""
    return OwnBank(given) if isinstance(given, str) else given


class _OwnPairs:
    """The query pairs of an agent_id's bank: see `QueryPairs`. notice: called with a sentence about a kept pair."""

    def __init__(self, bank: OwnBank, notice: Notice | None) -> None:
        self._bank, self._notice = bank, notice

    async def keep(self, graph: str, shape: str, query: str, episode: Episode) -> Lesson | None:
        kept: Lesson | None = await self._bank.do(lambda bank: bank.pairs.keep(graph, shape, query, episode))
        if kept is not None and self._notice:
            confirm = memory_command(self._bank.agent_id, "rate", kept.id, "--good")
            self._notice(f"kept question and query as {kept.id}, {kept.state}; to confirm them: {confirm}")
        return kept

    async def like(self, graph: str, shape: str) -> Sequence[Lesson]:
        return await self._bank.do(lambda bank: bank.pairs.like(graph, shape))
