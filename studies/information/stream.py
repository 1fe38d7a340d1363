"""Does what was learned from one task reach the next? The families in rotation, with and without a bank.

    nice python studies/information/stream.py --into DIR &
    nice python studies/information/stream.py --into DIR --memory &
    python studies/information/stream.py --into DIR --report

The first task of each family comes first, then the second of each, then the third. The stream runs twice, with one
trial for each task and then with three; each time `--memory` begins with an empty bank, recalls before each task and
learns after it, as `mulligan solve --memory` does. Nothing else is set but the length of an attempt. A stream that was
killed goes on by the same command. README.md names the test.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

sys.path.insert(0, str(Path(__file__).parent))
from figures import Hidden, Outcome, by_task, differences, outcome
from run import SEED, Asked, head, judged, say
from sets import FAMILIES, Item, load

import mulligan
from mulligan.app.memory import open_bank
from mulligan.app.teaching import teach
from mulligan.bench.report.statistics import clustered
from mulligan.bench.streams.stream import AT_TRIAL
from mulligan.core.codec import to_json
from mulligan.core.home import home
from mulligan.core.lessons import Selection
from mulligan.core.protocols import Model
from mulligan.core.records import Episode, LessonState, Task, Usage
from mulligan.models.catalog import open_model
from mulligan.store.sqlite import SqliteStore

TRIALS = (1, 3)
"""Of the two times that the stream runs."""
FIRSTS = 12
"""Tasks that are the first of their family, before which a bank holds nothing of it."""


@dataclass
class Stream:
    """The runs of one model in one folder. done: the episodes by task, number of trials, and whether with a bank."""

    folder: Path
    store: SqliteStore
    model: Model
    items: Sequence[Item]
    done: dict[tuple[str, int, bool], Episode] = field(default_factory=dict)

    async def run(self, trials: int, memory: bool) -> None:
        await self.read()
        hidden = Hidden(self.folder / "stream.scores.jsonl")
        over = [e for item in self.items if (e := self.over(item, trials, memory))]
        say(f"{trials} trials, {'with' if memory else 'without'} memory, {self.model.id}, commit {head()}")
        if memory and over:  # the process may have been killed before it had learned from the last one
            bank = open_bank(agent(trials), model=self.model)
            await teach(bank, over[-1], say)
            await bank.close()
        for number, item in enumerate(self.items, 1):
            if self.over(item, trials, memory):
                continue
            episode = await self._drive(item, trials, memory)
            told = "not judged"
            if judged(episode):
                one = await outcome(item, episode, hidden, trials, 0.0)
                told = "solved" if one.solved[-1] else "visible only" if one.visible_only else "failed"
            recalled = len(episode.recall.lessons) if episode.recall else 0
            say(f"{number}/{len(self.items)} {item.name}: {told}, {len(episode.trials)} trials, {recalled} recalled")

    async def _drive(self, item: Item, trials: int, memory: bool) -> Episode:
        known = self.done.get((item.name, trials, memory))
        if known:
            return await mulligan.resume(known.id, model=self.model, store=self.store, notice=say)
        return await mulligan.solve(
            Task(item.prompt),
            evaluator="unit_tests",
            settings={"evaluator": {"tests": item.visible}, "actor": {"max_tokens": item.max_tokens}},
            trials=trials,
            bank=agent(trials) if memory else None,
            model=self.model,
            seed=SEED,
            store=self.store,
            notice=say,
        )

    def over(self, item: Item, trials: int, memory: bool) -> Episode | None:
        episode = self.done.get((item.name, trials, memory))
        return episode if episode and episode.over else None

    async def read(self) -> None:
        names = {(item.prompt, item.visible): item.name for item in self.items}
        for episode in await self.store.list(limit=100_000):
            settings: Mapping[str, Any] = episode.head.settings
            name = names.get((episode.task.prompt, settings["evaluator"]["settings"].get("tests", "")))
            if name and self.model.id in episode.head.models.values():
                self.done[name, settings["limits"]["trials"], settings["bank"] is not None] = episode

    async def report(self) -> str:
        await self.read()
        hidden = Hidden(self.folder / "stream.scores.jsonl")
        parts = [f"## The stream, `{self.model.id}`", NOTES]
        heads = (
            "| trials | memory | tasks | at trial 1: first of a family | at trial 1: second and third | in the end | "
        )
        rows = [heads + "visible only | with lessons | tokens in | tokens out | calls |", "|--:|---|" + "--:|" * 9]
        for trials in TRIALS:
            arms = {name: await self._outcomes(trials, memory, hidden) for name, memory in ARMS.items()}
            both = [item.name for item in self.items if all(item.name in ended for ended in arms.values())]
            arms = {name: {task: ended[task] for task in both} for name, ended in arms.items()}
            rows += [self._row(trials, name, ended) for name, ended in arms.items() if ended]
            later = {name: self._later(ended) for name, ended in arms.items()}
            if any(later.values()):
                parts += [
                    f"### {trials} trial{'s' if trials > 1 else ''}: the second and third tasks, solved at trial 1",
                    differences(later, ["without"]),
                    by_task(arms, trials),
                    self._shown(trials, arms),
                ]
        parts.insert(2, "\n".join(rows))
        return "\n\n".join([*parts, *[await self._learned(trials) for trials in TRIALS]]) + "\n"

    async def _outcomes(self, trials: int, memory: bool, hidden: Hidden) -> dict[str, Outcome]:
        ended = {item.name: (item, self.over(item, trials, memory)) for item in self.items}
        return {
            name: await outcome(item, episode, hidden, trials, 0.0)
            for name, (item, episode) in ended.items()
            if episode and judged(episode)
        }

    def _later(self, ended: Mapping[str, Outcome]) -> dict[str, Outcome]:
        """The second and third tasks of the families, as if there had been one trial."""
        names = [item.name for item in self.items[FIRSTS:]]
        return {name: replace(ended[name], solved=ended[name].solved[:1]) for name in names if name in ended}

    def _row(self, trials: int, name: str, ended: Mapping[str, Outcome]) -> str:
        first = {item.name for item in self.items[:FIRSTS]}
        mine, used = list(ended.values()), sum((one.usage for one in ended.values()), Usage())
        at_first = [one.solved[0] for one in mine if one.item.name in first]
        later = [one.solved[0] for one in self._later(ended).values()]
        recalls = [e.recall for task in ended if (e := self.done[task, trials, ARMS[name]])]
        told = [f"{sum(at_first)} of {len(at_first)}", f"**{sum(later)}** of {len(later)}"]
        told += [str(sum(one.solved[-1] for one in mine)), str(sum(one.visible_only for one in mine))]
        told += [str(sum(bool(recall and recall.lessons) for recall in recalls))]
        told += [f"{used.input_tokens:,}", f"{used.output_tokens:,}", str(used.calls)]
        return f"| {trials} | {name} | {len(mine)} | {' | '.join(told)} |"

    def _shown(self, trials: int, arms: Mapping[str, Mapping[str, Outcome]]) -> str:
        """What the memory gained or lost in the tasks where it showed something, by the points of a coding stream."""
        recalls = {task: self.done[task, trials, True].recall for task in arms["with"]}
        shown = [task for task, recall in recalls.items() if recall and recall.lessons]
        if not shown:
            return "In no task was anything shown."
        sides = {name: [arms[name][task] for task in shown] for name in ARMS}
        points = {name: [_points(one) for one in side] for name, side in sides.items()}
        tokens = {
            name: sum(one.usage.input_tokens + one.usage.output_tokens for one in side) for name, side in sides.items()
        }
        pairs = zip(points["with"], points["without"], strict=True)
        found = clustered([ours - theirs for ours, theirs in pairs], [one.item.group for one in sides["with"]])
        interval = "" if found.low is None else f" ({found.low:+.3f} to {found.high:+.3f}, clustered by family)"
        means = {name: sum(values) / len(values) for name, values in points.items()}
        return (
            f"Something was shown in {len(shown)} tasks: points {means['without']:.3f} without memory and "
            f"{means['with']:.3f} with it, {found.value:+.3f}{interval}; "
            f"tokens {tokens['without']:,} without and {tokens['with']:,} with it."
        )

    async def _learned(self, trials: int) -> str:
        """What the bank holds in the end, a bullet each, with the task that it came from."""
        bank = open_bank(agent(trials))
        try:
            lessons = await bank.list(Selection(get_args(LessonState), limit=None))
        finally:
            await bank.close()
        names = {item.prompt: item.name for item in self.items}
        lines = [f"### Learned in the stream of {trials} trial{'s' if trials > 1 else ''}: {len(lessons)}", ""]
        for lesson in lessons:
            told: Mapping[str, Any] = to_json(lesson)
            kind = told.get("nature", "strategy") + ("" if told.get("confirmed", True) else ", unconfirmed")
            source = next((name for prompt, name in names.items() if prompt.strip() == lesson.query.strip()), "")
            content = " ".join(lesson.content.split())
            lines.append(f"- {kind}, {lesson.state}, from {source or 'several'}: **{lesson.title}** {content}")
        return "\n".join(lines)


ARMS = {"without": False, "with": True}
NOTES = (
    "Solved: the hidden asserts pass. Tokens and calls are those of the episodes, without those of learning. The test "
    "named beforehand is the exact McNemar test on the 24 second and third tasks, solved at trial 1, with one trial "
    "each. The interval draws whole families."
)


def _points(one: Outcome) -> float:
    """The share of the points: 1 for a task solved by the first try, 0.5 by the second, 0.2 by the third."""
    return AT_TRIAL[one.trials - 1] / AT_TRIAL[0] if one.solved[-1] else 0.0


def agent(trials: int) -> str:
    return f"stream-{trials}"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, required=True, help="the folder that holds the store with the bank")
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b", help="one model for each folder")
    parser.add_argument("--set", choices=FAMILIES, default="information", help="one set for each folder")
    parser.add_argument("--memory", action="store_true", help="with the bank; else without")
    parser.add_argument("--trials", type=int, choices=TRIALS, help="one of the two streams (default: both)")
    parser.add_argument("--report", action="store_true", help="write report.md of what the folder holds")
    asked = parser.parse_args()
    os.environ.setdefault("MULLIGAN_MODELS", str(home() / "models"))
    os.environ["MULLIGAN_HOME"] = str(asked.into.resolve())  # where a bank that is named by its agent is opened
    asked.into.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(asked.into / "mulligan.db")
    try:
        stream = Stream(asked.into, store, Asked(open_model(asked.model), store), load(asked.set))
        if asked.report:
            text = await stream.report()
            (asked.into / "report.md").write_text(text, encoding="utf-8")
            print(text)
            return
        for trials in [asked.trials] if asked.trials else TRIALS:
            await stream.run(trials, asked.memory)
    finally:
        await store.close()


if __name__ == "__main__":
    asyncio.run(main())
