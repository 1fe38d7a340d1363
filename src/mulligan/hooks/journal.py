"""The journal of hooks: sessions with their cursors, what was shown to them, failures and errors.

It is one SQLite file (`journal_file`). Every method is one transaction, so several agents may work
at the same time. `Journal` raises `sqlite3.Error`, and `OSError` if the folder cannot be made.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence

from mulligan.core.light import TYPE_CHECKING, NamedTuple
from mulligan.hooks.journal_file import JournalFile
from mulligan.sessions.agents import agent
from mulligan.sessions.events import Notice

if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias, TypeVar

    from mulligan.hooks.swallowed import Swallowed

    T = TypeVar("T")

MAX_ERRORS = 200
"""Errors of hooks that are kept, the newest."""
Way: TypeAlias = "Literal['shown', 'denied', 'withheld']"


class Session(NamedTuple):
    """A session of a coding agent.

    Attributes:
        subagent: the id of a sub-agent that has a transcript of its own; "" for the main agent.
        kind: the type of the sub-agent.
        ended: when it last ended; None while it runs, and after it was killed. A resumed session ends again.
        due: whether there is something left to learn from it.
        asked: when the agent was asked why something failed that it overcame; None: not yet.
        cursor: how far its transcript was read, in the form of `learning.read_on`.
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
    """A lesson that was shown in a session, or withheld, or that denied a call.

    Attributes:
        again: whether an error of the lesson occurred in that session afterwards; None while the session runs.
        done: whether the session then did what the lesson says.
        digests: of the errors that the lesson is about.
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


class PastSession(NamedTuple):
    """What a session had.

    Attributes:
        errors: the keys of its errors.
        lessons: the ids of the lessons that it was shown.
        remedies: of these, the ids of those whose steps it then took.
    """

    errors: frozenset[str]
    lessons: frozenset[str] = frozenset()
    remedies: frozenset[str] = frozenset()


class Failure(NamedTuple):
    """An error of a session, and how often it occurred there. words: its signature; "" until the worker has read it."""

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


class Journal(JournalFile):
    """The journal of hooks: sessions, what was shown to them, their failures, and errors of hooks."""

    # --- sessions -----------------------------------------------------------------------------------------------

    def seen(self, notice: Notice, project: str) -> Session:
        """Note that a session is alive, and what its notice says.

        Any notice but a start makes the session due, and an end ends it. After a compaction, lessons can be shown
        again. A notice that omits something does not erase it. The project and the folder stay those of the first
        notice. Of a forgotten session only the time is noted.
        """
        now = time.time()
        is_due = notice.moment not in ("start", "before_tool")  # also what never stops: it may be killed
        is_due = is_due and bool(notice.transcript) and agent(notice.agent).readable
        compacted = notice.moment == "compact" or (notice.moment == "start" and notice.source in ("compact", "clear"))
        mine = (notice.agent, notice.session, notice.subagent_id)
        facts = (project, notice.folder, notice.transcript, notice.subagent)

        def note() -> Session:
            self._add(*mine, now, project if notice.subagent else "")
            self._db.execute(
                "UPDATE sessions SET project = coalesce(nullif(project, ''), ?), "
                "folder = coalesce(nullif(folder, ''), ?), transcript = coalesce(nullif(?, ''), transcript), "
                "kind = coalesce(nullif(?, ''), kind), due = due OR ?, compactions = compactions + ?, "
                f"ended = iif(?, ?, NULL) WHERE {_WHICH} AND NOT forgotten",
                (*facts, is_due, compacted, notice.moment in ("end", "subagent_stop"), now, *mine),
            )
            self._db.execute(f"UPDATE sessions SET seen = ? WHERE {_WHICH}", (now, *mine))
            if notice.moment == "end":
                self._db.execute(
                    "UPDATE shown SET again = 0 WHERE agent = ? AND session = ? AND again IS NULL", mine[:2]
                )
            row = self._db.execute(f"SELECT {_SESSION} FROM sessions WHERE {_WHICH}", mine).fetchone()
            return _session(row)

        return self._write(note)

    def _add(self, agent: str, session: str, subagent: str, now: float, project: str = "") -> None:
        """Add the session, if it is new. A sub-agent is forgotten if its main agent is, and has its project by
        default."""
        main = "SELECT {} FROM sessions WHERE agent = ?1 AND session = ?2 AND subagent = ''"
        self._db.execute(
            "INSERT INTO sessions (agent, session, subagent, began, seen, project, folder, forgotten) "
            f"SELECT ?1, ?2, ?3, ?4, ?4, coalesce(nullif(?5, ''), ({main.format('project')}), ''), "
            f"coalesce(({main.format('folder')}), ''), coalesce(({main.format('forgotten')}), 0) "
            "WHERE 1 ON CONFLICT DO NOTHING",
            (agent, session, subagent, now, project),
        )

    def session(self, agent: str, session: str, subagent: str = "") -> Session | None:
        row = self._db.execute(f"SELECT {_SESSION} FROM sessions WHERE {_WHICH}", (agent, session, subagent)).fetchone()
        return row and _session(row)

    def sessions(
        self, *, project: str | None = None, due: bool | None = None, last: int | None = None
    ) -> list[Session]:
        """The sessions that were seen and not forgotten, the newest at the end. last: only so many of the newest."""
        newest = self._db.execute(
            f"SELECT {_SESSION} FROM sessions WHERE NOT forgotten AND (?1 IS NULL OR project = ?1) "
            "AND (?2 IS NULL OR due = ?2) ORDER BY seen DESC, rowid DESC LIMIT ?3",
            (project, due, -1 if last is None else last),
        )
        return [_session(row) for row in newest][::-1]

    def recent_sessions(self, project: str, last: int, *, current: str = "") -> Sequence[PastSession]:
        """The newest sessions of a project, the newest first. current: the session to leave out."""
        of_session = "WHERE t.agent = s.agent AND t.session = s.session"
        shown = f"FROM shown AS t {of_session} AND way = 'shown'"
        newest = (
            "SELECT agent, session, min(began) AS start FROM sessions WHERE project = ? AND session <> ? "
            "AND NOT forgotten GROUP BY agent, session ORDER BY start DESC LIMIT ?"
        )
        rows = self._db.execute(
            f"SELECT (SELECT group_concat(digest, ' ') FROM failures AS t {of_session}), "
            f"(SELECT group_concat(lesson, ' ') {shown}), (SELECT group_concat(lesson, ' ') {shown} AND done) "
            f"FROM ({newest}) AS s ORDER BY start DESC",
            (project, current, last),
        )
        return [PastSession(*(frozenset((ids or "").split()) for ids in row)) for row in rows]

    def is_due(self, *, besides: str = "") -> bool:
        """Whether there is something to learn from a session, except that one, in a folder that is not paused."""
        rows = self._db.execute(
            "SELECT DISTINCT folder FROM sessions WHERE due AND NOT forgotten AND session <> ?", (besides,)
        )
        return any(not self.is_paused(folder) for (folder,) in rows.fetchall())

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
        """Move the cursor from `before` to `cursor`, and add to the number of lessons.

        A session that is new, such as one of an old transcript, is added. due: there is more to learn.

        Returns:
            False if another process has moved the cursor meanwhile.
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
        """Whether the agent may be asked now what it overcame, which is then noted.

        It is asked once in a session, if it ran a command again that had failed, and that did not fail again (see
        `tries`).
        """
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
        """The sessions whose id begins with `prefix`, also forgotten ones; main agents first."""
        rows = self._db.execute(
            f"SELECT {_SESSION} FROM sessions WHERE substr(session, 1, length(?1)) = ?1 ORDER BY subagent, rowid",
            (prefix,),
        )
        return [_session(row) for row in rows]

    def forget(self, agent: str, session: str) -> None:
        """Remove all notes of a session and its sub-agents, except that it is forgotten: nothing is learned from it.

        The lessons in the bank are left to the caller.
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
        """Remove the sessions that were not seen for so many days, with what was shown to them. Returns how many."""
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
        """Choose lessons that the session was not shown since its last compaction, note them, and return their ids.

        If several processes ask at the same time, one of them gets a lesson. If they ask for the same call, with the
        same receipt, one of them gets all.

        Args:
            lessons: ids, the best first, each with the digests of the errors that the lesson is about.
            most: how many to choose, withheld ones included.
            share: the share of lessons to withhold by lot, so that their worth can be measured.
        """
        if share:
            from mulligan.core.worth import is_withheld  # not above: dataclasses take longer to import than the rest
        else:
            is_withheld = _never
        now, mine = time.time(), (notice.agent, notice.session, notice.subagent_id)

        def take() -> Sequence[str]:
            row = self._db.execute(f"SELECT compactions FROM sessions WHERE {_WHICH}", mine).fetchone()
            compaction, ids, room = row[0] if row else 0, list[str](), most
            answered = f"SELECT 1 FROM shown WHERE {_WHICH} AND receipt = ?"
            if notice.call and self._db.execute(answered, (*mine, receipt)).fetchone():
                return ids
            for lesson, digests in lessons:
                if room == 0:
                    break
                inserted = self._db.execute(
                    "INSERT INTO shown (receipt, agent, session, subagent, compaction, way, project, lesson, moment, "
                    "at, digests) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    (receipt, *mine, compaction, way, project, lesson, notice.moment, now, f" {' '.join(digests)} "),
                )
                room -= inserted.rowcount
                if not inserted.rowcount:
                    continue
                if is_withheld(receipt, lesson, share):
                    self._db.execute("UPDATE shown SET way = 'withheld' WHERE n = ?", (inserted.lastrowid,))
                else:
                    ids.append(lesson)
            return ids

        return self._write(take)

    def tries(self, notice: Notice) -> None:
        """Note that a command runs that failed before. If it fails again, `failed` reverts that."""
        which = f"{_WHICH} AND command = ? AND tried IS NULL"
        mine = (notice.agent, notice.session, notice.subagent_id, _checksum(notice.command))
        if self._db.execute(f"SELECT 1 FROM failures WHERE {which} LIMIT 1", mine).fetchone():
            self._write(lambda: self._db.execute(f"UPDATE failures SET tried = ? WHERE {which}", (time.time(), *mine)))

    def failed(self, notice: Notice, project: str, digest: str, words: str = "", at: float = 0.0) -> bool:
        """Note a failure, once for each call. Lessons about it that the session was shown have `again` from now on.

        Some agents give hooks no id of the call, but their transcripts have it: then the oldest failure without one
        gets it.

        Args:
            digest: of the signature of the error.
            words: the signature, masked. It may be added later.
            at: when it happened; 0: now.

        Returns:
            False if it was noted before.
        """
        now, mine = at or time.time(), (notice.agent, notice.session)
        command = _checksum(notice.command)

        def note() -> bool:
            if command is not None:
                self._db.execute(
                    f"UPDATE failures SET tried = NULL WHERE {_WHICH} AND command = ?",
                    (*mine, notice.subagent_id, command),
                )
            if notice.call:
                self._db.execute(
                    "UPDATE OR IGNORE failures SET call = ? WHERE n = (SELECT min(n) FROM failures "
                    "WHERE agent = ? AND session = ? AND digest = ? AND call LIKE 'at %')",
                    (notice.call, *mine, digest),
                )
            inserted = self._db.execute(
                "INSERT INTO failures (agent, session, subagent, project, call, digest, words, at, command) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (*mine, notice.subagent_id, project, notice.call or f"at {now}", digest, words[:200], now, command),
            )
            if not inserted.rowcount:
                self._db.execute(
                    "UPDATE failures SET words = ? WHERE agent = ? AND session = ? AND call = ? AND digest = ? "
                    "AND words = ''",
                    (words[:200], *mine, notice.call, digest),
                )
                return False
            self._db.execute(
                "UPDATE shown SET again = 1 WHERE agent = ? AND session = ? AND at < ? AND instr(digests, ?)",
                (*mine, now, f" {digest} "),
            )
            return True

        return self._write(note)

    def note_errors(self, session: Session, errors: Iterable[tuple[str, float, Sequence[str]]]) -> None:
        """Note all keys of the errors of a session. Rules that it was shown before have `again` from then on.

        errors: of each, the id of the call, when it happened, and its keys.
        """
        mine = (session.agent, session.session)
        keys = [(id, key, at) for id, at, keys in errors for key in keys]

        def note() -> None:
            self._db.executemany(
                "INSERT INTO failures (agent, session, subagent, project, call, digest, words, at) "
                "VALUES (?, ?, ?, ?, ?, ?, '', ?) ON CONFLICT DO NOTHING",
                [(*mine, session.subagent, session.project, id, key, at) for id, key, at in keys],
            )
            self._db.executemany(
                "UPDATE shown SET again = 1 WHERE agent = ? AND session = ? AND moment = 'start' AND at < ? "
                "AND instr(digests, ?)",
                [(*mine, at, f" {key} ") for _, key, at in keys],
            )

        if keys:
            self._write(note)

    def shown(self, project: str | None = None, *, session: str | None = None, untold: bool = False) -> Sequence[Shown]:
        """What was shown, oldest first.

        untold: only showings with an outcome that `tell` has not marked. Those at another moment than a failure count
        only if the error then occurred.
        """
        rows = self._db.execute(
            "SELECT receipt, agent, session, project, lesson, moment, way, at, again, done, digests FROM shown "
            "WHERE (?1 IS NULL OR project = ?1) AND (?2 IS NULL OR session = ?2) "
            "AND (NOT ?3 OR (again IS NOT NULL AND NOT told AND (again OR moment = 'failure'))) ORDER BY n",
            (project, session, untold),
        )
        return [
            Shown(*row[:8], again=None if row[8] is None else bool(row[8]), done=bool(row[9]), digests=row[10].split())
            for row in rows
        ]

    def useless_lessons(self) -> set[str]:
        """Lessons that were shown in vain at least three times, and more often than with success: the error occurred
        again, and nobody did what they say."""
        vain = "sum(again IS 1 AND NOT done)"
        shown = "shown WHERE way = 'shown' AND moment = 'failure' GROUP BY lesson"
        rows = self._db.execute(f"SELECT lesson FROM {shown} HAVING {vain} >= 3 AND {vain} > sum(done)")
        return {row[0] for row in rows}

    def did(self, one: Shown) -> None:
        """Note that a session did what a lesson says that it was shown."""
        key = (one.receipt, one.session, one.lesson)
        statement = "UPDATE shown SET done = 1 WHERE receipt = ? AND session = ? AND lesson = ?"
        self._write(lambda: self._db.execute(statement, key))

    def failed_commands(self, project: str) -> Sequence[FailedCommand]:
        """The failures of commands in a project, oldest first."""
        rows = self._db.execute(
            "SELECT session, digest, at FROM failures WHERE project = ? AND words <> '' ORDER BY n", (project,)
        )
        return [FailedCommand(*row) for row in rows]

    def tell(self, receipts: Iterable[str]) -> None:
        """Mark the outcomes that these receipts have so far as told to the bank."""
        self._write(
            lambda: self._db.executemany(
                "UPDATE shown SET told = 1 WHERE receipt = ? AND again IS NOT NULL", [(id,) for id in receipts]
            )
        )

    def settle(self, before: float) -> None:
        """Note that errors of lessons shown before this time did not occur again. Not all agents report their end."""
        self._write(lambda: self._db.execute("UPDATE shown SET again = 0 WHERE again IS NULL AND at < ?", (before,)))

    def frequent(self, project: str | None = None, limit: int = 10) -> Sequence[tuple[str, str, int, int]]:
        """The most frequent errors: digest, words, how often they occurred, in how many sessions.

        Errors without words are left out: the worker has not read them yet, or they are not of a command.
        """
        rows = self._db.execute(
            "SELECT digest, max(words), count(*) AS often, count(DISTINCT agent || ' ' || session) FROM failures "
            "WHERE ?1 IS NULL OR project = ?1 GROUP BY digest HAVING max(words) <> '' "
            "ORDER BY often DESC, digest LIMIT ?2",
            (project, limit),
        )
        return [tuple(row) for row in rows]

    def failures(self, project: str) -> Sequence[Failure]:
        """The errors of the sessions of a project, oldest first."""
        rows = self._db.execute(
            "SELECT agent, session, max(words), count(*), min(at) FROM failures WHERE project = ? "
            "GROUP BY agent, session, digest ORDER BY min(n)",
            (project,),
        )
        return [Failure(*row) for row in rows]

    # --- errors -------------------------------------------------------------------------------------------------

    def swallowed(self, agent: str, event: str, what: str) -> None:
        """Note an error of a hook."""

        def note() -> None:
            self._db.execute(
                "INSERT INTO errors (at, agent, event, what) VALUES (?, ?, ?, ?)",
                (time.time(), agent, event, what[:1000]),
            )
            self._db.execute("DELETE FROM errors WHERE n <= (SELECT max(n) FROM errors) - ?", (MAX_ERRORS,))

        self._write(note)

    def errors(self, limit: int = 20) -> Sequence[Swallowed]:
        """The newest first."""
        from mulligan.hooks.swallowed import Swallowed  # rarely needed

        rows = self._db.execute("SELECT at, agent, event, what FROM errors ORDER BY n DESC LIMIT ?", (limit,))
        return [Swallowed(*row) for row in rows]


def _checksum(command: str) -> int | None:
    """A checksum by which a command is recognised. The command itself may have secrets, so it is not kept."""
    if not (words := command.split()):
        return None
    from binascii import crc32  # rarely needed

    return crc32(" ".join(words).encode(errors="replace"))


def _never(receipt: str, entry: str, share: float) -> bool:
    return False


def swallow(agent: str, event: str, what: str) -> None:
    """Note an error in the journal, or, if that cannot be written, in a file beside it. Raises nothing."""
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
