"""The records that a store of lessons takes and returns: additions, versions, recalls, accounts, and whole banks.

Vectors and terms are opaque bytes here: the bank makes and reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from mulligan.core.lessons import Lesson, LessonState
from mulligan.core.records import Json
from mulligan.core.worth import Tally

Part: TypeAlias = Literal["lesson", "query"]
"""Which text a vector represents: the lesson's own, or the task that it was learned from."""

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
"""`Origin.by` of a fact that rules derived without a model."""


def compared_text(lesson: Lesson) -> tuple[str, ...]:
    """The texts that are compared to find a lesson's duplicates. The description of a fact by rules only names its
    task, so its kind is compared instead."""
    by_rule = lesson.nature == "fact" and lesson.origin.by == RULE
    return lesson.title, lesson.kind if by_rule else lesson.description, lesson.content


@dataclass(frozen=True)
class Addition:
    """A lesson to add.

    Attributes:
        fingerprint: equal for lessons that may be duplicates.
        terms: the words that a search finds it by.
        vectors: by part, from the embedder that `lesson.embedder` names.
        keys: what `Selection.keys` selects it by.
    """

    lesson: Lesson
    fingerprint: str
    terms: bytes = b""
    vectors: Mapping[Part, bytes] = field(default_factory=dict[Part, bytes])
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Added:
    """The id of an added lesson; if `folded`, that of the stored lesson that it duplicates."""

    id: str
    folded: bool = False


@dataclass(frozen=True)
class Row:
    """The fields of a lesson that ranking needs; most are those of `Lesson`.

    Attributes:
        n: its number in the store, which grows and is never reused.
        worth: the probability that showing it helps; None: not measured.
        fact, pair: whether it is a fact, or a query pair.
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
    """What changed since an earlier `Delta`.

    Attributes:
        tip: pass it as `since` to get the next changes.
        generation: changes when earlier numbers are no longer valid (after a purge of everything, or in a mended file).
        rows: the changed rows as they are now.
        purged: the numbers of the purged rows.
    """

    tip: int
    generation: int
    rows: Sequence[Row] = ()
    purged: Sequence[int] = ()


@dataclass(frozen=True)
class Version:
    """An entry of a lesson's history: when and how it changed, and the lesson after the change. For "used", "withheld",
    "linked" and "embedded" the lesson is None, and `detail` describes the change."""

    at: float
    change: Change
    lesson: Lesson | None = None
    detail: Json = None

    @property
    def word(self) -> str:
        """The change as people read it: "merged" for a lesson that began as a merger, "shown" for "used"."""
        if self.change == "added" and self.lesson is not None and self.lesson.origin.kind == "merged":
            return "merged"
        return "shown" if self.change == "used" else self.change

    @property
    def details(self) -> Mapping[str, Any]:
        """`detail` if it is a JSON object, else an empty one."""
        detail: Any = self.detail
        return cast(Mapping[str, Any], detail) if isinstance(detail, dict) else {}

    @property
    def recall(self) -> str:
        """The id of the recall that showed the lesson; "" for another change."""
        recall = self.details.get("receipt")
        return recall if isinstance(recall, str) else ""

    @property
    def score(self) -> str:
        """How relevant the lesson was to that recall; "" if unknown."""
        score = self.details.get("score")
        return f"{score:.2f}" if isinstance(score, float | int) else ""


@dataclass(frozen=True)
class Link:
    """Two lessons of one agent that say nearly the same, with their cosine similarity by this embedder."""

    a: str
    b: str
    similarity: float
    embedder: str


@dataclass(frozen=True)
class TaskOutcome:
    """The outcome of a task that lessons were recalled for.

    Attributes:
        work: the id of the work that learns from it; "": none does.
        success: whether the task succeeded; None: unknown, or not yet over.
    """

    work: str
    success: bool | None = None


@dataclass(frozen=True)
class Receipt:
    """A record of one recall.

    Attributes:
        lessons: their scores by id.
        filtered: how many fell below the threshold.
        outcomes: of the tasks that this recall was for, oldest first; the store adds them.
        withheld: the scores of lessons that a random draw withheld, to measure what they are worth.
        drawn: the share of recalls that withhold a lesson, by id. Lessons that are not in it are always shown.
        tokens: the estimated length of the text that was shown.
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
    """The outcomes that are counted for a lesson, or for a whole bank (`id` is "").

    Attributes:
        state: the lesson's.
        since: outcomes of earlier recalls do not count, because they showed another text.
    """

    agent_id: str
    id: str
    state: str
    tally: Tally
    since: float = 0.0


@dataclass(frozen=True)
class Account:
    """A short account of an episode, for later episodes.

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
    """A fault of the store, in a sentence. id: of the lesson or work that it concerns."""

    what: str
    mended: bool = False
    id: str = ""


@dataclass(frozen=True)
class Archive:
    """A whole bank.

    Attributes:
        agent_id: whose it is; None: the recalls over all agents.
        lessons: of all states, in the order in which they were added, without vectors (`embedder` is None).
        history: of each lesson by its id, oldest first.
        links: between the lessons, each once.
        receipts: the recalls, with the outcomes of their tasks.
        accounts: of all projects, oldest first.
        worth: the counts for the bank and for its lessons.
    """

    agent_id: str | None = ""
    lessons: tuple[Lesson, ...] = ()
    history: Mapping[str, tuple[Version, ...]] = field(default_factory=dict[str, tuple[Version, ...]])
    links: tuple[Link, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    accounts: tuple[Account, ...] = ()
    worth: tuple[Worth, ...] = ()
