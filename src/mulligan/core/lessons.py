"""The ports to a store of lessons and of queued work, and the records that pass through them.

The store keeps agents apart. `agent_id` None reads the lessons of all agents, "" is the unnamed agent; writing always
names one. Vectors and terms are opaque bytes here: the bank makes and reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from mulligan.core.lesson import Lesson, LessonState
from mulligan.core.lesson import Selection as Selection
from mulligan.core.records import Json
from mulligan.core.worth import Tally

QueueStatus: TypeAlias = Literal["queued", "running", "done", "failed", "waiting"]
"""waiting: for an answer that a caller thinks of and commits."""


QUOTA = "quota"
"""The kind of work that holds what an agent has used of its quota. It waits, and nobody does it."""


@dataclass(frozen=True)
class Queued:
    """One piece of work.

    Attributes:
        payload: JSON; None once the work is done.
        attempts: how often it was claimed, this time included.
        result: JSON.
        error: why the last attempt failed.
    """

    id: str
    kind: str
    agent_id: str
    payload: Json
    status: QueueStatus = "queued"
    attempts: int = 0
    created: float = 0.0
    finished: float | None = None
    result: Json = None
    error: str = ""

    @property
    def remark(self) -> str:
        """Why the last attempt failed, or what it waits for where that is no answer (`why` in its payload)."""
        table: Mapping[str, Any] = self.payload if self.status == "waiting" else {}  # pyright: ignore[reportAssignmentType]
        return self.error or str(table.get("why", ""))


@dataclass(frozen=True)
class Claim:
    """The right to do a piece of work until the lease runs out. `fence` rises with each claim."""

    id: str
    owner: str
    fence: int


@runtime_checkable
class Queue(Protocol):
    """Raises `StoreError`, `NotFound`, `LeaseLost` for a claim that was lost.

    capacity: how many pieces of one agent's work may be pending; `enqueue` refuses more. Questions that wait for
        somebody's answer do not count: without a model each episode leaves one.
    """

    capacity: int

    async def enqueue(
        self,
        kind: str,
        agent_id: str,
        payload: Json,
        *,
        key: str | None = None,
        waiting: bool = False,
        follows: Sequence[str] = (),
    ) -> str:
        """The id of the work, stored when this returns. key: work of this agent and kind with the same key that is
        not failed is not queued again; its id comes back. follows: recalls of this agent (or over all) whose outcome
        this work will tell; one that is not there is passed over. Raises `StoreError` when this agent's queue is full.
        """
        ...

    async def begin(
        self,
        kind: str,
        agent_id: str,
        payload: Json,
        *,
        key: str,
        owner: str | None,
        seconds: float,
        waiting: bool = False,
        follows: Sequence[str] = (),
    ) -> tuple[Queued, Claim | None]:
        """As `enqueue`, with the work as it is now, claimed in the same step for an owner who does it at once. The
        claim is None without an owner, while another holds the work, and when it is done.
        """
        ...

    async def find(self, agent_id: str, kind: str, key: str) -> str | None:
        """The id of the work that was queued with this key, and has not failed."""
        ...

    async def turn(self, agent_id: str, id: str, *, waiting: bool) -> None:
        """Makes it wait for an answer, or else queues it for a process with a model. Raises `LeaseLost` while it is
        claimed, `StoreError` when it is done or has failed.
        """
        ...

    async def due(self, kinds: Sequence[str]) -> float | None:
        """The latest time, in seconds since the epoch, at which work of these kinds can be claimed: claimed work may be
        free before its lease runs out. None: there is no work, except what waits for an answer.
        """
        ...

    async def claim(self, owner: str, seconds: float, kinds: Sequence[str]) -> tuple[Queued, Claim] | None:
        """The oldest work that is due: queued, or running under a lease that ran out. None when there is none.

        Work that waits for an answer is never returned here, even when the process that took it is gone.
        """
        ...

    async def take(self, agent_id: str, id: str, owner: str, seconds: float) -> tuple[Queued, Claim]:
        """A claim on waiting work, for the caller who commits its answer. Raises `LeaseLost` while another has it,
        `StoreError` when it is not, or no longer, waiting.
        """
        ...

    async def renew(self, claim: Claim, seconds: float) -> None: ...

    async def keep(self, claim: Claim, payload: Json) -> None:
        """Puts this in place of the payload of claimed work, such as with a model's answer in it."""
        ...

    async def finish(self, claim: Claim, result: Json) -> None: ...

    async def fail(self, claim: Claim, error: str, *, retry_in: float | None) -> None:
        """retry_in: seconds until it is due again (what waited, waits again at once); None: it has failed for good."""
        ...

    async def waits(self, claim: Claim, error: str = "") -> None:
        """Returns claimed work to waiting, such as after an invalid answer."""
        ...

    async def look(self, agent_id: str | None, id: str) -> Queued: ...

    async def pending(
        self, agent_id: str | None = None, limit: int = 50, *, kind: str | None = None
    ) -> Sequence[Queued]:
        """All that is not done, oldest first. kind: None is any."""
        ...

    async def accepted_since(self, agent_id: str | None, at: float) -> Sequence[Queued]:
        """All that was accepted since then (seconds since the epoch), done or not, oldest first."""
        ...

    async def depth(self) -> Mapping[str, Mapping[QueueStatus, int]]:
        """How much work of all agents is not done: by kind and status."""
        ...


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
    "doubted",
    "quarantined",
    "released",
    "linked",
    "embedded",
    "used",
    "withheld",
]


RULE = "rule"
"""What `Origin.by` says of a fact that was drawn without a model."""


def compared_text(lesson: Lesson) -> tuple[str, ...]:
    """What a lesson says, for finding its duplicates. The description of a fact by rules only names its task, of which
    the kind counts."""
    by_rule = lesson.nature == "fact" and lesson.origin.by == RULE
    return lesson.title, lesson.kind if by_rule else lesson.description, lesson.content


@dataclass(frozen=True)
class Addition:
    """A lesson to add. `fingerprint` is equal for lessons that may fold; `terms` are the words that it is found by.

    Attributes:
        vectors: by part, of the embedder that `lesson.embedder` names.
        keys: what `Selection.keys` selects it by.
    """

    lesson: Lesson
    fingerprint: str
    terms: bytes = b""
    vectors: Mapping[Part, bytes] = field(default_factory=dict[Part, bytes])
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Added:
    """Where an added lesson is: in its own row, or (`folded`) in the stored lesson of the same fingerprint."""

    id: str
    folded: bool = False


@dataclass(frozen=True)
class Row:
    """The fields of a lesson that ranking needs. `n` is its number in the store: it grows and is never reused.

    worth: the probability that showing it helps; None: not measured.
    layer, expires: see `Lesson`.
    pair: whether it is a query pair.
    """

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
    worth: float | None = None
    layer: str = ""
    kind: str = ""
    pair: bool = False
    expires: float | None = None


@dataclass(frozen=True)
class Delta:
    """The rows that changed after `since`, as they are now, and the numbers of purged ones. Ask next from `tip`.

    generation: changes when earlier numbers are no longer valid (after a purge of everything, or in a mended file).
    """

    tip: int
    generation: int
    rows: Sequence[Row] = ()
    purged: Sequence[int] = ()


@dataclass(frozen=True)
class Version:
    """One entry of a lesson's history: what happened, when, and the lesson as it was after it (None for "used",
    "withheld", "linked" and "embedded": `detail` says the rest)."""

    at: float
    change: Change
    lesson: Lesson | None = None
    detail: Json = None

    @property
    def word(self) -> str:
        """What people call the change: a first version says so where it was merged from others."""
        if self.change == "added" and self.lesson is not None and self.lesson.origin.kind == "merged":
            return "merged"
        return "shown" if self.change == "used" else self.change

    @property
    def details(self) -> Mapping[str, Any]:
        """`detail`, if it is an object."""
        detail: Any = self.detail
        return cast(Mapping[str, Any], detail) if isinstance(detail, dict) else {}

    @property
    def recall(self) -> str:
        """The id of the recall that showed the lesson; "" for another change."""
        recall = self.details.get("receipt")
        return recall if isinstance(recall, str) else ""

    @property
    def score(self) -> str:
        """How relevant the lesson was to that recall; "" where that is not known."""
        score = self.details.get("score")
        return f"{score:.2f}" if isinstance(score, float | int) else ""


@dataclass(frozen=True)
class Link:
    """Two lessons of one agent that nearly say the same: their cosine similarity, by this embedder."""

    a: str
    b: str
    similarity: float
    embedder: str


@dataclass(frozen=True)
class TaskOutcome:
    """The outcome of a task that lessons were recalled for: the work that learns from it ("": nothing does), and
    whether the task succeeded (None: not known, or not yet)."""

    work: str
    success: bool | None = None


@dataclass(frozen=True)
class Receipt:
    """A recall as it was returned.

    Attributes:
        lessons: their scores by id.
        filtered: how many fell below the threshold.
        outcomes: of the tasks that named this recall, oldest first; the store adds them.
        withheld: lessons that a draw withheld to measure what they are worth, with their scores.
        drawn: the share that the draw withholds, by the id of each lesson in the draw. The other lessons are always
            shown.
        tokens: of the text that was shown, estimated.
    """

    id: str
    agent_id: str | None
    at: float
    query: str
    lessons: Mapping[str, float] = field(default_factory=dict[str, float])
    filtered: int = 0
    outcomes: tuple[TaskOutcome, ...] = ()
    withheld: Mapping[str, float] = field(default_factory=dict[str, float])
    drawn: Mapping[str, float] = field(default_factory=dict[str, float])
    tokens: int = 0


@dataclass(frozen=True)
class Worth:
    """What is counted of a lesson, or of a whole bank (`id` is "").

    Attributes:
        state: the lesson's.
        since: recalls before this time showed another text, so their outcomes do not count.
    """

    agent_id: str
    id: str
    state: str
    tally: Tally
    since: float = 0.0


@dataclass(frozen=True)
class Account:
    """An episode in brief, for later episodes.

    Attributes:
        id: of the episode.
        project: where it took place; "" if unknown.
        at: when it was learned from, in seconds since the epoch.
        text: what was asked, done and judged.
        success: None if nobody judged.
    """

    id: str
    project: str
    at: float
    text: str
    success: bool | None = None


@dataclass(frozen=True)
class Fault:
    """A fault of the store, in a sentence. id: of the lesson or work concerned."""

    what: str
    mended: bool = False
    id: str = ""


@dataclass(frozen=True)
class Archive:
    """A bank whole.

    Attributes:
        agent_id: whose it is; None: the recalls over all agents.
        lessons: of all states, in the order in which they came, without vectors (`embedder` is None).
        history: of each lesson by its id, oldest first.
        links: between the lessons, each once.
        receipts: the recalls, with the outcomes of their tasks.
        accounts: of all projects, oldest first.
        worth: what is counted of the bank and of its lessons.
    """

    agent_id: str | None = ""
    lessons: tuple[Lesson, ...] = ()
    history: Mapping[str, tuple[Version, ...]] = field(default_factory=dict[str, tuple[Version, ...]])
    links: tuple[Link, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    accounts: tuple[Account, ...] = ()
    worth: tuple[Worth, ...] = ()


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
