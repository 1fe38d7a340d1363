"""Loads tables into a new Ladybug database. The file is built in a temporary folder and moved when it is complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from mulligan.graphs.protocol import quoted
from mulligan.graphs.tables import Column, EdgeTable, NodeTable, Row, Tables, Value
from mulligan.pages import count
from mulligan.plugins import GraphError, InvalidInput, require

TYPES = {
    "string": "STRING",
    "int": "INT64",
    "float": "DOUBLE",
    "boolean": "BOOL",
    "date": "DATE",
    "datetime": "TIMESTAMP",
}
_SOURCE, _TARGET = "from", "to"
_ITEMS = "\x1f"


@dataclass(frozen=True)
class Loaded:
    """The number of nodes by label and of edges by type."""

    nodes: Mapping[str, int] = field(default_factory=dict[str, int])
    edges: Mapping[str, int] = field(default_factory=dict[str, int])


def load(tables: Tables, into: Path) -> Loaded:
    """Load the tables into a new database file. If it fails, nothing is left behind.

    Raises:
        InvalidInput: The tables do not fit together, or the file exists.
        GraphError: The database failed.
    """
    require("Graphs in a file need Ladybug", "ladybug", "kg")
    into = into.expanduser().absolute()
    if into.exists():
        raise InvalidInput(f"{into} already exists. Remove it, or choose another file.")
    if not tables.nodes:
        raise InvalidInput("There are no nodes to load.")
    for label in (table.label for table in (*tables.nodes, *tables.edges)):
        if "." in label:
            raise InvalidInput(f"The label {label} contains a dot, which has a special meaning in queries. Rename it.")
    into.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{into.name}-", dir=into.parent))
    try:
        loaded = _Loader(tables, work).run()
        os.rename(work / "graph", into)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return loaded


class _Loader:
    """Writes rows to CSV files, which the engine reads a thousand times faster than it runs statements."""

    def __init__(self, tables: Tables, work: Path) -> None:
        self._tables = tables
        self._work = work
        self._keys: dict[str, set[Value]] = {}
        self._key_kinds: dict[str, str] = {}
        self._connection: Any = None

    def run(self) -> Loaded:
        import ladybug

        try:
            with (
                ladybug.Database(str(self._work / "graph")) as database,
                ladybug.Connection(database) as self._connection,
            ):
                nodes = {table.label: self._nodes(table) for table in self._tables.nodes}
                return Loaded(nodes, self._all_edges())
        except RuntimeError as error:
            raise GraphError(f"The database could not be built: {error}") from None

    def _nodes(self, table: NodeTable) -> int:
        if table.label in self._keys:
            raise InvalidInput(f"There are two node tables with the label {table.label}: rename one of them.")
        keys = self._keys[table.label] = set()
        key = table.columns[0]
        self._key_kinds[table.label] = key.kind
        columns = ", ".join(f"{quoted(one.name)} {_type(one)}" for one in table.columns)
        self._connection.execute(f"CREATE NODE TABLE {quoted(table.label)}({columns}, PRIMARY KEY({quoted(key.name)}))")
        path = self._work / "rows.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            for row in _fitting(table.rows(), table.columns):
                if row.values[0] is None or row.values[0] in keys:
                    wrong = "has no key" if row.values[0] is None else f"appears twice: {row.values[0]!r}"
                    raise InvalidInput(f"{row.where}: a node with the label {table.label} {wrong}.")
                keys.add(row.values[0])
                _write(file, table.columns, row.values)
        if keys:
            self._copy(table.label, path, table.columns)
        return len(keys)

    def _all_edges(self) -> dict[str, int]:
        """Load all tables of a type together: in the database they are one table."""
        types = dict.fromkeys(table.label for table in self._tables.edges)
        return {label: self._edges(label, [t for t in self._tables.edges if t.label == label]) for label in types}

    def _edges(self, label: str, tables: Sequence[EdgeTable]) -> int:
        columns = _merged(label, tables)
        counted: Counter[tuple[str, str]] = Counter()
        opened: dict[tuple[str, str], IO[str]] = {}
        try:
            for table in tables:
                places = [table.columns.index(one) if one in table.columns else None for one in columns]
                for row in _fitting(table.rows(), table.columns):
                    ends = (row.source[0], row.target[0])
                    self._joined(row.source, row.where)
                    self._joined(row.target, row.where)
                    if ends not in opened:
                        opened[ends] = self._file(len(opened)).open("w", encoding="utf-8", newline="")
                    values = [None if place is None else row.values[place] for place in places]
                    all_columns = (*self._ends(*ends), *columns)
                    _write(opened[ends], all_columns, [row.source[1], row.target[1], *values])
                    counted[ends] += 1
        finally:
            for file in opened.values():
                file.close()
        if opened:
            self._create_edges(label, columns, list(opened))
        for n, ends in enumerate(opened):
            option = f" (from='{_escaped(ends[0])}', to='{_escaped(ends[1])}')"
            self._copy(label, self._file(n), (*self._ends(*ends), *columns), option)
        return counted.total()

    def _create_edges(self, label: str, columns: Sequence[Column], ends: Sequence[tuple[str, str]]) -> None:
        parts = [f"FROM {quoted(source)} TO {quoted(target)}" for source, target in ends]
        parts += [f"{quoted(one.name)} {_type(one)}" for one in columns]
        self._connection.execute(f"CREATE REL TABLE {quoted(label)}({', '.join(parts)})")

    def _ends(self, source: str, target: str) -> tuple[Column, Column]:
        return Column(_SOURCE, self._key_kinds[source]), Column(_TARGET, self._key_kinds[target])

    def _joined(self, end: tuple[str, Value], where: str) -> None:
        label, key = end
        if key not in self._keys.get(label, ()):
            raise InvalidInput(f"{where}: this edge needs the {label} {key!r}, which does not exist.")

    def _file(self, n: int) -> Path:
        return self._work / f"edges-{n}.csv"

    def _copy(self, label: str, path: Path, columns: Sequence[Column], option: str = "") -> None:
        """Copy through a query, for what the engine's CSV cannot express: null beside "", any string in a list."""
        typed = ", ".join(f"c{n} {'STRING' if one.kind == 'string' else _type(one)}" for n, one in enumerate(columns))
        read = ", ".join(f"{_read(f'c{n}', one)} AS v{n}" for n, one in enumerate(columns))
        how = "header=false, parallel=false, file_format='csv'"
        source = f"LOAD WITH HEADERS ({typed}) FROM '{_escaped(str(path))}' ({how}) RETURN {read}"
        self._connection.execute(f"COPY {quoted(label)} FROM ({source}){option}")


def _fitting(rows: Iterator[Any], columns: Sequence[Column]) -> Iterator[Any]:
    row: Row
    for row in rows:
        if len(row.values) != len(columns):
            raise InvalidInput(f"{row.where}: {count(len(row.values), 'value')} for {count(len(columns), 'column')}.")
        yield row


def _merged(label: str, tables: Sequence[EdgeTable]) -> tuple[Column, ...]:
    found: dict[str, Column] = {}
    for one in (column for table in tables for column in table.columns):
        known = found.setdefault(one.name, one)
        if known != one:
            raise InvalidInput(
                f"{one.name} of {label} is {_type(known)} in one file, but {_type(one)} in another: use the same type."
            )
    return tuple(found.values())


def _type(column: Column) -> str:
    return TYPES[column.kind] + ("[]" if column.many else "")


def _write(file: IO[str], columns: Sequence[Column], values: Sequence[Value]) -> None:
    file.write(",".join(_cell(one, value) for one, value in zip(columns, values, strict=True)) + "\n")


def _cell(column: Column, value: Value) -> str:
    """Write a cell. Each string gets the prefix V, also in lists, so that no cell is empty."""
    if value is None:
        return ""
    if isinstance(value, list):
        items = [f"V{item}" if column.kind == "string" else _plain(item) for item in value]
        text = f"V{_ITEMS.join(items)}" if column.kind == "string" else f"[{','.join(items)}]"
    else:
        text = f"V{value}" if column.kind == "string" else _plain(value)
    return '"' + text.replace('"', '""') + '"'


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(name: str, column: Column) -> str:
    if column.kind != "string":
        return name
    text = f"substring({name}, 2, size({name}))"
    if column.many:
        items = f"list_transform(string_split({text}, '{_ITEMS}'), x -> substring(x, 2, size(x)))"
        return f"CASE WHEN {name} = '' THEN NULL WHEN {name} = 'V' THEN cast([] AS STRING[]) ELSE {items} END"
    return f"CASE WHEN {name} = '' THEN NULL ELSE {text} END"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
