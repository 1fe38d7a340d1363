"""Embedders that run on this machine through onnxruntime, without a key or a server.

`network` runs the network, `pieces` cuts texts into pieces. For the reasons, see design/009.
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
from mulligan.models.embedded.worker import EmbeddedWorker, threads_to_use
from mulligan.models.embedders.network import load
from mulligan.models.weights import installed, path_of
from mulligan.models.weights.known import EMBEDDERS, MINILM

MAX_PIECES = 256  # of a text that are read, as in the model's training
PREFIX = {"multilingual-e5-small": "query: "}
"""Begins each text, as in the model's training."""
NEUTRAL = {"multilingual-e5-small": ("a b c", "?", ".", "the", "0", "hello", "x = 1")}
"""Texts that mean almost nothing. All vectors of this model have a common direction. The mean of these texts is
subtracted, so that texts with nothing in common have a cosine near 0 (design/170)."""
BATCH = 1024  # pieces in one run of the network: more were not faster, and cancelling waits for one batch


class LocalEmbedder:
    """all-MiniLM-L6-v2 or multilingual-e5-small: 384 numbers for the first 256 pieces of a text.

    Embedders with the same number of threads load the weights once per process. They run in a separate thread, so they
    do not wait for a language model.

    Args:
        name: "minilm-l6-v2" (also for None) or "multilingual-e5-small".
        threads: None: `MULLIGAN_THREADS`, else the physical cores minus one.

    Raises:
        InvalidInput: The extra is missing.
        UnknownName: There is no such embedder.
    """

    dim = 384

    def __init__(self, name: str | None = None, *, threads: int | None = None) -> None:
        if name and name not in EMBEDDERS:
            raise UnknownName("local embedder", name, EMBEDDERS, "Others are named PROVIDER:MODEL.")
        require("The embedder that runs inside Mulligan needs an extra", "onnxruntime", "local")
        self._weights = EMBEDDERS[name or MINILM.name]
        self.id = f"local:{self._weights.name}@sha256:{self._weights.parts[0].sha256[:12]}"
        self._threads = threads_to_use(threads)

    @property
    def here(self) -> bool:
        """Whether the weights are on this machine."""
        return self._weights.name in installed(EMBEDDERS)

    async def embed(self, texts: Sequence[str]) -> Any:
        """A numpy array of float32 with shape (len(texts), 384), whose rows have length 1.

        A text without words also gets a vector, which has no meaning. Cancelling returns at once; the work ends after
        the current batch. Raises `InvalidInput` if the weights are missing, so that a recall never downloads anything,
        and `ModelError` if they could not be loaded.
        """
        if not self.here:
            name = self._weights.name
            raise InvalidInput(f"The weights of {name} are not on this machine. Run: mulligan models pull {name}")
        copied = tuple(texts)  # the caller may change its list while the worker runs
        return await _worker().run(lambda abandoned: self._embed(copied, abandoned))

    def _embed(self, texts: Sequence[str], abandoned: Event) -> Any:
        """In the worker's thread."""
        return _loaded(self._weights.name, path_of(self._weights.name, EMBEDDERS), self._threads).vectors(
            texts, abandoned
        )


class _Reader:
    """Loaded weights, used by one thread."""

    def __init__(self, name: str, path: Path, threads: int) -> None:
        self._network, self._prefix = load(name, path, threads), PREFIX.get(name, "")
        neutral = NEUTRAL.get(name)
        self._mean = self._raw_vectors(neutral, Event()).mean(axis=0) if neutral else None

    def vectors(self, texts: Sequence[str], abandoned: Event) -> Any:
        vectors = self._raw_vectors(texts, abandoned)
        if self._mean is None:
            return vectors
        vectors -= self._mean
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _raw_vectors(self, texts: Sequence[str], abandoned: Event) -> Any:
        pieces_of = [self._network.pieces.numbers(self._prefix + text, MAX_PIECES) for text in texts]
        vectors: Any = np.empty((len(texts), LocalEmbedder.dim), np.float32)
        for batch in batches([len(pieces) for pieces in pieces_of]):
            if abandoned.is_set():
                raise ModelError("The embedding was cancelled.")
            longest = len(pieces_of[batch[-1]])
            pieces, mask = np.zeros((2, len(batch), longest), np.int32)
            for row, number in enumerate(batch):
                pieces[row, : len(pieces_of[number])] = pieces_of[number]
                mask[row, : len(pieces_of[number])] = 1
            states = self._network.run(pieces, mask)
            sums = np.einsum("tpd,tp->td", states, mask.astype(np.float32))  # has the direction of the mean
            vectors[batch] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return vectors


def batches(lengths: Sequence[int], most: int = BATCH) -> Iterator[list[int]]:
    """Batches of numbers of texts with similar lengths, shortest first, so that little is padded.

    A batch has at most `most` pieces with its padding, or a single text.
    """
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
