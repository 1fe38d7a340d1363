"""The embedders that run on this machine, through onnxruntime, without key and server.

`network` runs the network, `pieces` cuts texts. design/009 has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from mulligan.core.errors import InvalidInput, ModelError, UnknownName
from mulligan.core.extras import require
from mulligan.models.embedded import pull_unless_abandoned
from mulligan.models.embedded.worker import EmbeddedWorker, threads_to_use
from mulligan.models.embedders.network import load
from mulligan.models.weights import Progress, installed, path_of
from mulligan.models.weights.known import EMBEDDERS, MINILM

LONGEST = 256  # pieces of a text that are read, as the model was trained
BEFORE = {"multilingual-e5-small": "query: "}
"""What stands before each text, as the model was trained."""
NEUTRAL = {"multilingual-e5-small": ("a b c", "?", ".", "the", "0", "hello", "x = 1")}
"""Texts that say next to nothing. All vectors of this model point one way; the mean of these is taken off, so that
texts that have nothing in common have a cosine near 0 (design/170)."""
BATCH = 1024  # pieces in one run of the network: more were not faster, and cancelling waits for one batch


class LocalEmbedder:
    """all-MiniLM-L6-v2 or multilingual-e5-small: 384 numbers a text, of which the first 256 pieces are read.

    Embedders of one thread count share one load per process, in a thread of their own: they do not wait for a language
    model that answers.

    Args:
        name: "minilm-l6-v2", which None stands for, or "multilingual-e5-small".
        threads: None: `MULLIGAN_THREADS`, else the physical cores minus one.
        pull: Whether the first call downloads missing weights. A callback gets the progress; otherwise it goes to
            stderr. Without it `embed` raises `InvalidInput`, so that a recall never downloads anything.

    Raises:
        InvalidInput: The extra is missing.
        UnknownName: There is no such embedder.
    """

    dim = 384

    def __init__(self, name: str | None = None, *, threads: int | None = None, pull: bool | Progress = False) -> None:
        if name and name not in EMBEDDERS:
            raise UnknownName("local embedder", name, EMBEDDERS, "Others are named PROVIDER:MODEL.")
        require("The embedder that runs inside Mulligan needs an extra", "onnxruntime", "local")
        self._weights = EMBEDDERS[name or MINILM.name]
        self.id = f"local:{self._weights.name}@sha256:{self._weights.parts[0].sha256[:12]}"
        self._threads = threads_to_use(threads)
        self._pull = pull

    @property
    def here(self) -> bool:
        """Whether the weights are on this machine."""
        return self._weights.name in installed(EMBEDDERS)

    async def embed(self, texts: Sequence[str]) -> Any:
        """A numpy array, float32, of shape (len(texts), 384), each row of length 1. A text without words has a
        direction too, which means nothing.

        Cancelling returns at once; the work ends after the batch at hand. Raises `InvalidInput` when the weights are
        not here and may not be pulled, `ModelError` when they could not be pulled or loaded.
        """
        if not self._pull and not self.here:
            name = self._weights.name
            raise InvalidInput(f"The weights of {name} are not on this machine. Run: mulligan models pull {name}")
        wanted = tuple(texts)
        return await _worker().run(lambda abandoned: self._embed(wanted, abandoned))

    def _embed(self, texts: Sequence[str], abandoned: Event) -> Any:
        """In the worker's thread."""
        if self._pull:
            pull_unless_abandoned(self._weights.name, self._pull, abandoned, EMBEDDERS)
        return _loaded(self._weights.name, path_of(self._weights.name, EMBEDDERS), self._threads).vectors(
            texts, abandoned
        )


class _Reader:
    """Loaded weights, used by one thread."""

    def __init__(self, name: str, path: Path, threads: int) -> None:
        self._network, self._before = load(name, path, threads), BEFORE.get(name, "")
        neutral = NEUTRAL.get(name)
        self._middle = self._raw(neutral, Event()).mean(axis=0) if neutral else None

    def vectors(self, texts: Sequence[str], abandoned: Event) -> Any:
        found = self._raw(texts, abandoned)
        if self._middle is None:
            return found
        found -= self._middle
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def _raw(self, texts: Sequence[str], abandoned: Event) -> Any:
        cut = [self._network.pieces.numbers(self._before + text, LONGEST) for text in texts]
        found: Any = np.empty((len(texts), LocalEmbedder.dim), np.float32)
        for batch in batches([len(pieces) for pieces in cut]):
            if abandoned.is_set():
                raise ModelError("The embedding was cancelled.")
            longest = len(cut[batch[-1]])
            pieces, mask = np.zeros((2, len(batch), longest), np.int32)
            for row, number in enumerate(batch):
                pieces[row, : len(cut[number])] = cut[number]
                mask[row, : len(cut[number])] = 1
            states = self._network.run(pieces, mask)
            sums = np.einsum("tpd,tp->td", states, mask.astype(np.float32))  # the mean but for its length
            found[batch] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return found


def batches(lengths: Sequence[int], most: int = BATCH) -> Iterator[list[int]]:
    """Numbers of texts of like length, shortest first, so that little is padded: at most `most` pieces, or one text."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda number: lengths[number]):
        if batch and (len(batch) + 1) * lengths[number] > most:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


@cache
def _worker() -> EmbeddedWorker:
    return EmbeddedWorker()


@cache
def _loaded(name: str, path: Path, threads: int) -> _Reader:
    """Called in the worker's thread only. A load that failed is tried again."""
    return _Reader(name, path, threads)
