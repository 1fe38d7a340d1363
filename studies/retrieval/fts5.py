"""Words in SQLite's FTS5 against words in memory: CPU per query, the first query, bytes. For design/010.

FTS5 holds a column with the agent's name beside the text, so that a query is limited to one agent; it gives the 200
best by its own `bm25()`, whose statistics are those of all agents. That is favourable to it: scoring these by the
agent's own statistics would need the number of the agent's lessons that hold each word, a count per word more.

    python studies/retrieval/fts5.py
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mulligan.bank.recall.index import Index
from mulligan.bank.recall.terms import terms_of
from mulligan.core.lesson_history import Delta, Row

VOCABULARY = 30_000
_chance = np.random.default_rng(1)
_odds = 1 / (np.arange(VOCABULARY) + 5.0)
_odds /= _odds.sum()


def text(length: int) -> str:
    return " ".join(f"w{n}" for n in _chance.choice(VOCABULARY, length, p=_odds))


def cpu(calls: list[Callable[[], object]]) -> str:
    took: list[float] = []
    for call in calls:
        began = time.process_time()
        call()
        took.append((time.process_time() - began) * 1e3)
    return f"{statistics.median(took):.2f}"


def fts5(path: Path, texts: list[str], agents: int, queries: list[str]) -> None:
    empty = sqlite3.connect(path)
    empty.execute("CREATE VIRTUAL TABLE words USING fts5(agent, text, content='', detail=full)")
    rows = [(n + 1, f"a{n % agents}", body) for n, body in enumerate(texts)]
    empty.executemany("INSERT INTO words(rowid, agent, text) VALUES (?, ?, ?)", rows)
    empty.execute("INSERT INTO words(words) VALUES ('optimize')")
    empty.commit()
    empty.close()

    def ask(db: sqlite3.Connection, query: str) -> object:
        either = " OR ".join(f'text:"{word}"' for word in dict.fromkeys(query.split()))
        match = f"agent:a0 AND ({either})"
        return db.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 200", (match,)).fetchall()

    db = sqlite3.connect(path)
    first = cpu([lambda: ask(db, queries[0])])
    warm = cpu([lambda query=query: ask(db, query) for query in queries])
    print(f"| FTS5 | {first} | {warm} | {path.stat().st_size / 1e6:.1f} | – |")


def in_memory(texts: list[str], agents: int, queries: list[str]) -> None:
    blobs = [terms_of(body) for body in texts]
    own = [
        Row(n + 1, str(n), "a0", "", "active", True, 0.5, 0.0, 0, None, blobs[n], None)
        for n in range(len(texts))
        if n % agents == 0
    ]
    index = Index()

    def cold() -> object:
        index.apply(Delta(1, 1, own))
        return index.candidates(queries[0]).lexical()

    first = cpu([cold])
    warm = cpu([lambda query=query: index.candidates(query).lexical() for query in queries])
    stored = sum(map(len, blobs)) / 1e6
    print(f"| in memory | {first} | {warm} | {stored:.1f} | {index.bytes / 1e6:.1f} |")


def main() -> None:
    for lessons, agents in ((10_000, 1), (100_000, 1), (100_000, 1000)):
        texts = [text(79) for _ in range(lessons)]
        for length in (20, 100):
            queries = [text(length) for _ in range(30)]
            print(f"\n{lessons:,} lessons of {agents:,} agents, queries of {length} words\n")
            print("| | first query, ms CPU | then, ms CPU | MB in the file | MB in memory |\n|---|--:|--:|--:|--:|")
            with tempfile.TemporaryDirectory() as folder:
                fts5(Path(folder) / "fts5.db", texts, agents, queries)
            in_memory(texts, agents, queries)


if __name__ == "__main__":
    main()
