"""Kept lessons in a marked block of a file that people write too, such as AGENTS.md; all around it stays as it is."""

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
    """The file with these lessons in its block, which is added at the end if there is none.

    Without lessons and without a block the file stays as it is. name: of the file. Raises `InvalidInput` for a block
    that does not end, or more than one.
    """
    begins, found = file.count(b"<!-- mulligan: begin of lessons"), _BLOCK.findall(file)
    if begins != len(found) or begins > 1:
        raise InvalidInput(
            f"{name}: the marks of the block are incomplete or out of order: keep one begin and one end, or neither."
        )
    line = "\r\n" if b"\r\n" in (found[0] if found else file) else "\n"
    block = line.join(_lines(lessons)).encode("utf-8", "replace")
    if found:
        return _BLOCK.sub(lambda _: block, file)
    if not lessons:
        return file
    start = _SKILL.encode() if not file.strip() and name.upper().endswith("SKILL.MD") else b""
    gap = (line if file.endswith(b"\n") else 2 * line) if file else ""
    return file + gap.encode() + start + block + line.encode()


def _lines(lessons: Sequence[Lesson]) -> list[str]:
    lines = [BEGIN, "## Lessons of earlier sessions", ""]
    for lesson in sorted(lessons, key=lambda one: (one.created, one.id)):
        lines += [
            f"- {_plain(' '.join(lesson.title.split()))}".rstrip(),
            *(f"  > {_plain(part)}".rstrip() for part in lesson.content.splitlines()),
        ]
    return [*lines, *([] if lessons else ["None."]), END]


def _plain(text: str) -> str:
    """Without what would end the block, or hide text."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")
