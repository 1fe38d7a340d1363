"""Replaces images for a model that cannot see: by a description from another model, or by a note."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, cast

from mulligan.core.loop import Meter, path, scope
from mulligan.core.optional import SeeingModel, with_defaults
from mulligan.core.protocols import Journal, Model
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Image, Json, Usage
from mulligan.text.formatting import labelled
from mulligan.text.images import image_text, sha256_of

SYSTEM = "You look at images for a model that cannot see them. State what can be seen, and guess nothing."
WANTED = (
    "Describe this image for somebody who has to work with it and cannot see it. Begin with what it shows as a whole. "
    "Then give every text in it word for word, and every control with its label, its place and its state."
)
SAMPLING = Sampling(temperature=0.0, max_tokens=800)
UNSEEN = "You cannot be sent images, and no other model has described this one."


def sees(model: Model) -> bool:
    """Whether the model accepts images. A model that does not tell is assumed to accept them."""
    return bool(with_defaults(model, SeeingModel).sees)


class Describer:
    """Lets a vision model describe images, each only once in an episode, also after a resume.

    Args:
        model: the vision model behind a gate, so that its calls are journaled, counted and kept within the budget.
        journal, meter: those of the drive.
    """

    def __init__(self, model: Model, journal: Journal, meter: Meter) -> None:
        self._model, self._journal, self._meter = model, journal, meter
        self._known: dict[str, str] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def describe(self, image: Image) -> str:
        """Raises what asking a model raises."""
        sha256 = sha256_of(image)
        async with self._locks[sha256]:
            if sha256 not in self._known:
                self._known[sha256] = await self._description(sha256, image)
        return self._known[sha256]

    async def _description(self, sha256: str, image: Image) -> str:
        """Asks the model in a journal step outside of all moves, so that later moves find it.

        Its usage belongs to the move that asked first, and is counted again only when that move is replayed.
        """
        asked, move = False, path().split("/")[:2]

        async def ask() -> Json:
            nonlocal asked
            asked = True
            question = Question((Message("system", SYSTEM), Message("user", WANTED, (image,))))
            answer = await self._model.ask(question, SAMPLING)
            return {"text": str(answer.content).strip(), "usage": asdict(answer.usage), "move": move}

        with scope("images", sha256[:16], anew=True):
            request = {"image": sha256, "model": self._model.id}
            row = cast(dict[str, Any], await self._journal.step("described", request, ask))
        if not asked and row["move"] == move:
            self._meter.add(Usage(**row["usage"]))
        return row["text"]


async def in_words(question: Question, describer: Describer | None) -> Question:
    """The question with words in place of its images."""
    images = [image for message in question.messages for image in message.images]
    texts: list[str] = []
    for number, image in enumerate(images, 1):
        label = f"Image {number} of {len(images)} ({image_text(image)})"
        words = await describer.describe(image) if describer else ""
        description = labelled(f"{label}, in the words of a model that saw it", words)
        texts.append(description or f"{label}: {UNSEEN}")
    remaining = iter(texts)
    return replace(question, messages=tuple(_with_texts(message, remaining) for message in question.messages))


def _with_texts(message: Message, texts: Iterator[str]) -> Message:
    """The message with the next texts in place of its images."""
    parts = (message.text, *(next(texts) for _ in message.images))
    return replace(message, text="\n\n".join(part for part in parts if part), images=()) if message.images else message
