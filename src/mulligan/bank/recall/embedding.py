"""Embed texts and lessons. Long texts are embedded piece by piece.

The local embedder reads only 256 word pieces. For long task texts the mean of the pieces finds clearly more lessons:
see docs/retrieval.md. If the embedder does not answer, lessons are found only by keyword.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from mulligan.bank.recall.terms import embedding_text
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.lesson_history import Part
from mulligan.core.protocols import Embedder
from mulligan.core.ranking import Array
from mulligan.core.records import Lesson
from mulligan.text.truncate import estimate

log = logging.getLogger("mulligan")

MAX_VECTORS = 128
"""Maximum number of texts whose vectors are remembered."""


@dataclass
class _Batch:
    """Texts that wait for the next run of the embedder in one event loop, and the task of that run."""

    texts: dict[str, None] = field(default_factory=dict[str, None])
    run: asyncio.Task[Mapping[str, Any]] | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Vectors:
    """Computes vectors, if there is an embedder. `why_not` says why there are none, or why the last call failed.

    Vectors are remembered, because a task that is recalled for is often learned from soon after. Texts that are
    requested while the embedder works go into its next run together.
    """

    def __init__(self, embedder: Embedder | None, why_not: str = "") -> None:
        self.embedder = embedder
        self.why_not = why_not or ("" if embedder else "no embedder is set up")
        self._remembered: OrderedDict[str, Any] = OrderedDict()
        self._batches: WeakKeyDictionary[asyncio.AbstractEventLoop, _Batch] = WeakKeyDictionary()

    @property
    def id(self) -> str | None:
        return self.embedder.id if self.embedder else None

    async def of(self, texts: Sequence[str]) -> Any:
        """A unit vector for each text (numpy, float32); None without an embedder, or if the embedder fails."""
        if self.embedder is None:
            return None
        import numpy as np

        try:
            vectors = await self._vectors(self.embedder, texts)
        except (ModelError, InvalidInput) as error:
            self.why_not = str(error)
            log.info("no vectors: %s", error)
            return None
        self.why_not = ""
        return np.asarray(vectors, dtype=np.float32)

    async def _vectors(self, embedder: Embedder, texts: Sequence[str]) -> Sequence[Any]:
        known = {text: self._remembered[text] for text in texts if text in self._remembered}
        missing = [text for text in texts if text not in known]
        if missing:
            loop = asyncio.get_running_loop()
            batch = self._batches.setdefault(loop, _Batch())
            if batch.run is None:
                batch.run = loop.create_task(self._run(embedder, batch))
                batch.run.add_done_callback(lambda run: run.cancelled() or run.exception())  # marks it as seen
            batch.texts.update(dict.fromkeys(missing))
            known |= await asyncio.shield(batch.run)
        return [known[text] for text in texts]

    async def _run(self, embedder: Embedder, batch: _Batch) -> Mapping[str, Any]:
        """The vectors of all texts that were added to the batch until this run had its turn."""
        async with batch.turn:
            texts, batch.texts, batch.run = list(batch.texts), {}, None
            vectors = dict(zip(texts, await embed(embedder, texts), strict=True))
        self._remembered.update(vectors)
        while len(self._remembered) > MAX_VECTORS:
            self._remembered.popitem(last=False)
        return vectors

    async def parts(self, lessons: Sequence[Lesson]) -> list[Mapping[Part, bytes]] | None:
        """The vectors of each lesson and of the task that it was learned from, as the bytes that the store keeps.

        Returns None without an embedder, or if the embedder fails.
        """
        wanted: list[dict[Part, str]] = [
            {"lesson": embedding_text(lesson), **({"query": lesson.query} if lesson.query.strip() else {})}
            for lesson in lessons
        ]
        texts = list(dict.fromkeys(text for parts in wanted for text in parts.values()))
        vectors: Any = await self.of(texts) if texts else ()
        if vectors is None:
            return None
        by_text = {text: vector.tobytes() for text, vector in zip(texts, vectors, strict=True)}
        return [{part: by_text[text] for part, text in parts.items()} for parts in wanted]


LONGEST = 200
"""Tokens of a piece, as `text.truncate` estimates them: 256 word pieces with room for a bad estimate."""
_FULL = 250
"""Tokens beyond which a piece takes no further Chinese or Japanese word, which can be as long as a piece."""
_CHINESE = "\u2e80"
"""The first of the characters that `estimate` counts as a token each."""


async def embed(embedder: Embedder, texts: Sequence[str]) -> Array:
    """A unit vector for each whole text (numpy, float32). Raises the embedder's errors."""
    import numpy as np

    pieces_of = [pieces(text) for text in texts]
    vectors = np.asarray(await embedder.embed([piece for several in pieces_of for piece in several]), np.float32)
    if len(vectors) == len(texts):
        return vectors
    first = np.cumsum([0, *map(len, pieces_of)])[:-1]  # the first piece of each text
    sums = np.add.reduceat(vectors, first, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), vectors[first]).astype(np.float32)


def pieces(text: str) -> list[str]:
    """The text cut between words into pieces of about equal length, none much longer than `LONGEST` tokens.

    Only a Chinese or Japanese word ends a piece early. The long words of encoded data do not, because stores hold
    vectors of pieces that were cut so.
    """
    if len(text) <= LONGEST or (total := estimate(text)) <= LONGEST:
        return [text]
    # A word longer than a piece is cut, too: Chinese has no spaces. A character is at most one token.
    words = [word[start : start + LONGEST] for word in text.split() for start in range(0, len(word), LONGEST)]
    size = total / math.ceil(total / LONGEST)
    groups: list[list[str]] = [[]]
    taken = in_group = 0
    for word in words:
        tokens = estimate(word)
        is_full = in_group + tokens > _FULL and max(word) >= _CHINESE
        if taken >= size * len(groups) or is_full:
            groups.append([])
            in_group = 0
        groups[-1].append(word)
        taken += tokens
        in_group += tokens
    return [" ".join(group) for group in groups if group] or [text]
