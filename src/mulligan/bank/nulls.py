"""How unrelated texts score, by embedder: written by studies/retrieval/nulls.py, not by hand."""

LEVELS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
"""Shares of unrelated pairs; the last numbers of each entry are the scores, in deviations, that so many stay below."""

SHIPPED = {
    ("local:minilm-l6-v2", "lesson"): (0.221, 0.112, (-1.74, -1.02, -0.58, -0.04, 0.59, 1.26, 1.74, 2.70, 3.79)),
    ("local:minilm-l6-v2", "query"): (0.105, 0.114, (-1.63, -1.04, -0.65, -0.15, 0.50, 1.29, 1.91, 3.22, 4.72)),
    ("", "lexical"): (0.534, 0.368, (-0.84, -0.70, -0.59, -0.28, 0.16, 0.74, 1.17, 2.30, 4.31)),
    ("hash:384", "lesson"): (0.200, 0.108, (-1.85, -0.98, -0.57, 0.06, 0.74, 1.39, 1.80, 2.57, 3.46)),
    ("hash:384", "query"): (0.096, 0.118, (-1.93, -1.10, -0.82, -0.15, 0.59, 1.34, 1.82, 2.75, 3.94)),
}
"""By the beginning of the embedder's id and by part: mean, deviation, and the shape of the distribution."""
