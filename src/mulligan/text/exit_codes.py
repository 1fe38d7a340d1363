"""Find the exit code that a coding agent writes into the text of a tool's result."""

from __future__ import annotations

import re

_EXIT = re.compile(
    r"^Exit Code: (-?\d+)[ \t]*(?:\n(?:Error|Signal|Background PIDs|Process Group PGID|PID): [^\n]*)*\s*"
    r"(?:</untrusted_context>\s*)?\Z",  # around what Gemini CLI 0.61 shows the model
    re.MULTILINE,
)


def exit_code(content: str) -> tuple[int, str] | None:
    """Returns the exit code and the output in a tool's result as Gemini CLI writes it; None if it has no code.

    Only fields of the result may follow, so that a command that prints such a line is not taken for a failed one.
    """
    found = _EXIT.search(content)
    if found is None:
        return None
    before = content[: found.start()]
    output = before.partition("Output: ")[2] or before
    return int(found[1]), output.replace("\nError: (none)", "").strip()
