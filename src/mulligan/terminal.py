"""For additional commands: groups, shared options, tables, progress, and work that signals can interrupt.

    from mulligan.terminal import Group, columns, emit

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.cli.groups import Group
    from mulligan.cli.options import arguments, record_options
    from mulligan.cli.terminal import clean, columns, emit, say
    from mulligan.cli.watch import Watch
    from mulligan.core.extras import require

_HOMES = {
    "cli.groups": "Group",
    "cli.options": "arguments record_options",
    "cli.terminal": "clean columns emit say",
    "cli.watch": "Watch",
    "core.extras": "require",
}

__all__ = [
    "Group",
    "Watch",
    "arguments",
    "clean",
    "columns",
    "emit",
    "record_options",
    "require",
    "say",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
