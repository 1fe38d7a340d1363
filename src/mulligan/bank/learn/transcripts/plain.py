"""Plain text in which each turn begins with who speaks: `User:`, `Assistant:`, `Tool:` or `Tool (pytest):`.

The speaker stands at the beginning of a line, in bold or as a Markdown heading if you like. Human is a user; AI and
Agent are assistants. Within a fenced block no line begins a turn. What stands above the first speaker is a system turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Role, Turn

_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "agent": "assistant",
    "tool": "tool",
    "system": "system",
}
_WHO = rf"(?P<who>{'|'.join(_ROLES)})(?: \((?P<tool>[^()]{{1,80}})\))?"
_SPEAKER = re.compile(rf"(?:#{{1,6}} +)?(?:\*\*)?{_WHO}(?:\*\*)?:(?:\*\*)?(?P<said>.*)", re.IGNORECASE)
_HEADING = re.compile(rf"#{{1,6}} +{_WHO}(?P<said>)", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)")
"""The line that opens a block. If backticks follow the opening ones, it only has code within the line."""
_LONGEST = 10_000
"""Lines within which the end of a fenced block is looked for."""


class Plain:
    def recognises(self, text: str) -> bool:
        return bool(_speakers(text.split("\n")))

    def read(self, text: str, name: str) -> list[Turn]:
        lines = text.replace("\r\n", "\n").split("\n")
        starts = _speakers(lines)
        if not starts:
            raise InvalidInput(
                f"{name}: no line begins with a speaker. Start each turn on a new line with User:, Assistant: or Tool:."
            )
        turns = [Turn("system", "\n".join(lines[: min(starts)]).strip())]
        ends = [*starts, len(lines)][1:]
        for (at, found), end in zip(starts.items(), ends, strict=True):
            role = _ROLES[found["who"].lower()]
            tool = found["tool"] if role == "tool" else None
            said = "\n".join([found["said"], *lines[at + 1 : end]]).strip()
            turns.append(Turn(role, said, tool or ""))
        return [turn for turn in turns if turn.text]


def _speakers(lines: Sequence[str]) -> dict[int, re.Match[str]]:
    """The lines that begin a turn, by their numbers from 0."""
    starts: dict[int, re.Match[str]] = {}
    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        if found := _SPEAKER.fullmatch(line) or _HEADING.fullmatch(line):
            starts[at] = found
        if fence := _FENCE.fullmatch(found["said"] if found else line):
            at = _end_of_block(lines, at, fence[1] or fence[2])
        at += 1
    return starts


def _end_of_block(lines: Sequence[str], at: int, fence: str) -> int:
    """The number of the line that closes the block that this fence opens in line `at`; `at` if none does."""
    for end in range(at + 1, min(at + _LONGEST, len(lines))):
        line = lines[end].strip()
        if line.startswith(fence) and not line.strip(fence[0]):
            return end
    return at
