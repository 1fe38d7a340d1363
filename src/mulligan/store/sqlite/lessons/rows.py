"""Rows of lessons, their histories, links and vectors in the file: how they are written, and how they are read."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import fields, replace
from itertools import islice
from typing import Any, cast

from mulligan.core.codec import SCHEMA, json_text
from mulligan.core.errors import AmbiguousId, NotFound, StoreError
from mulligan.core.lesson import REFUSED_BY_REPLAY, Order, Selection, fields_with
from mulligan.core.lessons import (
    Account,
    Addition,
    Change,
    Delta,
    Link,
    Part,
    Receipt,
    Row,
    TaskOutcome,
    Version,
    compared_text,
)
from mulligan.core.records import Json, Lesson, Nature, same_kind
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.rows import LAST, encoded, json_of, object_of, readable, record_of, unreadable

NO_AGENT = -1
TABLES: Mapping[Part, str] = {"lesson": "vectors", "query": "query_vectors"}

_WHOLE = (
    "SELECT l.id, r.schema, r.record, u.uses, u.last_used, e.id FROM {source} LEFT JOIN log r ON r.seq = l.version"
    " LEFT JOIN uses u ON u.n = l.n LEFT JOIN embedders e ON e.n = l.embedder"
)
_LINE = "INSERT INTO log (agent, lesson, at, change, schema, detail, record) VALUES (?, ?, ?, ?, ?, ?, ?)"
_USED = (
    "INSERT INTO uses (n, uses, last_used) VALUES (?, 1, ?)"
    " ON CONFLICT (n) DO UPDATE SET uses = uses.uses + 1, last_used = excluded.last_used"
)

log = logging.getLogger("mulligan")
_NUMBERS = " AND ".join(
    f"typeof({column}) IN ('integer', 'real')"
    for column in ("l.success", "l.confidence", "l.created", "l.fact", "l.pair")
)

_NATURES: Mapping[Nature, str] = {
    "fact": "l.fact",
    "query_pair": "l.pair",
    "strategy": "NOT l.fact AND NOT l.pair",
}
_QUERIES = "LEFT JOIN query_vectors q ON q.n = l.n AND l.embedder = :embedder"
_OUTCOMES = (
    "SELECT w.id, CASE w.status WHEN 'done' THEN w.result ELSE coalesce(p.payload, 'null') END"
    " FROM outcomes o JOIN work w ON w.n = o.work LEFT JOIN payloads p ON p.n = w.n WHERE o.receipt = ? ORDER BY w.n"
)


def owned(agent: int | None, column: str = "l.agent") -> str:
    """The condition that keeps a query to the agent's own rows; it uses the parameter `agent`."""
    return "TRUE" if agent is None else f"{column} = :agent"


def reader(db: Connection, agent_id: str | None) -> int | None:
    if agent_id is None:
        return None
    found = db.execute("SELECT n FROM agents WHERE id = ?", (agent_id,)).fetchone()
    return found[0] if found else NO_AGENT


def writer(db: Connection, agent_id: str) -> int:
    """The agent's number; a new agent gets one."""
    found = reader(db, agent_id)
    if found is None or found == NO_AGENT:
        db.execute("INSERT INTO agents (id, generation) SELECT ?, coalesce(max(generation), 0) FROM bank", (agent_id,))
        found = reader(db, agent_id)
    assert found is not None
    return found


def missing(id: str) -> NotFound:
    return NotFound(f"There is no lesson {id!r} in this bank. To list the lessons: mulligan memory list")


def number(db: Connection, agent: int | None, id: str) -> int:
    """The lesson's number. If several agents have a lesson of this id, the oldest. Raises `NotFound`."""
    for n in numbers(db, agent, id):
        return n
    raise missing(id)


def numbers(db: Connection, agent: int | None, id: str) -> Sequence[int]:
    """The number of the lesson, if it is there (see `number`)."""
    query = f"SELECT l.n FROM lessons l WHERE l.id = :id AND {owned(agent)} ORDER BY l.n LIMIT 1"
    return [n for (n,) in db.execute(query, {"id": id, "agent": agent})]


def read(db: Connection, n: int) -> Lesson:
    """The current lesson of this number, which is the agent's own. Raises `Unreadable`."""
    return _whole(db.execute(f"{_WHOLE.format(source='lessons l')} WHERE l.n = ?", (n,)).fetchone())


def text(lesson: Lesson) -> tuple[str, str, str]:
    """What a prompt shows of it."""
    return lesson.title, lesson.description, lesson.content


def duplicate(db: Connection, alike: Iterable[tuple[int]], lesson: Lesson) -> int | None:
    """The first of these lessons, which have one fingerprint, that this one folds into: a strategy into any, anything
    else into one that says the same word for word, since a value may differ in its capitals alone. None into one that a
    replay refused."""
    for n, there in readable(alike, lambda row: (row[0], read(db, row[0]))):
        same = lesson.nature == "strategy" or compared_text(there) == compared_text(lesson)
        if same and REFUSED_BY_REPLAY not in there.flags:
            return n
    return None


def _whole(row: tuple[Any, ...]) -> Lesson:
    id, schema, record, uses, last_used, embedder = row
    if record is None:
        raise unreadable(f"Lesson {id}", "its text is missing")
    lesson = lesson_of(id, schema, record)
    uses = uses if isinstance(uses, int) else 0
    last_used = last_used if isinstance(last_used, int | float) else None
    return replace(lesson, uses=uses, last_used=last_used, embedder=embedder)


def lesson_of(id: str, schema: int, record: str) -> Lesson:
    return record_of(Lesson, f"Lesson {id}", schema, record)


def columns(lesson: Lesson) -> dict[str, Any]:
    """The columns of a lesson's row that repeat its record."""
    return {
        **{name: getattr(lesson, name) for name in fields_with("column")},
        "success": lesson.outcome == "success",
        "fact": lesson.nature == "fact",
        "pair": lesson.nature == "query_pair",
    }


def add_row(
    db: Connection, lesson: Lesson, agent: int, version: int, *, n: int | None, fingerprint: str, terms: bytes
) -> int | None:
    """The number of the new row; None where this agent has a lesson of this id. n: its number; None: the next."""
    given = {"agent": agent, "version": version, "fingerprint": fingerprint, "terms": terms}
    row = {**given, **columns(lesson), **({} if n is None else {"n": n})}
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    added = db.execute(f"INSERT INTO lessons ({names}) VALUES ({values}) ON CONFLICT DO NOTHING RETURNING n", row)
    found = added.fetchone()
    return found and found[0]


def set_row(db: Connection, n: int, **values: Any) -> None:
    """Gives the row of a lesson these values."""
    sets = ", ".join(f"{name} = :{name}" for name in values)
    db.execute(f"UPDATE lessons SET {sets} WHERE n = :n", {**values, "n": n})


def as_added(agent_id: str, entry: Addition) -> tuple[Addition, str]:
    """The entry as it is stored, and the encoded lesson. A superseded lesson keeps no vectors."""
    lesson = replace(entry.lesson, agent_id=agent_id, score=None)
    if not lesson.id:
        raise StoreError("A lesson without an id cannot be stored: give it one.")
    vectors: Mapping[Part, bytes] = {} if lesson.state == "superseded" else entry.vectors
    if vectors and not lesson.embedder:
        raise StoreError(f"Lesson {lesson.id} has vectors: name their embedder.")
    lesson = replace(lesson, embedder=lesson.embedder if vectors else None)
    return replace(entry, lesson=lesson, vectors=vectors), encoded(lesson, f"Lesson {lesson.id}")


def insert(db: Connection, agent: int, entry: Addition, text: str, detail: Json = None) -> int:
    """The new lesson's number."""
    lesson = entry.lesson
    n = add_row(db, lesson, agent, 0, n=None, fingerprint=entry.fingerprint, terms=entry.terms)
    if n is None:
        raise StoreError(f"A lesson {lesson.id!r} already exists; an id can be used only once.")
    set_row(db, n, version=append(db, agent, n, "added", text, detail))
    if entry.keys:
        set_keys(db, n, entry.keys)
    if lesson.uses or lesson.last_used is not None:
        db.execute("INSERT INTO uses (n, uses, last_used) VALUES (?, ?, ?)", (n, lesson.uses, lesson.last_used))
    if lesson.embedder and entry.vectors:
        set_vectors(db, n, embedder(db, lesson.embedder, entry.vectors.values()), entry.vectors)
    return n


def update(db: Connection, agent: int, n: int, lesson: Lesson, change: Change, detail: Json = None) -> None:
    seq = append(db, agent, n, change, encoded(lesson, f"Lesson {lesson.id}"), detail)
    set_row(db, n, version=seq, **{name: value for name, value in columns(lesson).items() if name != "id"})


def run_removed(db: Connection, episode: str) -> None:
    """Marks the lessons learned from this episode, and removes its account: its record was removed. Unreadable lessons
    stay as they are."""
    db.execute("DELETE FROM accounts WHERE id = ?", (episode,))
    learned = db.execute(
        "SELECT l.n, l.agent FROM lessons l JOIN log v ON v.seq = l.version"
        " WHERE json_valid(v.record) AND json_extract(v.record, '$.origin.episode') = ?",
        (episode,),
    )
    for n, agent in learned.fetchall():
        with suppress(StoreError):
            lesson = read(db, n)
            origin = replace(lesson.origin, removed=True)
            update(db, agent, n, replace(lesson, origin=origin), "edited", {"run": "removed"})


def reactivate_parents(db: Connection, agent: int, id: str, by: Mapping[str, str]) -> tuple[str, ...]:
    """Makes the lessons that were merged into the lesson `id` active again; their ids."""
    numbers = db.execute("SELECT n FROM lessons WHERE agent = ? AND superseded_by = ? ORDER BY n", (agent, id))
    parents = {n: read(db, n) for (n,) in numbers.fetchall()}
    for n, lesson in parents.items():
        update(db, agent, n, replace(lesson, state="active", superseded_by=None), "unmerged", {"from": id, **by})
    return tuple(lesson.id for lesson in parents.values())


def append(
    db: Connection,
    agent: int,
    n: int,
    change: str,
    text: str | None = None,
    detail: Json = None,
    at: float | None = None,
) -> int:
    """A line of the log; its number."""
    line = _line(agent, n, change, text, detail, at or time.time())
    return db.execute(f"{_LINE} RETURNING seq", line).fetchone()[0]


def _line(agent: int, n: int, change: str, text: str | None, detail: Json, at: float) -> tuple[Any, ...]:
    return agent, n, at, change, SCHEMA, None if detail is None else json_text(detail), text


def tip(db: Connection, agent: int | None) -> int:
    """The number of the agent's newest line of the log."""
    query = f"SELECT coalesce(max(seq), 0) FROM log c WHERE {owned(agent, 'c.agent')}"
    return db.execute(query, {"agent": agent}).fetchone()[0]


def embedder(db: Connection, id: str, vectors: Iterable[bytes]) -> int:
    """The embedder's number. Raises `StoreError` for vectors that are not of the size of all its others."""
    sizes = {len(vector) for vector in vectors}
    known = "SELECT n, size FROM embedders WHERE id = ?"
    found = db.execute(known, (id,)).fetchone()
    if found is None and len(sizes) == 1:
        db.execute("INSERT INTO embedders (id, size) VALUES (?, ?) ON CONFLICT DO NOTHING", (id, *sizes))
        found = db.execute(known, (id,)).fetchone()
    if found is None or sizes - {found[1]}:
        known = f"its vectors here have {found[1]} bytes" if found else "all its vectors have one size"
        raise StoreError(f"Vectors of {', '.join(map(str, sorted(sizes)))} bytes, said to be of {id}: {known}.")
    return found[0]


def set_vectors(db: Connection, n: int, embedder: int, vectors: Mapping[Part, bytes]) -> None:
    """Stores vectors of a lesson in place of any other embedder's."""
    if db.execute("SELECT embedder FROM lessons WHERE n = ?", (n,)).fetchone()[0] != embedder:
        drop_vectors(db, n)
    for part, vector in vectors.items():
        insert = f"INSERT INTO {TABLES[part]} (n, vector) VALUES (?, ?)"
        db.execute(f"{insert} ON CONFLICT (n) DO UPDATE SET vector = excluded.vector", (n, vector))
    db.execute("UPDATE lessons SET embedder = ? WHERE n = ?", (embedder, n))


def set_keys(db: Connection, n: int, keys: Iterable[str]) -> None:
    """Stores what a lesson is looked up by, in place of what there was."""
    db.execute("DELETE FROM keys WHERE lesson = ?", (n,))
    db.executemany("INSERT INTO keys (lesson, key) VALUES (?, ?) ON CONFLICT DO NOTHING", ((n, key) for key in keys))


def drop_vectors(db: Connection, n: int) -> None:
    for table in TABLES.values():
        db.execute(f"DELETE FROM {table} WHERE n = ?", (n,))
    db.execute("UPDATE lessons SET embedder = NULL WHERE n = ? AND embedder IS NOT NULL", (n,))


_OTHER_COLUMNS = {
    "agent_id": "a.id",
    "uses": "coalesce(u.uses, 0)",
    "last_used": "u.last_used",
    "vector": "v.vector",
    "query_vector": "{query}",
    "worth": "h.positive",
}
"""Where the fields of a `Row` are that are no columns of the lesson."""
_ROW = (
    f"SELECT {{indexable}}, {', '.join(_OTHER_COLUMNS.get(one.name, f'l.{one.name}') for one in fields(Row))}"
    " FROM {source} JOIN agents a ON a.n = l.agent"
    " LEFT JOIN uses u ON u.n = l.n LEFT JOIN vectors v ON v.n = l.n AND l.embedder = :embedder"
    " LEFT JOIN worth h ON h.lesson = l.n AND h.agent = l.agent {join}"
)
_INDEXABLE = (
    f"{_NUMBERS} AND typeof(l.terms) = 'blob' AND typeof(l.project) = 'text' AND typeof(h.positive) IN ('real', 'null')"
    " AND typeof(l.layer) = 'text' AND typeof(l.kind) = 'text'"
    " AND typeof(l.expires) IN ('real', 'integer', 'null')"
    " AND typeof(coalesce(u.uses, 0)) = 'integer'"
    " AND typeof(v.vector) IN ('blob', 'null') AND {query}"
)
"""Whether a row holds values that an index can take."""


def delta(db: Connection, agent: int | None, embedder: str | None, since: int, queries: bool) -> Delta:
    maker = db.execute("SELECT n FROM embedders WHERE id = ?", (embedder,)).fetchone()
    values = {"agent": agent, "since": since, "embedder": maker[0] if maker else None}
    source, purged = "lessons l", []
    if since:
        changed = f"SELECT DISTINCT lesson FROM log c WHERE {owned(agent, 'c.agent')} AND seq > :since"
        gone = f"SELECT lesson FROM ({changed}) g WHERE NOT EXISTS (SELECT 1 FROM lessons WHERE n = g.lesson)"
        purged = [n for (n,) in db.execute(gone, values)]
        source = f"({changed}) c JOIN lessons l ON l.n = c.lesson"
    vector, blob = ("q.vector", "typeof(q.vector) IN ('blob', 'null')") if queries else ("NULL", "TRUE")
    query = _ROW.format(
        source=source, query=vector, join=_QUERIES if queries else "", indexable=_INDEXABLE.format(query=blob)
    )
    rows: list[Row] = []
    for indexable, *row in db.execute(f"{query} WHERE {owned(agent)}", values):
        if indexable:
            rows.append(_row(*row))
        else:
            purged.append(row[0])
            log.warning(
                "left out: %s", unreadable(f"The search data of lesson {row[1]}", "a value is of the wrong kind")
            )
    rows.sort(
        key=lambda row: row.n
    )  # here, as a database would put the vectors of a large bank on its disk to sort them
    return Delta(tip(db, agent), _generation(db, agent), rows, purged)


def _row(n: int, id: str, agent_id: str, experience: str, state: Any, success: int, *rest: Any) -> Row:
    row = Row(n, id, agent_id, experience, state, bool(success), *rest)
    return replace(row, fact=bool(row.fact), pair=bool(row.pair))


def _generation(db: Connection, agent: int | None) -> int:
    """That of the counter for an agent without lessons, which starts with it."""
    found = db.execute("SELECT generation FROM agents WHERE n = ?", (agent,)).fetchone()
    return (found or db.execute("SELECT coalesce(max(generation), 0) FROM bank").fetchone())[0]


def resolve(db: Connection, agent: int | None, prefix: str) -> str:
    if numbers(db, agent, prefix):  # a whole id is found without a look at others
        return prefix
    found = db.execute(
        f"SELECT DISTINCT l.id FROM lessons l WHERE l.id >= :id AND l.id < :last AND {owned(agent)} ORDER BY 1 LIMIT 6",
        {"id": prefix, "last": prefix + LAST, "agent": agent},
    ).fetchall()
    ids = [id for (id,) in found]
    if not ids:
        raise missing(prefix)
    if prefix in ids or len(ids) == 1:
        return ids[0]
    more = ", ..." if len(ids) > 5 else ""
    raise AmbiguousId(
        f"{prefix!r} matches several lessons: {', '.join(ids[:5])}{more}. Give more characters of the id."
    )


_PLAIN = re.compile(r"[ !#-\[\]-~]+")
"""A text that stands in the JSON of a record as it is: of ASCII, without quotes, backslashes and ends of lines."""
_MAY_HOLD = "(lower(r.record) LIKE lower(:text) ESCAPE '~' OR r.record LIKE :escaped ESCAPE '~')"
"""Whether a record may hold a plain text: letters beyond ASCII, which JSON escapes, may fold to letters of it."""
_WORTH = "LEFT JOIN worth h ON h.lesson = l.n AND h.agent = l.agent"
_ORDERS: Mapping[Order, tuple[str, str]] = {
    "newest": ("", ""),
    "uses": ("LEFT JOIN uses u ON u.n = l.n", "coalesce(u.uses, 0) DESC, "),
    "worth": (_WORTH, "coalesce(h.positive, -1.0) DESC, "),
    "harm": (_WORTH, "coalesce(h.positive, 2.0), "),
}
"""What each order of a list joins, and how it begins."""


def listed(db: Connection, agent: int | None, which: Selection) -> Sequence[Lesson]:
    """Selects numbers first, so that only the texts asked for are read."""
    states = ", ".join(f":state{n}" for n in range(len(which.states)))
    chosen = [owned(agent), f"l.state IN ({states or 'NULL'})"]
    values: dict[str, Any] = {"agent": agent, **{f"state{n}": state for n, state in enumerate(which.states)}}
    if which.outcome:
        chosen.append("l.success = :success")
        values["success"] = which.outcome == "success"
    if which.nature:
        chosen.append(_NATURES[which.nature])
    for name in fields_with("column"):
        if name != "kind" and getattr(which, name, None) is not None:
            chosen.append(f"l.{name} = :{name}")
            values[name] = getattr(which, name)
    if which.kind is not None:
        there = db.execute(f"SELECT DISTINCT l.kind FROM lessons l WHERE {owned(agent)}", {"agent": agent})
        values["kinds"] = json_text([kind for (kind,) in there if same_kind(which.kind, kind)])
        chosen.append("l.kind IN (SELECT value FROM json_each(:kinds))")
    if which.expired is not None:
        chosen.append(f"coalesce(l.expires <= :now, FALSE) = {which.expired}")
        values["now"] = time.time()
    if which.prefix:
        chosen.append("l.id >= :first AND l.id < :last")
        values |= {"first": which.prefix, "last": which.prefix + LAST}
    if which.before is not None:
        chosen.append("l.n < :before")
        values["before"] = number(db, agent, which.before)
    source = "lessons l"
    if which.keys is not None:
        # CROSS JOIN: SQLite looks up the keys first, and not all lessons of the agent
        keyed = "SELECT DISTINCT lesson FROM keys WHERE key IN (SELECT value FROM json_each(:keys))"
        source = f"({keyed}) k CROSS JOIN lessons l"
        chosen.append("l.n = k.lesson")
        values["keys"] = json_text(list(which.keys))
    joined, order = _ORDERS[which.order]
    if which.text and _PLAIN.fullmatch(which.text):
        joined += " JOIN log r ON r.seq = l.version"
        chosen.append(_MAY_HOLD)
        values["text"] = f"%{re.sub('[~%_]', lambda found: f'~{found[0]}', which.text)}%"
        values["escaped"] = "%\\u%"
    query = f"SELECT l.n FROM {source} {joined} WHERE {' AND '.join(chosen)} ORDER BY {order}l.n DESC"
    fits = _filter(which)
    if fits is None:
        with closing(db.execute(f"{query} LIMIT {1 << 60} OFFSET :offset", {**values, "offset": which.offset})) as rows:
            return tuple(islice(readable(rows, lambda row: read(db, row[0])), which.limit))
    last = None if which.limit is None else which.offset + which.limit
    found: list[Lesson] = []
    for lesson in readable(db.execute(query, values), lambda row: read(db, row[0])):
        if fits(lesson):
            found.append(lesson)
        if last is not None and len(found) >= last:
            break
    return tuple(found[which.offset :])


def agents(db: Connection, prefix: str, limit: int) -> Sequence[str]:
    rows = db.execute(
        "SELECT a.id FROM agents a WHERE a.id <> '' AND a.id >= :first AND a.id < :last"
        " AND EXISTS (SELECT 1 FROM lessons l WHERE l.agent = a.n) ORDER BY a.id LIMIT :limit",
        {"first": prefix, "last": prefix + LAST, "limit": limit},
    )
    return tuple(id for (id,) in rows)


def _filter(which: Selection) -> Callable[[Lesson], bool] | None:
    """The part of the selection that needs the lesson's text; None if there is none."""
    if which.tag is None and not which.text:
        return None
    text = (which.text or "").casefold()

    def fits(lesson: Lesson) -> bool:
        if which.tag is not None and which.tag not in lesson.tags:
            return False
        return any(text in part.casefold() for part in (lesson.title, lesson.description, lesson.content, lesson.query))

    return fits


def unembedded(db: Connection, agent: int | None, embedder: str, limit: int) -> Sequence[Lesson]:
    """Each other embedder's lessons, and those without any, are in order in the index: the oldest of each suffice.

    Those that cannot be read are left out at the end, so `limit` of them hide those behind them.
    """
    others = [n for (n,) in db.execute("SELECT n FROM embedders WHERE id <> ?", (embedder,)).fetchall()]
    query = f"SELECT l.n FROM lessons l WHERE {owned(agent)} AND l.state = 'active' AND l.embedder"
    numbers = sorted(
        n
        for other in (None, *others)
        for (n,) in db.execute(
            f"{query} {'IS NULL' if other is None else '= :other'} ORDER BY l.n LIMIT :limit",
            {"agent": agent, "other": other, "limit": limit},
        )
    )
    return tuple(readable(numbers[:limit], lambda n: read(db, n)))


def get(db: Connection, agent: int | None, ids: Sequence[str]) -> Sequence[Lesson]:
    return tuple(read(db, number(db, agent, id)) for id in ids)


def _named(agent: int | None) -> str:
    """The lessons whose ids are in the parameter `ids`, a JSON list, each looked up by its id: see `number`.

    `OFFSET 0` keeps PostgreSQL from comparing the numbers with those of the whole bank.
    """
    one = f"SELECT s.n FROM lessons s WHERE s.id = j.value AND {owned(agent, 's.agent')} ORDER BY s.n LIMIT 1"
    return f"(SELECT ({one}) AS n FROM json_each(:ids) j /*! OFFSET 0 */) f JOIN lessons l ON l.n = f.n"


def there(db: Connection, agent: int | None, ids: Sequence[str]) -> Sequence[Lesson]:
    rows = db.execute(_WHOLE.format(source=_named(agent)), {"ids": json_text(list(ids)), "agent": agent})
    found = {row[0]: row for row in rows}
    return tuple(readable([found[id] for id in ids if id in found], _whole))


def count_uses(db: Connection, agent: int | None, receipt: Receipt) -> None:
    """Writes into the history of each lesson of the receipt that it was used or withheld. Raises `NotFound`."""
    given = {**receipt.lessons, **receipt.withheld}
    query = f"SELECT l.id, l.n, l.agent FROM {_named(agent)}"
    found = {id: rest for id, *rest in db.execute(query, {"ids": json_text(list(given)), "agent": agent})}
    lines, uses, now = list[tuple[Any, ...]](), list[tuple[int, float]](), time.time()
    for id, score in given.items():
        if id not in found:
            raise missing(id)
        n, whose = found[id]
        change = "withheld" if id in receipt.withheld else "used"
        lines.append(_line(whose, n, change, None, {"receipt": receipt.id, "score": score}, now))
        if change == "used":
            uses.append((n, now))
    db.executemany(_LINE, lines)
    db.executemany(_USED, uses)


def history(db: Connection, agent: int | None, id: str) -> Sequence[Version]:
    return versions(db, number(db, agent, id), id)


def versions(db: Connection, n: int, id: str) -> Sequence[Version]:
    """The history of the lesson number `n`, without lines that cannot be read."""
    rows = db.execute("SELECT at, change, detail, schema, record FROM log WHERE lesson = ? ORDER BY seq", (n,))
    return tuple(readable(rows, lambda row: _version(id, *row)))


def _version(id: str, at: float, change: Any, detail: str | None, schema: int, record: str | None) -> Version:
    what = f"A line ({change}) of the history of lesson {id}"
    if not isinstance(at, int | float):
        raise unreadable(what, f"its time is {at!r:.40}")
    lesson = None if record is None else record_of(Lesson, what, schema, record)
    return Version(at, change, lesson, None if detail is None else json_of(what, detail))


def as_of(db: Connection, agent: int | None, at: float) -> Sequence[Lesson]:
    """Replays the log up to then: the newest record of each lesson, and its later uses and embeddings."""
    newest: dict[int, int] = {}
    since: dict[int, list[tuple[str, float, str]]] = {}
    for seq, n, when, change, detail, whole in db.execute(
        f"SELECT c.seq, c.lesson, c.at, c.change, c.detail, c.record IS NOT NULL FROM log c"
        f" WHERE {owned(agent, 'c.agent')} AND c.at <= :at ORDER BY c.seq",
        {"agent": agent, "at": at},
    ):
        if whole:
            newest[n] = seq
            since.pop(n, None)
        elif change in ("used", "embedded"):
            since.setdefault(n, []).append((change, when, detail))
    return tuple(_active_then(db, newest, since))


def _active_then(
    db: Connection, newest: Mapping[int, int], since: Mapping[int, list[tuple[str, float, str]]]
) -> Iterator[Lesson]:
    def then(n: int) -> Lesson:
        schema, record = db.execute("SELECT schema, record FROM log WHERE seq = ?", (newest[n],)).fetchone()
        lesson = record_of(Lesson, f"Lesson number {n}", schema, record)
        for change, when, detail in since.get(n, ()):
            if change == "used":
                lesson = replace(lesson, uses=lesson.uses + 1, last_used=when)
            else:
                embedded = object_of(f"A line of the history of lesson {lesson.id}", detail)
                lesson = replace(lesson, embedder=embedded.get("embedder"))
        return lesson

    found = readable(sorted(newest, reverse=True), then)
    return (lesson for lesson in found if lesson.state == "active")


def links(db: Connection, agent: int | None, id: str) -> Sequence[Link]:
    rows = db.execute(
        "SELECT o.id, CAST(k.similarity AS DOUBLE PRECISION), k.embedder FROM ("
        "SELECT b AS other, similarity, embedder FROM links WHERE a = :n"
        " UNION ALL SELECT a, similarity, embedder FROM links WHERE b = :n) k JOIN lessons o ON o.n = k.other"
        " ORDER BY k.similarity DESC, o.n",
        {"n": number(db, agent, id)},
    )
    return tuple(Link(id, other, similarity, embedder) for other, similarity, embedder in rows)


def receipt(db: Connection, agent: int | None, id: str) -> Receipt:
    found = db.execute(
        f"SELECT schema, record, n FROM receipts r WHERE id = :id AND {owned(agent, 'r.agent')}",
        {"id": id, "agent": agent},
    ).fetchone()
    if found is None:
        raise NotFound(f"There is no recall {id!r} in this bank.")
    return receipt_of(db, found[2], id, *found[:2])


def receipt_of(db: Connection, n: int, id: str, schema: int, record: str) -> Receipt:
    """The receipt number `n` with what came of its tasks by now, behind what it was imported with."""
    receipt = record_of(Receipt, f"The receipt {id}", schema, record)
    known = {outcome.work: outcome for outcome in receipt.outcomes}

    results = readable(db.execute(_OUTCOMES, (n,)), lambda row: (row[0], json_of(f"Work {row[0]}", row[1])))
    for id, result in results:
        success = cast(dict[str, Json], result).get("success") if isinstance(result, dict) else None
        known[id] = TaskOutcome(id, success if isinstance(success, bool) else None)
    (counted,) = db.execute("SELECT success FROM receipts WHERE n = ?", (n,)).fetchone()
    if counted is not None and all(one.success is None for one in known.values()):
        known[""] = TaskOutcome("", bool(counted))
    return replace(receipt, outcomes=tuple(known.values()))


def keep_accounts(db: Connection, agent: int, accounts: Iterable[tuple[Account, str]], most: int | None = None) -> None:
    """Stores accounts, in place of those of the same episodes. most: how many of a project stay, the newest."""
    for one, text in accounts:
        db.execute(
            "INSERT INTO accounts (agent, project, id, schema, record) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (agent, id) DO UPDATE SET project = excluded.project, schema = excluded.schema,"
            " record = excluded.record",
            (agent, one.project, one.id, SCHEMA, text),
        )
        if most is not None:
            db.execute(
                "DELETE FROM accounts WHERE agent = ? AND project = ? AND n <= (SELECT n FROM accounts"
                " WHERE agent = ? AND project = ? ORDER BY n DESC LIMIT 1 OFFSET ?)",
                (agent, one.project, agent, one.project, most),
            )


def accounts(db: Connection, agent: int | None, project: str, limit: int) -> Sequence[Account]:
    found = db.execute(
        f"SELECT id, schema, record FROM accounts a WHERE {owned(agent, 'a.agent')} AND project = :project"
        " ORDER BY n DESC LIMIT :limit",
        {"agent": agent, "project": project, "limit": limit},
    )
    return tuple(readable(found, lambda row: account_of(*row)))


def account_of(id: str, schema: int, record: str) -> Account:
    return record_of(Account, f"The account of {id}", schema, record)


_SUMS = {
    "links": "SELECT l.agent, count(*) FROM links k JOIN lessons l ON l.n = k.a",
    "recalls": "SELECT l.agent, count(*) FROM receipts l",
    "text": "SELECT l.agent, sum(length(r.record)) FROM lessons l JOIN log r ON r.seq = l.version",
    "history": "SELECT l.agent, sum(coalesce(length(l.record), 0) + coalesce(length(l.detail), 0)) FROM log l",
    "terms": "SELECT l.agent, sum(length(l.terms)) FROM lessons l",
    "vectors": "SELECT l.agent, sum(coalesce(length(v.vector), 0) + coalesce(length(q.vector), 0)) FROM lessons l"
    " LEFT JOIN vectors v ON v.n = l.n LEFT JOIN query_vectors q ON q.n = l.n",
}


def counts(db: Connection, agent_id: str | None) -> Mapping[str, Json]:
    agent = reader(db, agent_id)
    values = {"agent": agent}
    sums = {
        name: dict(db.execute(f"{query} WHERE {owned(agent)} GROUP BY l.agent", values).fetchall())
        for name, query in _SUMS.items()
    }
    states = f"SELECT l.agent, l.state, count(*) FROM lessons l WHERE {owned(agent)} GROUP BY l.agent, l.state"
    by_state: dict[int, dict[str, int]] = {}
    for whose, state, count in db.execute(states, values):
        by_state.setdefault(whose, {})[state] = count
    names = dict(db.execute(f"SELECT id, n FROM agents WHERE {owned(agent, 'n')} ORDER BY id", values).fetchall())
    if agent_id is not None:
        names = names or {agent_id: agent}
    return {
        name: {
            "lessons": by_state.get(n, {}),
            "links": sums["links"].get(n, 0),
            "recalls": sums["recalls"].get(n, 0),
            "bytes": {part: sums[part].get(n, 0) for part in ("text", "history", "terms", "vectors")},
        }
        for name, n in names.items()
    }
