"""Schemas as projects write them for BioCypher: what is inherited, what is a node, and what a relationship joins."""

from typing import Any

import pytest
import yaml
from each_row import each_row

from mulligan.langgraph.prompt_engine import BioCypherPromptEngine
from mulligan.models.scripted import ScriptedModel

NODE: dict[str, Any] = {"represented_as": "node"}


def engine_of(schema: Any, *answers: Any) -> BioCypherPromptEngine:
    return BioCypherPromptEngine(schema_config_or_info_dict=schema, model=ScriptedModel(answers))


def properties(text: str) -> dict[str, dict[str, str]]:
    engine = engine_of(yaml.safe_load(text))
    edges = {name: dict(each.properties) for name, each in engine.relationships.items()}
    return {name: dict(found) for name, found in engine.entities.items()} | edges


def ends(schema: Any, name: str) -> list[tuple[str, str]]:
    return list(engine_of(schema).relationships[name].ends)


def test_properties_are_inherited_along_a_chain_in_any_order() -> None:
    found = properties("""
        enhancer: {is_a: non coding element, inherit_properties: true, represented_as: node, properties: {score: float}}
        non coding element: {is_a: position, inherit_properties: true, represented_as: node, properties: {cell: str}}
        position: {is_a: biological entity, inherit_properties: true, represented_as: node, properties: {start: int}}
        silencer: {is_a: non coding element, represented_as: node}
        insulator: {is_a: non coding element, inherit_properties: false, represented_as: node}
    """)
    assert found["Enhancer"] == {"score": "float", "cell": "str", "start": "int"}
    assert found["NonCodingElement"] == {"cell": "str", "start": "int"}
    assert found["Silencer"] == found["Insulator"] == {}


def test_relationships_inherit_and_a_parent_need_not_be_in_the_graph() -> None:
    found = properties("""
        gene: {represented_as: node}
        sourced: {properties: {source url: str}}
        annotated: {is_a: sourced, inherit_properties: true, represented_as: edge, properties: {score: float}}
        curated: {is_a: annotated, inherit_properties: yes, represented_as: edge, source: gene, target: gene}
    """)
    assert found["Curated"] == {"score": "float", "source url": "str"}
    assert "Sourced" not in found


def test_of_several_parents_the_nearest_in_the_schema_counts() -> None:
    """In BioCypher a list of parents is a way up the ontology, not several parents side by side."""
    found = properties("""
        DNA sequence: {is_a: nucleic acid, represented_as: node, properties: {ac: str, sequence: str}}
        nucleic acid: {represented_as: node, properties: {mass: int}}
        dsDNA: {is_a: [DNA sequence, nucleic acid], inherit_properties: true, represented_as: node}
        ssDNA: {is_a: [single strand, DNA_sequence], inherit_properties: true, represented_as: node}
    """)
    assert found["DsDNA"] == found["SsDNA"] == {"ac": "str", "sequence": "str"}


def test_a_parents_type_replaces_that_of_its_child_and_what_is_excluded_is_left_out() -> None:
    found = properties("""
        protein: {represented_as: node, properties: {name: str, mass: int, sequence: str}, exclude_properties: sequence}
        isoform: {is_a: protein, inherit_properties: true, represented_as: node, properties: {mass: float, rank: int}}
        fragment: {is_a: protein, inherit_properties: true, represented_as: node, exclude_properties: [name, length]}
    """)
    assert found["Protein"] == {"name": "str", "mass": "int"}
    assert found["Isoform"] == {"mass": "int", "rank": "int", "name": "str"}
    assert found["Fragment"] == {"mass": "int"}


def test_parents_in_a_circle_or_nowhere_are_no_error() -> None:
    found = properties("""
        a: {is_a: b, inherit_properties: true, represented_as: node, properties: {x: str}}
        b: {is_a: a, inherit_properties: true, represented_as: node, properties: {y: str}}
        c: {is_a: c, inherit_properties: true, represented_as: node, properties: {z: str}}
        d: {is_a: [nowhere], inherit_properties: true, represented_as: node}
        e: {inherit_properties: true, represented_as: node, properties: [v]}
    """)
    assert found == {"A": {"x": "str", "y": "str"}, "B": {"x": "str", "y": "str"}, "C": {"z": "str"}, "D": {}} | {
        "E": {"v": ""}
    }


def test_the_type_of_a_property_may_stand_in_a_table() -> None:
    found = properties("""
        gene:
          represented_as: node
          properties:
            start: {type: int, biolink: start_interbase_coordinate}
            synonyms: {type: "str[]"}
            note: {biolink: description}
            name: str
            chr:
    """)
    assert found["Gene"] == {"start": "int", "synonyms": "str[]", "note": "", "name": "str", "chr": ""}


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("genome wide association study", {"is_a": "named thing"}),
        ("post translational interaction", {"is_a": "pairwise molecular interaction", "label_as_edge": "INTERACTS"}),
        ("drug interaction", {"source": "gene", "target": None}),
        ("Association", {"target": []}),
    ],
)
def test_a_node_is_a_node_whatever_it_is_called(name: str, entry: dict[str, Any]) -> None:
    schema = {
        "gene": NODE,
        name: {**NODE, **entry},
        "has": {"represented_as": "edge", "source": "gene", "target": name},
    }
    engine = engine_of(schema)
    (label,) = set(engine.entities) - {"Gene"}
    assert list(engine.relationships) == ["Has"]
    assert engine.relationships["Has"].ends == (("Gene", label),)


def test_a_node_that_joins_two_kinds_stays_a_relationship() -> None:
    schema = {"gene": NODE, "gene to gene association": {**NODE, "source": "gene", "target": "gene"}}
    assert ends(schema, "GeneToGeneAssociation") == [("Gene", "Gene")]


@each_row(
    ("written", "label"),
    [
        ("regulatory_region", "RegulatoryRegion"),
        ("Regulatory Region", "RegulatoryRegion"),
        ("RegulatoryRegion", "RegulatoryRegion"),
        ("regulatoryRegion", "RegulatoryRegion"),
        ("REGULATORY-REGION", "RegulatoryRegion"),
        ("super enhancer", "Super_enhancer"),
        ("tfbs", "BindingSite"),
        ("study", "ClinicalTrial"),
        ("geographic location", "Location"),
        ("known.sequence variant", "SequenceVariant"),
        ("Somatic.SequenceVariant", "SequenceVariant"),
        ("cell_type", "Cell_type"),
        ("cell type", "CellType"),
        ("CELL TYPE", "CELLTYPE"),
        ("hgnc", "Hgnc"),
        ("elsewhere.some thing", "Elsewhere.SomeThing"),
    ],
)
def test_an_end_is_a_kind_however_it_is_written(written: str, label: str) -> None:
    """The last four: two kinds of one spelling are told apart or left open, and what is in no entry stays a name."""
    schema = {
        "regulatory region": NODE,
        "super_enhancer": NODE,
        "binding site": {**NODE, "input_label": ["tfbs", "bs"]},
        "clinical trial": {**NODE, "label_in_input": "study"},
        "location": {**NODE, "synonym_for": "geographic location"},
        "sequence variant": {**NODE, "preferred_id": ["known", "somatic"], "input_label": ["k", "s"]},
        "cell_type": NODE,
        "cell type": NODE,
        "gene": {**NODE, "input_label": ["hgnc", "ensg"]},
        "protein": {**NODE, "input_label": "hgnc"},
        "joins": {"represented_as": "edge", "source": written, "target": "gene"},
    }
    assert ends(schema, "Joins") == [(label, "Gene")]


def test_lists_of_ends_name_each_pair_once() -> None:
    schema = {
        "sequence variant": {**NODE, "preferred_id": ["known", "somatic"], "input_label": ["k", "s"]},
        "gene": NODE,
        "found in": {
            "represented_as": "edge",
            "source": ["known.sequence variant", "somatic.sequence variant"],
            "target": ["gene", "Gene"],
        },
    }
    assert ends(schema, "FoundIn") == [("SequenceVariant", "Gene")]


def test_an_entry_of_its_own_for_a_prefix_is_the_end() -> None:
    schema = {
        "is_schema_info": True,
        "sequence variant": {**NODE, "preferred_id": ["known", "somatic"]},
        "known.sequence variant": {**NODE, "virtual": True, "is_a": "sequence variant", "is_relationship": False},
        "gene": NODE,
        "found in": {"represented_as": "edge", "source": "known.sequence variant", "target": "gene"},
    }
    assert "Known.SequenceVariant" in engine_of(schema).entities
    assert ends(schema, "FoundIn") == [("Known.SequenceVariant", "Gene")]


def test_a_label_is_the_one_that_biocypher_writes() -> None:
    """Its writers begin each word of a label with a capital, also of label_as_edge."""
    schema = {"gene": NODE} | {
        f"edge {number}": {"represented_as": "edge", "source": "gene", "target": "gene", "label_as_edge": label}
        for number, label in enumerate(("PERTURBED_IN", "has_experiment", "is mutated in", "Is_Related_To"))
    }
    labels = [each.label for each in engine_of(schema).relationships.values()]
    assert labels == ["PERTURBED_IN", "Has_experiment", "IsMutatedIn", "Is_Related_To"]


@each_row(
    ("entry", "pattern"),
    [
        ({"undirected": True}, "(:Protein)-[:BINDS]-(:Gene)"),
        ({"undirected": "true"}, "(:Protein)-[:BINDS]-(:Gene)"),
        ({"directed": False}, "(:Protein)-[:BINDS]-(:Gene)"),
        ({"undirected": False}, "(:Protein)-[:BINDS]->(:Gene)"),
        ({"directed": True}, "(:Protein)-[:BINDS]->(:Gene)"),
        ({}, "(:Protein)-[:BINDS]->(:Gene)"),
    ],
)
def test_an_undirected_relationship_has_no_arrow(entry: dict[str, Any], pattern: str) -> None:
    binds = {"represented_as": "edge", "label_as_edge": "BINDS", "source": "protein", "target": "gene", **entry}
    model = ScriptedModel([{"entities": ["Gene"]}, {"relationships": ["Binds"]}])
    engine = BioCypherPromptEngine(
        schema_config_or_info_dict={"protein": NODE, "gene": NODE, "binds": binds}, model=model
    )
    assert f"- {pattern}" in engine.generate_query_prompt("Which proteins bind to TP53?").splitlines()
    assert pattern in model.questions[1].messages[0].text
