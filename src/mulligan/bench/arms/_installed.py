"""Helpers for memories of other projects: importing their packages, and embedding texts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from mulligan.plugins import Embedder, InvalidInput


def package(module: str, distribution: str, *, major: int = 0) -> Any:
    """Imports a module. Raises `InvalidInput` if it is not installed, or is older than this major version."""
    try:
        found = import_module(module)
    except ImportError as error:
        raise InvalidInput(f"The memory {distribution} is not installed: pip install {distribution}") from error
    installed = version(distribution)
    if int(installed.partition(".")[0]) < major:
        command = f"pip install '{distribution}>={major}'"
        raise InvalidInput(
            f"{distribution} {installed} is too old for this exam, which needs version {major}: {command}"
        )
    return found


async def embedded_rows(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    return [[float(number) for number in row] for row in await embedder.embed(texts)]
