"""A table of a TOML file that checks the kinds of its values; errors name file and line."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Json
from mulligan.text.toml_lines import array_lines, key_lines


def read_text(file: Path, what: str, where: str = "") -> str:
    """Raises `InvalidInput`, with `where` before it, for a file that is not there or is not UTF-8."""
    at = f"{where}: " if where else ""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(f"{at}The {what} {file} does not exist.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{at}The {what} {file} cannot be read: {error}.") from error


@dataclass(frozen=True)
class Table:
    """lines: of its keys, as `toml_lines` has them; that of () is its header. called: what errors call it."""

    file: Path
    called: str
    values: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]

    def where(self, *keys: str) -> str:
        """`file:LINE` of a key, or of the nearest above it."""
        found = next((self.lines[keys[:n]] for n in range(len(keys), -1, -1) if keys[:n] in self.lines), None)
        return f"{self.file}:{found}" if found else str(self.file)

    def wrong(self, key: str, problem: str) -> InvalidInput:
        return InvalidInput(f"{self.where(key)}: {problem}")

    def has(self, *keys: str) -> tuple[str, ...]:
        """Those of the keys that are there."""
        return tuple(key for key in keys if key in self.values)

    def one_of(self, *keys: str, why: str) -> str | None:
        """The only one of the keys that is there. Raises `InvalidInput`, with `why`, for several."""
        there = self.has(*keys)
        if len(there) > 1:
            raise self.wrong(there[1], f"{' and '.join(there[:2])} are both there: {why}.")
        return there[0] if there else None

    def only(self, keys: Sequence[str]) -> None:
        """Raises `InvalidInput` for a key that is none of these, with the nearest."""
        for key in self.values:
            if key not in keys:
                raise self.wrong(key, str(UnknownName(f"key of {self.called}", key, keys)))

    def text(self, key: str) -> str:
        """Some text; a number will do, as it is written."""
        value = self.values[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(key, f"{key} must be some text, not {value!r}.")
        return value

    def texts(self, key: str) -> str | list[str]:
        """A text, or a list of them with one at least."""
        value = self.values[key]
        if not isinstance(value, list):
            return self.text(key)
        given = cast(list[Any], value)
        if not given:
            raise self.wrong(key, f"{key} is an empty list.")
        return [Table(self.file, self.called, {key: one}, self.lines).text(key) for one in given]

    def flag(self, key: str) -> bool:
        if not isinstance(value := self.values[key], bool):
            raise self.wrong(key, f"{key} must be true or false, not {value!r}.")
        return value

    def table(self, key: str) -> Table:
        value = self.values[key]
        if not isinstance(value, dict):
            raise self.wrong(key, f"{key} must be a table, not {value!r}.")
        below = {keys[1:]: line for keys, line in self.lines.items() if keys[:1] == (key,)}
        below.setdefault((), self.lines.get((), 0))
        return Table(self.file, f"{key} in {self.called}", cast(dict[str, Any], value), below)

    def file_at(self, key: str, what: str) -> Path:
        """The file that the text names, from the folder of this one. Raises `InvalidInput` where there is none."""
        path = (self.file.parent / Path(self.text(key)).expanduser()).resolve()
        if not path.is_file():
            raise self.wrong(key, f"The {what} {path} does not exist.")
        return path

    def json(self, key: str) -> dict[str, Json]:
        """A table of plain values: what TOML has besides, such as dates, is none."""
        given = self.table(key)
        for name, value in given.values.items():
            _plain(given, name, value)
        return dict(given.values)


def _plain(table: Table, key: str, value: Any) -> None:
    inner: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []  # pyright: ignore
    if not isinstance(value, (bool, int, float, str, list, dict)):
        raise table.wrong(key, f"{key} must be text, a number, true or false, a list or a table, not {value!r}.")
    for one in inner:
        _plain(table, key, one)


def read_tables(file: Path) -> tuple[Table, list[Table]]:
    """The file as a table, and its `[[task]]` tables in order. Raises `InvalidInput` for what is no such file."""
    text = read_text(file, "file of tasks")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{file}: no TOML: {error}.") from error
    top = Table(file, "a file of tasks", values, key_lines(text))
    tasks = values.get("task", [])
    if not isinstance(tasks, list) or not all(isinstance(one, dict) for one in cast(list[Any], tasks)):
        raise top.wrong("task", "Each task is a table [[task]], in double brackets.")
    lines = array_lines(text, "task")
    given = cast(list[dict[str, Any]], tasks)
    if len(lines) != len(given):  # written as one list in one value
        lines = [{(): top.lines.get(("task",), 0)} for _ in given]
    return top, [Table(file, "a task", one, at) for one, at in zip(given, lines, strict=True)]
