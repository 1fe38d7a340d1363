"""What a report takes: the blocks of a page, its text as Markdown and HTML, and words for numbers, times and states.

    from mulligan.pages import Heading, Table, markdown

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.text.arguments import renamed
    from mulligan.text.formatting import labelled
    from mulligan.text.pages import Heading
    from mulligan.text.plain import one_line
    from mulligan.text.secrets import mask_json
    from mulligan.text.thoughts import answer_of
    from mulligan.text.truncate import truncate_text

_HOMES = {
    "Heading": "text.pages",
    "answer_of": "text.thoughts",
    "labelled": "text.formatting",
    "mask_json": "text.secrets",
    "one_line": "text.plain",
    "renamed": "text.arguments",
    "truncate_text": "text.truncate",
}

__all__ = [
    "Heading",
    "answer_of",
    "labelled",
    "mask_json",
    "one_line",
    "renamed",
    "truncate_text",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
