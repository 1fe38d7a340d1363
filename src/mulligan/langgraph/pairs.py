"""Recalls and keeps the pairs of question and query in a bank: see `mulligan.bank.recall.query_pairs`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, cast, runtime_checkable

from mulligan.graphs.protocol import EdgeKind, Graph, GraphSchema, NodeKind
from mulligan.graphs.question_checks import GraphQuestion
from mulligan.langgraph.querying import Querying
from mulligan.plugins import Bank, Episode, Learned, Lesson, Recall, Task, Trial, measuring
from mulligan.running import digest, pairs_text


@runtime_checkable
class Pairs(Protocol):
    """The query pairs of a bank: see `QueryPairs`."""

    async def keep(self, graph: str, shape: str, query: str, episode: Episode) -> Lesson | None: ...
    async def like(self, graph: str, shape: str) -> Sequence[Lesson]: ...


def with_pairs(bank: Bank | None, querying: Querying) -> Bank | None:
    """Return the bank with the query pairs of the graph.

    Returns the bank unchanged if rows are not judged, if a subclass asks something else than the graph, or if the bank
    keeps no pairs.
    """
    pairs = measuring(bank).pairs
    if bank is None or not isinstance(pairs, Pairs) or not (querying.judged and querying.asks_database):
        return bank
    return cast(Bank, _BankWithPairs(bank, pairs, querying))


class _BankWithPairs:
    """A bank that recalls query pairs beside its lessons, and keeps the pair of each run that ended solved."""

    def __init__(self, bank: Bank, pairs: Pairs, querying: Querying) -> None:
        self._bank, self._pairs, self._querying = bank, pairs, querying

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_bank"], name)

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        found = await self._bank.recall(task, top_k=top_k)
        pairs = await self._pairs.like(*await self._place(task.prompt))
        text = "\n\n".join(part for part in (found.formatted_prompt, pairs_text(pairs)) if part)
        return replace(found, lessons=(*found.lessons, *pairs), formatted_prompt=text)

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        for episode in episodes:
            if episode.stop is not None and episode.stop.reason == "solved":
                graph, shape = await self._place(episode.task.prompt)
                await self._pairs.keep(graph, shape, query_of(episode.trials[-1]), episode)
        return await self._bank.learn(episodes)

    async def _place(self, question: str) -> tuple[str, str]:
        about = await self._querying.about(question)
        return identity_of(self._querying.database, about.schema), shape_of(about)


def identity_of(graph: Graph, schema: GraphSchema) -> str:
    """Return a digest of the graph's address and schema.

    If the schema is read from a sample, only its labels and relationship types count.
    """
    where = os.path.abspath(graph.name) if os.path.exists(graph.name) else graph.name
    nodes, edges = sorted(schema.nodes, key=_label), sorted(schema.edges, key=_label)
    if not schema.exact:
        return digest([where, [*map(_label, nodes)], [*map(_label, edges)]])
    ordered = tuple(replace(edge, ends=tuple(sorted(edge.ends))) for edge in edges)
    return digest([where, GraphSchema(tuple(nodes), ordered).to_json()])


def _label(kind: NodeKind | EdgeKind) -> str:
    return kind.label


def shape_of(about: GraphQuestion) -> str:
    """Return the question with kinds in place of the values that it names: "Which genes does <Gene.name> regulate?"."""
    kinds: dict[str, set[str]] = {}
    for link in about.links.found:
        kinds.setdefault(link.words.casefold(), set()).add(f"{link.label}.{link.property}")
    text = " ".join(about.question.split())
    if not kinds:
        return text

    def kind(found: re.Match[str]) -> str:
        known = kinds.get(found["value"].casefold())
        return f"<{'|'.join(sorted(known))}>" if known else found[0]

    values = "|".join(re.escape(words) for words in sorted(kinds, key=len, reverse=True))
    return re.sub(rf"(?P<quote>[\"'“`]?)(?<!\w)(?P<value>{values})(?!\w)(?(quote)[\"'”`]?)", kind, text, flags=re.I)


def query_of(trial: Trial) -> str:
    """Return the query that was run, which may differ from the draft, for example by a turned arrow."""
    found: Any = None
    with suppress(ValueError):
        found = json.loads(trial.attempt.steps[0].observation) if trial.attempt.steps else None
    query = cast("dict[str, Any]", found).get("query") if isinstance(found, dict) else None
    return query if isinstance(query, str) and query else trial.attempt.output
