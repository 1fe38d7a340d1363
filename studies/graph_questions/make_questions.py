"""Writes `questions_d.json`: forty questions to the sample graph, drawn with a fixed seed from templates.

The right values are computed from the rows of the sample in Python, and no query is run. The templates were written by
somebody who had read the rules, but before any model or rule had seen a question of them.

    python studies/graph_questions/make_questions.py > studies/graph_questions/questions_d.json
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from mulligan.graphs.sample import write_sample

SEED = 158
MOST = 15
"""The most right values of a question."""
Row = dict[str, str]


class Sample:
    """The rows of the sample graph, by label and by relationship type."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            write_sample(Path(folder) / "files")
            self.rows = {
                path.stem: [
                    {
                        name if name.startswith(("from", "to:")) else name.partition(":")[0]: text
                        for name, text in row.items()
                    }
                    for row in csv.DictReader(path.open(encoding="utf-8"))
                ]
                for path in sorted((Path(folder) / "files").glob("*/*.csv"))
            }

    def ends(self, type: str, **kept: str) -> list[tuple[str, str]]:
        """The ends of the relationships of this type that have these values."""
        rows = [row for row in self.rows[type] if all(row[name] == value for name, value in kept.items())]
        return [tuple(list(row.values())[:2]) for row in rows]  # pyright: ignore

    def targets(self, type: str, source: str, **kept: str) -> set[str]:
        return {b for a, b in self.ends(type, **kept) if a == source}

    def sources(self, type: str, target: str, **kept: str) -> set[str]:
        return {a for a, b in self.ends(type, **kept) if b == target}

    def names(self, label: str, test: Callable[[Row], bool] = lambda row: True, key: str = "name") -> set[str]:
        return {row[key] for row in self.rows[label] if test(row)}


S = Sample()
GENE = sorted(S.names("Gene"))
DRUG, PATHWAY, DISEASE, CELL = (sorted(S.names(label)) for label in ("Drug", "Pathway", "Disease", "CellType"))
PROTEIN, TRANSCRIPT = (sorted(S.names(label, key="id")) for label in ("Protein", "Transcript"))
REGULATOR = sorted({a for a, _ in S.ends("REGULATES")})
CHROMOSOME = sorted(S.names("Gene", key="chromosome"))


def value(label: str, key: str, id: str, column: str, read: Callable[[str], Any] = str) -> list[Any]:
    return [read(row[column]) for row in S.rows[label] if row[key] == id and row[column]]


def plural(cell: str) -> str:
    return cell.lower() + "s" if cell.islower() or cell[1:].islower() else cell + "s"


Template = tuple[str, str, Callable[[Random], tuple[dict[str, str], Any]], str]
"""Kind, question, what draws the names and the right values, and a query."""


def one(name: str, of: list[str], right: Callable[[str], Any]) -> Callable[[Random], tuple[dict[str, str], Any]]:
    def draw(random: Random) -> tuple[dict[str, str], Any]:
        chosen = random.choice(of)
        return {name: chosen}, right(chosen)

    return draw


def two(
    first: tuple[str, list[str]], second: tuple[str, list[str]], right: Callable[[str, str], Any]
) -> Callable[[Random], tuple[dict[str, str], Any]]:
    def draw(random: Random) -> tuple[dict[str, str], Any]:
        a, b = random.choice(first[1]), random.choice(second[1])
        return {first[0]: a, second[0]: b}, right(a, b) if a != b else []

    return draw


def genes_at(chromosome: str) -> set[str]:
    return S.names("Gene", lambda row: row["chromosome"] == chromosome)


ABSENT_GENES = ["COL4A5", "GJB2", "OTC", "USH2A"]
TEMPLATES: list[Template] = [
    ("lookup", "Where on its chromosome does {g} start?",
     one("g", GENE, lambda g: value("Gene", "name", g, "start", int)),
     "MATCH (g:Gene {name: '{g}'}) RETURN g.start AS start"),
    ("filter", "List the {c} diseases that more than 2 percent of people have.",
     one("c", ["carcinoma", "syndrome", "anaemia", "myopathy", "deficiency"],
         lambda c: S.names("Disease", lambda r: r["category"] == c and float(r["prevalence"]) > 0.02)),
     "MATCH (d:Disease {category: '{c}'}) WHERE d.prevalence > 0.02 RETURN d.name AS name"),
    ("count", "How many transcripts of {g} are canonical?",
     one("g", GENE, lambda g: [len({t for t in S.targets("HAS_TRANSCRIPT", g)
                                    if value("Transcript", "id", t, "canonical") == ["true"]})]),
     "MATCH (:Gene {name: '{g}'})-[:HAS_TRANSCRIPT]->(t:Transcript) WHERE t.canonical RETURN count(DISTINCT t) AS n"),
    ("path", "Which cell types express a gene that {d} targets?",
     one("d", DRUG, lambda d: {c for g in S.targets("TARGETS", d) for c in S.targets("EXPRESSED_IN", g)}),
     "MATCH (:Drug {name: '{d}'})-[:TARGETS]->(:Gene)-[:EXPRESSED_IN]->(c:CellType) RETURN DISTINCT c.name AS name"),
    ("negation", "Which genes in {p} are not expressed in {c}?",
     two(("p", PATHWAY), ("c", CELL), lambda p, c: S.sources("PARTICIPATES_IN", p) - S.sources("EXPRESSED_IN", c)),
     "MATCH (g:Gene)-[:PARTICIPATES_IN]->(:Pathway {name: '{p}'}) "
     "WHERE NOT (g)-[:EXPRESSED_IN]->(:CellType {name: '{c}'}) RETURN g.name AS name"),
    ("lookup", "What doses does {d} come in?",
     one("d", DRUG, lambda d: [list(map(float, row["doses"].split("|"))) for row in S.rows["Drug"]
                               if row["name"] == d]),
     "MATCH (d:Drug {name: '{d}'}) RETURN d.doses AS doses"),
    ("filter", "Which genes does {g} inhibit or repress?",
     one("g", REGULATOR, lambda g: S.targets("REGULATES", g, effect="represses")),
     "MATCH (:Gene {name: '{g}'})-[:REGULATES {effect: 'represses'}]->(g:Gene) RETURN g.name AS name"),
    ("count", "What is the number of drugs that act on {g}?",
     one("g", GENE, lambda g: [len(S.sources("TARGETS", g))]),
     "MATCH (d:Drug)-[:TARGETS]->(:Gene {name: '{g}'}) RETURN count(DISTINCT d) AS n"),
    ("path", "Find the drugs whose targets regulate {g}.",
     one("g", GENE, lambda g: {d for r in S.sources("REGULATES", g) for d in S.sources("TARGETS", r)}),
     "MATCH (d:Drug)-[:TARGETS]->(:Gene)-[:REGULATES]->(:Gene {name: '{g}'}) RETURN DISTINCT d.name AS name"),
    ("absent", "Which transcripts does {x} have?", one("x", ABSENT_GENES, lambda x: None),
     "MATCH (:Gene {name: '{x}'})-[:HAS_TRANSCRIPT]->(t:Transcript) RETURN t.id AS id"),
    ("lookup", "How heavy is the protein {r}?", one("r", PROTEIN, lambda r: value("Protein", "id", r, "mass", float)),
     "MATCH (p:Protein {id: '{r}'}) RETURN p.mass AS mass"),
    ("filter", "Which genes on chromosome {n} have a GC content below 0.2?",
     one("n", CHROMOSOME, lambda n: S.names("Gene", lambda r: r["chromosome"] == n and float(r["gc"]) < 0.2)),
     "MATCH (g:Gene {chromosome: '{n}'}) WHERE g.gc < 0.2 RETURN g.name AS name"),
    ("count", "How many rare diseases is {g} associated with?",
     one("g", GENE, lambda g: [len({d for d in S.targets("ASSOCIATED_WITH", g)
                                    if value("Disease", "name", d, "rare") == ["true"]})]),
     "MATCH (:Gene {name: '{g}'})-[:ASSOCIATED_WITH]->(d:Disease) WHERE d.rare RETURN count(DISTINCT d) AS n"),
    ("path", "Which genes does {a} regulate that {b} regulates as well?",
     two(("a", REGULATOR), ("b", REGULATOR), lambda a, b: S.targets("REGULATES", a) & S.targets("REGULATES", b)),
     "MATCH (:Gene {name: '{a}'})-[:REGULATES]->(g:Gene)<-[:REGULATES]-(:Gene {name: '{b}'}) "
     "RETURN DISTINCT g.name AS name"),
    ("negation", "Which drugs that target {g} do not inhibit it?",
     one("g", GENE, lambda g: S.sources("TARGETS", g) - S.sources("TARGETS", g, action="inhibits")),
     "MATCH (d:Drug)-[t:TARGETS]->(:Gene {name: '{g}'}) WHERE t.action <> 'inhibits' RETURN d.name AS name"),
    ("lookup", "In which pathways is {g} a regulator?",
     one("g", GENE, lambda g: S.targets("PARTICIPATES_IN", g, role="regulator")),
     "MATCH (:Gene {name: '{g}'})-[:PARTICIPATES_IN {role: 'regulator'}]->(p:Pathway) RETURN p.name AS name"),
    ("filter", "Which drugs got their approval before 1992?",
     one("x", [""], lambda x: S.names("Drug", lambda r: bool(r["approved"]) and r["approved"] < "1992")),
     "MATCH (d:Drug) WHERE d.approved < date('1992-01-01') RETURN d.name AS name"),
    ("count", "How many genes take part in {p}?", one("p", PATHWAY, lambda p: [len(S.sources("PARTICIPATES_IN", p))]),
     "MATCH (g:Gene)-[:PARTICIPATES_IN]->(:Pathway {name: '{p}'}) RETURN count(DISTINCT g) AS n"),
    ("path", "Which drugs could be tried against {s}, going by the genes associated with it?",
     one("s", DISEASE, lambda s: {d for g in S.sources("ASSOCIATED_WITH", s) for d in S.sources("TARGETS", g)}),
     "MATCH (d:Drug)-[:TARGETS]->(:Gene)-[:ASSOCIATED_WITH]->(:Disease {name: '{s}'}) RETURN DISTINCT d.name AS name"),
    ("absent", "How many genes does the drug {x} act on?",
     one("x", ["ibuprofen", "Herceptin", "metformin"], lambda x: None),
     "MATCH (:Drug {name: '{x}'})-[:TARGETS]->(g:Gene) RETURN g.name AS name"),
    ("lookup", "Show me the diseases linked to {g}.", one("g", GENE, lambda g: S.targets("ASSOCIATED_WITH", g)),
     "MATCH (:Gene {name: '{g}'})-[:ASSOCIATED_WITH]->(d:Disease) RETURN d.name AS name"),
    ("filter", "Which {k} pathways were curated between 2000 and 2009?",
     one("k", ["signalling", "transport", "repair", "degradation", "biosynthesis"],
         lambda k: S.names("Pathway", lambda r: r["category"] == k and "2000" <= r["curated"] < "2010")),
     "MATCH (p:Pathway {category: '{k}'}) WHERE p.curated >= date('2000-01-01') AND p.curated <= date('2009-12-31') "
     "RETURN p.name AS name"),
    ("count", "How many proteins does {g} encode?",
     one("g", GENE, lambda g: [len({p for t in S.targets("HAS_TRANSCRIPT", g) for p in S.targets("ENCODES", t)})]),
     "MATCH (:Gene {name: '{g}'})-[:HAS_TRANSCRIPT]->(:Transcript)-[:ENCODES]->(p:Protein) "
     "RETURN count(DISTINCT p) AS n"),
    ("path", "Which pathways involve a gene linked to {s}?",
     one("s", DISEASE, lambda s: {p for g in S.sources("ASSOCIATED_WITH", s) for p in S.targets("PARTICIPATES_IN", g)}),
     "MATCH (p:Pathway)<-[:PARTICIPATES_IN]-(:Gene)-[:ASSOCIATED_WITH]->(:Disease {name: '{s}'}) "
     "RETURN DISTINCT p.name AS name"),
    ("negation", "Which genes on chromosome {n} take part in no pathway?",
     one("n", CHROMOSOME, lambda n: genes_at(n) - {g for g, _ in S.ends("PARTICIPATES_IN")}),
     "MATCH (g:Gene {chromosome: '{n}'}) WHERE NOT (g)-[:PARTICIPATES_IN]->(:Pathway) RETURN g.name AS name"),
    ("lookup", "Which gene does the transcript {t} belong to?",
     one("t", TRANSCRIPT, lambda t: S.sources("HAS_TRANSCRIPT", t)),
     "MATCH (g:Gene)-[:HAS_TRANSCRIPT]->(:Transcript {id: '{t}'}) RETURN g.name AS name"),
    ("filter", "Which genes regulate {g} with a score of at least 0.5?",
     one("g", GENE, lambda g: {next(iter(r.values())) for r in S.rows["REGULATES"]
                               if list(r.values())[1] == g and float(r["score"]) >= 0.5}),
     "MATCH (g:Gene)-[r:REGULATES]->(:Gene {name: '{g}'}) WHERE r.score >= 0.5 RETURN g.name AS name"),
    ("count", "In how many cell types is {g} expressed?", one("g", GENE, lambda g: [len(S.targets("EXPRESSED_IN", g))]),
     "MATCH (:Gene {name: '{g}'})-[:EXPRESSED_IN]->(c:CellType) RETURN count(DISTINCT c) AS n"),
    ("path", "Which diseases are associated with both {a} and {b}?",
     two(("a", GENE), ("b", GENE), lambda a, b: S.targets("ASSOCIATED_WITH", a) & S.targets("ASSOCIATED_WITH", b)),
     "MATCH (:Gene {name: '{a}'})-[:ASSOCIATED_WITH]->(d:Disease)<-[:ASSOCIATED_WITH]-(:Gene {name: '{b}'}) "
     "RETURN DISTINCT d.name AS name"),
    ("absent", "Which diseases is {x} linked to?", one("x", ABSENT_GENES, lambda x: None),
     "MATCH (:Gene {name: '{x}'})-[:ASSOCIATED_WITH]->(d:Disease) RETURN d.name AS name"),
    ("lookup", "What category of pathway is {p}?", one("p", PATHWAY, lambda p: value("Pathway", "name", p, "category")),
     "MATCH (p:Pathway {name: '{p}'}) RETURN p.category AS category"),
    ("filter", "Which gene on chromosome {n} is the shortest?",
     one("n", CHROMOSOME, lambda n: [min((r for r in S.rows["Gene"] if r["chromosome"] == n),
                                         key=lambda r: int(r["length"]))["name"]]),
     "MATCH (g:Gene {chromosome: '{n}'}) RETURN g.name AS name ORDER BY g.length LIMIT 1"),
    ("count", "How many {c} are not rare?",
     one("c", ["carcinomas", "syndromes", "anaemias", "dystrophies"],
         lambda c: [len(S.names("Disease", lambda r: r["rare"] == "false" and r["category"] == (
             "dystrophy" if c == "dystrophies" else c[:-1])))]),
     "MATCH (d:Disease {category: '{=c}'}) WHERE NOT d.rare RETURN count(d) AS n"),
    ("path", "Which proteins come from the transcripts of {g}?",
     one("g", GENE, lambda g: {p for t in S.targets("HAS_TRANSCRIPT", g) for p in S.targets("ENCODES", t)}),
     "MATCH (:Gene {name: '{g}'})-[:HAS_TRANSCRIPT]->(:Transcript)-[:ENCODES]->(p:Protein) RETURN p.id AS id"),
    ("negation", "Which genes regulated by {g} are not targeted by any drug?",
     one("g", REGULATOR, lambda g: S.targets("REGULATES", g) - {b for _, b in S.ends("TARGETS")}),
     "MATCH (:Gene {name: '{g}'})-[:REGULATES]->(g:Gene) WHERE NOT (:Drug)-[:TARGETS]->(g) RETURN g.name AS name"),
    ("lookup", "What are the targets of {d}?", one("d", DRUG, lambda d: S.targets("TARGETS", d)),
     "MATCH (:Drug {name: '{d}'})-[:TARGETS]->(g:Gene) RETURN g.name AS name"),
    ("filter", "Which drugs activate {g}?", one("g", GENE, lambda g: S.sources("TARGETS", g, action="activates")),
     "MATCH (d:Drug)-[:TARGETS {action: 'activates'}]->(:Gene {name: '{g}'}) RETURN d.name AS name"),
    ("absent", "Which cell types is {x} expressed in?", one("x", ABSENT_GENES, lambda x: None),
     "MATCH (:Gene {name: '{x}'})-[:EXPRESSED_IN]->(c:CellType) RETURN c.name AS name"),
    ("negation", "Which transcripts of {g} encode no protein?",
     one("g", GENE, lambda g: {t for t in S.targets("HAS_TRANSCRIPT", g) if not S.targets("ENCODES", t)}),
     "MATCH (:Gene {name: '{g}'})-[:HAS_TRANSCRIPT]->(t:Transcript) WHERE NOT (t)-[:ENCODES]->(:Protein) "
     "RETURN t.id AS id"),
    ("negation", "Which {k} pathways have no gene from {p}?",
     two(("k", ["repair", "transport", "differentiation"]), ("p", PATHWAY),
         lambda k, p: S.names("Pathway", lambda r: r["category"] == k)
         - {q for g in S.sources("PARTICIPATES_IN", p) for q in S.targets("PARTICIPATES_IN", g)}),
     "MATCH (q:Pathway {category: '{k}'}) WHERE NOT EXISTS { MATCH (q)<-[:PARTICIPATES_IN]-(:Gene)"
     "-[:PARTICIPATES_IN]->(:Pathway {name: '{p}'}) } RETURN q.name AS name"),
]  # fmt: skip


def made() -> Iterator[dict[str, Any]]:
    random = Random(SEED)
    for kind, question, draw, query in TEMPLATES:
        names, right = draw(random)
        while right is not None and not 1 <= len(right) <= MOST:
            names, right = draw(random)
        texts = {
            key: plural(name) if "not expressed in" in question and key == "c" else name for key, name in names.items()
        }
        asked, written = question, query
        for key, name in names.items():
            asked = asked.replace(f"{{{key}}}", texts[key])
            single = "dystrophy" if name == "dystrophies" else name.removesuffix("s")
            written = written.replace(f"{{={key}}}", single).replace(f"{{{key}}}", name)
        absent = {"absent": names["x"]} if kind == "absent" else {}
        listed: list[Any] = [] if right is None else sorted(right)  # of a single value, that value
        yield {"kind": kind, "question": asked, **absent, "right": listed, "query": written}


if __name__ == "__main__":
    about = "Forty questions drawn with seed 158 by make_questions.py. Right is what `questions.json` calls right."
    print(json.dumps({"about": about, "questions": list(made())}, indent=2, ensure_ascii=False))
