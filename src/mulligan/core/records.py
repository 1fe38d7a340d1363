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
    """Tokens, calls and cost of model calls. `cost` is in US dollars, and None if a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    cost: float | None = 0.0

    @property
    def tokens(self) -> int:
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
        """What was used since `other` was read from the same meter. Without a call, the cost is 0."""
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
            f"The name of a kind of task can have at most {MOST_KIND} characters, not {len(name)}: {name:.40}…"
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
    """What the actor may see. It never contains the hidden target of a benchmark: see `Case`.

    kind: the kind of task, in free words; "" if unknown. No prompt shows it.
    kind_from: where the kind comes from. None: nobody looked for a kind.
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
    """A task with its hidden target. Only benchmarks and scorers handle one; the loop takes `case.task`.

    Attributes:
        family: of cases that are alike. "": the part of the id before "/", or the case is a family of its own.
        phase: the phase of the world, which may change in the middle of a stream. Cases of two phases are never mixed.
    """

    id: str
    task: Task
    target: Json
    family: str = ""
    phase: int = 1


@dataclass(frozen=True)
class Outcome:
    """An environment's report on a step: reward (higher is better), whether it ended, why it was halted.

    `feedback`: how the task went, if the environment knows (see `text.evidence.TaskFeedback`).
    """

    reward: float | None = None
    done: bool = False
    halted: str | None = None
    feedback: Feedback | None = None


@dataclass(frozen=True)
class Check:
    """What a foresight found before a critical action: what could go wrong, and what was decided.

    Attributes:
        action: the action that the actor was about to perform.
        because: why it was checked: "declared" (by the environment or the tool), "pattern …", or "model".
        critical: False if the action was checked only to find out whether it is critical, and it is not.
        risk: what could go wrong.
        decision: go_on performs the action, change performs another, ask leaves it to a person.
        reason: why it was decided so.
        change: the action that was performed instead; "" unless it was changed.
        question, answer: what the person was asked and said; "" if there was nobody.
        performed: whether the action, or the one in its place, was performed.
        asked: False if nothing was asked, because all checks of the episode were used up, or the same action had been
            refused before in this trial.
        lessons: ids of the lessons that were shown for the decision.
        usage: what the check cost; it is a part of the attempt's usage.
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
    """One step of a trajectory: thought, action and observation. Missing parts are empty.

    `check`: the check before a critical action. `action` is then the action that was performed in the end, or the
    intended one if none was.
    `images`: what was seen with the observation, such as the screen after the action.
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
        """Whether a check kept the action from being performed."""
        return self.check is not None and not self.check.performed


@dataclass(frozen=True)
class Artifact:
    """A reference to something immutable that an attempt made, such as a git commit.

    `location` is where it can be worked on now (a folder), and may have gone by the time it is read.
    """

    kind: str
    ref: str
    location: str = ""


@dataclass(frozen=True)
class Choice:
    """What an adaptive strategy chose for a try.

    Attributes:
        arm: the way to go on.
        odds: how likely each arm was at this point.
        signal: what the feedback before it held, such as "checks" or "text".
    """

    arm: str
    odds: Mapping[str, float] = field(default_factory=dict[str, float])
    signal: str = ""


@dataclass(frozen=True)
class Attempt:
    """What the actor produced in one try. `output` is judged; `steps` say how it came about.

    choice: what an adaptive strategy chose for this try.
    """

    output: str
    steps: tuple[Step, ...] = ()
    outcome: Outcome | None = None
    artifacts: tuple[Artifact, ...] = ()
    usage: Usage = Usage()
    choice: Choice | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that a judge checked, as data.

    Attributes:
        asked: the check in its own words, such as an assert or a command line; "" if there is only a text.
        expected: the expected value, if the check names it.
        got: what came back: a value, an error, or a program's output.
        where: the test, or the file and line, that the check belongs to.
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
        passed: None if the attempt could not be judged; `text` then has the reason.
        text: the verdict in words.
        score: higher is better.
        source: the name of the evaluator; one that knows the target writes "oracle".
        notes: remarks on how far to trust the verdict, such as "in-process: can be forged".
        evidence: the reasons for the verdict, as data. "checks" has the findings, which later tries may see (see
            `text.evidence`). The rest belongs to the evaluator, such as tests that it wrote, and is in no prompt.
        images: what the verdict is based on, such as the screen before and after.
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
    """How good a reflection is, by parts (see `text.reflections`).

    Attributes:
        score: 0 to 1, higher is better.
        parts: each 0 to 1: specific, causal, actionable, new, original, no_leak, and what a model judged. Unknown ones
            are left out.
        missing: what is low, in sentences.
    """

    score: float
    parts: Mapping[str, float] = field(default_factory=dict[str, float])
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reflection:
    """Advice from a failed try for the next try at the same task (Shinn et al. 2023, section 3).

    Attributes:
        text: the advice; "" if there is none.
        notes: remarks on it, for the record.
        withheld: why later tries do not see it (see `text.reflections`); "" if they do.
        layers: the parts of the text by layer (see `Layer`); empty for a lesson without layers. A reflection whose
            text was changed has none.
        condensed: what earlier lessons, and perhaps this one, were condensed into when it was drawn.
        quality: None for an empty reflection, and in records from before this score existed.
        edits: what people decided about it, oldest first.
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
        """Returns the reflection after a person's decision. text: the new text, if it was edited or written."""
        edit = Edit(decision, by, at, self.text, self.withheld)  # pyright: ignore[reportArgumentType]
        withheld = VETOED if decision == "vetoed" else ""
        new = replace(self, withheld=withheld, edits=(*self.edits, edit))
        return replace(new, text=text, quality=None) if decision in ("edited", "written") else new

    @classmethod
    def of_layers(cls, layers: Mapping[str, str], *, notes: tuple[str, ...] = ()) -> Reflection:
        """A reflection of these layers, without the empty ones; its text has a line for each."""
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
    """Attempt, feedback and (if it failed) reflection. Numbered from 1; `parent` is the try that it is based on."""

    number: int
    attempt: Attempt
    feedback: Feedback | None = None
    reflection: Reflection | None = None
    parent: int | None = None

    @property
    def lesson(self) -> str:
        """The text of the reflection; "" if there is none, or if later trials are not shown it."""
        return self.reflection.text if self.reflection and not self.reflection.withheld else ""

    @property
    def usage(self) -> Usage:
        parts = (self.attempt, self.feedback, self.reflection)
        return sum((part.usage for part in parts if part), Usage())


@dataclass(frozen=True)
class HeldBack:
    """The most relevant of the lessons that a recall held back, with its relevance."""

    id: str
    title: str
    score: float


@dataclass(frozen=True)
class Recall:
    """One search of the bank for a task.

    Attributes:
        id: of its receipt.
        filtered: how many lessons fell below the threshold.
        formatted_prompt: the text for the prompt.
        threshold: the relevance, 0 to 1, below which lessons were held back.
        note: a remark on the recall, in a sentence, such as that there was no embedder.
        held: the most relevant of the lessons that were held back.
        episodes: ids of the earlier episodes that the text describes.
        retry_prompt: the text for a trial that is shown what the checks of its own task expect: without facts about
            checks of its kind, and doubtful ones about checks of other tasks. None: the same text.
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
    """The part of the past that the next trial is shown: chosen by a strategy, worded by `text.formatting`.

    Attributes:
        last: the previous trial.
        reflections: oldest first.
        recall: what the bank gave for the task.
        evidence: the checks that earlier trials failed, those of the newest trial first.
        temperature: for sampling the attempt (see `Decision`). None lets the actor decide.
    """

    last: Trial | None = None
    reflections: tuple[Reflection, ...] = ()
    recall: Recall | None = None
    evidence: tuple[Finding, ...] = ()
    temperature: float | None = None


@dataclass(frozen=True)
class Decision:
    """A strategy's decision on how the episode continues.

    Attributes:
        reflect: whether the reflector draws a lesson from the newest trial, which failed.
        temperature: for sampling the next attempt, 0 to 2. None lets the actor decide.
        stop: why the episode ends here, in a sentence. "" continues it.
        choice: recorded with the next attempt; the store counts how it ends (see `core.arms`).
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
    """Why an episode ended. `detail` says it in a sentence."""

    reason: StopReason
    detail: str = ""

    @property
    def resumable(self) -> bool:
        """Whether the episode was only cut short."""
        return self.reason in RESUMABLE


@dataclass(frozen=True)
class Head:
    """The versions, models and settings that an episode was started with, to reproduce it and to notice changes.

    `models` and `settings` by role, `prompts` and `files` by name with the sha256 of their content.
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
        """The versions that a record holds: of Mulligan, of these packages, of Python and of the system."""
        import platform
        from importlib.metadata import version

        return {
            **{name: version(name) for name in ("mulligan", *packages)},
            "python": platform.python_version(),
            "platform": platform.platform(),
        }


@dataclass(frozen=True)
class Plan:
    """Which of the optional moves this episode makes.

    expansion: of a search, how many children each candidate gets; None: the trials are one line.
    """

    recalls: bool = False
    reflects: bool = True
    expansion: int | None = None


@dataclass(frozen=True)
class Episode:
    """One task from its first try to its end: the unit that is recorded, resumed and replayed.

    `started` is in seconds since the epoch; `seconds` is the working time without pauses. `ratings` are
    people's scores, oldest first; a fork starts without them.
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
    # Usage of moves that were cut short, so that it belongs to no trial.
    lost: Usage = Usage()
    forked_from: str | None = None
    ratings: tuple[Rating, ...] = ()

    @property
    def over(self) -> bool:
        """Whether it has run to its end, and was not only cut short."""
        return self.stop is not None and not self.stop.resumable

    @property
    def solved(self) -> bool:
        return self.stop is not None and self.stop.reason == "solved"

    @property
    def judged(self) -> bool:
        """Whether at least one trial got a verdict that counts; none does in an episode that ended unconfirmed."""
        unconfirmed = self.stop is not None and self.stop.reason == "unconfirmed"
        return not unconfirmed and any(t.feedback is not None and t.feedback.passed is not None for t in self.trials)

    @cached_property
    def usage(self) -> Usage:
        return sum((trial.usage for trial in self.trials), self.lost)

    @property
    def reflections(self) -> tuple[Reflection, ...]:
        """All reflections that were asked for so far, oldest first."""
        return self.newest_reflections(None)

    def newest_reflections(self, count: int | None) -> tuple[Reflection, ...]:
        """The newest reflections that were asked for, oldest first. count: how many at most; None: all."""
        asked = (t.reflection for t in reversed(self.trials) if t.reflection and t.reflection != NO_REFLECTION)
        return tuple(islice(asked, count))[::-1]

    @property
    def passed(self) -> Trial | None:
        """The first trial that passed."""
        return next((trial for trial in self.trials if trial.feedback and trial.feedback.passed), None)

    @property
    def best(self) -> Trial | None:
        """The trial whose attempt is the result: the newest if the episode ended unconfirmed, else one that passed,
        else the one with the highest score, else the newest. None before any attempt."""
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
    """A plug-in and its settings as JSON. `name`: of a plug-in that ships here, a dotted path, or `./mine.py`."""

    name: str
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def with_settings(self, **settings: Json) -> Spec:
        return Spec(self.name, {**self.settings, **settings})
