"""What one more episode costs a bank whose notebook grows: CPU of a recall and of learning, and bytes in the file.

    python perf/notebook.py [--most 10000]

Each episode has a refused action with the one that worked, so one fact is kept by rule; every tenth replaces a fact
of before. No model is asked. The last hundred episodes at each size are measured, the median of each.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from mulligan.app.memory import open_bank
from mulligan.core.records import Attempt, Episode, Feedback, Step, Stop, Task, Trial
from mulligan.store import open_store

SIZES = (10, 100, 1_000, 10_000)


def an_episode(n: int) -> Episode:
    place = n - 5 if n % 10 == 9 else n
    worked = f"read shelf_{place} of hall_{place % 37} as list" + (" again" if n % 10 == 9 else "")
    refused = f"read shelf_{place} of hall_{place % 37} as {'list' if n % 10 == 9 else 'text'}"
    steps = (Step("", refused, "Error: unknown form"), Step("", worked, f"{n} things stand there"))
    trial = Trial(1, Attempt(str(n), steps), Feedback(True, "", source="exact_match"))
    return Episode(f"e{n}", Task(f"How many things stand on shelf {place}?"), trials=(trial,), stop=Stop("solved"))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=SIZES[-1])
    most = parser.parse_args().most
    print(f"{'episodes':>9} {'recall ms':>10} {'learn ms':>9} {'bytes an episode':>17}")
    with tempfile.TemporaryDirectory() as folder:
        file, before = Path(folder, "m.db"), 0
        bank = open_bank(
            "", store=open_store(file).memory, embedder="none", project="p", settings={"forms": ["notebook"]}
        )
        recalls, learns = list[float](), list[float]()
        for n in range(most):
            episode = an_episode(n)
            began = time.process_time()
            await bank.recall(episode.task)
            recalled = time.process_time()
            await bank.learn(episode)
            recalls.append(1000 * (recalled - began))
            learns.append(1000 * (time.process_time() - recalled))
            if n + 1 in SIZES:
                size = sum(os.stat(one).st_size for one in os.scandir(folder))
                since = n + 1 - max((one for one in (0, *SIZES) if one < n + 1), default=0)
                middle = [statistics.median(times[-100:]) for times in (recalls, learns)]
                print(f"{n + 1:>9,} {middle[0]:>10.2f} {middle[1]:>9.2f} {(size - before) / since:>17,.0f}")
                before = size
        await bank.close()


if __name__ == "__main__":
    asyncio.run(main())
