"""Prints the reports of `stream`, `exam` and `prove`, and writes their files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mulligan.cli.terminal import emit, say
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.text.pages import Block, markdown, plain


def print_report(page: Sequence[Block], data: Json, form: str) -> None:
    """Prints a report as a "table", as Markdown ("md"), or its data as "json"."""
    emit(json_text(data) if form == "json" else (markdown if form == "md" else plain)(page).rstrip())


def json_text(data: Json) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Writes files, by their names, into a folder that is created. Raises `InvalidInput` if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The report cannot be written to {folder}: {error.strerror or error}.") from error
    say(f"{folder}: {', '.join(files)}")
