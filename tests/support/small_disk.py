"""What is done with a bank on a disk of 2 MB that is full, then read-only. Run as root in a mount namespace of its own; prints
a JSON object of what came of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from banks import a_bank

from mulligan.app.backup import noted_erasures
from mulligan.app.memory import Bank
from mulligan.app.removal import removable_runs, remove_runs
from mulligan.core.errors import MulliganError
from mulligan.core.records import Episode, Task
from mulligan.store.sqlite import SqliteStore


def run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=60)


async def tried(what: Awaitable[Any]) -> str:
    try:
        await what
    except MulliganError as error:
        return str(error)
    return ""


async def looked(file: Path) -> dict[str, Any]:
    async with a_bank(file, embedder="none") as bank:
        recall = await bank.recall("orders opened", threshold=0.0)
        found = {
            "listed": len(await bank.list()),
            "recalled": len(recall.lessons),
            "id": recall.id,
            "note": recall.note,
        }
        return found | {"add": await tried(bank.add("More", "Something else."))}


async def runs(file: Path) -> list[str]:
    store = SqliteStore(file)
    try:
        return [episode.id for episode in await store.list()]
    finally:
        await store.close()


async def main(disk: Path) -> dict[str, Any]:
    file, said = disk / "mulligan.db", dict[str, Any]()
    store = SqliteStore(file)
    for id in ("e1", "e2"):
        await store.create(Episode(id, Task("p" * 5000), run=id))
    await store.close()
    async with a_bank(file, embedder="none") as bank:
        first = await bank.add("Orders", "Orders are opened first.")
        long = [(await bank.add(f"Long {n}", f"{n} " + "word " * 3000)).id for n in range(10)]
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as out:
        try:
            while True:
                out.write(bytes(1024))
        except OSError:
            pass
    said["full"] = await looked(file) | {"runs": await runs(file)}
    before = file.stat().st_size
    os.environ["MULLIGAN_STORE"] = f"sqlite:///{file}"
    removed = await remove_runs(await removable_runs("e2"))
    said["removed"] = [one.stays for one in removed]
    async with Bank.open("", embedder="none") as bank:
        said["purged"] = await bank.purge(long)
    said["noted"] = [
        len(one.lessons or one.episodes) for one in noted_erasures(file.with_name(f"{file.name}.erased.jsonl"))
    ]
    said["shrunk"] = before - file.stat().st_size
    async with a_bank(file, embedder="none") as bank:
        said["left"] = [lesson.id == first.id for lesson in await bank.list()]
        said["add"] = await tried(bank.add("More", "Something else."))
        said["wrong"] = [finding.what for finding in await bank.verify()]
    ballast.unlink()
    run("mount", "-o", "remount,ro", str(disk))
    said["read-only"] = await looked(file) | {"runs": await runs(file)}
    said["new home"] = await looked(disk / "new" / "mulligan.db")
    run("mount", "-o", "remount,rw", str(disk))
    run(sys.executable, __file__, str(file), "killed")
    run("mount", "-o", "remount,ro", str(disk))
    async with a_bank(file, embedder="none") as bank:
        said["of the log"] = (await bank.list())[0].title
    other = disk.with_name("bound")
    other.mkdir()
    run("mount", "-o", "remount,rw", str(disk))
    run("mount", "--bind", str(disk), str(other))
    run("mount", "-o", "remount,bind,ro", str(other))
    async with a_bank(file, embedder="none") as writer, a_bank(other / "mulligan.db", embedder="none") as reader:
        for n in range(2):
            await writer.add(f"Live {n}", f"Written elsewhere {n}.")
            said[f"bound {n}"] = (await reader.list())[0].title
    return said


async def killed(file: Path) -> None:
    await a_bank(file, embedder="none").add("Unfolded", "It stands in the log.")
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[2:] == ["killed"]:
        asyncio.run(killed(Path(sys.argv[1])))
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
