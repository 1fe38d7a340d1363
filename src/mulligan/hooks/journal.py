"""What hooks note beside the bank: sessions with their cursors, what was shown to them, failures, errors, pauses.

One SQLite file, `hooks.db` in the user's data folder. Every method is one transaction, so several agents may work at
the same time. `Journal` raises `sqlite3.Error` (and `OSError` for a folder that cannot be made).
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from mulligan.core.home import home_path
from mulligan.core.light import TYPE_CHECKING, NamedTuple
from mulligan.sessions.agents import agent
from mulligan.sessions.events import Notice

if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias, TypeVar

    from mulligan.hooks.swallowed import Swallowed

    T = TypeVar("T")

FILE = "hooks.db"
ERRORS = 200
"""Swallowed errors that are kept."""
SETTINGS: Mapping[str, tuple[str, float, float]] = {
    "needed": ("2", 1, 100),
    "withhold": ("0", 0, 0.5),
    "days": ("90", 1, 10_000),
    "evidence": ("365", 1, 10_000),
    "why": ("none", 0, 0),
    "tokens": ("50000", 0, 100_000_000),
    "subagents": ("project", 0, 0),
}
"""What a person can set: the default, and of numbers the least and the most."""
OWN = "own"
"""The value of `subagents` that gives each type of sub-agent a bank of its own."""
_ENDED, PAUSES = "pauses", 100
"""The setting that keeps the pauses that have ended, and how many of them."""
_GUARDS = "guards"
"""The setting that keeps the guards: here, and not in the bank, as an import may bring a lesson, and never a guard."""
EVERYWHERE = ""
"""In place of a folder."""
_LOG = 200
"""Pages of the file's log after which a commit empties it; what opens the file next reads all of them."""

Way: TypeAlias = "Literal['shown', 'denied', 'withheld']"

_VERSION = 3
"""Of the tables: see `journal_tables`."""


class Session(NamedTuple):
    """A session as the journal knows it.

    Attributes:
        subagent: the id of a sub-agent that has a transcript of its own; "" for the main agent.
        kind: the type of the sub-agent.
        ended: when it last ended; None while it goes on, and for one that was killed. A resumed session ends again.
        due: there is something to learn that was not learned yet.
        asked: when the agent was asked why something failed that it has overcome; None: not yet.
        cursor: how far its transcript was read; what the reader of the agent wrote.
    """

    agent: str
    session: str
    subagent: str = ""
    project: str = ""
    folder: str = ""
    transcript: str = ""
    kind: str = ""
    began: float = 0.0
    seen: float = 0.0
    ended: float | None = None
    due: bool = False
    asked: float | None = None
    forgotten: bool = False
    cursor: Any = None
    learned: float | None = None
    lessons: int = 0


_SESSION = (
    "agent, session, subagent, project, folder, transcript, kind, began, seen, ended, due, asked, forgotten, cursor, "
    "learned, lessons"
)
_WHICH = "agent = ? AND session = ? AND subagent = ?"


class Shown(NamedTuple):
    """A lesson that a session was shown.

    Attributes:
        again: whether an error that it is about came again in that session afterwards; None while the session goes on.
        done: whether the session then did what the lesson says.
        digests: of the errors that it is about.
    """

    receipt: str
    agent: str
    session: str
    project: str
    lesson: str
    moment: str
    way: Way
    at: float
    again: bool | None
    done: bool = False
    digests: Sequence[str] = ()


class Failure(NamedTuple):
    """An error of a session, and how often it came there. words: what names it; "" until the worker has read them."""

    agent: str
    session: str
    words: str
    often: int
    at: float


class FailedCommand(NamedTuple):
    """One failure of a command. digest: of the error."""

    session: str
    digest: str
    at: float


class Journal:
    """To be closed, or used as a context manager.

    Args:
        path: of the file; default: `hooks.db` in the user's data folder.
        wait: seconds that a call waits for another process.
    """

    def __init__(self, path: str = "", *, wait: float = 5.0) -> None:
        self.path = path or os.path.join(home_path(), FILE)
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        self._db = sqlite3.connect(self.path, timeout=wait, isolation_level=None)
        try:
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            self._hide()
            if version < _VERSION:
                from mulligan.hooks.journal_tables import bring_up_to_date  # once

                bring_up_to_date(self._db, self.path, _VERSION, wait)
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(f"PRAGMA wal_autocheckpoint = {_LOG}")
        except BaseException:
            self._db.close()
            raise

    def _hide(self) -> None:
        """Lets nobody else read the file: outputs and folders are nobody else's business."""
        if os.stat(self.path).st_mode & 0o077:
            for file in (self.path, f"{self.path}-wal", f"{self.path}-shm"):
                if os.path.exists(file):
                    os.chmod(file, 0o600)

    def _write(self, work: Callable[[], T]) -> T:
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:  # commits, or rolls back
            return work()

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- sessions -----------------------------------------------------------------------------------------------

    def seen(self, notice: Notice, project: str) -> Session:
        """Notes that this session is alive, and what its notice says: all but a start makes it due, an end ends it.

        A compaction lets lessons be shown again. What was noted once is not taken back by a notice that omits it. The
        project and the folder are those of the first notice, wherever the agent goes then. Of a session that is
        forgotten nothing is noted but that it is alive.
        """
        now = time.time()
        due = notice.moment not in ("start", "before_tool")  # also what never stops: it may be killed
        due = due and bool(notice.transcript) and agent(notice.agent).readable
        compacted = notice.moment == "compact" or (notice.moment == "start" and notice.source in ("compact", "clear"))
        mine = (notice.agent, notice.session, notice.subagent_id)
        told = (project, notice.folder, notice.transcript, notice.subagent)

        def note() -> Session:
            self._add(*mine, now, project if notice.subagent else "")
            self._db.execute(
                "UPDATE sessions SET project = coalesce(nullif(project, ''), ?), "
                "folder = coalesce(nullif(folder, ''), ?), transcript = coalesce(nullif(?, ''), transcript), "
                "kind = coalesce(nullif(?, ''), kind), due = due OR ?, compactions = compactions + ?, "
                f"ended = iif(?, ?, NULL) WHERE {_WHICH} AND NOT forgotten",
                (*told, due, compacted, notice.moment in ("end", "subagent_stop"), now, *mine),
            )
            self._db.execute(f"UPDATE sessions SET seen = ? WHERE {_WHICH}", (now, *mine))
            if notice.moment == "end":
                self._db.execute(
                    "UPDATE shown SET again = 0 WHERE agent = ? AND session = ? AND again IS NULL", mine[:2]
                )
            return self._session(*mine)

        return self._write(note)

    def _add(self, agent: str, session: str, subagent: str, now: float, project: str = "") -> None:
        """Makes the session, if it is not known. A sub-agent is forgotten with its main agent, and belongs to the same
        project if none is given."""
        main = "SELECT {} FROM sessions WHERE agent = ?1 AND session = ?2 AND subagent = ''"
        self._db.execute(
            "INSERT INTO sessions (agent, session, subagent, began, seen, project, folder, forgotten) "
            f"SELECT ?1, ?2, ?3, ?4, ?4, coalesce(nullif(?5, ''), ({main.format('project')}), ''), "
            f"coalesce(({main.format('folder')}), ''), coalesce(({main.format('forgotten')}), 0) "
            "WHERE 1 ON CONFLICT DO NOTHING",
            (agent, session, subagent, now, project),
        )

    def session(self, agent: str, session: str, subagent: str = "") -> Session | None:
        found = self._db.execute(
            f"SELECT {_SESSION} FROM sessions WHERE {_WHICH}", (agent, session, subagent)
        ).fetchone()
        return found and _session(found)

    def _session(self, *mine: str) -> Session:
        return _session(self._db.execute(f"SELECT {_SESSION} FROM sessions WHERE {_WHICH}", mine).fetchone())

    def sessions(
        self, *, project: str | None = None, due: bool | None = None, last: int | None = None
    ) -> list[Session]:
        """The `last` sessions that were seen and not forgotten, the newest at the end."""
        newest = self._db.execute(
            f"SELECT {_SESSION} FROM sessions WHERE NOT forgotten AND (?1 IS NULL OR project = ?1) "
            "AND (?2 IS NULL OR due = ?2) ORDER BY seen DESC, rowid DESC LIMIT ?3",
            (project, due, -1 if last is None else last),
        )
        return [_session(row) for row in newest][::-1]

    def began(self, project: str, last: int) -> float:
        """When the first of the last sessions of a project began; 0 where there are not so many."""
        of = "sessions WHERE project = ? AND subagent = '' ORDER BY began DESC LIMIT 1 OFFSET ?"
        return (self._db.execute(f"SELECT began FROM {of}", (project, last - 1)).fetchone() or [0.0])[0]

    def is_due(self, *, besides: str = "") -> bool:
        """Whether there is something to learn from a session with another id, in a folder that is not left out."""
        found = self._db.execute(
            "SELECT DISTINCT folder FROM sessions WHERE due AND NOT forgotten AND session <> ?", (besides,)
        )
        return any(not self.is_paused(folder) for (folder,) in found.fetchall())

    def advance(
        self,
        agent: str,
        session: str,
        subagent: str = "",
        *,
        before: Any,
        cursor: Any,
        lessons: int = 0,
        due: bool = False,
    ) -> bool:
        """Moves the cursor from `before` to `cursor`, and counts lessons; False if another process moved it meanwhile.

        due: there is more to learn. The session is made if it is not known, such as one of an old transcript.
        """
        mine, now = (agent, session, subagent), time.time()

        def move() -> bool:
            self._add(*mine, now)
            changed = self._db.execute(
                "UPDATE sessions SET cursor = ?, learned = ?, lessons = lessons + ?, due = ? "
                f"WHERE {_WHICH} AND cursor IS ? AND NOT forgotten",
                (_json(cursor), now, lessons, due, *mine, _json(before)),
            )
            return changed.rowcount == 1

        return self._write(move)

    def ask(self, agent: str, session: str) -> bool:
        """Whether the agent may be asked now what it has overcome: once in a session, if it ran a command again that
        had failed, and that has not failed again (see `tries`)."""
        which = (
            f"{_WHICH} AND asked IS NULL AND EXISTS (SELECT 1 FROM failures AS f WHERE f.agent = sessions.agent "
            "AND f.session = sessions.session AND f.subagent = '' AND f.tried IS NOT NULL)"
        )
        mine = (agent, session, "")
        if not self._db.execute(f"SELECT 1 FROM sessions WHERE {which}", mine).fetchone():
            return False
        changed = self._write(
            lambda: self._db.execute(f"UPDATE sessions SET asked = ? WHERE {which}", (time.time(), *mine))
        )
        return changed.rowcount == 1

    def sessions_like(self, prefix: str) -> Sequence[Session]:
        """Those whose id begins so, also forgotten ones; main agents first."""
        found = self._db.execute(
            f"SELECT {_SESSION} FROM sessions WHERE substr(session, 1, length(?1)) = ?1 ORDER BY subagent, rowid",
            (prefix,),
        )
        return [_session(row) for row in found]

    def forget(self, agent: str, session: str) -> None:
        """Removes what is noted of a session and its sub-agents, and never learns from it.

        What stays is that it is forgotten. The bank's lessons are the caller's business.
        """
        now = time.time()

        def remove() -> None:
            self._add(agent, session, "", now)
            self._db.execute(
                "UPDATE sessions SET forgotten = 1, due = 0, cursor = NULL, transcript = '', folder = '' "
                "WHERE agent = ? AND session = ?",
                (agent, session),
            )
            for table in ("shown", "failures"):
                self._db.execute(f"DELETE FROM {table} WHERE agent = ? AND session = ?", (agent, session))

        self._write(remove)

    def trim(self, days: float) -> int:
        """Removes sessions that were last seen longer ago, with what was shown to them; how many."""
        before = time.time() - days * 86400

        def remove() -> int:
            for table in ("shown", "failures"):
                self._db.execute(
                    f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM sessions AS s WHERE s.agent = {table}.agent "
                    f"AND s.session = {table}.session AND s.subagent = '' AND s.seen < ?)",
                    (before,),
                )
            return self._db.execute("DELETE FROM sessions WHERE seen < ? AND NOT forgotten", (before,)).rowcount

        return self._write(remove)

    # --- what was shown -----------------------------------------------------------------------------------------

    def show(
        self,
        notice: Notice,
        project: str,
        lessons: Iterable[tuple[str, Sequence[str]]],
        *,
        receipt: str,
        way: Way = "shown",
        most: int = 3,
        share: float = 0.0,
    ) -> Sequence[str]:
        """Takes the lessons that this session was not shown yet (since its last compaction), and returns their ids.

        Of several processes that ask at the same time, one gets a lesson; of those for one call with
        one receipt, one gets any.

        Args:
            lessons: The best first, each with the digests of the errors that it is about.
            most: Lessons to take; one that is withheld counts.
            share: Of the lessons, the share that a draw withholds, so that what they are worth can be measured.
        """
        if share:
            from mulligan.core.worth import is_withheld  # not above: dataclasses take longer to import than the rest
        else:
            is_withheld = _never
        now, mine = time.time(), (notice.agent, notice.session, notice.subagent_id)

        def take() -> Sequence[str]:
            row = self._db.execute(f"SELECT compactions FROM sessions WHERE {_WHICH}", mine).fetchone()
            compaction, taken, left = row[0] if row else 0, list[str](), most
            answered = f"SELECT 1 FROM shown WHERE {_WHICH} AND receipt = ?"
            if notice.call and self._db.execute(answered, (*mine, receipt)).fetchone():
                return taken
            for lesson, digests in lessons:
                if left == 0:
                    break
                added = self._db.execute(
                    "INSERT INTO shown (receipt, agent, session, subagent, compaction, way, project, lesson, moment, "
                    "at, digests) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (receipt, *mine, compaction, way, project, lesson, notice.moment, now, f" {' '.join(digests)} "),
                )
                left -= added.rowcount
                if not added.rowcount:
                    continue
                if is_withheld(receipt, lesson, share):
                    self._db.execute("UPDATE shown SET way = 'withheld' WHERE n = ?", (added.lastrowid,))
                else:
                    taken.append(lesson)
            return taken

        return self._write(take)

    def tries(self, notice: Notice) -> None:
        """Notes that a command is run which has failed before. If it fails again, `failed` takes that back."""
        which = "agent = ? AND session = ? AND subagent = ? AND command = ? AND tried IS NULL"
        mine = (notice.agent, notice.session, notice.subagent_id, _checksum(notice.command))
        if self._db.execute(f"SELECT 1 FROM failures WHERE {which} LIMIT 1", mine).fetchone():
            self._write(lambda: self._db.execute(f"UPDATE failures SET tried = ? WHERE {which}", (time.time(), *mine)))

    def failed(self, notice: Notice, project: str, digest: str, words: str = "", at: float = 0.0) -> bool:
        """Notes a failure with this signature, once for each call; False if it was noted before.

        Lessons about it that this session was shown earlier have not helped: `again`. words: what names the error,
        masked; they may come later.
        at: when it happened; 0: now.

        Some agents tell no hook the id of a call, but their transcripts do: the oldest such failure then gets it.
        """
        now, mine = at or time.time(), (notice.agent, notice.session)

        command = _checksum(notice.command)

        def note() -> bool:
            if command is not None:
                self._db.execute(
                    "UPDATE failures SET tried = NULL WHERE agent = ? AND session = ? AND subagent = ? AND command = ?",
                    (*mine, notice.subagent_id, command),
                )
            if notice.call:
                self._db.execute(
                    "UPDATE OR IGNORE failures SET call = ? WHERE n = (SELECT min(n) FROM failures "
                    "WHERE agent = ? AND session = ? AND digest = ? AND call LIKE 'at %')",
                    (notice.call, *mine, digest),
                )
            added = self._db.execute(
                "INSERT INTO failures (agent, session, subagent, project, call, digest, words, at, command) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (*mine, notice.subagent_id, project, notice.call or f"at {now}", digest, words[:200], now, command),
            )
            if not added.rowcount:
                self._db.execute(
                    "UPDATE failures SET words = ? WHERE agent = ? AND session = ? AND call = ? AND words = ''",
                    (words[:200], *mine, notice.call),
                )
                return False
            self._db.execute(
                "UPDATE shown SET again = 1 WHERE agent = ? AND session = ? AND at < ? AND instr(digests, ?)",
                (*mine, now, f" {digest} "),
            )
            return True

        return self._write(note)

    def shown(self, project: str | None = None, *, session: str | None = None, untold: bool = False) -> Sequence[Shown]:
        """What was shown, oldest first. untold: only what has an outcome that `tell` did not mark, and whose error was
        at stake: what was shown at a failure, or at another moment before the error came."""
        found = self._db.execute(
            "SELECT receipt, agent, session, project, lesson, moment, way, at, again, done, digests FROM shown "
            "WHERE (?1 IS NULL OR project = ?1) AND (?2 IS NULL OR session = ?2) "
            "AND (NOT ?3 OR (again IS NOT NULL AND NOT told AND (again OR moment = 'failure'))) ORDER BY n",
            (project, session, untold),
        )
        return [
            Shown(*row[:8], again=None if row[8] is None else bool(row[8]), done=bool(row[9]), digests=row[10].split())
            for row in found
        ]

    def useless_lessons(self) -> set[str]:
        """Those shown three times in vain, and mostly so: the error came again, and nobody did what they say."""
        vain = "sum(again IS 1 AND NOT done)"
        shown = "shown WHERE way = 'shown' AND moment = 'failure' GROUP BY lesson"
        found = self._db.execute(f"SELECT lesson FROM {shown} HAVING {vain} >= 3 AND {vain} > sum(done)")
        return {row[0] for row in found}

    def did(self, one: Shown) -> None:
        """Notes that a session did what it was shown."""
        which = (one.receipt, one.session, one.lesson)
        change = "UPDATE shown SET done = 1 WHERE receipt = ? AND session = ? AND lesson = ?"
        self._write(lambda: self._db.execute(change, which))

    def failed_commands(self, project: str) -> Sequence[FailedCommand]:
        """The failures of commands in a project, oldest first."""
        rows = self._db.execute(
            "SELECT session, digest, at FROM failures WHERE project = ? AND words <> '' ORDER BY n", (project,)
        )
        return [FailedCommand(*row) for row in rows]

    def tell(self, receipts: Iterable[str]) -> None:
        """Marks the outcomes of these receipts as told to the bank, as far as there are any."""
        self._write(
            lambda: self._db.executemany(
                "UPDATE shown SET told = 1 WHERE receipt = ? AND again IS NOT NULL", [(id,) for id in receipts]
            )
        )

    def settle(self, before: float) -> None:
        """Takes what was shown before this time as not having come again: of sessions whose end nobody reports."""
        self._write(lambda: self._db.execute("UPDATE shown SET again = 0 WHERE again IS NULL AND at < ?", (before,)))

    def frequent(self, project: str | None = None, limit: int = 10) -> Sequence[tuple[str, str, int, int]]:
        """The errors that came most often: digest, words, how often, in how many sessions.

        Without those that have no words: the worker has not read them yet, or takes them for no failure of a command.
        """
        found = self._db.execute(
            "SELECT digest, max(words), count(*) AS often, count(DISTINCT agent || ' ' || session) FROM failures "
            "WHERE ?1 IS NULL OR project = ?1 GROUP BY digest HAVING max(words) <> '' "
            "ORDER BY often DESC, digest LIMIT ?2",
            (project, limit),
        )
        return [tuple(row) for row in found]

    def failures(self, project: str) -> Sequence[Failure]:
        """The errors of the sessions of a project, oldest first."""
        found = self._db.execute(
            "SELECT agent, session, max(words), count(*), min(at) FROM failures WHERE project = ? "
            "GROUP BY agent, session, digest ORDER BY min(n)",
            (project,),
        )
        return [Failure(*row) for row in found]

    # --- what a person decides ----------------------------------------------------------------------------------

    def pause(self, folder: str = EVERYWHERE) -> None:
        """Lets hooks do nothing in this folder and below it, or nowhere."""
        where = folder and os.path.realpath(folder)
        self._write(lambda: self._db.execute("INSERT OR IGNORE INTO paused VALUES (?, ?)", (where, time.time())))

    def resume(self, folder: str = EVERYWHERE) -> bool:
        """Takes a pause back; False if there was none for exactly this folder."""
        where = folder and os.path.realpath(folder)

        def end() -> bool:
            row = self._db.execute("DELETE FROM paused WHERE folder = ? RETURNING at", (where,)).fetchone()
            if row:
                ended = [*json.loads(self.setting(_ENDED, "[]")), [where, row[0], time.time()]]
                self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (_ENDED, _json(ended[-PAUSES:])))
            return row is not None

        return self._write(end)

    def pauses(self, folder: str) -> Sequence[tuple[float, float]]:
        """When hooks were paused in this folder, each from and until; what was said then is nobody's business."""
        there = os.path.realpath(folder)
        return [(start, end) for one, start, end in json.loads(self.setting(_ENDED, "[]")) if _holds(one, there)]

    def paused(self) -> Sequence[str]:
        """The folders in which hooks do nothing; `EVERYWHERE` comes first."""
        return [row[0] for row in self._db.execute("SELECT folder FROM paused ORDER BY folder")]

    def is_paused(self, folder: str) -> bool:
        return bool(self.pausing(folder))

    def pausing(self, folder: str) -> Sequence[str]:
        """Those of `paused` because of which hooks do nothing in this folder."""
        there = os.path.realpath(folder)
        return [one for one in self.paused() if _holds(one, there)]

    def bank_of(self, project: str) -> str:
        """The agent id of the bank that keeps this project's lessons: the project's own id, unless it was bound."""
        row = self._db.execute("SELECT bank FROM bound WHERE project = ?", (project,)).fetchone()
        return row[0] if row else project

    def bank_of_subagent(self, bank: str, kind: str) -> str:
        """The agent id of the bank of a sub-agent of this type, in a project with that bank."""
        return f"{bank}#{' '.join(kind.split())}" if kind and self.setting("subagents") == OWN else bank

    def banks_of_subagents(self, bank: str) -> Sequence[str]:
        """The banks that sub-agents have of their own in the project with this one."""
        found = self._db.execute(
            "SELECT DISTINCT project FROM sessions WHERE substr(project, 1, length(?1)) = ?1 ORDER BY project",
            (f"{bank}#",),
        )
        return [row[0] for row in found]

    def bind(self, project: str, bank: str) -> None:
        """Lets this project use another bank; its own id takes that back."""
        self._write(
            lambda: (
                self._db.execute("DELETE FROM bound WHERE project = ?", (project,))
                if bank == project
                else self._db.execute("INSERT OR REPLACE INTO bound VALUES (?, ?)", (project, bank))
            )
        )

    def setting(self, name: str, default: str = "") -> str:
        """What a person set, else the default of `SETTINGS`, else the one that is given."""
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return row[0] if row else SETTINGS.get(name, (default,))[0]

    def set(self, name: str, value: str) -> None:
        self._write(lambda: self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value)))

    def guards(self) -> Mapping[str, str] | None:
        """The patterns of the guards that a person turned on here, by the ids of their lessons; "" for a lesson that an
        earlier version marked. None: this file is of such a version, and nobody has looked for its marks yet."""
        found = self.setting(_GUARDS)
        return json.loads(found) if found else None

    def guard(self, patterns: Mapping[str, str]) -> None:
        """Turns on guards: a pattern for each lesson."""

        def change() -> None:
            kept = json.dumps({**(self.guards() or {}), **patterns})
            self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (_GUARDS, kept))

        self._write(change)

    # --- errors -------------------------------------------------------------------------------------------------

    def swallowed(self, agent: str, event: str, what: str) -> None:
        """Notes an error that a hook kept from its agent."""

        def note() -> None:
            self._db.execute(
                "INSERT INTO errors (at, agent, event, what) VALUES (?, ?, ?, ?)",
                (time.time(), agent, event, what[:1000]),
            )
            self._db.execute("DELETE FROM errors WHERE n <= (SELECT max(n) FROM errors) - ?", (ERRORS,))

        self._write(note)

    def errors(self, limit: int = 20) -> Sequence[Swallowed]:
        """The newest first."""
        from mulligan.hooks.swallowed import Swallowed  # rarely needed

        found = self._db.execute("SELECT at, agent, event, what FROM errors ORDER BY n DESC LIMIT ?", (limit,))
        return [Swallowed(*row) for row in found]


def _holds(folder: str, path: str) -> bool:
    """Whether the path is this folder, or lies below it."""
    return not folder or path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _checksum(command: str) -> int | None:
    """What a command is known by while its session goes on: it may hold secrets, so it is not kept itself."""
    if not (words := command.split()):
        return None
    from binascii import crc32  # rarely needed

    return crc32(" ".join(words).encode(errors="replace"))


def _never(receipt: str, entry: str, share: float) -> bool:
    return False


def swallow(agent: str, event: str, what: str) -> None:
    """Notes an error in the journal, or where that cannot be written, in a file beside it. Raises nothing."""
    try:
        with Journal(wait=0.05) as journal:
            journal.swallowed(agent, event, what)
    except (sqlite3.Error, OSError) as error:
        from mulligan.hooks.swallowed import keep_line  # rarely needed

        keep_line(f"{time.time():.0f} {agent} {event}: {what} (and hooks.db: {error})".replace("\n", " "))


def _session(row: Sequence[Any]) -> Session:
    values = dict(zip(Session._fields, row, strict=True))
    values |= {"due": bool(values["due"]), "forgotten": bool(values["forgotten"])}
    values["cursor"] = None if values["cursor"] is None else json.loads(values["cursor"])
    return Session(**values)


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"))
