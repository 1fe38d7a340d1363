"""`kill -9` between a recall and its outcome: the recall that is replayed is the recorded one, and it counts once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from banks import a_bank

from mulligan.core.worth import is_withheld

CHILD = """
import asyncio, os, signal, sys
from contextlib import nullcontext, suppress
import mulligan
from mulligan.app.memory import open_bank
from mulligan.core.errors import InvalidInput
from mulligan.store import open_store

file, when = sys.argv[1:]


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


async def main():
    store = open_store(file)
    bank = open_bank(
        "", store=open_store(file).memory, embedder="none",
        settings={"withhold": 0.5, "threshold": 0.0, "top_k": 9},
    )
    if when == "first":
        for n in range(6):
            await bank.add(f"Times {n}", f"What is times: multiply, {n}.")
    real = bank.outcome_of

    async def outcome_of(*given):
        if when == "before":
            die()
        await real(*given)
        if when == "after":
            die()

    bank.outcome_of = outcome_of
    model = mulligan.ScriptedModel(lambda *_: die() if when == "first" else "42")
    asked = {"bank": bank, "store": store, "model": model}
    try:
        if when == "first":
            await mulligan.solve("What is 6 times 7?", evaluator="exact_match:42", strategy="none", **asked)
        else:
            (episode,) = await store.list()
            with suppress(InvalidInput) if when == "again" else nullcontext():  # it is over
                await mulligan.resume(episode.run, **asked)
    finally:
        await bank.close()
        await store.close()


asyncio.run(main())
"""


def run(file: Path, when: str) -> int:
    return subprocess.run([sys.executable, "-c", CHILD, str(file), when], timeout=120, check=False).returncode


@pytest.mark.slow
@pytest.mark.parametrize("killed", [(), ("before",), ("after",)])
def test_a_killed_episode_counts_once(tmp_path: Path, killed: tuple[str, ...]) -> None:
    file = tmp_path / "m.db"
    assert run(file, "first") == -signal.SIGKILL
    for when in killed:
        assert run(file, when) == -signal.SIGKILL
    assert run(file, "again" if killed else "resume") == 0

    async def look() -> None:
        async with a_bank(file, embedder="none") as bank:
            worth = await bank.worth()
            receipts = {
                str(version.detail["receipt"])
                for lesson in await bank.list()
                for version in await bank.history(lesson.id)
                if version.change in ("used", "withheld") and version.detail
            }
            (id,) = receipts
            receipt = await bank.receipt(id)
            assert {lesson for lesson in receipt.drawn if is_withheld(id, lesson, 0.5)} == set(receipt.withheld)
            assert len(receipt.drawn) == 6
            (whole,) = [one.tally for one in worth if not one.id]
            assert (whole.known, whole.shown.count, whole.withheld.count) == (
                1,
                len(receipt.lessons),
                len(receipt.withheld),
            )
            assert [one.tally.known for one in worth if one.id] == [1] * 6

    asyncio.run(look())
