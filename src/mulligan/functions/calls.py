"""One call of a function that is retried: an episode whose actor is the function."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar, cast

from mulligan.app.compose import Drive, object_name
from mulligan.app.config import load
from mulligan.app.teaching import teach, tell_outcome
from mulligan.core.codec import digest
from mulligan.core.errors import (
    InvalidInput,
    NotSolved,
    OverBudget,
    error_text,
    text_of,
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
    Json,
    Outcome,
    Past,
    Reflection,
    Stop,
    Task,
    Trial,
)
from mulligan.evaluators._bugs import Bugs
from mulligan.evaluators._judging import BUGS, feedback_of, judge_arguments, judge_name, objection, returned, shown
from mulligan.functions.identity import identity
from mulligan.functions.notes import notes_of
from mulligan.functions.record import CallRecord
from mulligan.functions.results import UNREADABLE, attempt_of, plain, value_of
from mulligan.functions.roles import ResultJudge, TolerantBank, TolerantReflector
from mulligan.functions.settings import GivingReading, RetrySettings, composed, takes_argument
from mulligan.functions.shared import shared_bank, shared_store
from mulligan.functions.streams import Inputs, position_restorer, twice
from mulligan.recording.bridge import pause, portal
from mulligan.recording.outages import Outages
from mulligan.strategies.evidence import Evidence
from mulligan.strategies.evidence_and_reflexion import EvidenceAndReflexion
from mulligan.text.plain import count, one_line
from mulligan.text.secrets import mask, mask_json

T = TypeVar("T")
log = logging.getLogger("mulligan")


@dataclass(frozen=True)
class Result(Generic[T]):
    """What a call returned, and its episode. `episode.solved` says whether the judge accepted the value."""

    value: T
    episode: Episode


class Call:
    """One call. It is the actor of its episode, and its evaluator and reflector where these are functions."""

    expects: Literal["text"] = "text"

    def __init__(
        self, settings: RetrySettings, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._settings, self._function = settings, function
        try:
            self._arguments = settings.call_signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{settings.name}(): {error}") from None
        self._arguments.apply_defaults()
        if settings.appended_to and not isinstance(text := self._arguments.arguments[settings.appended_to], str):
            raise InvalidInput(
                f"{settings.name}() received a {type(text).__name__} for {settings.appended_to!r}, but notes can "
                f"be appended only to a string (notes={settings.appended_to!r}): pass a string, or add a parameter for "
                "the notes (notes: mulligan.Notes)."
            )
        self._inputs = Inputs(self._arguments.arguments)
        self._values = dict[int, Any]()
        self._for_judge = dict[int, Any]()
        self._seconds: float | None = None
        self._artifacts = tuple[Artifact, ...]()
        self._last_error: Exception | None = None
        self._error_to_wait_for: Exception | None = None
        self._fatal: BaseException | None = None
        self._bugs = Bugs()
        self._config = None
        try:
            self._config = load()
            name = str(self._config.store) if settings.options.store is None else object_name(settings.options.store)
        except Exception as error:  # raised again where it is needed
            name = str(error)
        self._record = CallRecord(
            name, self._store if settings.options.record else None, required=settings.options.record == "required"
        )

    @property
    def episode(self) -> Episode | None:
        """The record so far; None before the call began."""
        return self._record.episode

    async def run(self) -> Result[Any]:
        """Raises `NotSolved`, and errors of the function or the judge that do not count as a failed try."""
        key = self._key if self._settings.options.record else None
        _ = self._task  # an error of the user's `task` function is raised before anything is recorded
        bank = self._bank()
        try:
            await self._record.begin(key, self._new_episode, self._can_resume)
            await self._drive(bank, self._record)
        except BaseException as error:
            await self._record.close(error)
            raise
        await self._record.close()
        assert self.episode is not None
        if bank is not None and self._fatal is None:
            await bank.tell(self.episode)
        return self._result(self.episode)

    def _bank(self) -> TolerantBank | None:
        bank = self._settings.options.bank
        if isinstance(bank, str):
            return TolerantBank(f"bank {bank}", lambda: shared_bank(bank, self._config or load()), teach, portal.within)
        return None if bank is None else TolerantBank(object_name(bank), lambda: bank, tell_outcome, portal.settled)

    def _store(self) -> Store:
        return self._settings.options.store or shared_store((self._config or load()).store)

    # --- the roles ----------------------------------------------------------------------------------------------

    async def act(self, episode: Episode, past: Past) -> Attempt:
        """One call of the function."""
        settings, number = self._settings, len(episode.trials) + 1
        notes = notes_of(episode, self._bugs.left_out(past))
        if number > 1:
            self._inputs.warn(settings.name)
            if settings.options.before_retry is not None:
                before_retry = settings.options.before_retry
                try:
                    await portal.settled(before_retry(*((notes,) if takes_argument(before_retry) else ())))
                except asyncio.CancelledError:
                    raise
                except BaseException as error:
                    self._fatal = error
                    raise
            await self._wait(episode)
        arguments = dict(self._arguments.arguments)
        if settings.appended_to and notes:
            arguments[settings.appended_to] = f"{arguments[settings.appended_to]}\n\n{notes}"
        if settings.notes:
            arguments[settings.notes] = notes
        names = [name for name in settings.signature.parameters if name in arguments]
        bound = inspect.BoundArguments(settings.signature, {name: arguments[name] for name in names})  # pyright: ignore[reportArgumentType]
        outer = sys.exception()
        try:
            value = await portal.settled(self._function(*bound.args, **bound.kwargs))
        except InvalidInput as error:  # a further try cannot help
            self._fatal = error
            raise
        except asyncio.CancelledError:  # the loop knows why
            raise
        except BaseException as error:
            if not isinstance(error, Exception) or not self._is_failure(error):
                self._fatal = error
                raise
            self._last_error = self._error_to_wait_for = error
            why = error_text(error, outer)
            if is_transient(error):
                feedback = Feedback(None, why, source="exception")
            else:
                feedback = self._bugs.verdict(error, settings.name)
            return Attempt("", outcome=Outcome(halted=why, feedback=feedback))
        attempt = self._attempt(value)
        self._values[number], self._for_judge[number] = self._copies(value)
        return replace(attempt, artifacts=(*attempt.artifacts, *self._artifacts))

    def _copies(self, value: Any) -> tuple[Any, Any]:
        """The result twice: for the caller and for the judge."""
        if not self._settings.judged_by_function or self._settings.judge is returned:
            return value, value
        try:
            return twice(value)
        except TypeError as kind:
            self._fatal = InvalidInput(
                f"{self._settings.name} returned {kind}, which can be read only once: the judge would use it up. Let "
                "the function return the whole result, such as a list or a string."
            )
            raise self._fatal from None

    def _is_failure(self, error: Exception) -> bool:
        """Whether the exception counts as a failed try; a group does if each of its exceptions does."""
        failures = self._settings.failures
        if isinstance(error, ExceptionGroup) and not isinstance(error, failures):
            return error.split(failures)[1] is None  # pyright: ignore[reportUnknownMemberType]
        return isinstance(error, failures)

    def _attempt(self, value: Any) -> Attempt:
        """What is recorded of a result. An error here is not the function's, so the result is kept."""
        reads, returns = self._settings.options.reads, self._settings.returns
        try:
            return reads.attempt(value) if reads else attempt_of(value, returns)
        except Exception as error:
            name = f"{self._settings.name}, {type(value).__name__}"
            Outages(name).warn(f"a {type(value).__name__} is recorded without its contents", error_text(error))
            return Attempt(f"<{type(value).__name__}>")

    def _answer(self, result: Any) -> Any:
        """What the judge sees of a result: the result itself if `reads` fails."""
        try:
            return self._settings.options.reads.answer(result) if self._settings.options.reads else result
        except Exception as error:
            Outages(self._settings.name).warn("the judge is shown a result as it is", error_text(error))
            return result

    async def _wait(self, episode: Episode) -> None:
        """Waits before the next try if the last one raised an error. Raises `OverBudget` if too little time is left."""
        error, self._error_to_wait_for = self._error_to_wait_for, None
        if error is None:
            return
        seconds = seconds_to_wait(self._settings.options.wait, len(episode.trials), error)
        left = None if self._seconds is None else max(self._seconds - episode.seconds, 0.0)
        if left is not None and seconds >= left > 0:
            raise OverBudget(f"the next try must wait {seconds:.3g} seconds, but only {left:.3g} are left")
        if seconds:
            log.info("%s waits %.3g seconds before its next try", self._settings.name, seconds)
            await pause(seconds)

    async def evaluate(self, episode: Episode) -> Feedback:
        """The judge's verdict on the newest try."""
        trial, judge = episode.trials[-1], self._settings.judge
        result = self._for_judge[trial.number] if trial.number in self._for_judge else self._value(trial)
        answer = self._answer(result)
        args, kwargs = judge_arguments(judge, self._arguments.arguments, self._task.prompt, answer)
        restore_position, outer = position_restorer(result), sys.exception()
        try:
            verdict = await portal.settled(judge(*args, **kwargs))
        except BUGS as error:
            self._fatal = error
            raise
        except Exception as error:
            self._error_to_wait_for = error if is_transient(error) else None
            bug = self._bugs.verdict(error, f"the judge {judge_name(judge)}")
            return bug or objection(error, judge, answer, outer)
        finally:
            restore_position()
        try:
            return feedback_of(verdict, judge, answer, self._settings.options.threshold)
        except InvalidInput as error:
            self._fatal = error
            raise

    async def reflect(self, episode: Episode) -> Reflection | None:
        """The lesson that the user's own function writes."""
        function = cast(Any, self._settings.options.reflect)
        try:
            written = await portal.settled(function(episode))
        except Exception as error:
            if not is_transient(error):
                self._fatal = error
                raise
            Outages(self._settings.name).warn("a lesson is not written; the call continues", error_text(error))
            return NO_REFLECTION
        if written is None or isinstance(written, Reflection):
            return written
        if not isinstance(written, str):
            self._fatal = InvalidInput(
                f"{judge_name(function)} returned {shown(written)}. Return a string, a Reflection, or None to give up."
            )
            raise self._fatal
        return Reflection(written)

    # --- the episode --------------------------------------------------------------------------------------------

    @cached_property
    def _task(self) -> Task:
        """The task of this call: the prompt, and the other arguments that have a JSON form."""
        arguments, task = self._arguments.arguments, self._settings.task
        if callable(task):
            prompt = task(*self._arguments.args, **self._arguments.kwargs).strip()
            return Task(prompt or self._settings.name)
        texts = [name for name, value in arguments.items() if isinstance(value, str)]
        task_name = task or next(iter(texts), None)
        inputs: dict[str, Json] = {}
        for name, value in arguments.items():
            if name != task_name and not (isinstance(value, (tuple, dict)) and not value):
                with suppress(Exception):  # such as a key whose own text fails
                    inputs[name] = plain(value)
        prompt = "" if task_name is None else text_of(arguments[task_name]).strip()
        return Task(prompt or f"{self._settings.name}: {shown(inputs)}", inputs)

    @property
    def _key(self) -> str | None:
        """A text that equal calls share; None if there is nothing to tell equal calls by."""
        settings = self._settings
        if settings.options.key is not None:
            own_key = (
                settings.options.key(*self._arguments.args, **self._arguments.kwargs)
                if callable(settings.options.key)
                else settings.options.key
            )
            return digest([settings.name, identity(own_key)])[:12]
        if settings.options.reads is not None:  # a framework's result cannot be read back
            return None
        try:
            judge = settings.evaluator or settings.judge
            parts = [identity(one) for one in (self._function, judge, dict(self._arguments.arguments))]
            return digest([settings.name, *parts])[:12]
        except Exception as error:  # an attribute may raise any error
            log.debug("%s has no key, so an interrupted call starts again: %s", settings.name, error_text(error))
            return None

    def _new_episode(self, run: str) -> Episode:
        """A new episode of this call, with secrets in the arguments masked."""
        task = Task(mask(self._task.prompt), mask_json(dict(self._task.inputs)))
        began = round(time.time(), 3)
        id = f"{run}.{secrets.token_hex(3)}"
        return Episode(id, task, run, plan=self._settings.plan, head=self._settings.head, started=began)

    def _can_resume(self, episode: Episode) -> bool:
        """Whether the call was cut off after at least one try, and the results of its tries can be read back."""
        results = (value_of(trial.attempt, self._settings.returns) for trial in episode.trials if not halted(trial))
        return bool(episode.trials) and not episode.over and all(value is not UNREADABLE for value in results)

    async def _drive(self, bank: TolerantBank | None, record: CallRecord) -> None:
        assert self.episode is not None
        meter, limits = Meter(self.episode.usage), self._settings.bounds
        if limits.seconds is not None:  # a call that continues one that was cut off has the whole time again
            limits = replace(limits, seconds=limits.seconds + self.episode.seconds)
        self._seconds = limits.seconds
        roles = replace(self._roles(record.journal, meter), bank=cast(Bank, bank))
        with operation("episode", facts={"episode": self.episode.id, "agent": self.episode.agent}) as done:
            over = await drive(self.episode, roles, limits, record.append, meter)
            done.facts |= {"stop": over.stop.reason if over.stop else None, "trials": len(over.trials)}

    def _roles(self, journal: Journal, meter: Meter) -> Roles:
        settings = self._settings
        if not settings.composes:
            reflector = None if settings.options.reflect is None else self
            strategy = Evidence() if reflector is None else EvidenceAndReflexion()
            return Roles(self, ResultJudge(self), reflector, strategy)
        assert self.episode is not None
        objects: dict[str, Any] = {"actor": self}
        if settings.judged_by_function:
            objects["evaluator"] = self
        elif settings.evaluator is None:
            objects["evaluator"] = settings.judge
        if settings.reflects_by_function:
            objects["reflector"] = self
        roles = composed(settings, objects, Drive(journal, meter)).roles
        if roles.evaluator.expects == "workspace":  # it judges the files that the function leaves in this folder
            self._artifacts = (Artifact("folder", "", os.getcwd()),)
        evaluator = self if settings.judged_by_function else portal.wrap(roles.evaluator)
        reflector = roles.reflector
        if reflector is not None and reflector is not self:
            reflector = TolerantReflector(portal.wrap(reflector))
        return replace(roles, evaluator=ResultJudge(evaluator), reflector=reflector)

    # --- the result ---------------------------------------------------------------------------------------------

    def _value(self, trial: Trial) -> Any:
        """The function's result of this try."""
        if trial.number not in self._values:
            self._values[trial.number] = value_of(trial.attempt, self._settings.returns)
        return self._values[trial.number]

    def _result(self, episode: Episode) -> Result[Any]:
        stop = episode.stop
        assert stop is not None
        if self._fatal is not None:
            raise self._fatal
        returned = [trial for trial in episode.trials if not halted(trial)]
        best = episode.best if episode.best in returned else next(reversed(returned), None)
        reading = with_defaults(self._settings.options.reads, GivingReading)
        value = None if best is None else reading.given(self._value(best))
        if stop.reason == "error":
            raise NotSolved(stop.detail, episode, value)
        if episode.solved and best is not None:
            return Result(value, episode)
        newest = episode.trials[-1].feedback if episode.trials else None
        why = f"{self._settings.name} was not solved in {count(len(episode.trials), 'try')} ({_reason(stop)})"
        message = f"{why}: {one_line(newest.text, 500)}" if newest and newest.text else why
        if self._settings.options.unsolved == "raise" or best is None:
            raise NotSolved(message, episode, value) from self._last_error
        log.warning("%s; the best result is returned", message.rstrip(".: "))
        return Result(value, episode)


def halted(trial: Trial) -> str:
    """The exception that ended this try; "" if the function returned."""
    return (trial.attempt.outcome and trial.attempt.outcome.halted) or ""


def _reason(stop: Stop) -> str:
    """Why the episode stopped; for a limit, which one."""
    return stop.reason if stop.reason == "exhausted" or not stop.detail else f"{stop.reason}: {stop.detail}"
