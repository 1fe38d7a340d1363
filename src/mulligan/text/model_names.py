"""Splits a text with the names of several models, as in options, settings and records."""

from __future__ import annotations

import re
from collections.abc import Sequence

SEPARATOR = ", "
_NAME = re.compile(r"[A-Za-z][\w-]*(:.+)?")


def model_names(text: str) -> Sequence[str]:
    """Returns the names in a text such as `openai:gpt-6, anthropic:claude-6`. The name of a file may have a comma."""
    names = [name.strip() for name in text.split(",")]
    return names if all(map(_NAME.fullmatch, names)) else [text]
