"""The records of an episode: frozen dataclasses without I/O.

Storage lives in `mulligan.store`, the rules by which an episode grows in `core.episode`.
Scores: higher is better, everywhere. `None` means unknown and is never read as zero.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from typing import Any, Literal, TypeAlias

from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import LAYERS as LAYERS
from mulligan.core.lessons import Layer as Layer
from mulligan.core.lessons import Lesson as Lesson
from mulligan.core.lessons import LessonState as LessonState
from mulligan.core.lessons import Nature as Nature
from mulligan.core.lessons import Origin as Origin
from mulligan.core.remarks import Condensed as Condensed
from mulligan.core.remarks import Edit as Edit
from mulligan.core.remarks import KindOrigin as KindOrigin
from mulligan.core.remarks import Rating as Rating

# A JSON value: None, bool, int, float, str, a list of them, or a dict of them by string.
Json: TypeAlias = Any

StopReason: TypeAlias = Literal[
    "solved", "unconfirmed", "unsure", "absent", "exhausted", "gave_up", "stuck", "over_budget", "error", "interrupted"
]
"""Why an episode is over. "unconfirmed": a rule ended the loop with an answer whose verdict is unknown; "unsure": at
the limit, the best answer was not judged good; "absent": what the task asks about does not exist."""

RESUMABLE: frozenset[StopReason] = frozenset({"interrupted", "error", "over_budget"})
"""Reasons after which an episode can be resumed."""

# Most characters of an observation or a feedback that a record keeps: a longer text is cut in the middle.
TEXT_KEPT = 1_000_000


def kept_text(text: str) -> str:
    """The text; if it is too long, its head and tail around a note with its length and the sha256 of all of it.

    Text that is itself judged, such as the output of an attempt, is never cut.
    """
    if len(text) <= TEXT_KEPT:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    half = TEXT_KEPT // 2 - 100  # room for the note, so that what was cut is not cut again
    note = f"{len(text) - 2 * half:,} of {len(text):,} characters are not kept; sha256 of all: {digest}"
    return f"{text[:half]}\n[… {note} …]\n{text[-half:]}"


def _cut(record: object, *names: str) -> None:
    """Cuts texts of a record that are too long, in its `__post_init__`."""
    for name in names:
        text = getattr(record, name)
        if isinstance(text, str) and len(text) > TEXT_KEPT:
            object.__setattr__(record, name, kept_text(text))


def _no_json() -> Mapping[str, Json]:
    return {}


def _no_text() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Usage:
    """The tokens, number and cost of model calls. `cost` is in US dollars, or None if a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        """The number of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        unknown = self.cost is None or other.cost is None
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.calls + other.calls,
            None if unknown else (self.cost or 0.0) + (other.cost or 0.0),
        )

    def __sub__(self, other: Usage) -> Usage:
        """The usage since `other` was read from the same meter. Without a call, the cost is 0."""
        unknown = self.calls != other.calls and (self.cost is None or other.cost is None)
        return Usage(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.calls - other.calls,
            None if unknown else (self.cost or 0.0) - (other.cost or 0.0),
        )


@dataclass(frozen=True)
class Image:
    """An image for models that accept images. `text.images` checks it and detects its format."""

    media_type: str
    data: bytes


MOST_KIND = 60
"""Characters of the name of a kind of task."""


def checked_kind(kind: str) -> str:
    """The name of a kind of task, with single spaces. Raises `InvalidInput` for one that is too long."""
    name = " ".join(kind.split())
    if len(name) > MOST_KIND:
        raise InvalidInput(
            f"The name of a task kind can have at most {MOST_KIND} characters, not {len(name)}: {name:.40}…"
        )
    return name


def folded_kind(kind: str) -> str:
    """The name in lower case and with single spaces: equal for names of the same kind."""
    return " ".join(kind.split()).casefold()


def same_kind(one: str, other: str) -> bool:
    """Whether two names mean the same kind of task. "" is not a kind."""
    return bool(folded_kind(one)) and folded_kind(one) == folded_kind(other)


@dataclass(frozen=True)
class Task:
    """A task, as the actor sees it. It never contains a benchmark's hidden target: see `Case`.

    Attributes:
        kind: the kind of task, in your own words; "" if unknown. Prompts do not show it.
        kind_from: the origin of the kind; None if no kind was looked for.
    """

    prompt: str
    inputs: Mapping[str, Json] = field(default_factory=_no_json)
    images: tuple[Image, ...] = ()
    kind: str = ""
    kind_from: KindOrigin | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", checked_kind(self.kind))


@dataclass(frozen=True)
class Case:
    """A task with its hidden target. Only benchmarks and scorers use it; the loop receives `case.task`.

    Attributes:
        family: the name of a group of similar cases. "": the part of the id before "/", or else the case alone.
        phase: the phase of the world, which can change within a stream. Cases from different phases are never mixed.
    """

    id: str
    task: Task
    target: Json
    family: str = ""
    phase: int = 1


@dataclass(frozen=True)
class Outcome:
    """An environment's report on a step: the reward, whether the task ended, and why it was halted.

    Attributes:
        reward: higher is better.
        feedback: how the task went, if the environment reports it (see `text.evidence.TaskFeedback`).
    """

    reward: float | None = None
    done: bool = False
    halted: str | None = None
    feedback: Feedback | None = None


@dataclass(frozen=True)
class Check:
    """The result of a check before a critical action: what could go wrong, and the decision.

    Attributes:
        action: the action that the actor was about to perform.
        because: why it was checked: "declared" (by the environment or the tool), "pattern …", or "model".
        critical: False if the check found that the action is not critical.
        risk: what could go wrong.
        decision: "go_on" performs the action, "change" performs another, and "ask" leaves the decision to a person.
        reason: the reason for the decision.
        change: the action that was performed instead; "" if it was not changed.
        question, answer: the question to the person and the answer; "" if no person was asked.
        performed: whether the action or its replacement was performed.
        asked: False if no model was asked, because the episode had no checks left or the same action had already been
            refused in this trial.
        lessons: the ids of the lessons that were shown for the decision.
        usage: the usage of the check, which is part of the attempt's usage.
    """

    action: str
    because: str = "declared"
    critical: bool = True
    risk: str = ""
    decision: Literal["go_on", "change", "ask"] = "go_on"
    reason: str = ""
    change: str = ""
    question: str = ""
    answer: str = ""
    performed: bool = True
    asked: bool = True
    lessons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()

    def __post_init__(self) -> None:
        _cut(self, "action", "risk", "reason", "change", "question", "answer")


@dataclass(frozen=True)
class Step:
    """One step of a trajectory: a thought, an action and an observation. Missing parts are empty.

    Attributes:
        action: the action that was performed; after a check that refused it, the intended action.
        check: the check before a critical action.
        images: images that belong to the observation, such as the screen after the action.
    """

    thought: str = ""
    action: str = ""
    observation: str = ""
    outcome: Outcome | None = None
    check: Check | None = None
    images: tuple[Image, ...] = ()

    def __post_init__(self) -> None:
        _cut(self, "thought", "action", "observation")

    @property
    def refused(self) -> bool:
        """Whether a check prevented the action."""
        return self.check is not None and not self.check.performed


@dataclass(frozen=True)
class Artifact:
    """A reference to something immutable that an attempt created, such as a git commit.

    Attributes:
        location: the folder that currently contains it. It may no longer exist.
    """

    kind: str
    ref: str
    location: str = ""


@dataclass(frozen=True)
class Choice:
    """An adaptive strategy's choice for a try.

    Attributes:
        arm: the name of the chosen arm.
        odds: the probability of each arm.
        signal: the kind of feedback before the choice, such as "checks" or "text".
    """

    arm: str
    odds: Mapping[str, float] = field(default_factory=dict[str, float])
    signal: str = ""


@dataclass(frozen=True)
class Attempt:
    """The result of an actor in one try.

    Attributes:
        output: the text that is judged.
        steps: the steps that led to the output.
        choice: the choice of an adaptive strategy for this try.
    """

    output: str
    steps: tuple[Step, ...] = ()
    outcome: Outcome | None = None
    artifacts: tuple[Artifact, ...] = ()
    usage: Usage = Usage()
    choice: Choice | None = None


@dataclass(frozen=True)
class Finding:
    """The result of one of a judge's checks, as data.

    Attributes:
        asked: the check itself, such as an assert or a command line; "" if there is only a text.
        expected: the expected value, if the check states it.
        got: the actual value, error or program output.
        where: the test, or the file and line, that contains the check.
        passed: whether the attempt passed the check.
    """

    asked: str = ""
    expected: str = ""
    got: str = ""
    where: str = ""
    passed: bool = False


@dataclass(frozen=True)
class Feedback:
    """An evaluator's verdict on an attempt.

    Attributes:
        passed: whether the attempt passed; None if it could not be judged, in which case `text` gives the reason.
        text: the verdict in words.
        score: the score, if there is one; higher is better.
        source: the evaluator's name, or "oracle" if the evaluator knows the target.
        notes: remarks on how far to trust the verdict, such as "in-process: can be forged".
        evidence: the reasons for the verdict, as data. "checks" contains the findings, which later tries can see (see
            `text.evidence`). Other keys belong to the evaluator, such as tests that it wrote, and are not in prompts.
        images: images that the verdict is based on, such as the screen before and after the action.
    """

    passed: bool | None
    text: str = ""
    score: float | None = None
    source: str = ""
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()
    evidence: Json = None
    images: tuple[Image, ...] = ()

    def __post_init__(self) -> None:
        _cut(self, "text")
        if self.score is not None and not math.isfinite(self.score):
            raise InvalidInput(
                f"A score must be a number or None, but {self.source or 'an evaluator'} returned {self.score}."
            )


@dataclass(frozen=True)
class Quality:
    """The quality of a reflection, with its parts (see `text.reflections`).

    Attributes:
        score: from 0 to 1; higher is better.
        parts: scores from 0 to 1: specific, causal, actionable, new, original, no_leak, and those that a model gave.
            Unknown parts are omitted.
        missing: sentences that describe the low parts.
    """

    score: float
    parts: Mapping[str, float] = field(default_factory=dict[str, float])
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reflection:
    """Advice from a failed try for the next try at the same task (Shinn et al. 2023, section 3).

    Attributes:
        text: the advice; "" if there is none.
        notes: remarks on the reflection, for the record.
        withheld: why later tries do not see the reflection (see `text.reflections`); "" if they see it.
        layers: the parts of the text by layer (see `Layer`); empty if there are no layers or the text was changed.
        condensed: the lesson that replaced earlier lessons, and perhaps this one, when this one was written.
        quality: None for an empty reflection, and in records from before this score existed.
        edits: people's decisions about the reflection, oldest first.
    """

    text: str
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()
    withheld: str = ""
    layers: Mapping[str, str] = field(default_factory=_no_text, hash=False)
    condensed: Condensed | None = None
    quality: Quality | None = field(default=None, compare=False)  # it follows from the rest, and older records lack it
    edits: tuple[Edit, ...] = ()

    def __post_init__(self) -> None:
        if self.layers and self.text != _words_of(self.layers):
            object.__setattr__(self, "layers", {})

    def decided(self, decision: str, text: str, by: str, at: float) -> Reflection:
        """Returns the reflection after a person's decision.

        Args:
            text: the new text, if the person changed it.
        """
        edit = Edit(decision, by, at, self.text, self.withheld)  # pyright: ignore[reportArgumentType]
        withheld = VETOED if decision == "vetoed" else ""
        new = replace(self, withheld=withheld, edits=(*self.edits, edit))
        return replace(new, text=text, quality=None) if decision in ("edited", "written") else new

    @classmethod
    def of_layers(cls, layers: Mapping[str, str], *, notes: tuple[str, ...] = ()) -> Reflection:
        """Returns a reflection with these layers, except empty ones. Its text has a line for each layer."""
        kept = {layer: " ".join(layers[layer].split()) for layer in LAYERS if layers.get(layer, "").strip()}
        return cls(_words_of(kept), notes=notes, layers=kept)


def _words_of(layers: Mapping[str, str]) -> str:
    """The text of a reflection with these layers."""
    return "\n".join(layers[layer] for layer in LAYERS if layer in layers)


# Why a vetoed reflection is withheld.
VETOED = "A person vetoed it."

# Recorded for a failed trial after which the strategy decided not to reflect.
NO_REFLECTION = Reflection("", withheld="The strategy asked for no lesson.")


@dataclass(frozen=True)
class Trial:
    """An attempt with its feedback and, if it failed, its reflection.

    Attributes:
        number: the number of the try, from 1.
        parent: the number of the try that it is based on.
    """

    number: int
    attempt: Attempt
    feedback: Feedback | None = None
    reflection: Reflection | None = None
    parent: int | None = None

    @property
    def lesson(self) -> str:
        """The reflection's text; "" if there is none, or if later trials do not see it."""
        return self.reflection.text if self.reflection and not self.reflection.withheld else ""

    @property
    def usage(self) -> Usage:
        """The usage of the attempt, the feedback and the reflection."""
        parts = (self.attempt, self.feedback, self.reflection)
        return sum((part.usage for part in parts if part), Usage())


@dataclass(frozen=True)
class HeldBack:
    """The most relevant lesson that a recall held back, with its relevance."""

    id: str
    title: str
    score: float


@dataclass(frozen=True)
class Recall:
    """One search of the bank for a task.

    Attributes:
        id: the id of the recall's receipt.
        filtered: the number of lessons below the threshold.
        formatted_prompt: the text for the prompt.
        threshold: the relevance, from 0 to 1, below which lessons were held back.
        note: a one-sentence remark on the recall, such as that there was no embedder.
        held: the most relevant lesson that was held back.
        episodes: the ids of the earlier episodes that the text describes.
        retry_prompt: the text for a trial that sees what its own task's checks expect. It omits facts about similar
            checks, and doubtful facts about other tasks' checks. None: the same text.
    """

    id: str
    lessons: tuple[Lesson, ...] = ()
    filtered: int = 0
    formatted_prompt: str = ""
    threshold: float | None = None
    note: str = ""
    held: HeldBack | None = None
    episodes: tuple[str, ...] = ()
    retry_prompt: str | None = None


@dataclass(frozen=True)
class Past:
    """What the next trial sees of the past. A strategy chooses it, and `text.formatting` formats it.

    Attributes:
        last: the previous trial.
        reflections: the reflections, oldest first.
        recall: the bank's recall for the task.
        evidence: the checks that earlier trials failed, those of the newest trial first.
        temperature: the temperature for sampling the attempt (see `Decision`). None: the actor decides.
    """

    last: Trial | None = None
    reflections: tuple[Reflection, ...] = ()
    recall: Recall | None = None
    evidence: tuple[Finding, ...] = ()
    temperature: float | None = None


@dataclass(frozen=True)
class Decision:
    """A strategy's decision about how the episode continues.

    Attributes:
        reflect: whether the reflector writes a lesson about the newest trial, which failed.
        temperature: the temperature for sampling the next attempt, from 0 to 2. None: the actor decides.
        stop: a sentence that explains why the episode ends here. "": the episode continues.
        choice: the choice to record with the next attempt. The store counts its outcome (see `core.arms`).
    """

    reflect: bool = True
    temperature: float | None = None
    stop: str = ""
    choice: Choice | None = None

    def __post_init__(self) -> None:
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise InvalidInput(f"The temperature of a decision must be from 0 to 2, not {self.temperature!r}.")


@dataclass(frozen=True)
class Stop:
    """Why an episode ended. `detail` explains it in a sentence."""

    reason: StopReason
    detail: str = ""

    @property
    def resumable(self) -> bool:
        """Whether the episode was only interrupted."""
        return self.reason in RESUMABLE


@dataclass(frozen=True)
class Head:
    """The versions, models and settings with which an episode started, to reproduce it and to detect changes.

    Attributes:
        models, settings: by role.
        prompts, files: the sha256 of each content, by name.
    """

    versions: Mapping[str, str] = field(default_factory=_no_text)
    models: Mapping[str, str] = field(default_factory=_no_text)
    settings: Mapping[str, Json] = field(default_factory=_no_json)
    prompts: Mapping[str, str] = field(default_factory=_no_text)
    files: Mapping[str, str] = field(default_factory=_no_text)
    seed: int = 0

    @staticmethod
    @cache
    def versions_of(*packages: str) -> Mapping[str, str]:
        """The versions for a record: those of Mulligan, these packages, Python and the system."""
        import platform
        from importlib.metadata import version

        return {
            **{name: version(name) for name in ("mulligan", *packages)},
            "python": platform.python_version(),
            "platform": platform.platform(),
        }


@dataclass(frozen=True)
class Plan:
    """The optional moves that an episode makes.

    Attributes:
        expansion: in a search, the number of children of each candidate. None: each trial follows the one before.
    """

    recalls: bool = False
    reflects: bool = True
    expansion: int | None = None


@dataclass(frozen=True)
class Episode:
    """One task from its first try to its end: the unit that is recorded, resumed and replayed.

    Attributes:
        started: seconds since the epoch.
        seconds: the working time, excluding pauses.
        lost: the usage of interrupted moves, which belongs to no trial.
        ratings: people's scores, oldest first. A fork starts without them.
    """

    id: str
    task: Task
    run: str = ""
    agent: str = ""
    plan: Plan = Plan()
    head: Head = field(default_factory=Head)
    started: float = 0.0
    seconds: float = 0.0
    recall: Recall | None = None
    trials: tuple[Trial, ...] = ()
    stop: Stop | None = None
    lost: Usage = Usage()
    forked_from: str | None = None
    ratings: tuple[Rating, ...] = ()

    @property
    def over(self) -> bool:
        """Whether the episode has ended, and was not only interrupted."""
        return self.stop is not None and not self.stop.resumable

    @property
    def solved(self) -> bool:
        """Whether the episode ended with a try that passed."""
        return self.stop is not None and self.stop.reason == "solved"

    @property
    def judged(self) -> bool:
        """Whether at least one trial has a verdict; always False if the episode ended unconfirmed."""
        unconfirmed = self.stop is not None and self.stop.reason == "unconfirmed"
        return not unconfirmed and any(t.feedback is not None and t.feedback.passed is not None for t in self.trials)

    @cached_property
    def usage(self) -> Usage:
        """The usage of all trials and interrupted moves."""
        return sum((trial.usage for trial in self.trials), self.lost)

    @property
    def reflections(self) -> tuple[Reflection, ...]:
        """All reflections that were requested so far, oldest first."""
        return self.newest_reflections(None)

    def newest_reflections(self, count: int | None) -> tuple[Reflection, ...]:
        """The newest reflections that were requested, oldest first.

        Args:
            count: the maximum number; None: all.
        """
        asked = (t.reflection for t in reversed(self.trials) if t.reflection and t.reflection != NO_REFLECTION)
        return tuple(islice(asked, count))[::-1]

    @property
    def passed(self) -> Trial | None:
        """The first trial that passed."""
        return next((trial for trial in self.trials if trial.feedback and trial.feedback.passed), None)

    @property
    def best(self) -> Trial | None:
        """The trial whose attempt is the result; None before the first attempt.

        If the episode ended unconfirmed, this is the newest trial. Otherwise, it is a trial that passed or, if none
        passed, the trial with the highest score or, without scores, the newest trial.
        """
        if self.stop is not None and self.stop.reason == "unconfirmed":
            return self.trials[-1] if self.trials else None

        def worth(trial: Trial) -> tuple[bool, float, int]:
            feedback = trial.feedback
            score = feedback.score if feedback else None
            passed = bool(feedback and feedback.passed)
            return (passed, float("-inf") if score is None else score, trial.number)

        return max(self.trials, key=worth, default=None)


@dataclass(frozen=True)
class Spec:
    """A plug-in and its settings as JSON.

    Attributes:
        name: a built-in plug-in, a dotted path, or `./mine.py`.
    """

    name: str
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def with_settings(self, **settings: Json) -> Spec:
        """Returns a copy with these settings added or replaced."""
        return Spec(self.name, {**self.settings, **settings})
