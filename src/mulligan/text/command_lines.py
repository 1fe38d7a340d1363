"""Splits command lines that run without a shell."""

from __future__ import annotations

import re
import shlex

_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SHELL = re.compile(
    r"(?<!\S)(?:\d*(?:>>?|<<?)|&>)|(?<!\S)[|&;]+(?!\S)|;(?!\S)|&&|\|\||\$(?=[A-Za-z_({])|`|\A\s*[A-Za-z_]\w*="
)
"""Shell syntax in a line without its quoted parts. An `&` or `>` within a word may belong to a URL or a version."""


def split_line(line: str) -> tuple[str, ...]:
    """Returns the words of a command line, split as a shell does.

    Raises `ValueError` if a quotation is not closed or the line needs a shell.
    """
    words = tuple(shlex.split(line))
    if match := _SHELL.search(_QUOTED.sub("x", line)):
        raise ValueError(
            f"`{match[0].strip()}` needs a shell, but commands run without one. Write sh -c {shlex.quote(line)}"
        )
    return words
