"""Lessons to store, and the kinds of store that the contract tests run on: a new kind is one line of `ADDRESSES`."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.lesson_history import Addition, Part
from mulligan.core.lesson_store import LessonStore, Memory
from mulligan.core.lessons import Selection
from mulligan.core.records import Lesson
from mulligan.store import open_store

E1, E2 = "embedder-1", "embedder-2"


ADDRESSES: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:///{folder}/m.db",
    "memory": lambda folder: f"memory:{folder}",
    "postgresql": lambda folder: import_module("postgres_server").address(folder),
}
"""The kinds of store, each by its address for a folder; two opened for one folder are two handles on one store."""

KINDS = ["sqlite", "memory", pytest.param("postgresql", marks=pytest.mark.slow)]
"""Their names, as parameters of a fixture: PostgreSQL takes seconds to start."""


def _opener(address: Callable[[Path], str]) -> Callable[[Path], Memory]:
    def opened(folder: Path) -> Memory:
        memory = open_store(address(folder)).memory
        memory.queue.capacity = 20
        return memory

    return opened


STORES: dict[str, Callable[[Path], Memory]] = {name: _opener(address) for name, address in ADDRESSES.items()}
"""Lessons and queued work of each kind of store."""

OPENERS = [
    pytest.param(opened, id=name, marks=[pytest.mark.slow] if name == "postgresql" else [])
    for name, opened in STORES.items()
]
"""As parameters of a test. PostgreSQL takes seconds to start, and a second for each example of a property."""


def vectors(id: str) -> dict[Part, bytes]:
    """16 bytes each, of the lesson and of its task."""
    return {"lesson": f"lesson {id}".encode().ljust(16)[:16], "query": f"query {id}".encode().ljust(16)[:16]}


def entry(id: str, says: str = "", embedder: str | None = E1, **fields: Any) -> Addition:
    """A lesson that is a duplicate of those that say the same; without vectors where there is no embedder."""
    says = says or id
    fields = {"experience": f"x{id}", "query": f"task of {id}", "outcome": "success", **fields}
    lesson = Lesson(id, f"Title {says}", f"Content {says}", description=f"When {says}", embedder=embedder, **fields)
    return Addition(lesson, f"print {says}", f"terms {says}".encode(), vectors(id) if embedder else {})


ALL = Selection(states=("active", "retired", "superseded", "quarantined"), limit=None)


async def ids(store: LessonStore, agent: str | None = "a", **which: Any) -> list[str]:
    return [lesson.id for lesson in await store.list(agent, Selection(**which))]
