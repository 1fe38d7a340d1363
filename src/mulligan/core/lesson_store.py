"""The ports to a store of lessons, cut along their users.

The store keeps agents apart. `agent_id` None reads the lessons of all agents, "" is the unnamed agent; writing always
names one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from mulligan.core.lesson_history import (
    Account,
    Added,
    Addition,
    Archive,
    Change,
    Delta,
    Fault,
    Link,
    Part,
    Receipt,
    Version,
    Worth,
)
from mulligan.core.lessons import Lesson, Selection
from mulligan.core.records import Json
from mulligan.core.work_queue import Claim, Queue


class LessonReader(Protocol):
    """Reads lessons. Raises `NotFound` for an id that is missing or another agent's: the two look the same."""

    async def get(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        """The lessons in the order of the ids. Raises `Unreadable`."""
        ...

    async def there(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        """The lessons that exist and can be read, in the order of the ids."""
        ...

    async def resolve(self, agent_id: str | None, prefix: str) -> str:
        """The id that begins with `prefix`. Raises `NotFound` if none does, or several do."""
        ...

    async def list(self, agent_id: str | None, which: Selection = ...) -> Sequence[Lesson]:
        """The selected lessons that can be read, newest first. Raises `NotFound` if `which.before` does not exist."""
        ...

    async def history(self, agent_id: str | None, id: str) -> Sequence[Version]:
        """The versions of the lesson, oldest first."""
        ...

    async def links(self, agent_id: str | None, id: str) -> Sequence[Link]:
        """The links of this lesson, most similar first; the lesson is `a` in each."""
        ...


class LessonChanges(LessonReader, Protocol):
    """Reads what an index needs: the changes, and the lessons at an earlier time."""

    async def delta(
        self, agent_id: str | None, embedder: str | None, since: int = 0, *, queries: bool = False
    ) -> Delta:
        """The changes since the `tip` of a `Delta`, with this embedder's vectors; queries: also of past tasks."""
        ...

    async def unembedded(self, agent_id: str | None, embedder: str, limit: int) -> Sequence[Lesson]:
        """Active lessons without a vector from this embedder, oldest first."""
        ...

    async def as_of(self, agent_id: str | None, at: float) -> Sequence[Lesson]:
        """The lessons that were active at that time, as they were then."""
        ...


class LessonEditor(Protocol):
    """Writes lessons.

    claim, result: a write can also finish queued work, in the same transaction. If another process holds that work by
    now, it raises `LeaseLost` and writes nothing.
    """

    async def add(
        self,
        agent_id: str,
        entries: Sequence[Addition],
        *,
        fold: bool = True,
        claim: Claim | None = None,
        result: Json = None,
    ) -> Sequence[Added]:
        """Adds all entries, in order, or none.

        fold: a duplicate of an entry before it, or of a lesson of the agent in any state, is not added: it raises the
        support of that lesson, and confirms a fact if one of the two is confirmed. Strategies with the same fingerprint
        are duplicates; facts must also say the same word for word, and never fold into a superseded fact. If `result`
        is an object, it gets the ids of the lessons that were there already, as `folded`.

        Active lessons that the origin of an added fact names as parents are superseded by it.
        """
        ...

    async def change(
        self,
        agent_id: str,
        lesson: Lesson,
        change: Change,
        *,
        entry: Addition | None = None,
        detail: Json = None,
        before: Lesson | None = None,
    ) -> None:
        """Stores a changed lesson.

        entry: its new fingerprint, terms, keys and vectors if its text changed. Without vectors in it, those of an
        unchanged text are kept, unless the lesson names no embedder. detail: kept in the history, such as the reason.
        before: the lesson as it was read; raises `LessonChanged` if more than its counts has changed since.
        """
        ...

    async def merge(
        self,
        agent_id: str,
        entry: Addition,
        parents: Sequence[str],
        *,
        claim: Claim | None = None,
        result: Json = None,
        before: Sequence[Lesson] = (),
    ) -> None:
        """Adds the merged lesson, marks its parents as superseded by it and removes their vectors, all or nothing.

        The parents of a quarantined lesson stay active until `change` makes it active. before: the parents as they were
        read. Raises `StoreError` if a parent is no longer active, and `LessonChanged` as `change` does.
        """
        ...

    async def unmerge(self, agent_id: str, id: str) -> Sequence[str]:
        """Restores the parents as they were before the merge, retires the merged lesson, and returns the parents' ids.

        Their vectors are not restored: `embedder` is None until new ones are made. Raises `StoreError` for a lesson
        that was not merged, or is superseded itself.
        """
        ...

    async def link(
        self, agent_id: str, links: Sequence[Link], *, claim: Claim | None = None, result: Json = None
    ) -> None: ...

    async def set_vectors(
        self,
        agent_id: str,
        embedder: str,
        vectors: Mapping[str, Mapping[Part, bytes]],
        *,
        claim: Claim | None = None,
        result: Json = None,
        before: Sequence[Lesson] = (),
    ) -> None:
        """Stores vectors by lesson id, in place of those of other embedders.

        Skips lessons that are gone or superseded, and those that have changed since they were read as in `before`.
        """
        ...

    async def purge(self, agent_id: str, ids: Sequence[str] | None) -> int:
        """Removes lessons with their histories, and returns how many. None: everything of this agent, with receipts,
        accounts, kinds of task and queued work.

        Lessons that were merged into a purged one are retired.
        """
        ...

    async def redact(self, agent_id: str, id: str, change: Callable[[Mapping[str, Json]], Mapping[str, Json]]) -> bool:
        """Changes the context of a lesson in its whole history. Returns False if that changes nothing."""
        ...


class RecallRecords(Protocol):
    """Recalls, how their tasks ended, and what lessons are worth by that."""

    async def recalled(self, receipt: Receipt) -> None:
        """Stores the receipt, and counts a use of each of its lessons; storing it again counts nothing."""
        ...

    async def receipt(self, agent_id: str | None, id: str) -> Receipt: ...

    async def outcome_of(self, agent_id: str, id: str, success: bool) -> bool:
        """Records how the task of this recall ended, and returns the outcome that counts: the first that was reported.

        It counts only for lessons of this agent whose text has not changed since. The outcome of work that follows a
        recall counts in the same way, in the transaction that reports it. A lesson that proves harmful is retired at
        once, unless it is pinned.
        """
        ...

    async def worth(self, agent_id: str | None, *, of: Sequence[str] | None = None) -> Sequence[Worth]:
        """The counts of each bank, then of its lessons, oldest first. of: the ids of the lessons; None: all."""
        ...

    async def relevances(self, agent_id: str | None, limit: int) -> Sequence[tuple[float, bool]]:
        """For the newest `limit` recalls with a known outcome: the score of each lesson shown, and the outcome."""
        ...

    async def retired_for_harm(self, agent_id: str | None) -> Mapping[str, str]:
        """The figures of lessons that were retired because they did harm, by id. Each lesson is reported only once."""
        ...


class Accounts(Protocol):
    """Accounts of earlier episodes."""

    async def keep_accounts(self, agent_id: str, accounts: Sequence[Account], most: int) -> None:
        """Stores accounts, in place of older ones of their episodes, and keeps the newest `most` of a project."""
        ...

    async def accounts(self, agent_id: str | None, project: str, limit: int) -> Sequence[Account]:
        """The accounts of a project, newest first."""
        ...


class LessonArchives(Protocol):
    """Whole banks: which exist, what they hold, and whether they are sound."""

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        """The agents with lessons whose names begin with `prefix`, in order, without the unnamed agent."""
        ...

    async def counts(self, agent_id: str | None) -> Mapping[str, Json]:
        """By agent: {"lessons": {state: n}, "links": n, "recalls": n, "bytes": {"text", "history", "terms",
        "vectors"}}; "text" counts only the current versions."""
        ...

    async def verify(self, *, mend: bool = False) -> Sequence[Fault]:
        """The faults of the whole store. mend: repair those that can be repaired."""
        ...

    async def archive(self, agent_id: str | None) -> Sequence[Archive]:
        """The archive of this agent. None: those of all agents, by agent_id, and that of recalls over all agents."""
        ...

    async def restore(self, several: Sequence[tuple[Archive, Sequence[Addition]]]) -> Sequence[Sequence[Added]]:
        """Imports archives, all or nothing, each with an `Addition` for each of its lessons, in order. Vectors are not
        imported.

        A lesson whose id exists already, or was folded here before, is skipped. An exact duplicate of a lesson that was
        here before, in the same state and not superseded, folds into it. All others are added with their histories and
        counts. Accounts of episodes that already have one are skipped; the accounts are then in the order of their
        times.
        """
        ...


@runtime_checkable
class LessonStore(LessonChanges, LessonEditor, RecallRecords, Accounts, LessonArchives, Protocol):
    """Everything that a store does with lessons; code that needs less asks for one of the protocols above.

    Once a call has returned, its changes survive the death of the process. Raises `StoreError`.
    """


class Memory(Protocol):
    """Where a bank keeps its lessons and its queued work."""

    @property
    def lessons(self) -> LessonStore: ...
    @property
    def queue(self) -> Queue: ...
    async def close(self) -> None: ...
