"""The names of several models in one text, as options, settings and records have them."""

from __future__ import annotations

import re
from collections.abc import Sequence

SEPARATOR = ", "
_NAME = re.compile(r"[A-Za-z][\w-]*(:.+)?")


def model_names(text: str) -> Sequence[str]:
    """The names in a text such as `openai:gpt-6, anthropic:claude-6`; a file's name may have a comma in it."""
    names = [name.strip() for name in text.split(",")]
    return names if all(map(_NAME.fullmatch, names)) else [text]
