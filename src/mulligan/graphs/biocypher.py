"""Reads a graph from the files that BioCypher writes for `neo4j-admin import`: `X-header.csv`, `X-part000.csv`, ….

The delimiters and the quotation mark are in the import call beside them. Strings are quoted, and quotation marks inside
them are not escaped, so a string ends at a mark that is followed by a delimiter or the end of the line. Of a node's
labels only that of its file is kept: the others are its ancestors in the ontology.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mulligan.graphs.tables import (
    Column,
    EdgeRow,
    EdgeTable,
    NodeTable,
    Row,
    Tables,
    Value,
    column,
    files,
    unique,
    value,
)
from mulligan.pages import count
from mulligan.plugins import InvalidInput

_HEADER = "-header.csv"
_SPECIAL = re.compile(r"^(.*):(ID|START_ID|END_ID|LABEL|TYPE|IGNORE)(?:\(([^)]*)\))?$")
_KEY = "id"


@dataclass(frozen=True)
class _Marks:
    """The delimiter of cells, the delimiter of list items, and the quotation mark."""

    between: str = ";"
    items: str = "|"
    quote: str = "'"


@dataclass(frozen=True)
class _Part:
    """A column of a header. special: ID, START_ID, ... or "". space: the ID space that it names; "" for the global."""

    special: str
    column: Column
    space: str = ""


@dataclass(frozen=True)
class _File:
    """A header and the files with its rows."""

    name: str
    parts: tuple[_Part, ...]
    paths: tuple[Path, ...]
    marks: _Marks

    @property
    def label(self) -> str:
        """The name without dots, which mean something else in queries; in Ladybug even in backticks."""
        return self.name.replace(".", "_")

    def place(self, special: str) -> int | None:
        return next((n for n, part in enumerate(self.parts) if part.special == special), None)


def is_biocypher(folder: Path) -> bool:
    return bool(files(folder, f"*{_HEADER}"))


def biocypher_tables(folder: Path) -> Tables:
    """Return the tables of a folder. Reads the keys of all nodes, to find the labels of the edges' ends.

    Raises `InvalidInput` for files that do not follow this layout.
    """
    every = [_file(path, _marks(folder, path)) for path in files(folder, f"*{_HEADER}")]
    nodes = [file for file in every if file.place("ID") is not None]
    labels: dict[tuple[str, str], str] = {}
    for file in nodes:
        key = _needed(file, "ID")
        space = file.parts[key].space
        labels.update((((space, cells[key]), file.label) for _, cells in _records(file)))
    edges = [table for file in every if file.place("ID") is None for table in _edges(file, labels)]
    tables = Tables(tuple(_nodes(file) for file in nodes), tuple(edges))
    if any(file.place("LABEL") is not None for file in nodes):
        tables.notes.append("Each node keeps only the label of its file: a node has one label here.")
    tables.notes.extend(f"{file.name} is {file.label} here." for file in nodes if file.label != file.name)
    return tables


def _nodes(file: _File) -> NodeTable:
    key = _needed(file, "ID")
    own = file.parts[key].column.name or _KEY
    places = [n for n, part in enumerate(file.parts) if not part.special and part.column.name != own]
    twin = next((n for n, part in enumerate(file.parts) if not part.special and part.column.name == own), None)
    columns = unique([Column(own), *(file.parts[n].column for n in places)], f"{file.name}{_HEADER}")
    return NodeTable(file.label, columns, partial(_node_rows, file, key, places, twin))


def _node_rows(file: _File, key: int, places: Sequence[int], twin: int | None) -> Iterator[Row]:
    for where, cells in _records(file):
        if twin is not None and cells[twin] not in ("", cells[key]):
            raise InvalidInput(
                f"{where}: the node {cells[key]!r} also has the property {_KEY} with another value, {cells[twin]!r}."
            )
        yield Row([cells[key], *_values(file, places, cells, where)], where)


def _edges(file: _File, labels: dict[tuple[str, str], str]) -> Iterator[EdgeTable]:
    source, target, kind = (_needed(file, special) for special in ("START_ID", "END_ID", "TYPE"))
    places = [n for n, part in enumerate(file.parts) if not part.special]
    columns = unique([file.parts[n].column for n in places], f"{file.name}{_HEADER}")
    for name in dict.fromkeys(cells[kind] for _, cells in _records(file)):
        yield EdgeTable(name, columns, partial(_edge_rows, file, name, (source, target, kind), places, labels))


def _edge_rows(
    file: _File, name: str, special: tuple[int, int, int], places: Sequence[int], labels: dict[tuple[str, str], str]
) -> Iterator[EdgeRow]:
    source, target, kind = special
    for where, cells in _records(file):
        if cells[kind] != name:
            continue
        ends: list[tuple[str, Value]] = []
        for n in (source, target):
            label = labels.get((file.parts[n].space, cells[n]))
            if label is None:
                raise InvalidInput(f"{where}: no node has the id {cells[n]!r}.")
            ends.append((label, cells[n]))
        yield EdgeRow(_values(file, places, cells, where), where, *ends)


def _values(file: _File, places: Sequence[int], cells: Sequence[str], where: str) -> list[Value]:
    return [value(cells[n], file.parts[n].column, where, file.marks.items) for n in places]


def _needed(file: _File, special: str) -> int:
    place = file.place(special)
    if place is None:
        raise InvalidInput(f"{file.name}{_HEADER}: no column :{special}; edge files need :START_ID, :END_ID, :TYPE.")
    return place


def _file(header: Path, marks: _Marks) -> _File:
    name = header.name.removesuffix(_HEADER)
    cells = header.read_text(encoding="utf-8").strip("\r\n").split(marks.between)
    paths = files(header.parent, f"{glob.escape(name)}-part*.csv")
    return _File(name, tuple(_part(cell, header) for cell in cells), tuple(paths), marks)


def _part(cell: str, header: Path) -> _Part:
    if found := _SPECIAL.match(cell):
        return _Part(found[2], Column(found[1]), found[3] or "")
    name, colon, kind = cell.rpartition(":")
    return _Part("", column(name, kind, str(header)) if colon else Column(kind))


def _marks(folder: Path, header: Path) -> _Marks:
    """Return the marks from the import call; without one, from the header and BioCypher's defaults."""
    for call in files(folder, "*import-call.sh"):
        text = call.read_text(encoding="utf-8")
        found = [re.search(rf'--{name}="(\\t|.)"', text) for name in ("delimiter", "array-delimiter", "quote")]
        if all(found):
            return _Marks(*("\t" if one and one[1] == "\\t" else one[1] if one else "" for one in found))
    between = re.search(r":(?:ID|START_ID)(?:\([^)]*\))?([^\w:])", header.read_text(encoding="utf-8"))
    return _Marks(between[1] if between and between[1] not in "\r\n" else ";")


def _records(file: _File) -> Iterator[tuple[str, list[str]]]:
    for path in file.paths:
        with path.open(encoding="utf-8", newline="") as lines:
            number, began, text = 0, 1, ""
            for line in lines:
                number += 1
                text += line
                cells = _cells(text.rstrip("\r\n"), file.marks)
                if cells is None:
                    continue  # the string continues on the next line
                if cells != [""]:
                    if len(cells) != len(file.parts):
                        raise InvalidInput(
                            f"{path}:{began}: {count(len(cells), 'cell')}, but the header has {len(file.parts)}."
                        )
                    yield f"{path}:{began}", cells
                began, text = number + 1, ""
            if text:
                raise InvalidInput(f"{path}:{began}: a string is not closed with {file.marks.quote}.")


def _cells(text: str, marks: _Marks) -> list[str] | None:
    """Split a record into cells; None if a quoted string is not closed."""
    cells: list[str] = []
    at = 0
    while True:
        if text.startswith(marks.quote, at):
            end = _closed(text, at + 1, marks)
            if end is None:
                return None
            cells.append(text[at + 1 : end])
            end += 1
        else:
            found = text.find(marks.between, at)
            end = len(text) if found < 0 else found
            cells.append(text[at:end])
        if end >= len(text):
            return cells
        at = end + len(marks.between)


def _closed(text: str, at: int, marks: _Marks) -> int | None:
    while (found := text.find(marks.quote, at)) >= 0:
        if found + 1 == len(text) or text.startswith(marks.between, found + 1):
            return found
        at = found + 1
    return None
