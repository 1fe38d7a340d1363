"""Generates a small biomedical graph for examples and tests. The same seed gives the same files, byte for byte.

The gene symbols are real, so that questions sound realistic. Everything else (which gene regulates which, every number,
disease, drug and pathway) is invented and must not be taken for knowledge.
"""

from __future__ import annotations

import csv
import datetime
import json
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from mulligan.plugins import InvalidInput

T = TypeVar("T")
SEED = 7
FIRST_DAY = datetime.date(1990, 1, 1)

_DATA = tomllib.loads(Path(__file__).with_name("sample.toml").read_text(encoding="utf-8"))
NODES: dict[str, str] = _DATA["nodes"]
EDGES: dict[str, tuple[str, str, str]] = _DATA["edges"]
GENES, STARTS, MIDDLES, ENDS, DISEASES, PATHWAYS, DRUGS = (
    tuple(_DATA[name].split()) for name in ("genes", "starts", "middles", "ends", "diseases", "pathways", "drugs")
)
CELLS: list[str] = _DATA["cells"]
_PYTHON = {"string": "str", "int": "int", "float": "float", "boolean": "bool", "date": "date"}


def write_sample(folder: Path, seed: int = SEED) -> dict[str, int]:
    """Write `nodes/`, `edges/` and `schema_info.json` (BioCypher's description); return the rows by label and type.

    Raises `InvalidInput` if the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} already exists and is not empty. Choose another folder.")
    made = _Generator(Random(seed))
    for label, columns in NODES.items():
        _write(folder / "nodes" / f"{label}.csv", columns.split(), made.nodes[label])
    for label, (source, target, columns) in EDGES.items():
        header = [f"from:{source}", f"to:{target}", *columns.split()]
        _write(folder / "edges" / f"{label}.csv", header, made.edges[label])
    (folder / "schema_info.json").write_text(json.dumps(schema_info(), indent=2) + "\n", encoding="utf-8")
    return {label: len(rows) for label, rows in (*made.nodes.items(), *made.edges.items())}


def schema_info() -> dict[str, Any]:
    """Return BioCypher's schema_info of the sample, which `BioCypherPromptEngine` takes."""
    info: dict[str, Any] = {"is_schema_info": True}
    for label, columns in NODES.items():
        info[_spelled(label)] = {
            "represented_as": "node",
            "present_in_knowledge_graph": True,
            "is_relationship": False,
            "properties": _properties(columns),
        }
    for label, (source, target, columns) in EDGES.items():
        info[f"{_spelled(source)} {label.lower().replace('_', ' ')} {_spelled(target)}"] = {
            "represented_as": "edge",
            "present_in_knowledge_graph": True,
            "is_relationship": True,
            "label_as_edge": label,
            "source": _spelled(source),
            "target": _spelled(target),
            "properties": _properties(columns),
        }
    return info


class _Generator:
    """Generates the rows. It uses `random()` alone, the one method whose numbers are the same in every Python."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.nodes: dict[str, list[Sequence[Any]]] = {label: [] for label in NODES}
        self.edges: dict[str, list[Sequence[Any]]] = {label: [] for label in EDGES}
        self._genes()
        self._things()
        self._relations()

    def _genes(self) -> None:
        for gene in GENES:
            coding = self._share() < 0.93
            aliases = [f"{gene[:3]}{self._whole(10, 99)}" for _ in range(self._whole(0, 2))]
            chromosome = self._one([*map(str, range(1, 23)), "X"])
            start, length = self._whole(10_000, 200_000_000), self._whole(800, 250_000)
            row = (gene, chromosome, start, length, coding, self._score(), self._day(), aliases or None)
            self.nodes["Gene"].append(row)
            for n in range(self._whole(1, 5)):
                self._transcript(gene, f"{gene}-{201 + n}", coding and self._share() < 0.9, n == 0)

    def _transcript(self, gene: str, id: str, coding: bool, canonical: bool) -> None:
        exons = [self._whole(40, 900) for _ in range(self._whole(1, 8))]
        self.nodes["Transcript"].append((id, sum(exons), canonical, exons))
        self.edges["HAS_TRANSCRIPT"].append((gene, id))
        if coding:
            residues = max(20, sum(exons) // 3 - 1)
            protein = f"{id}-p"
            self.nodes["Protein"].append((protein, f"{gene} protein", residues, round(residues * 0.11, 2)))
            self.edges["ENCODES"].append((id, protein))

    def _things(self) -> None:
        for name, kind in self._named(60, PATHWAYS):
            self.nodes["Pathway"].append((name, kind, self._day()))
        for name, kind in self._named(120, DISEASES):
            rare = self._share() < 0.6
            prevalence = round(self._share() * (0.0005 if rare else 0.05), 7)
            self.nodes["Disease"].append((name, kind, rare, prevalence))
        for stem, ending in self._named(150, DRUGS):
            doses = sorted({float(self._whole(1, 40) * 5) / 2 for _ in range(3)})
            drug = stem.split()[0] + ending
            self.nodes["Drug"].append((drug, self._day() if self._share() < 0.8 else None, doses))
        self.nodes["CellType"] += [(name,) for name in CELLS]

    def _relations(self) -> None:
        genes = GENES
        regulators = [gene for gene in genes if gene == "EOMES" or self._share() < 0.3]
        for gene in regulators:
            for other in self._some([g for g in genes if g != gene], self._whole(4, 14)):
                effect = self._one(("activates", "represses"))
                self.edges["REGULATES"].append((gene, other, effect, self._score(), self._whole(1, 12)))
        proteins = self._keys("Protein")
        for n, protein in enumerate(proteins[:-1]):
            for other in self._some(proteins[n + 1 : n + 200], self._whole(0, 3)):
                self.edges["INTERACTS_WITH"].append((protein, other, self._score()))
        for gene in genes:
            for pathway in self._some(self._keys("Pathway"), self._whole(0, 5)):
                self.edges["PARTICIPATES_IN"].append((gene, pathway, self._one(("core", "regulator", "target"))))
            for disease in self._some(self._keys("Disease"), self._whole(0, 4)):
                self.edges["ASSOCIATED_WITH"].append((gene, disease, self._score(), self._day()))
            for cell in self._some(self._keys("CellType"), self._whole(1, 7)):
                self.edges["EXPRESSED_IN"].append((gene, cell, round(self._share() * 100, 1)))
        for drug in self._keys("Drug"):
            for gene in self._some(genes, self._whole(1, 3)):
                self.edges["TARGETS"].append((drug, gene, self._one(("inhibits", "binds", "activates"))))

    def _named(self, count: int, kinds: Sequence[str]) -> Iterable[tuple[str, str]]:
        """Yield distinct invented names, each with the kind of thing that it names."""
        seen: set[str] = set()
        while len(seen) < count:
            stem = self._one(STARTS) + self._one(MIDDLES) + self._one(ENDS)
            if stem not in seen:
                seen.add(stem)
                kind = self._one(kinds)
                yield f"{stem} {kind}", kind

    def _keys(self, label: str) -> list[Any]:
        return [row[0] for row in self.nodes[label]]

    def _share(self) -> float:
        return self._random.random()

    def _score(self) -> float:
        return round(self._share(), 3)

    def _whole(self, least: int, most: int) -> int:
        return least + int(self._share() * (most - least + 1))

    def _one(self, of: Sequence[T]) -> T:
        return of[int(self._share() * len(of))]

    def _some(self, of: Sequence[T], count: int) -> list[T]:
        left = list(of)
        return [left.pop(int(self._share() * len(left))) for _ in range(min(count, len(left)))]

    def _day(self) -> str:
        return (FIRST_DAY + datetime.timedelta(days=self._whole(0, 12_000))).isoformat()


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([_cell(value) for value in row] for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return "|".join(_cell(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _spelled(label: str) -> str:
    """Spell a label as BioCypher does: CellType becomes "cell type"."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in label).strip()


def _properties(columns: str) -> dict[str, str]:
    typed = (column.partition(":") for column in columns.split())
    return {name: _PYTHON[kind.removesuffix("[]")] + ("[]" if kind.endswith("[]") else "") for name, _, kind in typed}
