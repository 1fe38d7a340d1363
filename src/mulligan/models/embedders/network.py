"""The MiniLM network as onnxruntime wants it: a graph of 4.6 KB, made in memory, and the weights beside it.

The graph is an ONNX model, which is a protocol buffer; the few fields that are needed are written by hand, because the
`onnx` package would be needed for nothing else (design/009-embedder.md). Blocking; knows nothing of names and texts.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mulligan.core.errors import ModelError

DIM, LAYERS, HEADS = 384, 6, 12
EPSILON = 1e-12
FLOAT, INT32 = 1, 6
FUSED = "com.microsoft"
"""The domain of onnxruntime's own operators, which do in one pass what takes five or six of the standard's."""
OPERATORS = (("", 17), (FUSED, 1))
FORMAT = 8

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Network:
    """`session.run(None, {"pieces": ..., "mask": ...})` takes two int32 arrays of shape (texts, pieces) and gives one
    float32 array of shape (texts, pieces, 384). It reads the memory of `weights` and does not hold it: keep this."""

    session: Any
    vocabulary: list[str]
    weights: Arrays


def load(path: Path, threads: int) -> Network:
    """Takes about 0.1 s. Raises `ModelError` for a file that is not what it should be."""
    runtime: Any = import_module("onnxruntime")  # has no types; strict checks also run where it is not installed
    try:
        tensors, vocabulary = read(path)
        weights = arranged(tensors)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads should be idle
        options.log_severity_level = 3
        held = [runtime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), held)
        session = runtime.InferenceSession(graph(weights), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no base of their own
        raise ModelError(
            f"{path} could not be loaded ({error}). If the file is broken: mulligan models remove minilm-l6-v2, and "
            "pull it again."
        ) from error
    return Network(session, vocabulary, weights)


def read(path: Path) -> tuple[Arrays, list[str]]:
    """The tensors of a safetensors file, mapped and not copied, and the vocabulary that follows them, one a line."""
    import numpy as np

    raw: Any = np.memmap(path, np.uint8, "r")
    start = 8 + int(raw[:8].view("<u8")[0])
    header: dict[str, Any] = json.loads(raw[8:start].tobytes())
    tensors: Arrays = {}
    end = 0
    for name, about in header.items():
        if name == "__metadata__":
            continue
        first, last = about["data_offsets"]
        end = max(end, last)
        if about["dtype"] == "F32":
            tensors[name] = raw[start + first : start + last].view("<f4").reshape(about["shape"])
    return tensors, raw[start + end :].tobytes().decode().rstrip("\n").split("\n")


def arranged(tensors: Arrays) -> Arrays:
    """The weights by the names that the graph uses: matrices turned as they are multiplied, queries, keys and values
    side by side, the one token type that there is added to the positions."""
    import numpy as np

    words, types = tensors["embeddings.word_embeddings.weight"], tensors["embeddings.token_type_embeddings.weight"]
    found: Arrays = {
        "words": words,
        "places": tensors["embeddings.position_embeddings.weight"] + types[0],
        "gain": tensors["embeddings.LayerNorm.weight"],
        "shift": tensors["embeddings.LayerNorm.bias"],
    }
    parts = ("query", "key", "value")
    for n in range(LAYERS):
        layer = {key.partition(f"layer.{n}.")[2]: value for key, value in tensors.items() if f"layer.{n}." in key}
        three = [f"attention.self.{part}" for part in parts]
        found[f"three{n}.w"] = np.concatenate([layer[f"{name}.weight"].T for name in three], axis=1)
        found[f"three{n}.b"] = np.concatenate([layer[f"{name}.bias"] for name in three])
        for ours, theirs in (("mix", "attention.output"), ("up", "intermediate"), ("down", "output")):
            found[f"{ours}{n}.w"] = layer[f"{theirs}.dense.weight"].T
            found[f"{ours}{n}.b"] = layer[f"{theirs}.dense.bias"]
        for ours, theirs in (("mixed", "attention.output"), ("out", "output")):
            found[f"{ours}{n}.gain"] = layer[f"{theirs}.LayerNorm.weight"]
            found[f"{ours}{n}.shift"] = layer[f"{theirs}.LayerNorm.bias"]
    return {name: np.ascontiguousarray(array, dtype="<f4") for name, array in found.items()}


def graph(weights: Mapping[str, Any]) -> bytes:
    """The network without its weights."""
    ids = ["pieces", "", "words", "places", "", "gain", "shift", "mask"]
    nodes = [_node("EmbedLayerNormalization", ids, ["x", "lengths"], FUSED, epsilon=EPSILON)]
    x = "x"
    for n in range(LAYERS):
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
    parts = [*(_field(1, node) for node in nodes), _field(2, "minilm")]
    parts += [_field(5, _weight(name, array.shape)) for name, array in weights.items()]
    parts += [_field(11, _value(name, INT32, "texts", "pieces")) for name in ("pieces", "mask")]
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
