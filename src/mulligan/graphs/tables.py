"""A graph as tables of nodes and edges: the readers of files produce them, the loader takes them. Rows are lazy."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from mulligan.plugins import InvalidInput

Value: TypeAlias = bool | int | float | str | list[bool] | list[int] | list[float] | list[str] | None
"""A value of a cell. Dates and times are ISO 8601 strings in UTC, without a zone."""

KINDS: Mapping[str, str] = {
    **dict.fromkeys(("string", "char", "duration", "time", "localtime", "point"), "string"),
    **dict.fromkeys(("int", "integer", "long", "short", "byte"), "int"),
    **dict.fromkeys(("float", "double"), "float"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    "date": "date",
    **dict.fromkeys(("datetime", "localdatetime"), "datetime"),
}
"""The types that a header may name, as in neo4j-admin, and the kind of column that each becomes."""
SMALLEST, LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Column:
    """A property. kind: string, int, float, boolean, date or datetime. many: whether it is a list of them."""

    name: str
    kind: str = "string"
    many: bool = False


@dataclass(frozen=True)
class Row:
    """Values in the order of the columns. where: the file and line, for error messages."""

    values: Sequence[Value]
    where: str = ""


@dataclass(frozen=True)
class EdgeRow(Row):
    """An edge. source and target: the label and key of a node."""

    source: tuple[str, Value] = ("", None)
    target: tuple[str, Value] = ("", None)


@dataclass(frozen=True)
class NodeTable:
    """The nodes of one label. The first column is their key."""

    label: str
    columns: tuple[Column, ...]
    rows: Callable[[], Iterator[Row]]


@dataclass(frozen=True)
class EdgeTable:
    """The relationships of one type. They may connect nodes of any labels."""

    label: str
    columns: tuple[Column, ...]
    rows: Callable[[], Iterator[EdgeRow]]


@dataclass(frozen=True)
class Tables:
    """A whole graph. notes: sentences about what of the files is left out."""

    nodes: tuple[NodeTable, ...] = ()
    edges: tuple[EdgeTable, ...] = ()
    notes: list[str] = field(default_factory=list[str])


def column(name: str, kind: str, where: str) -> Column:
    """Return a column whose type is named in a header. Raises `InvalidInput` for an unknown type."""
    one = kind.strip().lower().removesuffix("[]").partition("{")[0]
    if one not in KINDS:
        raise InvalidInput(
            f"{where}: {name} has the unknown type {kind!r}. Available: {', '.join(sorted(KINDS))}; add [] for lists."
        )
    return Column(name, KINDS[one], kind.strip().endswith("[]"))


def value(text: str, column: Column, where: str, between: str = "|") -> Value:
    """Convert a cell of a file; an empty cell is null. Raises `InvalidInput` if the text does not fit the column.

    Args:
        between: The separator of list items.
    """
    if text == "":
        return None
    try:
        if column.many:
            return [_one(item, column.kind) for item in text.split(between)]  # pyright: ignore[reportReturnType]
        return _one(text, column.kind)
    except ValueError:
        raise InvalidInput(f"{where}: {column.name} is {text!r}, which is not a valid {column.kind}.") from None


def kind_of(texts: Iterator[str]) -> str:
    """Return the narrowest kind that fits all non-empty texts: int, float, boolean, date, … or string."""
    kinds = ["int", "float", "boolean", "date", "datetime"]
    seen = False
    for text in texts:
        if text != "":
            seen = True
            kinds = [kind for kind in kinds if _fits(text, kind)]
            if not kinds:
                return "string"
    return kinds[0] if seen else "string"


def unique(columns: Sequence[Column], where: str) -> tuple[Column, ...]:
    """Return the columns. Raises `InvalidInput` for an empty name or one that repeats, ignoring case."""
    seen: set[str] = set()
    for one in columns:
        if not one.name or one.name.lower() in seen:
            raise InvalidInput(
                f"{where}: the header has {f'{one.name} twice' if one.name else 'a column without a name'}."
            )
        seen.add(one.name.lower())
    return tuple(columns)


def files(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file())


def _fits(text: str, kind: str) -> bool:
    try:
        _one(text, kind)
    except ValueError:
        return False
    return True


def _one(text: str, kind: str) -> bool | int | float | str:
    if kind == "string":
        return text
    text = text.strip()
    if kind == "int":
        number = int(text)
        if not SMALLEST <= number <= LARGEST:
            raise ValueError
        return number
    if kind == "float":
        return float(text)
    if kind == "boolean":
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"
    if kind == "date":
        return datetime.date.fromisoformat(text).isoformat()
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return moment.isoformat()
