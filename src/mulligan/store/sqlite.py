"""Episodes, events and journal steps in one SQLite file: the `Store` of core.protocols.

What a call has returned from survives the death of the process at once. The death of the machine it survives when
the store was idle for a fifth of a second since, as during any call of a model; before that the newest writes may
be missing, but never one without those after it. `synchronous="full"` closes this gap for 0.2 ms of CPU and the
disk's own delay per write. Events are only ever added; the episode is the fold of them over the record as created.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

from mulligan.core.codec import SCHEMA, json_text
from mulligan.core.episode import Event, advance
from mulligan.core.errors import InvalidInput, NotFound, OutOfOrder, StoreError
from mulligan.core.protocols import Lease, StepRow
from mulligan.core.records import Brief, Episode, Head, Json
from mulligan.store import briefs, leases, lessons_rows
from mulligan.store.benches import SqliteBenches
from mulligan.store.database import Database, Synchronous
from mulligan.store.memory import SqliteMemory
from mulligan.store.reading import event_of, json_of, kept, readable, record_of, unreadable

_NO_FILES: Mapping[str, str] = {}
_LAST = chr(0x10FFFF)
_Rows: TypeAlias = tuple[str, int, str, Sequence[tuple[int, int, str]]]
"""An episode's id, schema and record, and its events."""


class SqliteStore:
    """Opens nothing until it is used; `close` it in the end. Missing folders are made.

    busy_seconds: how long writers in other processes are waited for, in all, before a write raises `StoreError`.
    clock: counts these seconds, and those that another's heartbeat has to stand still before its lease is taken over.
    memory, benches: the lessons and the queued work, and the runs of benchmarks, of the same file, over the same
    connections; closed with this.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        busy_seconds: float = 30.0,
        synchronous: Synchronous = "normal",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = Database(Path(path), busy_seconds=busy_seconds, synchronous=synchronous, clock=clock)
        self.memory = SqliteMemory(self._db)
        self.benches = SqliteBenches(self._db)

    # --- episodes -----------------------------------------------------------------------------------------------

    async def create(self, episode: Episode, files: Mapping[str, str] = _NO_FILES) -> None:
        if episode.trials or episode.recall or episode.stop:
            raise StoreError(f"Episode {episode.id}: it is created as it begins; what happens to it comes as events.")
        record = kept(episode, f"Episode {episode.id}")
        await self._db.write(lambda db: _insert(db, episode, record, files))

    async def copy(
        self, episode: str, id: str, run: str, head: Head, files: Mapping[str, str], event: Event
    ) -> Episode:
        text = kept(event, f"The event that episode {id} begins with")

        def work(db: sqlite3.Connection) -> None:
            old = _row(db, episode)
            schema, record = db.execute("SELECT schema, record FROM episodes WHERE n = ?", (old,)).fetchone()
            begun = folded(episode, schema, record, ())
            fork = replace(begun, id=id, run=run, head=head, forked_from=episode)
            rows = {"old": old, "new": _insert(db, fork, kept(fork, f"Episode {id}"), files)}
            for statement in _COPY:
                db.execute(statement, rows)
            db.execute(_NEXT_EVENT, (rows["new"], SCHEMA, text, rows["new"]))

        await self._db.write(work)
        return await self.load(id)

    async def append(self, lease: Lease, seq: int, event: Event) -> None:
        text = kept(event, f"Event {seq} of episode {lease.episode}")

        def work(db: sqlite3.Connection) -> None:
            row = leases.held(db, lease)
            due = db.execute("SELECT coalesce(max(seq) + 1, 0) FROM events WHERE episode = ?", (row,)).fetchone()[0]
            if seq != due:
                wrong = "is taken" if seq < due else "would leave a gap"
                raise StoreError(f"Event {seq} of episode {lease.episode} {wrong}: number {due} is next.")
            db.execute("INSERT INTO events (episode, seq, schema, event) VALUES (?, ?, ?, ?)", (row, seq, SCHEMA, text))

        await self._db.write(work, under_way=True)

    async def load(self, episode: str, *, agent: str | None = None) -> Episode:
        where, values = _where(id=episode, agent=agent)
        found = await self._db.read(lambda db: _episodes(db, where, values, 1))
        if not found:
            raise briefs.missing(episode)
        return folded(*found[0])

    async def list(
        self, *, run: str | None = None, agent: str | None = None, limit: int = 50, benches: bool = True
    ) -> Sequence[Episode]:
        where, values = _where(run=run, agent=agent)
        where += "" if benches else " AND run NOT IN (SELECT id FROM bench_runs)"
        found = await self._db.read(lambda db: _episodes(db, where, values, limit))
        return tuple(readable(found, lambda rows: folded(*rows)))

    async def briefs(self, *, agent: str | None = None, before: str | None = None, limit: int = 50) -> Sequence[Brief]:
        return await self._db.read(lambda db: briefs.listed(db, agent, before, limit))

    async def ids(self, prefix: str, *, agent: str | None = None, limit: int = 50) -> Sequence[str]:
        return await self._db.read(lambda db: briefs.ids(db, prefix, agent, limit))

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        return await self._db.read(lambda db: briefs.agents(db, prefix, limit))

    async def events(self, episode: str) -> Sequence[Event]:
        def work(db: sqlite3.Connection) -> Sequence[Event]:
            rows = db.execute(
                "SELECT episode, schema, event FROM events WHERE episode = ? ORDER BY seq", (_row(db, episode),)
            )
            return tuple(event_of(f"An event of episode {episode}", schema, text) for _, schema, text in rows)

        return await self._db.read(work)

    async def files(self, episode: str) -> Mapping[str, str]:
        def work(db: sqlite3.Connection) -> Mapping[str, str]:
            rows = db.execute(
                "SELECT f.name, t.content FROM files f JOIN texts t USING (sha256) WHERE f.episode = ? ORDER BY f.name",
                (_row(db, episode),),
            )
            return {name: _file_text(episode, name, content) for name, content in rows}

        return await self._db.read(work)

    async def resolve(self, prefix: str) -> Sequence[str]:
        return await self._db.read(lambda db: _resolved(db, prefix))

    async def remove(self, lease: Lease) -> None:
        def work(db: sqlite3.Connection) -> None:
            _remove(db, leases.held(db, lease))
            lessons_rows.run_removed(db, lease.episode)

        await self._db.write(work)

    async def workspaces(self) -> Sequence[Mapping[str, Json]]:
        def work(db: sqlite3.Connection) -> Sequence[Mapping[str, Json]]:
            settings = "json_extract(record, '$.head.settings.workspace')"
            rows = db.execute(f"SELECT DISTINCT {settings} FROM episodes WHERE json_valid(record)").fetchall()
            return tuple(
                readable((row for row in rows if row[0]), lambda row: json_of("The settings of an episode", row[0]))
            )

        return await self._db.read(work)

    # --- leases -------------------------------------------------------------------------------------------------

    async def acquire(self, episode: str, owner: str, seconds: float) -> Lease:
        return await self._db.write(lambda db: leases.acquire(db, self._db.watch, episode, owner, seconds))

    async def holder(self, episode: str) -> str | None:
        return await self._db.read(lambda db: leases.holder(db, episode))

    async def renew(self, lease: Lease, seconds: float) -> None:
        await self._db.write(lambda db: leases.renew(db, lease, seconds), under_way=True)

    async def release(self, lease: Lease) -> None:
        await self._db.write(lambda db: leases.release(db, lease))

    # --- the journal --------------------------------------------------------------------------------------------

    async def steps(self, episode: str) -> Sequence[StepRow]:
        def work(db: sqlite3.Connection) -> Sequence[StepRow]:
            rows = db.execute(
                "SELECT key, request_hash, request, result FROM steps LEFT JOIN results ON step = n"
                " WHERE episode = ? ORDER BY n",
                (_row(db, episode),),
            )
            return tuple(_step(episode, *row) for row in rows)

        return await self._db.read(work)

    async def begin_step(self, lease: Lease, key: str, request: Json, request_hash: str) -> None:
        text = json_text(request)

        def work(db: sqlite3.Connection) -> None:
            row = leases.held(db, lease)
            insert = "INSERT OR IGNORE INTO steps (episode, key, request_hash, request) VALUES (?, ?, ?, ?)"
            if not db.execute(insert, (row, key, request_hash, text)).rowcount:
                _drop_step(db, row, key, request_hash)
                db.execute(insert, (row, key, request_hash, text))

        await self._db.write(work, under_way=True)

    async def finish_step(self, lease: Lease, key: str, result: Json) -> None:
        try:
            text = json_text(result)
        except InvalidInput as error:
            raise StoreError(f"The result of the step {key} cannot be kept: {error}") from error

        def work(db: sqlite3.Connection) -> None:
            added = db.execute(
                "INSERT OR IGNORE INTO results (step, result) SELECT n, ? FROM steps WHERE episode = ? AND key = ?",
                (text, leases.held(db, lease), key),
            ).rowcount
            if not added:
                raise StoreError(f"The step {key} of episode {lease.episode} is not one that is under way.")

        await self._db.write(work, under_way=True)

    async def close(self) -> None:
        await self._db.close()


_NEXT_EVENT = (
    "INSERT INTO events (episode, seq, schema, event)"
    " SELECT ?, coalesce(max(seq) + 1, 0), ?, ? FROM events WHERE episode = ?"
)
_COPY = (
    "INSERT INTO events (episode, seq, schema, event)"
    " SELECT :new, seq, schema, event FROM events WHERE episode = :old ORDER BY seq",
    "INSERT INTO steps (episode, key, request_hash, request)"
    " SELECT :new, key, request_hash, request FROM steps WHERE episode = :old ORDER BY n",
    "INSERT INTO results (step, result) SELECT s.n, r.result FROM steps o JOIN results r ON r.step = o.n"
    " JOIN steps s ON s.episode = :new AND s.key = o.key WHERE o.episode = :old",
)


def _insert(db: sqlite3.Connection, episode: Episode, record: str, files: Mapping[str, str]) -> int:
    """The new row's number. `record` is the text of the episode."""
    added = db.execute(
        "INSERT OR IGNORE INTO episodes (id, run, schema, record, agent) VALUES (?, ?, ?, ?, ?)",
        (episode.id, episode.run, SCHEMA, record, episode.agent.encode("utf-8", "replace").decode()),
    )
    if not added.rowcount:
        raise StoreError(f"There is an episode {episode.id!r} already: ids are given once.")
    row = _row(db, episode.id)
    for name, text in files.items():
        content = text.encode("utf-8", "surrogatepass")
        sha256 = hashlib.sha256(content).hexdigest()
        db.execute("INSERT OR IGNORE INTO texts (sha256, content) VALUES (?, ?)", (sha256, content))
        db.execute("INSERT INTO files (episode, name, sha256) VALUES (?, ?, ?)", (row, name, sha256))
    return row


def _remove(db: sqlite3.Connection, row: int) -> None:
    """The episode with all that only it has: a text that another rests on, too, stays."""
    db.execute("DELETE FROM results WHERE step IN (SELECT n FROM steps WHERE episode = ?)", (row,))
    for table in ("steps", "events", "files", "leases"):
        db.execute(f"DELETE FROM {table} WHERE episode = ?", (row,))
    db.execute("DELETE FROM texts WHERE sha256 NOT IN (SELECT sha256 FROM files)")
    db.execute("DELETE FROM episodes WHERE n = ?", (row,))


def _drop_step(db: sqlite3.Connection, row: int, key: str, request_hash: str) -> None:
    """Make room for this step to be begun anew; if with another request, all that were begun after it go too."""
    n, before = db.execute("SELECT n, request_hash FROM steps WHERE episode = ? AND key = ?", (row, key)).fetchone()
    which = ("episode = ? AND n = ?" if before == request_hash else "episode = ? AND n >= ?", (row, n))
    db.execute(f"DELETE FROM results WHERE step IN (SELECT n FROM steps WHERE {which[0]})", which[1])
    db.execute(f"DELETE FROM steps WHERE {which[0]}", which[1])


def _step(episode: str, key: str, sha256: str, request: str, result: str | None) -> StepRow:
    what = f"The step {key} of episode {episode}"
    said = None if result is None else json_of(what, result)
    return StepRow(key, sha256, result is not None, json_of(what, request), said)


def _file_text(episode: str, name: str, content: Any) -> str:
    try:
        return content.decode("utf-8", "surrogatepass")
    except (UnicodeError, AttributeError) as error:
        raise unreadable(f"The file {name} of episode {episode}", error) from error


def _where(**columns: str | None) -> tuple[str, tuple[str, ...]]:
    """The condition that holds for rows with these values, None being any; and the values."""
    asked = {name: value for name, value in columns.items() if value is not None}
    return " AND ".join(f"{name} = ?" for name in asked) or "1", tuple(asked.values())


def _row(db: sqlite3.Connection, episode: str) -> int:
    found = db.execute("SELECT n FROM episodes WHERE id = ?", (episode,)).fetchone()
    if found is None:
        raise briefs.missing(episode)
    return found[0]


def _episodes(db: sqlite3.Connection, where: str, values: tuple[str, ...], limit: int) -> Sequence[_Rows]:
    """The rows of those that the condition holds for, newest first."""
    chosen = f"SELECT n, id, schema, record FROM episodes WHERE {where} ORDER BY n DESC LIMIT ?"
    rows = db.execute(chosen, (*values, limit)).fetchall()
    happened = db.execute(
        f"SELECT episode, schema, event FROM events WHERE episode IN (SELECT n FROM ({chosen})) ORDER BY episode, seq",
        (*values, limit),
    )
    by_row = {row: list(events) for row, events in groupby(happened, key=lambda event: event[0])}
    return [(id, schema, record, by_row.get(row, [])) for row, id, schema, record in rows]


def folded(id: str, schema: int, record: str, events: Iterable[tuple[int, int, str]]) -> Episode:
    """The episode of these rows. Raises `Unreadable`."""
    episode = record_of(Episode, f"Episode {id}", schema, record)
    try:
        for _, written, text in events:
            episode = advance(episode, event_of(f"An event of episode {id}", written, text))
    except (InvalidInput, OutOfOrder) as error:
        raise unreadable(f"Episode {id}", error) from error
    return episode


def _resolved(db: sqlite3.Connection, prefix: str) -> Sequence[str]:
    """A whole id or run first, else a beginning of one; all that is found must be of one run."""
    exact = db.execute("SELECT id, run FROM episodes WHERE id = ?", (prefix,)).fetchall()
    exact = exact or db.execute("SELECT id, run FROM episodes WHERE run = ? ORDER BY n", (prefix,)).fetchall()
    found: list[tuple[str, str]] = (
        exact
        or db.execute(
            "SELECT id, run FROM episodes WHERE id >= :a AND id < :b OR run >= :a AND run < :b ORDER BY n",
            {"a": prefix, "b": prefix + _LAST},
        ).fetchall()
    )
    if not found:
        raise NotFound(f"No run or episode begins with {prefix!r}. See those that there are: mulligan runs list")
    runs = list(dict.fromkeys(run or id for id, run in found))
    if len(runs) > 1:
        more = f" and {len(runs) - 5} more" if len(runs) > 5 else ""
        raise NotFound(f"{prefix!r} begins several runs: {', '.join(runs[:5])}{more}. Give more of the id.")
    return tuple(id for id, _ in found)
