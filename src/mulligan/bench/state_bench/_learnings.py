"""The learning track: serves the lessons from the training trajectories."""

from __future__ import annotations

import asyncio
import os

from mulligan.running import Bank, lessons_about

BANK = "MULLIGAN_BANK"
"""The environment variable with the name of the bank."""


def retrieve_learnings(query: str, top_k: int = 3, *, bank: str = "") -> list[str]:
    """The lessons of a bank that help with the query, the best first. Nothing if the bank is unsure.

    Lessons that rules have learned are about an error, and are returned if the query contains that error.

    Args:
        query: The request of the user, the context, or an error, as text.
        top_k: The maximum number of lessons.
        bank: The name of the bank. "": the value of the environment variable MULLIGAN_BANK.
    """

    async def recall() -> list[str]:
        async with Bank.open(bank or os.environ.get(BANK, ""), project="") as opened:
            return [f"{one.title}\n{one.content}" for one in await lessons_about(opened, query, top_k)]

    return asyncio.run(recall()) if query.strip() else []
