"""An embedder without weights, for tests and timings: texts that share words are near."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from mulligan.core.errors import InvalidInput

WORD = re.compile(r"[^\W_]+")
REMEMBERED = 100_000


class HashEmbedder:
    """Each word and each pair of neighbours adds plus or minus 1 to one of `dim` numbers, by its hash; a pair
    adds half. The same on every machine. It knows no meaning. Raises `InvalidInput` for dim below 1.
    """

    def __init__(self, dim: int = 384) -> None:
        if dim < 1:
            raise InvalidInput(f"The hash embedder needs a dimension of at least 1, not {dim}.")
        self.dim = dim
        self.id = f"hash:{dim}"

    async def embed(self, texts: Sequence[str]) -> Any:
        """A numpy array, float32, of shape (len(texts), dim), each row of length 1."""
        import numpy as np

        found: Any = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(found, texts, strict=True):
            words = WORD.findall(text.casefold())
            for gram in words:
                self._add(row, gram, 1.0)
            for first, second in pairwise(words):
                self._add(row, f"{first} {second}", 0.5)
            if not row.any():  # no words, or (nearly never) words that cancel each other out
                self._add(row, f"\0{text}", 1.0)
            row /= np.linalg.norm(row)
        return found

    def _add(self, row: Any, gram: str, weight: float) -> None:
        number = _number(gram)
        row[(number >> 1) % self.dim] += weight if number & 1 else -weight


@lru_cache(REMEMBERED)
def _number(gram: str) -> int:
    return int.from_bytes(blake2b(gram.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
