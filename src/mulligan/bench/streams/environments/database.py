"""A small read-only SQLite database with meaningless names, queried in SQL.

The table `dictionary` says what tables, columns and codes mean. Rows change from task to task, names only at the drift.
Results are deterministic: queries may only use listed tables and functions, and steps of SQLite's virtual machine limit
a query, not time.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from mulligan.bench.streams._drawing import MAX_POINTS, generator, odd_names, points
from mulligan.bench.streams.reader.database import CODE, COLUMN, TABLE, Inquiry
from mulligan.pages import count
from mulligan.plugins import Outcome, Step, parse_action

THINGS: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]]]] = {
    "orders": ("amount", {"region": ("north", "south", "east"), "state": ("open", "paid", "returned")}),
    "parcels": ("weight", {"size": ("small", "large", "bulky"), "route": ("road", "rail", "sea")}),
    "machines": ("age", {"hall": ("upper", "lower", "outer"), "status": ("running", "idle", "broken")}),
    "visits": ("length", {"purpose": ("advice", "repair", "sale"), "weekday": ("monday", "thursday", "saturday")}),
}
"""For each kind of thing: its measure, and the values of its two attributes."""
ROWS, SHOWN, CELL = 60, 8, 120
"""The rows of a table, and the maximum number of rows in a result and of characters in a cell."""
_WORK = 200_000
_FUNCTIONS = (
    "abs avg char coalesce count glob group_concat ifnull iif instr length like lower ltrim max min nullif "
    "replace round rtrim substr substring sum total trim typeof unicode upper"
)


@dataclass(frozen=True)
class Schema:
    """The meaningless names, keyed by their meaning. tables: by thing. columns: by thing and attribute or measure.
    codes: by thing, attribute and value."""

    tables: Mapping[str, str]
    columns: Mapping[tuple[str, str], str]
    codes: Mapping[tuple[str, str, str], str]

    def sql(self, inquiry: Inquiry) -> str:
        thing = inquiry.things
        columns = {name: column for (of, name), column in self.columns.items() if of == thing}
        codes = {attribute: self.codes[thing, attribute, word] for attribute, word in inquiry.conditions}
        return inquiry.sql(self.tables[thing], columns, codes)

    def notes(self) -> Iterator[tuple[str, str, str]]:
        """The rows of the dictionary: kind, what it belongs to, and the sentence."""
        for thing, table in self.tables.items():
            yield "table", "", TABLE.state(table=table, things=thing)
        for (thing, name), column in self.columns.items():
            table = self.tables[thing]
            yield "column", table, COLUMN.state(column=column, table=table, attribute=name)
        for (thing, attribute, word), code in self.codes.items():
            column = f"{self.tables[thing]}.{self.columns[thing, attribute]}"
            yield "code", column, CODE.state(code=code, column=column, word=word)


def schema(seed: int, changed: bool) -> Schema:
    """The names before or after the change, which have no name in common."""
    chance = generator("database", seed)
    tables, columns, codes = (odd_names(chance, form) for form in ("??_###", "??#_#", "?##"))
    for _ in range(2 if changed else 1):
        found = Schema(
            {thing: next(tables) for thing in THINGS},
            {(thing, name): next(columns) for thing, (m, values) in THINGS.items() for name in (m, *values)},
            {
                (t, a, word): next(codes).upper()
                for t, (_, values) in THINGS.items()
                for a in values
                for word in values[a]
            },
        )
    return found  # pyright: ignore[reportPossiblyUnboundVariable]


def inquiry(seed: int, number: int, kinds: int) -> Inquiry:
    """The question of a task. kinds: how many kinds of things rotate."""
    chance = generator("question", seed, number)
    thing = list(THINGS)[number % kinds]
    measure, attributes = THINGS[thing]
    conditions = [(attribute, chance.choice(words)) for attribute, words in attributes.items()]
    kind = chance.choice(("count", "sum", "largest", "both"))
    if kind == "both":
        return Inquiry(thing, tuple(conditions))
    return Inquiry(thing, (chance.choice(conditions),), "" if kind == "count" else measure, kind == "largest")


class Database:
    """The environment of a question. See `schema` and `inquiry` for the arguments."""

    replayable = True

    def __init__(self, *, seed: int, number: int, changed: bool = False, kinds: int = len(THINGS)) -> None:
        self._seed, self._number = seed, number
        self._schema, self._inquiry = schema(seed, changed), inquiry(seed, number, kinds)
        self._connection: sqlite3.Connection | None = None
        self._queries, self._reward = 0, None

    async def reset(self) -> str:
        await self.close()
        self._connection = self._filled()
        self._queries, self._reward = 0, None
        return "The database is open."

    async def step(self, action: str) -> Step:
        observation = self._answer(action)
        return Step(
            action=action, observation=observation, outcome=Outcome(self._reward or 0.0, self._reward is not None)
        )

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def answer(self) -> float:
        """The right answer."""
        database = self._filled()
        try:
            (value,) = database.execute(self._schema.sql(self._inquiry)).fetchone()
        finally:
            database.close()
        return float(value or 0)

    def _filled(self) -> sqlite3.Connection:
        """A new database with the rows of this task, read only."""
        database = sqlite3.connect(":memory:", check_same_thread=False)
        chance = generator("rows", self._seed, self._number)
        database.execute("CREATE TABLE dictionary (kind TEXT, about TEXT, note TEXT)")
        database.executemany("INSERT INTO dictionary VALUES (?, ?, ?)", self._schema.notes())
        for thing, (measure, attributes) in THINGS.items():
            table, names = self._schema.tables[thing], self._schema.columns
            columns = ", ".join(names[thing, name] for name in (measure, *attributes))
            database.execute(f"CREATE TABLE {table} ({columns})")
            rows = list[tuple[int | str, ...]]()
            for _ in range(ROWS):
                codes = [self._schema.codes[thing, a, chance.choice(words)] for a, words in attributes.items()]
                rows.append((chance.randint(1, 400), *codes))
            database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)
        database.commit()
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
        database.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 4_000)
        database.set_authorizer(self._authorize)
        return database

    def _authorize(self, action: int, one: str | None, other: str | None, *_: str | None) -> int:
        tables = ("dictionary", *self._schema.tables.values())
        allowed = (
            action == sqlite3.SQLITE_SELECT
            or (action == sqlite3.SQLITE_READ and one in tables)
            or (action == sqlite3.SQLITE_FUNCTION and other in _FUNCTIONS.split())
        )
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _answer(self, line: str) -> str:
        """The observation after an action."""
        action = parse_action(line)
        if self._reward is not None:
            return "The question was answered."
        if action and action.name == "query":
            return self._result(action.argument)
        if action and action.name == "answer":
            return self._judge(action.argument)
        return "Invalid action. Write query[SQL] or answer[value]."

    def _judge(self, answer: str) -> str:
        expected = self.answer()
        try:
            right = math.isclose(float(answer.strip("'\" ")), expected, abs_tol=1e-6)
        except ValueError:
            right = False
        self._reward = points(self._queries) / MAX_POINTS if right else 0.0
        queries = f"{self._queries} {'query' if self._queries == 1 else 'queries'}"
        return f"Right, with {queries}." if right else f"Wrong: expected {expected:g}, got {answer}."

    def _result(self, sql: str) -> str:
        assert self._connection is not None, "call reset before the first step"
        self._queries += 1
        ticks = iter(range(_WORK // 1000))
        self._connection.set_progress_handler(lambda: next(ticks, None) is None, 1000)
        try:
            cursor = self._connection.execute(sql)
            rows = list(islice(cursor, SHOWN + 1))
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError) as error:  # half a surrogate pair is not UTF-8
            return f"Error: {error}."
        columns = [column[0] for column in cursor.description or ()]
        lines = [" | ".join(map(_cell, row)) for row in (columns, *rows[:SHOWN])]
        more = f"only the first {SHOWN} rows are shown" if len(rows) > SHOWN else count(len(rows), "row")
        return "\n".join([*lines, f"({more})"])


def _cell(value: object) -> str:
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= CELL else f"{text[:CELL]}…"
