"""Opens a graph database by its path, address or a dict of connection settings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mulligan.graphs.biocypher import biocypher_tables, is_biocypher
from mulligan.graphs.bolt import BoltGraph
from mulligan.graphs.csv_folder import csv_tables, is_csv_folder
from mulligan.graphs.ladybug import LadybugGraph
from mulligan.graphs.loading import Loaded
from mulligan.graphs.loading import load as load_tables
from mulligan.graphs.protocol import Graph
from mulligan.graphs.tables import Tables
from mulligan.plugins import InvalidInput
from mulligan.running import load

PASSWORD = "MULLIGAN_GRAPH_PASSWORD"
"""The environment variable with the server's password. An option would be visible in the list of processes."""
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
KEYS = ("path", "uri", "host", "port", "user", "password", "database", "db_name", "memory")


def open_graph(
    where: str | Path | Mapping[str, Any],
    user: str | None = None,
    password: str | None = None,
    database: str | None = None,
) -> Graph:
    """Return the graph at a path (a Ladybug file), an address (`bolt://host:7687`, `neo4j+s://host`), or of a dict.

    The dict has `path`, or `uri`, or `host` and `port`, and may have `user`, `password` and `database` (or `db_name`).
    The other arguments take precedence over it. The password may be in `MULLIGAN_GRAPH_PASSWORD`; it is used only with
    a user. `[graphs]` in mulligan.toml may name further procedures that only read. The database is first connected to
    at the first query. Raises `InvalidInput`.
    """
    more: dict[str, Any] = {"procedures": procedures} if (procedures := _procedures()) else {}
    if not isinstance(where, Mapping):
        return _opened(str(where), user, password, database, more)
    unknown = sorted(set(where) - set(KEYS))
    if unknown:
        raise InvalidInput(f"A graph connection has no {', '.join(unknown)}; available: {', '.join(KEYS)}.")
    given = {key: value for key, value in where.items() if value is not None and value != ""}
    user, password = user or given.get("user"), password or given.get("password")
    database = database or given.get("database") or given.get("db_name")
    if sum(key in given for key in ("path", "uri", "host")) > 1:
        raise InvalidInput("A graph connection must have only one of these: a path, a URI, or a host and port.")
    if "memory" in given:
        more["memory"] = _megabytes(given["memory"])
    if "path" in given or "uri" in given:
        return _opened(str(given.get("path") or given["uri"]), user, password, database, more)
    return _opened(_address(where, given), user, password, database, more)


def _procedures() -> Sequence[str]:
    """Return the procedures and functions that a project declares read-only. Raises `InvalidInput`."""
    config = load()
    given: Any = config.table("graphs").get("procedures", [])
    if not isinstance(given, list) or not all(isinstance(one, str) and _NAME.fullmatch(one) for one in given):  # pyright: ignore[reportUnknownVariableType]
        where = config.where("graphs", "procedures")
        raise InvalidInput(f'{where}: procedures must be names such as ["apoc.meta.schema"], not {given!r:.200}.')
    return cast(list[str], given)


def _megabytes(given: Any) -> int:
    text = str(given)
    if not text.isdecimal() or not int(text):
        raise InvalidInput(f"'memory' must be an integer, the number of MB per query, not {given!r}.")
    return int(text)


def _address(where: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Return the address of `host` and `port`. As in BioChatter, an empty host is this machine."""
    if "host" not in where and "port" not in where:
        raise InvalidInput("No graph was specified. Pass a path, a URI, or a host and port.")
    host, port = str(given.get("host", "localhost")), str(given.get("port", "7687"))
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidInput(f"The port of a graph's server must be a number from 1 to 65535, not {port!r}.")
    if "://" in host:
        return f"{host.rstrip('/')}:{port}"
    return f"bolt://[{host}]:{port}" if ":" in host else f"bolt://{host}:{port}"


def _opened(where: str, user: str | None, password: str | None, database: str | None, more: Mapping[str, Any]) -> Graph:
    if "://" not in where:
        if user or database:
            raise InvalidInput(f"{where} is a file, which has no users or databases: omit them.")
        return LadybugGraph(where, **more)
    password = password or os.environ.get(PASSWORD) or None
    return BoltGraph(where, user=user, password=password, database=database, **more)


def load_graph(source: str | Path, into: str | Path) -> tuple[Loaded, list[str]]:
    """Load the files of a folder (Mulligan's layout or BioCypher's output) into a new Ladybug database.

    Returns what was loaded, and a sentence for each thing that was left out. If it raises `InvalidInput` or
    `GraphError`, nothing is left behind.
    """
    tables = read_tables(source)
    return load_tables(tables, Path(into)), tables.notes


def read_tables(source: str | Path) -> Tables:
    """Return the files of a folder as tables. Raises `InvalidInput` for an unknown layout."""
    folder = Path(source).expanduser()
    if is_csv_folder(folder):
        return csv_tables(folder)
    if is_biocypher(folder):
        return biocypher_tables(folder)
    there = "is not a folder" if not folder.is_dir() else "has neither nodes/LABEL.csv nor X-header.csv files"
    raise InvalidInput(f"{folder} {there}. For graph file formats, see: mulligan docs graphs")
