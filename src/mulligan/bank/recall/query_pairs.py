"""Query pairs: questions to a graph database with the queries that answered them, recalled by the question's shape.

A pair is a lesson of one agent and of one graph. No other recall gives pairs, and they are not linked or merged.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from mulligan.bank.learn.screening import CONTENT, pair_key, visible
from mulligan.bank.learn.writing import LessonWriter
from mulligan.bank.ports import Ports
from mulligan.bank.recall.choosing import scores_of
from mulligan.bank.recall.index import Indexes
from mulligan.core.lessons import Selection
from mulligan.core.records import Episode, Lesson, LessonState, Origin
from mulligan.text.plain import one_line
from mulligan.text.secrets import mask

MAX_PAIRS = 3
"""Maximum number of pairs that a question is shown."""
MAX_PAIR_CANDIDATES = 1000
"""How many pairs of a graph, the newest, a question is compared with."""
GOOD = 0.5
"""A pair with at least this rating is confirmed. One with a lower rating is not shown."""


class QueryPairs:
    """The query pairs of one agent.

    In its methods `graph` is a text that is equal only for the same graph with the same schema, and `shape` is a
    question with kinds in place of the values that it names, such as "Which genes does <Gene.name> regulate?".
    """

    def __init__(self, ports: Ports, indexes: Indexes, writer: LessonWriter) -> None:
        self._ports, self._indexes, self._writer = ports, indexes, writer
        self._lessons = ports.memory.lessons

    async def keep(self, graph: str, shape: str, query: str, episode: Episode) -> Lesson | None:
        """Keep the question of this episode with the query that answered it, and return the pair.

        The pair is unconfirmed until a person rates it. If it is known already, its support is raised instead.
        Return None if the query is too long, or the pair of this episode has been stored before.
        """
        writes = self._ports.writes
        same = await self._listed(pair_key(writes, graph, _readable(shape)), get_args(LessonState))
        if len(query) > CONTENT or any(pair.origin.episode == episode.id for pair in same):
            return None
        draft = Lesson(
            "",
            one_line(episode.task.prompt, 300),
            query,
            "success",
            query=shape,
            origin=Origin("extracted", episode.id, len(episode.trials)),
            context={"graph": graph, "run": episode.run},
            nature="query_pair",
            confirmed=False,
        )
        learned = await self._writer.add(writes, [self._writer.new_lesson(draft, writes)])
        ids = (*learned.lessons, *learned.folded)
        return (await self._lessons.get(writes, ids[:1]))[0]

    async def like(self, graph: str, shape: str, most: int = MAX_PAIRS) -> Sequence[Lesson]:
        """Return the pairs of this graph whose shape is most similar to this one, each with its relevance.

        Pairs of the same shape come first, then those that a person confirmed. Pairs with a rating below `GOOD`, or a
        relevance below the bank's threshold, are left out.
        """
        writes, shape = self._ports.writes, _readable(shape)
        same_shape = await self._listed(pair_key(writes, graph, shape))
        same = {pair.id for pair in same_shape}
        pairs = [*same_shape, *await self._listed(pair_key(writes, graph))]
        now = time.time()
        pairs = [pair for pair in pairs if not pair.is_expired(now)]
        known = {pair.id: pair for pair in pairs if not pair.ratings or pair.ratings[-1].score >= GOOD}
        if not known:
            return ()
        index = await self._indexes.of(writes)
        vectors = await self._ports.vectors.of([shape]) if index.embedded else None
        ranking = index.query_pairs(known, shape, None if vectors is None else vectors[0], now)
        threshold = ranking.threshold(self._ports.settings.threshold)
        scores = scores_of(ranking, self._ports.retrieval.rank(ranking, len(known), threshold))
        scores |= {id: 1.0 for id in known if id in same}
        order = sorted(scores, key=lambda id: (id not in same, not known[id].confirmed, -scores[id]))
        return [replace(known[id], score=scores[id]) for id in order[:most]]

    async def _listed(self, key: str, states: tuple[LessonState, ...] = ("active",)) -> Sequence[Lesson]:
        which = Selection(states, nature="query_pair", keys=[key], limit=MAX_PAIR_CANDIDATES)
        return await self._lessons.list(self._ports.writes, which)


def _readable(shape: str) -> str:
    """The shape as it is stored."""
    return mask(visible(shape))
