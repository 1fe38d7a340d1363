"""Checks that every record can be read. PostgreSQL itself enforces types, references and uniqueness.

Nothing is repaired here: damaged records must be restored from a copy of the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from mulligan.core.errors import InvalidInput, OutOfOrder, Unreadable
from mulligan.core.lesson_history import Fault
from mulligan.core.records import Lesson
from mulligan.store.sqlite import episodes
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.rows import broken, json_in
from mulligan.store.sqlite.verify import BANK_RECORDS, BENCH_RECORDS, Records

_RECORDS = (Records(Lesson, "log", "Line {} of the log", "seq"), *BANK_RECORDS, *BENCH_RECORDS)
_JSON = (
    ("The payload of work {}", "SELECT w.id, p.payload FROM work w JOIN payloads p ON p.n = w.n"),
    ("The result of work {}", "SELECT id, result FROM work"),
)


def verify(db: Connection) -> Sequence[Fault]:
    """The faults in all rows that this role sees."""
    faults = [Fault(f"{why} Restore it from a copy.") for why in _unreadable(db)]
    lost = db.execute("SELECT l.id FROM lessons l WHERE NOT EXISTS (SELECT 1 FROM log v WHERE v.seq = l.version)")
    faults += [Fault(f"Lesson {id} has lost its text. Restore it from a copy.", id=id) for (id,) in lost]
    for table, noun in (("texts", "text"), ("images", "image")):
        for sha256, content in db.execute(f"SELECT sha256, content FROM {table}"):
            if hashlib.sha256(content).hexdigest() != sha256:
                faults.append(Fault(f"The {noun} {sha256[:12]} does not match its hash. Restore it from a copy."))
    return faults


def _unreadable(db: Connection) -> Iterator[str]:
    for of in _RECORDS:
        rows = db.execute(f"SELECT {of.name}, schema, record FROM {of.table} WHERE record IS NOT NULL").fetchall()
        yield from (why for _, why in broken(rows, of.read))
    for what, query in _JSON:
        yield from (why for _, why in broken(db.execute(query).fetchall(), json_in(what)))
    for (id,) in db.execute("SELECT id FROM episodes ORDER BY n").fetchall():
        try:
            episodes.load(db, id, None)
            episodes.steps(db, id)
            episodes.files(db, id)
        except (Unreadable, InvalidInput, OutOfOrder) as error:
            yield str(error).partition(" See:")[0]
