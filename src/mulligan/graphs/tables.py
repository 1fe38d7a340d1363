"""A graph as tables: what the readers of files give and the loaders take. Rows are read as they are needed."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from mulligan.core.errors import InvalidInput

Value: TypeAlias = bool | int | float | str | list[bool] | list[int] | list[float] | list[str] | None
"""Dates and times are ISO 8601 texts here, without a zone: those of other zones are turned into UTC."""

KINDS: Mapping[str, str] = {
    **dict.fromkeys(("string", "char", "duration", "time", "localtime", "point"), "string"),
    **dict.fromkeys(("int", "integer", "long", "short", "byte"), "int"),
    **dict.fromkeys(("float", "double"), "float"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    "date": "date",
    **dict.fromkeys(("datetime", "localdatetime"), "datetime"),
}
"""The names of types in headers, as neo4j-admin knows them, and the kinds of columns here."""
SMALLEST, LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Column:
    """A property. kind: string, int, float, boolean, date or datetime; `many`: a list of them."""

    name: str
    kind: str = "string"
    many: bool = False


@dataclass(frozen=True)
class Row:
    """Values in the order of the columns, and where they were read, for messages."""

    values: Sequence[Value]
    where: str = ""


@dataclass(frozen=True)
class EdgeRow(Row):
    """source and target: label and key of a node."""

    source: tuple[str, Value] = ("", None)
    target: tuple[str, Value] = ("", None)


@dataclass(frozen=True)
class NodeTable:
    """The nodes of a label; the first column is their key."""

    label: str
    columns: tuple[Column, ...]
    rows: Callable[[], Iterator[Row]]


@dataclass(frozen=True)
class EdgeTable:
    """Relationships of a type; they may join nodes of any labels."""

    label: str
    columns: tuple[Column, ...]
    rows: Callable[[], Iterator[EdgeRow]]


@dataclass(frozen=True)
class Tables:
    """notes: what of the files has no place in tables, in sentences."""

    nodes: tuple[NodeTable, ...] = ()
    edges: tuple[EdgeTable, ...] = ()
    notes: list[str] = field(default_factory=list[str])


def column(name: str, kind: str, where: str) -> Column:
    """A column by the name of its type in a header. Raises `InvalidInput` for a type that is none."""
    one = kind.strip().lower().removesuffix("[]").partition("{")[0]
    if one not in KINDS:
        raise InvalidInput(
            f"{where}: {name} has the type {kind!r}; types are {', '.join(sorted(KINDS))}, with [] lists."
        )
    return Column(name, KINDS[one], kind.strip().endswith("[]"))


def value(text: str, column: Column, where: str, between: str = "|") -> Value:
    """A cell of a file; an empty one is null. between: what stands between the items of a list.

    Raises `InvalidInput` for a text that is not of the column's kind.
    """
    if text == "":
        return None
    try:
        if column.many:
            return [_one(item, column.kind) for item in text.split(between)]  # pyright: ignore[reportReturnType]
        return _one(text, column.kind)
    except ValueError:
        raise InvalidInput(f"{where}: {column.name} is {text!r}, which is no {column.kind}.") from None


def kind_of(texts: Iterator[str]) -> str:
    """The kind that all of these texts are of, empty ones left out: the narrowest of int, float, boolean, date."""
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
    """Raises `InvalidInput` for a name that stands there twice (databases mind no case), or for none."""
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
