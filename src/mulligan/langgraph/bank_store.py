"""`BankStore`: the lesson bank as a LangGraph store, with lessons as items in the namespace of their agent."""

from __future__ import annotations

import json
import operator
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from textwrap import shorten
from typing import Any, TypeVar, cast
from urllib.parse import quote, unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from mulligan.pages import mask_json
from mulligan.plugins import InvalidInput, Json, Lesson, NotFound, Selection, lesson_fields
from mulligan.running import Bank, digest, portal, storable
from mulligan.serving import Service

T = TypeVar("T")

_ALWAYS = ("title", "content", "outcome", "description", "query", "tags", "kind", "context", "confidence")
_OF_FACTS = ("nature", "project", "confirmed")
"""The fields that each item has, and those that an item has which is a fact; others only where they are not empty."""
LESSONS = "lessons"
UNNAMED = "_"
LATEST = 1 << 62
"""A tip that is later than all changes."""
TITLE = 60
"""The characters of a title that is taken from the content."""
KEYS, VALUE = "langgraph_keys", "langgraph_value"
"""The entries of a lesson's context that hold the keys under which it was put, and the value as it was put, where the
lesson differs from it, such as in white space at its ends."""
PART = 10_000
"""Characters of the parts in which that value is kept."""


def label(agent_id: str) -> str:
    """Return the label of an agent in a namespace. Labels may not be empty and may not contain a full stop."""
    return (
        UNNAMED if not agent_id else "%5F" if agent_id == UNNAMED else quote(agent_id, safe=" /:@").replace(".", "%2E")
    )


class BankStore(BaseStore):
    """A LangGraph store whose items are lessons, in the namespace (agent_id, "lessons"). `label` formats the agent_id.

    An item's value has a lesson's fields: title, content, description, outcome, query, tags, kind, context and
    confidence. Without a title, the beginning of the content is the title. `put` adds a lesson, or edits the one with
    this key; the history keeps the earlier text. `get` returns each field exactly as it was put, with secrets masked.
    `delete` retires the lesson. `search` with a query is a recall, with scores; without a query, the newest lessons
    come first. The key of a lesson that was not put here is its id.

    Args:
        bank: The bank with the lessons. None: all agents' lessons in the default store, which is opened on first use.
        threshold: The minimum relevance for `search`, as for `Bank.recall`. 0: it returns all lessons, ranked.

    Raises:
        InvalidInput: A value contains something that a lesson cannot contain.
    """

    def __init__(self, bank: Bank | None = None, *, threshold: float | str = 0) -> None:
        self._threshold = threshold
        self._known: dict[str, _Keys] = {}
        self._banks = _OneBank(bank) if bank is not None else _AllBanks()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform several operations."""
        return portal.finish(self._run(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform several operations. Same as `batch`, for asynchronous code."""
        return await self._run(list(ops))

    def close(self) -> None:
        """Close what the store opened. The caller must close a bank that it passed."""
        portal.finish(self._banks.close())

    async def aclose(self) -> None:
        """Same as `close`, for asynchronous code."""
        await self._banks.close()

    async def _run(self, ops: Sequence[Op]) -> list[Result]:
        """Run a batch. Reads see the state before the batch's writes; of two writes to one key, the last counts."""
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        for put in puts.values():
            _check_put(put)
        results: list[Result] = [None if isinstance(op, PutOp) else await self._read(op) for op in ops]
        for put in puts.values():
            await self._put(put)
        return results

    async def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return await self._get(op)
            case SearchOp():
                return cast(Result, await self._search(op))
            case ListNamespacesOp():
                return cast(Result, await self._namespaces(op))
            case _:
                raise InvalidInput(f"A store has no operation {type(op).__name__}.")

    async def _get(self, op: GetOp) -> Item | None:
        bank = await self._bank(op.namespace)
        lesson = bank and await self._find(bank, op.key, ("active",))
        return Item(**await self._fields(bank, lesson, op.key)) if bank and lesson else None

    async def _put(self, op: PutOp) -> None:
        bank = await self._bank(op.namespace)
        if bank is None:
            raise InvalidInput(f'There is no namespace {op.namespace}. Lessons are in (agent_id, "{LESSONS}").')
        lesson = await self._find(bank, op.key, ("active", "retired"))
        if op.value is None:
            if lesson is not None and lesson.state == "active":
                await self._removed(bank, lesson, op.key)
            return
        value = cast(dict[str, Any], mask_json({**_fields_of(Lesson("", "", "", "success")), **_titled(op.value)}))
        if lesson is not None and len(_keys(lesson)) > 1:  # of an older version, which kept equal lessons as one
            await self._removed(bank, lesson, op.key)
            lesson = None
        if lesson is not None and _value(lesson) == value and lesson.state == "active":
            return
        keys: dict[str, Json] = {KEYS: [op.key]} if lesson is None or _keys(lesson) else {}
        fields: dict[str, Any] = {**value, "context": {**value["context"], **keys, **_whole(value)}}
        if lesson is None:
            lesson = await self._banks.do(bank.add(**fields, fold=False))
        else:
            if lesson.state == "retired":
                lesson = await self._banks.do(bank.restore(lesson.id))
            lesson = await self._banks.do(bank.edit(lesson.id, **fields))
        if lesson.state != "active":
            raise InvalidInput(
                f"Lesson {lesson.id} was stored but is {lesson.state}, so it is not recalled. To see why, run: "
                f"mulligan memory show {lesson.id[:8]}"
            )

    async def _removed(self, bank: Bank, lesson: Lesson, key: str) -> None:
        """Remove the key from the lesson; retire the lesson if it has no other key."""
        left: Json = [other for other in _keys(lesson) if other != key]
        if left:
            others = bank.edit(lesson.id, lambda now: {"context": {**now.context, KEYS: left}})
            await self._banks.do(others)
        else:
            await self._banks.do(bank.retire(lesson.id, "deleted through the LangGraph store"))

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        found: list[SearchItem] = []
        last = max(op.offset, 0) + max(op.limit, 0)
        for bank in await self._banks.under(op.namespace_prefix):
            if op.query:
                most = last if not op.filter else max(await self._count(bank), 1)
                recall = await self._banks.do(bank.recall(op.query, top_k=max(most, 1), threshold=self._threshold))
                lessons: Sequence[Lesson] = recall.lessons
            else:
                which = Selection(limit=None if op.filter else last, expired=False)
                lessons = await self._banks.do(bank.list(which))
            for lesson in lessons:
                if fits(_value(lesson), op.filter):
                    for key in _keys(lesson) or [lesson.id]:
                        found.append(SearchItem(**await self._fields(bank, lesson, key), score=lesson.score))
        if op.query:
            found.sort(key=lambda item: -(item.score or 0.0))
        return found[max(op.offset, 0) : last]

    async def _count(self, bank: Bank) -> int:
        stats = await self._banks.do(bank.stats())
        return sum(agent["lessons"].get("active", 0) for agent in stats.values())

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        there: list[tuple[str, ...]] = [(label(agent), LESSONS) for agent in await self._banks.agents()]
        wanted = [
            one for one in there if all(matches(one, (c.match_type, tuple(c.path))) for c in op.match_conditions or ())
        ]
        cut = sorted({one[: op.max_depth] for one in wanted})
        return [*cut[op.offset : op.offset + op.limit]]

    async def _bank(self, namespace: tuple[str, ...]) -> Bank | None:
        """Return the bank of a namespace; None if there is no such namespace."""
        return await self._banks.of(namespace[0]) if len(namespace) == 2 and namespace[1] == LESSONS else None

    async def _find(self, bank: Bank, key: str, states: tuple[Any, ...]) -> Lesson | None:
        """Return the lesson with this key, if it is in one of these states."""
        keys = self._known.setdefault(bank.agent_id or "", _Keys())
        return await self._at(bank, keys, key, states) or (
            await self._at(bank, keys, key, states) if await self._refreshed(bank, keys) else None
        )

    async def _at(self, bank: Bank, keys: _Keys, key: str, states: tuple[Any, ...]) -> Lesson | None:
        """Return the lesson last known under this key, if it still has the key."""
        if key not in keys.ids:
            return None
        with suppress(NotFound):
            lesson = await self._banks.do(bank.get(keys.ids[key]))
            if lesson.state in states and key in (_keys(lesson) or [lesson.id]):
                return lesson
        return None

    async def _refreshed(self, bank: Bank, keys: _Keys) -> bool:
        """Read what changed in the bank; return False if nothing did."""
        delta = await self._banks.do(bank.changes(keys.tip))
        if (delta.tip, delta.generation) == (keys.tip, keys.generation):
            return False
        if delta.generation != keys.generation:
            keys.ids.clear()
            everything = Selection(states=("retired", "active"), limit=None)
            changed = [*reversed(await self._banks.do(bank.list(everything)))]
        else:
            changed = [await self._banks.do(bank.get(row.id)) for row in delta.rows]
        keys.tip, keys.generation = delta.tip, delta.generation
        for lesson in sorted(
            changed, key=lambda lesson: lesson.state == "active"
        ):  # an active one before a retired one
            keys.take(lesson)
        return True

    async def _fields(self, bank: Bank, lesson: Lesson, key: str) -> dict[str, Any]:
        history = await self._banks.do(bank.history(lesson.id))
        changed = max((version.at for version in history if version.lesson is not None), default=lesson.created)
        return {
            "namespace": (label(lesson.agent_id), LESSONS),
            "key": key,
            "value": _value(lesson),
            "created_at": datetime.fromtimestamp(lesson.created, UTC),
            "updated_at": datetime.fromtimestamp(changed, UTC),
        }


class _Keys:
    """The lessons of one agent by key, as of a tip of its changes."""

    def __init__(self) -> None:
        self.tip, self.generation = LATEST, -1
        self.ids: dict[str, str] = {}

    def take(self, lesson: Lesson) -> None:
        for key in _keys(lesson) or [lesson.id]:
            self.ids[key] = lesson.id


def _value(lesson: Lesson) -> dict[str, Json]:
    """Return the value of an item: as it was put, unless somebody changed the lesson since."""
    fields, kept = _fields_of(lesson), cast(dict[str, Any], lesson.context.get(VALUE) or {})
    if kept.get("of") == digest(fields):
        with suppress(ValueError):
            return {**fields, **json.loads("".join(kept["parts"]))}
    return fields


def _whole(value: Mapping[str, Any]) -> Mapping[str, Json]:
    """Return the entry of the context that keeps this value, if a lesson cannot hold it as it is."""
    if (fields := _fields_of(storable(value))) == value:
        return {}
    text = json.dumps(value)
    return {VALUE: {"of": digest(fields), "parts": [text[n : n + PART] for n in range(0, len(text), PART)]}}


def _fields_of(lesson: Lesson) -> dict[str, Json]:
    """Return the fields of a lesson that can be put."""
    value = {name: getattr(lesson, name) for name in lesson_fields()}
    always = _ALWAYS + (_OF_FACTS if lesson.nature == "fact" else ())
    value = {name: one for name, one in value.items() if name in always or (one and name not in _OF_FACTS)}
    context = {name: said for name, said in lesson.context.items() if name not in (KEYS, VALUE)}
    return {**value, "tags": list(lesson.tags), "context": context}


def _titled(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the value with a title; the default is the content's first words."""
    return value if "title" in value else {**value, "title": shorten(value["content"], TITLE, placeholder=" …")}


def _keys(lesson: Lesson) -> list[str]:
    return list(lesson.context.get(KEYS) or ())


def _check_put(op: PutOp) -> None:
    """Raise `InvalidInput` for a value that a lesson cannot hold."""
    if op.value is None:
        return
    known = lesson_fields()
    unknown = [str(name) for name in op.value if name not in known]
    if unknown:
        raise InvalidInput(
            f"A lesson has no {', '.join(unknown)}. An item in this store has {', '.join(known)}; put anything "
            "else in context."
        )
    for name, value in (("content", op.value.get("content")), ("title", op.value.get("title", "no need"))):
        if not isinstance(value, str) or not value.strip():
            raise InvalidInput(f"A lesson needs a {name}. Put it in the item's value, as a string.")
    context = op.value.get("context", {})
    if not isinstance(context, Mapping) or {KEYS, VALUE} & {*context}:
        raise InvalidInput(f"The context of a lesson must be an object without the key {KEYS!r} or {VALUE!r}.")
    if op.index is False or op.ttl is not None:
        raise InvalidInput(
            "This store does not support index=False or ttl: every lesson can be found. To make a lesson expire, "
            "put `expires` in its value."
        )


class _OneBank:
    """One bank, used on the event loop of its owner."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank

    async def do(self, work: Awaitable[T]) -> T:
        return await portal.settled(work)

    async def of(self, name: str) -> Bank | None:
        return self._bank if name == label(self._bank.agent_id or "") else None

    async def under(self, prefix: tuple[str, ...]) -> Sequence[Bank]:
        return [self._bank] if (label(self._bank.agent_id or ""), LESSONS)[: len(prefix)] == prefix else []

    async def agents(self) -> Sequence[str]:
        agent = self._bank.agent_id or ""
        return [agent] if await self.do(self._bank.list(Selection(limit=1))) else []

    async def close(self) -> None:
        return None


class _AllBanks:
    """The banks of all agents in the default store, opened by their first use, always on the portal's event loop."""

    def __init__(self) -> None:
        self._opened: Any = None

    async def do(self, work: Awaitable[T]) -> T:
        return await portal.within(work)

    @property
    def _service(self) -> Any:
        if self._opened is None:
            self._opened = Service()
        return self._opened

    async def of(self, name: str) -> Bank | None:
        return self._service.bank("" if name == UNNAMED else unquote(name))

    async def under(self, prefix: tuple[str, ...]) -> Sequence[Bank]:
        if not prefix:
            return [self._service.bank(None)]
        bank = await self.of(prefix[0])
        return [bank] if bank and prefix[1:] in ((), (LESSONS,)) else []

    async def agents(self) -> Sequence[str]:
        lessons = self._service.store.memory.lessons
        named: Sequence[str] = await self.do(lessons.agents(limit=100_000))
        unnamed = await self.do(self._service.bank("").list(Selection(limit=1)))
        return [*([""] if unnamed else []), *named]

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await self.do(opened.close())


# --- filters on values, and patterns of namespaces ----------------------------------------------------------------

_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def fits(value: Mapping[str, Json], wanted: Mapping[str, Any] | None) -> bool:
    """Return whether the value fits the filter: for each key a value to equal, or {"$gte": 0.5} and the like.

    Raises `InvalidInput` for an unknown operator.
    """
    return all(_fits(value.get(name), one) for name, one in (wanted or {}).items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        table = cast(Mapping[str, Any], wanted)
        if any(str(name).startswith("$") for name in table):
            return all(_compared(value, name, against) for name, against in table.items())
        return isinstance(value, Mapping) and fits(cast(Mapping[str, Json], value), table)
    if isinstance(wanted, list | tuple):
        listed = cast(Sequence[Any], wanted)
        if not isinstance(value, list | tuple) or len(cast(Sequence[Any], value)) != len(listed):
            return False
        return all(_fits(one, other) for one, other in zip(cast(Sequence[Any], value), listed, strict=True))
    return value == wanted


def _compared(value: Any, name: str, against: Any) -> bool:
    if name not in _COMPARED:
        raise InvalidInput(f"There is no filter operator {name}. Available: {', '.join(_COMPARED)}.")
    try:
        return bool(_COMPARED[name](value, against))
    except TypeError:  # values of different types have no order
        return False


def matches(namespace: tuple[str, ...], condition: tuple[str, tuple[str, ...]]) -> bool:
    """Return whether a namespace begins, or ends, with this path; "*" matches any label."""
    kind, path = condition
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if kind == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", there) for wanted, there in zip(path, part, strict=True))
