"""A lesson, and the one table of its fields: which are stored, shown, selected by, and written by people.

Stores, commands, pages, MCP, LangGraph and the studio derive from these classes what they do with a field: a new one is
a line of `Lesson` and, if people write it, one of `LessonDetails` (design/129).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, get_type_hints

from mulligan.core.remarks import Rating

# What a lesson is about: this action, this plan, or a habit of the agent.
Layer: TypeAlias = Literal["tactical", "strategic", "metacognitive"]
LAYERS: tuple[Layer, ...] = ("tactical", "strategic", "metacognitive")
"""The layers of lessons, from the most special to the most general."""
LessonState: TypeAlias = Literal["active", "retired", "superseded", "quarantined"]
# A fact holds for one project, with its names and values; a strategy for a kind of task; a query pair for one graph.
Nature: TypeAlias = Literal["fact", "strategy", "query_pair"]
Result: TypeAlias = Literal["success", "failure"]
Time: TypeAlias = str | float | None
"""A time as people write it: see `text.times.time_of`. It is stored as seconds since the epoch."""

MAX_OTHER_QUERIES = 3
"""Maximum number of tasks, besides the first, whose words find a lesson that they taught, too."""
ADMISSION_NOTE = "admission"
"""The key in a lesson's context for the result of its replay."""
WAITS_FOR_REPLAY = "waits for a replay"
"""The flag of a lesson that waits to be tried in a replay."""
REFUSED_BY_REPLAY = "refused by a replay"
"""The flag of a retired lesson that no later one folds into: if it is taught again, it is tried again."""


@dataclass(frozen=True)
class Origin:
    """Where a lesson comes from.

    Attributes:
        steps: those of the trial's trajectory that the lesson cites, numbered from 1.
        parents: the lessons that it was merged from.
        by: the model that extracted or merged it; "" if a person or a calling agent wrote it.
        reason: what the judge said of the episode, if one judged.
        removed: whether the episode's record was removed since.
    """

    kind: Literal["written", "extracted", "merged", "imported"] = "written"
    episode: str = ""
    trial: int | None = None
    steps: tuple[int, ...] = ()
    parents: tuple[str, ...] = ()
    by: str = ""
    reason: str = ""
    removed: bool = False


@dataclass(frozen=True)
class FieldUse:
    """How a field of a lesson is used, besides being stored and exported.

    Attributes:
        label: its name on the page of a lesson, which shows it unless it is empty.
        brief: whether lists, recalls and answers over MCP show it, too, unless it is empty.
        column: whether the store has a column of this name, to select by it.
        counted: whether it changes by itself, so that a change is not an edit.
    """

    label: str = ""
    brief: bool = False
    column: bool = False
    counted: bool = False


@dataclass(frozen=True)
class Lesson:
    """An item in the bank, which outlives its episode.

    Attributes:
        score: the relevance in a recall, from 0 to 1. None outside a recall.
        agent_id: the agent to which it belongs; "" is the unnamed agent.
        query: the task that it was learned from.
        other_queries: up to `MAX_OTHER_QUERIES` further tasks from which the same was learned.
        experience: an id that the lessons of one extraction share.
        confidence: the confidence before any use, from 0 to 1.
        created, last_used: seconds since the epoch.
        uses: the number of recalls.
        support: the number of exact duplicates that it represents, including itself.
        kind: the kind of task from which it was learned (see `Task.kind`).
        embedder: the embedder of its vector. None: it does not have a vector yet.
        state: only active lessons are recalled.
        superseded_by: the lesson into which it was merged, or the fact that replaced it.
        flags: why it was quarantined.
        project: the project for which a fact is true; "" if unknown.
        subject: what a fact is about, such as the name of a function.
        confirmed: for a fact, whether an attempt that follows it has passed; for a query pair, whether a person
            confirmed it.
        to_check: why the lesson may be out of date, such as an announced change; "" if there is no doubt.
        rests_on: the ids of the facts from which it follows.
        pinned: whether a person pinned it. A pinned lesson is never withheld, and never retired for harm.
        ratings: people's scores, oldest first.
        layer: its layer (see `Layer`). Some metacognitive lessons are recalled for any of the agent's tasks; a tactical
            lesson only if the task's words or kind match. "": unknown.
        date: the time at which its content was true, in seconds since the epoch. None: the time when it was stored.
        expires: the time from which it is no longer recalled. None: it does not expire.
    """

    id: Annotated[str, FieldUse("id", column=True)]
    title: str
    content: str
    outcome: Annotated[Result, FieldUse("learned from")]
    description: str = ""
    score: Annotated[float | None, FieldUse(counted=True)] = None
    agent_id: Annotated[str, FieldUse("agent")] = ""
    query: Annotated[str, FieldUse("task")] = ""
    other_queries: Annotated[tuple[str, ...], FieldUse("other tasks", counted=True)] = ()
    experience: Annotated[str, FieldUse(column=True)] = ""
    origin: Origin = Origin()
    confidence: Annotated[float, FieldUse(column=True)] = 0.5
    created: Annotated[float, FieldUse(column=True)] = 0.0
    last_used: Annotated[float | None, FieldUse(counted=True)] = None
    uses: Annotated[int, FieldUse(counted=True)] = 0
    support: int = 1
    tags: Annotated[tuple[str, ...], FieldUse("tags")] = ()
    kind: Annotated[str, FieldUse("kind", column=True)] = ""
    context: Annotated[Mapping[str, Any], FieldUse("context")] = field(default_factory=dict[str, Any])
    embedder: Annotated[str | None, FieldUse("vector of", counted=True)] = None
    state: Annotated[LessonState, FieldUse(column=True)] = "active"
    superseded_by: Annotated[str | None, FieldUse("superseded by", column=True)] = None
    flags: Annotated[tuple[str, ...], FieldUse("flags")] = ()
    nature: Nature = "strategy"
    project: Annotated[str, FieldUse(column=True)] = ""
    subject: Annotated[str, FieldUse(column=True)] = ""
    confirmed: bool = True
    to_check: str = ""
    rests_on: tuple[str, ...] = ()
    pinned: bool = False
    ratings: tuple[Rating, ...] = ()
    layer: Annotated[Literal["", Layer], FieldUse("layer", brief=True, column=True)] = ""
    date: float | None = None
    expires: Annotated[float | None, FieldUse(column=True)] = None

    @property
    def time(self) -> float:
        """The time at which its content was true, as far as it is known."""
        return self.created if self.date is None else self.date

    def is_expired(self, at: float) -> bool:
        """Whether the lesson has expired at this time."""
        return self.expires is not None and self.expires <= at


@dataclass(frozen=True)
class InputField:
    """A field as people write it.

    Attributes:
        help: what to write, in a sentence.
        option: whether commands have an option for it; else it is written as JSON.
    """

    help: str
    option: bool = True


class LessonTexts(TypedDict, total=False):
    """What each lesson needs."""

    title: Annotated[str, InputField("A short title.")]
    content: Annotated[str, InputField("The lesson's text.")]


class LessonDetails(TypedDict, total=False):
    """What a lesson may have besides its texts. The type of a field is what is checked; a number is from 0 to 1."""

    outcome: Annotated[Result, InputField("Whether the lesson comes from a success or a failure.")]
    description: Annotated[str, InputField("When the lesson helps, in one sentence.")]
    query: Annotated[str, InputField("The task from which this lesson was learned.")]
    tags: Annotated[Sequence[str], InputField("A tag. Repeatable.")]
    kind: Annotated[str, InputField("The kind of task that the lesson is for.")]
    context: Annotated[Mapping[str, Any], InputField("Anything else, as a JSON object.", option=False)]
    confidence: Annotated[float, InputField("The confidence in the lesson before it is used.", option=False)]
    nature: Annotated[
        Literal["fact", "strategy"],
        InputField("fact (true only for this project) or strategy (default; for a kind of task)."),
    ]
    project: Annotated[str, InputField("For a fact: the project in which it is true.", option=False)]
    confirmed: Annotated[bool, InputField("For a fact: whether a passing attempt confirmed it.", option=False)]
    layer: Annotated[
        Literal["", Layer], InputField("The lesson's layer. Metacognitive lessons are recalled for any task.")
    ]
    date: Annotated[Time, InputField("When the lesson was true, for example 2026-01-31 (default: now).")]
    expires: Annotated[Time, InputField("When the lesson expires, for example 30d, 2026-12-31 or never.")]


class LessonFields(LessonTexts, LessonDetails, total=False):
    """All fields of a lesson that people write."""


Order: TypeAlias = Literal["newest", "uses", "worth", "harm"]


@dataclass(frozen=True)
class Selection:
    """Selects the lessons to list. None does not filter.

    Attributes:
        prefix: the beginning of their ids.
        before: the id of a lesson; selects older lessons.
        keys: selects lessons with one of these keys (`Addition.keys`). The cost does not grow with the bank.
        kind: selects lessons for this kind of task (see `same_kind`).
        expired: selects lessons that have expired (True) or have not (False).
        order: newest first; by uses, most first; or by measured worth, best first ("worth") or worst first ("harm"),
            with unmeasured lessons last. `before` requires the order by age; page the others with `offset`.
    """

    states: tuple[LessonState, ...] = ("active",)
    outcome: Annotated[Result | None, InputField("Show only lessons learned from tasks with this outcome.")] = None
    tag: Annotated[str | None, InputField("Show only lessons with this tag.")] = None
    text: str | None = None
    limit: int | None = 50
    offset: int = 0
    prefix: str = ""
    before: str | None = None
    nature: Annotated[Nature | None, InputField("Show only lessons of this nature.")] = None
    project: str | None = None
    keys: Sequence[str] | None = None
    layer: Annotated[
        Layer | None,
        InputField(
            "Show only lessons in this layer (tactical: about an action; strategic: a plan; metacognitive: a habit)."
        ),
    ] = None
    kind: Annotated[str | None, InputField("Show only lessons for this kind of task.")] = None
    expired: bool | None = None
    order: Order = "newest"


@cache
def annotations_of(cls: type) -> Mapping[str, tuple[Any, Any]]:
    """The annotated fields of one of these classes: the type and the annotation of each."""
    hints = get_type_hints(cls, include_extras=True)
    annotated = {name: hint for name, hint in hints.items() if getattr(hint, "__metadata__", None)}
    return {name: (hint.__origin__, hint.__metadata__[0]) for name, hint in annotated.items()}


def lesson_fields() -> Mapping[str, tuple[Any, InputField]]:
    """Returns the lesson fields that people write, with the type and purpose of each."""
    return annotations_of(LessonFields)


@cache
def fields_with(mark: Literal["label", "brief", "column", "counted"]) -> Mapping[str, Any]:
    """The values of this mark by field, for the fields of a lesson that have it, in order."""
    return {name: value for name, (_, use) in annotations_of(Lesson).items() if (value := getattr(use, mark))}


def without_counts(lesson: Lesson) -> Lesson:
    """The lesson with default values for the fields that change by themselves: equal unless somebody edited it."""
    plain = Lesson("", "", "", "success")
    counts: dict[str, Any] = {name: getattr(plain, name) for name in fields_with("counted")}
    return replace(lesson, **counts)
