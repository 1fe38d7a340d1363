"""Six arms that go on from one recorded first trial of each task: README.md fixes what is compared, and how.

    nice python studies/adaptive/run.py --stream information --into DIR --hours 3 &
    nice python studies/adaptive/run.py --stream ability --into DIR --hours 3 &
    python studies/adaptive/run.py --report --into DIR

The same command continues a run that was killed at any moment. It reuses `studies/information/run.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "information"))
from figures import Arms, Outcome, differences
from run import Arm, Asked, Study
from sets import Item, load

from mulligan.app.memory import open_bank
from mulligan.app.plugins import names
from mulligan.bank.bank import Bank as LessonBank
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode
from mulligan.models.catalog import open_model
from mulligan.store.sqlite import SqliteStore

ARMS: Mapping[str, Arm] = {
    "plain": Arm("reflexion", reflector="verbal"),
    "layered": Arm("reflexion", reflector="layered"),
    "contrastive": Arm("reflexion", reflector="contrastive"),
    "resampling": Arm("none"),
    "default": Arm("evidence_and_reflexion", reflector="verbal"),
    "adaptive": Arm(str(Path(__file__).parents[2] / "examples" / "thompson_strategy.py"), reflector="verbal"),
}
STREAMS: Mapping[str, Sequence[str]] = {"information": ("information",), "ability": ("tasks_b", "humaneval")}
BASES = ("plain", "default")
MARGIN = 10.0
"""Points of the tasks whose first trial failed, by which `adaptive` may be below the best fixed arm."""


class Stream(Study):
    """A study whose bank takes in what was solved, for the reflector that looks for a partner."""

    async def learn(self, ended: Sequence[Episode]) -> None:
        for arm, episode in zip(("first", *self.arms), ended, strict=False):
            if isinstance(self.bank, LessonBank) and arm in ("first", "contrastive") and episode.solved:
                await self.bank.learn(episode)

    async def chosen(self) -> str:
        """How often `adaptive` chose each of its arms, and how often that passed."""
        tried, passed = Counter[str](), Counter[str]()
        for (_, arm), episode in self.forks.items():
            for trial in episode.trials if arm == "adaptive" else ():
                if trial.attempt.choice and trial.feedback:
                    tried[trial.attempt.choice.arm] += 1
                    passed[trial.attempt.choice.arm] += trial.feedback.passed is True
        rows = [f"| `{arm}` | {count} | {passed[arm]} |" for arm, count in tried.most_common()]
        return "\n".join(["| arm of `adaptive` | chosen | passed |", "|---|--:|--:|", *rows])

    def fallbacks(self) -> str:
        """The share of the contrastive reflections that say in a note that they had no partner."""
        notes = [
            trial.reflection.notes
            for (_, arm), episode in self.forks.items()
            if arm == "contrastive"
            for trial in episode.trials
            if trial.reflection and trial.reflection.text
        ]
        plain = sum(any("plain" in note for note in several) for several in notes)
        return f"Contrastive reflections that fell back to plain: {plain} of {len(notes)}."


def best_and_worst(arms: Arms) -> str:
    """`adaptive` beside the best and the worst fixed arm, on the tasks whose first trial failed."""
    left: dict[str, dict[str, Outcome]] = {
        arm: {name: one for name, one in outcomes.items() if not one.solved[0]} for arm, outcomes in arms.items()
    }
    won = {arm: sum(one.solved[-1] for one in outcomes.values()) for arm, outcomes in left.items()}
    n, fixed = len(left["adaptive"]), {arm: count for arm, count in won.items() if arm != "adaptive"}
    if not n or not fixed:
        return "No task has ended in all arms whose first trial failed."
    best, worst = max(fixed, key=lambda arm: fixed[arm]), min(fixed, key=lambda arm: fixed[arm])
    gap = 100 * (won["adaptive"] - won[best]) / n
    return "\n\n".join(
        (
            f"Of {n} tasks whose first trial failed, `adaptive` solved {won['adaptive']}, the best fixed arm `{best}` "
            f"{won[best]}, the worst `{worst}` {won[worst]}: {gap:+.1f} points to the best "
            f"({'near' if gap >= -MARGIN else 'not near'} it, by the margin of {MARGIN:g}), "
            f"{'above' if won['adaptive'] > won[worst] else 'not above'} the worst.",
            differences({"adaptive": left["adaptive"], best: left[best]}, [best]),
        )
    )


def study(stream: str, into: Path, model: str, items: Sequence[Item], arms: Sequence[str], hours: float) -> Stream:
    """The study of a stream, on a store of its own."""
    into.mkdir(parents=True, exist_ok=True)
    file = into / f"{stream}.db"
    store = SqliteStore(file)
    asked = Asked(open_model(model), store)
    bank = open_bank("contrastive", store=store.memory) if "contrastive" in arms else None
    until = time.monotonic() + hours * 3600
    return Stream(store, file, asked, items, arms, ARMS, bank, until, BASES)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stream", choices=STREAMS, help="left out: both, one after the other")
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--into", type=Path, required=True, help="the folder of the stores")
    parser.add_argument("--hours", type=float, default=3.0, help="no task is begun after this time")
    parser.add_argument("--arms", default=",".join(ARMS), help=f"some of {', '.join(ARMS)}")
    parser.add_argument("--limit", type=int, help="only the first N tasks of a stream, to try the script out")
    parser.add_argument("--data", help="where HumanEval is, if MULLIGAN_DATA does not say")
    parser.add_argument("--report", action="store_true", help="print the tables of what the stores hold")
    asked = parser.parse_args()
    arms = asked.arms.split(",")
    for arm in arms:
        if (reflector := ARMS[arm].reflector) and reflector not in names("reflectors"):
            raise InvalidInput(f"The arm {arm} needs the reflector {reflector}, which is not here.")
    both: dict[str, dict[str, Outcome]] = {arm: {} for arm in arms}
    for stream in [asked.stream] if asked.stream else STREAMS:
        items = [item for name in STREAMS[stream] for item in load(name, asked.data)][: asked.limit]
        one = study(stream, asked.into, asked.model, items, arms, asked.hours)
        try:
            if not asked.report:
                await one.run()
                continue
            found = await one.outcomes()
            print(await one.report(), await one.chosen(), one.fallbacks(), best_and_worst(found), sep="\n\n")
            for arm, outcomes in found.items():
                both[arm] |= outcomes
        finally:
            await (one.bank.close() if isinstance(one.bank, LessonBank) else one.store.close())
    if asked.report:
        print(f"\n## Both streams\n\n{best_and_worst(both)}")


if __name__ == "__main__":
    asyncio.run(main())
