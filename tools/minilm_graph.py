"""Make `minilm.onnx` and `e5.onnx` in src/mulligan/models/embedders: the graphs of the networks without their weights.

Both are BERT networks of one width. E5 has twelve layers, and the vectors of its 250,000 words are an input.

    python tools/minilm_graph.py

An ONNX model is a protocol buffer. The few fields that are needed are written by hand here, because the `onnx` package
would be needed for nothing else (design/009). A test compares the files with what this makes.
"""

from __future__ import annotations

import struct
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "src" / "mulligan" / "models" / "embedders"
GRAPHS = {"minilm": (6, 30522), "e5": (12, 0)}
"""The layers of each network, and its words; 0: they are an input."""
DIM, HEADS, INNER, PLACES = 384, 12, 1536, 512
EPSILON = 1e-12
FLOAT, INT32 = 1, 6
FUSED = "com.microsoft"
"""The domain of onnxruntime's own operators, which do in one pass what takes five or six of the standard's."""
OPERATORS = (("", 17), (FUSED, 1))
FORMAT = 8


def shapes(layers: int, words: int) -> dict[str, tuple[int, ...]]:
    """The tensors that `mulligan.models.embedders.network` hands over, in its order."""
    found: dict[str, tuple[int, ...]] = {"words": (words, DIM)} if words else {}
    found |= {"places": (PLACES, DIM), "gain": (DIM,), "shift": (DIM,)}
    for n in range(layers):
        for name, size in (
            ("three", (DIM, 3 * DIM)),
            ("mix", (DIM, DIM)),
            ("up", (DIM, INNER)),
            ("down", (INNER, DIM)),
        ):
            found[f"{name}{n}.w"] = size
            found[f"{name}{n}.b"] = size[1:]
        for name in ("mixed", "out"):
            found[f"{name}{n}.gain"] = found[f"{name}{n}.shift"] = (DIM,)
    return found


def graph(name: str) -> bytes:
    """The network of that name without its weights."""
    layers, words = GRAPHS[name]
    ids = ["pieces", "", "words", "places", "", "gain", "shift", "mask"]
    nodes = [_node("EmbedLayerNormalization", ids, ["x", "lengths"], FUSED, epsilon=EPSILON)]
    x = "x"
    for n in range(layers):
        nodes += [
            _node("Attention", [x, f"three{n}.w", f"three{n}.b", "lengths"], [f"seen{n}"], FUSED, num_heads=HEADS),
            _node("MatMul", [f"seen{n}", f"mix{n}.w"], [f"mix{n}"]),
            _sum(f"mix{n}", x, f"mixed{n}"),
            _node("MatMul", [f"mixed{n}", f"up{n}.w"], [f"up{n}"]),
            _node("BiasGelu", [f"up{n}", f"up{n}.b"], [f"bent{n}"], FUSED),
            _node("MatMul", [f"bent{n}", f"down{n}.w"], [f"down{n}"]),
            _sum(f"down{n}", f"mixed{n}", f"out{n}"),
        ]
        x = f"out{n}"
    parts = [*(_field(1, node) for node in nodes), _field(2, name)]
    parts += [_field(5, _weight(name, shape)) for name, shape in shapes(layers, words).items()]
    parts += [_field(11, _value(name, INT32, "texts", "pieces")) for name in ("pieces", "mask")]
    if not words:
        parts.append(_field(11, _value("words", FLOAT, "words", DIM)))
    parts.append(_field(12, _value(x, FLOAT, "texts", "pieces", DIM)))
    operators = b"".join(_field(8, _field(1, domain) + _field(2, version)) for domain, version in OPERATORS)
    return _field(1, FORMAT) + _field(7, b"".join(parts)) + operators


def _sum(new: str, old: str, to: str) -> bytes:
    """What a layer adds to its input, with its bias, brought to one scale."""
    took = [new, old, f"{to}.gain", f"{to}.shift", f"{new}.b"]
    return _node("SkipLayerNormalization", took, [to], FUSED, epsilon=EPSILON)


def _node(operator: str, took: list[str], gives: list[str], domain: str = "", **settings: float) -> bytes:
    parts = [_field(1, name) for name in took] + [_field(2, name) for name in gives] + [_field(4, operator)]
    for name, value in settings.items():
        kind = _field(20, 1) + _field(2, value) if isinstance(value, float) else _field(20, 2) + _field(3, value)
        parts.append(_field(5, _field(1, name) + kind))
    return b"".join(parts) + _field(7, domain)


def _weight(name: str, shape: tuple[int, ...]) -> bytes:
    """A tensor whose numbers are handed over apart from the graph: its `location` has to be named, and is not read."""
    where = _field(13, _field(1, "location") + _field(2, "memory")) + _field(14, 1)
    return b"".join(_field(1, size) for size in shape) + _field(2, FLOAT) + _field(8, name) + where


def _value(name: str, kind: int, *shape: str | int) -> bytes:
    sizes = b"".join(_field(1, _field(2 if isinstance(size, str) else 1, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, sizes)))


def _field(number: int, value: int | float | str | bytes) -> bytes:
    """One field of a protocol buffer: whole numbers as varints, others as 4 bytes, texts and messages with a length."""
    match value:
        case int():
            return _varint(number << 3) + _varint(value)
        case float():
            return _varint(number << 3 | 5) + struct.pack("<f", value)
        case str():
            return _field(number, value.encode())
        case bytes():
            return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


if __name__ == "__main__":
    for name in GRAPHS:
        (FOLDER / f"{name}.onnx").write_bytes(graph(name))
