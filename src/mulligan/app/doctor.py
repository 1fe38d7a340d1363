"""Checks whether Mulligan works on this machine: a row each for Python, the sandbox, the store, the models and so
on."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Collection, Sequence
from dataclasses import dataclass
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

PROBE_BYTES = 1 << 16
"""Bytes that are written to test the disk, and removed again."""
LOCK_WAIT = 2.0
"""Seconds to wait if another process has locked the store."""


@dataclass(frozen=True)
class MachineReport:
    """What works on this machine.

    Attributes:
        essentials: the names of the rows that `mulligan solve` without options needs.
    """

    rows: Sequence[DoctorRow]
    essentials: Collection[str] = ("sandbox", "store", "local models")

    @property
    def fine(self) -> bool:
        """Whether every essential row is fine."""
        return all(row.ok for row in self.rows if row.name in self.essentials)


def check_machine(config: Config | None = None) -> MachineReport:
    """Runs all checks.

    Raises:
        InvalidInput: mulligan.toml is invalid.
    """
    python = DoctorRow("python", True, f"{platform.python_version()} on {platform.system()}")
    config = config or load()
    embedder = str(config.table("memory").get("embedder", "local"))
    return MachineReport([python, *sandbox_rows(), _store(config), *_extras(), *_weights(embedder)])


def _store(config: Config) -> DoctorRow:
    """Fine if the store can be read and written, or, if it does not exist yet, created."""
    try:
        file = file_of(config.store)
    except MulliganError as error:
        return DoctorRow("store", False, shown_address(str(config.store)), str(error))
    name = str(file or shown_address(str(config.store)))
    existing = next((path for path in (file, *file.parents) if path.exists()), Path("/")) if file else None
    try:
        if existing == file:
            asyncio.run(_try_store(config))
    except MulliganError as error:
        return DoctorRow("store", False, name, str(error))
    if file is None or existing is None:
        return DoctorRow("store", True, name)
    folder = existing if existing.is_dir() else existing.parent
    shown = name if file == existing else f"{file} (created when needed)"
    if file != existing and not existing.is_dir():
        return DoctorRow("store", False, f"{file}: {existing} is not a folder", "set MULLIGAN_HOME to another folder")
    try:
        with TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * PROBE_BYTES)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        remedy = f"make {folder} writable, or set MULLIGAN_HOME to another folder"
        return DoctorRow("store", False, f"{shown}: {error.strerror or error}", remedy)
    return DoctorRow("store", True, shown)


async def _try_store(config: Config) -> None:
    """Reads from the store, and performs an empty write. Raises `StoreError`."""
    from mulligan.store.sqlite import SqliteStore

    file = file_of(config.store)
    async with open_store(config.store) if file is None else SqliteStore(file, busy_seconds=LOCK_WAIT) as store:
        await store.list(limit=1)
        if isinstance(store, SqliteStore):
            await store.memory.database.write(lambda _: None)


def _extras() -> list[DoctorRow]:
    """The packages of extras that many commands need."""
    rows: list[DoctorRow] = []
    for name, module, extra, purpose in (
        ("local models", "xllamacpp", "local", "run inside this process"),
        ("provider models", "pydantic_ai", "models", "are called through pydantic-ai"),
        ("MCP", "mcp", "serve", "for mulligan serve and for MCP servers' tools"),
    ):
        ok = find_spec(module) is not None
        text = purpose if ok else f"the package {module} is missing"
        rows.append(DoctorRow(name, ok, text, "" if ok else install_command(extra)))
    return rows


def _weights(embedder: str) -> list[DoctorRow]:
    installed_weights, (why_missing, command) = installed(), without_embedder(embedder)
    return [
        *(
            DoctorRow(f"weights {name}", True, str(installed_weights[name]))
            if name in installed_weights
            else DoctorRow(f"weights {name}", False, "not installed", f"mulligan models pull {name}")
            for name in KNOWN
        ),
        DoctorRow("embedder", not why_missing, why_missing or "recalls also compare meaning", command),
    ]
