"""An embedder without weights, for tests and timings: texts that share words are similar."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from mulligan.core.errors import InvalidInput

WORD = re.compile(r"[^\W_]+")
CACHED_HASHES = 100_000


class HashEmbedder:
    """An embedder that hashes words. It gives the same vectors on every machine, and does not know any meaning.

    By its hash, each word adds 1 or -1 to one of `dim` numbers, and each pair of neighbours adds 0.5 or -0.5. Raises
    `InvalidInput` for a dim below 1.
    """

    def __init__(self, dim: int = 384) -> None:
        if dim < 1:
            raise InvalidInput(f"The hash embedder needs a dimension of at least 1, not {dim}.")
        self.dim = dim
        self.id = f"hash:{dim}"

    async def embed(self, texts: Sequence[str]) -> Any:
        """A numpy array, float32, of shape (len(texts), dim), each row of length 1."""
        import numpy as np

        vectors: Any = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            words = WORD.findall(text.casefold())
            for gram in words:
                self._add(row, gram, 1.0)
            for first, second in pairwise(words):
                self._add(row, f"{first} {second}", 0.5)
            if not row.any():  # there are no words, or (hardly ever) they cancel each other out
                self._add(row, f"\0{text}", 1.0)
            row /= np.linalg.norm(row)
        return vectors

    def _add(self, row: Any, gram: str, weight: float) -> None:
        number = _number(gram)
        row[(number >> 1) % self.dim] += weight if number & 1 else -weight


@lru_cache(CACHED_HASHES)
def _number(gram: str) -> int:
    return int.from_bytes(blake2b(gram.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
