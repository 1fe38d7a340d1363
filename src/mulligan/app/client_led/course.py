"""Records the steps of one episode that a client drives, and says which step comes next.

A trial is three journal steps, `trial.N/act/client#1`, `…/evaluate/client#1` and `…/reflect/client#1`. Each is begun by
the call that hands out its prompt and finished by the call that brings the answer, so that what a client was shown
survives the death of the server: design/011.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mulligan.app.client_led.steps import MOST_TRIALS, ClientStep, Part, StepResult
from mulligan.core.episode import Acted, Evaluated, Move, Reflected, Stopped, due
from mulligan.core.errors import InvalidInput, OutOfOrder
from mulligan.core.limits import Limits
from mulligan.core.protocols import StepRow
from mulligan.core.records import Attempt, Episode, Feedback, Json, Reflection, Stop, Trial, Usage
from mulligan.recording.ledger import Entry

_EVENT: Mapping[str, str] = {"act": "attempt", "evaluate": "feedback", "reflect": "reflection"}
_KEY = re.compile(r"trial\.(\d+)/(act|evaluate|reflect)/client#1")


class Course:
    """One episode that a client drives. A step that was cut off between two writes is completed when it is repeated.

    Args:
        entry: the held episode, of a ledger that keeps steps.
        depth: how many reflections are remembered.
    """

    def __init__(self, entry: Entry, depth: int) -> None:
        self._entry, self._depth = entry, depth

    # --- the episode so far -------------------------------------------------------------------------------------

    @property
    def episode(self) -> Episode:
        return self._entry.episode

    @property
    def due(self) -> Move | Stop:
        return due(self.episode, Limits(trials=MOST_TRIALS, identical=None))

    @property
    def newest(self) -> Trial | None:
        return self.episode.trials[-1] if self.episode.trials else None

    @property
    def memory(self) -> tuple[str, ...]:
        """The reflections that are remembered, newest first: those of the newest journal step."""
        for key, row in reversed(self._entry.steps.items()):
            if (match := _KEY.fullmatch(key)) and row is not None:
                number, part = int(match[1]), match[2]
                trial = self.episode.trials[number - 1] if number <= len(self.episode.trials) else None
                # without its event the result was cut off and does not count
                counts = trial is not None and getattr(trial, _EVENT[part]) is not None
                return self._window(row.result if counts and "memory" in row.result else row.request)
        return ()

    def row(self, trial: int, part: Part) -> StepRow | None:
        return self._entry.steps.get(_key(trial, part))

    # --- a step in its order ------------------------------------------------------------------------------------

    async def take(self, step: ClientStep) -> StepResult:
        """Records the step if it is the next one, and answers a repeated step as before.

        Raises:
            OutOfOrder: another step is due. Nothing is recorded.
            InvalidInput: the step was recorded before with other values. Nothing is recorded.
        """
        match step.kind:
            case "act":
                memory = await self._act(step)
            case "evaluate":
                memory = await self._evaluate(step)
            case "reflect":
                memory = await self._reflect(step)
        over = self.episode.stop is not None and step.trial == len(self.episode.trials)
        trials = self.episode.trials[: step.trial]
        completed = sum(
            trial.reflection is not None or bool(trial.feedback and trial.feedback.passed) for trial in trials
        )
        return StepResult(self.episode, step.trial, memory, self.memory, completed, over)

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
        elif trial.feedback is not None and step.passed and not _same_verdict(trial.feedback, step.feedback):
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
        if trial.feedback is not None and not _same_verdict(trial.feedback, step.feedback):
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
        """Ends the episode as solved. A reflection is only in the journal, because a passed trial has none."""
        if self.episode.trials[step.trial - 1].feedback is None:
            await self.judge(step, self._shown(step))
        recorded = self._result(step, "evaluate")
        if recorded.get("reflection") != step.reflection:
            raise self._differs(step, "reflection", str(recorded.get("reflection", "none")))
        memory = self._same_memory(step, recorded)
        await self.stop()
        return memory

    async def _remember(self, step: ClientStep, reflection: str, memory: list[str]) -> tuple[str, ...]:
        if self.episode.trials[step.trial - 1].reflection is None:
            await self.reflect(step.trial, reflection, memory, last=step.trial >= step.trials)
        recorded = self._result(step, "reflect")
        after = self._same_memory(step, recorded)
        if recorded["last"]:
            await self.stop()
        return after

    # --- what is written ----------------------------------------------------------------------------------------

    async def begin(self, trial: int, part: Part, request: Json) -> None:
        """Writes the journal step as begun. It replaces one with another request, and the steps after that."""
        await self._entry.begin_step(_key(trial, part), request)

    async def attempt(self, trial: int, output: str) -> None:
        """Records the client's output in the trial that is due, whose act step has begun."""
        await self._finish(trial, "act", {"output": output})
        await self._entry.append(Acted(trial, Attempt(output, usage=Usage(cost=None))))

    async def judge(self, step: ClientStep, memory: list[str]) -> None:
        """Records the verdict on the newest trial, unless it has one."""
        trial = self.newest
        if trial is None or trial.feedback is not None:
            return
        result: dict[str, Json] = {"passed": bool(step.passed), "score": step.score}
        if step.passed:
            result |= {"memory": self._with(step.reflection, memory)}
            result |= {} if step.reflection is None else {"reflection": step.reflection}
        await self.settle(trial.number, "evaluate", memory, result)
        await self._entry.append(Evaluated(trial.number, step.feedback))

    async def unjudged(self, memory: list[str], why: str) -> None:
        """Records that the newest trial got no verdict."""
        number = len(self.episode.trials)
        await self.settle(number, "evaluate", memory, {"passed": None, "score": None})
        await self._entry.append(Evaluated(number, Feedback(None, why, source="client")))

    async def reflect(self, trial: int, reflection: str, memory: list[str], *, last: bool) -> None:
        """Records the reflection on the newest trial, which failed.

        Args:
            trial: its number.
            reflection: the text.
            memory: the reflections that were remembered before it.
            last: whether the episode stops after it.
        """
        result = {"reflection": reflection, "memory": self._with(reflection, memory), "last": last}
        await self.settle(trial, "reflect", memory, result)
        await self._entry.append(Reflected(trial, Reflection(reflection, Usage(cost=None))))

    async def stop(self) -> None:
        """Ends the episode, unless it has ended: as solved if the newest trial passed, else as exhausted."""
        if self.episode.stop is None:
            end = due(self.episode, Limits(trials=max(len(self.episode.trials), 1), identical=None))
            assert isinstance(end, Stop), "an episode ends after a verdict"
            await self._entry.append(Stopped(end))

    async def mend(self) -> None:
        """Ends the episode if the step that should have ended it was cut off."""
        newest = self.newest
        row = None if newest is None or newest.reflection is None else self.row(newest.number, "reflect")
        if isinstance(self.due, Stop) or (row is not None and row.done and row.result["last"]):
            await self.stop()

    async def settle(self, trial: int, part: Part, memory: list[str], result: Json) -> None:
        """Finishes the journal step, and begins it first if necessary."""
        if self.row(trial, part) is None:
            await self.begin(trial, part, {"memory": memory})
        await self._finish(trial, part, result)

    async def _finish(self, trial: int, part: Part, result: Json) -> None:
        """Writes the result. It replaces a different one that was written before the process was cut off."""
        row = self.row(trial, part)
        assert row is not None, "it was begun"
        if row.done and row.result != result:
            await self.begin(trial, part, row.request)
        elif row.done:
            return
        await self._entry.finish_step(row.key, result)

    # --- texts and comparisons ----------------------------------------------------------------------------------

    def _trial(self, step: ClientStep) -> Trial | None:
        exists = step.trial <= len(self.episode.trials)
        return self.episode.trials[step.trial - 1] if exists else None

    def _shown(self, step: ClientStep) -> list[str]:
        return list((self.memory if step.memory is None else step.memory)[: self._depth])

    def _with(self, reflection: str | None, memory: list[str]) -> list[str]:
        return memory if reflection is None else [reflection, *memory][: self._depth]

    def _window(self, result: Json) -> tuple[str, ...]:
        return tuple(result.get("memory", ()))[: self._depth]

    def _result(self, step: ClientStep, part: Part) -> Json:
        row = self.row(step.trial, part)
        return row.result if row is not None and row.done else {}

    def _same_memory(self, step: ClientStep, recorded: Json) -> tuple[str, ...]:
        """What was remembered in an earlier step. A repeated override must be the same."""
        memory = self._window(recorded)
        if step.memory is not None:
            expected = self._with(step.reflection if "reflection" in recorded else None, self._shown(step))
            if tuple(expected) != memory:
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

    def _differs(self, step: ClientStep, field: str, recorded: str) -> InvalidInput:
        short = recorded if len(recorded) <= 200 else f"{recorded[:200]}…"
        return InvalidInput(
            f"Trial {step.trial} is already recorded with a different {field}: {short!r}. Call again with that "
            f"one, or continue: the expected step is {self.expected}."
        )


def _key(trial: int, part: Part) -> str:
    return f"trial.{trial}/{part}/client#1"


def _same_verdict(first: Feedback, second: Feedback) -> bool:
    """Whether two verdicts are the same; scores of 1 and 1.0 are."""
    same_number = first.score is not None and first.score == second.score
    return first.passed == second.passed and (same_number or (first.score, first.text) == (second.score, second.text))


def _verdict(feedback: Feedback) -> str:
    word: Any = {True: "passed", False: "failed", None: "not judged"}[feedback.passed]
    return f"{word}, {feedback.text}" if feedback.text else word
