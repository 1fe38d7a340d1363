"""One call of a function that is retried: an episode whose actor is the function."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, cast

from mulligan.app.compose import Drive, object_name
from mulligan.app.config import load
from mulligan.app.teaching import teach, tell_outcome
from mulligan.core.codec import digest
from mulligan.core.errors import (
    BadAnswer,
    InvalidInput,
    ModelError,
    NotSolved,
    OverBudget,
    error_text,
)
from mulligan.core.failures import is_transient, seconds_to_wait
from mulligan.core.loop import Meter, Roles, drive
from mulligan.core.operations import operation
from mulligan.core.optional import with_defaults
from mulligan.core.protocols import Bank, Journal, Store
from mulligan.core.records import (
    NO_REFLECTION,
    Artifact,
    Attempt,
    Episode,
    Feedback,
    Finding,
    Json,
    Outcome,
    Past,
    Recall,
    Reflection,
    Stop,
    Task,
    Trial,
)
from mulligan.evaluators._bugs import Bugs
from mulligan.evaluators._judging import BUGS, feedback_of, judge_arguments, judge_name, objection, returned, shown
from mulligan.functions.identity import identity
from mulligan.functions.manner import GivingReading, Manner, composed, takes_argument
from mulligan.functions.notes import notes_of
from mulligan.functions.record import CallRecord
from mulligan.functions.results import UNREADABLE, attempt_of, plain, value_of
from mulligan.functions.shared import Placed, shared_bank, shared_store
from mulligan.functions.streams import Inputs, going_back, twice
from mulligan.recording.bridge import pause, portal, settled
from mulligan.recording.outages import tolerated, warn_once
from mulligan.strategies.evidence import Evidence
from mulligan.strategies.evidence_and_reflexion import EvidenceAndReflexion
from mulligan.text.evidence import evidence_of
from mulligan.text.plain import one_line
from mulligan.text.secrets import mask, mask_json

T = TypeVar("T")
log = logging.getLogger("mulligan")


@dataclass(frozen=True)
class Result(Generic[T]):
    """What a call gave. episode: its record; `episode.solved` says whether the judge had nothing to object."""

    value: T
    episode: Episode


class Call:
    """One call. It is the actor, and where they are functions the evaluator and the reflector, of its episode."""

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
                f"{manner.name}() got a {type(text).__name__} for {manner.into!r}, to whose text the notes are "
                f"appended (notes={manner.into!r}): give a string, or add a parameter for the notes (notes: "
                "mulligan.Notes)."
            )
        self._inputs = Inputs(self._given.arguments)
        self._values, self._judged = dict[int, Any](), dict[int, Any]()
        self._seconds: float | None = None
        self._places = tuple[Artifact, ...]()
        self._raised: Exception | None = None
        self._pause: Exception | None = None
        self._fatal: BaseException | None = None
        self._bugs = Bugs()
        self._config = None
        try:
            self._config = load()
            name = str(self._config.store) if manner.options.store is None else object_name(manner.options.store)
        except Exception as error:  # raised again where it is needed
            name = str(error)
        self._record = CallRecord(
            name, self._store if manner.options.record else None, required=manner.options.record == "required"
        )

    @property
    def episode(self) -> Episode | None:
        """The record, as far as it has come; None before it began."""
        return self._record.episode

    async def run(self) -> Result[Any]:
        """Raises `NotSolved`, and what the function or the judge raised that is no failed try."""
        key = self._key if self._manner.options.record else None
        _ = self._task  # what the user's functions of the arguments raise is raised here
        bank = self._bank()
        try:
            await self._record.begin(key, self._begun, self._resumes)
            await self._drive(bank, self._record)
        except BaseException as error:
            await self._record.close(error)
            raise
        await self._record.close()
        assert self.episode is not None
        if bank is not None and self._fatal is None:
            await bank.tell(self.episode)
        return self._result(self.episode)

    def _bank(self) -> Forgiving | None:
        bank = self._manner.options.bank
        if isinstance(bank, str):
            return Forgiving(f"bank {bank}", lambda: shared_bank(bank, self._config or load()), teach, portal.within)
        return None if bank is None else Forgiving(object_name(bank), lambda: bank, tell_outcome, settled)

    def _store(self) -> Store:
        return self._manner.options.store or shared_store((self._config or load()).store)

    # --- the roles ----------------------------------------------------------------------------------------------

    async def act(self, episode: Episode, past: Past) -> Attempt:
        """One call of the function."""
        manner, number = self._manner, len(episode.trials) + 1
        notes = notes_of(episode, self._bugs.left_out(past))
        if number > 1:
            self._inputs.warn(manner.name)
            if manner.options.before_retry is not None:
                await self._fatally(
                    manner.options.before_retry, *((notes,) if takes_argument(manner.options.before_retry) else ())
                )
            await self._wait(episode)
        given = dict(self._given.arguments)
        if manner.into and notes:
            given[manner.into] = f"{given[manner.into]}\n\n{notes}"
        if manner.notes:
            given[manner.notes] = notes
        names = [name for name in manner.signature.parameters if name in given]
        bound = inspect.BoundArguments(manner.signature, {name: given[name] for name in names})  # pyright: ignore[reportArgumentType]
        outer = sys.exception()
        try:
            value = await settled_value(self._function(*bound.args, **bound.kwargs))
        except InvalidInput as error:  # no further try can help
            self._fatal = error
            raise
        except asyncio.CancelledError:  # the loop says why
            raise
        except BaseException as error:
            if not isinstance(error, Exception) or not self._is_failure(error):
                self._fatal = error
                raise
            self._raised = self._pause = error
            why = error_text(error, outer)
            again = is_transient(error)
            unjudged = Feedback(None, why, source="exception") if again else self._bugs.verdict(error, manner.name)
            return Attempt("", outcome=Outcome(halted=why, feedback=unjudged))
        attempt = self._attempt(value)
        self._values[number], self._judged[number] = self._copies(value)
        return replace(attempt, artifacts=(*attempt.artifacts, *self._places))

    def _copies(self, value: Any) -> tuple[Any, Any]:
        """The result for the caller and for the judge."""
        if not self._manner.judged_by_function or self._manner.judge is returned:
            return value, value
        try:
            return twice(value)
        except TypeError as kind:
            self._fatal = InvalidInput(
                f"{self._manner.name} returned {kind}, which can be read only once: the judge would use it up. Let "
                "the function return the whole result, such as a list or a string."
            )
            raise self._fatal from None

    def _is_failure(self, error: Exception) -> bool:
        """Whether the exception, or each one of a group, is a failed try."""
        kinds = self._manner.failures
        if isinstance(error, ExceptionGroup) and not isinstance(error, kinds):
            return error.split(kinds)[1] is None  # pyright: ignore[reportUnknownMemberType]
        return isinstance(error, kinds)

    def _attempt(self, value: Any) -> Attempt:
        """What the record keeps of a result. An error here is not the function's, and does not lose the result."""
        reads, returns = self._manner.options.reads, self._manner.returns
        try:
            return reads.attempt(value) if reads else attempt_of(value, returns)
        except Exception as error:
            name = f"{self._manner.name}, {type(value).__name__}"
            warn_once(name, f"a {type(value).__name__} is recorded without its contents", error_text(error))
            return Attempt(f"<{type(value).__name__}>")

    def _read(self, result: Any) -> Any:
        """What the judge is shown of a result; the result itself where it cannot be read."""
        try:
            return self._manner.options.reads.answer(result) if self._manner.options.reads else result
        except Exception as error:
            warn_once(self._manner.name, "the judge is shown a result as it is", error_text(error))
            return result

    async def _wait(self, episode: Episode) -> None:
        """Waits before the next try, where the one before raised. Raises `OverBudget` where the time is too short."""
        error, self._pause = self._pause, None
        if error is None:
            return
        seconds = seconds_to_wait(self._manner.options.wait, len(episode.trials), error)
        left = None if self._seconds is None else max(self._seconds - episode.seconds, 0.0)
        if left is not None and seconds >= left > 0:
            raise OverBudget(f"the next try must wait {seconds:.3g} seconds, but only {left:.3g} are left")
        if seconds:
            log.info("%s waits %.3g seconds before its next try", self._manner.name, seconds)
            await pause(seconds)

    async def evaluate(self, episode: Episode) -> Feedback:
        """The judge's verdict on the newest try."""
        trial, judge = episode.trials[-1], self._manner.judge
        result = self._judged[trial.number] if trial.number in self._judged else self._value(trial)
        answer = self._read(result)
        given, named = judge_arguments(judge, self._given.arguments, self._task.prompt, answer)
        back, outer = going_back(result), sys.exception()
        try:
            verdict = await settled_value(judge(*given, **named))
        except BUGS as error:
            self._fatal = error
            raise
        except Exception as error:
            self._pause = error if is_transient(error) else None
            bug = self._bugs.verdict(error, f"the judge {judge_name(judge)}")
            return bug or objection(error, judge, answer, outer)
        finally:
            back()
        try:
            return feedback_of(verdict, judge, answer, self._manner.options.threshold)
        except InvalidInput as error:
            self._fatal = error
            raise

    async def reflect(self, episode: Episode) -> Reflection | None:
        """The lesson that the user's own function writes."""
        said = await self._fatally(cast(Any, self._manner.options.reflect), episode)
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
        if manner.options.key is not None:
            named = (
                manner.options.key(*self._given.args, **self._given.kwargs)
                if callable(manner.options.key)
                else manner.options.key
            )
            same = [identity(named)]
        elif manner.options.reads is not None:  # what a framework returns is not read back
            return None
        else:
            try:
                judge = manner.evaluator or manner.judge
                same = [identity(one) for one in (self._function, judge, dict(self._given.arguments))]
            except InvalidInput as error:
                log.debug("%s has no key, so an interrupted call starts again: %s", manner.name, error)
                return None
        return digest([manner.name, *same])[:12]

    def _begun(self, run: str) -> Episode:
        """The episode at its beginning; what it keeps of the arguments is masked."""
        task = Task(mask(self._task.prompt), mask_json(dict(self._task.inputs)))
        began = round(time.time(), 3)
        id = f"{run}.{secrets.token_hex(3)}"
        return Episode(id, task, run, plan=self._manner.plan, head=self._manner.head, started=began)

    def _resumes(self, episode: Episode) -> bool:
        """Whether a call was cut off after a try, and the results of its tries can be read back."""
        made = (value_of(trial.attempt, self._manner.returns) for trial in episode.trials if not halted(trial))
        return bool(episode.trials) and not episode.over and all(value is not UNREADABLE for value in made)

    async def _drive(self, bank: Forgiving | None, record: CallRecord) -> None:
        assert self.episode is not None
        meter, limits = Meter(self.episode.usage), self._manner.bounds
        if limits.seconds is not None:  # a call that continues one that was cut off has the whole time again
            limits = replace(limits, seconds=limits.seconds + self.episode.seconds)
        self._seconds = limits.seconds
        roles = replace(self._roles(record.journal, meter), bank=cast(Bank, bank))
        with operation("episode", facts={"episode": self.episode.id, "agent": self.episode.agent}) as done:
            over = await drive(self.episode, roles, limits, record.append, meter)
            done.facts |= {"stop": over.stop.reason if over.stop else None, "trials": len(over.trials)}

    def _roles(self, journal: Journal, meter: Meter) -> Roles:
        manner = self._manner
        if not manner.composes:
            reflector = None if manner.options.reflect is None else self
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
        made = composed(manner, objects, Drive(journal, meter)).roles
        if made.evaluator.expects == "workspace":  # it is judged by the files that the function leaves where it runs
            self._places = (Artifact("folder", "", os.getcwd()),)
        evaluator = self if manner.judged_by_function else Placed(made.evaluator)
        reflector = self if made.reflector is self else made.reflector and _Reflector(Placed(made.reflector))
        return replace(made, evaluator=_Judge(evaluator), reflector=reflector)

    # --- the result ---------------------------------------------------------------------------------------------

    def _value(self, trial: Trial) -> Any:
        """The function's result in this try."""
        if trial.number not in self._values:
            self._values[trial.number] = value_of(trial.attempt, self._manner.returns)
        return self._values[trial.number]

    def _result(self, episode: Episode) -> Result[Any]:
        stop = episode.stop
        assert stop is not None
        if self._fatal is not None:
            raise self._fatal
        returned = [trial for trial in episode.trials if not halted(trial)]
        best = episode.best if episode.best in returned else next(reversed(returned), None)
        reading = with_defaults(self._manner.options.reads, GivingReading)
        value = None if best is None else reading.given(self._value(best))  # what the caller gets of this try
        if stop.reason == "error":
            raise NotSolved(stop.detail, episode, value)
        if episode.solved and best is not None:
            return Result(value, episode)
        newest = episode.trials[-1].feedback if episode.trials else None
        why = f"{self._manner.name} was not solved in {len(episode.trials)} tries ({_named(stop)})"
        said = f"{why}: {one_line(newest.text, 500)}" if newest and newest.text else why
        if self._manner.options.unsolved == "raise" or best is None:
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
        if outcome and outcome.halted:
            why = outcome.halted
            return outcome.feedback or Feedback(False, why, 0.0, "exception", evidence=evidence_of([Finding(got=why)]))
        return await self._inner.evaluate(episode)


class _Reflector:
    """A model that reflects. Where it cannot, the call goes on: the next try has the judge's words."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def reflect(self, episode: Episode) -> Reflection | None:
        try:
            return await self._inner.reflect(episode)
        except (ModelError, BadAnswer) as error:
            warn_once("reflect", "a lesson is not written; the call continues", str(error))
            return NO_REFLECTION


class Forgiving:
    """A bank that gives and learns nothing where it fails.

    Args:
        name: In warnings.
        open: Gives the bank.
        tell: Lets it learn from an episode that is over.
        run: Gives the result of what is asked of it, where it belongs.
    """

    def __init__(
        self,
        name: str,
        open: Callable[[], Bank],
        tell: Callable[..., Awaitable[None]],
        run: Callable[[Awaitable[Any]], Awaitable[Any]],
    ) -> None:
        self._name, self._open, self._tell, self._run = name, open, tell, run

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        async def recalled() -> Recall:
            return await self._run(self._open().recall(task, top_k=top_k))

        return await tolerated(self._name, "nothing is recalled; the call continues", recalled, Recall(""))

    async def tell(self, episode: Episode) -> None:
        async def told() -> None:
            await self._run(self._tell(self._open(), episode, log.info))

        await tolerated(self._name, "nothing is learned from a call", told, None)


def halted(trial: Trial) -> str:
    """The exception that ended this try; "" if the function returned."""
    return (trial.attempt.outcome and trial.attempt.outcome.halted) or ""


def _named(stop: Stop) -> str:
    """The reason of a stop, and of a limit what it was."""
    return stop.reason if stop.reason == "exhausted" or not stop.detail else f"{stop.reason}: {stop.detail}"


async def settled_value(result: Any) -> Any:
    """The result of a function of the user's, awaited if it has to be."""
    return await settled(result) if inspect.isawaitable(result) else result
