"""What the loop itself costs: CPU per trial with journal and store, beside the same without them.

Scripted roles answer at once, so that only the loop is measured. Each trial makes three journal steps (a model
call of a few kB, a check, a model call) and records three events. Aim: 1 ms of CPU per trial.

    python perf/loop.py [--rounds 20] [--synchronous normal|full] [--parallel 1]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mulligan.core.episode import Event, advance
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter, Roles, drive
from mulligan.core.protocols import Journal
from mulligan.core.records import Attempt, Episode, Feedback, Json, Past, Reflection, Step, Task, Usage
from mulligan.recording.journal import NoJournal, StoredJournal
from mulligan.recording.ledger import Ledger
from mulligan.store.sqlite import SqliteStore
from mulligan.store.sqlite.database import Synchronous

TRIALS = 4
EPISODES = 20
PROMPT = "Write a function that returns the sum of two numbers. " * 60
CODE = "def add(a, b):\n    return a - b\n" * 10


@dataclass
class Scripted:
    """All four roles. Each trial fails, with an output of its own, until the last."""

    journal: Journal
    reflects: bool = True
    expects: Literal["text", "code", "workspace"] = "code"

    def past(self, episode: Episode) -> Past:
        return Past(reflections=episode.reflections[-3:])

    async def act(self, episode: Episode, past: Past) -> Attempt:
        lessons = [reflection.text for reflection in past.reflections]
        output = await self._call("model", {"messages": [{"role": "user", "text": PROMPT}, *lessons]}, CODE)
        steps = (Step("I add them up", "write", "done"),)
        return Attempt(f"{output}# {len(episode.trials)}", steps, usage=Usage(900, 100, 1, 0.001))

    async def evaluate(self, episode: Episode) -> Feedback:
        number = episode.trials[-1].number
        text = await self._call("check", {"code": episode.trials[-1].attempt.output}, "add(1, 2) gave -1, not 3")
        return Feedback(number == TRIALS, text, score=number / TRIALS, source="scripted")

    async def reflect(self, episode: Episode) -> Reflection:
        newest = episode.trials[-1]
        asked = {"messages": [{"role": "user", "text": f"{PROMPT}{newest.attempt.output}"}]}
        return Reflection(await self._call("model", asked, "I subtracted; next time add."), Usage(900, 30, 1, 0.001))

    async def _call(self, name: str, request: Json, answer: str) -> str:
        async def do() -> Json:
            return answer

        return await self.journal.step(name, request, do)


def roles(journal: Journal) -> Roles:
    all_four = Scripted(journal)
    return Roles(actor=all_four, evaluator=all_four, reflector=all_four, strategy=all_four)


async def bare(number: int) -> None:
    episode = Episode(f"bare-{number}", Task(PROMPT))

    async def record(event: Event) -> Episode:
        nonlocal episode
        episode = advance(episode, event)
        return episode

    done = await drive(episode, roles(NoJournal()), Limits(), record, Meter())
    assert done.solved
    assert len(done.trials) == TRIALS


async def kept(ledger: Ledger, number: int) -> None:
    episode = Episode(f"kept-{number}", Task(PROMPT), run="perf")
    await ledger.begin(episode, {"tests.py": "assert add(1, 2) == 3"})
    async with ledger.hold(episode.id) as entry:
        done = await drive(episode, roles(StoredJournal(entry)), Limits(), entry.append, Meter())
    assert done.solved
    assert len(done.trials) == TRIALS


async def measured(what: str, rounds: int, play: Callable[[int], Awaitable[None]], parallel: int = 1) -> None:
    """Rounds of EPISODES episodes; other work on the machine makes a round dearer, never cheaper."""
    spent: list[tuple[float, float]] = []
    for round in range(rounds):
        numbers = range(round * EPISODES, (round + 1) * EPISODES)
        cpu, wall = time.process_time(), time.perf_counter()
        for first in numbers[::parallel]:
            await asyncio.gather(*(play(n) for n in range(first, min(first + parallel, numbers.stop))))
        each = EPISODES * TRIALS / 1e3
        spent.append(((time.process_time() - cpu) / each, (time.perf_counter() - wall) / each))
    cpus, walls = zip(*spent, strict=True)
    print(
        f"{what:32} CPU per trial: best {min(cpus):.3f} ms, median {statistics.median(cpus):.3f} ms; "
        f"wall: median {statistics.median(walls):.3f} ms ({rounds} rounds of {EPISODES} episodes, {TRIALS} trials each)"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--synchronous", choices=["normal", "full"], default="normal")
    asked = parser.parse_args()
    synchronous: Synchronous = asked.synchronous

    await measured("loop alone", asked.rounds, bare)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "perf.db", synchronous=synchronous)
        ledger = Ledger(store)
        await kept(ledger, -1)  # opens the file
        what = f"with journal and store, {synchronous}"
        await measured(what, asked.rounds, lambda number: kept(ledger, number), asked.parallel)
        cpu = time.process_time()
        listed = await store.list(limit=50)
        print(f"listing {len(listed)} episodes: {(time.process_time() - cpu) * 1e3:.1f} ms CPU")
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
