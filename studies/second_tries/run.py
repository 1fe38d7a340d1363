"""Which strategy solves more: twenty tasks with each strategy, solved by trial. `tasks/` are hard, `tasks_b/` easier.

    mulligan models pull qwen2.5-coder-1.5b
    python studies/second_tries/run.py --tasks tasks_b --store second-tries-b.db

The episodes are recorded in the store, and the same command continues a run that was stopped. All strategies begin with
the same greedy attempt, so the model is asked for it once (by the hash of the whole request).
`--report` prints the table of what the store holds, without a model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import mulligan
from mulligan.core.codec import digest, from_json, to_json
from mulligan.core.protocols import Model
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Episode
from mulligan.models.catalog import open_model
from mulligan.store.sqlite import SqliteStore

HERE = Path(__file__).parent
STRATEGIES = ("none", "last_attempt", "reflexion", "last_attempt_and_reflexion")
TRIALS = 3


class Remembered:
    """A model that is asked each question once; answers are kept in a JSONL file."""

    def __init__(self, inner: Model, file: Path) -> None:
        self.name, self.id = inner.name, inner.id
        self._inner = inner
        self._file = file
        lines = file.read_text().splitlines() if file.exists() else []
        self._answers = {row["key"]: row["answer"] for row in map(json.loads, lines)}

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        key = digest([self.id, to_json(question), to_json(sampling)])
        if key not in self._answers:
            self._answers[key] = to_json(await self._inner.ask(question, sampling))
            with self._file.open("a") as out:
                out.write(json.dumps({"key": key, "answer": self._answers[key]}) + "\n")
        return from_json(Answer, self._answers[key])


def run_name(episode: Episode) -> tuple[str, str]:
    """The task folder and the strategy that an episode was about."""
    settings = episode.head.settings
    tests = Path(settings["evaluator"]["settings"]["tests"]["file"])
    return tests.parent.name, settings["strategy"]["name"]


async def recorded(store: SqliteStore) -> dict[tuple[str, str], Episode]:
    return {run_name(e): e for e in await store.list(limit=10_000) if e.stop}


async def run(model: Model, store: SqliteStore, folders: Sequence[Path]) -> None:
    done = await recorded(store)
    for folder in folders:
        name = folder.name
        for strategy in STRATEGIES:
            if (name, strategy) in done:
                continue
            episode = await mulligan.solve(folder, model=model, strategy=strategy, trials=TRIALS, store=store)
            ended = episode.stop.reason if episode.stop else "?"
            print(f"{name:20} {strategy:28} {ended:10} {len(episode.trials)} trials, {episode.usage.tokens} tokens")


def solved_by(episode: Episode, trial: int) -> bool:
    return episode.solved and episode.trials[-1].number <= trial


def report(done: dict[tuple[str, str], Episode]) -> str:
    """A Markdown table: tasks solved by trial, and the tokens that it took, by strategy."""
    heads = {head for e in done.values() for head in e.head.models.values()}
    lines = [f"Model: {', '.join(f'`{h}`' for h in sorted(heads))}", ""]
    lines.append(
        "| strategy | tasks | " + " | ".join(f"by trial {n}" for n in range(1, TRIALS + 1)) + " | tokens | erred |"
    )
    lines.append("|---|--:|" + "--:|" * (TRIALS + 2))
    for strategy in STRATEGIES:
        mine = [e for (_, s), e in done.items() if s == strategy]
        counts = " | ".join(str(sum(solved_by(e, n) for e in mine)) for n in range(1, TRIALS + 1))
        erred = sum(e.stop is not None and e.stop.reason == "error" for e in mine)
        lines.append(f"| `{strategy}` | {len(mine)} | {counts} | {sum(e.usage.tokens for e in mine)} | {erred} |")
    lines += ["", "| task | " + " | ".join(f"`{s}`" for s in STRATEGIES) + " |", "|---|" + "--:|" * len(STRATEGIES)]
    for name in sorted({task for task, _ in done}):
        cells = [done.get((name, s)) for s in STRATEGIES]
        said = [str(e.trials[-1].number) if e and e.solved else "–" for e in cells]
        lines.append(f"| {name} | {' | '.join(said)} |")
    return "\n".join(lines)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--tasks", default="tasks_b", help="the folder of tasks: tasks or tasks_b")
    parser.add_argument("--store", type=Path, default=Path("second-tries-b.db"))
    parser.add_argument("--part", default="1/1", help="of the tasks, such as 1/2 and 2/2 in two processes side by side")
    parser.add_argument("--report", action="store_true", help="print the table of what the store holds")
    asked = parser.parse_args()
    store = SqliteStore(asked.store)
    if not asked.report:
        model = Remembered(open_model(asked.model), asked.store.with_suffix(".answers.jsonl"))
        number, _, parts = asked.part.partition("/")
        folders = sorted(folder for folder in (HERE / asked.tasks).iterdir() if folder.is_dir())
        await run(model, store, folders[int(number) - 1 :: int(parts)])
    print(report(await recorded(store)))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
