"""Lessons to store, and the stores that the contract is held against."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from mulligan.core.lessons import Entry, LessonStore, Part, Selection
from mulligan.core.queued import Queue
from mulligan.core.records import Lesson
from mulligan.store.memory import SqliteMemory

E1, E2 = "embedder-1", "embedder-2"


class Memory(Protocol):
    @property
    def lessons(self) -> LessonStore: ...
    @property
    def queue(self) -> Queue: ...
    async def close(self) -> None: ...


STORES: dict[str, Callable[[Path], Memory]] = {"sqlite": lambda folder: SqliteMemory(folder / "m.db", most=20)}
"""By name, each over a folder; two over one folder are two processes' views of one store. At most 20 pieces of work."""


def vectors(id: str) -> dict[Part, bytes]:
    """16 bytes each, of the lesson and of its task."""
    return {"lesson": f"lesson {id}".encode().ljust(16)[:16], "query": f"query {id}".encode().ljust(16)[:16]}


def entry(id: str, says: str = "", embedder: str | None = E1, **fields: Any) -> Entry:
    """A lesson that is a duplicate of those that say the same; without vectors where there is no embedder."""
    says = says or id
    fields = {"experience": f"x{id}", "query": f"task of {id}", "outcome": "success", **fields}
    lesson = Lesson(id, f"Title {says}", f"Content {says}", description=f"When {says}", embedder=embedder, **fields)
    return Entry(lesson, f"print {says}", f"terms {says}".encode(), vectors(id) if embedder else {})


ALL = Selection(states=("active", "retired", "superseded", "quarantined"), limit=None)


async def ids(store: LessonStore, agent: str | None = "a", **which: Any) -> list[str]:
    return [lesson.id for lesson in await store.list(agent, Selection(**which))]
