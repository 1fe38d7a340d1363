"""The feedback as the reference prints it (spec/reflexion-reference.md, 1.1), for replays and for comparisons with it.

Both headers always, "Tested" as it stands there, nothing shortened. Our own words are in `feedback`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A test with its verdict; `output`: of one that failed, the value or the exception of what it looks at."""

    test: str
    passed: bool
    output: str = ""


def reference_text(lines: Sequence[Line], mark: str = "#") -> str:
    """mark: what begins a comment in the language of the tests."""
    passed = "".join(f"\n{line.test}" for line in lines if line.passed)
    failed = "".join(f"\n{line.test} {mark} output: {line.output}" for line in lines if not line.passed)
    return f"Tested passed:{passed}\n\nTests failed:{failed}"
