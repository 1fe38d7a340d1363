"""What a report takes: the blocks of a page, its text as Markdown and HTML, and words for numbers, times and states.

    from mulligan.pages import Heading, Table, markdown

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.text.pages import Heading

_HOMES = {
    "Heading": "text.pages",
}

__all__ = [
    "Heading",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
