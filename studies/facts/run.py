"""Is a fact of more use with the attempt that passed? First attempts at tasks whose fact the prompt has.

    python studies/facts/run.py --into DIR COLLECTION …
    python studies/facts/run.py --into DIR --report

README.md says what is compared, and what was fixed beforehand. A run that was stopped continues by the same command.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "information"))
from figures import add_line, lines
from sets import FAMILIES, families

from mulligan.actors.complete import Complete
from mulligan.app.prompts import FilePrompts
from mulligan.bank.learn.facts import claimed, facts_of
from mulligan.bank.recall.prompt_text import formatted_prompt
from mulligan.bench.streams import _tarnwood
from mulligan.core.rates import mcnemar
from mulligan.core.records import Attempt, Episode, Feedback, Finding, Lesson, Past, Recall, Stop, Task, Trial
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.models.catalog import open_model
from mulligan.sandbox.local import LocalSandbox
from mulligan.text.evidence import evidence_of

KINDS = 12
"""Of functions of a code base in rotation: the task with number n + KINDS is of the kind of task n."""
CODE = "code"
COLLECTIONS = (*FAMILIES, *(f"{CODE}-{seed}" for seed in (3, 5, 7)))


@dataclass(frozen=True)
class Pair:
    """A task, and the first task of its family, which was solved at the second trial.

    Attributes:
        before: the text of the first task.
        checks: its visible asserts, which failed at the first trial.
        passing: the attempt that passed.
        tests: all asserts of the task at hand.
    """

    name: str
    prompt: str
    tests: str
    before: str
    checks: Sequence[str]
    passing: str

    def fact(self) -> Lesson:
        """What the bank keeps of the first task, by its own rules."""
        asked = [Finding(check, got="another value came back") for check in self.checks]
        ended = [replace(one, passed=True) for one in asked]
        trials = (
            Trial(1, Attempt("pass"), Feedback(False, "", source="unit_tests", evidence=evidence_of(asked))),
            Trial(2, Attempt(self.passing), Feedback(True, "", source="unit_tests", evidence=evidence_of(ended))),
        )
        return facts_of(Episode("before", Task(self.before), trials=trials, stop=Stop("solved")), "study")[0]


def pairs(collection: str) -> Iterator[Pair]:
    if collection.startswith(CODE):
        seed = int(collection.rpartition("-")[2])
        for number in range(KINDS, 2 * KINDS):
            first, one = (_tarnwood.task(seed, n, False, KINDS) for n in (number - KINDS, number))
            tests = f"{one.visible}\n{one.hidden}"
            yield Pair(one.name, one.prompt, tests, first.prompt, first.visible.splitlines(), first.solution)
        return
    items = families(collection)
    folder = Path(__file__).parents[1] / "information" / FAMILIES[collection]
    firsts = {item.group: item for item in items[:KINDS]}
    for item in items[KINDS:]:
        first = firsts[item.group]
        (solution,) = folder.glob(f"{item.group}/1_*/solution.py")
        tests, checks = f"{item.visible}\n{item.hidden}", first.visible.strip().splitlines()
        yield Pair(item.name, item.prompt, tests, first.prompt, checks, solution.read_text(encoding="utf-8").strip())


async def run(file: Path, collections: Sequence[str], model_name: str) -> None:
    model, sandbox = open_model(model_name), LocalSandbox(level="auto")
    actor = Complete(model=model, prompts=FilePrompts([]), output="code", max_tokens=400)
    done = {(row["collection"], row["task"], row["shown"]) for row in lines(file)}
    for collection in collections:
        for pair in pairs(collection):
            fact = pair.fact()
            facts = {"checks": replace(fact, content=claimed(fact)), "attempt": fact}
            for shown, one in facts.items():
                if (collection, pair.name, shown) in done:
                    continue
                past = Past(recall=Recall("r", (one,), formatted_prompt=formatted_prompt([one], 1200, "study")))
                attempt = await actor.act(Episode("now", Task(pair.prompt)), past)
                judged = Episode("now", Task(pair.prompt), trials=(Trial(1, attempt),))
                feedback = await UnitTests(pair.tests, sandbox=sandbox).evaluate(judged)
                row = {"collection": collection, "task": pair.name, "shown": shown, "passed": feedback.passed is True}
                add_line(file, {**row, "model": model.id, "attempt": attempt.output, "said": feedback.text[:300]})
                print(collection, pair.name, shown, "passed" if feedback.passed else "failed", flush=True)


def report(file: Path) -> str:
    rows = lines(file)
    out = [
        "| collection | tasks | checks alone | with the attempt | only with | only without | p |",
        f"|---|{'--:|' * 6}",
    ]
    for collection in (*dict.fromkeys(row["collection"] for row in rows), "all"):
        mine = [row for row in rows if collection in ("all", row["collection"])]
        passed = {(row["collection"], row["task"], row["shown"]): bool(row["passed"]) for row in mine}
        tasks = dict.fromkeys((row["collection"], row["task"]) for row in mine)
        both = [(passed[*task, "checks"], passed[*task, "attempt"]) for task in tasks if (*task, "attempt") in passed]
        n = Counter(both)
        checks, attempt = (sum(one[at] for one in both) for at in (0, 1))
        p = mcnemar(n[False, True], n[True, False])
        out.append(
            f"| {collection} | {len(both)} | {checks} | {attempt} | {n[False, True]} | {n[True, False]} | {p:.2g} |"
        )
    return "\n".join([f"Model: {', '.join(dict.fromkeys(row['model'] for row in rows))}", "", *out])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="*", choices=[*COLLECTIONS, []], help="which tasks, in this order")
    parser.add_argument("--into", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--report", action="store_true", help="print the table of what the folder holds")
    asked = parser.parse_args()
    asked.into.mkdir(parents=True, exist_ok=True)
    if not asked.report:
        asyncio.run(run(asked.into / "facts.jsonl", asked.collections, asked.model))
    print(report(asked.into / "facts.jsonl"))
