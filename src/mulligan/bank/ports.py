"""The parts of a bank, behind ports, and its settings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

from mulligan.bank.recall.embedding import Vectors
from mulligan.core.errors import InvalidInput, MulliganError, StoreError, UnknownName
from mulligan.core.lesson_store import Memory
from mulligan.core.protocols import Model, Prompts
from mulligan.core.ranking import Deduplication, Merging, Retrieval
from mulligan.core.records import Episode, Lesson, Recall, same_kind
from mulligan.core.work_queue import Claim, Queued
from mulligan.text.times import span_of, time_of

Form: TypeAlias = Literal["notebook", "lessons", "history"]
FORMS: tuple[Form, ...] = get_args(Form)
"""The forms in which a task may be shown the past, in the order of the prompt."""
PRESETS = ("strict", "standard", "lenient")
_CHOICES = {
    "history": ("newest", "nearest"),
    "extraction": ("lessons", "workflows"),
    "near_duplicates": ("link", "skip"),
    "reader": ("", "small", "large"),
    "admission": ("none", "replay"),
}
"""Settings that are one of several words."""


@dataclass(frozen=True)
class Settings:
    """How a bank behaves; `paper`: whether thinkers ask as the ReasoningBank paper does.

    Each setting is described in its annotation, which the docs show. Raises `InvalidInput` for values that can never
    work.
    """

    top_k: Annotated[
        int,
        "Maximum number of lessons that a recall returns or, with `cosine` retrieval, of experiences with up to three "
        "lessons each.",
    ] = 3
    threshold: Annotated[
        float | Literal["strict", "standard", "lenient"] | None,
        "The minimum relevance of recalled lessons, from 0 to 1; or `strict`, `standard` or `lenient`. It is "
        "calibrated for each embedder, so a value means the same with every embedder.",
    ] = None
    tokens: Annotated[int, "Maximum number of tokens for recalled lessons in a prompt."] = 1200
    forms: Annotated[
        tuple[Form, ...],
        "Which parts of the past the prompt shows: one or more of `notebook` (this project's facts, as many as fit, "
        "most relevant first), `lessons` (the few that are most relevant to the task) and `history` "
        "(summaries of this project's newest episodes). By default, `solve`, `run` and `bench` show `notebook` "
        "and `lessons` to a `large` reader.",
    ] = ("lessons",)
    notebook_tokens: Annotated[int, "Maximum number of tokens for the notebook in a prompt."] = 1500
    history: Annotated[
        Literal["newest", "nearest"],
        "Which episodes `history` shows: the `newest`, or the `nearest` (up to `top_k` solved episodes with similar "
        "tasks).",
    ] = "newest"
    history_tokens: Annotated[int, "Maximum number of tokens for the history in a prompt."] = 6000
    account_tokens: Annotated[int, "Maximum number of tokens kept from each episode for the history."] = 600
    trajectory_tokens: Annotated[
        int,
        "Maximum number of tokens of an episode that a judge or an extractor is shown.",
    ] = 8000
    extraction: Annotated[
        Literal["lessons", "workflows"],
        "What a model extracts from an episode: `lessons`, from successes and failures; or `workflows` (the steps "
        "that solve a kind of task), from successes only.",
    ] = "lessons"
    learn_share: Annotated[
        float,
        "How many tokens a model can use for learning, as a share of the tokens that the tasks used. With `1`, there "
        "is no limit, and a model is asked about each episode immediately. With `0`, only rules learn. With a value "
        "in between, a model is asked only about episodes from which rules learned nothing, several at a time, and "
        "later (`mulligan memory work` asks immediately).",
    ] = 1.0
    reader: Annotated[
        Literal["", "small", "large"],
        "The size of the model that reads the lessons. A `small` model is shown one fact, and a `large` model is shown "
        "all facts that fit the task. Neither is shown a lesson whose expected gain is below its price in tokens. By "
        "default, `solve`, `run` and `bench` set `learn_share = 0.1`, and `reader` to `large` for command-line agents "
        "and provider models, or to `small` for a model that runs inside Mulligan. If `reader` is empty, lessons have "
        "no price.",
    ] = ""
    admission: Annotated[
        Literal["none", "replay"],
        "With `replay`, Mulligan tests each lesson from a model before it recalls the lesson: it repeats the first try "
        "of the lesson's run, with and without the lesson, using at most the tokens that `learn_share` allows. It "
        "repeats only runs that have no effects outside the sandbox. Lessons from other runs are kept, marked as "
        "untested.",
    ] = "none"
    fold: Annotated[
        bool, "Whether lessons with the same text are combined into one lesson, which records their number."
    ] = True
    expires: Annotated[
        Mapping[str, str],
        'How long new lessons are recalled, such as `{ fact = "90d" }`: by kind of task or, for other kinds, by `fact` '
        "or `strategy`. An expiry that you set for a lesson takes precedence.",
    ] = field(default_factory=dict[str, str])
    near_duplicates: Annotated[
        Literal["link", "skip"],
        "What to do with a new lesson that nearly repeats another: `link` keeps and links both, and `skip` "
        "discards the new one.",
    ] = "link"
    auto_merge: Annotated[bool, "Whether similar lessons are merged in the background."] = True
    quarantine: Annotated[
        bool,
        "Whether a lesson that tries to instruct its reader is quarantined until it is released.",
    ] = True
    withhold: Annotated[
        float,
        "The probability, from 0 to 0.5, that a recall withholds a lesson, to measure what lessons are worth "
        "(`mulligan memory stats`). Pinned lessons are never withheld.",
    ] = 0.0
    paper: bool = False
    attempts: Annotated[int, "How many times a pending job is attempted before it counts as failed."] = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "forms", checked_forms(self.forms))
        budgets = ("tokens", "notebook_tokens", "history_tokens", "account_tokens", "trajectory_tokens")
        for name in ("top_k", *budgets, "attempts"):
            whole_number(name, getattr(self, name))
        checked_threshold(self.threshold)
        for name, most in (("withhold", 0.5), ("learn_share", 1)):
            share: object = getattr(self, name)
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= most:
                raise InvalidInput(f"{name!r} must be a share from 0 to {most}, not {share!r}.")
        for name, words in _CHOICES.items():
            if getattr(self, name) not in words:
                hint = " To ask no model, set learn_share = 0." if name == "extraction" else ""
                raise InvalidInput(
                    f"{name} must be {' or '.join(filter(None, words))}, not {getattr(self, name)!r}.{hint}"
                )

        table: object = self.expires
        spans = cast(dict[object, object], table).values() if isinstance(table, Mapping) else [table]
        for span in spans:
            if not isinstance(span, str) or (span_of(span) is None and span != "never"):
                raise InvalidInput(
                    f"'expires' must be a time span for each kind of lesson, such as {{ fact = \"90d\" }}, not "
                    f"{span!r}."
                )

    def expiry(self, lesson: Lesson) -> float | None:
        """When a new lesson expires, by its kind of task, or else by its nature; None: never."""
        of_kind = next((span for kind, span in self.expires.items() if same_kind(kind, lesson.kind)), None)
        return time_of(of_kind or self.expires.get(lesson.nature), future=True)

    def as_in_the_paper(self) -> Settings:
        """The preset "paper": nothing is folded, linked or merged, and one experience is recalled."""
        return replace(
            self,
            forms=("lessons",),
            extraction="lessons",
            learn_share=1.0,
            reader="",
            admission="none",
            top_k=1,
            threshold=None,
            fold=False,
            near_duplicates="link",
            auto_merge=False,
            paper=True,
        )


def whole_number(name: str, value: object) -> int:
    """The value. Raises `InvalidInput` unless it is an integer of at least 1; 2.0 is one, 2.5 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInput(f"{name} must be an integer of at least 1, not {value!r}.")
    return value


def checked_forms(value: object) -> tuple[Form, ...]:
    """The forms in the order of the prompt, from a list of names or a text with commas.

    Raises `InvalidInput` and `UnknownName`.
    """
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names:
        raise InvalidInput(f"'forms' must be one or more of {', '.join(FORMS)}, not {value!r:.80}.")
    for name in cast(Sequence[object], names):
        if name not in FORMS:
            raise UnknownName("form", str(name), FORMS)
    return tuple(form for form in FORMS if form in names)


def checked_threshold(value: object) -> float | str | None:
    """Returns the value. Raises `InvalidInput` unless it is a relevance from 0 to 1, a preset or None."""
    if value is None or (isinstance(value, str) and value in PRESETS):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return value
    raise InvalidInput(f"A threshold must be a relevance from 0 to 1, or {', '.join(PRESETS)}, not {value!r}.")


def moment(value: object) -> float:
    """The value. Raises `InvalidInput` unless it can be a time: a number of seconds since the epoch."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf"):
        return float(value)
    raise InvalidInput(f"A time must be a number of seconds since the epoch, not {value!r}.")


class Replays(Protocol):
    """Runs recorded episodes again, to try lessons on them."""

    async def episode(self, id: str) -> Episode:
        """The recorded episode. Raises `NotFound`."""
        ...

    def why_not(self, episode: Episode) -> str:
        """Why this episode may not be run again; "" if it may, because all its effects stay in the sandbox."""
        ...

    async def draw(self, episode: Episode, recall: Recall, number: int) -> Episode:
        """Runs the first try of this episode again with this recall, without recording it.

        number: The number of the draw, from 0. Draws with the same number have the same seed. Raises `ModelError` and
        `InvalidInput`.
        """
        ...


T = TypeVar("T")
C = TypeVar("C", Claim, "Claim | None")

NO_MODEL = "No model was named for the bank: set one in [memory], or answer the question yourself and commit."

ACCOUNTS = 100
"""How many accounts of a project are stored, the newest."""
LEASE = 60.0
"""Seconds for which work is claimed. The claim is renewed while the work is done."""

_returning: set[asyncio.Task[None]] = set()
"""Tasks that give claims back. Without this reference they could be collected before they end."""


@dataclass(frozen=True)
class Ports:
    """The parts of a bank.

    Attributes:
        agent_id: the agent that the lessons belong to. None reads those of all agents, and writes for the unnamed one.
        owner: the name under which this process claims work.
        strategy: the name of the retrieval strategy.
        project: the current project; "" if unknown.
        replays: runs recorded episodes again; None if they cannot be run.
    """

    memory: Memory
    agent_id: str | None
    vectors: Vectors
    retrieval: Retrieval
    deduplication: Deduplication
    merging: Merging
    model: Model | None
    prompts: Prompts
    settings: Settings
    owner: str
    strategy: str = ""
    project: str = ""
    replays: Replays | None = None

    @property
    def writes(self) -> str:
        """The agent that new lessons belong to."""
        return self.agent_id or ""

    async def claimed(self, claiming: Coroutine[Any, Any, tuple[Queued, C]]) -> tuple[Queued, C]:
        """The work that a call of the queue claims. If the caller is cancelled meanwhile, the claim is given back."""
        task = asyncio.ensure_future(claiming)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as error:
            _returning.add(back := asyncio.create_task(self._return(task, error)))
            back.add_done_callback(_returning.discard)
            raise

    async def _return(self, task: asyncio.Future[tuple[Queued, C]], error: BaseException) -> None:
        with suppress(MulliganError):  # it was not claimed at all
            _, claim = await task
            if claim is not None:
                await self.given_back(claim, error)

    async def given_back(self, claim: Claim, error: BaseException) -> None:
        """Makes the work wait again, for another answer or another try."""
        with suppress(StoreError):  # the claim was lost or settled, or the store is what failed
            await self.memory.queue.waits(claim, str(error) or "it was stopped")

    async def held(self, claim: Claim, do: Callable[[], Awaitable[T]]) -> T:
        """Runs `do`, and renews the claim meanwhile. If the claim is lost, the write that settles the work fails."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(LEASE / 3)
                await self.memory.queue.renew(claim, LEASE)

        renewing = asyncio.create_task(renew())
        try:
            return await do()
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
