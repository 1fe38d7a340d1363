"""What a store keeps of lessons besides their text: versions, links, recalls, outcomes, accounts, and whole banks.

Vectors and terms are opaque bytes here: the bank makes and reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from mulligan.core.lesson import Lesson, LessonState
from mulligan.core.records import Json
from mulligan.core.worth import Tally

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
