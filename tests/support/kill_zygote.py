"""Runs one episode for each line on stdin, in a child forked from a process that has everything imported.

An order (see `forking`) is {"store": FILE, "log": FILE, "port": N, "resume": RUN or null, "freeze": bool}. With freeze
a child is ready once it has stopped itself behind its first attempt. It has real SQLite, real HTTP to the provider
server, a real command.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from forking import MODELS, serve, tell

import mulligan
from mulligan.core.episode import Acted
from mulligan.core.protocols import Job, Journal, Learned, Lease, Model
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Attempt, Episode, Feedback, Json, Lesson, Past, Recall, Step, Task
from mulligan.sandbox.local import LocalSandbox
from mulligan.store.sqlite import SqliteStore


class Effects:
    """Every effect leaves a line outside the store, so that one that happened twice is seen."""

    def __init__(self, file: str) -> None:
        self.file = file

    async def happen(self, what: str) -> None:
        """Takes a moment, as effects do, so that a kill can hit one."""
        await asyncio.sleep(0.01)
        with open(self.file, "a") as out:  # noqa: ASYNC230
            out.write(what + "\n")
        await asyncio.sleep(0.01)


class Announced(SqliteStore):
    """Says when the episode begins: everything before is the program's start."""

    async def acquire(self, episode: str, owner: str, seconds: float, *, removing: bool = False) -> Lease:
        lease = await super().acquire(episode, owner, seconds, removing=removing)
        tell(ready=True)
        return lease


class Digger:
    """Asks what to look for, looks with a tool, runs a command, asks for the answer."""

    def __init__(self, *, model: Model, journal: Journal) -> None:
        self._model, self._journal, self._effects = model, journal, Effects(os.environ["KILL_LOG"])

    async def act(self, episode: Episode, past: Past) -> Attempt:
        trial = len(episode.trials) + 1
        lessons = " ".join(reflection.text for reflection in past.reflections)
        recalled = past.recall.formatted_prompt if past.recall else ""
        query = await self._ask(f"trial {trial}: search for what? {recalled} {lessons}")

        async def search() -> Json:
            await self._effects.happen(f"tool {trial}")
            return f"found {query}"

        async def build() -> Json:
            job = Job(
                ("sh", "-c", f"echo command {trial} >> '{self._effects.file}'; sleep 0.02; echo built"), confined=False
            )
            return (await LocalSandbox().run(job)).stdout

        found = await self._journal.step("tool.search", {"query": query}, search)
        built = await self._journal.step("command", {"argv": ["build", str(trial)]}, build)
        answer = await self._ask(f"trial {trial}: answer from {found} and {built}")
        return Attempt(answer, (Step(query, "search", str(found)), Step("", "build", str(built))))

    async def _ask(self, text: str) -> str:
        answer = await self._model.ask(Question((Message("user", text),)), Sampling(0.0, 64))
        return str(answer.content)


class Third:
    """Passes the third trial's answer."""

    expects = "text"

    def __init__(self, effects: Effects) -> None:
        self._effects = effects

    async def evaluate(self, episode: Episode) -> Feedback:
        trial = episode.trials[-1]
        await self._effects.happen(f"verdict {trial.number}")
        passed = trial.attempt.output == "answer 3"
        return Feedback(passed, "" if passed else f"{trial.attempt.output} is wrong", source="third")


class Shelf:
    """A stand-in bank."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        await self._effects.happen("recall")
        return Recall("receipt", (Lesson("l1", "Dig", "Dig deeper.", "success"),), 0, "Known: dig deeper.")

    async def learn(self, episodes: Any) -> Learned:
        return Learned()


async def episode(order: dict[str, Any]) -> str:
    store = (SqliteStore if order["freeze"] else Announced)(order["store"])
    effects = Effects(order["log"])
    own: dict[str, Any] = {"evaluator": Third(effects), "bank": Shelf(effects), "store": store}
    os.environ["KILL_LOG"] = order["log"]

    def freeze(episode: Episode, event: object) -> None:
        if isinstance(event, Acted) and event.trial == 1:
            tell(ready=True)
            os.kill(os.getpid(), signal.SIGSTOP)

    if order["freeze"]:
        own["observers"] = [freeze]
    try:
        if order["resume"]:
            ended = await mulligan.resume(order["resume"], **own)
        else:
            own |= {"actor": f"{__file__}:Digger", "strategy": "reflexion", "trials": 4}
            ended = await mulligan.solve("Dig.", model="openai:gpt-test", **own)
    except mulligan.MulliganError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await store.close()
    return ended.stop.reason if ended.stop else "open"


if __name__ == "__main__":
    serve((*MODELS, "mulligan.reflectors.verbal"), episode, lambda order: Path(order["store"]).with_suffix(".said"))
