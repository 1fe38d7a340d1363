"""Imports Inspect when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mulligan.core.errors import InvalidInput


def part(name: str = "") -> Any:
    """The module `inspect_ai` or one of its submodules. Raises `InvalidInput` that says what to install."""
    try:
        return import_module(f"inspect_ai.{name}" if name else "inspect_ai")
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"This needs the package inspect-ai ({error}): pip install 'mulligan[inspect]', "
            'or in a checkout pip install -c constraints.txt -e ".[inspect]".'
        ) from error
