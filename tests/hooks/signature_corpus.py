"""The recorded outputs of failing commands, and how well signatures tell them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from mulligan.sessions.signature import digest, signature

FOLDER = Path(__file__).parent / "outputs"
HELD_BACK = {"gradle", "systemd", "psql", "mypy"}

Corpus = Mapping[tuple[str, str], Sequence[str]]
"""The outputs by kind and error."""


def corpus() -> Corpus:
    found: dict[tuple[str, str], list[str]] = {}
    for file in sorted(FOLDER.glob("*.txt")):
        for section in ("\n" + file.read_text()).split("\n#### ")[1:]:
            name, _, output = section.partition("\n")
            found.setdefault((file.stem, name), []).append(output)
    return found


def parts(of: Corpus) -> tuple[Corpus, Corpus]:
    """What the rules were tuned on, and what was kept back."""
    last = dict(of.keys())
    held = {key for key in of if key[0] in HELD_BACK or last[key[0]] == key[1]}
    return {key: of[key] for key in of if key not in held}, {key: of[key] for key in held}


def unlike(of: Corpus) -> list[tuple[str, str]]:
    """The errors whose outputs have different signatures, or none."""
    return [
        key for key, outputs in of.items() if len(keys := {digest(signature(one)) for one in outputs}) > 1 or "" in keys
    ]


def alike(of: Corpus) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """The pairs of different errors that share a signature."""
    keys = {key: {digest(signature(one)) for one in outputs} for key, outputs in of.items()}
    return [(a, b) for a, b in combinations(keys, 2) if keys[a] & keys[b]]


if __name__ == "__main__":
    whole = corpus()
    print(f"{sum(map(len, whole.values()))} outputs, {len(Counter(kind for kind, _ in whole))} kinds")
    for name, part in zip(("tuned on", "kept back", "all"), (*parts(whole), whole), strict=True):
        outputs = sum(map(len, part.values()))
        pairs = outputs * (outputs - 2) // 2
        print(
            f"{name}: {len(part) - len(unlike(part))} of {len(part)} errors match themselves; "
            f"{len(alike(part))} of {len(part) * (len(part) - 1) // 2} pairs of different errors match ({pairs} of outputs)"
        )
