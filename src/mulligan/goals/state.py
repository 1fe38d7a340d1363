"""The record of goals: one SQLite file in Mulligan's home that hooks, workers and commands share.

Every method is one transaction. A try is a row with a number. It is written before the check runs, so that a process
that is killed leaves a row that the next stop takes over, and no try counts twice.
"""

from __future__ import annotations

import json
import os
import time

from mulligan.goals.database import Database, Row

TYPE_CHECKING = False  # importing `typing` takes longer than most of what a hook does

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MARKER = "goals.on"
"""A file that exists while there is a goal. Without it, hooks do not look for goals."""
DAY = 86400.0
"""Seconds without a session after which a goal ends."""
SAME_IN_ROW = 3
"""A session's work ends after so many tries in a row with the same failures, or without a change."""

_TWIN = 3600.0
"""A process that started at most so many seconds before the last verdict was told asks about the same stop. If it is
more, the machine was restarted meanwhile."""

NEW_TRIES = "resumed with new tries"
NO_PROGRESS = f"the same things failed in {SAME_IN_ROW} tries in a row"

ACTIVE, PAUSED, PASSED, CLEARED, EXPIRED = "active", "paused", "passed", "cleared", "expired"
OPEN, ENDED = "open", "ended"
"""The states of a session's work towards a goal."""
BEGUN, DONE = "begun", "done"
"""The states of a try."""

_WHO = "goal = ? AND agent = ? AND session = ?"


class Goals(Database):
    """The record of goals. Close it, or use it as a context manager. Raises `sqlite3.Error`."""

    # --- goals --------------------------------------------------------------------------------------------------

    def set(self, goal: Mapping[str, Any], who: str) -> None:
        """Add a goal, and clear the one that the same folder has.

        Args:
            goal: id, folder, common, prefix, label, settings and spec.
            who: who set it, for the log.
        """
        now = time.time()

        def add() -> None:
            os.close(os.open(self._marker, os.O_CREAT | os.O_RDWR, 0o600))
            self._note("", who, f"set {goal['label']} in {goal['folder']}")
            self._close("folder = ? AND state IN ('active', 'paused')", CLEARED, goal["folder"])
            self._db.execute(
                "INSERT INTO goals (id, folder, common, prefix, label, settings, spec, state, made, seen) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, 'active', ?, ?)",
                (
                    *(goal[name] for name in ("id", "folder", "common", "prefix", "label")),
                    *(json.dumps(goal[name]) for name in ("settings", "spec")),
                    *(now, now),
                ),
            )

        self._write(add, lasting=True)

    def change(self, goal: str, state: str, who: str) -> None:
        """Pause, resume or end a goal. After resuming, the tries of all sessions are counted from 1 again."""

        def change() -> None:
            self._note(goal, who, state)
            if state == ACTIVE:
                self._db.execute("UPDATE goals SET state = ?, seen = ? WHERE id = ?", (state, time.time(), goal))
                self._db.execute("DELETE FROM work WHERE goal = ?", (goal,))
                self._db.execute(
                    "UPDATE tries SET session = session || ' until ' || ? WHERE goal = ?", (time.time(), goal)
                )
            elif state == PAUSED:
                self._db.execute("UPDATE goals SET state = ? WHERE id = ?", (state, goal))
            else:
                self._close("id = ?", state, goal)

        self._write(change, lasting=True)
        self._write(self._unmark)

    def leave(self, goal: str) -> None:
        """End the open work of all sessions, before their tries are counted anew."""
        self._write(
            lambda: self._db.execute(
                "UPDATE work SET state = 'ended', why = ? WHERE goal = ? AND state = 'open'", (NEW_TRIES, goal)
            )
        )

    def _close(self, which: str, state: str, *given: Any) -> None:
        """End goals, and forget the environment of their checks."""
        self._db.execute(f"UPDATE goals SET state = ?, spec = '{{}}' WHERE {which}", (state, *given))

    @property
    def _marker(self) -> str:
        return os.path.join(os.path.dirname(self.path), MARKER)

    def _unmark(self) -> None:
        """Remove `MARKER` if no goal is left. In a transaction, so that no goal is set meanwhile."""
        left = self._db.execute("SELECT 1 FROM goals WHERE state IN ('active', 'paused') LIMIT 1").fetchone()
        if not left and os.path.exists(self._marker):
            os.unlink(self._marker)

    def standing(self) -> list[Row]:
        """The goals that are active or paused. Goals without a session for a day are ended first."""
        expired = [
            row.id
            for row in self._rows(
                "SELECT id FROM goals WHERE state IN ('active', 'paused') AND seen < ?", time.time() - DAY
            )
        ]
        for id in expired:
            self.change(id, EXPIRED, "mulligan")
        return self._rows("SELECT * FROM goals WHERE state IN ('active', 'paused')")

    def goal(self, id: str) -> Row | None:
        return next(iter(self._rows("SELECT * FROM goals WHERE id = ?", id)), None)

    def newest(self, folder: str) -> Row | None:
        """The last goal that was set in this folder, in any state."""
        return next(iter(self._rows("SELECT * FROM goals WHERE folder = ? ORDER BY made DESC LIMIT 1", folder)), None)

    def keep_first(self, goal: str, feedback: Any) -> None:
        """Keep the feedback of the check when the goal was set."""
        self._write(lambda: self._db.execute("UPDATE goals SET first = ? WHERE id = ?", (json.dumps(feedback), goal)))

    def keep_best(self, goal: str, best: Any) -> None:
        """Keep the state with the best score so far."""
        self._write(lambda: self._db.execute("UPDATE goals SET best = ? WHERE id = ?", (json.dumps(best), goal)))

    def note(self, goal: str, who: str, what: str) -> None:
        """Log what somebody did, or was refused."""
        self._write(lambda: self._note(goal, who, what))

    def _note(self, goal: str, who: str, what: str) -> None:
        self._db.execute("INSERT INTO log (at, goal, who, what) VALUES (?, ?, ?, ?)", (time.time(), goal, who, what))

    def log(self, limit: int = 20) -> list[Row]:
        """The newest entries of the log, newest first."""
        return self._rows("SELECT * FROM log ORDER BY n DESC LIMIT ?", limit)

    # --- the work of a session --------------------------------------------------------------------------------------

    def work(self, goal: str, agent: str, session: str) -> Row | None:
        return next(iter(self._rows(f"SELECT * FROM work WHERE {_WHO}", goal, agent, session)), None)

    def works(self, goal: str) -> list[Row]:
        return self._rows("SELECT * FROM work WHERE goal = ? ORDER BY rowid", goal)

    def tries(self, goal: str, agent: str = "", session: str = "") -> list[Row]:
        """The tries of a session, or of all sessions, in their order."""
        return self._rows(
            "SELECT * FROM tries WHERE goal = ?1 AND (?2 = '' OR (agent = ?2 AND session = ?3)) ORDER BY at, n",
            *(goal, agent, session),
        )

    def verdicts(self, agent: str, session: str) -> list[Row]:
        """The tries of a session in which a command gave a verdict, each with the command line as `check`."""
        return self._rows(
            "SELECT t.*, json_extract(g.settings, '$.check') AS 'check' FROM tries t JOIN goals g ON g.id = t.goal "
            "WHERE t.agent = ? AND t.session = ? AND t.passed IS NOT NULL AND NOT t.unchanged "
            "AND json_extract(g.settings, '$.check') != '' ORDER BY t.at",
            *(agent, session),
        )

    def prompted(self, goal: str, agent: str, session: str, state: str) -> None:
        """Note that a turn begins with the folder in this state."""
        who = (goal, agent, session)

        def note() -> None:
            self._enter(who)
            self._db.execute(
                f"UPDATE work SET turn = turn + 1, began = ?, commands_began = commands, clock = ? WHERE {_WHO}",
                (state, time.monotonic(), *who),
            )

        self._write(note)

    def command(self, goal: str, agent: str, session: str) -> None:
        """Note that the agent runs a command that may change something."""
        who = (goal, agent, session)

        def note() -> None:
            self._enter(who)
            self._db.execute(f"UPDATE work SET commands = commands + 1 WHERE {_WHO}", who)

        self._write(note)

    def _enter(self, who: Sequence[str]) -> Row:
        self._db.execute("INSERT OR IGNORE INTO work (goal, agent, session) VALUES (?, ?, ?)", who)
        self._db.execute("UPDATE goals SET seen = ? WHERE id = ?", (time.time(), who[0]))
        return self._rows(f"SELECT * FROM work WHERE {_WHO}", *who)[0]

    def _spent(self, work: Row, who: Sequence[str]) -> float:
        """Seconds that the agent has worked, by the monotonic clock, without the time between turns."""
        now = time.monotonic()
        spent = work.seconds + max(0.0, now - (now if work.clock is None else work.clock))
        self._db.execute(f"UPDATE work SET seconds = ?, clock = ? WHERE {_WHO}", (spent, now, *who))
        return spent

    # --- tries ----------------------------------------------------------------------------------------------------

    def begin(
        self, goal: Row, agent: str, session: str, state: str, asker: str, started: float, *, always: bool = False
    ) -> Row | None:
        """Begin the try that a stop is. None: it is no try, so the turn may end, or another process answers.

        A try that a killed process left is taken over. If nothing has changed since the last check, the try gets the
        verdict of that one at once; else the result has `fresh` set, and its check has to be run.

        Args:
            state: that of the folder.
            asker: the process that asks; see `recording.holders`.
            started: when that process began, by `time.monotonic`.
            always: the stop is a try even if nothing has changed since the turn began.
        """
        from mulligan.recording.holders import died

        who = (goal.id, agent, session)

        def begin() -> Row | None:
            work = self._enter(who)
            there = self._db.execute("SELECT state FROM goals WHERE id = ?", who[:1]).fetchone()[0]
            if work.state != OPEN or there != ACTIVE:
                return None
            spent, tries = self._spent(work, who), self._rows(f"SELECT * FROM tries WHERE {_WHO} ORDER BY n", *who)
            last = tries[-1] if tries else None
            if last and (not died(last.asker) if last.told is None else 0 < last.told - started < _TWIN):
                return None  # where hooks are installed twice, one answers
            if last and last.state == BEGUN:
                if not died(last.owner):
                    last.fresh = False
                    return last
                self._db.execute(
                    f"UPDATE tries SET owner = ?, asker = ?, before = ?, commands = ?, turn = ? WHERE {_WHO} AND n = ?",
                    (asker, asker, state, work.commands, work.turn, *who, last.n),
                )
                return self._try(who, last.n, fresh=True)
            in_turn = any(one.turn == work.turn for one in tries)
            if not in_turn and not always and state == work.began and work.commands == work.commands_began:
                return None
            n = len(tries) + 1
            late = bool(goal.settings.get("max_seconds")) and spent > goal.settings["max_seconds"]
            if n > goal.settings["trials"] or (late and tries):
                self._stop(who, "the time is up" if late else "all tries are used")
                return None
            self._db.execute(
                "INSERT INTO tries (goal, agent, session, n, turn, asker, before, commands, state, owner, at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'begun', ?, ?)",
                (*who, n, work.turn, asker, state, work.commands, asker, time.time()),
            )
            unchanged = in_turn and last and state in (last.before, last.after) and last.commands == work.commands
            if last and unchanged:
                self._finish(goal, who, n, last.passed, last.feedback, last.keys, state, unchanged=True)
            return self._try(who, n, fresh=not unchanged)

        return self._write(begin, lasting=True)

    def own(self, goal: str, agent: str, session: str, n: int, owner: str) -> Row | None:
        """Make this process the owner of a try. Returns the try; None if it does not run any more."""
        who = (goal, agent, session)

        def take() -> Row | None:
            changed = self._db.execute(
                f"UPDATE tries SET owner = ? WHERE {_WHO} AND n = ? AND state = 'begun'", (owner, *who, n)
            )
            return self._try(who, n, fresh=True) if changed.rowcount else None

        return self._write(take)

    def finish(
        self, goal: Row, try_row: Row, passed: bool | None, feedback: Any, keys: Sequence[str], state: str, attempt: str
    ) -> None:
        """Record the verdict on a try, by which the goal may be passed, or end for this session.

        Args:
            feedback: in the form of `core.codec`.
            keys: the failures, from `failures`.
            state: that of the folder after the check; "" if the try passed.
            attempt: the changes since the goal was set.
        """
        who, n = (try_row.goal, try_row.agent, try_row.session), try_row.n

        def finish() -> None:
            current = self._try(who, n)
            if current.state == BEGUN and current.owner == try_row.owner:  # else another process has taken it over
                self._db.execute(f"UPDATE tries SET attempt = ? WHERE {_WHO} AND n = ?", (attempt, *who, n))
                self._finish(goal, who, n, passed, feedback, keys, state)

        self._write(finish, lasting=True)
        if passed:
            self._write(self._unmark)

    def _finish(
        self,
        goal: Row,
        who: Sequence[str],
        n: int,
        passed: bool | None,
        feedback: Any,
        keys: Sequence[str],
        state: str,
        *,
        unchanged: bool = False,
    ) -> None:
        self._db.execute(
            "UPDATE tries SET state = 'done', passed = ?, feedback = ?, keys = ?, after = ?, unchanged = ? "
            f"WHERE {_WHO} AND n = ?",
            (passed, json.dumps(feedback), json.dumps(list(keys)), state, unchanged, *who, n),
        )
        work = self._rows(f"SELECT * FROM work WHERE {_WHO}", *who)[0]
        spent, limit = self._spent(work, who), goal.settings.get("max_seconds")
        if passed:
            self._note(goal.id, f"{who[1]} {who[2]}", f"passed on try {n}")
            self._db.execute(f"UPDATE work SET state = 'ended', why = 'passed' WHERE {_WHO}", who)
            self._close("id = ? AND state = 'active'", PASSED, goal.id)
        elif n >= goal.settings["trials"]:
            self._stop(who, "all tries are used")
        elif limit and spent >= limit:
            self._stop(who, "the time is up")
        else:
            recent = self._rows(f"SELECT * FROM tries WHERE {_WHO} ORDER BY n DESC LIMIT ?", *who, SAME_IN_ROW)
            same = all(row.unchanged or row.keys == recent[-1].keys for row in recent[:-1])
            if same and len(recent) == SAME_IN_ROW:
                self._stop(who, NO_PROGRESS)

    def _stop(self, who: Sequence[str], why: str) -> None:
        self._note(who[0], f"{who[1]} {who[2]}", f"ended: {why}")
        self._db.execute(f"UPDATE work SET state = 'ended', why = ? WHERE {_WHO} AND state = 'open'", (why, *who))

    def _try(self, who: Sequence[str], n: int, *, fresh: bool = False) -> Row:
        row = self._rows(f"SELECT * FROM tries WHERE {_WHO} AND n = ?", *who, n)[0]
        row.fresh = fresh
        return row

    def reread(self, try_row: Row) -> Row:
        return self._try((try_row.goal, try_row.agent, try_row.session), try_row.n)

    def tell(self, try_row: Row) -> None:
        """Note that the agent is told this verdict."""
        self._write(
            lambda: self._db.execute(
                f"UPDATE tries SET told = ? WHERE {_WHO} AND n = ? AND told IS NULL",
                (time.monotonic(), try_row.goal, try_row.agent, try_row.session, try_row.n),
            )
        )

    def untold(self, goal: str, agent: str, session: str) -> Row | None:
        """The last verdict, if no hook has told it to the agent."""
        last = self._rows(f"SELECT * FROM tries WHERE {_WHO} ORDER BY n DESC LIMIT 1", goal, agent, session)
        return last[0] if last and last[0].state == DONE and last[0].told is None else None
