"""Command lines that are started without a shell."""

from __future__ import annotations

import re
import shlex

_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SHELL = re.compile(
    r"(?<!\S)(?:\d*(?:>>?|<<?)|&>)|(?<!\S)[|&;]+(?!\S)|;(?!\S)|&&|\|\||\$(?=[A-Za-z_({])|`|\A\s*[A-Za-z_]\w*="
)
"""What only a shell understands, in a line without what is quoted. An `&` or a `>` within a word is left alone: it may
be that of a URL or of a version."""


def split_line(line: str) -> tuple[str, ...]:
    """The words of a command line, split as a shell would.

    Raises `ValueError` for an open quotation, and for what needs a shell: says what, and what to write instead.
    """
    words = tuple(shlex.split(line))
    if found := _SHELL.search(_QUOTED.sub("x", line)):
        raise ValueError(
            f"`{found[0].strip()}` needs a shell, but commands run without one. Write sh -c {shlex.quote(line)}"
        )
    return words
