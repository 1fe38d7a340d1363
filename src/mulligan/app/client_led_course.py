"""The course of one episode that a client drives: what comes next, what a step of the client's adds to the record.

Over core's state machine and any `Store`. A trial is three journal steps, `trial.N/act/client#1`, `…/evaluate/client#1`
and `…/reflect/client#1`: each is begun by the call that hands out its prompt and finished by the call that brings the
answer, so that what a client was shown survives the death of the server: design/011.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, TypeAlias, cast

from mulligan.app.client_led_steps import MOST_TRIALS, ClientStep, Part, Taken
from mulligan.core.episode import Acted, Evaluated, Event, Move, Reflected, Stopped, advance, due
from mulligan.core.errors import InvalidInput, OutOfOrder
from mulligan.core.journal import digest
from mulligan.core.limits import Limits
from mulligan.core.protocols import Lease, StepRow, Store
from mulligan.core.records import Attempt, Episode, Feedback, Json, Reflection, Stop, Trial, Usage

Place: TypeAlias = tuple[int, Part]
"""Where a journal step stands: the trial's number, and the part of it."""

BARE = 10_000
"""What an episode weighs that holds no text yet, in characters."""

_EVENT: Mapping[Part, str] = {"act": "attempt", "evaluate": "feedback", "reflect": "reflection"}
_KEY = re.compile(r"trial\.(\d+)/(act|evaluate|reflect)/client#1")


class Course:
    """An episode under its lease, as it is; each method that writes leaves it as it is then.

    Whatever is cut off between two writes is made up for when the same step comes again.
    """

    def __init__(self, store: Store, lease: Lease, episode: Episode, rows: Mapping[Place, StepRow], depth: int) -> None:
        self._store, self._lease, self._depth = store, lease, depth
        self.episode = episode
        self._happened = _events(episode)
        self.rows = dict(rows)
        self.weight = BARE + sum(_weight([row.request, row.result]) for row in rows.values())
        """Characters that it holds, about."""

    def held(self, lease: Lease) -> None:
        """The lease under which it is written from now on."""
        self._lease = lease

    # --- as it is -----------------------------------------------------------------------------------------------

    @property
    def due(self) -> Move | Stop:
        return due(self.episode, Limits(trials=MOST_TRIALS, identical=None))

    @property
    def newest(self) -> Trial | None:
        return self.episode.trials[-1] if self.episode.trials else None

    @property
    def memory(self) -> tuple[str, ...]:
        """The reflections that are remembered, newest first: those of the newest journal step."""
        if not self.rows:
            return ()
        (number, part), row = next(reversed(self.rows.items()))
        trial = self.episode.trials[number - 1] if number <= len(self.episode.trials) else None
        counts = trial is not None and getattr(trial, _EVENT[part]) is not None  # else it was cut off from its event
        return self._window(row.result if counts and "memory" in row.result else row.request)

    def row(self, trial: int, part: Part) -> StepRow | None:
        return self.rows.get((trial, part))

    # --- a step in its order ------------------------------------------------------------------------------------

    async def take(self, step: ClientStep) -> Taken:
        """The step as the next one, or as one that was taken already, in the same words.

        Raises `OutOfOrder` when another is due, `InvalidInput` when it was taken in other words; then nothing is added.
        """
        match step.kind:
            case "act":
                memory = await self._act(step)
            case "evaluate":
                memory = await self._evaluate(step)
            case "reflect":
                memory = await self._reflect(step)
        over = self.episode.stop is not None and step.trial == len(self.episode.trials)
        completed = sum(_complete(trial) for trial in self.episode.trials[: step.trial])
        return Taken(self.episode, step.trial, memory, self.memory, completed, over)

    async def _act(self, step: ClientStep) -> tuple[str, ...]:
        row = self.row(step.trial, "act")
        if row is None:
            if self.due != Move("act", step.trial):
                raise self._out_of_order(step)
            await self.begin(step.trial, "act", {"prompt": step.prompt, "memory": self._shown(step)})
            return self.memory
        if row.request["prompt"] != step.prompt:
            raise self._differs(step, "task", row.request["prompt"])
        return self._same_memory(step, row.request)

    async def _evaluate(self, step: ClientStep) -> tuple[str, ...]:
        trial = self._trial(step)
        if trial is None:
            if self.due != Move("act", step.trial) or self.row(step.trial, "act") is None:
                raise self._out_of_order(step)
            shown = self._shown(step)
            await self.attempt(step.trial, step.output)
            await self.begin(step.trial, "evaluate", {"memory": shown})
        elif trial.attempt.output != step.output:
            raise self._differs(step, "output", trial.attempt.output)
        elif trial.feedback is not None and step.passed and not _alike(trial.feedback, step.feedback):
            raise self._differs(step, "verdict", _verdict(trial.feedback))
        if step.passed:
            return await self._pass(step)
        row = self.row(step.trial, "evaluate")
        if row is None:
            await self.begin(step.trial, "evaluate", {"memory": self._shown(step)})
            return self.memory
        return self._same_memory(step, row.request)

    async def _reflect(self, step: ClientStep) -> tuple[str, ...]:
        trial = self._trial(step)
        if trial is None:
            raise self._out_of_order(step)
        if trial.attempt.output != step.output:
            raise self._differs(step, "output", trial.attempt.output)
        if trial.feedback is not None and not _alike(trial.feedback, step.feedback):
            raise self._differs(step, "verdict", _verdict(trial.feedback))
        if trial.reflection and step.reflection is not None and trial.reflection.text != step.reflection:
            raise self._differs(step, "reflection", trial.reflection.text)
        if step.passed:
            return await self._pass(step)
        memory = self._shown(step)
        if trial.feedback is None:
            await self.judge(step, memory)
        row = self.row(step.trial, "reflect")
        if row is None:
            await self.begin(step.trial, "reflect", {"memory": memory})
        elif step.reflection is None:
            return self._same_memory(step, row.request)
        if step.reflection is None:
            return self.memory
        return await self._remember(step, step.reflection, memory)

    async def _pass(self, step: ClientStep) -> tuple[str, ...]:
        """The end as solved. A reflection is remembered by the journal alone: a trial that passed has none."""
        if self.episode.trials[step.trial - 1].feedback is None:
            await self.judge(step, self._shown(step))
        told = self._result(step, "evaluate")
        if told.get("reflection") != step.reflection:
            raise self._differs(step, "reflection", str(told.get("reflection", "none")))
        memory = self._same_memory(step, told)
        await self.stop()
        return memory

    async def _remember(self, step: ClientStep, reflection: str, memory: list[str]) -> tuple[str, ...]:
        if self.episode.trials[step.trial - 1].reflection is None:
            await self.reflect(step.trial, reflection, memory, last=step.trial >= step.trials)
        told = self._result(step, "reflect")
        after = self._same_memory(step, told)
        if told["last"]:
            await self.stop()
        return after

    # --- what is written ----------------------------------------------------------------------------------------

    async def begin(self, trial: int, part: Part, request: Mapping[str, Json]) -> None:
        """The journal step as begun; one that was begun with another request is left behind, with those after it."""
        place: Place = (trial, part)
        wanted = digest(request)
        await self._store.begin_step(self._lease, _key(place), request, wanted)
        old = self.rows.get(place)
        if old is not None and old.request_hash != wanted:
            self.rows = {kept: self.rows[kept] for kept in takewhile(lambda other: other != place, self.rows)}
        self.rows.pop(place, None)
        self.rows[place] = StepRow(_key(place), wanted, False, request)
        self.weight += _weight(request)

    async def attempt(self, trial: int, output: str) -> None:
        """What the client came to in the trial that is due, whose act step was begun."""
        await self._finish(trial, "act", {"output": output})
        await self._add(Acted(trial, Attempt(output, usage=Usage(cost=None))))

    async def judge(self, step: ClientStep, memory: list[str]) -> None:
        """The verdict on the newest trial, unless it has one."""
        trial = self.newest
        if trial is None or trial.feedback is not None:
            return
        said: dict[str, Json] = {"passed": bool(step.passed), "score": step.score}
        if step.passed:
            said |= {"memory": self._with(step.reflection, memory)}
            said |= {} if step.reflection is None else {"reflection": step.reflection}
        await self.settle(trial.number, "evaluate", memory, said)
        await self._add(Evaluated(trial.number, step.feedback))

    async def unjudged(self, memory: list[str], why: str) -> None:
        """The newest trial without a verdict."""
        number = len(self.episode.trials)
        await self.settle(number, "evaluate", memory, {"passed": None, "score": None})
        await self._add(Evaluated(number, Feedback(None, why, source="client")))

    async def reflect(self, trial: int, reflection: str, memory: list[str], *, last: bool) -> None:
        """The reflection on the newest trial, which failed. memory: what was remembered before it. last: whether the
        episode is to be stopped then.
        """
        said = {"reflection": reflection, "memory": self._with(reflection, memory), "last": last}
        await self.settle(trial, "reflect", memory, said)
        await self._add(Reflected(trial, Reflection(reflection, Usage(cost=None))))

    async def stop(self) -> None:
        """The end, unless it is there: solved where the newest trial passed, else exhausted."""
        if self.episode.stop is None:
            end = due(self.episode, Limits(trials=max(len(self.episode.trials), 1), identical=None))
            assert isinstance(end, Stop), "an episode ends after a verdict"
            await self._add(Stopped(end))

    async def mend(self) -> None:
        """The end, where a step that had brought it was cut off just before."""
        newest = self.newest
        row = None if newest is None or newest.reflection is None else self.row(newest.number, "reflect")
        if isinstance(self.due, Stop) or (row is not None and row.done and row.result["last"]):
            await self.stop()

    async def settle(self, trial: int, part: Part, memory: list[str], result: Json) -> None:
        """Begins the step if it was not, and finishes it."""
        if self.row(trial, part) is None:
            await self.begin(trial, part, {"memory": memory})
        await self._finish(trial, part, result)

    async def _finish(self, trial: int, part: Part, result: Json) -> None:
        """A result that is there counts only with its event: one that was cut off from it gives way to another."""
        place: Place = (trial, part)
        row = self.rows[place]
        if row.done and row.result != result:
            await self.begin(trial, part, cast(Mapping[str, Json], row.request))
        if not self.rows[place].done:
            await self._store.finish_step(self._lease, _key(place), result)
            self.rows[place] = replace(self.rows[place], done=True, result=result)
            self.weight += _weight(result)

    async def _add(self, event: Event) -> None:
        after = advance(self.episode, event)
        await self._store.append(self._lease, self._happened, event)
        self.episode = after
        self._happened += 1

    # --- what is said -------------------------------------------------------------------------------------------

    def _trial(self, step: ClientStep) -> Trial | None:
        there = step.trial <= len(self.episode.trials)
        return self.episode.trials[step.trial - 1] if there else None

    def _shown(self, step: ClientStep) -> list[str]:
        return list((self.memory if step.memory is None else step.memory)[: self._depth])

    def _with(self, reflection: str | None, memory: list[str]) -> list[str]:
        return memory if reflection is None else [reflection, *memory][: self._depth]

    def _window(self, said: Json) -> tuple[str, ...]:
        return tuple(said.get("memory", ()))[: self._depth]

    def _result(self, step: ClientStep, part: Part) -> Json:
        row = self.row(step.trial, part)
        return row.result if row is not None and row.done else {}

    def _same_memory(self, step: ClientStep, said: Json) -> tuple[str, ...]:
        """What was remembered in a step that was taken. An override that is given again has to be the same."""
        memory = self._window(said)
        if step.memory is not None:
            added = self._with(step.reflection if "reflection" in said else None, self._shown(step))
            if tuple(added) != memory:
                raise self._differs(step, "memory", "; ".join(memory))
        return memory

    def _out_of_order(self, step: ClientStep) -> OutOfOrder:
        return OutOfOrder(self.expected, f"{step}")

    @property
    def expected(self) -> str:
        """The step that is due, in words."""
        match self.due:
            case Stop(reason):
                return f"nothing more (this episode is over: {reason})"
            case Move("act", trial) if self.row(trial, "act") is None:
                return f"the actor step of trial {trial}"
            case Move("act", trial):
                return f"the evaluator step of trial {trial}"
            case Move("reflect", trial):
                return f"the self-reflection step of trial {trial} with its reflection"
            case Move(_, trial):
                return f"the self-reflection step of trial {trial}"

    def _differs(self, step: ClientStep, what: str, was: str) -> InvalidInput:
        short = was if len(was) <= 200 else f"{was[:200]}…"
        return InvalidInput(
            f"Already recorded of trial {step.trial}, with another {what}: {short!r}. Call again with that one, or go "
            f"on: expected is {self.expected}."
        )


def places(rows: Sequence[StepRow]) -> dict[Place, StepRow]:
    """The journal steps of a client by where they stand, in the order in which they were begun."""
    found = ((_KEY.fullmatch(row.key), row) for row in rows)
    return {(int(match[1]), cast(Part, match[2])): row for match, row in found if match}


def _key(place: Place) -> str:
    return f"trial.{place[0]}/{place[1]}/client#1"


def _weight(value: Json) -> int:
    if isinstance(value, str):
        return len(value) + 1
    children: Any = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()  # pyright: ignore
    return 1 + sum(_weight(child) for child in children)


def _events(episode: Episode) -> int:
    """How many events it has seen: none is ever resumed, and nothing is recalled."""
    parts = [part for t in episode.trials for part in (t.attempt, t.feedback, t.reflection)]
    return sum(part is not None for part in parts) + (episode.stop is not None)


def _complete(trial: Trial) -> bool:
    return trial.reflection is not None or bool(trial.feedback and trial.feedback.passed)


def _alike(one: Feedback, other: Feedback) -> bool:
    """Whether they say the same; 1 and 1.0 do."""
    of_number = one.score is not None and one.score == other.score
    return one.passed == other.passed and (of_number or (one.score, one.text) == (other.score, other.text))


def _verdict(feedback: Feedback) -> str:
    said: Any = {True: "passed", False: "failed", None: "not judged"}[feedback.passed]
    return f"{said}, {feedback.text}" if feedback.text else said
