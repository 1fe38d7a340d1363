"""Embed texts, long ones piece by piece, and lessons as the bytes that the store keeps.

The local embedder reads 256 word pieces only. On long task texts the mean of the pieces finds clearly more lessons:
see docs/retrieval.md. If the embedder does not answer, lessons are found by their words alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from mulligan.bank.recall.terms import embedded
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.lessons import Part
from mulligan.core.protocols import Embedder
from mulligan.core.ranking import Array
from mulligan.core.records import Lesson
from mulligan.text.truncate import estimate

log = logging.getLogger("mulligan")

MAX_VECTORS = 128
"""Texts whose vectors are remembered."""


@dataclass
class _Batch:
    """Texts that wait for the next run of the embedder in one event loop, and that run."""

    texts: dict[str, None] = field(default_factory=dict[str, None])
    made: asyncio.Task[Mapping[str, Any]] | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Vectors:
    """The bank's way to an embedder, if there is one. `why_not` says why the last call gave nothing, or the next one
    will.

    The task of a recall is often the task of what is learned next, so vectors of texts are remembered. Texts that
    are asked for while the embedder works go into its next run together.
    """

    def __init__(self, embedder: Embedder | None, why_not: str = "") -> None:
        self.embedder = embedder
        self.why_not = why_not or ("" if embedder else "no embedder is set up")
        self._made: OrderedDict[str, Any] = OrderedDict()
        self._batches: WeakKeyDictionary[asyncio.AbstractEventLoop, _Batch] = WeakKeyDictionary()

    @property
    def id(self) -> str | None:
        return self.embedder.id if self.embedder else None

    async def of(self, texts: Sequence[str]) -> Any:
        """A unit vector for each (numpy, float32); None where the embedder is not there or failed."""
        if self.embedder is None:
            return None
        import numpy as np

        try:
            made = await self._vectors(self.embedder, texts)
        except (ModelError, InvalidInput) as error:
            self.why_not = str(error)
            log.info("no vectors: %s", error)
            return None
        return np.asarray(made, dtype=np.float32)

    async def _vectors(self, embedder: Embedder, texts: Sequence[str]) -> Sequence[Any]:
        known = {text: self._made[text] for text in texts if text in self._made}
        missing = [text for text in texts if text not in known]
        if missing:
            loop = asyncio.get_running_loop()
            queue = self._batches.setdefault(loop, _Batch())
            if queue.made is None:
                queue.made = loop.create_task(self._run(embedder, queue))
                queue.made.add_done_callback(lambda made: made.cancelled() or made.exception())
            queue.texts.update(dict.fromkeys(missing))
            known |= await asyncio.shield(queue.made)
        return [known[text] for text in texts]

    async def _run(self, embedder: Embedder, queue: _Batch) -> Mapping[str, Any]:
        async with queue.turn:
            texts, queue.texts, queue.made = list(queue.texts), {}, None
            made = dict(zip(texts, await embed(embedder, texts), strict=True))
        self._made.update(made)
        while len(self._made) > MAX_VECTORS:
            self._made.popitem(last=False)
        return made

    async def parts(self, lessons: Sequence[Lesson]) -> list[Mapping[Part, bytes]] | None:
        """The vectors of each lesson and of the task that it was learned from, each text embedded once."""
        wanted: list[dict[Part, str]] = [
            {"lesson": embedded(lesson), **({"query": lesson.query} if lesson.query.strip() else {})}
            for lesson in lessons
        ]
        texts = list(dict.fromkeys(text for parts in wanted for text in parts.values()))
        made: Any = await self.of(texts) if texts else ()
        if made is None:
            return None
        by_text = {text: vector.tobytes() for text, vector in zip(texts, made, strict=True)}
        return [{part: by_text[text] for part, text in parts.items()} for parts in wanted]


LONGEST = 200
"""Tokens of a piece, as `core.truncate` estimates them: within 256 word pieces with room for a bad estimate."""


async def embed(embedder: Embedder, texts: Sequence[str]) -> Array:
    """A unit vector for each text (numpy, float32), all of it read. Raises what the embedder raises."""
    import numpy as np

    cut = [pieces(text) for text in texts]
    made = np.asarray(await embedder.embed([piece for several in cut for piece in several]), np.float32)
    if len(made) == len(texts):
        return made
    first = np.cumsum([0, *(len(several) for several in cut)])[:-1]
    sums = np.add.reduceat(made, first, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), made[first]).astype(np.float32)


def pieces(text: str, longest: int = LONGEST) -> list[str]:
    """The text cut between words into parts of about equal length, none much longer than `longest` tokens; a text that
    fits comes back as it is."""
    if len(text) <= longest or (total := estimate(text)) <= longest:
        return [text]
    words = [part for word in text.split() for part in _parts(word, longest)]
    size = total / -(-total // longest)
    found: list[list[str]] = [[]]
    taken = 0.0
    for word in words:
        if taken >= size * len(found):
            found.append([])
        found[-1].append(word)
        taken += estimate(word)
    return [" ".join(part) for part in found if part] or [text]


def _parts(word: str, longest: int) -> list[str]:
    """A word, or where it is longer than a piece (Chinese has no spaces) its parts."""
    return [word[i : i + longest] for i in range(0, len(word), longest)]
