"""Names of a public module that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def lookup(module: str, homes: Mapping[str, str], name: str) -> Any:
    """What a public module offers under this name.

    Args:
        module: the public module.
        homes: by name, the module below `mulligan` that has it.

    Raises:
        AttributeError: the module has no such name.
    """
    if name not in homes:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return getattr(import_module(f"mulligan.{homes[name]}"), name)
