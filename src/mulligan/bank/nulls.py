"""How unrelated texts score, by embedder: written by studies/retrieval/nulls.py from public texts, not by hand."""

LEVELS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""Shares of unrelated pairs; the last numbers of each entry are the scores, in deviations, that so many stay below."""

SHIPPED = {
    ("local:minilm-l6-v2", "lesson"): (0.22, 0.108, (-1.64, -0.99, -0.56, -0.04, 0.55, 1.18, 1.63, 2.57, 3.67)),
    ("local:minilm-l6-v2", "query"): (0.105, 0.12, (-1.61, -1.05, -0.69, -0.21, 0.4, 1.15, 1.74, 3.02, 4.54)),
    ("", "lexical"): (0.25, 0.25, (-1.06, -0.88, -0.74, -0.38, 0.12, 0.78, 1.28, 2.57, 4.74)),
}
"""By beginning of the embedder's id and part: mean, deviation, and the shape of the distribution."""
