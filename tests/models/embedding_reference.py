"""What sentence-transformers makes of 100 texts: see data/make_embeddings_reference.py."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

_FOUND: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "embeddings_reference.json").read_text(encoding="utf-8")
)
TEXTS: list[str] = _FOUND["texts"]
PIECES: list[list[int]] = [np.frombuffer(base64.b64decode(row), "<u2").tolist() for row in _FOUND["pieces"]]
VOCABULARY: dict[str, int] = _FOUND["vocabulary"]


def vectors() -> Any:
    """Rounded to float16, and of length 1 again."""
    rows: Any = np.stack([np.frombuffer(base64.b64decode(row), "<f2") for row in _FOUND["vectors"]]).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
