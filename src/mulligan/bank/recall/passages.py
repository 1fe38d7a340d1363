"""Long texts for an embedder that reads only the beginning of one: piece by piece, and the mean of the pieces.

The local embedder reads 256 word pieces. On long task texts the mean finds clearly more: docs/retrieval.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.protocols import Embedder
from mulligan.core.ranking import Array
from mulligan.text.truncate import estimate

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
