"""Texts to the bytes that the store keeps. Where the embedder cannot answer, lessons are found by their words alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from mulligan.bank.learn.entries import embedded
from mulligan.bank.recall import passages
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.lessons import Part
from mulligan.core.protocols import Embedder
from mulligan.core.records import Lesson

log = logging.getLogger("mulligan")


class Vectors:
    """The bank's way to an embedder, if there is one. `why_not` says why the last call gave nothing."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self.why_not = "" if embedder else "no embedder is set up"

    @property
    def id(self) -> str | None:
        return self.embedder.id if self.embedder else None

    async def of(self, texts: Sequence[str]) -> Any:
        """A unit vector for each (numpy, float32); None where the embedder is not there or failed."""
        if self.embedder is None:
            return None
        import numpy as np

        try:
            made = await passages.embed(self.embedder, list(texts))
        except (ModelError, InvalidInput) as error:
            self.why_not = str(error)
            log.info("no vectors: %s", error)
            return None
        return np.asarray(made, dtype=np.float32)

    async def parts(self, lessons: Sequence[Lesson]) -> list[Mapping[Part, bytes]] | None:
        """The vectors of each lesson and of the task that it was learned from, each text embedded once."""
        texts = list(dict.fromkeys(text for lesson in lessons for text in _texts(lesson).values()))
        made: Any = await self.of(texts) if texts else ()
        if made is None:
            return None
        by_text = {text: vector.tobytes() for text, vector in zip(texts, made, strict=True)}
        return [{part: by_text[text] for part, text in _texts(lesson).items()} for lesson in lessons]


def _texts(lesson: Lesson) -> dict[Part, str]:
    texts: dict[Part, str] = {"lesson": embedded(lesson)}
    if lesson.query.strip():
        texts["query"] = lesson.query
    return texts
