"""What a command takes that stands beside ours: groups, shared options, tables, progress, and work that signals stop.

    from mulligan.terminal import Group, columns, emit

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.cli.groups import Group

_HOMES = {
    "Group": "cli.groups",
}

__all__ = [
    "Group",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
