"""Streams: sequences of tasks in one world, whose hidden facts recur, and change once.

Only the observations of an attempt show the facts of the world. Facts from one task help in the next ones, until the
world changes. The idea is that of Continual Learning Bench (2606.05661). The worlds and tasks are our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from mulligan.bench.streams import _tarnwood
from mulligan.bench.streams._drawing import MAX_POINTS, MIN_POINTS
from mulligan.bench.streams.environments import database, game, service
from mulligan.bench.streams.reader.database import OPENING as QUESTION
from mulligan.bench.streams.reader.game import OPENING as MATCH
from mulligan.bench.streams.reader.service import OPENING as JOB
from mulligan.bench.streams.reader.service import OPERATIONS
from mulligan.plugins import Case, Episode, InvalidInput, Json, Judges, Method, Score, Source, Spec, Task

Family: TypeAlias = Literal["database", "game", "code", "service"]
SECONDS = 10.0
"""Time limit for the tests of an attempt."""
AT_TRIAL = (10, 5, 2)
"""Points for code that passes at the first, second and third trial."""


@dataclass(frozen=True)
class _World:
    """The world of a family.

    Attributes:
        title: one line for `bench list`.
        kinds: the maximum number of kinds of tasks, which rotate.
        change: the text that announces the change.
        points: the maximum points of a task.
        passing: the smallest share of the points with which an attempt passes in the loop.
    """

    title: str
    kinds: int
    change: str
    points: int = MAX_POINTS
    passing: float = MIN_POINTS / MAX_POINTS


WORLDS: Mapping[str, _World] = {
    "database": _World(
        "questions to a database whose names say nothing; queries are counted",
        len(database.THINGS),
        "The database was migrated: tables, columns and codes have new names from this task on.",
    ),
    "game": _World(
        "matches against a fencer whose stances give him away",
        len(game.STANCES),
        "Orlo has a new teacher: his stances leave other sides open from this task on.",
        game.ROUNDS,
        0.6,
    ),
    "code": _World(
        "functions of one code base with conventions that only failed tests show",
        _tarnwood.KINDS,
        "The code base has new conventions for some kinds of functions from this task on.",
    ),
    "service": _World(
        "jobs for a service with quirks; calls are counted",
        len(OPERATIONS),
        "The service has a new version: some operations need other things from this task on.",
    ),
}


class Stream:
    """A stream of tasks as a benchmark.

    Args:
        family: the world: database, game, code or service.
        judges: makes the evaluator that runs hidden tests.
        tasks: the number of tasks, without an upper limit.
        seed: decides the world and the tasks.
        kinds: how many kinds of tasks rotate (in the game: stances). None: all.
        drift: the number of the first task after the change, from 1; or "middle", "none".
        announce: whether that task announces the change, in its input `change`.
        all_change: whether every fact changes. By default a third of them change in code and half in service; in
            database and game every fact changes.
    """

    data = ""
    sources: Sequence[Source] = ()
    where = "The tasks are generated from a seed"

    def __init__(
        self,
        family: Family = "database",
        *,
        judges: Judges,
        tasks: int = 36,
        seed: int = 0,
        drift: int | str = "middle",
        announce: bool = True,
        all_change: bool = False,
        kinds: int | None = None,
    ) -> None:
        self._world = WORLDS[family]
        self.title = f"Stream: {self._world.title}"
        self._family, self._judges, self._seed = family, judges, seed
        self._tasks, self._announce = tasks, announce
        self._all_change: dict[str, Json] = {"all_change": True} if all_change and family in ("code", "service") else {}
        if tasks < 1:
            raise InvalidInput(f"tasks must be at least 1, not {tasks}.")
        self._drift = _drift(drift, tasks)
        self._kinds = self._world.kinds if kinds is None else kinds
        if not 1 <= self._kinds <= self._world.kinds:
            raise InvalidInput(f"For {family}, kinds must be from 1 to {self._world.kinds}, not {kinds}.")

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        if files:
            raise InvalidInput(f"A stream generates its tasks and reads no file: omit {files[0].name}.")
        cases = [self._case(number) for number in range(self._tasks)]
        if self._announce and self._drift < self._tasks:
            first = cases[self._drift]
            cases[self._drift] = replace(first, task=replace(first.task, inputs={"change": self._world.change}))
        return cases

    def methods(self) -> Mapping[str, Method]:
        if self._family == "code":
            writes = Spec("complete", {"output": "code"})
            tried = Method(writes, Spec("unit_tests", {"tests": "assert True"}), Spec("verbal", {"output": "code"}))
            summary = "the checks that failed are shown to the next attempt; later attempts are worth less"
            return {
                "evidence": replace(tried, strategy=Spec("evidence"), trials=len(AT_TRIAL), summary=summary),
                "simple": replace(tried, trials=1, summary="one attempt"),
            }
        steps = {"database": 12, "game": game.ROUNDS + 2, "service": 10}[self._family]
        actor = Spec("interact", {"steps": steps, "max_tokens": 160})
        judge = Spec("outcome", {"reward": self._world.passing})
        reflector = Spec("verbal", {"output": "environment"})
        return {"simple": Method(actor, judge, reflector, summary="one attempt", trials=1)}

    def play(self, case: Case, method: Method) -> Method:
        """The method with the visible tests of a task of code, or with the environment of another task."""
        target = cast(Mapping[str, Any], case.target)
        if self._family == "code":
            settings: dict[str, Json] = {"tests": self._code(target).visible, "seconds": SECONDS}
            return replace(method, evaluator=method.evaluator.with_settings(**settings))
        world = {name: target[name] for name in ("seed", "number", "changed", "kinds")}
        return replace(method, environment=Spec(self._family, {**world, **self._all_change}))

    async def score(self, case: Case, episode: Episode) -> Score:
        """The share of the points. Parts: `reward`, the points, and `right`, 1 if the task was done."""
        if self._family == "code":
            return await self._score_code(case, episode)
        outcome = episode.trials[-1].attempt.outcome
        if outcome is None:
            return Score(None, "The attempt has no outcome: the actor did not act in the world.")
        value = (outcome.reward or 0.0) if outcome.done else 0.0
        return self._score(value, outcome.halted or "")

    async def _score_code(self, case: Case, episode: Episode) -> Score:
        trial = episode.trials[-1]
        if trial.feedback is None or trial.feedback.passed is None:
            return Score(None, "The attempt was not judged.")
        if not trial.feedback.passed:
            return self._score(0.0, "A visible test failed.")
        tests = self._code(cast(Mapping[str, Any], case.target)).hidden
        judge = self._judges(Spec("unit_tests", {"tests": tests, "seconds": SECONDS}))
        verdict = await judge.evaluate(episode)
        if verdict.passed is None:
            return Score(None, verdict.text)
        worth = AT_TRIAL[min(trial.number, len(AT_TRIAL)) - 1] / MAX_POINTS
        return self._score(worth) if verdict.passed else self._score(0.0, verdict.text)

    def _score(self, value: float, text: str = "") -> Score:
        points = round(value * self._world.points, 6)
        text = text or f"{points:g} of {self._world.points} points."
        return Score(value, text, {"reward": points, "right": float(value >= self._world.passing)})

    def _case(self, number: int) -> Case:
        """The task with this number, from 0. Its target has the answer and the values that rebuild the task."""
        changed = number >= self._drift
        place: dict[str, Json] = {"seed": self._seed, "number": number, "changed": changed, "kinds": self._kinds}
        place |= self._all_change
        if self._family == "code":
            task = self._code(place)
            prompt, kind, target = task.prompt, task.kind, {"solution": task.solution}
        elif self._family == "database":
            inquiry = database.inquiry(self._seed, number, self._kinds)
            prompt, kind = f"{QUESTION} {inquiry.text()}", inquiry.things
            target = {"answer": database.Database(**place).answer()}
        elif self._family == "service":
            operation, id, more = service.job(self._seed, number, self._kinds)
            job = operation.job.format(id=id, more=more)
            prompt, kind = f"{JOB} {job}; answer with what the service gives.", operation.name
            target = {"answer": service.Service(**place).answer()}
        else:
            prompt, kind = f"{MATCH} {game.ROUNDS} rounds, match {number + 1}.", ""
            target = {"openings": dict(game.openings(self._seed, changed))}
        return Case(f"{self._family}-{number + 1:03d}", Task(prompt), {**place, **target}, kind, 1 + changed)

    def _code(self, place: Mapping[str, Any]) -> _tarnwood.CodeTask:
        return _tarnwood.task(
            place["seed"], place["number"], place["changed"], place["kinds"], place.get("all_change", False)
        )


def _drift(value: int | str, tasks: int) -> int:
    """The number of tasks before the change. Raises `InvalidInput`."""
    if value in ("middle", "none"):
        return tasks // 2 if value == "middle" else tasks
    number = int(value) if str(value).isdecimal() else 0
    if not 1 <= number <= tasks:
        raise InvalidInput(f"drift must be a task number from 1 to {tasks}, middle or none, not {value!r}.")
    return number - 1
