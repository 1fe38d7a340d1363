"""Indexes hold the lessons of an agent in memory, ready to be ranked. Deltas of the store keep them up to date.

Each lesson has a slot in numpy columns, which grow by doubling. If its words change, it gets a new slot; other changes
are written in place. The slots of lessons that are no longer active are dead, and are cleared once there are many.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence, Set
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from mulligan.bank.recall import terms
from mulligan.bank.recall.candidates import (
    BM25,
    FOREIGN,
    LAYER_NUMBERS,
    SHIPPED,
    Columns,
    NullDistribution,
    Postings,
    Query,
    Ranking,
    cosines_of,
    estimated,
    pairs,
    shipped,
)
from mulligan.bank.recall.terms import search_text
from mulligan.core.lesson_history import Account, Delta, Row
from mulligan.core.lesson_store import LessonChanges
from mulligan.core.ranking import Array
from mulligan.core.records import Lesson

MAX_BYTES = 512 << 20
"""How much memory all indexes may take by default."""
LARGE = 2000
"""A delta with this many rows is applied on a thread, so that the event loop is not blocked."""

_COLUMN_TYPES = {
    "n": np.int64,
    "alive": np.bool_,
    "success": np.bool_,
    "uses": np.int32,
    "created": np.float64,
    "confidence": np.float32,
    "worth": np.float32,
    "lengths": np.float32,
    "fact": np.bool_,
    "pair": np.bool_,
    "project": np.int32,
    "layer": np.int8,
    "kind": np.int32,
    "language": np.int8,
    "expires": np.float64,
}
_COPIED = {name: attrgetter(name) for name in ("n", "success", "uses", "created", "confidence", "fact", "pair")}
"""The columns that hold the value of a row as it is."""
_RANKED = [field.name for field in fields(Columns) if field.name in _COLUMN_TYPES]
"""The columns that a ranking sees."""


class Index:
    """The index of one agent's lessons. It can be used from several threads.

    Args:
        embedder: The id of the embedder whose vectors are compared; None compares words alone.
        queries: Whether the vectors of the tasks that lessons come from are held, too.
        bm25: The parameters of the comparison of words.
    """

    def __init__(self, embedder: str | None = None, *, queries: bool = False, bm25: BM25 = BM25()) -> None:
        self.embedder, self.queries, self._bm25 = embedder, queries, bm25
        self.tip, self.generation = 0, -1
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> None:
        self._size = 0
        self._columns: dict[str, Array] = {name: np.zeros(0, kind) for name, kind in _COLUMN_TYPES.items()}
        self._vectors: dict[str, tuple[Array, Array]] = {}
        self._ids: list[str] = []
        self._experience: list[str] = []
        self._terms: list[int] = []
        self._projects: dict[str, int] = {}
        self._kinds: dict[str, int] = {}
        self._slots: dict[int, int] = {}
        self._by_id: dict[str, int] = {}
        self._postings = Postings(self._bm25)
        self._snapshot: Columns | None = None
        self._valid_until = np.inf
        self._estimated: tuple[int, NullDistribution] | None = None

    @property
    def n(self) -> int:
        """How many lessons are active."""
        return len(self._slots)

    @property
    def embedded(self) -> bool:
        """Whether an active lesson has a vector of the embedder."""
        with self._lock:
            alive = self._columns["alive"]
            return any(bool((there & alive).any()) for _, there in self._vectors.values())

    @property
    def bytes(self) -> int:
        """Approximate size in memory: the arrays, and 250 bytes for the texts of each lesson."""
        arrays = [*self._columns.values(), *(part for pair in self._vectors.values() for part in pair)]
        return sum(array.nbytes for array in arrays) + self._postings.bytes + 250 * len(self._ids)

    # --- updating -----------------------------------------------------------------------------------------------

    async def refresh(self, store: LessonChanges, agent_id: str | None) -> None:
        """Applies the changes of the store since the last time."""
        while True:
            since = self.tip
            delta = await store.delta(agent_id, self.embedder, since, queries=self.queries)
            if since and delta.generation != self.generation:
                since, delta = 0, await store.delta(agent_id, self.embedder, 0, queries=self.queries)
            delta = await _with_current_terms(store, agent_id, delta)
            if len(delta.rows) < LARGE:
                applied = self.apply(delta, since)
            else:
                applied = await asyncio.to_thread(self.apply, delta, since)
            if applied:
                return

    def apply(self, delta: Delta, since: int = 0) -> bool:
        """Applies a delta. Returns False if a newer one was applied meanwhile: then fetch a delta again.

        A delta of another generation replaces all content.
        """
        with self._lock:
            if delta.generation != self.generation:
                if since:
                    return False
                self._clear()
            elif since != self.tip and (delta.tip < self.tip or since > self.tip):
                return False
            self.tip, self.generation = delta.tip, delta.generation
            for n in (*delta.purged, *(row.n for row in delta.rows if row.state != "active")):
                self._kill(n)
            self._add([row for row in delta.rows if row.state == "active"])
            if self._snapshot is None:
                self._clear_dead_slots()
            return True

    def leave_out(self, ids: Set[str]) -> None:
        """Removes lessons that no longer exist or cannot be read, until they change."""
        with self._lock:
            for n in [n for n, slot in self._slots.items() if self._ids[slot] in ids]:
                self._kill(n)

    def _add(self, rows: Sequence[Row]) -> None:
        """Updates the lessons whose words are the same, and adds the others in new slots."""
        added: list[Row] = []
        for row in rows:
            slot = self._slots.get(row.n)
            if slot is not None and self._terms[slot] == hash(row.terms):
                self._write([row], slot)
                self._experience[slot] = row.experience
            else:
                self._kill(row.n)
                added.append(row)
        if not added:
            return
        self._snapshot = None
        first, self._size = self._size, self._size + len(added)
        self._grow(self._size)
        self._ids += [row.id for row in added]
        self._experience += [row.experience for row in added]
        self._terms += [hash(row.terms) for row in added]
        slots = range(first, self._size)
        self._slots.update(zip((row.n for row in added), slots, strict=True))
        self._by_id.update(zip((row.id for row in added), slots, strict=True))
        self._columns["alive"][first : self._size] = True
        hashes, counts, sizes = terms.read_blobs([row.terms for row in added])
        self._columns["language"][first : self._size] = terms.languages_of([row.terms for row in added])
        owner = np.repeat(np.arange(len(added)), sizes)
        self._columns["lengths"][first : self._size] = np.bincount(owner, counts, len(added))
        self._postings.add(hashes, owner + first, counts)
        self._write(added, first)

    def _write(self, rows: Sequence[Row], first: int) -> None:
        """Writes all but the words of these rows into the slots from `first` on."""
        columns, slots = self._columns, slice(first, first + len(rows))
        for name, value in _COPIED.items():
            columns[name][slots] = list(map(value, rows))
        columns["worth"][slots] = [np.nan if row.worth is None else row.worth for row in rows]
        expires = np.asarray([np.inf if row.expires is None else row.expires for row in rows])
        if (expires != columns["expires"][slots]).any():
            self._snapshot = None
        columns["expires"][slots] = expires
        columns["layer"][slots] = [LAYER_NUMBERS.get(row.layer, 0) for row in rows]
        projects, kinds = self._projects, self._kinds
        columns["project"][slots] = [projects.setdefault(row.project, len(projects)) for row in rows]
        columns["kind"][slots] = [kinds.setdefault(row.kind, len(kinds)) for row in rows]
        self._write_vectors("lesson", [row.vector for row in rows], first)
        if self.queries:
            self._write_vectors("query", [row.query_vector for row in rows], first)

    def _write_vectors(self, part: str, blobs: list[bytes | None], first: int) -> None:
        """Writes vectors, given as the bytes of float32. Bytes of another length than the first count as no vector."""
        if part not in self._vectors:
            dimensions = next((len(blob) // 4 for blob in blobs if blob), 0)
            if not dimensions:
                return
            self._snapshot, room = None, len(self._columns["n"])
            self._vectors[part] = np.zeros((room, dimensions), np.float32), np.zeros(room, bool)
        vectors, there = self._vectors[part]
        size = vectors.shape[1] * 4
        missing = bytes(size)
        for start in range(0, len(blobs), LARGE):  # in parts, so that there is never a second copy of the bank
            part_blobs = blobs[start : start + LARGE]
            filled = [blob if blob is not None and len(blob) == size else missing for blob in part_blobs]
            slots = slice(first + start, first + start + len(filled))
            rows = np.frombuffer(b"".join(filled), "<f4").reshape(len(filled), -1)
            usable = _usable_rows(rows)
            vectors[slots] = np.where(usable[:, None], rows, 0.0)
            there[slots] = usable & [blob is not missing for blob in filled]

    def _kill(self, n: int) -> None:
        """Marks the slot of a lesson as dead, if it has one."""
        slot = self._slots.pop(n, None)
        if slot is not None:
            self._snapshot = None
            self._columns["alive"][slot] = False
            self._by_id.pop(self._ids[slot], None)

    def _grow(self, size: int) -> None:
        room = len(self._columns["n"])
        if size <= room:
            return
        room = max(size, room + room // 4 if room > 10_000 else 2 * room, 64)
        self._columns = {name: _longer(column, room) for name, column in self._columns.items()}
        self._vectors = {
            part: (_longer(vectors, room), _longer(there, room)) for part, (vectors, there) in self._vectors.items()
        }

    def _clear_dead_slots(self) -> None:
        """Removes the dead slots if they are at least a quarter of all."""
        dead = self._size - self.n
        if dead < 64 or dead * 4 < self._size:
            return
        alive = np.flatnonzero(self._columns["alive"][: self._size])
        alive = alive[np.argsort(self._columns["n"][alive])]
        moved = np.full(self._size, -1, np.int64)
        moved[alive] = np.arange(len(alive))
        self._postings.compact(moved)
        slots: list[int] = alive.tolist()
        self._columns = {name: column[alive] for name, column in self._columns.items()}
        self._vectors = {part: (vectors[alive], there[alive]) for part, (vectors, there) in self._vectors.items()}
        self._ids = [self._ids[slot] for slot in slots]
        self._experience = [self._experience[slot] for slot in slots]
        self._terms = [self._terms[slot] for slot in slots]
        self._size = len(slots)
        self._slots = {n: slot for slot, n in enumerate(self._columns["n"].tolist())}
        self._by_id = {id: slot for slot, id in enumerate(self._ids)}
        self._snapshot = None

    # --- ranking ------------------------------------------------------------------------------------------------

    def candidates(self, query: str, vector: Any = None, now: float = 0.0) -> Ranking:
        """The active lessons, ranked for this query. vector: its unit vector; None compares words alone."""
        columns = self._columns_now()
        return Ranking(columns, _query(columns, query, vector, now))

    def query_pairs(self, ids: Iterable[str], shape: str, vector: Any, now: float) -> Ranking:
        """As `candidates`, for these query pairs alone. No other method returns query pairs."""
        with self._lock:
            columns = self._current_columns()
            slots = np.asarray([slot for id in ids if (slot := self._by_id.get(id)) is not None], np.int64)
            chosen = np.zeros(self._size, np.bool_)
            chosen[slots] = True
            postings = self._postings.view(self._columns["lengths"][: self._size], chosen)
        columns = replace(columns, slots=slots, whole=False, postings=postings)
        return Ranking(columns, _query(columns, shape, vector, now))

    def by_nature(
        self,
        query: str,
        vector: Any,
        now: float,
        project: str,
        everywhere: bool = False,
        *,
        kind: str | None = None,
        layers: bool = True,
    ) -> tuple[Ranking, Ranking, Ranking]:
        """As `candidates`, in three parts: the facts of this project, all other lessons, and the metacognitive ones.

        Args:
            vector: The unit vector of the query; None compares words alone.
            everywhere: Whether facts of other projects are included. Facts without a project always are.
            kind: Includes only lessons for this kind of task.
            layers: Whether metacognitive lessons are a part of their own.
        """
        columns = self._columns_now()
        shared_query = _query(columns, query, vector, now)
        if kind is not None:
            columns = _only(columns, columns.of_kind(kind))
        fact, lesson_project = columns.fact[columns.slots], columns.project[columns.slots]
        habit = (columns.layer[columns.slots] == LAYER_NUMBERS["metacognitive"]) & ~fact & layers
        habits = Ranking(_only(columns, habit), shared_query)
        if not (fact | habit).any():
            return Ranking(_only(columns, fact), shared_query), Ranking(columns, shared_query), habits
        current, unknown = self._projects.get(project, -1), self._projects.get("", -1)
        own = fact & (lesson_project == current)
        others = ~own if everywhere else ~fact | ((lesson_project == unknown) & ~own)
        others_ranking = Ranking(_only(columns, others & ~habit), shared_query)
        return Ranking(_only(columns, own), shared_query), others_ranking, habits

    def _columns_now(self) -> Columns:
        with self._lock:
            return self._current_columns()

    def nearest(self, id: str, most: int) -> tuple[Ranking, Array] | None:
        """The other active lessons that are nearest to this one, with their cosines (-1 if they have no vector).

        None if there is no such lesson, or it has no vector.
        """
        with self._lock:
            columns, slot = self._current_columns(), self._by_id.get(id)
            if slot is None or "lesson" not in columns.vectors or not columns.vectors["lesson"][1][slot]:
                return None
            vectors, there = columns.vectors["lesson"]
            cosines = cosines_of(vectors, vectors[slot])
            cosines[~there] = -1.0
            cosines = cosines[columns.slots]
            cosines[columns.slots == slot] = -2.0
            best = np.argsort(-cosines, kind="stable")[: min(most, len(cosines) - 1)]
            columns = replace(columns, slots=columns.slots[best], whole=False)
            return Ranking(columns, _query(columns, "", vectors[slot], 0.0)), cosines[best]

    def _current_columns(self) -> Columns:
        """The columns as they are now, without query pairs. Call it with the lock held.

        They are built again after a change and when a lesson expires.
        """
        now = time.time()
        if self._snapshot is not None and now < self._valid_until:
            return self._snapshot
        size, stored = self._size, self._columns
        expires = stored["expires"][:size]
        shown = stored["alive"][:size] & ~stored["pair"][:size] & (expires > now)
        self._valid_until = float(expires[shown].min(initial=np.inf))
        slots = np.flatnonzero(shown)
        numbers = stored["n"][slots]
        ordered = bool((numbers[1:] > numbers[:-1]).all())
        if not ordered:
            slots = slots[np.argsort(numbers)]
        alive = None if len(slots) == size else shown
        columns = Columns(
            ids=self._ids,
            experience=self._experience,
            slots=slots,
            whole=ordered and len(slots) == size,
            kinds=self._kinds,
            vectors={part: (vectors[:size], there[:size]) for part, (vectors, there) in self._vectors.items()},
            postings=self._postings.view(stored["lengths"][:size], alive),
            **cast(Any, {name: stored[name][:size] for name in _RANKED}),
        )
        unrelated = {"words": SHIPPED["words"], "meaning": self._null_distribution(columns)}
        if (foreign := shipped(self.embedder, FOREIGN)) is not None:
            unrelated["foreign"] = foreign
        self._snapshot = replace(columns, unrelated=unrelated)
        return self._snapshot

    def _null_distribution(self, columns: Columns) -> NullDistribution:
        """How the best of unrelated lessons scores by meaning.

        For an unknown embedder it is estimated again whenever the bank has doubled. Only the older half or more of the
        lessons counts, so that every process gets the same result.
        """
        if (known := shipped(self.embedder)) is not None:
            return known
        count = 1 << (len(columns.slots).bit_length() - 1) if len(columns.slots) else 0
        if self._estimated is None or self._estimated[0] != count:
            slots = columns.slots[:count]
            rows: list[int] = slots.tolist()
            names = [self._experience[slot] or self._ids[slot] for slot in rows]
            labels = np.asarray([hash(name) for name in names], np.int64)
            vectors = columns.vectors.get("lesson")
            cosines = np.zeros(0) if vectors is None else pairs(*vectors, slots, labels)
            self._estimated = count, estimated(cosines, count)
        return self._estimated[1]


def _query(columns: Columns, text: str, vector: Any, now: float) -> Query:
    return Query(columns, terms.weighted_terms(text), vector, now, terms.language_of(text))


def _only(columns: Columns, wanted: Array) -> Columns:
    return replace(columns, slots=columns.slots[wanted], whole=False)


async def _with_current_terms(store: LessonChanges, agent_id: str | None, delta: Delta) -> Delta:
    """The delta with the terms of this version in place of those that an earlier version of Mulligan stored."""
    outdated = [row.id for row in delta.rows if row.state == "active" and terms.is_outdated(row.terms)]
    if not outdated:
        return delta
    lessons = await store.there(agent_id, outdated)
    renewed = {lesson.id: terms.terms_of(search_text(lesson)) for lesson in lessons}
    return replace(delta, rows=[replace(row, terms=renewed.get(row.id, row.terms)) for row in delta.rows])


def _usable_rows(vectors: Array) -> Array:
    """Which of these vectors are undamaged. All were unit vectors once."""
    with np.errstate(all="ignore"):
        return np.vecdot(vectors, vectors) < 4.0


def _usable(vector: bytes | None) -> bool:
    return vector is None or (len(vector) % 4 == 0 and bool(_usable_rows(np.frombuffer(vector, "<f4"))))


def _longer(column: Array, room: int) -> Array:
    longer = np.zeros((room, *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer


class Indexes:
    """The indexes of the agents that were used last, up to `most_bytes`. The last one stays, however large it is."""

    def __init__(
        self,
        store: LessonChanges,
        embedder: str | None = None,
        *,
        queries: bool = False,
        most_bytes: int = MAX_BYTES,
    ) -> None:
        self._store, self._embedder, self._queries = store, embedder, queries
        self._max_bytes = most_bytes
        self._by_agent: OrderedDict[str | None, Index] = OrderedDict()
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str | None, asyncio.Lock]] = WeakKeyDictionary()

    async def of(self, agent_id: str | None) -> Index:
        """The up-to-date index of this agent; None: of all agents."""
        index = self._by_agent.setdefault(agent_id, Index(self._embedder, queries=self._queries))
        self._by_agent.move_to_end(agent_id)
        locks = self._locks.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(agent_id, asyncio.Lock()):
            await index.refresh(self._store, agent_id)
        total = sum(each.bytes for each in self._by_agent.values())
        while total > self._max_bytes and len(self._by_agent) > 1:
            oldest, dropped = self._by_agent.popitem(last=False)
            total -= dropped.bytes
            if locks.get(oldest) and not locks[oldest].locked():
                del locks[oldest]
        return index

    async def unsearchable(self, embedder: str | None) -> list[tuple[str, str]]:
        """The agent and the id of each lesson, of all agents, whose terms or vectors cannot be used."""
        rows = (await self._store.delta(None, embedder, queries=True)).rows
        return [
            (row.agent_id, row.id)
            for row in rows
            if row.state != "superseded"
            and not (
                (terms.is_current(row.terms) or terms.is_outdated(row.terms))
                and _usable(row.vector)
                and _usable(row.query_vector)
            )
        ]

    def solved_like(self, accounts: Sequence[Account], task: str, most: int, least: float = 0.0) -> Sequence[Account]:
        """The solved ones of these accounts whose tasks share the most words with this task, nearest first.

        accounts: newest first, which decides ties. least: the relevance, 0 to 1, that they need.
        """
        solved = {account.id: account for account in reversed(accounts) if account.success}
        tasks = [Lesson(id, "", one.text.partition("\n\nTrial ")[0], "success") for id, one in solved.items()]
        relevance = self.once(tasks).candidates(task).by_words()
        order = sorted(range(len(tasks)), key=lambda n: (-float(relevance[n]), -n))
        return [solved[tasks[n].id] for n in order[:most] if relevance[n] >= least]

    def once(self, lessons: Sequence[Lesson]) -> Index:
        """An index of these lessons alone, without vectors, for example of lessons at a moment in the past."""
        rows = [
            Row(
                n,
                lesson.id,
                lesson.agent_id,
                lesson.experience,
                "active",
                lesson.outcome == "success",
                lesson.confidence,
                lesson.created,
                lesson.uses,
                lesson.last_used,
                terms.terms_of(search_text(lesson)),
                None,
                fact=lesson.nature == "fact",
                pair=lesson.nature == "query_pair",
                project=lesson.project,
                layer=lesson.layer,
                kind=lesson.kind,
            )
            for n, lesson in enumerate(lessons, 1)
        ]
        index = Index(None)
        index.apply(Delta(len(rows), 0, rows))
        return index
