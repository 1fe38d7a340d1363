"""Names of a public module that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def lookup(module: str, homes: Mapping[str, str], name: str) -> Any:
    """What a public module offers under this name.

    Args:
        module: The public module.
        homes: By module below `mulligan`, the names that it has, separated by spaces.

    Raises:
        AttributeError: The public module has no such name.
    """
    for home, names in homes.items():
        if name in names.split():
            return getattr(import_module(f"mulligan.{home}"), name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
