"""A server that speaks Bolt, on loopback, for tests: ArcadeDB with the Java that its Python package brings along.

    python tests/support/bolt_server.py FOLDER       prints the address, and serves until its input is closed

It is started without the package's own module (which runs Java inside of Python, where nobody can kill it), with the
Bolt plug-in alone: the jars of the other protocols and of the MCP endpoint are left out. It keeps its database, its logs
and its settings in FOLDER. It ignores the time-out and the read mode of a transaction: what hangs in it hangs until it
is killed, so it can be started again on what it has.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = "MULLIGAN_TEST_ARCADEDB"
"""The variable with the folder of the package `arcadedb_embedded`, where it is not installed for this Python."""
USER, PASSWORD, DATABASE = "root", "only-for-tests", "graph"
STARTING = 60.0
MEMORY = 512
_LEFT_OUT = ("arcadedb-mcp", "arcadedb-postgresw", "arcadedb-redisw", "arcadedb-console", "arcadedb-graphql")
_UNTIL_CLOSED = '"$@" & server=$!; cat > /dev/null; kill -9 $server'


def package() -> Path | None:
    """Where ArcadeDB is, if it is here."""
    if given := os.environ.get(PACKAGE):
        return Path(given)
    found = find_spec("arcadedb_embedded")
    return Path(found.origin).parent if found and found.origin else None


class BoltServer:
    """Ends with this process, whatever ends it: the server is killed when its input is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"bolt://127.0.0.1:{self.port}"

    @property
    def access(self) -> dict[str, Any]:
        """As `connection_args` takes it."""
        return {
            "host": "127.0.0.1",
            "port": str(self.port),
            "user": USER,
            "password": PASSWORD,
            "database": DATABASE,
        }

    def start(self) -> None:
        """Waits until it answers. Raises `RuntimeError` with the end of its log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                ["sh", "-c", _UNTIL_CLOSED, "sh", *self._command()],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=self.folder,
            )
        until = time.monotonic() + STARTING
        while not self._answers():
            if time.monotonic() > until or self._process.poll() is not None:
                self.stop()
                raise RuntimeError((self.folder / "output.txt").read_text()[-2000:])
            time.sleep(0.1)

    def stop(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait(30)
            self._process = None

    def restart(self) -> None:
        """After a query that it would not stop. What was written is there again."""
        self.stop()
        self.start()

    @contextmanager
    def session(self) -> Generator[Any]:
        """A session of the driver that may write, for tests to fill the database and to look behind our back."""
        from neo4j import GraphDatabase

        made: Any = GraphDatabase
        with made.driver(self.address, auth=(USER, PASSWORD)) as driver, driver.session(database=DATABASE) as session:
            yield session

    def _answers(self) -> bool:
        try:
            with self.session() as session:
                return session.run("RETURN 1 AS x").single()["x"] == 1
        except Exception:
            return False

    def _command(self) -> list[str]:
        home = package()
        assert home is not None
        jars = [str(jar) for jar in sorted((home / "jars").glob("*.jar")) if not jar.name.startswith(_LEFT_OUT)]
        settings = {
            "server.rootPath": self.folder,
            "server.databaseDirectory": self.folder / "databases",
            "server.rootPassword": PASSWORD,
            "server.httpIncomingHost": "127.0.0.1",
            "server.httpIncomingPort": _free_port(),
            "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "server.defaultDatabases": f"{DATABASE}[{USER}]",
            "bolt.host": "127.0.0.1",
            "bolt.port": self.port,
        }
        options = [f"-Darcadedb.{name}={value}" for name, value in settings.items()]
        java = str(home / "jre" / "bin" / "java")
        return [java, f"-Xmx{MEMORY}m", "-cp", os.pathsep.join(jars), *options, "com.arcadedb.server.ArcadeDBServer"]


def fill(server: BoltServer, tables: Any) -> None:
    """Tables (`mulligan.graphs.tables`) into the server's database, a thousand rows at a time."""
    with server.session() as session:
        for table in tables.nodes:
            key = table.columns[0].name
            session.run(f"CREATE INDEX FOR (n:`{table.label}`) ON (n.`{key}`)").consume()
            for rows in _thousands(_properties(table.columns, row.values) for row in table.rows()):
                session.run(f"UNWIND $rows AS row CREATE (n:`{table.label}`) SET n += row", rows=rows).consume()
        keys = {table.label: table.columns[0].name for table in tables.nodes}
        for table in tables.edges:
            for rows in _thousands(table.rows()):
                (source, target) = (rows[0].source[0], rows[0].target[0])
                given = [
                    {"a": row.source[1], "b": row.target[1], "p": _properties(table.columns, row.values)}
                    for row in rows
                ]
                session.run(
                    f"UNWIND $rows AS row MATCH (a:`{source}` {{`{keys[source]}`: row.a}}), "
                    f"(b:`{target}` {{`{keys[target]}`: row.b}}) CREATE (a)-[r:`{table.label}`]->(b) SET r += row.p",
                    rows=given,
                ).consume()


def _properties(columns: Any, values: Any) -> dict[str, Any]:
    import datetime

    read = {"date": datetime.date.fromisoformat, "datetime": datetime.datetime.fromisoformat}
    return {
        column.name: read[column.kind](value) if column.kind in read else value
        for column, value in zip(columns, values, strict=True)
        if value is not None
    }


def _thousands(rows: Any) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for row in rows:
        batch.append(row)
        if len(batch) == 1000:
            yield batch
            batch = []
    if batch:
        yield batch


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    served = BoltServer(Path(sys.argv[1]).absolute())
    served.start()
    print(f"{served.address} user={USER} password={PASSWORD} database={DATABASE}", flush=True)
    sys.stdin.read()
    served.stop()
