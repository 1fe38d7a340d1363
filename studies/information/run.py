"""What should the next try be shown? Five arms that go on from one recorded first trial of each task.

    mulligan models pull qwen2.5-coder-1.5b
    nice python studies/information/run.py --set information --store DIR/study.db --part 1/2 &
    nice python studies/information/run.py --set information --store DIR/study.db --part 2/2 &
    python studies/information/run.py --set information --store DIR/study.db --report

A task is tried once (`none`, one trial). Where that fails its visible asserts, each arm forks from the recorded trial
and has three trials in all; where it passes, all arms share the result. The hidden asserts judge after the episode.
A run that was killed at any moment goes on by the same command: an episode that is not over is resumed, and what the
model has answered to the same request is taken from the store. Beside the store, `.scores.jsonl` keeps the verdicts of
the hidden asserts and `.spent.jsonl` the CPU seconds. `--report` writes the tables of what there is, and asks no model.
Run it from a checkout that nobody changes: prompts and code are read afresh for each episode.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from figures import Arms, Hidden, Outcome, add_line, by_task, differences, lines, outcome, table
from sets import SETS, Item, load

import mulligan
from mulligan.app.plugins import find, settings_of
from mulligan.core.codec import digest
from mulligan.core.protocols import Bank, Model
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Episode, Task, Usage
from mulligan.models.catalog import open_model
from mulligan.models.gate import read_result
from mulligan.models.requests import request_of
from mulligan.store.sqlite import SqliteStore

HERE = Path(__file__).parent
TRIALS = 3
SEED = 0
BASES = ("none", "reflexion")
"""The arms that the others are compared with."""
NOTES = (
    "Tokens, calls and CPU seconds of an arm include the shared first trial; an answer that the store had before costs "
    "no CPU. `past`: tokens that the prompt of a later trial has more than that of the first, on average. `visible "
    "only`: the attempt that is handed in passes the visible asserts and not the hidden ones."
)


@dataclass(frozen=True)
class Arm:
    """reflector: None is that of the default, or none."""

    strategy: str
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prompts: Path | None = None
    reflector: str | None = None


def as_it_was() -> Arm:
    """`reflexion` by the prompts and worked examples of commit 174efb1, and every lesson shown as it comes."""
    unchecked = {"check": False} if "check" in settings_of(find("reflectors", "verbal")) else {}
    return Arm("reflexion", {"reflector": unchecked}, HERE / "as_it_was")


ARMS = {
    "none": Arm("none"),
    "last_attempt": Arm("last_attempt"),
    "reflexion": as_it_was(),
    "evidence": Arm("evidence"),
    "evidence_and_reflexion": Arm("evidence_and_reflexion"),
}


class Asked:
    """A model that is asked each question once: what the store has of the same request is the answer again."""

    def __init__(self, inner: Model, store: SqliteStore) -> None:
        self.name, self.id = inner.name, inner.id
        self._inner, self._store = inner, store

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        wanted = digest(request_of(self.id, question, sampling))
        for row in await self._store.benches.answered("model.any", wanted):
            return read_result(row, Usage(**row["usage"]))
        return await self._inner.ask(question, sampling)


@dataclass
class Study:
    """Tasks with one model.

    Attributes:
        ways: the arms by name, of which `arms` are run.
        bank: for reflectors that ask one.
        until: the time of `time.monotonic` after which no task is begun.
        bases: the arms that the others are compared with.
        firsts: the first trials by prompt and visible asserts.
        forks: what goes on from them, by the first's id and the arm.
    """

    store: SqliteStore
    file: Path
    model: Model
    items: Sequence[Item]
    arms: Sequence[str] = tuple(ARMS)
    ways: Mapping[str, Arm] = field(default_factory=lambda: ARMS)
    bank: Bank | None = None
    until: float = float("inf")
    bases: Sequence[str] = BASES
    firsts: dict[tuple[str, str], Episode] = field(default_factory=dict)
    forks: dict[tuple[str, str], Episode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.hidden = Hidden(self.file.with_suffix(".scores.jsonl"))

    async def run(self) -> None:
        await self.read()
        commit = head()
        say(f"{len(self.items)} tasks, {self.model.id}, commit {commit}")
        for number, item in enumerate(self.items, 1):
            if time.monotonic() > self.until:
                say(f"the time is over: {len(self.items) - number + 1} tasks are left out")
                return
            at = f"{number}/{len(self.items)} {item.name}"
            first = await self._drive(item, "first", commit)
            say(f"{at} first: {await self._said(item, first)}")
            ended = [first]
            for arm in self.arms if judged(first) and not first.solved else ():
                ended.append(await self._drive(item, arm, commit, first))
                say(f"{at} {arm}: {await self._said(item, ended[-1])}")
            await self.learn(ended)

    async def learn(self, ended: Sequence[Episode]) -> None:
        """Called with the episodes of each task, the shared first trial before those of the arms."""

    async def _said(self, item: Item, episode: Episode) -> str:
        stop = episode.stop.reason if episode.stop else "cut off"
        told = (
            f"{len(episode.trials)} trials ({stop}), {episode.usage.input_tokens} in, {episode.usage.output_tokens} out"
        )
        if not judged(episode):
            return told
        one = await outcome(item, episode, self.hidden, TRIALS, 0.0)
        return f"{'solved' if one.solved[-1] else 'visible only' if one.visible_only else 'failed'}, {told}"

    async def read(self) -> None:
        """What the store has of this model; of two episodes for the same, the older."""
        for episode in await self.store.list(limit=100_000):
            if self.model.id in episode.head.models.values():
                if episode.forked_from is None:
                    self.firsts[_key(episode)] = episode
                else:
                    self.forks[episode.forked_from, self._arm_of(episode)] = episode

    async def _drive(self, item: Item, arm: str, commit: str, first: Episode | None = None) -> Episode:
        """The episode of this arm, begun or gone on with where it is not over."""
        known = self.first(item) if first is None else self.forks.get((first.id, arm))
        if known and known.over:
            return known
        cpu, since = cpu_seconds(), time.monotonic()
        try:
            if known:
                return await mulligan.resume(known.id, model=self.model, store=self.store, bank=self.bank)
            if first is None:
                return await mulligan.solve(
                    Task(item.prompt),
                    evaluator="unit_tests",
                    settings={
                        "evaluator": {"tests": item.visible},
                        "actor": {"max_tokens": item.max_tokens, "redraw": False},
                    },
                    strategy="none",
                    trials=1,
                    model=self.model,
                    seed=SEED,
                    store=self.store,
                )
            how = self.ways[arm]
            return await mulligan.resume(
                first.id,
                fork=True,
                strategy=how.strategy,
                reflector=how.reflector,
                settings=how.settings,
                bank=self.bank,
                prompts=how.prompts,
                limits={"trials": TRIALS},
                model=self.model,
                store=self.store,
            )
        finally:
            took = {"cpu": round(cpu_seconds() - cpu, 2), "seconds": round(time.monotonic() - since, 2)}
            row = {"set": item.set, "item": item.name, "arm": arm, "model": self.model.id, **took, "commit": commit}
            add_line(self.file.with_suffix(".spent.jsonl"), row)

    def first(self, item: Item) -> Episode | None:
        return self.firsts.get((item.prompt, item.visible))

    def _arm_of(self, episode: Episode) -> str:
        strategy, reflector = (episode.head.settings[role]["name"] for role in ("strategy", "reflector"))
        fitting = (
            name
            for name, arm in self.ways.items()
            if (arm.strategy, arm.reflector or reflector) == (strategy, reflector)
        )
        return next(fitting, strategy)

    async def outcomes(self) -> Arms:
        """Of the tasks that have ended in every arm; all arms share a first trial that passes."""
        await self.read()
        cpu = dict[tuple[str, str, str], float]()
        for row in lines(self.file.with_suffix(".spent.jsonl")):
            if row["model"] == self.model.id:
                of = (row["set"], row["item"], row["arm"])
                cpu[of] = cpu.get(of, 0.0) + row["cpu"]
        arms: dict[str, dict[str, Outcome]] = {arm: {} for arm in self.arms}
        for item in self.items:
            first = self.first(item)
            if first is None or not judged(first):
                continue
            for arm in self.arms:
                episode = first if first.solved else self.forks.get((first.id, arm))
                if episode and episode.stop and episode.stop.reason != "interrupted":
                    took = cpu.get((item.set, item.name, "first"), 0.0)
                    took += 0.0 if episode is first else cpu.get((item.set, item.name, arm), 0.0)
                    arms[arm][item.name] = await outcome(item, episode, self.hidden, TRIALS, took)
        ended = [item.name for item in self.items if all(item.name in outcomes for outcomes in arms.values())]
        return {arm: {name: outcomes[name] for name in ended} for arm, outcomes in arms.items()}

    async def report(self) -> str:
        arms = await self.outcomes()
        spent = lines(self.file.with_suffix(".spent.jsonl"))
        commits = sorted({row["commit"] for row in spent if row["model"] == self.model.id})
        prompts = {
            f"{arm}: {name} {sha[:12]}"
            for (_, arm), episode in self.forks.items()
            for name, sha in episode.head.prompts.items()
        }
        sets = ", ".join(sorted({item.set for item in self.items}))
        most = ", ".join(sorted({str(item.max_tokens) for item in self.items}))
        ended = len(next(iter(arms.values())))
        parts = [
            f"## {sets}, `{self.model.id}`",
            f"{ended} of {len(self.items)} tasks have ended in all arms. {TRIALS} trials, seed {SEED}, an attempt "
            f"has at most {most} tokens. Commit {', '.join(commits) or 'unknown'}. {NOTES}",
            table(arms, TRIALS),
            "Differences in points of tasks solved (hidden asserts), with an interval that draws whole groups "
            f"({len({item.group for item in self.items})} groups), and the exact McNemar test:",
            differences(arms, [arm for arm in self.bases if arm in arms]),
            f"The trial by which each task was solved:\n\n{by_task(arms, TRIALS)}",
            "Prompts of the forks, by sha256:\n\n" + "\n".join(f"- {line}" for line in sorted(prompts)),
        ]
        return "\n\n".join(parts) + "\n"


def judged(episode: Episode) -> bool:
    return any(trial.feedback is not None for trial in episode.trials)


def _key(episode: Episode) -> tuple[str, str]:
    return episode.task.prompt, episode.head.settings["evaluator"]["settings"].get("tests", "")


def cpu_seconds() -> float:
    """Of this process with its threads, and of its children that have ended."""
    return sum(os.times()[:4])


def head() -> str:
    ran = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True)
    return ran.stdout.strip() or "unknown"


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="information")
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--store", type=Path, required=True, help="several sets and models may share one")
    parser.add_argument("--part", default="1/1", help="of the tasks, such as 1/2 and 2/2 in two processes side by side")
    parser.add_argument("--arms", default=",".join(ARMS), help=f"some of {', '.join(ARMS)}")
    parser.add_argument("--limit", type=int, help="only the first N tasks")
    parser.add_argument("--data", help="where HumanEval is, if MULLIGAN_DATA does not say")
    parser.add_argument("--report", action="store_true", help="write the tables of what the store holds, beside it")
    asked = parser.parse_args()
    number, _, parts = asked.part.partition("/")
    items = load(asked.set, asked.data)[: asked.limit][int(number) - 1 :: int(parts)]
    store = SqliteStore(asked.store)
    try:
        study = Study(store, asked.store, Asked(open_model(asked.model), store), items, asked.arms.split(","))
        if not asked.report:
            await study.run()
            return
        text, model = await study.report(), asked.model.rpartition(":")[2]
        asked.store.with_suffix(f".{asked.set}.{model}.md").write_text(text, encoding="utf-8")
        print(text)
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
