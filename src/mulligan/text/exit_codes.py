"""Finds the exit code that a coding agent writes into the text of a tool's result."""

from __future__ import annotations

import re

_EXIT = re.compile(
    r"^Exit Code: (-?\d+)[ \t]*(?:\n(?:Error|Signal|Background PIDs|Process Group PGID|PID): [^\n]*)*\s*"
    r"(?:</untrusted_context>\s*)?\Z",  # Gemini CLI 0.61 encloses results in this tag
    re.MULTILINE,
)


def exit_code(content: str) -> tuple[int, str] | None:
    """Returns the exit code and the output in a tool's result as Gemini CLI writes it; None if it has no code.

    Only fields of the result may follow the code, so that a line that a command printed is not taken for it.
    """
    match = _EXIT.search(content)
    if match is None:
        return None
    before = content[: match.start()]
    output = before.partition("Output: ")[2] or before
    return int(match[1]), output.replace("\nError: (none)", "").strip()
