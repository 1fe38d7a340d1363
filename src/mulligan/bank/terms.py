"""What a text is found by, lexically: its terms as stable hashes with counts, in one small blob per lesson.

Words are case-folded and lose an English plural s; identifiers count whole and by their parts; scripts that are
written without spaces (Chinese, Japanese, Korean, Thai) count by single characters and pairs, so that any substring
is found. Nothing is stemmed and no word is left out: see design/010-lexical-retrieval.md.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator

from mulligan.core.ranking import Array

VERSION = 1
"""Written into every blob. It rises whenever a text would give other terms; older blobs are then made anew."""

ENTRY = 5
"""Bytes of one entry: the hash (4, little-endian) and the count (1). The first entry of a blob names the version."""

_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0e00"
_UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
)
_PART = rf"(?:[^\W{_UNSPACED}]|[{_MARKS}])+"
_RUNS = re.compile(rf"([{_UNSPACED}]+)|{_PART}(?:(?:\.|(?<=\d),(?=\d)){_PART})*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEAMS = re.compile(r"[_.,]+")


def terms(text: str) -> Iterator[str]:
    """The terms of a text, in its order, repeated as they are repeated."""
    for run in _RUNS.finditer(unicodedata.normalize("NFKC", text)):
        word = run[0]
        if run[1]:
            yield from word
            yield from (word[i : i + 2] for i in range(len(word) - 1))
        elif word.isalpha() and (word.islower() or word.istitle()):
            yield _singular(word.casefold())
        else:
            yield from _identifier(word)


def terms_of(text: str) -> bytes:
    """The blob that is stored with a lesson. Equal texts give equal bytes, in every process."""
    counts = Counter(zlib.crc32(term.encode("utf-8", "surrogatepass")) for term in terms(text))
    entries = b"".join(hash.to_bytes(4, "little") + bytes((min(counts[hash], 255),)) for hash in sorted(counts))
    return VERSION.to_bytes(4, "little") + b"\0" + entries


def read(blobs: list[bytes]) -> tuple[Array, Array, Array]:
    """Of many blobs at once: all hashes (uint32) and counts (uint8), and how many entries each blob has.

    A blob that is empty, damaged or of another version has none.
    """
    import numpy as np

    head = VERSION.to_bytes(4, "little") + b"\0"
    usable = [blob if blob.startswith(head) and len(blob) % ENTRY == 0 else head for blob in blobs]
    sizes = np.fromiter((len(blob) // ENTRY for blob in usable), np.int64, len(usable))
    entries = np.frombuffer(b"".join(usable), np.dtype([("hash", "<u4"), ("count", "u1")]))
    body = np.ones(len(entries), bool)
    body[np.cumsum(sizes) - sizes] = False
    return entries["hash"][body], entries["count"][body], sizes - 1


def current(blob: bytes) -> bool:
    """Whether a blob is of this version, so that its lesson can be found."""
    return blob.startswith(VERSION.to_bytes(4, "little") + b"\0") and len(blob) % ENTRY == 0


def _identifier(word: str) -> Iterator[str]:
    """`readFile_v2.txt` whole and as read, file, v2, txt; 1,000 whole and as 1, 000."""
    parts = [part for piece in _SEAMS.split(word) for part in _CAMEL.split(piece) if part]
    if len(parts) > 1:
        yield word.replace(",", "").casefold()
    yield from (_singular(part.casefold()) for part in parts)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
