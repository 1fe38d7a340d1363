"""The file of 4-bit weights: a small one, packed here, is read as what was packed."""

import struct
from pathlib import Path

import numpy as np
import pytest

from mulligan.models.embedders import quantized

DIM, INNER = 32, 64
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁a"]


def packed(rows: np.ndarray) -> bytes:
    """Whole numbers from -8 to 7 as blocks of scale 1."""
    halves = (rows.reshape(-1, 2, 16) + 8).astype(np.uint8)
    return b"".join(struct.pack("<e", 1) + (low | high << 4).tobytes() for low, high in halves)


def file_of(tensors: dict[str, bytes]) -> bytes:
    texts = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, texts)], dtype="<u4").tobytes()
    head = struct.pack(
        "<4sI7ifi5iQ", b"E5S1", 1, DIM, 1, 4, INNER, 6, 8, 2, 1e-12, 32, 6, 0, 2, 1, 3, len(b"".join(texts))
    )
    folded = struct.pack("<IB", ord("A"), 1) + "a".encode("utf-32-le")
    body = head + ends + np.zeros(6, "<f4").tobytes() + b"".join(texts) + struct.pack("<iI", 1, len(folded)) + folded
    start = len(body) + 4 + sum(23 + len(name) for name in tensors)
    body += struct.pack("<i", len(tensors))
    for name, data in tensors.items():
        body += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", 0, 0, start, len(data))
        start += len(data)
    return body + b"".join(tensors.values())


def test_weights_and_pieces_are_read_as_they_were_packed(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    sizes = {
        "q": (DIM, DIM),
        "k": (DIM, DIM),
        "v": (DIM, DIM),
        "ao": (DIM, DIM),
        "fi": (INNER, DIM),
        "fo": (DIM, INNER),
    }
    wanted = {name: chance.integers(-8, 8, size) for name, size in sizes.items()}
    words = chance.integers(-8, 8, (6, DIM))
    plain = {
        name: chance.random(DIM, np.float32)
        for name in ("emb.ln.w", "emb.ln.b", "l0.aln.w", "l0.aln.b", "l0.oln.w", "l0.oln.b")
    }
    plain |= {f"l0.{name}.b": chance.random(size[0], np.float32) for name, size in sizes.items()}
    plain |= {"emb.pos": chance.random(8 * DIM, np.float32), "emb.type": chance.random(2 * DIM, np.float32)}
    tensors = {"emb.word": packed(words)} | {name: array.tobytes() for name, array in plain.items()}
    path = tmp_path / "weights.bin"
    path.write_bytes(file_of(tensors | {f"l0.{name}.w": packed(array) for name, array in wanted.items()}))
    weights, rows, pieces = quantized.read(path)
    assert (rows(np.array([5, 0])) == words[[5, 0]]).all()
    assert (weights["three0.w"] == np.concatenate([wanted[part].T for part in "qkv"], axis=1)).all()
    assert [weights[f"{ours}0.w"].tolist() for ours in ("mix", "up", "down")] == [
        wanted[theirs].T.tolist() for theirs in ("ao", "fi", "fo")
    ]
    assert np.allclose(weights["places"][3], plain["emb.pos"][3 * DIM : 4 * DIM] + plain["emb.type"][:DIM])
    assert pieces.numbers("A", 256) == [0, 5, 2]


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(ValueError, match="does not begin with the header"):
        quantized.read(path)
