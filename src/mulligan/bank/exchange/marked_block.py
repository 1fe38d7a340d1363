"""Keep lessons in a marked block of a file that people edit, such as AGENTS.md. The rest of the file is not changed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Lesson

BEGIN = "<!-- mulligan: begin of lessons; `mulligan memory export --to` keeps this block up to date -->"
END = "<!-- mulligan: end of lessons -->"
_BLOCK = re.compile(rb"<!-- mulligan: begin of lessons.*?<!-- mulligan: end of lessons -->", re.DOTALL)
_SKILL = (
    "---\nname: project-lessons\ndescription: Errors that occurred in this project, with their fixes. Read this when "
    "a command fails.\n---\n\n"
)


def with_block(file: bytes, lessons: Sequence[Lesson], name: str) -> bytes:
    """The content of a file with these lessons in its block.

    A file without a block gets one at its end, unless there are no lessons. name: the name of the file. Raises
    `InvalidInput` if a block has no end, or there are several.
    """
    begins, blocks = file.count(b"<!-- mulligan: begin of lessons"), _BLOCK.findall(file)
    if begins != len(blocks) or begins > 1:
        raise InvalidInput(
            f"{name}: the block's markers are incomplete or out of order: keep one begin marker and one end "
            "marker, or neither."
        )
    line_end = "\r\n" if b"\r\n" in (blocks[0] if blocks else file) else "\n"
    block = line_end.join(_lines(lessons)).encode("utf-8", "replace")
    if blocks:
        return _BLOCK.sub(lambda _: block, file)
    if not lessons:
        return file
    start = _SKILL.encode() if not file.strip() and name.upper().endswith("SKILL.MD") else b""
    gap = (line_end if file.endswith(b"\n") else 2 * line_end) if file else ""
    return file + gap.encode() + start + block + line_end.encode()


def _lines(lessons: Sequence[Lesson]) -> list[str]:
    lines = [BEGIN, "## Lessons of earlier sessions", ""]
    for lesson in sorted(lessons, key=lambda one: (one.created, one.id)):
        lines += [
            f"- {_plain(' '.join(lesson.title.split()))}".rstrip(),
            *(f"  > {_plain(part)}".rstrip() for part in lesson.content.splitlines()),
        ]
    return [*lines, *([] if lessons else ["None."]), END]


def _plain(text: str) -> str:
    """The text with comment marks broken up, which could end the block or hide text."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")
