"""One call of a function that is retried: an episode whose actor is the function."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from mulligan.app.compose import Drive
from mulligan.app.config import Config, load
from mulligan.app.memory import open_bank
from mulligan.app.teaching import teach, tell_outcome
from mulligan.core.codec import digest
from mulligan.core.episode import RESUMABLE, Event, advance
from mulligan.core.errors import InvalidInput, LeaseLost, NotSolved, StoreError
from mulligan.core.loop import Meter, Record, Roles, drive
from mulligan.core.operations import operation
from mulligan.core.protocols import Bank, Journal, Store
from mulligan.core.records import (
    Artifact,
    Attempt,
    Episode,
    Feedback,
    Finding,
    Json,
    Outcome,
    Past,
    Reflection,
    Task,
    Trial,
)
from mulligan.functions.bugs import Bugs
from mulligan.functions.identity import identity
from mulligan.functions.judging import BUGS, feedback_of, judge_arguments, judge_name, objection, shown
from mulligan.functions.manner import Manner, composed, takes_argument
from mulligan.functions.notes import notes_of
from mulligan.functions.results import UNREADABLE, attempt_of, plain, value_of
from mulligan.recording.bridge import blocking, keeper, portal, settled
from mulligan.recording.journal import NoJournal, StoredJournal
from mulligan.recording.ledger import Entry, Ledger, with_quality
from mulligan.store import open_store
from mulligan.strategies.evidence import Evidence
from mulligan.strategies.evidence_and_reflexion import EvidenceAndReflexion
from mulligan.text.evidence import evidence_of
from mulligan.text.plain import one_line
from mulligan.text.secrets import mask, mask_json

T = TypeVar("T")
log = logging.getLogger("mulligan")

NEWEST = 5
"""Records of a key among which one that was cut off is looked for."""


@dataclass(frozen=True)
class Result(Generic[T]):
    """What a call gave. episode: its record; `episode.solved` says whether the judge had nothing to object."""

    value: T
    episode: Episode


class Call:
    """One call. It is the actor, and where they are functions the evaluator and the reflector, of its episode.

    Attributes:
        episode: as far as it has come; None before it began.
    """

    expects: Literal["text"] = "text"

    def __init__(
        self, manner: Manner, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._manner, self._function = manner, function
        try:
            self._given = manner.asked.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{manner.name}(): {error}") from None
        self._given.apply_defaults()
        if manner.into and not isinstance(text := self._given.arguments[manner.into], str):
            raise InvalidInput(
                f"{manner.name}() got a {type(text).__name__} for {manner.into!r}, whose text gets the notes appended "
                f"(notes={manner.into!r}): give a text, or add a parameter for the notes (notes: mulligan.Notes)."
            )
        self._values: dict[int, Any] = {}
        self._places = tuple[Artifact, ...]()
        self._raised: Exception | None = None
        self._fatal: BaseException | None = None
        self._bugs = Bugs()
        self.episode: Episode | None = None

    async def run(self) -> Result[Any]:
        """Raises `NotSolved`, and what the function or the judge raised that is no failed try."""
        manner, config = self._manner, load()
        store = (manner.store or shared_store(config.store)) if manner.record else None
        bank = shared_bank(manner.bank, config) if isinstance(manner.bank, str) else manner.bank
        if store is None:
            self.episode = self._begun(f"f{secrets.token_hex(6)}")
            await self._drive(bank, self._keep, NoJournal())
        else:
            await self._recorded(store, bank)
        assert self.episode is not None
        if bank is not None and self._fatal is None:
            tell = teach if isinstance(manner.bank, str) else tell_outcome
            await tell(_placed(bank, shared=isinstance(manner.bank, str)), self.episode, log.info)
        return self._result(self.episode)

    # --- the roles ----------------------------------------------------------------------------------------------

    async def act(self, episode: Episode, past: Past) -> Attempt:
        """One call of the function."""
        manner, number = self._manner, len(episode.trials) + 1
        notes = notes_of(episode, self._bugs.left_out(past))
        if number > 1 and manner.before_retry is not None:
            await self._fatally(manner.before_retry, *((notes,) if takes_argument(manner.before_retry) else ()))
        given = dict(self._given.arguments)
        if manner.into and notes:
            given[manner.into] = f"{given[manner.into]}\n\n{notes}"
        if manner.notes:
            given[manner.notes] = notes
        names = [name for name in manner.signature.parameters if name in given]
        bound = inspect.BoundArguments(manner.signature, {name: given[name] for name in names})  # pyright: ignore[reportArgumentType]
        try:
            value = await settled_value(self._function(*bound.args, **bound.kwargs))
        except InvalidInput as error:  # no further try can help
            self._fatal = error
            raise
        except manner.failures as error:
            self._raised = error
            unjudged = self._bugs.verdict(error, manner.name)
            return Attempt("", outcome=Outcome(halted=f"{type(error).__name__}: {error}", feedback=unjudged))
        except asyncio.CancelledError:  # the loop says why
            raise
        except BaseException as error:
            self._fatal = error
            raise
        self._values[number] = value
        attempt = manner.reads.attempt(value) if manner.reads else attempt_of(value, manner.returns)
        return replace(attempt, artifacts=(*attempt.artifacts, *self._places))

    async def evaluate(self, episode: Episode) -> Feedback:
        """The judge's verdict on the newest try."""
        trial, judge = episode.trials[-1], self._manner.judge
        answer = self._value(trial)
        if self._manner.reads:
            answer = self._manner.reads.answer(answer)
        given, named = judge_arguments(judge, self._given.arguments, self._task.prompt, answer)
        try:
            verdict = await settled_value(judge(*given, **named))
        except BUGS as error:
            self._fatal = error
            raise
        except Exception as error:
            return self._bugs.verdict(error, f"the judge {judge_name(judge)}") or objection(error, judge, answer)
        try:
            return feedback_of(verdict, judge, answer, self._manner.threshold)
        except InvalidInput as error:
            self._fatal = error
            raise

    async def reflect(self, episode: Episode) -> Reflection | None:
        """The lesson that the user's own function writes."""
        said = await self._fatally(self._manner.reflect, episode)
        return Reflection(said) if isinstance(said, str) else said

    async def _fatally(self, function: Callable[..., Any], *given: Any) -> Any:
        """What a function of the user's returns; an error of it ends the call."""
        try:
            return await settled_value(function(*given))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._fatal = error
            raise

    # --- the episode --------------------------------------------------------------------------------------------

    @cached_property
    def _task(self) -> Task:
        """The task as the function was given it: the prompt, and the other arguments that have a JSON form."""
        given, named = self._given.arguments, self._manner.task
        if callable(named):
            said = named(*self._given.args, **self._given.kwargs).strip()
            return Task(said or self._manner.name)
        texts = [name for name, value in given.items() if isinstance(value, str)]
        name = named or next(iter(texts), None)
        inputs: dict[str, Json] = {}
        for other, value in given.items():
            if other != name and not (isinstance(value, (tuple, dict)) and not value):
                with suppress(InvalidInput):
                    inputs[other] = plain(value)
        prompt = str(given[name]).strip() if name is not None else ""
        return Task(prompt or f"{self._manner.name}: {shown(inputs)}", inputs)

    @property
    def _key(self) -> str | None:
        """What is the same in each call that is equal to this one; None if nothing says so."""
        manner = self._manner
        if manner.key is not None:
            same: list[Json] = [
                manner.key(*self._given.args, **self._given.kwargs) if callable(manner.key) else manner.key
            ]
        elif manner.reads is not None:  # what a framework returns is not read back
            return None
        else:
            try:
                judge = manner.evaluator or manner.judge
                same = [identity(one) for one in (self._function, judge, dict(self._given.arguments))]
            except InvalidInput as error:
                log.debug("%s has no key, so that a call that is cut off begins anew: %s", manner.name, error)
                return None
        return digest([manner.name, *same])[:12]

    def _begun(self, run: str) -> Episode:
        """The episode at its beginning; what it keeps of the arguments is masked."""
        task = Task(mask(self._task.prompt), mask_json(dict(self._task.inputs)))
        began = round(time.time(), 3)
        id = f"{run}.{secrets.token_hex(3)}"
        return Episode(id, task, run, plan=self._manner.plan, head=self._manner.head, started=began)

    async def _keep(self, event: Event) -> Episode:
        """Records nothing outside this process."""
        assert self.episode is not None
        self.episode = advance(self.episode, with_quality(event, self.episode))
        return self.episode

    async def _recorded(self, store: Store, bank: Bank | None) -> None:
        """Drives an episode of the store: one of this key that was cut off, else a new one."""
        loop = keeper.loop if blocking.get() else None
        try:
            held, entry = await settled(self._taken(store, loop), keeper)
        except StoreError as error:
            raise StoreError(f"{error} With record=False a retried function needs no store.") from error
        self.episode = entry.episode

        async def append(event: Event) -> Episode:
            self.episode = await settled(entry.append(event), keeper)
            return self.episode

        try:
            await self._drive(bank, append, StoredJournal(entry))
        except BaseException as error:
            if not await settled(held.__aexit__(type(error), error, error.__traceback__), keeper):
                raise
        else:
            await settled(held.__aexit__(None, None, None), keeper)

    async def _taken(
        self, store: Store, loop: asyncio.AbstractEventLoop | None
    ) -> tuple[AbstractAsyncContextManager[Entry], Entry]:
        """The episode to drive, held; it is to be left as a context."""
        key, ledger = self._key, Ledger(store)
        run = f"f{key or secrets.token_hex(6)}"
        for found in await store.list(run=run, limit=NEWEST) if key else ():
            if self._goes_on(found):
                held = ledger.hold(found.id, loop=loop)
                try:
                    entry = await held.__aenter__()
                except LeaseLost:  # an equal call is at it
                    continue
                if self._goes_on(entry.episode):
                    await entry.resume()
                    return held, entry
                await held.__aexit__(None, None, None)  # an equal call has ended it since
        episode = self._begun(run)
        await ledger.begin(episode)
        held = ledger.hold(episode.id, loop=loop)
        return held, await held.__aenter__()

    def _goes_on(self, episode: Episode) -> bool:
        """Whether a call was cut off after a try, and the results of its tries can be read back."""
        cut_off = episode.trials and (episode.stop is None or episode.stop.reason in RESUMABLE)
        made = (value_of(trial.attempt, self._manner.returns) for trial in episode.trials if not halted(trial))
        return bool(cut_off) and all(value is not UNREADABLE for value in made)

    async def _drive(self, bank: Bank | None, record: Record, journal: Journal) -> None:
        assert self.episode is not None
        meter, limits = Meter(), self._manner.bounds
        if limits.seconds is not None:  # a call that continues one that was cut off has the whole time again
            limits = replace(limits, seconds=limits.seconds + self.episode.seconds)
        roles = self._roles(journal, meter)
        if bank is not None:
            roles = replace(roles, bank=_placed(bank, shared=isinstance(self._manner.bank, str)))
        with operation("episode", facts={"episode": self.episode.id, "agent": self.episode.agent}) as done:
            over = await drive(self.episode, roles, limits, record, meter)
            done.facts |= {"stop": over.stop.reason if over.stop else None, "trials": len(over.trials)}

    def _roles(self, journal: Journal, meter: Meter) -> Roles:
        manner = self._manner
        if not manner.composes:
            reflector = None if manner.reflect is None else self
            strategy = Evidence() if reflector is None else EvidenceAndReflexion()
            return Roles(self, _Judge(self), reflector, strategy)
        assert self.episode is not None
        objects: dict[str, Any] = {"actor": self}
        if manner.judged_by_function:
            objects["evaluator"] = self
        elif manner.evaluator is None:
            objects["evaluator"] = manner.judge
        if manner.reflects_by_function:
            objects["reflector"] = self
        made = composed(manner, objects, Drive(journal, meter, self.episode.usage)).roles
        if made.evaluator.expects == "workspace":  # it is judged by the files that the function leaves where it runs
            self._places = (Artifact("folder", "", os.getcwd()),)
        evaluator = self if manner.judged_by_function else _placed(made.evaluator)
        reflector = self if made.reflector is self else made.reflector and _placed(made.reflector)
        return replace(made, evaluator=_Judge(evaluator), reflector=reflector)

    # --- the result ---------------------------------------------------------------------------------------------

    def _value(self, trial: Trial) -> Any:
        """The function's result in this try."""
        if trial.number not in self._values:
            self._values[trial.number] = value_of(trial.attempt, self._manner.returns)
        return self._values[trial.number]

    def _given_of(self, trial: Trial) -> Any:
        """What the caller gets of this try."""
        give = getattr(self._manner.reads, "given", None)
        return give(self._value(trial)) if give else self._value(trial)

    def _result(self, episode: Episode) -> Result[Any]:
        stop = episode.stop
        assert stop is not None
        if self._fatal is not None:
            raise self._fatal
        returned = [trial for trial in episode.trials if not halted(trial)]
        best = episode.best if episode.best in returned else next(reversed(returned), None)
        value = None if best is None else self._given_of(best)
        if stop.reason == "error":
            raise NotSolved(stop.detail, episode, value)
        if episode.solved and best is not None:
            return Result(value, episode)
        newest = episode.trials[-1].feedback if episode.trials else None
        why = f"{self._manner.name} was not solved in {len(episode.trials)} tries ({stop.reason})"
        said = f"{why}: {one_line(newest.text, 500)}" if newest and newest.text else why
        if self._manner.unsolved == "raise" or best is None:
            raise NotSolved(said, episode, value) from self._raised
        log.warning("%s; the best result is returned", said)
        return Result(value, episode)


class _Judge:
    """The evaluator, for tries that returned something. An exception of the function is its own verdict."""

    expects: Literal["text"] = "text"

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def evaluate(self, episode: Episode) -> Feedback:
        outcome = episode.trials[-1].attempt.outcome
        if why := halted(episode.trials[-1]):
            unjudged = outcome.feedback if outcome else None
            return unjudged or Feedback(False, why, 0.0, "exception", evidence=evidence_of([Finding(got=why)]))
        return await self._inner.evaluate(episode)


def halted(trial: Trial) -> str:
    """The exception that ended this try; "" if the function returned."""
    return (trial.attempt.outcome and trial.attempt.outcome.halted) or ""


async def settled_value(result: Any) -> Any:
    """The result of a function of the user's, awaited if it has to be."""
    return await settled(result) if inspect.isawaitable(result) else result


# --- what calls share ----------------------------------------------------------------------------------------------

_shared: dict[tuple[str, ...], Any] = {}
_sharing = threading.Lock()


def shared_store(address: str | Path) -> Store:
    """The store at this address, which stays open while the program runs."""
    with _sharing:
        name = ("store", str(address))
        return _shared.get(name) or _opened(name, open_store(address))


def shared_bank(agent_id: str, config: Config) -> Bank:
    """The bank of this agent in the configured store; it stays open while the program runs."""
    store = shared_store(config.store)
    with _sharing:
        name = ("bank", str(config.store), agent_id)
        return _shared.get(name) or _opened(name, open_bank(agent_id, store=store.memory, config=config))


def _opened(name: tuple[str, ...], what: T) -> T:
    _shared[name] = what
    return what


@atexit.register
def close_shared() -> None:
    """Closes the stores and banks that calls share. The next call opens them again."""
    with _sharing:
        opened = sorted(_shared.items())  # banks before the stores that they are in
        _shared.clear()
    for (kind, *_), what in opened:
        with suppress(Exception):  # the program ends, and what is kept was kept
            (portal if kind == "bank" else keeper).run(what.close())
    for one in (portal, keeper):
        one.close()


class _Placed:
    """Methods of an object, each run on the portal: for what belongs to one event loop, and for synchronous code."""

    def __init__(self, inner: Any, always: bool) -> None:
        self._inner, self._always = inner, always

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*given: Any, **named: Any) -> Any:
            work = found(*given, **named)
            return await (portal.within(work) if self._always else settled(work))

        return call


def _placed(inner: Any, *, shared: bool = False) -> Any:
    """The object for callers of both kinds. shared: by event loops, so that it always runs on the portal's."""
    return _Placed(inner, shared)
