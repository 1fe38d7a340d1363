"""What the memories of other projects need: their package, and vectors for texts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from mulligan.plugins import Embedder, InvalidInput


def package(module: str, distribution: str) -> Any:
    """The module. Raises `InvalidInput` where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InvalidInput(f"The memory {distribution} is not installed here: pip install {distribution}") from error


async def embedded_rows(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    return [[float(number) for number in row] for row in await embedder.embed(texts)]
