"""The store of lessons: what a bank keeps, behind one protocol. Isolation between agents is its to enforce.

`agent_id` None reads the lessons of all agents, "" is the unnamed agent; writing always names one. Vectors and terms
are opaque bytes here: the bank makes and reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from mulligan.core.queued import Claim, Queue
from mulligan.core.records import Json, Lesson, LessonState, Nature

Part: TypeAlias = Literal["lesson", "query"]
"""What a vector is of: the lesson's own text, or the task that it was learned from."""

Change: TypeAlias = Literal[
    "added",
    "folded",
    "edited",
    "retired",
    "restored",
    "merged",
    "unmerged",
    "superseded",
    "confirmed",
    "quarantined",
    "released",
    "linked",
    "embedded",
    "used",
]


@dataclass(frozen=True)
class Entry:
    """A lesson to be added. `fingerprint` is equal for exact duplicates; `terms` are what it is found by lexically.

    vectors: by part, of the embedder that `lesson.embedder` names.
    """

    lesson: Lesson
    fingerprint: str
    terms: bytes = b""
    vectors: Mapping[Part, bytes] = field(default_factory=dict[Part, bytes])


@dataclass(frozen=True)
class Kept:
    """Where an added lesson went: its own row, or (`folded`) the lesson of the same fingerprint that was there."""

    id: str
    folded: bool = False


@dataclass(frozen=True)
class Row:
    """What ranking needs of a lesson. `n` is its number in the store: it grows, and is never given twice."""

    n: int
    id: str
    agent_id: str
    experience: str
    state: LessonState
    success: bool
    confidence: float
    created: float
    uses: int
    last_used: float | None
    terms: bytes
    vector: bytes | None
    query_vector: bytes | None = None
    fact: bool = False
    project: str = ""


@dataclass(frozen=True)
class Delta:
    """The rows that changed behind `since`, as they are now, purged ones by number, and the `tip` to ask from next.

    `generation` changes when the numbers before it mean nothing any more (a purge of everything, a rebuilt file).
    """

    tip: int
    generation: int
    rows: Sequence[Row] = ()
    purged: Sequence[int] = ()


@dataclass(frozen=True)
class Version:
    """One entry of a lesson's history: what happened, when, and the lesson as it was after it (None for "used",
    "linked" and "embedded": `detail` says the rest)."""

    at: float
    change: Change
    lesson: Lesson | None = None
    detail: Json = None


@dataclass(frozen=True)
class Link:
    """Two lessons of one agent that nearly say the same: their cosine similarity, by this embedder."""

    a: str
    b: str
    similarity: float
    embedder: str


@dataclass(frozen=True)
class TaskOutcome:
    """What came of a task that lessons were recalled for: the work that learns from it, and whether the task succeeded
    (None: nobody has said so, or not yet)."""

    work: str
    success: bool | None = None


@dataclass(frozen=True)
class Receipt:
    """A recall as it was handed out: the lessons' ids with their scores. filtered: how many fell below the threshold.

    outcomes: of the tasks that named this recall when they were learned from, oldest first; the store knows them.
    """

    id: str
    agent_id: str | None
    at: float
    query: str
    lessons: Mapping[str, float] = field(default_factory=dict[str, float])
    filtered: int = 0
    outcomes: tuple[TaskOutcome, ...] = ()


@dataclass(frozen=True)
class Selection:
    """Which lessons are listed. None leaves a question open.

    prefix: how their ids begin. before: the id of a lesson; those that are older. subject: what facts are about.
    """

    states: tuple[LessonState, ...] = ("active",)
    outcome: Literal["success", "failure"] | None = None
    tag: str | None = None
    text: str | None = None
    limit: int | None = 50
    offset: int = 0
    prefix: str = ""
    before: str | None = None
    nature: Nature | None = None
    project: str | None = None
    subject: str | None = None


@dataclass(frozen=True)
class Finding:
    """Something wrong with the store, in a sentence; `id`: of the lesson or work that it is about."""

    what: str
    mended: bool = False
    id: str = ""


@dataclass(frozen=True)
class Archive:
    """The lessons of all states in the order in which they came, without vectors (`embedder` is None); their histories
    by id, oldest first; the links between them, each once; the recalls. agent_id None: recalls over all agents.
    """

    agent_id: str | None = ""
    lessons: tuple[Lesson, ...] = ()
    history: Mapping[str, tuple[Version, ...]] = field(default_factory=dict[str, tuple[Version, ...]])
    links: tuple[Link, ...] = ()
    receipts: tuple[Receipt, ...] = ()


@runtime_checkable
class LessonStore(Protocol):
    """Raises `StoreError`, and `NotFound` for an id that is not there or is another agent's: the two look the same.

    What a call has returned from survives the death of the process. `claim`: the queued work that this write settles,
    in the same transaction; raises `LeaseLost` when somebody else has it by now, and then nothing is written.
    """

    async def add(
        self,
        agent_id: str,
        entries: Sequence[Entry],
        *,
        fold: bool = True,
        claim: Claim | None = None,
        result: Json = None,
    ) -> Sequence[Kept]:
        """All of them or none, in order. fold: exact duplicates, within the batch and against the agent's lessons of
        any state, raise the support of the one that is there instead, and a fact is confirmed if one of the two is. A
        fact does not fold into one that was superseded. A result that is an object gets `folded`, if any were: the ids
        of those that were there. Active lessons that the origin of an added fact names as parents are superseded by it.
        """
        ...

    async def change(
        self, agent_id: str, lesson: Lesson, change: Change, *, entry: Entry | None = None, detail: Json = None
    ) -> None:
        """The lesson as it is from now on. entry: its new fingerprint, terms and vectors where its text changed.

        detail: what its history says of the change besides, such as why.
        """
        ...

    async def merge(
        self, agent_id: str, entry: Entry, parents: Sequence[str], *, claim: Claim | None = None, result: Json = None
    ) -> None:
        """Adds the merged lesson and marks its parents superseded by it; their vectors go. All or nothing.

        The parents of a lesson that is quarantined stay active until `change` makes it active. Raises `StoreError` when
        a parent is not active any more.
        """
        ...

    async def unmerge(self, agent_id: str, id: str) -> Sequence[str]:
        """Puts the parents back as they were before the merge, and retires the merged lesson; the parents' ids.

        Their vectors do not come back: `embedder` is None until they are made again. Raises `StoreError` for a lesson
        that holds no parents, or is superseded itself.
        """
        ...

    async def link(
        self, agent_id: str, links: Sequence[Link], *, claim: Claim | None = None, result: Json = None
    ) -> None: ...

    async def links(self, agent_id: str | None, id: str) -> Sequence[Link]:
        """Those of this lesson, which is `a` in each, nearest first."""
        ...

    async def set_vectors(
        self,
        agent_id: str,
        embedder: str,
        vectors: Mapping[str, Mapping[Part, bytes]],
        *,
        claim: Claim | None = None,
        result: Json = None,
    ) -> None:
        """Vectors by lesson id, in place of any other embedder's. Lessons that are gone or superseded are left out."""
        ...

    async def unembedded(self, agent_id: str | None, embedder: str, limit: int) -> Sequence[Lesson]:
        """Active lessons without a vector of this embedder, oldest first."""
        ...

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

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        """The agents that have lessons, of those that begin so, in order; not the unnamed one."""
        ...

    async def history(self, agent_id: str | None, id: str) -> Sequence[Version]:
        """Oldest first."""
        ...

    async def as_of(self, agent_id: str | None, at: float) -> Sequence[Lesson]:
        """The lessons that were active then, as they were then."""
        ...

    async def delta(
        self, agent_id: str | None, embedder: str | None, since: int = 0, *, queries: bool = False
    ) -> Delta:
        """What ranking has to take in; vectors only of this embedder. queries: those of the past tasks, too."""
        ...

    async def recalled(self, receipt: Receipt) -> None:
        """Keeps the receipt and counts a use of each of its lessons; once, however often it is told."""
        ...

    async def receipt(self, agent_id: str | None, id: str) -> Receipt: ...

    async def counts(self, agent_id: str | None) -> Mapping[str, Json]:
        """By agent: {"lessons": {state: n}, "links": n, "recalls": n, "bytes": {"text", "history", "terms",
        "vectors"}}; text is that of the lessons as they are now."""
        ...

    async def purge(self, agent_id: str, ids: Sequence[str] | None) -> int:
        """Removes lessons with all that is known of them, history included; None: all of this agent, receipts and
        queued work included. How many. What was merged into a purged lesson is retired.
        """
        ...

    async def verify(self, *, mend: bool = False) -> Sequence[Finding]:
        """What is wrong with the store, queued work included; with `mend`, put right where that can be done."""
        ...

    async def archive(self, agent_id: str | None) -> Sequence[Archive]:
        """That of this agent; None: those of all agents, by agent_id, and that of the recalls over all, if any."""
        ...

    async def restore(self, several: Sequence[tuple[Archive, Sequence[Entry]]]) -> Sequence[Sequence[Kept]]:
        """Puts the archives in, all or nothing; entries: one for each lesson, in order; vectors are not taken.

        A lesson whose id is there already, or was folded here before, changes nothing; an exact duplicate of one that
        was there before, in the same state and not superseded, folds into it; all others come with their histories.
        """
        ...


class Memory(Protocol):
    """What a bank keeps: its lessons and its queued work, in one place."""

    @property
    def lessons(self) -> LessonStore: ...
    @property
    def queue(self) -> Queue: ...
    async def close(self) -> None: ...
