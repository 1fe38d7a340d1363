"""Admission by replay over the streams, with wrong lessons planted among the right ones: studies/admission/README.md.

MULLIGAN_HOME=DIR python studies/admission/run.py [FAMILY …] [--tasks 36] [--seed 0] [--rules]
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import random
from collections.abc import Sequence
from typing import Any

from mulligan.app.memory import open_bank
from mulligan.bank.learn import learning
from mulligan.bench.harness.stream import Arm, run_stream
from mulligan.bench.report.stream import StreamReport, read_stream
from mulligan.bench.streams.reader import FAMILIES, Reader, code, game
from mulligan.bench.streams.reader.facts import Fact
from mulligan.core.lessons import Lesson, Selection
from mulligan.core.rates import rate
from mulligan.core.records import Json
from mulligan.running import load, open_store

LESSONS: dict[str, Json] = {
    "forms": ["lessons"],
    "reader": "",
    "learn_share": 1.0,
    "embedder": "none",
    "top_k": 40,  # this and the next two: so that what is recalled does not depend on the search
    "threshold": 0.0,
    "tokens": 3000,
}
REPLAY: dict[str, Json] = {**LESSONS, "admission": "replay"}
TAG = "planted"
RIGHT = 1
"""Right lessons in an answer, at most: of three, two are wrong."""
STATES = ("active", "retired", "quarantined", "superseded")


class Honest(Reader):
    """The scripted reader, which states at most `RIGHT` facts when it is asked for lessons."""

    plants = False
    """Whether wrong lessons stand in each answer, too."""

    def __init__(self, family: str) -> None:
        super().__init__(family)
        self.name = self.id = f"{type(self).__name__.lower()}-{family}"
        self._kind = family
        self._earlier: dict[str, Sequence[Fact]] = {}

    def _thought(self, text: str, properties: Any) -> dict[str, Json]:
        answer = super()._thought(text, properties)
        if not answer.get("lessons"):
            return answer
        seen, draw = list(self._seen(text).items()), random.Random(text)
        lessons: list[Json] = list(answer["lessons"])[:RIGHT]
        step, others = seen[0][1][0], [one for one in self._earlier.items() if one[0] not in dict(seen)]
        observed = draw.choice([(title, facts) for title, (_, facts) in seen])
        for title, facts in (observed, *draw.sample(others, min(1, len(others)))) if self.plants else ():
            content = "\n".join(wrong(self._kind, fact, draw) for fact in facts)
            texts = {"title": title, "description": "In any task of this world", "content": content}
            lesson: Json = {"steps": [step], "nature": "fact", **texts, "tags": [TAG], "kind": ""}
            lessons.insert(draw.randint(0, len(lessons)), lesson)
        self._earlier |= {title: facts for title, (_, facts) in seen}
        return {**answer, "lessons": lessons}


class Planting(Honest):
    """The same, with two wrong lessons in each answer, at random places: a fact that it saw with another value, and one
    of an earlier task with another value."""

    plants = True


def wrong(family: str, fact: Fact, draw: random.Random) -> str:
    """The sentence of this fact with a value that could be true, and is not."""
    if family == "game":
        other = draw.choice([side for side in game.SIDES if side != fact.value])
    elif family == "code":
        other = _other_form(fact, draw)
    else:
        letters = [one for one in fact.value if one.isalnum()]
        other = fact.value
        while other == fact.value:
            shuffled = iter(draw.sample(letters, len(letters)))
            other = "".join(next(shuffled) if one.isalnum() else one for one in fact.value)
            letters = letters if len(set(letters)) > 1 else [*letters[:-1], draw.choice("abcdefgh")]
    return fact.sentence[::-1].replace(fact.value[::-1], other[::-1], 1)[::-1]


def _other_form(fact: Fact, draw: random.Random) -> str:
    """What a function of this kind would return in another code base."""
    convention = next(one for one in code.conventions() if one.suffix == fact.key[0])
    call = fact.sentence.removeprefix("assert ").rpartition(" == ")[0]
    arguments = ast.literal_eval(f"({call.partition('(')[2].rpartition(')')[0]},)")
    others = {repr(convention.result(value, arguments)) for value in convention.values} - {fact.value}
    return draw.choice(sorted(others))


async def no_rules(*_: object) -> tuple[str, ...]:
    """In place of the rules that learn facts, so that what is known comes from the lessons alone."""
    return ()


async def ran(family: str, model: Reader, arms: Sequence[Arm], tasks: int, seed: int) -> StreamReport:
    settings: Any = {"benchmark": {"tasks": tasks, "seed": seed}}
    run = await run_stream(f"stream:{family}", arms=[Arm("none"), *arms], orders=1, model=model, settings=settings)
    async with open_store(load().store) as store:
        return await read_stream(store, run.id)


def is_admitted(lesson: Lesson) -> bool:
    return lesson.state in ("active", "superseded")


async def studied(family: str, tasks: int, seed: int, *, listed: bool) -> tuple[list[Lesson], list[str]]:
    """The lessons of the arm that tries them, and a row of the table."""
    honest = await ran(family, Honest(family), [Arm("right", LESSONS)], tasks, seed)
    arms = [Arm("planted", LESSONS), Arm("replay", REPLAY)]
    report = await ran(family, Planting(family), arms, tasks, seed)
    scores = {arm.arm: arm.score or 0.0 for arm in (*honest.arms, *report.arms)}
    async with open_bank(f"{report.run.id}-replay-1", embedder="none") as bank:
        lessons = list(await bank.list(Selection(STATES, limit=None)))
        balance = await bank.balance()
        assert not await bank.pending(), "a replay was not done"
    drawn = [one for one in lessons if one.origin.by != "rule"]
    for one in reversed(drawn) if listed else ():
        print(one.state, TAG if TAG in one.tags else "right", repr(one.content), one.context.get("admission"), sep="; ")
    gain = {name: score - scores["none"] for name, score in scores.items()}
    right = [one for one in drawn if TAG not in one.tags]
    bad = [one for one in drawn if TAG in one.tags]
    row = [
        family,
        f"{sum(map(is_admitted, bad))} of {len(bad)}",
        f"{sum(map(is_admitted, right))} of {len(right)}",
        f"{scores['none']:.3f}",
        *(f"{gain[name]:+.3f}" for name in ("right", "planted", "replay")),
        f"{gain['replay'] / gain['right']:.0%}" if gain["right"] else "-",
        f"{balance.task_tokens:,}",
        f"{balance.replay_tokens:,}",
    ]
    return bad, row


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=[*FAMILIES])
    parser.add_argument("--tasks", type=int, default=36)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lessons", action="store_true", help="print each lesson with what came of it")
    parser.add_argument("--rules", action="store_true", help="let rules learn facts, too")
    given = parser.parse_args()
    if not given.rules:
        learning.Learning._learn_facts = no_rules  # type: ignore[method-assign]  # pyright: ignore
    heads = ("stream", "wrong admitted", "right admitted", "none", "right", "planted", "replay", "kept", "tokens")
    print(f"| {' | '.join(heads)} | of replays |\n|---|{'--:|' * 9}", flush=True)
    bad: list[Lesson] = []
    for family in given.families:
        found, row = await studied(family, given.tasks, given.seed, listed=given.lessons)
        bad += found
        print(f"| {' | '.join(row)} |", flush=True)
    print(f"\nWrong lessons admitted: {rate(sum(map(is_admitted, bad)), len(bad))}")


if __name__ == "__main__":
    asyncio.run(main())
