"""What a server takes that faces a bank: the service, tokens, allowed hosts, and what a person may do to a lesson.

    from mulligan.serving import Server, Service

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.app.service import Service

_HOMES = {
    "Service": "app.service",
}

__all__ = [
    "Service",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
