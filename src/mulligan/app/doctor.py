"""Checks whether Mulligan works on this machine: Python, the sandbox, the store, the models, a row each."""

from __future__ import annotations

import asyncio
import os
import platform
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from mulligan.app.config import Config, load
from mulligan.core.errors import MulliganError
from mulligan.core.extras import install_command
from mulligan.models.weights import installed, without_embedder
from mulligan.models.weights.known import KNOWN
from mulligan.sandbox.doctor import DoctorRow
from mulligan.sandbox.doctor import report as sandbox_rows
from mulligan.store import file_of, open_store, shown_address

NEEDED = frozenset({"sandbox", "store", "local models"})
"""The rows that `mulligan solve` without options needs."""
PROBE = 1 << 16
"""Bytes that are written, and removed again, to see whether the disk takes them."""
PATIENCE = 2.0
"""Seconds to wait for a lock on the store that another process holds."""


def report(config: Config | None = None) -> list[DoctorRow]:
    """Raises `InvalidInput` for a broken mulligan.toml."""
    python = DoctorRow("python", True, f"{platform.python_version()} on {platform.system()}")
    config = config or load()
    embedder = str(config.table("memory").get("embedder", "local"))
    return [python, *sandbox_rows(), _store(config), *_extras(), *_weights(embedder)]


def fine(rows: list[DoctorRow]) -> bool:
    """Whether every row that the defaults need is fine."""
    return all(row.ok for row in rows if row.name in NEEDED)


def _store(config: Config) -> DoctorRow:
    """Fine when the store can be read and written; of a file that is not there yet, the first folder above it."""
    try:
        file = file_of(config.store)
    except MulliganError as error:
        return DoctorRow("store", False, shown_address(str(config.store)), str(error))
    name = str(file or shown_address(str(config.store)))
    there = next((path for path in (file, *file.parents) if path.exists()), Path("/")) if file else None
    try:
        if there == file:
            asyncio.run(_use(config))
    except MulliganError as error:
        return DoctorRow("store", False, name, str(error))
    if file is None or there is None:
        return DoctorRow("store", True, name)
    folder = there if there.is_dir() else there.parent
    said = name if file == there else f"{file} (created when needed)"
    if file != there and not there.is_dir():
        return DoctorRow("store", False, f"{file}: {there} is not a folder", "name another folder in MULLIGAN_HOME")
    try:
        with TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * PROBE)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        remedy = f"make {folder} writable, or name another folder in MULLIGAN_HOME"
        return DoctorRow("store", False, f"{said}: {error.strerror or error}", remedy)
    return DoctorRow("store", True, said)


async def _use(config: Config) -> None:
    """Reads, and begins and ends a write. Raises `StoreError`."""
    from mulligan.store.sqlite import SqliteStore

    file = file_of(config.store)
    async with open_store(config.store) if file is None else SqliteStore(file, busy_seconds=PATIENCE) as store:
        await store.list(limit=1)
        if isinstance(store, SqliteStore):
            await store.memory.database.write(lambda _: None)


def _extras() -> list[DoctorRow]:
    """What the extras bring that many commands ask for."""
    rows: list[DoctorRow] = []
    for name, module, extra, purpose in (
        ("local models", "xllamacpp", "local", "run inside this process"),
        ("provider models", "pydantic_ai", "models", "are called through pydantic-ai"),
        ("MCP", "mcp", "serve", "mulligan serve, and tools of MCP servers"),
    ):
        ok = find_spec(module) is not None
        said = purpose if ok else f"the package {module} is missing"
        rows.append(DoctorRow(name, ok, said, "" if ok else install_command(extra)))
    return rows


def _weights(embedder: str) -> list[DoctorRow]:
    here, (missed, command) = installed(), without_embedder(embedder)
    return [
        *(
            DoctorRow(f"weights {name}", True, str(here[name]))
            if name in here
            else DoctorRow(f"weights {name}", False, "not here", f"mulligan models pull {name}")
            for name in KNOWN
        ),
        DoctorRow("embedder", not missed, missed or "recalls also compare meaning", command),
    ]
