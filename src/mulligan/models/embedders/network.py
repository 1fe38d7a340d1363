"""The networks in onnxruntime: a graph without weights (minilm.onnx, e5.onnx), and the weights passed in separately.

`tools/minilm_graph.py` makes the graphs; design/009 says why it is so. Blocking.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mulligan.core.errors import ModelError
from mulligan.models.embedders import quantized
from mulligan.models.embedders.pieces import Pieces, WordPieces
from mulligan.models.weights.known import MINILM

LAYERS = 6
GRAPH = Path(__file__).with_name("minilm.onnx")
E5_GRAPH = Path(__file__).with_name("e5.onnx")

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Network:
    """A loaded network and its tokenizer.

    Attributes:
        weights: must be kept alive: the session reads their memory, but does not own it.
        rows: returns the vectors of pieces, if the session does not contain them.
    """

    session: Any
    pieces: Pieces
    weights: Arrays
    rows: Callable[[Any], Any] | None = None

    def run(self, pieces: Any, mask: Any) -> Any:
        """Maps two int32 arrays of shape (texts, pieces) to a float32 array of shape (texts, pieces, 384)."""
        inputs = {"pieces": pieces, "mask": mask}
        if self.rows:
            used, positions = np.unique(pieces, return_inverse=True)
            inputs |= {"pieces": positions.reshape(pieces.shape).astype(np.int32), "words": self.rows(used)}
        return self.session.run(None, inputs)[0]


def load(name: str, path: Path, threads: int) -> Network:
    """Loads a network, which takes 0.1 to 0.8 s. Raises `ModelError` if the file cannot be used."""
    runtime: Any = import_module("onnxruntime")  # it has no types, and may not be installed where types are checked
    try:
        rows: Callable[[Any], Any] | None = None
        if name == MINILM.name:
            tensors, vocabulary = read(path)
            weights, pieces, graph = arranged(tensors), WordPieces(vocabulary), GRAPH
        else:
            (weights, rows, pieces), graph = quantized.read(path), E5_GRAPH
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads use no CPU
        options.log_severity_level = 3
        values = [runtime.OrtValue.ortvalue_from_numpy(array) for array in weights.values()]
        options.add_external_initializers(list(weights), values)
        session = runtime.InferenceSession(graph.read_bytes(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base class
        raise ModelError(
            f"{path} could not be loaded ({error}). If the file is damaged, run mulligan models remove {name}, then "
            "pull it again."
        ) from error
    return Network(session, pieces, weights, rows)


def read(path: Path) -> tuple[Arrays, list[str]]:
    """The tensors of a safetensors file, mapped and not copied, and the vocabulary after them, one piece per line."""
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
    """The weights by the names that the graph uses.

    Matrices are transposed for multiplication. Queries, keys and values are joined. The only token type is added to the
    positions.
    """
    words, types = tensors["embeddings.word_embeddings.weight"], tensors["embeddings.token_type_embeddings.weight"]
    weights: Arrays = {
        "words": words,
        "places": tensors["embeddings.position_embeddings.weight"] + types[0],
        "gain": tensors["embeddings.LayerNorm.weight"],
        "shift": tensors["embeddings.LayerNorm.bias"],
    }
    parts = ("query", "key", "value")
    for n in range(LAYERS):
        layer = {key.partition(f"layer.{n}.")[2]: value for key, value in tensors.items() if f"layer.{n}." in key}
        three = [f"attention.self.{part}" for part in parts]
        weights[f"three{n}.w"] = np.concatenate([layer[f"{name}.weight"].T for name in three], axis=1)
        weights[f"three{n}.b"] = np.concatenate([layer[f"{name}.bias"] for name in three])
        for ours, theirs in (("mix", "attention.output"), ("up", "intermediate"), ("down", "output")):
            weights[f"{ours}{n}.w"] = layer[f"{theirs}.dense.weight"].T
            weights[f"{ours}{n}.b"] = layer[f"{theirs}.dense.bias"]
        for ours, theirs in (("mixed", "attention.output"), ("out", "output")):
            weights[f"{ours}{n}.gain"] = layer[f"{theirs}.LayerNorm.weight"]
            weights[f"{ours}{n}.shift"] = layer[f"{theirs}.LayerNorm.bias"]
    return {name: np.ascontiguousarray(array, dtype="<f4") for name, array in weights.items()}
