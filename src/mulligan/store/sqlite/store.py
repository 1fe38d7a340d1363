"""Everything in one SQLite file: the `Store` of core.protocols.

Once a call returns, its changes survive the death of the process. They survive the death of the machine once the store
has been idle for a fifth of a second, as it is during any model call; before that the newest writes may be missing, but
never one without those after it. `synchronous="full"` closes this gap, for 0.2 ms of CPU and the disk's own delay per
write. Events are only ever added; an episode is its record as created, with its events applied in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mulligan.core.arms import ArmRow
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.codec import SCHEMA, json_text
from mulligan.core.episode import Event, Stopped
from mulligan.core.errors import InvalidInput, NotFound, StoreError
from mulligan.core.protocols import Brief, Lease, StepRow
from mulligan.core.records import Episode, Head, Json
from mulligan.recording.bridge import Portal
from mulligan.store.sqlite import arms, episodes, leases
from mulligan.store.sqlite.database import Database, Synchronous
from mulligan.store.sqlite.engine import Connection, Engine
from mulligan.store.sqlite.images import keep, packed, unpacked
from mulligan.store.sqlite.lessons.rows import note_removed_episode
from mulligan.store.sqlite.rows import LAST, encoded, json_of, readable, record_of

if TYPE_CHECKING:
    from mulligan.store.sqlite.lessons.store import SqliteLessons
    from mulligan.store.sqlite.queue import SqliteQueue


class SqliteBenches:
    """The `BenchStore` in a database that the store opens and closes."""

    def __init__(self, database: Engine) -> None:
        self._db = database

    async def begin(self, run: BenchRun) -> None:
        row = (run.id, SCHEMA, encoded(run, f"Run {run.id}"))
        insert = "INSERT INTO bench_runs (id, schema, record) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"

        def work(db: Connection) -> None:
            if not db.execute(insert, row).rowcount:
                raise StoreError(f"Run {run.id!r} already exists; an id can be used only once.")

        await self._db.write(work, alone=_bench_lock(run.id))

    async def run(self, prefix: str) -> BenchRun:
        def work(db: Connection) -> BenchRun:
            columns = "SELECT id, schema, record FROM bench_runs WHERE"
            rows = db.execute(f"{columns} id = ?", (prefix,)).fetchall()
            rows = rows or db.execute(f"{columns} id >= ? AND id < ? ORDER BY n", (prefix, prefix + LAST)).fetchall()
            if not prefix or not rows:
                raise NotFound(f"No benchmark run begins with {prefix!r}. To list them: mulligan bench runs")
            if len(rows) > 1:
                ids = ", ".join(id for id, _, _ in rows[:5])
                raise NotFound(f"{prefix!r} matches several benchmark runs: {ids}. Use more characters of the id.")
            return _run(rows[0])

        return await self._db.read(work)

    async def runs(self, limit: int = 50) -> Sequence[BenchRun]:
        def work(db: Connection) -> Sequence[BenchRun]:
            rows = db.execute("SELECT id, schema, record FROM bench_runs ORDER BY n DESC LIMIT ?", (limit,))
            return tuple(readable(rows, _run))

        return await self._db.read(work)

    async def settle(self, run: str, result: CaseResult) -> None:
        row = (result.position, SCHEMA, encoded(result, f"The result of case {result.case} of run {run}"), run)

        def work(db: Connection) -> None:
            delete = "DELETE FROM bench_cases WHERE position = ? AND run IN (SELECT n FROM bench_runs WHERE id = ?)"
            db.execute(delete, (result.position, run))
            added = db.execute(
                "INSERT INTO bench_cases (run, position, schema, record)"
                " SELECT n, ?, ?, ? FROM bench_runs WHERE id = ?",
                row,
            )
            if not added.rowcount:
                raise NotFound(f"There is no benchmark run {run!r}.")

        await self._db.write(work, alone=_bench_lock(run))

    async def results(self, run: str) -> Sequence[CaseResult]:
        def work(db: Connection) -> Sequence[CaseResult]:
            rows = db.execute(
                "SELECT c.position, c.schema, c.record FROM bench_cases c JOIN bench_runs r ON r.n = c.run"
                " WHERE r.id = ? ORDER BY c.position",
                (run,),
            )
            return tuple(
                record_of(CaseResult, f"The result of case {n} of benchmark run {run}", schema, text)
                for n, schema, text in rows
            )

        return await self._db.read(work)

    async def acquire(self, run: str, owner: str, seconds: float, *, removing: bool = False) -> Lease:
        watch, of = self._db.watch, leases.BENCH_RUNS

        def work(db: Connection) -> Lease:
            return leases.acquire(db, watch, run, owner, seconds, of)

        return await (self._db.remove(work) if removing else self._db.write(work, alone=_bench_lock(run), short=True))

    async def renew(self, lease: Lease, seconds: float) -> None:
        await self._db.write(
            lambda db: leases.renew(db, lease, seconds, leases.BENCH_RUNS),
            alone=_bench_lock(lease.episode),
            under_way=True,
            short=True,
        )

    async def release(self, lease: Lease) -> None:
        await self._db.write(
            lambda db: leases.release(db, lease, leases.BENCH_RUNS), alone=_bench_lock(lease.episode), short=True
        )

    async def answered(self, step: str, request_hash: str) -> tuple[Json, ...]:
        if not step.startswith("model."):
            return ()

        def work(db: Connection) -> tuple[Json, ...]:
            rows = db.execute(
                "SELECT result FROM steps JOIN results ON step = n"
                " WHERE request_hash = ? AND key GLOB '*/model.*' ORDER BY n LIMIT 1",
                (request_hash,),
            )
            what = "A recorded answer of a model"
            return tuple(readable(rows, lambda row: json_of(what, unpacked(db, what, row[0]))))

        return await self._db.read(work)


def _bench_lock(run: str) -> str:
    return f"benchmark run {run}"


def _episode_lock(id: str) -> str:
    return f"episode {id}"


def _run(row: tuple[str, Any, Any]) -> BenchRun:
    return record_of(BenchRun, f"Benchmark run {row[0]}", *row[1:])


_NO_FILES: Mapping[str, str] = {}


@dataclass(frozen=True)
class SqliteMemory:
    """The lessons and the queued work of a store; closing it closes the store."""

    lessons: SqliteLessons
    queue: SqliteQueue
    database: Engine

    async def close(self) -> None:
        await self.database.close()


@Portal.both_ways
class SqliteStore:
    """A store in one SQLite file, which is opened at the first use. Missing folders are created. Close it when done.

    Args:
        file: The path of the file, or another engine to run on.
        busy_seconds: How long, in all, a write waits for writers in other processes before it raises `StoreError`.
        synchronous: "full" syncs the disk on each write.
        clock: Measures these seconds, and how long another process's heartbeat has stood still.
    """

    def __init__(
        self,
        file: str | Path | Engine,
        *,
        busy_seconds: float = 30.0,
        synchronous: Synchronous = "normal",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        db: Engine
        if isinstance(file, str | Path):
            db = Database(Path(file), busy_seconds=busy_seconds, synchronous=synchronous, clock=clock)
        else:
            db = file
        self._db = db
        self.benches = SqliteBenches(db)

    @property
    def memory(self) -> SqliteMemory:
        """The lessons and the queued work. Imported here, because a run without a bank does not need it."""
        from mulligan.store.sqlite.lessons.store import SqliteLessons
        from mulligan.store.sqlite.queue import SqliteQueue

        return SqliteMemory(SqliteLessons(self._db), SqliteQueue(self._db), self._db)

    async def close(self) -> None:
        await self._db.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # --- episodes -----------------------------------------------------------------------------------------------

    async def create(self, episode: Episode, files: Mapping[str, str] = _NO_FILES) -> None:
        if episode.trials or episode.recall or episode.stop:
            raise StoreError(
                f"Episode {episode.id} must be created as it begins; what happens later is recorded as events."
            )
        record = encoded(episode, f"Episode {episode.id}")
        await self._db.write(
            lambda db: episodes.insert(db, episode, record, files),
            agent=episodes.agent_column(episode),
            alone=_episode_lock(episode.id),
            short=not files,
        )

    async def copy(
        self, episode: str, id: str, run: str, head: Head, files: Mapping[str, str], event: Event
    ) -> Episode:
        text = encoded(event, f"The event that episode {id} begins with")

        def work(db: Connection) -> None:
            begun = replace(episodes.begun(db, episode), id=id, run=run, head=head, forked_from=episode)
            new = episodes.insert(db, begun, encoded(begun, f"Episode {id}"), files)
            episodes.copy(db, episodes.row(db, episode), new, text)

        await self._db.write(work, alone=_episode_lock(episode))
        return await self.load(id)

    async def append(self, lease: Lease, seq: int, event: Event) -> None:
        await self.append_all(lease, seq, (event,))

    async def append_all(self, lease: Lease, seq: int, events: Sequence[Event], *, release: bool = False) -> None:
        encoded_events = [
            packed(encoded(event, f"Event {number} of episode {lease.episode}"))
            for number, event in enumerate(events, seq)
        ]
        ends = any(isinstance(event, Stopped) and not event.stop.resumable for event in events)

        def work(db: Connection) -> None:
            row = leases.held(db, lease)
            (next_seq,) = db.execute(
                "SELECT coalesce(max(seq) + 1, 0) FROM events WHERE episode = ?", (row,)
            ).fetchone()
            if seq != next_seq:
                problem = "is taken" if seq < next_seq else "would leave a gap"
                raise StoreError(f"Event {seq} of episode {lease.episode} {problem}: the next number is {next_seq}.")
            insert = "INSERT INTO events (episode, seq, schema, event) VALUES (?, ?, ?, ?)"
            for number, (text, images) in enumerate(encoded_events, seq):
                keep(db, row, images)
                db.execute(insert, (row, number, SCHEMA, text))
            if ends:
                arms.count(db, lease.episode)
            if release:
                leases.end(db, row)

        # the end of an episode changes the counts of arms, which all episodes share
        alone = None if ends else _episode_lock(lease.episode)
        await self._db.write(work, alone=alone, under_way=True, short=True)

    async def load(self, episode: str, *, agent: str | None = None) -> Episode:
        return await self._db.read(lambda db: episodes.load(db, episode, agent), agent=agent)

    async def list(
        self, *, run: str | None = None, agent: str | None = None, limit: int = 50, benches: bool = True
    ) -> Sequence[Episode]:
        return await self._db.read(
            lambda db: episodes.newest(db, run, agent, limit, benches),
            agent=agent,
            short=run is not None and limit <= 5,
        )

    async def briefs(
        self,
        *,
        agent: str | None = None,
        before: str | None = None,
        limit: int = 50,
        text: str = "",
        stops: Collection[str] = (),
        benches: bool = True,
    ) -> Sequence[Brief]:
        return await self._db.read(
            lambda db: episodes.briefs(db, agent, before, limit, text, stops, benches), agent=agent
        )

    async def revision(self, episode: str | None = None) -> str:
        if episode is None:
            return await self._db.revision()
        return await self._db.read(lambda db: episodes.revision(db, episode))

    async def ids(self, prefix: str, *, agent: str | None = None, limit: int = 50) -> Sequence[str]:
        return await self._db.read(lambda db: episodes.ids(db, prefix, agent, limit), agent=agent)

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        return await self._db.read(lambda db: episodes.agents(db, prefix, limit))

    async def events(self, episode: str) -> Sequence[Event]:
        return await self._db.read(lambda db: episodes.events(db, episode))

    async def files(self, episode: str) -> Mapping[str, str]:
        return await self._db.read(lambda db: episodes.files(db, episode))

    async def resolve(self, prefix: str) -> Sequence[str]:
        return await self._db.read(lambda db: episodes.resolve(db, prefix))

    async def remove(self, lease: Lease) -> None:
        def work(db: Connection) -> None:
            episodes.remove(db, leases.held(db, lease))
            note_removed_episode(db, lease.episode)

        await self._db.remove(work)

    async def arms(self, model: str | None = None, kind: str | None = None) -> Sequence[ArmRow]:
        return await self._db.read(lambda db: arms.listed(db, model, kind))

    async def forget_arms(self, model: str | None = None, kind: str | None = None) -> int:
        return await self._db.write(lambda db: arms.forget(db, model, kind))

    async def workspaces(self) -> Sequence[Mapping[str, Json]]:
        return await self._db.read(episodes.workspaces)

    # --- leases -------------------------------------------------------------------------------------------------

    async def acquire(self, episode: str, owner: str, seconds: float, *, removing: bool = False) -> Lease:
        watch = self._db.watch

        def work(db: Connection) -> Lease:
            return leases.acquire(db, watch, episode, owner, seconds)

        return await (
            self._db.remove(work) if removing else self._db.write(work, alone=_episode_lock(episode), short=True)
        )

    async def holder(self, episode: str) -> str | None:
        return await self._db.read(lambda db: leases.holder(db, episode))

    async def renew(self, lease: Lease, seconds: float) -> None:
        await self._db.write(
            lambda db: leases.renew(db, lease, seconds), alone=_episode_lock(lease.episode), under_way=True, short=True
        )

    async def release(self, lease: Lease) -> None:
        await self._db.write(lambda db: leases.release(db, lease), alone=_episode_lock(lease.episode), short=True)

    # --- the journal --------------------------------------------------------------------------------------------

    async def steps(self, episode: str) -> Sequence[StepRow]:
        return await self._db.read(lambda db: episodes.steps(db, episode))

    async def begin_step(self, lease: Lease, key: str, request: Json, request_hash: str) -> None:
        text = json_text(request)
        await self._db.write(
            lambda db: episodes.begin_step(db, leases.held(db, lease), key, text, request_hash),
            alone=_episode_lock(lease.episode),
            under_way=True,
            short=True,
        )

    async def finish_step(self, lease: Lease, key: str, result: Json) -> None:
        try:
            text, images = packed(json_text(result))
        except InvalidInput as error:
            raise StoreError(f"The result of the step {key} cannot be stored: {error}") from error

        def work(db: Connection) -> None:
            row = leases.held(db, lease)
            keep(db, row, images)
            added = db.execute(
                "INSERT INTO results (step, result) SELECT n, ? FROM steps WHERE episode = ? AND key = ?"
                " ON CONFLICT DO NOTHING",
                (text, row, key),
            ).rowcount
            if not added:
                raise StoreError(f"The step {key} of episode {lease.episode} is not in progress.")

        await self._db.write(work, alone=_episode_lock(lease.episode), under_way=True, short=True)
