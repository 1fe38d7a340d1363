"""The tables of the journal of hooks, and how a file of an earlier version gets them."""

from __future__ import annotations

import os
import sqlite3

from mulligan.core.write_ahead import keep_log
from mulligan.hooks.swallowed import make_room

TABLES = """
CREATE TABLE sessions (
    agent TEXT NOT NULL, session TEXT NOT NULL, subagent TEXT NOT NULL DEFAULT '', project TEXT NOT NULL DEFAULT '',
    folder TEXT NOT NULL DEFAULT '', transcript TEXT NOT NULL DEFAULT '', kind TEXT NOT NULL DEFAULT '',
    began REAL NOT NULL, seen REAL NOT NULL, ended REAL, due INTEGER NOT NULL DEFAULT 0,
    compactions INTEGER NOT NULL DEFAULT 0, asked REAL, forgotten INTEGER NOT NULL DEFAULT 0,
    cursor TEXT, learned REAL, lessons INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (agent, session, subagent));
CREATE TABLE shown (
    n INTEGER PRIMARY KEY, receipt TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, subagent TEXT NOT NULL,
    compaction INTEGER NOT NULL, way TEXT NOT NULL, project TEXT NOT NULL, lesson TEXT NOT NULL, moment TEXT NOT NULL,
    at REAL NOT NULL, digests TEXT NOT NULL, again INTEGER, told INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX shown_once ON shown (agent, session, subagent, compaction, lesson, way = 'denied');
CREATE TABLE failures (
    n INTEGER PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, subagent TEXT NOT NULL, project TEXT NOT NULL,
    call TEXT NOT NULL, digest TEXT NOT NULL, words TEXT NOT NULL, at REAL NOT NULL, command INTEGER, tried REAL,
    UNIQUE (agent, session, call, digest));
CREATE INDEX failures_of_digest ON failures (project, digest);
CREATE TABLE errors (
    n INTEGER PRIMARY KEY, at REAL NOT NULL, agent TEXT NOT NULL, event TEXT NOT NULL, what TEXT NOT NULL);
CREATE TABLE paused (folder TEXT PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE bound (project TEXT PRIMARY KEY, bank TEXT NOT NULL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
CHANGES = {
    1: "ALTER TABLE failures ADD COLUMN command INTEGER;\nALTER TABLE failures ADD COLUMN tried REAL",
    2: "ALTER TABLE shown ADD COLUMN done INTEGER NOT NULL DEFAULT 0",
}
"""What brings a file of this version to the next one."""


def bring_up_to_date(db: sqlite3.Connection, path: str, version: int, wait: float) -> None:
    """Make the tables of this version, or change those of an earlier one.

    Args:
        path: of the file of `db`.
        wait: seconds to wait for another process.
    """
    keep_log(db, wait)
    db.execute("BEGIN IMMEDIATE")
    with db:  # commits, or rolls back
        there = db.execute("PRAGMA user_version").fetchone()[0]  # another process may have been faster
        for script in [TABLES] if there == 0 else [CHANGES[number] for number in range(there, version)]:
            for statement in script.split(";\n"):
                db.execute(statement)
        if there == 0:
            db.execute("INSERT INTO settings VALUES ('guards', '{}')")
        if there < version:
            db.execute(f"PRAGMA user_version = {version}")
    make_room(os.path.dirname(path))
