"""What a program takes that drives its own loop: configuration, models, plug-ins by name, the store and its records.

    from mulligan.running import load, open_store

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.app.config import load

_HOMES = {
    "load": "app.config",
}

__all__ = [
    "load",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
