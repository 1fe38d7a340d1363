"""Generates a small biomedical graph for examples and tests. The same seed gives the same files, byte for byte.

The gene symbols are real, so that questions sound realistic. Everything else (which gene regulates which, every number,
disease, drug and pathway) is invented and must not be taken for knowledge.
"""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from mulligan.core.errors import InvalidInput

T = TypeVar("T")
SEED = 7
FIRST_DAY = datetime.date(1990, 1, 1)

NODES = {
    "Gene": "name:string chromosome:string start:int length:int coding:boolean gc:float annotated:date "
    "aliases:string[]",
    "Transcript": "id:string length:int canonical:boolean exon_lengths:int[]",
    "Protein": "id:string name:string residues:int mass:float",
    "Pathway": "name:string category:string curated:date",
    "Disease": "name:string category:string rare:boolean prevalence:float",
    "Drug": "name:string approved:date doses:float[]",
    "CellType": "name:string",
}
EDGES = {
    "REGULATES": ("Gene", "Gene", "effect:string score:float evidence:int"),
    "HAS_TRANSCRIPT": ("Gene", "Transcript", ""),
    "ENCODES": ("Transcript", "Protein", ""),
    "INTERACTS_WITH": ("Protein", "Protein", "score:float"),
    "PARTICIPATES_IN": ("Gene", "Pathway", "role:string"),
    "ASSOCIATED_WITH": ("Gene", "Disease", "score:float since:date"),
    "TARGETS": ("Drug", "Gene", "action:string"),
    "EXPRESSED_IN": ("Gene", "CellType", "level:float"),
}
_PYTHON = {"string": "str", "int": "int", "float": "float", "boolean": "bool", "date": "date"}


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


GENES = _names(
    """EOMES TBX21 GATA1 GATA2 GATA3 GATA4 GATA6 RUNX1 RUNX2 RUNX3 SOX2 SOX9 SOX10 SOX17 POU5F1 NANOG KLF4 MYC MYCN MYB
    TP53 TP63 TP73 MDM2 MDM4 CDKN1A CDKN1B CDKN2A CDKN2B CDK1 CDK2 CDK4 CDK6 CCND1 CCND2 CCNE1 CCNA2 CCNB1 RB1
    E2F1 E2F3 BRCA1 BRCA2 PALB2 RAD51 ATM ATR CHEK1 CHEK2 MLH1 MSH2 MSH6 PMS2 POLE ERCC1 ERCC2 XPA XPC FANCA FANCC
    FANCD2 PARP1 EGFR ERBB2 ERBB3 ERBB4 MET KIT PDGFRA PDGFRB FGFR1 FGFR2 FGFR3 VEGFA KDR FLT1 FLT3 RET ALK ROS1
    NTRK1 NTRK2 IGF1R INSR HRAS KRAS NRAS BRAF RAF1 MAP2K1 MAP2K2 MAPK1 MAPK3 MAPK8 MAPK14 PIK3CA PIK3R1 PTEN AKT1
    AKT2 AKT3 MTOR TSC1 TSC2 RHEB RICTOR RPTOR STK11 PRKAA1 JAK1 JAK2 JAK3 TYK2 STAT1 STAT2 STAT3 STAT4 STAT5A
    STAT5B STAT6 SOCS1 SOCS3 IL2 IL2RA IL4 IL4R IL6 IL6R IL7R IL10 IL12A IL12B IL13 IL15 IL17A IL18 IL21 IL23A
    IL1B IL1R1 TNF TNFRSF1A IFNG IFNGR1 IFNB1 TGFB1 TGFBR1 TGFBR2 SMAD2 SMAD3 SMAD4 SMAD7 BMP2 BMP4 BMPR1A WNT1
    WNT3A FZD7 LRP5 LRP6 APC AXIN1 AXIN2 GSK3B CTNNB1 TCF7 TCF7L2 LEF1 NOTCH1 NOTCH2 NOTCH3 DLL1 DLL4 JAG1 HES1
    HEY1 RBPJ SHH PTCH1 SMO GLI1 GLI2 GLI3 SUFU NFKB1 NFKB2 RELA RELB IKBKB IKBKG TLR2 TLR4 TLR9 MYD88 IRAK4 IRF3
    IRF4 IRF7 CD3E CD4 CD8A CD19 CD28 CD40 CD40LG CD44 CD79A CTLA4 PDCD1 CD274 LAG3 HAVCR2 TIGIT FOXP3 RORC BCL6
    PRDM1 PAX3 PAX5 PAX6 PAX7 PAX8 EBF1 IKZF1 IKZF3 SPI1 CEBPA CEBPB HNF1A HNF4A FOXA1 FOXA2 FOXO1 FOXO3 PPARG
    PPARA RXRA ESR1 ESR2 AR PGR NR3C1 VDR HIF1A EPAS1 VHL ARNT BCL2 BCL2L1 MCL1 BAX BAK1 BID CASP3 CASP8 CASP9 FAS
    FASLG APAF1 XIAP LMNA DES DMD TTN MYH7 MYBPC3 TNNT2 SCN5A KCNQ1 KCNH2 RYR2 CFTR HBB HBA1 HFE APOE APP PSEN1
    PSEN2 MAPT SNCA LRRK2 PRKN PINK1 HTT SOD1 FUS TARDBP SMN1 MECP2 FMR1 DNMT1 DNMT3A DNMT3B TET2 IDH1 IDH2 EZH2
    KMT2A KMT2D CREBBP EP300 HDAC1 HDAC2 SIRT1 ARID1A SMARCA4 SMARCB1"""
)
CELLS = (
    "Alveolar macrophage", "Astrocyte", "B cell", "Basophil", "Cardiomyocyte", "Chondrocyte", "Dendritic cell",
    "Endothelial cell", "Eosinophil", "Erythroblast", "Fibroblast", "Hepatocyte", "Keratinocyte", "Mast cell",
    "Melanocyte", "Monocyte", "Motor neuron", "Natural killer cell", "Neutrophil", "Osteoblast", "Podocyte",
    "Regulatory T cell", "Schwann cell", "Th1 cell",
)  # fmt: skip
STARTS = _names("Bal Cor Dar Fen Gal Hel Ith Jor Kel Lor Mar Nev Ost Pel Quor Rav Sel Tor Ulm Vel Wes Yar Zan")
MIDDLES = _names("a e i o u an en in on un ar er ir or ur al el il ol")
ENDS = _names("bek dan fis gor han kel lin mar nor pel ros sta tin vek wen")
DISEASES = ("syndrome", "disease", "anaemia", "myopathy", "dystrophy", "neuropathy", "deficiency", "carcinoma")
PATHWAYS = ("signalling", "biosynthesis", "degradation", "transport", "repair", "differentiation")
DRUGS = ("mab", "nib", "statin", "pril", "olol", "cillin")


def write_sample(folder: Path, seed: int = SEED) -> dict[str, int]:
    """Write `nodes/`, `edges/` and `schema_info.json` (BioCypher's description); return the rows by label and type.

    Raises `InvalidInput` if the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} exists already and is not empty. Choose another folder.")
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
