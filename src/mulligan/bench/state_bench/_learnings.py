"""The learning track: finds the training trajectories, and serves what was learned from them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from mulligan.app.memory import open_bank
from mulligan.app.transcripts import lessons_about
from mulligan.core.errors import InvalidInput

DOMAINS = ("travel", "customer_support", "shopping_assistant")
BANK = "MULLIGAN_BANK"
"""The variable that names the bank to serve."""


def bank_name(domain: str) -> str:
    """The bank that learns a domain, if no other is named."""
    return f"state-bench-{domain.replace('_', '-')}"


def training_files(folder: Path, domain: str) -> list[Path]:
    """The training trajectories of a domain: a file each, as in their repository, or one file with a line each.

    Raises:
        InvalidInput: The folder holds none.
    """
    found = sorted(folder.rglob(f"train_task_trajectories/{domain}/*.json")) or sorted(folder.rglob(f"{domain}.jsonl"))
    if not found:
        raise InvalidInput(
            f"{folder} holds no training trajectories of {domain}. Give --data the folder of a checkout of "
            "https://github.com/microsoft/STATE-Bench."
        )
    return found


def retrieve_learnings(query: str, top_k: int = 3, *, bank: str = "") -> list[str]:
    """What a bank knows that helps with the query, the best first; nothing where it is unsure.

    What was learned by rule is about an error, so it is given where the query holds that error.

    Args:
        query: The request of the user, the context, or an error, as text.
        top_k: Learnings at most.
        bank: The bank's name. "" takes that of the variable MULLIGAN_BANK.
    """

    async def recall() -> list[str]:
        async with open_bank(bank or os.environ.get(BANK, ""), project="") as opened:
            return [f"{one.title}\n{one.content}" for one in await lessons_about(opened, query, top_k)]

    return asyncio.run(recall()) if query.strip() else []
