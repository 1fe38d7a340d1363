"""A lesson as a Markdown file: its fields as front matter, then its content. See `memory_sync`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from mulligan.agentfile.frontmatter import parse_document
from mulligan.bank.exchange.records import imported_id
from mulligan.bank.learn.screening import storable
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Lesson, Time, lesson_fields
from mulligan.core.records import Json
from mulligan.text.secrets import mask, mask_json

ALWAYS = ("title", "outcome")
"""The fields that each file contains; others are left out if they have their default."""
MAX_FIELD = 40_000
"""Characters of a field; a longer one is only in the bank."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MARKS = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)


def file_text(lesson: Lesson) -> str:
    """The content of a lesson's file, with secrets masked. It is equal for lessons whose written fields are equal."""
    lines = [f"{name}: {text}" for name, text in _front_matter(lesson) if len(text) <= MAX_FIELD]
    return "\n".join(["---", f"id: {json.dumps(lesson.id)}", *lines, "---", "", mask(lesson.content).strip(), ""])


def left_out(lesson: Lesson) -> dict[str, Any]:
    """The fields that are too long for a file."""
    return {name: getattr(lesson, name) for name, text in _front_matter(lesson) if len(text) > MAX_FIELD}


def _front_matter(lesson: Lesson) -> Iterator[tuple[str, str]]:
    defaults = Lesson("", "", "", "success")
    for name, (kind, _) in lesson_fields().items():
        value = getattr(lesson, name)
        if name == "content" or (value == getattr(defaults, name) and name not in ALWAYS):
            continue
        if isinstance(value, float) and kind == Time:
            with suppress(ValueError, OverflowError, OSError):  # a year that datetime does not support
                value = datetime.fromtimestamp(value, UTC).isoformat()
        yield name, _quoted(name, list(cast(tuple[str, ...], value)) if isinstance(value, tuple) else value)


def lesson_in(file: Path, text: str) -> Lesson | None:
    """The lesson in the text of a file, screened like a stranger's; None if the text has no front matter.

    Raises:
        InvalidInput: It cannot be used; the message says where it is wrong.
    """
    if _MARKS.search(text):
        raise InvalidInput(f"{file} contains conflict markers from git: resolve them first.")
    document, problems = parse_document(file, text)
    if document is not None and not document.present:
        return None
    if document is None or document.refused - {"date", "expires"}:  # a date without quotes is read as text
        raise InvalidInput(str(problems[0]))
    values = dict(document.values)
    for line in document.source.text.split("\n---", 1)[0].splitlines():  # `file_text` writes values as JSON
        name, _, value = line.partition(": ")
        if name in values:
            with suppress(ValueError, RecursionError):
                values[name] = json.loads(value)
    id = values.pop("id", None) or imported_id("file", "", file.name)
    if not isinstance(id, str) or not _ID.fullmatch(id):
        raise InvalidInput(f"{file}: id must consist of at most 64 letters, digits, - and _, not {id!r:.80}.")
    with_defaults: dict[str, Any] = {"title": file.stem.replace("-", " "), "outcome": "success", **values}
    return storable({**with_defaults, "content": document.body}, str(file), id=id, whole=True)


def _quoted(name: str, value: Json) -> str:
    """The value as JSON, which is also YAML once two line separators are escaped."""
    masked = cast(dict[str, Json], mask_json({name: value}))[name]
    return json.dumps(masked, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
