"""Makes a small store with the code of an older commit; README.md says how. Uses only what those commits have."""

import asyncio
import gzip
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import mulligan
from mulligan.models.scripted import ScriptedModel
from mulligan.store.export import export
from mulligan.store.sqlite import SqliteStore

HOME = Path(os.environ["MULLIGAN_HOME"])
STORE = HOME / "mulligan.db"


def killed(episode: Any, event: Any) -> None:
    """As by kill -9, once the first lesson is recorded."""
    if type(event).__name__ == "Reflected":
        os._exit(9)


async def solve(task: str, answers: list[str], *observers: Any, **limits: int) -> None:
    store = SqliteStore(STORE)
    model = ScriptedModel(answers)
    await mulligan.solve(task, evaluator="exact_match:42", model=model, limits=limits, store=store, observers=observers)
    await store.close()


async def exported(to: Path) -> None:
    store = SqliteStore(STORE)
    solved = [episode for episode in await store.list() if episode.solved]
    record = await export(store, [solved[0].id])
    await store.close()
    await asyncio.to_thread(to.write_text, json.dumps(record, indent=1))


async def led() -> None:
    from mulligan.app.client_led import ClientLed, ClientStep

    store = SqliteStore(STORE)
    client = ClientLed(store)
    taken = await client.begin(ClientStep("act", 1, 3, prompt="Led: six times seven?"))
    await client.take(taken.episode.id, ClientStep("evaluate", 1, 3, output="13"))
    await store.close()


def command(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "mulligan", *arguments], capture_output=True, text=True, check=True
    ).stdout


def main(part: str, to: Path) -> None:
    match part:
        case "solved":
            asyncio.run(solve("Solved: six times seven?", ["13", "Times means to multiply.", "42"]))
            asyncio.run(exported(to.with_suffix(".run.json")))
        case "killed":
            asyncio.run(solve("Killed: six times seven?", ["13", "Times means to multiply."], killed))
        case "paused":
            asyncio.run(solve("Paused: six times seven?", ["13", "Times means to multiply."], tokens=100))
        case "lessons":
            command("memory", "add", "--agent-id", "old", "--title", "Multiply", "--content", "Times is not plus.")
            command("memory", "add", "--agent-id", "old", "--title", "Be terse", "--content", "Say the number alone.")
            to.with_suffix(".lessons.json").write_text(command("memory", "export", "--agent-id", "old"))
        case "led":
            asyncio.run(led())
        case _:  # "pack"
            with closing(sqlite3.connect(STORE, isolation_level=None)) as db:
                db.execute("UPDATE leases SET owner = '', until = 0")  # it named the machine, and its dead process
                db.execute("VACUUM")
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            to.with_suffix(".db.gz").write_bytes(gzip.compress(STORE.read_bytes(), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
