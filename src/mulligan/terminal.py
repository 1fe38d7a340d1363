"""What a command takes that stands beside ours: groups, shared options, tables, progress, and work that signals stop.

    from mulligan.terminal import Group, columns, emit

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.cli.errors import exit_status
    from mulligan.cli.groups import Group
    from mulligan.cli.main import conduct
    from mulligan.cli.options import arguments, record_options
    from mulligan.cli.progress import Lines, Progress
    from mulligan.cli.terminal import clean, columns, emit, one_line, say
    from mulligan.cli.watch import Watch
    from mulligan.cli.words import closing, folded, which
    from mulligan.core.extras import require

_HOMES = {
    "Group": "cli.groups",
    "Lines": "cli.progress",
    "Progress": "cli.progress",
    "Watch": "cli.watch",
    "arguments": "cli.options",
    "clean": "cli.terminal",
    "closing": "cli.words",
    "columns": "cli.terminal",
    "conduct": "cli.main",
    "emit": "cli.terminal",
    "exit_status": "cli.errors",
    "folded": "cli.words",
    "one_line": "cli.terminal",
    "record_options": "cli.options",
    "require": "core.extras",
    "say": "cli.terminal",
    "which": "cli.words",
}

__all__ = [
    "Group",
    "Lines",
    "Progress",
    "Watch",
    "arguments",
    "clean",
    "closing",
    "columns",
    "conduct",
    "emit",
    "exit_status",
    "folded",
    "one_line",
    "record_options",
    "require",
    "say",
    "which",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
