"""A benchmark for tests of the runner: `toy_bench.py` itself is the plug-in, its data a JSON list of cases.

    [{"id": "c1", "prompt": "say three c1"}, ...]

A case is solved by an attempt with `right` in it. What else an attempt may say: `scoring breaks` makes the scorer raise,
`judging breaks` the evaluator of the loop, `unclear` cannot be judged by anybody.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mulligan.core.benchmarks import Method, Score, Source
from mulligan.core.errors import ModelError
from mulligan.core.protocols import Journal, World
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Attempt, Case, Episode, Feedback, Past, Spec, Step, Task
from mulligan.models.scripted import ScriptedModel

HERE = str(Path(__file__))
LESSON = "Say right next time."
TEXT = Spec("complete", {"output": "text"})


class Toy:
    title = "cases made up for tests"
    data = "toy.json"
    sources: Sequence[Source] = ()
    where = "Make one."

    def __init__(self, *, breaks: str = "") -> None:
        self._breaks = breaks

    def load(self, files: Sequence[Path]) -> Sequence[Case]:
        rows: Any = json.loads(files[0].read_text())
        return [Case(row["id"], Task(row["prompt"]), row.get("target", "right")) for row in rows]

    def methods(self) -> Mapping[str, Method]:
        judge = Spec(f"{HERE}:Judge")
        world = Method(Spec(f"{HERE}:Walker"), Spec("outcome"), environment=Spec(f"{HERE}:Broken"), trials=2)
        return {
            "reflexion": Method(TEXT, judge, strategy=Spec("reflexion"), trials=3),
            "simple": Method(TEXT, Spec("unjudged"), trials=1),
            "reflexion-ucs": Method(TEXT, judge, strategy=Spec("reflexion"), trials=9, hand_in="best", expansion=2),
            "world": world,
            "waits": Method(Spec("./waits.py"), judge, trials=1),
            "paid": Method(Spec(f"{HERE}:Payer"), judge, trials=3),
        }

    def play(self, case: Case, method: Method) -> Method:
        return method

    async def score(self, case: Case, episode: Episode) -> Score:
        said = episode.trials[-1].attempt.output
        if "scoring breaks" in said:
            raise ZeroDivisionError("the scorer has a bug")
        return Score(None if "unclear" in said else float(str(case.target) in said), f"it says {said}")


class Judge:
    """Passes what says `right`."""

    expects: Literal["text", "code", "workspace"] = "text"

    async def evaluate(self, episode: Episode) -> Feedback:
        said = episode.trials[-1].attempt.output
        if "judging breaks" in said:
            raise ZeroDivisionError("the evaluator has a bug")
        return Feedback("right" in said, f"{said!r} is not it", score=float("right" in said), source="judge")


class Walker:
    """Looks at its world."""

    def __init__(self, *, environment: World) -> None:
        self._world = environment

    async def act(self, episode: Episode, past: Past) -> Attempt:
        async with self._world.open() as world:
            return Attempt(await world.reset())


class Payer:
    """Writes each call that it makes into the file `paid` of its folder. An attempt is right if the prompt says `easy`, or
    in the second trial. Where the folder has a FIFO `stuck`, the second attempt at a prompt with `stuck` writes the
    number of its process there, and never ends. Whoever reads the number removes the FIFO."""

    def __init__(self, *, journal: Journal) -> None:
        self._journal = journal

    async def act(self, episode: Episode, past: Past) -> Attempt:
        prompt, trial = episode.task.prompt, len(episode.trials) + 1

        async def call() -> str:
            if _pay(f"{prompt}, {trial}\n"):
                await asyncio.Event().wait()
            return "right" if "easy" in prompt or trial == 2 else "wrong"

        return Attempt(await self._journal.step("call", [prompt, trial], call))


def _pay(line: str) -> bool:
    """Write the line of a call. Returns whether the second of a prompt with `stuck` gets stuck, and says so."""
    with open("paid", "a") as paid:
        paid.write(line)
    fifo = Path("stuck")
    if "stuck, 2" not in line or not fifo.is_fifo():
        return False
    fifo.write_text(str(os.getpid()))
    return True


class Broken:
    """An environment that breaks when it is begun."""

    async def reset(self) -> str:
        raise ZeroDivisionError("the environment has a bug")

    async def step(self, action: str) -> Step:
        raise AssertionError("it was never begun")

    async def close(self) -> None: ...


def cases(folder: Path, *prompts: str) -> Path:
    """Data with these prompts as cases c1, c2, …"""
    file = folder / "toy.json"
    rows = [{"id": f"c{n}", "prompt": f"c{n}: {prompt}"} for n, prompt in enumerate(prompts, 1)]
    file.write_text(json.dumps(rows))
    return file


class Obliging(ScriptedModel):
    """Says what the prompt of the case asks it to: `c3: say unclear` is answered by `unclear`. `say right at 2` is
    answered by `wrong`, and by `right` once there is a reflection. `the provider is down` raises, `cancel yourself` is cancelled in the middle. Counts by case."""

    def __init__(self) -> None:
        super().__init__(self._answer, "obliging")
        self.down = True
        self.asked: list[str] = []

    def _answer(self, question: Question, sampling: Sampling) -> str:
        text = "\n".join(message.text for message in question.messages)
        asked = next(line for line in reversed(text.split("\n")) if line.startswith("c") and ": " in line)
        case, _, wish = asked.partition(": ")
        self.asked.append(case)
        if wish == "cancel yourself":
            raise asyncio.CancelledError
        if wish == "the provider is down" and self.down:
            raise ModelError("the provider is down")
        if "You review failed attempts" in text:
            return f"{LESSON} {case} lesson {text.count(LESSON) + 1}"
        if LESSON in text and wish == "say right at 2":
            return "right"
        return {"say right at 2": "wrong", "the provider is down": "right"}.get(wish, wish.removeprefix("say "))
