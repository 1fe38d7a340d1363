"""What one more episode costs a bank that grows, in each form of the past: CPU of a recall and of learning, and bytes.

    python perf/notebook.py [--sizes 10,100,1000,10000] [--forms notebook,lessons,history] [--kind steps]

Each episode has a refused action with the one that worked (`--kind steps`), or a failed check (`--kind checks`), so one
fact is kept by rule; every tenth replaces a fact of before. No model is asked. A bank of the largest size is made once,
and copied on the way; then each form goes on in copies of all sizes, an episode each in turn, so that whatever else the
machine does slows all sizes alike. CPU is the mean of fifty episodes (of five at 10), with all threads; bytes are those
by which the file of the store grows, once its log is folded in.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from mulligan import Bank
from mulligan.app.memory import open_bank
from mulligan.core.records import Attempt, Episode, Feedback, Finding, Recall, Step, Stop, Task, Trial
from mulligan.store import open_store
from mulligan.text.evidence import evidence_of


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


def a_bank(file: Path, form: str) -> Bank:
    return open_bank("", store=open_store(file).memory, embedder="none", project="p", settings={"forms": [form]})


async def one_more(bank: Bank, n: int, kind: str) -> tuple[float, float]:
    """Milliseconds of CPU of the recall and of learning."""
    began = time.process_time()
    recall = await bank.recall(a_task(n))
    recalled = time.process_time()
    await bank.learn(an_episode(n, kind, recall))
    return 1000 * (recalled - began), 1000 * (time.process_time() - recalled)


async def make(folder: Path, sizes: Sequence[int], kind: str) -> None:
    """Banks of these sizes, each in its file."""
    file = folder / "growing.db"
    async with a_bank(file, "notebook") as bank:
        for n in range(max(sizes)):
            await one_more(bank, n, kind)
            if n + 1 in sizes:
                folded_size(file)
                shutil.copyfile(file, folder / f"{n + 1}.db")


async def measure(folder: Path, sizes: Sequence[int], kind: str, form: str) -> None:
    files = {size: folder / f"{form}-{size}.db" for size in sizes}
    for size, file in files.items():
        shutil.copyfile(folder / f"{size}.db", file)
    banks = {size: a_bank(file, form) for size, file in files.items()}
    for bank in banks.values():
        await bank.recall(a_task(0), counted=False)  # the first recall of a process reads the bank
    before = {size: folded_size(file) for size, file in files.items()}
    cpu: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    for turn in range(50):
        for size, bank in banks.items():
            if turn < size // 2:
                cpu[size].append(await one_more(bank, size + turn, kind))
    for size, bank in banks.items():
        recalls, learns = zip(*cpu[size], strict=True)
        grown = (folded_size(files[size]) - before[size]) / len(recalls)
        row = (
            f"{form:>9} {size:>9,} {statistics.fmean(recalls):>10.2f} {statistics.fmean(learns):>9.2f} {grown:>17,.0f}"
        )
        print(row, flush=True)
        await bank.close()


def folded_size(file: Path) -> int:
    """Bytes of the file of a store, with what stands in its log."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return file.stat().st_size


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10,100,1000,10000")
    parser.add_argument("--forms", default="notebook,lessons,history")
    parser.add_argument("--kind", choices=("steps", "checks"), default="steps")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    print(f"{'form':>9} {'episodes':>9} {'recall ms':>10} {'learn ms':>9} {'bytes an episode':>17}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await make(folder, sizes, given.kind)
        for form in given.forms.split(","):
            await measure(folder, sizes, given.kind, form)


if __name__ == "__main__":
    asyncio.run(main())
