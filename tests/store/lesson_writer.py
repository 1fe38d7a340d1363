"""Writes lessons without end, in a child forked for each file named on stdin, until it is killed.

Says on stdout {"pid": N}; then, for each thing it does, {"will": [...]} before and {"did": true} after the store has
returned from it; {"exit": true} when the child is gone. What it does: ["add", ids], ["use", id], ["retire", id],
["merge", id, parents], ["purge", id], ["queue", key], ["work", key, id].
"""

import asyncio
import json
import os
import random
import secrets
import sys
import time
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from lesson_kit import E1, entry

from mulligan.core.lesson_history import Receipt
from mulligan.recording.holders import owner
from mulligan.store import open_store


def tell(**what: Any) -> None:
    os.write(1, (json.dumps(what) + "\n").encode())


async def doing(write: Awaitable[Any], *what: Any) -> None:
    tell(will=what)
    await write
    tell(did=True)


async def write_on(path: str) -> None:
    memory, chance, me = open_store(path).memory, random.Random(), owner()
    store, queue = memory.lessons, memory.queue
    while True:
        a, b, c, m, d = (secrets.token_hex(4) for _ in range(5))
        await doing(store.add("a", [entry(a), entry(b), entry(c)]), "add", [a, b, c])
        await doing(store.recalled(Receipt(secrets.token_hex(4), "a", time.time(), "q", {a: 0.5})), "use", a)
        await doing(queue.enqueue("k", "a", {"key": d}, key=d), "queue", d)
        claimed = await queue.claim(me, 60, ["k"])
        assert claimed is not None
        work, claim = claimed
        key = work.payload["key"]
        await doing(store.add("a", [entry(f"by {key}")], claim=claim), "work", key, f"by {key}")
        (lesson,) = await store.get("a", [b])
        await doing(store.change("a", replace(lesson, state="retired"), "retired"), "retire", b)
        await doing(store.merge("a", entry(m, embedder=E1), [a, c]), "merge", m, [a, c])
        if chance.random() < 0.3:
            await doing(store.purge("a", [b]), "purge", b)


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            tell(pid=os.getpid())
            asyncio.run(write_on(line.strip()))
        os.waitpid(pid, 0)
        tell(exit=True)


if __name__ == "__main__":
    main()
