"""A store of many lessons of one agent, with vectors of the hash embedder. The words are drawn as in bank_recall.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bank_recall import words

from mulligan.bank.learn.screening import addition_of
from mulligan.bank.recall.terms import embedding_text
from mulligan.core.lesson_history import Addition
from mulligan.core.records import Lesson
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.store import open_store

AGENT = "perf"


async def write(database: Path, count: int) -> None:
    """Writes the lessons into this database."""
    memory, embedder = open_store(database).memory, HashEmbedder()
    for first in range(0, count, 1000):
        entries = [await _entry(number, embedder) for number in range(first, min(first + 1000, count))]
        await memory.lessons.add(AGENT, entries, fold=False)
    await memory.close()


async def _entry(number: int, embedder: HashEmbedder) -> Addition:
    lesson = Lesson(
        f"{number:012x}",
        words(7),
        words(60),
        "success" if number % 3 else "failure",
        agent_id=AGENT,
        query=words(12),
        experience=f"x{number // 3}",
        created=1.7e9 + number,
        embedder=embedder.id,
    )
    entry = addition_of(lesson, quarantine=False)
    of_lesson, of_query = await embedder.embed([embedding_text(lesson), lesson.query])
    return replace(entry, vectors={"lesson": of_lesson.tobytes(), "query": of_query.tobytes()})
