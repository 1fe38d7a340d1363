"""What the reference takes out of a model's answer, by its own rules (1.1), for logs that were written by them.

Ours are in `test_texts` and `programs`: they survive what these lose.
"""

from __future__ import annotations

import re

from mulligan.text.python_code import parsed

_FENCED = re.compile(r"```python\n(.*)\n```", re.DOTALL)
_MOST = 40
"""Lines that one test may have."""


def reference_code(text: str) -> str:
    """What stands in the fence that is tagged python, word for word; the text itself where there is none."""
    found = _FENCED.search(text)
    return found[1] if found else text


def reference_tests(text: str) -> tuple[str, ...]:
    """Each line with "assert" in it that parses, stripped, comments too; doubles stay. Unlike in the reference, one
    that goes on over several lines is kept, as a whole. Never raises."""
    found, lines, at = list[str](), text.split("\n"), 0
    while at < len(lines):
        ends = range(at + 1, min(at + _MOST, len(lines)) + 1) if "assert" in lines[at] else ()
        end = next((end for end in ends if parsed("\n".join(lines[at:end]).strip()) is not None), None)
        if end is not None:
            found.append("\n".join(lines[at:end]).strip())
        at = end or at + 1
    return tuple(found)
