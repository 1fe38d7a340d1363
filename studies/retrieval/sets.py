"""The two public sets as banks of lessons, with their queries and which lessons each needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mulligan.bank.recall.candidates import BM25
from mulligan.bank.recall.embedding import embed
from mulligan.bank.recall.index import Index
from mulligan.bank.recall.terms import embedding_text, search_text, terms_of
from mulligan.core.lesson_history import Delta, Row
from mulligan.core.protocols import Embedder
from mulligan.core.records import Lesson

DATA = Path(__file__).parents[3] / "shared" / "data" / "retrieval"
OWN = Path(__file__).parent / "data"
CACHE = Path("/tmp/mulligan-retrieval-vectors")


@dataclass
class Set:
    """`needed[i]`: the ids of the lessons that query i needs. `own[i]`: the lesson that it is itself, left out."""

    name: str
    lessons: list[Lesson]
    queries: list[str]
    needed: list[set[str]]
    own: list[str]
    lesson_vectors: Any = None
    query_vectors: Any = None

    async def embed(self, embedder: Embedder) -> Set:
        self.lesson_vectors = await vectors(embedder, [embedding_text(lesson) for lesson in self.lessons])
        self.query_vectors = await vectors(embedder, self.queries)
        return self

    def index(self, embedder: str | None, only: Sequence[int] | None = None, bm25: BM25 = BM25()) -> Index:
        """A bank of these lessons (of all for None). A lesson that has a task is compared by that, too."""
        rows: list[Row] = []
        for n in range(len(self.lessons)) if only is None else only:
            lesson, vector = self.lessons[n], self.lesson_vectors[n].tobytes()
            terms = _terms(search_text(lesson))
            query = vector if lesson.query else None
            rows.append(Row(n + 1, lesson.id, "", "", "active", True, 0.5, 0.0, 0, None, terms, vector, query))
        index = Index(embedder, queries=True, bm25=bm25)
        index.apply(Delta(1, 1, rows))
        return index


@cache
def _terms(text: str) -> bytes:
    return terms_of(text)


def tau() -> Set:
    """Documents of a bank's knowledge base; queries are role-play texts of 570 words on average."""
    folder = DATA / "tau2-banking"
    lessons = [Lesson(d["_id"], d["title"], d["text"], "success") for d in _lines(folder / "corpus.jsonl")]
    queries = _lines(folder / "queries.jsonl")
    needed: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, _ = line.split("\t")
        needed.setdefault(query, set()).add(document)
    texts = [query["text"] for query in queries]
    return Set("tau2-banking", lessons, texts, [needed[query["_id"]] for query in queries], [""] * len(queries))


def webarena() -> Set:
    """Tasks of WebArena: those made from the same template are what a task needs; the task itself is left out."""
    tasks = _lines(DATA / "webarena-intents" / "tasks.jsonl")
    lessons = [Lesson(str(t["task_id"]), "", t["intent"], "success", query=t["intent"]) for t in tasks]
    same: dict[int, set[str]] = {}
    for task in tasks:
        same.setdefault(task["template"], set()).add(str(task["task_id"]))
    needed = [same[task["template"]] - {str(task["task_id"])} for task in tasks]
    return Set("webarena-intents", lessons, [t["intent"] for t in tasks], needed, [lesson.id for lesson in lessons])


def talks() -> Set:
    """Talks about support and engineering matters, each a lesson; queries say in other words what one was about."""
    return _written("conversations", OWN / "conversations" / "talks.txt", OWN / "conversations" / "queries.txt")


def notes() -> Set:
    """Notes of one or two sentences. Kept back while parameters are chosen."""
    return _written("notes", OWN / "notes" / "notes.txt", OWN / "notes" / "queries.txt")


def young(described: bool) -> Set:
    """Lessons of a young bank, with title and content alone or with description and task, too. 20 queries need none."""
    return _bank("young", described)


def held(described: bool) -> Set:
    """As `young`, on other topics. Kept back while what a recall gives is chosen."""
    return _bank("held", described)


def _bank(folder: str, described: bool) -> Set:
    lessons: list[Lesson] = []
    for id, text in _records(OWN / folder / "lessons.txt"):
        said = dict(line.split(": ", 1) for line in text.splitlines())
        more = {"description": said["description"], "query": said["task"]} if described else {}
        lessons.append(Lesson(id, said["title"], said["content"], "success", **more))
    needed, queries = _asked(OWN / folder / "queries.txt")
    name = f"{folder}, described" if described else folder
    return Set(name, lessons, queries, needed, [""] * len(queries))


def _written(name: str, documents: Path, asked: Path) -> Set:
    lessons = [Lesson(id, "", text, "success") for id, text in _records(documents)]
    needed, queries = _asked(asked)
    return Set(name, lessons, queries, needed, [""] * len(queries))


def _records(path: Path) -> list[tuple[str, str]]:
    """Texts behind lines such as "= id"."""
    return [
        (id, text.strip())
        for id, _, text in (part.partition("\n") for part in ("\n" + path.read_text()).split("\n= ")[1:])
    ]


def _asked(path: Path) -> tuple[list[set[str]], list[str]]:
    """Lines such as "id id | query"; "-" for none."""
    lines = [line.split(" | ", 1) for line in path.read_text().splitlines()]
    return [set(ids.split()) - {"-"} for ids, _ in lines], [query for _, query in lines]


async def vectors(embedder: Embedder, texts: Sequence[str]) -> Any:
    """By passages, as the bank does it; kept in a folder of /tmp, since embedding takes a minute or two."""
    key = hashlib.sha256(json.dumps([embedder.id, list(texts)]).encode()).hexdigest()[:16]
    file = CACHE / f"{key}.npy"
    if not file.is_file():
        CACHE.mkdir(exist_ok=True)  # noqa: ASYNC240
        np.save(file, await embed(embedder, texts))
    return np.load(file)


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]
