"""Checks whether Mulligan works on this machine: Python, the sandbox, the store, the models, a row each."""

from __future__ import annotations

import asyncio
import os
import platform
from importlib.util import find_spec
from pathlib import Path

from mulligan.app.config import Config, load
from mulligan.core.errors import MulliganError
from mulligan.core.extras import install_command
from mulligan.models.weights import installed, without_embedder
from mulligan.models.weights.known import KNOWN
from mulligan.sandbox.doctor import Row
from mulligan.sandbox.doctor import report as sandbox_rows
from mulligan.store import file_of, open_store, shown_address

NEEDED = frozenset({"sandbox", "store", "local models"})
"""The rows that `mulligan solve` without options needs."""


def report(config: Config | None = None) -> list[Row]:
    """Raises `InvalidInput` for a broken mulligan.toml."""
    python = Row("python", True, f"{platform.python_version()} on {platform.system()}")
    return [python, *sandbox_rows(), _store(config or load()), *_extras(), *_weights()]


def fine(rows: list[Row]) -> bool:
    """Whether every row that the defaults need is fine."""
    return all(row.ok for row in rows if row.name in NEEDED)


def _store(config: Config) -> Row:
    """Fine when the file can be read as a store and written, or else the first folder above it that there is."""
    try:
        file = file_of(config.store)
    except MulliganError as error:
        return Row("store", False, shown_address(str(config.store)), str(error))
    name = str(file or shown_address(str(config.store)))
    try:
        if file is None or file.exists():
            asyncio.run(_read(config))
    except MulliganError as error:
        return Row("store", False, name, str(error))
    if file is None:
        return Row("store", True, name)
    there = next((path for path in (file, *file.parents) if path.exists()), Path("/"))
    ok = os.access(there, os.W_OK)
    remedy = "" if ok else f"make {there} writable, or name another folder in MULLIGAN_HOME"
    return Row("store", ok, str(file) if file == there else f"{file} (made when it is needed)", remedy)


async def _read(config: Config) -> None:
    async with open_store(config.store) as store:
        await store.list(limit=1)


def _extras() -> list[Row]:
    """What the extras bring that many commands ask for."""
    rows: list[Row] = []
    for name, module, extra, purpose in (
        ("local models", "xllamacpp", "local", "run inside this process"),
        ("provider models", "pydantic_ai", "models", "are called through pydantic-ai"),
        ("MCP", "mcp", "serve", "mulligan serve, and tools of MCP servers"),
    ):
        ok = find_spec(module) is not None
        said = purpose if ok else f"the package {module} is missing"
        rows.append(Row(name, ok, said, "" if ok else install_command(extra)))
    return rows


def _weights() -> list[Row]:
    here, (missed, command) = installed(), without_embedder()
    return [
        *(
            Row(f"weights {name}", True, str(here[name]))
            if name in here
            else Row(f"weights {name}", False, "not here", f"mulligan models pull {name}")
            for name in KNOWN
        ),
        Row("embedder", not missed, missed or "recalls compare meaning, too", command),
    ]
