"""The ports to a store of lessons, cut along their users.

The store keeps agents apart. `agent_id` None reads the lessons of all agents, "" is the unnamed agent; writing always
names one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from mulligan.core.lesson import Lesson, Selection
from mulligan.core.lessons import (
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
from mulligan.core.records import Json
from mulligan.core.work_queue import Claim, Queue


class LessonReader(Protocol):
    """Reads lessons. Raises `NotFound` for an id that is missing or another agent's: the two look the same."""

    async def get(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        """In the order of the ids. Raises `Unreadable`."""
        ...

    async def there(self, agent_id: str | None, ids: Sequence[str]) -> Sequence[Lesson]:
        """In the order of the ids, without those that are not there or cannot be read."""
        ...

    async def resolve(self, agent_id: str | None, prefix: str) -> str:
        """The id that begins so. Raises `NotFound` for none, or for several."""
        ...

    async def list(self, agent_id: str | None, which: Selection = ...) -> Sequence[Lesson]:
        """Newest first, without those that cannot be read. Raises `NotFound` where `which.before` is not there."""
        ...

    async def history(self, agent_id: str | None, id: str) -> Sequence[Version]:
        """Oldest first."""
        ...

    async def links(self, agent_id: str | None, id: str) -> Sequence[Link]:
        """Those of this lesson, which is `a` in each, nearest first."""
        ...


class LessonChanges(LessonReader, Protocol):
    """Reads what changed, for an index, and what was known at a time."""

    async def delta(
        self, agent_id: str | None, embedder: str | None, since: int = 0, *, queries: bool = False
    ) -> Delta:
        """The changes for ranking; vectors only of this embedder. queries: those of the past tasks, too."""
        ...

    async def unembedded(self, agent_id: str | None, embedder: str, limit: int) -> Sequence[Lesson]:
        """Active lessons without a vector of this embedder, oldest first."""
        ...

    async def as_of(self, agent_id: str | None, at: float) -> Sequence[Lesson]:
        """The lessons that were active then, as they were then."""
        ...


class LessonEditor(Protocol):
    """Writes lessons.

    claim: the queued work that a write settles in its transaction. Where another holds that work by now, it raises
    `LeaseLost` and writes nothing.
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
        """All of them or none, in order. fold: duplicates, within the batch and against the agent's lessons of any
        state, raise the support of the one that is there instead, and a fact is confirmed if one of the two is.
        Strategies of one fingerprint are duplicates, and facts of one fingerprint that say the same word for word. A
        fact does not fold into one that was superseded. A result that is an object gets `folded`, if any were: the ids
        of those that were there. Active lessons that the origin of an added fact names as parents are superseded by it.
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
        """Stores a changed lesson. entry: its new fingerprint, terms, keys and vectors if its text changed. An entry
        without vectors keeps those of the same text, unless its lesson names no embedder.

        detail: kept with the change in its history, such as the reason. before: the lesson as it was read; raises
        `LessonChanged` where it is another by now, but for what the store counts.
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
        """Adds the merged lesson and marks its parents superseded by it; their vectors go. All or nothing.

        The parents of a lesson that is quarantined stay active until `change` makes it active. Raises `StoreError` when
        a parent is not active any more. before: the parents as they were read; raises `LessonChanged` as `change` does.
        """
        ...

    async def unmerge(self, agent_id: str, id: str) -> Sequence[str]:
        """Restores the parents as they were before the merge, and retires the merged lesson; the parents' ids.

        Their vectors do not come back: `embedder` is None until they are made again. Raises `StoreError` for a lesson
        that holds no parents, or is superseded itself.
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
        """Vectors by lesson id, in place of any other embedder's. Lessons that are gone or superseded are left out, and
        those that are others by now than in `before`, the lessons as they were read."""
        ...

    async def purge(self, agent_id: str, ids: Sequence[str] | None) -> int:
        """Removes lessons and their histories; None: everything of this agent, with receipts, accounts, kinds of task
        and queued work.

        Returns how many lessons were removed. Lessons that were merged into a purged one are retired.
        """
        ...

    async def redact(self, agent_id: str, id: str, change: Callable[[Mapping[str, Json]], Mapping[str, Json]]) -> bool:
        """Changes the context of a lesson in all of its history, as if it had never been another; False if that
        changes nothing."""
        ...


class RecallRecords(Protocol):
    """Recalls, how their tasks ended, and what lessons are worth by that."""

    async def recalled(self, receipt: Receipt) -> None:
        """Keeps the receipt and counts a use of each of its lessons, once for each receipt."""
        ...

    async def receipt(self, agent_id: str | None, id: str) -> Receipt: ...

    async def outcome_of(self, agent_id: str, id: str, success: bool) -> bool:
        """Tells how the task of this recall ended; the outcome that counts, which is the first that was told.

        It counts for the lessons of this agent alone, and not for a text that was changed since. The outcome of work
        that follows a recall counts in the same way, in the transaction that brings it. A lesson that does harm is
        retired then, unless it is pinned.
        """
        ...

    async def worth(self, agent_id: str | None, *, of: Sequence[str] | None = None) -> Sequence[Worth]:
        """What is counted: of each bank, then of its lessons, oldest first. of: the ids of the lessons to give, all if
        None."""
        ...

    async def relevances(self, agent_id: str | None, limit: int) -> Sequence[tuple[float, bool]]:
        """Of the newest recalls whose outcome is known, at most `limit`: the score of each lesson that was shown, with
        that outcome."""
        ...

    async def retired_for_harm(self, agent_id: str | None) -> Mapping[str, str]:
        """The ids of lessons that were retired for the harm that they did, with the figures; each is told once."""
        ...


class Accounts(Protocol):
    """Accounts of earlier episodes."""

    async def keep_accounts(self, agent_id: str, accounts: Sequence[Account], most: int) -> None:
        """Keeps these accounts in place of older ones of the same episodes; of a project, the newest `most`."""
        ...

    async def accounts(self, agent_id: str | None, project: str, limit: int) -> Sequence[Account]:
        """Those of a project, newest first."""
        ...


class LessonArchives(Protocol):
    """Banks as a whole: which there are, what they hold, and whether they are sound."""

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        """The agents that have lessons, of those that begin so, in order; not the unnamed one."""
        ...

    async def counts(self, agent_id: str | None) -> Mapping[str, Json]:
        """By agent: {"lessons": {state: n}, "links": n, "recalls": n, "bytes": {"text", "history", "terms",
        "vectors"}}; text is that of the lessons as they are now."""
        ...

    async def verify(self, *, mend: bool = False) -> Sequence[Fault]:
        """The faults of the whole store. mend: repair those that can be repaired."""
        ...

    async def archive(self, agent_id: str | None) -> Sequence[Archive]:
        """That of this agent; None: those of all agents, by agent_id, and that of the recalls over all, if any."""
        ...

    async def restore(self, several: Sequence[tuple[Archive, Sequence[Addition]]]) -> Sequence[Sequence[Added]]:
        """Puts the archives in, all or nothing; entries: one for each lesson, in order; vectors are not taken.

        A lesson whose id is there already, or was folded here before, changes nothing; an exact duplicate of one that
        was there before, in the same state and not superseded, folds into it; all others come with their histories and
        with what is counted of them. Accounts of episodes that have one here are left out; all stand in the order of
        their time then.
        """
        ...


@runtime_checkable
class LessonStore(LessonChanges, LessonEditor, RecallRecords, Accounts, LessonArchives, Protocol):
    """All that a store does with lessons; who needs less asks for one of the protocols above. Raises `StoreError`.

    What a call has returned from survives the death of the process.
    """


class Memory(Protocol):
    """What a bank keeps: its lessons and its queued work, in one place."""

    @property
    def lessons(self) -> LessonStore: ...
    @property
    def queue(self) -> Queue: ...
    async def close(self) -> None: ...
