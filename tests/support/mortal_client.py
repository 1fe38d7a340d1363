"""A process that leads an episode and kills itself after its Nth write: `python mortal_client.py` with an order on stdin.

    {"store": FILE, "mode": "take" | "follow", "steps": [ClientStep as JSON, …], "begin": ID or null, "writes": N}

It prints a line of JSON for each step that was answered: {"episode": ID, "memory": […]}. A write counts once it is
committed; the next thing that happens is the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from mulligan.app.client_led import ClientLed, ClientStep
from mulligan.store.sqlite import SqliteStore


class Mortal(SqliteStore):
    """Dies for real, as by `kill -9`, when it has written so often."""

    def __init__(self, path: Path, writes: int) -> None:
        super().__init__(path)
        self._left = writes
        write = self._db.write

        async def counted(work: Any, **how: Any) -> Any:
            result = await write(work, **how)
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        self._db.write = counted


def step_of(said: dict[str, Any]) -> ClientStep:
    memory = said.pop("memory", None)
    return ClientStep(**said, memory=None if memory is None else tuple(memory))


async def lead(order: dict[str, Any]) -> None:
    store = Mortal(Path(order["store"]), order["writes"])
    led, id = ClientLed(store), order["begin"]
    for said in order["steps"]:
        step = step_of(said)
        if order["mode"] == "follow":
            id, memory = (await led.follow(id, step, "task")).id, ()
        else:
            taken = await (led.begin(step) if id is None else led.take(id, step))
            id, memory = taken.episode.id, taken.memory
        print(json.dumps({"episode": id, "memory": memory}), flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(lead(json.load(sys.stdin)))
