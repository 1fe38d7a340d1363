"""A run in a process of its own, whose model answers when a line comes on standard input.

python live_story.py STORE
"""

from __future__ import annotations

import asyncio
import sys

import mulligan
from mulligan.models.scripted import ScriptedModel
from mulligan.plugins import Question, Sampling
from mulligan.store import open_store

TASK = "Say green, once the test lets you"


def answer(_: Question, sampling: Sampling) -> str:
    return sys.stdin.readline().rstrip("\n")


async def main(store: str) -> None:
    async with open_store(store) as at:
        await mulligan.solve(TASK, model=ScriptedModel(answer), evaluator="contains:green", trials=3, store=at)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
