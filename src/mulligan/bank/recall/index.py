"""The lessons of one agent in memory, ready to be ranked. The store's delta keeps the index up to date.

Each lesson has a slot in numpy columns that grow by doubling. A change of its words gives it a new slot, anything else
is written in place; slots of lessons that are no longer active are dead until there are enough of them to be cleared.
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
from mulligan.core.lesson_store import LessonChanges
from mulligan.core.lessons import Account, Delta, Row
from mulligan.core.ranking import Array
from mulligan.core.records import Lesson

MOST_BYTES = 512 << 20
LARGE = 2000
"""Rows from which a delta is taken in on a thread, so that the event loop goes on."""

_PLAIN = {
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
_OF_ROWS = {name: attrgetter(name) for name in ("n", "success", "uses", "created", "confidence", "fact", "pair")}
"""The columns that hold what a row says as it is."""
_OF_COLUMNS = [field.name for field in fields(Columns) if field.name in _PLAIN]
"""Those that a ranking sees."""


class Index:
    """`n`: how many lessons are active. `embedded`: whether one of them has a vector of the embedder."""

    def __init__(self, embedder: str | None = None, *, queries: bool = False, bm25: BM25 = BM25()) -> None:
        self.embedder, self.queries, self._bm25 = embedder, queries, bm25
        self.tip, self.generation = 0, -1
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> None:
        self._size = 0
        self._columns: dict[str, Array] = {name: np.zeros(0, kind) for name, kind in _PLAIN.items()}
        self._vectors: dict[str, tuple[Array, Array]] = {}
        self._ids: list[str] = []
        self._experience: list[str] = []
        self._terms: list[int] = []
        self._projects: dict[str, int] = {}
        self._kinds: dict[str, int] = {}
        self._slots: dict[int, int] = {}
        self._by_id: dict[str, int] = {}
        self._postings = Postings(self._bm25)
        self._now: Columns | None = None
        self._until = np.inf
        self._estimated: tuple[int, NullDistribution] | None = None

    @property
    def n(self) -> int:
        return len(self._slots)

    @property
    def embedded(self) -> bool:
        with self._lock:
            alive = self._columns["alive"]
            return any(bool((there & alive).any()) for _, there in self._vectors.values())

    @property
    def bytes(self) -> int:
        """About what it holds in memory: arrays, and 250 bytes a lesson for its names."""
        arrays = [*self._columns.values(), *(part for pair in self._vectors.values() for part in pair)]
        return sum(array.nbytes for array in arrays) + self._postings.bytes + 250 * len(self._ids)

    # --- taking in ----------------------------------------------------------------------------------------------

    async def refresh(self, store: LessonChanges, agent_id: str | None) -> None:
        """Applies what changed in the store since the last time."""
        while True:
            since = self.tip
            delta = await store.delta(agent_id, self.embedder, since, queries=self.queries)
            if since and delta.generation != self.generation:
                since, delta = 0, await store.delta(agent_id, self.embedder, 0, queries=self.queries)
            delta = await _renewed(store, agent_id, delta)
            if len(delta.rows) < LARGE:
                taken = self.apply(delta, since)
            else:
                taken = await asyncio.to_thread(self.apply, delta, since)
            if taken:
                return

    def apply(self, delta: Delta, since: int = 0) -> bool:
        """Applies the delta; False if a newer one was applied meanwhile, so that the caller has to ask again.

        A delta of another generation starts anew.
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
            self._take([row for row in delta.rows if row.state == "active"])
            if self._now is None:
                self._tidy()
            return True

    def leave_out(self, ids: Set[str]) -> None:
        """Forgets these lessons until they change: they are gone, or cannot be read."""
        with self._lock:
            for n in [n for n, slot in self._slots.items() if self._ids[slot] in ids]:
                self._kill(n)

    def _take(self, rows: Sequence[Row]) -> None:
        added: list[Row] = []
        for row in rows:
            slot = self._slots.get(row.n)
            if slot is not None and self._terms[slot] == hash(row.terms):
                self._place([row], slot)
                self._experience[slot] = row.experience
            else:
                self._kill(row.n)
                added.append(row)
        if not added:
            return
        self._now = None
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
        self._place(added, first)

    def _place(self, rows: Sequence[Row], first: int) -> None:
        """Writes what stands beside the words of these rows into the slots from `first` on."""
        put, last = self._columns, first + len(rows)
        for name, value in _OF_ROWS.items():
            put[name][first:last] = list(map(value, rows))
        put["worth"][first:last] = [np.nan if row.worth is None else row.worth for row in rows]
        expires = np.asarray([np.inf if row.expires is None else row.expires for row in rows])
        if (expires != put["expires"][first:last]).any():
            self._now = None
        put["expires"][first:last] = expires
        put["layer"][first:last] = [LAYER_NUMBERS.get(row.layer, 0) for row in rows]
        known = self._projects
        put["project"][first:last] = [known.setdefault(row.project, len(known)) for row in rows]
        kinds = self._kinds
        put["kind"][first:last] = [kinds.setdefault(row.kind, len(kinds)) for row in rows]
        self._place_vectors("lesson", [row.vector for row in rows], first)
        if self.queries:
            self._place_vectors("query", [row.query_vector for row in rows], first)

    def _place_vectors(self, part: str, blobs: list[bytes | None], first: int) -> None:
        """float32 vectors as bytes; None, or bytes of another length than the others have, is no vector."""
        if part not in self._vectors:
            wide = next((len(blob) // 4 for blob in blobs if blob), 0)
            if not wide:
                return
            self._now, room = None, len(self._columns["n"])
            self._vectors[part] = np.zeros((room, wide), np.float32), np.zeros(room, bool)
        vectors, there = self._vectors[part]
        size = vectors.shape[1] * 4
        none = bytes(size)
        for start in range(0, len(blobs), LARGE):  # in parts, so that no second copy of the bank is made
            good = [blob if blob is not None and len(blob) == size else none for blob in blobs[start : start + LARGE]]
            at = slice(first + start, first + start + len(good))
            taken = np.frombuffer(b"".join(good), "<f4").reshape(len(good), -1)
            usable = _usable_rows(taken)
            vectors[at] = np.where(usable[:, None], taken, 0.0)
            there[at] = usable & [blob is not none for blob in good]

    def _kill(self, n: int) -> None:
        slot = self._slots.pop(n, None)
        if slot is not None:
            self._now = None
            self._columns["alive"][slot] = False
            self._by_id.pop(self._ids[slot], None)

    def _grow(self, size: int) -> None:
        room = len(self._columns["n"])
        if size <= room:
            return
        room = max(size, room + room // 4 if room > 10_000 else 2 * room, 64)
        self._columns = {name: _longer(column, room) for name, column in self._columns.items()}
        self._vectors = {part: (_longer(v, room), _longer(t, room)) for part, (v, t) in self._vectors.items()}

    def _tidy(self) -> None:
        """Clears dead slots when a quarter is dead."""
        dead = self._size - self.n
        if dead < 64 or dead * 4 < self._size:
            return
        keep = np.flatnonzero(self._columns["alive"][: self._size])
        keep = keep[np.argsort(self._columns["n"][keep])]
        moved = np.full(self._size, -1, np.int64)
        moved[keep] = np.arange(len(keep))
        self._postings.compact(moved)
        kept: list[int] = keep.tolist()
        self._columns = {name: column[keep] for name, column in self._columns.items()}
        self._vectors = {part: (v[keep], t[keep]) for part, (v, t) in self._vectors.items()}
        self._ids = [self._ids[slot] for slot in kept]
        self._experience = [self._experience[slot] for slot in kept]
        self._terms = [self._terms[slot] for slot in kept]
        self._size = len(keep)
        self._slots = {n: slot for slot, n in enumerate(self._columns["n"].tolist())}
        self._by_id = {id: slot for slot, id in enumerate(self._ids)}
        self._now = None

    # --- handing out --------------------------------------------------------------------------------------------

    def candidates(self, query: str, vector: Any = None, now: float = 0.0) -> Ranking:
        """The active lessons as this query sees them. vector: the query's, unit; None: by words alone."""
        columns = self._columns_now()
        return Ranking(columns, _query(columns, query, vector, now))

    def query_pairs(self, ids: Iterable[str], shape: str, vector: Any, now: float) -> Ranking:
        """As `candidates`, of these query pairs alone, which no other method gives out."""
        with self._lock:
            columns = self._snapshot()
            slots = np.asarray([slot for id in ids if (slot := self._by_id.get(id)) is not None], np.int64)
            chosen = np.zeros(self._size, np.bool_)
            chosen[slots] = True
            postings = self._postings.held(self._columns["lengths"][: self._size], chosen)
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
        """As `candidates`, in three: the facts of this project, everything else, and the metacognitive lessons.

        Without facts of another project, unless `everywhere`. A fact of no known project is of none other. kind: only
        lessons of this kind of task. layers: whether metacognitive lessons stand apart.
        """
        columns = self._columns_now()
        asked = _query(columns, query, vector, now)
        if kind is not None:
            columns = _only(columns, columns.of_kind(kind))
        fact, of = columns.fact[columns.slots], columns.project[columns.slots]
        habit = (columns.layer[columns.slots] == LAYER_NUMBERS["metacognitive"]) & ~fact & layers
        habits = Ranking(_only(columns, habit), asked)
        if not (fact | habit).any():
            return Ranking(_only(columns, fact), asked), Ranking(columns, asked), habits
        here, nowhere = self._projects.get(project, -1), self._projects.get("", -1)
        own = fact & (of == here)
        others = ~own if everywhere else ~fact | ((of == nowhere) & ~own)
        return Ranking(_only(columns, own), asked), Ranking(_only(columns, others & ~habit), asked), habits

    def _columns_now(self) -> Columns:
        with self._lock:
            return self._snapshot()

    def nearest(self, id: str, most: int) -> tuple[Ranking, Array] | None:
        """The active lessons nearest to this one, itself left out, and their cosines (-1 where there is no vector).

        None when it is not there or has no vector.
        """
        with self._lock:
            columns, slot = self._snapshot(), self._by_id.get(id)
            if slot is None or "lesson" not in columns.vectors or not columns.vectors["lesson"][1][slot]:
                return None
            vectors, there = columns.vectors["lesson"]
            cosines = cosines_of(vectors, vectors[slot])
            cosines[~there] = -1.0
            cosines = cosines[columns.slots]
            cosines[columns.slots == slot] = -2.0
            best = np.argsort(-cosines, kind="stable")[: min(most, len(cosines) - 1)]
            only = replace(columns, slots=columns.slots[best], whole=False)
            return Ranking(only, _query(only, "", vectors[slot], 0.0)), cosines[best]

    def _snapshot(self) -> Columns:
        """The columns as they are now, without query pairs; made anew after a change, and when a lesson expires."""
        now = time.time()
        if self._now is not None and now < self._until:
            return self._now
        size, put = self._size, self._columns
        expires = put["expires"][:size]
        counts = put["alive"][:size] & ~put["pair"][:size] & (expires > now)
        self._until = float(expires[counts].min(initial=np.inf))
        slots = np.flatnonzero(counts)
        numbers = put["n"][slots]
        ordered = bool((numbers[1:] > numbers[:-1]).all())
        if not ordered:
            slots = slots[np.argsort(numbers)]
        alive = None if len(slots) == size else counts
        columns = Columns(
            ids=self._ids,
            experience=self._experience,
            slots=slots,
            whole=ordered and len(slots) == size,
            kinds=self._kinds,
            vectors={part: (v[:size], t[:size]) for part, (v, t) in self._vectors.items()},
            postings=self._postings.held(put["lengths"][:size], alive),
            **cast(Any, {name: put[name][:size] for name in _OF_COLUMNS}),
        )
        unrelated = {"words": SHIPPED["words"], "meaning": self._null_distribution(columns)}
        if (foreign := shipped(self.embedder, FOREIGN)) is not None:
            unrelated["foreign"] = foreign
        self._now = replace(columns, unrelated=unrelated)
        return self._now

    def _null_distribution(self, columns: Columns) -> NullDistribution:
        """How the best of unrelated lessons scores by meaning. For an embedder that none is shipped for, estimated anew
        when the bank has doubled, from its older lessons, so that every process comes to the same."""
        if (known := shipped(self.embedder)) is not None:
            return known
        count = 1 << (len(columns.slots).bit_length() - 1) if len(columns.slots) else 0
        if self._estimated is None or self._estimated[0] != count:
            slots = columns.slots[:count]
            rows: list[int] = slots.tolist()
            names = [self._experience[slot] or self._ids[slot] for slot in rows]
            labels = np.asarray([hash(name) for name in names], np.int64)
            vectors = columns.vectors.get("lesson")
            own = np.zeros(0) if vectors is None else pairs(*vectors, slots, labels)
            self._estimated = count, estimated(own, count)
        return self._estimated[1]


def _query(columns: Columns, text: str, vector: Any, now: float) -> Query:
    return Query(columns, terms.weighted_terms(text), vector, now, terms.language_of(text))


def _only(columns: Columns, wanted: Array) -> Columns:
    return replace(columns, slots=columns.slots[wanted], whole=False)


async def _renewed(store: LessonChanges, agent_id: str | None, delta: Delta) -> Delta:
    """The delta, with the terms that an older version of Mulligan stored made anew."""
    stale = [row.id for row in delta.rows if row.state == "active" and terms.is_outdated(row.terms)]
    if not stale:
        return delta
    made = {one.id: terms.terms_of(search_text(one)) for one in await store.there(agent_id, stale)}
    return replace(delta, rows=[replace(row, terms=made.get(row.id, row.terms)) for row in delta.rows])


def _usable_rows(vectors: Array) -> Array:
    """Which of these vectors are not damaged; they were unit vectors when they were made."""
    with np.errstate(all="ignore"):
        return np.vecdot(vectors, vectors) < 4.0


def _usable(vector: bytes | None) -> bool:
    return vector is None or (len(vector) % 4 == 0 and bool(_usable_rows(np.frombuffer(vector, "<f4"))))


def _longer(column: Array, room: int) -> Array:
    longer = np.zeros((room, *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer


class Indexes:
    """The indexes of the agents asked for last, `most_bytes` of them; the newest stays however large it is."""

    def __init__(
        self,
        store: LessonChanges,
        embedder: str | None = None,
        *,
        queries: bool = False,
        most_bytes: int = MOST_BYTES,
        bm25: BM25 = BM25(),
    ) -> None:
        self._store, self._embedder, self._queries, self._bm25 = store, embedder, queries, bm25
        self._most = most_bytes
        self._by_agent: OrderedDict[str | None, Index] = OrderedDict()
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str | None, asyncio.Lock]] = WeakKeyDictionary()

    async def of(self, agent_id: str | None) -> Index:
        """The index of this agent, of all agents for None, with all that is in the store now."""
        index = self._by_agent.setdefault(agent_id, Index(self._embedder, queries=self._queries, bm25=self._bm25))
        self._by_agent.move_to_end(agent_id)
        locks = self._locks.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(agent_id, asyncio.Lock()):
            await index.refresh(self._store, agent_id)
        held = sum(one.bytes for one in self._by_agent.values())
        while held > self._most and len(self._by_agent) > 1:
            oldest, dropped = self._by_agent.popitem(last=False)
            held -= dropped.bytes
            if locks.get(oldest) and not locks[oldest].locked():
                del locks[oldest]
        return index

    async def unsearchable(self, embedder: str | None) -> list[tuple[str, str]]:
        """Agent and id of the lessons whose words or vectors cannot be used, of all agents."""
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

    def solved_like(self, kept: Sequence[Account], task: str, most: int, least: float = 0.0) -> Sequence[Account]:
        """Of these accounts, newest first, the solved ones whose task has most of this one's words.

        least: the relevance, 0 to 1, below which none is given.
        """
        solved = {one.id: one for one in reversed(kept) if one.success}
        tasks = [Lesson(id, "", one.text.partition("\n\nTrial ")[0], "success") for id, one in solved.items()]
        near = self.once(tasks).candidates(task).by_words()
        order = sorted(range(len(tasks)), key=lambda n: (-float(near[n]), -n))
        return [solved[tasks[n].id] for n in order[:most] if near[n] >= least]

    def once(self, lessons: Sequence[Lesson]) -> Index:
        """An index of these lessons as they are given, without vectors, such as those of a moment in the past."""
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
        index = Index(None, bm25=self._bm25)
        index.apply(Delta(len(rows), 0, rows))
        return index
