"""The learning track: serves what was learned from the training trajectories."""

from __future__ import annotations

import asyncio
import os

from mulligan.running import lessons_about, open_bank

BANK = "MULLIGAN_BANK"
"""The variable that names the bank to serve."""


def retrieve_learnings(query: str, top_k: int = 3, *, bank: str = "") -> list[str]:
    """What a bank knows that helps with the query, the best first; nothing where it is unsure.

    What was learned by rules is about an error, so it is given where the query holds that error.

    Args:
        query: The request of the user, the context, or an error, as text.
        top_k: Learnings at most.
        bank: The bank's name. "" takes that of the variable MULLIGAN_BANK.
    """

    async def recall() -> list[str]:
        async with open_bank(bank or os.environ.get(BANK, ""), project="") as opened:
            return [f"{one.title}\n{one.content}" for one in await lessons_about(opened, query, top_k)]

    return asyncio.run(recall()) if query.strip() else []
