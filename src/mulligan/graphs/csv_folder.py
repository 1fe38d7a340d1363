"""Reads a graph from Mulligan's own layout of files: `nodes/LABEL.csv` and `edges/TYPE.csv`, each with a header.

A column is `name:type`; without a type, it is inferred from the values. The first column of nodes is their key. The
first two columns of edges are `from:LABEL` and `to:LABEL`; a type that connects several labels has more files, such as
`TYPE.2.csv`. Lists have `|` between their items, and an empty cell is null.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from mulligan.graphs.tables import (
    Column,
    EdgeRow,
    EdgeTable,
    NodeTable,
    Row,
    Tables,
    column,
    files,
    kind_of,
    unique,
    value,
)
from mulligan.pages import count
from mulligan.plugins import InvalidInput


def is_csv_folder(folder: Path) -> bool:
    return bool(files(folder / "nodes", "*.csv"))


def csv_tables(folder: Path) -> Tables:
    """Return the tables of a folder. Raises `InvalidInput` for files that do not follow this layout."""
    nodes = {path.stem: _nodes(path) for path in files(folder / "nodes", "*.csv")}
    keys = {label: table.columns[0] for label, table in nodes.items()}
    edges = tuple(_edges(path, keys) for path in files(folder / "edges", "*.csv"))
    return Tables(tuple(nodes.values()), edges)


def _nodes(path: Path) -> NodeTable:
    header = _header(path)
    columns = unique([_column(path, cell, n) for n, cell in enumerate(header)], str(path))
    if columns[0].many or columns[0].kind not in ("string", "int"):
        raise InvalidInput(
            f"{path}: the first column is the key and must be a string or an int, not {columns[0].kind}."
        )
    return NodeTable(path.stem, columns, partial(_node_rows, path, columns))


def _node_rows(path: Path, columns: Sequence[Column]) -> Iterator[Row]:
    for where, cells in _records(path, len(columns)):
        yield Row([value(cell, of, where) for cell, of in zip(cells, columns, strict=True)], where)


def _edges(path: Path, keys: dict[str, Column]) -> EdgeTable:
    header = _header(path)
    ends = [cell.partition(":") for cell in header[:2]]
    if [end[0] for end in ends] != ["from", "to"]:
        raise InvalidInput(f"{path}: the first two columns of edges must be from:LABEL and to:LABEL.")
    for _, _, label in ends:
        if label not in keys:
            known = ", ".join(sorted(keys)) or "none"
            raise InvalidInput(f"{path}: no file in nodes/ has the label {label!r}. Available: {known}.")
    columns = unique([_column(path, cell, n) for n, cell in enumerate(header[2:], 2)], str(path))
    source, target = ends[0][2], ends[1][2]
    rows = partial(_edge_rows, path, columns, (source, keys[source]), (target, keys[target]))
    return EdgeTable(path.name.partition(".")[0], columns, rows)


def _edge_rows(
    path: Path, columns: Sequence[Column], source: tuple[str, Column], target: tuple[str, Column]
) -> Iterator[EdgeRow]:
    for where, cells in _records(path, len(columns) + 2):
        values = [value(cell, of, where) for cell, of in zip(cells[2:], columns, strict=True)]
        ends = [(label, value(cell, key, where)) for cell, (label, key) in zip(cells, (source, target), strict=False)]
        yield EdgeRow(values, where, *ends)


def _column(path: Path, cell: str, n: int) -> Column:
    name, colon, kind = cell.strip().rpartition(":")
    if colon:
        return column(name, kind, str(path))
    texts = (cells[n] for _, cells in _records(path, None) if n < len(cells))
    return Column(kind, kind_of(texts) if n else "string")


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file), None)
    if not header:
        raise InvalidInput(f"{path} is empty: the first line must contain the column names.")
    return header


def _records(path: Path, wide: int | None) -> Iterator[tuple[str, list[str]]]:
    """Yield the position of each record and its cells. `wide`: the number of cells that a record must have."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        next(reader, None)
        try:
            for cells in reader:
                if not cells:
                    continue
                where = f"{path}:{reader.line_num}"
                if wide is not None and len(cells) != wide:
                    raise InvalidInput(f"{where}: {count(len(cells), 'cell')}, but the header has {wide}.")
                yield where, cells
        except (csv.Error, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path}:{reader.line_num}: {error}.") from None
