"""Stores episodes, their events, files and journal steps. Each function works within the caller's transaction."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from mulligan.core.codec import SCHEMA
from mulligan.core.episode import Event, Stopped, advance
from mulligan.core.errors import InvalidInput, NotFound, OutOfOrder, StoreError
from mulligan.core.protocols import Brief, StepRow
from mulligan.core.records import Episode, Json
from mulligan.store.sqlite import leases
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.images import forget, keep, packed, unpacked
from mulligan.store.sqlite.rows import LAST, event_of, json_of, readable, record_of, unreadable
from mulligan.store.sqlite.schema import statements

BRIEF_CHARACTERS = 200
"""How much of a task a brief shows."""

# --- writing ----------------------------------------------------------------------------------------------------


def insert(db: Connection, episode: Episode, record: str, files: Mapping[str, str]) -> int:
    """Adds an episode whose encoded record is `record`. Returns the number of its row."""
    record, images = packed(record)
    added = db.execute(
        "INSERT INTO episodes (id, run, schema, record, agent) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (episode.id, episode.run, SCHEMA, record, agent_column(episode)),
    )
    if not added.rowcount:
        raise StoreError(f"Episode {episode.id!r} already exists; an id can be used only once.")
    n = row(db, episode.id)
    keep(db, n, images)
    for name, text in files.items():
        content = text.encode("utf-8", "surrogatepass")
        sha256 = hashlib.sha256(content).hexdigest()
        db.execute("INSERT INTO texts (sha256, content) VALUES (?, ?) ON CONFLICT DO NOTHING", (sha256, content))
        db.execute("INSERT INTO files (episode, name, sha256) VALUES (?, ?, ?)", (n, name, sha256))
    return n


def agent_column(episode: Episode) -> str:
    """The agent in the form that the row holds: without lone surrogates, which SQLite refuses."""
    return episode.agent.encode("utf-8", "replace").decode()


_COPY = statements(Path(__file__).with_name("copy_episode.sql"))


def copy(db: Connection, old: int, new: int, event: str) -> None:
    """Copies all events and steps of one episode to another, and appends this encoded event."""
    for statement in _COPY:
        db.execute(statement, {"old": old, "new": new, "schema": SCHEMA, "event": event})


def remove(db: Connection, n: int) -> None:
    """Removes an episode with all that belongs to it alone. Texts and images that other episodes use stay."""
    db.execute("DELETE FROM results WHERE step IN (SELECT n FROM steps WHERE episode = ?)", (n,))
    for table in ("steps", "events", "files", "leases"):
        db.execute(f"DELETE FROM {table} WHERE episode = ?", (n,))
    forget(db, n)
    db.execute("DELETE FROM texts WHERE sha256 NOT IN (SELECT sha256 FROM files)")
    db.execute("DELETE FROM episodes WHERE n = ?", (n,))


def begin_step(db: Connection, n: int, key: str, request: str, request_hash: str) -> None:
    """Adds a step. It replaces a step with the same key; if the request differs, it also removes all later steps."""
    request, images = packed(request)
    keep(db, n, images)
    insert = "INSERT INTO steps (episode, key, request_hash, request) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    if db.execute(insert, (n, key, request_hash, request)).rowcount:
        return
    step, before = db.execute("SELECT n, request_hash FROM steps WHERE episode = ? AND key = ?", (n, key)).fetchone()
    which = f"episode = ? AND n {'=' if before == request_hash else '>='} ?"
    db.execute(f"DELETE FROM results WHERE step IN (SELECT n FROM steps WHERE {which})", (n, step))
    db.execute(f"DELETE FROM steps WHERE {which}", (n, step))
    db.execute(insert, (n, key, request_hash, request))


# --- reading ----------------------------------------------------------------------------------------------------


def _no_such_episode(episode: str) -> NotFound:
    return NotFound(f"There is no episode {episode!r} in this store.")


def row(db: Connection, episode: str) -> int:
    """The number of the episode's row. Raises `NotFound`."""
    number = db.execute("SELECT n FROM episodes WHERE id = ?", (episode,)).fetchone()
    if number is None:
        raise _no_such_episode(episode)
    return number[0]


def begun(db: Connection, episode: str) -> Episode:
    """The episode as it was created. Raises `NotFound`, `Unreadable`."""
    row = db.execute("SELECT schema, record FROM episodes WHERE id = ?", (episode,)).fetchone()
    if row is None:
        raise _no_such_episode(episode)
    return _decode(db, episode, *row)


def _decode(db: Connection, id: str, schema: int, record: str) -> Episode:
    """The episode as it was created. Raises `Unreadable`."""
    return record_of(Episode, f"Episode {id}", schema, unpacked(db, f"Episode {id}", record))


def load(db: Connection, episode: str, agent: str | None) -> Episode:
    """The episode with its events applied. agent: it must be this agent's. Raises `NotFound`, `Unreadable`."""
    condition = "id = :id AND (CAST(:agent AS TEXT) IS NULL OR agent = :agent)"
    selected = _select(db, condition, {"id": episode, "agent": agent}, 1)
    if not selected:
        raise _no_such_episode(episode)
    return _replay(db, selected[0])


def newest(db: Connection, run: str | None, agent: str | None, limit: int, benches: bool) -> Sequence[Episode]:
    """The newest episodes. benches: include those of benchmark runs."""
    conditions = ["TRUE"]
    if run is not None:
        conditions.append("run = :run")
    if agent is not None:
        conditions.append("agent = :agent")
    if not benches:
        conditions.append("run NOT IN (SELECT id FROM bench_runs)")
    selected = _select(db, " AND ".join(conditions), {"run": run, "agent": agent}, limit)
    return tuple(readable(selected, lambda rows: _replay(db, rows)))


class _EpisodeRows(NamedTuple):
    """The rows of an episode: its own, and those of its events (episode, schema, event)."""

    id: str
    schema: int
    record: str
    events: Sequence[tuple[int, int, str]]


def _select(db: Connection, condition: str, values: Mapping[str, str | None], limit: int) -> Sequence[_EpisodeRows]:
    """The rows of all episodes that meet the condition, newest first."""
    selected = f"SELECT n, id, schema, record FROM episodes WHERE {condition} ORDER BY n DESC LIMIT :limit"
    parameters = {**values, "limit": limit}
    rows = db.execute(selected, parameters).fetchall()
    event_rows = db.execute(
        f"SELECT episode, schema, event FROM events WHERE episode IN (SELECT n FROM ({selected}) chosen)"
        " ORDER BY episode, seq",
        parameters,
    )
    by_episode = {n: list(events) for n, events in groupby(event_rows, key=lambda event: event[0])}
    return [_EpisodeRows(id, schema, record, by_episode.get(n, [])) for n, id, schema, record in rows]


def _replay(db: Connection, rows: _EpisodeRows) -> Episode:
    """The episode with its events applied. Raises `Unreadable`."""
    id = rows.id
    episode = _decode(db, id, rows.schema, rows.record)
    what = f"An event of episode {id}"
    try:
        for _, schema, text in rows.events:
            episode = advance(episode, event_of(what, schema, unpacked(db, what, text)))
    except (InvalidInput, OutOfOrder) as error:
        raise unreadable(f"Episode {id}", error) from error
    return episode


def events(db: Connection, episode: str) -> Sequence[Event]:
    rows = db.execute("SELECT schema, event FROM events WHERE episode = ? ORDER BY seq", (row(db, episode),))
    what = f"An event of episode {episode}"
    return tuple(event_of(what, schema, unpacked(db, what, text)) for schema, text in rows)


def files(db: Connection, episode: str) -> Mapping[str, str]:
    rows = db.execute(
        "SELECT f.name, t.content FROM files f JOIN texts t USING (sha256) WHERE f.episode = ? ORDER BY f.name",
        (row(db, episode),),
    )
    return {name: _file_text(episode, name, content) for name, content in rows}


def _file_text(episode: str, name: str, content: Any) -> str:
    try:
        return content.decode("utf-8", "surrogatepass")
    except (UnicodeError, AttributeError) as error:
        raise unreadable(f"The file {name} of episode {episode}", error) from error


def steps(db: Connection, episode: str) -> Sequence[StepRow]:
    rows = db.execute(
        "SELECT key, request_hash, request, result FROM steps LEFT JOIN results ON step = n"
        " WHERE episode = ? ORDER BY n",
        (row(db, episode),),
    )
    return tuple(_step(db, f"The step {key} of episode {episode}", key, *rest) for key, *rest in rows)


def _step(db: Connection, what: str, key: str, sha256: str, request: str, result: str | None) -> StepRow:
    answer = None if result is None else json_of(what, unpacked(db, what, result))
    return StepRow(key, sha256, result is not None, json_of(what, unpacked(db, what, request)), answer)


def workspaces(db: Connection) -> Sequence[Mapping[str, Json]]:
    settings = "json_extract(record, '$.head.settings.workspace')"
    rows = db.execute(f"SELECT DISTINCT {settings} FROM episodes WHERE json_valid(record)").fetchall()
    return tuple(readable((text for (text,) in rows if text), lambda text: json_of("The settings of an episode", text)))


def resolve(db: Connection, prefix: str) -> Sequence[str]:
    """The ids of the episodes with this id or run, or else of the one run that begins with it. Raises `NotFound`."""
    values = {"first": prefix, "last": prefix + LAST}
    rows: list[tuple[str, str]] = []
    conditions = "id = :first", "run = :first", "id >= :first AND id < :last OR run >= :first AND run < :last"
    for condition in conditions if prefix else ():
        rows = db.execute(f"SELECT id, run FROM episodes WHERE {condition} ORDER BY n", values).fetchall()
        if rows:
            break
    if not rows:
        raise NotFound(f"No run or episode begins with {prefix!r}. To list the runs: mulligan runs list")
    runs = list(dict.fromkeys(run or id for id, run in rows))
    if len(runs) > 1:
        more = f" and {len(runs) - 5} more" if len(runs) > 5 else ""
        raise NotFound(f"{prefix!r} matches several runs: {', '.join(runs[:5])}{more}. Use more characters of the id.")
    return tuple(id for id, _ in rows)


# --- lists that do not decode events, so that long episodes cost no more -------------------------------------------

_BRIEF = (
    "SELECT p.id, p.schema, p.record,"
    " (SELECT count(*) FROM events v WHERE v.episode = p.n AND substr(v.event, 1, length(:acted)) = :acted),"
    " (SELECT CASE WHEN substr(v.event, 1, length(:stopped)) = :stopped THEN v.event END"
    " FROM events v WHERE v.episode = p.n AND substr(v.event, 1, length(:revised)) <> :revised"
    " AND substr(v.event, 1, length(:rated)) <> :rated ORDER BY v.seq DESC LIMIT 1),"
    " EXISTS (SELECT 1 FROM events v WHERE v.episode = p.n AND substr(v.event, 1, length(:evaluated)) = :evaluated"
    " AND json_extract(v.event, '$.feedback.passed') IS NOT NULL)"
    " FROM episodes p WHERE {where} ORDER BY p.n DESC /*! LIMIT :limit */"
)
_KINDS = {kind: f'{{"event":"{kind}",' for kind in ("acted", "evaluated", "stopped", "revised", "rated")}
"""How the text of each kind of event begins."""

_STOP_REASON = (
    "coalesce((SELECT CASE WHEN substr(v.event, 1, length(:stopped)) = :stopped"
    " THEN json_extract(v.event, '$.stop.reason') END FROM events v WHERE v.episode = p.n"
    " AND substr(v.event, 1, length(:revised)) <> :revised AND substr(v.event, 1, length(:rated)) <> :rated"
    " ORDER BY v.seq DESC LIMIT 1), '')"
)
_CONTAINS_TEXT = (
    "(lower(p.id) LIKE lower(:text) ESCAPE '~'"
    " OR lower(CASE WHEN json_valid(p.record) THEN json_extract(p.record, '$.task.prompt') END)"
    " LIKE lower(:text) ESCAPE '~')"
)


def briefs(
    db: Connection,
    agent: str | None,
    before: str | None,
    limit: int,
    text: str,
    stops: Collection[str],
    benches: bool,
) -> Sequence[Brief]:
    """Summaries of the newest episodes that meet all conditions. benches: include those of benchmark runs."""
    own = "TRUE" if agent is None else "agent = :agent"
    conditions = [own]
    if not benches:
        conditions.append("p.run NOT IN (SELECT id FROM bench_runs)")
    if text:
        conditions.append(_CONTAINS_TEXT)
    if stops:
        conditions.append(f"{_STOP_REASON} IN (SELECT value FROM json_each(:stops))")
    like = f"%{re.sub('[~%_]', lambda special: f'~{special[0]}', text)}%"
    values: dict[str, Any] = {"agent": agent, "before": before, "text": like, "limit": limit, **_KINDS}
    values["stops"] = json.dumps(sorted(stops))
    if before is not None:
        row = db.execute(f"SELECT n FROM episodes WHERE id = :before AND {own}", values).fetchone()
        if row is None:
            raise _no_such_episode(before)
        conditions.append("p.n < :before")
        values["before"] = row[0]
    with closing(db.execute(_BRIEF.format(where=" AND ".join(conditions)), values)) as rows:
        return tuple(islice(readable(rows, lambda row: _brief(db, *row)), limit))


def _brief(db: Connection, id: str, schema: int, record: str, trials: int, stopped: str | None, judged: int) -> Brief:
    """The summary in a row of `_BRIEF`."""
    begun = _decode(db, id, schema, record)
    event = event_of(f"The end of episode {id}", SCHEMA, stopped) if stopped else None
    reason = event.stop.reason if isinstance(event, Stopped) else None
    prompt = begun.task.prompt[:BRIEF_CHARACTERS]
    return Brief(id, begun.run, begun.agent, begun.started, prompt, trials, reason, bool(judged), begun.head)


_REVISION_OF_ONE = (
    "SELECT (SELECT max(seq) FROM events WHERE episode = :n), (SELECT max(n) FROM steps WHERE episode = :n),"
    " (SELECT max(step) FROM results WHERE step IN (SELECT n FROM steps WHERE episode = :n))"
)


def revision(db: Connection, episode: str) -> str:
    """A text that changes when anything of this episode changes."""
    newest_rows = db.execute(_REVISION_OF_ONE, {"n": row(db, episode)}).fetchone()
    return " ".join(map(str, (*newest_rows, leases.holder(db, episode))))


def ids(db: Connection, prefix: str, agent: str | None, limit: int) -> Sequence[str]:
    where = "TRUE" if agent is None else "agent = :agent"
    where += " AND id >= :first AND id < :last" if prefix else ""
    values = {"agent": agent, "first": prefix, "last": prefix + LAST, "limit": limit}
    rows = db.execute(f"SELECT id FROM episodes WHERE {where} ORDER BY n DESC LIMIT :limit", values)
    return tuple(id for (id,) in rows)


def agents(db: Connection, prefix: str, limit: int) -> Sequence[str]:
    """The ids of agents. Jumps from one to the next in the index, so the cost grows with agents, not episodes."""
    ids: list[str] = []
    after, operator = prefix, ">=" if prefix else ">"
    while len(ids) < limit:
        query = f"SELECT min(agent) FROM episodes WHERE agent {operator} ? AND agent < ?"
        (name,) = db.execute(query, (after, prefix + LAST)).fetchone()
        if name is None:
            break
        ids.append(name)
        after, operator = name, ">"
    return tuple(ids)
