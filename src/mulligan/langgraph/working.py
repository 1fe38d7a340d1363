"""What a node works with: the state of the graph, its episode, a journal for its effects, a meter, and events.

The nodes drive core's state machine; the graph owns the order. The graph's state holds the record so far. The store may
know more: after a node that was killed when it had recorded its event, or in a run from an old checkpoint. Then effects
come from the journal, and events are not recorded twice.

A run that goes on otherwise than it was recorded (from an old checkpoint with the state edited, or with another prompt
or model after a crash) becomes an episode of its own, `forked_from` the old one, which stays as it is: design/015.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeVar, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.errors import GraphBubbleUp
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict  # pydantic reads that of typing from Python 3.12 on

from mulligan.plugins import (
    Episode,
    InvalidInput,
    Journal,
    JournalError,
    Json,
    LeaseLost,
    NotFound,
    OutOfOrder,
    Stop,
    StoreError,
    Trial,
    Usage,
)
from mulligan.running import (
    Entry,
    Event,
    Ledger,
    Meter,
    NoJournal,
    Stopped,
    StopReason,
    Store,
    StoredJournal,
    UnharmedJournal,
    advance,
    blocking,
    event_from_json,
    from_json,
    is_move,
    is_resting,
    kept_both_ways,
    portal,
    rest,
    scope,
    to_json,
    warn_once,
    with_quality,
)

M = TypeVar("M", bound=BaseMessage)

DRAFT, EXECUTE_TOOL, REVISE = "draft", "execute_tool", "revise"


class ReflexionResult(TypedDict):
    """The result of a question.

    Attributes:
        answer, tool_result: What was executed last (of a run that ended unsure, the best), and the tool's message as
            text; None if nothing was executed. A run that ended absent has no tool_result.
        score: The score of the answer, 0 to 10; higher is better. None: it has no score.
        solved: Whether the answer was good enough.
        stop, detail: Why the run ended.
        reflections: The critiques, oldest first.
        steps: The number of drafts and revisions.
        run: The id for `mulligan runs show`.
        usage: {"input_tokens", "output_tokens", "calls", "cost"}; a cost of None is unknown.
    """

    answer: str | None
    tool_result: str | None
    score: float | None
    solved: bool
    stop: StopReason | None
    detail: str
    reflections: list[str]
    steps: int
    run: str
    usage: Json


class ReflexionInput(TypedDict):
    """The input. The newest human message is the question."""

    messages: Annotated[list[AnyMessage], add_messages]


class ReflexionOutput(TypedDict):
    """The output: all messages with the drafts, tool messages and revisions, and the result."""

    messages: Annotated[list[AnyMessage], add_messages]
    reflexion: ReflexionResult | None


class Record(TypedDict):
    """An episode so far; `episode_of` turns it into an object. It is JSON, which any checkpointer can keep, unless
    nothing is recorded and no thread is named: then the episode and its events are objects.

    Attributes:
        begun: The episode at its beginning.
        events: What happened since.
        question: The id of the message with the question.
        steps: The number of drafts and revisions so far.
        next: The next node, or END.
        spent: Usage and seconds that belong to the next event.
    """

    begun: Any
    events: Sequence[Any]
    question: str
    steps: int
    next: str
    spent: Json


def grown(record: Record, writes: Sequence[Any]) -> Record:
    """Apply the writes of nodes to a record. A write with "begun" replaces it; the events of others are appended."""
    for write in writes:
        events = write["events"] if "begun" in write else [*record["events"], *write["events"]]
        record = cast(Record, {**record, **write, "events": events})
    return record


class ReflexionState(TypedDict):
    """The state of the graph.

    Attributes:
        messages: The question, then the draft, the tool's message, the revision, the tool's message, ….
        record: The episode so far. A checkpoint holds what its node added to it.
        reflexion: The result; None until the run ends.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    record: Annotated[Record, DeltaChannel(grown)]
    reflexion: ReflexionResult | None


@dataclass(frozen=True)
class Reading:
    """The contents of a draft or a revision: the answer to execute, the critique of the previous answer, and its score,
    0 to 10; higher is better (None: no score)."""

    answer: str
    reflection: str = ""
    score: float | None = None

    def passes(self, good_score: float) -> bool | None:
        """Whether the score is good enough; None without one."""
        return None if self.score is None else self.score >= good_score


def since_question(messages: Sequence[BaseMessage], question: str | None = None) -> list[BaseMessage]:
    """Return the question and what followed it: the message with this id, or the newest human message.

    Raises `InvalidInput` if there is no question.
    """
    for n in range(len(messages) - 1, -1, -1):
        if question and messages[n].id == question:
            return list(messages[n:])
    for n in range(len(messages) - 1, -1, -1):
        if isinstance(messages[n], HumanMessage):
            return list(messages[n:])
    raise InvalidInput('There is no question. Start with {"messages": [("user", "…")]}.')


def newest(messages: Sequence[BaseMessage], kind: type[M]) -> M:
    """Return the newest message of this kind. Raises `InvalidInput` if there is none."""
    if (message := last(messages, kind)) is not None:
        return message
    raise InvalidInput(f"The state's messages lack the {kind.__name__} that this node needs. It was removed.")


def last(messages: Sequence[BaseMessage], kind: type[M]) -> M | None:
    """Return the newest message of this kind; None if there is none."""
    return next((message for message in reversed(messages) if isinstance(message, kind)), None)


def answered(proposal: AIMessage, content: Any, status: Any) -> ToolMessage:
    """Return a tool message that answers the first call of a draft or a revision."""
    call = proposal.tool_calls[0] if proposal.tool_calls else {"id": "", "name": None}
    return ToolMessage(content, tool_call_id=call["id"] or "", name=call["name"], status=status)


def text_of(message: ToolMessage | AIMessage) -> str:
    """Return the text of a message; content without text as JSON."""
    if isinstance(message.content, str):
        return message.content
    return message.text or json.dumps(message.content, ensure_ascii=False, default=str)


def answer_of(episode: Episode) -> Trial | None:
    """Return the trial whose answer counts: the newest, but the best of an episode that ended unsure."""
    if episode.stop is not None and episode.stop.reason == "unsure":
        return episode.best
    return episode.trials[-1] if episode.trials else None


def message_of(episode: Episode, messages: Sequence[BaseMessage]) -> ToolMessage | None:
    """Return the tool message of the answer that counts; None where no value is handed out, as there is none."""
    tools, trial = [message for message in messages if isinstance(message, ToolMessage)], answer_of(episode)
    if trial is None or (episode.stop is not None and episode.stop.reason == "absent"):
        return None
    return tools[trial.number - 1] if trial.number <= len(tools) else last(messages, ToolMessage)


def result_of(episode: Episode, steps: int, tool: ToolMessage | None) -> ReflexionResult:
    """Return the result of an episode that has ended. tool: the tool message of the answer that counts."""
    trial, stop, used = answer_of(episode), episode.stop, episode.usage
    return {
        "answer": trial.attempt.output if trial else None,
        "tool_result": None if tool is None else text_of(tool),
        "score": trial.feedback.score if trial and trial.feedback else None,
        "solved": episode.solved,
        "stop": stop.reason if stop else None,
        "detail": stop.detail if stop else "",
        "reflections": [reflection.text for reflection in episode.reflections],
        "steps": steps,
        "run": episode.run,
        "usage": cast(Any, {name: getattr(used, name) for name in ("input_tokens", "output_tokens", "calls", "cost")}),
    }


GOOD_SCORE = 7.0
"""The default score, of 10, from which an answer is good enough."""


def check_limits(max_steps: int, good_score: float) -> None:
    """Raise `InvalidInput` unless max_steps is a whole number and good_score is a score."""
    if isinstance(max_steps, bool) or not isinstance(max_steps, int):
        raise InvalidInput(f"max_steps must be a whole number, not {max_steps!r}. It limits drafts and revisions.")
    if isinstance(good_score, bool) or not isinstance(good_score, int | float) or not 0 <= good_score <= 10:
        raise InvalidInput(f"good_score must be a number from 0 to 10, not {good_score!r}.")


LEASE_SECONDS = 60.0
REMEMBERED = 256
"""Episodes whose record is held as an object beside its JSON."""

log = logging.getLogger("mulligan.langgraph")


@dataclass
class Work:
    """One node's work. `episode` grows with `keep`; begun, events, question, steps and next are what the graph's state
    holds of it: see `state.Record`.

    entry: what the store holds of the episode; None: nothing is recorded. kept: its events, without pauses.
    """

    episode: Episode
    begun: Any
    events: Sequence[Any]
    question: str
    steps: int
    next: str
    journal: Journal = field(default_factory=NoJournal)
    meter: Meter = field(default_factory=Meter)
    entry: Entry | None = None
    kept: list[Event] = field(default_factory=list[Event])
    began: float = field(default_factory=time.monotonic)
    recording: Recording | None = None
    waits: Future[Any] | None = None
    """What a thread of the node waits for, to be given up with the node."""
    written: tuple[Any, int] = (None, 0)
    """What of it the graph's state holds already: the beginning, and how many events."""
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that does what is asynchronous: the node's, or, in synchronous code, the portal."""
        return self._loop or portal.loop

    @property
    def record(self) -> Record:
        """As the graph's state holds it: JSON, which any checkpointer can keep. What no event has counted yet goes on
        to the next node: the draft's call belongs to the trial that it is executed in."""
        spent = {"usage": to_json(self.meter.usage), "seconds": self.lap()} if self.meter.usage.calls else None
        return {
            "begun": self.begun,
            "events": self.events,
            "question": self.question,
            "steps": self.steps,
            "next": self.next,
            "spent": spent,
        }

    def lacking(self, record: Record) -> Any:
        """What the graph's state lacks of this record: all of it where it begins here, as in a fork."""
        begun, events = self.written
        if begun is not self.begun:
            return record
        parts: dict[str, Any] = {"steps": record["steps"], "next": record["next"], "spent": record["spent"]}
        return {**parts, "events": record["events"][events:]}

    def lap(self) -> float:
        """Seconds since this was last asked, for the next event."""
        began, self.began = self.began, time.monotonic()
        return self.began - began

    async def keep(self, event: Event) -> None:
        """Add the event to the episode, and record it unless the store holds it already.

        Raises:
            OutOfOrder: the episode was waiting for something else.
            StoreError: it could not be recorded.
        """
        known = self.kept[len(self.events)] if len(self.events) < len(self.kept) else None
        if known is not None and replace(known, seconds=0.0) != replace(event, seconds=0.0):
            known = None
            assert self.recording, "what was kept came from a store"
            await self.recording.fork(to_json(replace(event, seconds=0.0)))
        happened = known or (event if self.entry is None else with_quality(event, self.episode))
        self.episode = advance(self.episode, happened)
        if known is None:
            await self.write(happened)
        self.events = [*self.events, happened if isinstance(self.begun, Episode) else to_json(happened)]

    async def write(self, event: Event) -> None:
        """Write the event into the store alone: before the next step, or as the node ends. Where the node is killed
        before that, the journal gives the same event again."""
        if self.entry is not None:
            try:
                await self.entry.append(event, later=True)
            except StoreError as error:
                unrecorded(error)
                self.entry = None
                return
            if is_move(event):
                self.kept.append(event)

    def spent(self) -> Usage:
        """What was used since this was last asked."""
        used, self.meter.usage = self.meter.usage, Usage()
        return used


here: ContextVar[Work | None] = ContextVar("mulligan_langgraph_work", default=None)
"""The work of the node that runs now, for the models and tools that it calls; None outside a node."""


class Recorder:
    """Keeps episodes in a store; without one nothing is recorded, and the same rules hold."""

    def __init__(self, store: Store | None) -> None:
        self._ledger = None if store is None else Ledger(kept_both_ways(store))
        self._known: dict[str, tuple[Record, Episode]] = {}
        """By id, the newest record of an episode that this process has made, and what it stands for."""
        self._lock = threading.Lock()
        self._name = f"recorder {id(self):x}"

    @property
    def records(self) -> bool:
        return self._ledger is not None

    async def begin(self, episode: Episode, record: Record, files: Mapping[str, str]) -> None:
        """Creates the episode in the store. record: its beginning, as the graph's state holds it."""
        if self._ledger is not None and not is_resting(self._name):
            began = time.monotonic()
            try:
                await self._ledger.begin(episode, files)
            except StoreError as error:
                rest(self._name, time.monotonic() - began)
                if await self.stored(episode.id) is not None:
                    raise  # another run of the thread was faster
                unrecorded(error)
        self._remember(record, episode)

    async def stored(self, id: str) -> Json:
        """The episode as JSON, as it was begun, without what happened since; None where there is none."""
        if self._ledger is None or is_resting(self._name):
            return None
        self._known.pop(id, None)
        try:
            episode = await self._ledger.store.load(id)
        except NotFound:
            return None
        except StoreError as error:
            unrecorded(error)
            return None
        begun = replace(episode, trials=(), recall=None, stop=None, seconds=0.0, lost=Usage())
        return to_json(begun)

    def episode(self, record: Record) -> Episode:
        begun: Any = record["begun"]
        known = self._known.get(begun.id if isinstance(begun, Episode) else begun["id"])
        return known[1] if known and _same(known[0], record) else episode_of(record)

    def update(self, work: Work) -> Any:
        """What this work adds to the record in the graph's state; what that stands for is remembered beside it."""
        record = work.record
        if work.episode.stop is None:
            self._remember(record, work.episode)
        else:
            self._known.pop(work.episode.id, None)
        return work.lacking(record)

    def _remember(self, record: Record, episode: Episode) -> None:
        with self._lock:
            self._known.pop(episode.id, None)
            self._known[episode.id] = (record, episode)
            while len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]

    def work(self, record: Record, *names: str) -> AbstractAsyncContextManager[Work]:
        """The work of one node; what it records is keyed below these names, such as "trial.1", "act".

        A node that is cut short leaves the episode stopped, resumably; a node that waits for a person does not.
        Raises `LeaseLost` while somebody else works on the episode.
        """
        work = Work(
            self.episode(record), record["begun"], record["events"], record["question"], record["steps"], record["next"]
        )
        if record["next"] != DRAFT:
            work.written = record["begun"], len(record["events"])
        if spent := record["spent"]:
            work.meter.add(from_json(Usage, spent["usage"]))
            work.began -= spent["seconds"]
        if not blocking.get():
            work._loop = asyncio.get_running_loop()  # pyright: ignore[reportPrivateUsage]
        if self._ledger is None or is_resting(self._name):
            return _AtWork(work)
        return self._recorded(self._ledger, work, names)

    @asynccontextmanager
    async def _recorded(self, ledger: Ledger, work: Work, names: Sequence[str]) -> AsyncGenerator[Work]:
        async with _AtWork(work), AsyncExitStack() as stack:
            work.recording = Recording(ledger, work, stack)
            began = time.monotonic()
            try:
                await work.recording.open()
            except StoreError as error:
                rest(self._name, time.monotonic() - began)
                unrecorded(error)
            try:
                with scope(*names):
                    yield work
            except (GraphBubbleUp, StoreError, JournalError, GeneratorExit):
                raise
            except BaseException as error:
                cut = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
                where = " of ".join(reversed(names))
                said = f"during {where}" if cut else f"{where}: {type(error).__name__}: {error}"
                with suppress(StoreError, OutOfOrder):  # it was lost, and is somebody else's; or it is over
                    await work.write(Stopped(Stop("interrupted" if cut else "error", said), work.spent()))
                raise


class Recording:
    """What connects one node's work to the store: the entry that it holds, or that of a fork that it goes on in."""

    def __init__(self, ledger: Ledger, work: Work, stack: AsyncExitStack) -> None:
        self._ledger, self._work, self._stack = ledger, work, stack

    async def open(self) -> None:
        entry = await self._hold()
        self._steps = StoredJournal(entry, diverge=self._diverge)
        self._work.journal = UnharmedJournal(self._steps, unrecorded)

    async def _hold(self) -> Entry:
        """Hold the work's episode, and give the store what it lacks of the graph's state."""
        work, ledger = self._work, self._ledger
        try:
            entry = await self._stack.enter_async_context(_Held(ledger.hold(work.episode.id, seconds=LEASE_SECONDS)))
        except NotFound:  # the checkpoint came from another machine, or the store was emptied
            await ledger.begin(from_json(Episode, work.begun))
            entry = await self._stack.enter_async_context(_Held(ledger.hold(work.episode.id, seconds=LEASE_SECONDS)))
        work.entry, work.kept = (
            entry,
            [event for event in entry.events if is_move(event)],
        )
        for event in work.events[len(work.kept) :]:
            await work.write(event_from_json(event))
        if len(work.events) == len(work.kept):
            await entry.resume()
        return entry

    async def fork(self, why: Json) -> None:
        """Go on in a fork of the episode, with the steps that this work has taken. why: how the two part."""
        await self._steps.move(await self._diverge(why))

    async def _diverge(self, why: Json) -> Entry:
        work = self._work
        assert work.entry is not None, "only what is recorded can part"
        old = work.episode
        begun = await self._ledger.branch(work.entry, from_json(Episode, work.begun), [old.id, len(work.events), why])
        work.begun = to_json(begun)
        work.episode = replace(old, id=begun.id, run=begun.run, forked_from=old.id)
        return await self._hold()


class _Held:
    """Holds an episode. A store that cannot take the lease back ends no node: the lease runs out."""

    def __init__(self, held: AbstractAsyncContextManager[Entry]) -> None:
        self._held = held

    async def __aenter__(self) -> Entry:
        return await self._held.__aenter__()

    async def __aexit__(self, *error: Any) -> bool | None:
        try:
            return await self._held.__aexit__(*error)
        except StoreError as raised:
            if raised is not error[1]:
                unrecorded(raised)
            return None


def unrecorded(error: Exception) -> None:
    """Warns once that a run goes on without its record. Raises the error if it says that somebody else works on it, or
    that it is no failure of the store."""
    if isinstance(error, LeaseLost) or not isinstance(error, StoreError):
        raise error
    warn_once(type(error).__name__, "a run of a graph is not recorded, and continues", str(error))


class _AtWork:
    """While it is open, the work is that of `here`."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def __aenter__(self) -> Work:
        self._token = here.set(self._work)
        return self._work

    async def __aexit__(self, *_: object) -> None:
        here.reset(self._token)
        if self._work.waits is not None:
            self._work.waits.cancel()


def _same(one: Record, other: Record) -> bool:
    """Whether both are the same record of this process, as far as it has come."""
    events, others = one["events"], other["events"]
    if one["begun"] is not other["begun"] or len(events) != len(others):
        return False
    return not events or events[-1] is others[-1]


def episode_of(record: Record) -> Episode:
    """The episode that a graph's state holds as `record`, with its trials. Raises `InvalidInput`, `OutOfOrder`."""
    begun: Any = record["begun"]
    episode = begun if isinstance(begun, Episode) else from_json(Episode, begun)
    for event in record["events"]:
        episode = advance(episode, event_from_json(event) if isinstance(event, dict) else event)
    return episode
