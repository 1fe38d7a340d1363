"""What one more episode costs a bank that grows, in each form of the past: CPU of a recall and of learning, and bytes.

    python perf/notebook.py [--most 10000] [--forms notebook,lessons,history] [--kind steps]

Each episode has a refused action with the one that worked (`--kind steps`), or a failed check (`--kind checks`), so one
fact is kept by rule; every tenth replaces a fact of before. No model is asked. CPU is the mean of the last hundred
episodes at each size (of the last ten up to 100), with all threads; bytes are those by which the file of the store grew
since the size before, once its log is folded in.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from mulligan.app.memory import open_bank
from mulligan.core.records import Attempt, Episode, Feedback, Finding, Recall, Step, Stop, Task, Trial
from mulligan.store import open_store
from mulligan.text.evidence import evidence_of

SIZES = (10, 100, 1_000, 10_000)


def a_task(n: int) -> Task:
    return Task(f"How many things stand on shelf {n - 5 if n % 10 == 9 else n}?")


def an_episode(n: int, kind: str, recall: Recall) -> Episode:
    again = n % 10 == 9
    place = n - 5 if again else n
    if kind == "checks":
        asked, value = f"assert count({place}) == '{n} things'", f"'{n} things'"
        failed, passed = Finding(asked, value, "None"), Finding(asked, value, value, passed=True)
        verdicts = (Feedback(one.passed, source="tests", evidence=evidence_of([one])) for one in (failed, passed))
        trials = tuple(Trial(number, Attempt(value), one) for number, one in enumerate(verdicts, 1))
    else:
        worked = f"read shelf_{place} of hall_{place % 37} as list" + (" again" if again else "")
        refused = f"read shelf_{place} of hall_{place % 37} as {'list' if again else 'text'}"
        steps = (Step("", refused, "Error: unknown form"), Step("", worked, f"{n} things stand there"))
        trials = (Trial(1, Attempt(str(n), steps), Feedback(True, "", source="exact_match")),)
    return Episode(f"e{n}", a_task(n), recall=recall, trials=trials, stop=Stop("solved"))


async def measured(form: str, kind: str, most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "m.db")
        bank = open_bank("", store=open_store(file).memory, embedder="none", project="p", settings={"forms": [form]})
        await bank.recall(a_task(0))
        last, bytes_before = 0, folded_size(file)
        recalls, learns = list[float](), list[float]()
        for n in range(most):
            began = time.process_time()
            recall = await bank.recall(a_task(n))
            recalled = time.process_time()
            await bank.learn(an_episode(n, kind, recall))
            recalls.append(1000 * (recalled - began))
            learns.append(1000 * (time.process_time() - recalled))
            if n + 1 in SIZES:
                last_ones = -100 if n >= 100 else -10
                cpu = [statistics.fmean(times[last_ones:]) for times in (recalls, learns)]
                size = folded_size(file)
                grown = (size - bytes_before) / (n + 1 - last)
                print(f"{form:>9} {n + 1:>9,} {cpu[0]:>10.2f} {cpu[1]:>9.2f} {grown:>17,.0f}", flush=True)
                last, bytes_before = n + 1, size
        await bank.close()


def folded_size(file: Path) -> int:
    """Bytes of the file of a store, with what stands in its log."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return file.stat().st_size


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--forms", default="notebook,lessons,history")
    parser.add_argument("--kind", choices=("steps", "checks"), default="steps")
    given = parser.parse_args()
    print(f"{'form':>9} {'episodes':>9} {'recall ms':>10} {'learn ms':>9} {'bytes an episode':>17}")
    for form in given.forms.split(","):
        await measured(form, given.kind, given.most)


if __name__ == "__main__":
    asyncio.run(main())
