"""The prompt engine goes the way of the golden files: schema forms, selections, failures."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from each_row import each_row

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.graphs.protocol import EdgeKind, GraphSchema, NodeKind
from mulligan.langgraph.graph_texts import pascal_case
from mulligan.langgraph.prompt_engine import BioCypherPromptEngine, EntitySelection
from mulligan.models.scripted import ScriptedModel

GOLDEN = Path(__file__).parent / "golden" / "prompt_engine"


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


SCHEMAS, SELECTIONS = golden("schemas"), golden("selections")
TWO = {"gene": {"represented_as": "node", "properties": {"name": "str"}}, "drug": {"represented_as": "node"}}


def engine_of(*answers: Any, schema: Any = None) -> tuple[BioCypherPromptEngine, ScriptedModel]:
    model = ScriptedModel(answers)
    return BioCypherPromptEngine(
        schema_config_or_info_dict=SELECTIONS["schema"] if schema is None else schema, model=model
    ), model


def offered(model: ScriptedModel) -> list[list[str]]:
    """What each question offered: the names of a list, or the kinds whose properties are asked for."""
    found: list[list[str]] = []
    for question in model.questions:
        arguments = question.schema["properties"]["arguments"]["properties"]
        only = arguments.get("entities") or arguments.get("relationships")
        found.append(only["items"]["enum"] if only else list(arguments))
    return found


def of_selection(found: EntitySelection) -> dict[str, Any]:
    return {
        "entities": {name: list(properties) for name, properties in found.entities.items()},
        "relationships": {label: list(properties) for label, properties in found.labels.items()},
        "combinations": [list(each) for each in found.combinations],
    }


@each_row(("name", "label"), golden("names")["names"])
def test_names_become_labels(name: str, label: str) -> None:
    assert pascal_case(name) == label


@pytest.mark.parametrize("case", SCHEMAS["schemas"], ids=lambda case: case["name"])
@pytest.mark.parametrize("source", ["dict", "yaml", "json"])
def test_a_schema_is_read(case: Any, source: str, tmp_path: Path) -> None:
    if source == "dict":
        engine = BioCypherPromptEngine(schema_config_or_info_dict=case["schema"])
    else:
        path = tmp_path / f"schema.{source}"
        path.write_text(json.dumps(case["schema"]) if source == "json" else yaml.safe_dump(case["schema"]), "utf-8")
        engine = BioCypherPromptEngine(path)
    assert {name: dict(properties) for name, properties in engine.entities.items()} == case["entities"]
    found = {
        name: {"label": each.label, "ends": [list(pair) for pair in each.ends], "properties": dict(each.properties)}
        for name, each in engine.relationships.items()
    }
    assert found == case["relationships"]


@each_row("case", SCHEMAS["refused"])
def test_a_schema_that_cannot_be_is_refused(case: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        BioCypherPromptEngine(**case["sources"])
    assert case["says"] in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_file_that_is_not_yaml_and_two_names_that_are_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("gene: [", "utf-8")
    with pytest.raises(InvalidInput, match="is not valid YAML"):
        BioCypherPromptEngine(tmp_path / "broken.yaml")
    with pytest.raises(InvalidInput, match="Gene: another entry has the same label Gene"):
        BioCypherPromptEngine(
            schema_config_or_info_dict={"gene": {"represented_as": "node"}, "Gene": {"represented_as": "edge"}}
        )


@pytest.mark.parametrize("case", SELECTIONS["cases"], ids=lambda case: case["name"])
async def test_the_selections_come_out_as_the_rules_say(case: Any) -> None:
    engine, model = engine_of(*case["answers"])
    found = await engine.aselect("Which?")
    assert offered(model) == case["offered"]
    assert of_selection(found) == {key: case[key] for key in ("entities", "relationships", "combinations")}


def test_the_synchronous_side_comes_out_the_same() -> None:
    case = SELECTIONS["cases"][0]
    engine, _ = engine_of(*case["answers"])
    assert of_selection(engine.select("Which?"))["entities"] == case["entities"]


@pytest.mark.parametrize("case", SELECTIONS["failures"], ids=lambda case: case["name"])
async def test_a_selection_that_comes_to_nothing_names_the_step_and_what_there_was(case: Any) -> None:
    engine, model = engine_of(*case["answers"])
    with pytest.raises(BadAnswer) as caught:
        await engine.agenerate_query_prompt("Which?")
    assert [text for text in case["says"] if text not in str(caught.value)] == []
    assert isinstance(caught.value, ValueError)
    assert len(model.questions) == len(case["answers"])


async def test_an_answer_that_cannot_be_used_is_sent_back_with_what_was_wrong() -> None:
    case = SELECTIONS["mended"]
    engine, model = engine_of(*case["answers"])
    assert of_selection(await engine.aselect("Which?"))["entities"] == case["entities"]
    assert len(model.questions) == case["calls"]
    assert "there is no Planet. Available: Gene, Disease, Drug" in model.questions[1].messages[-1].text


async def test_one_question_leaves_nothing_for_the_next() -> None:
    one, two = SELECTIONS["cases"][3], SELECTIONS["cases"][5]
    engine, model = engine_of(*one["answers"], *two["answers"], *one["answers"])
    first = await engine.agenerate_query_prompt("Which genes do drugs target?")
    second = await engine.agenerate_query_prompt("Which cells are there?")
    assert "REGULATES" in first
    assert "REGULATES" not in second
    assert "Gene" not in second
    assert await engine.agenerate_query_prompt("Which genes do drugs target?") == first
    alike = [question.messages for question in (model.questions[0], model.questions[6])]
    assert alike[0] == alike[1]


async def test_questions_at_once_do_not_mix() -> None:
    def answer(question: Any, sampling: Any) -> Any:
        kind = "Gene" if "genes" in question.messages[-1].text else "Drug"
        arguments = question.schema["properties"]["arguments"]["properties"]
        return {"entities": [kind]} if "entities" in arguments else {name: ["name"] for name in arguments}

    engine = BioCypherPromptEngine(schema_config_or_info_dict=TWO, model=ScriptedModel(answer))
    found = await asyncio.gather(*(engine.aselect(f"Which {kind}s?") for kind in ("gene", "drug") * 5))
    assert [list(each.entities) for each in found] == [["Gene"], ["Drug"]] * 5


async def test_a_graph_without_relationships_or_properties_takes_one_call() -> None:
    engine, model = engine_of({"entities": ["Gene"]}, schema={"gene": {"represented_as": "node"}})
    assert of_selection(await engine.aselect("How many?")) == {
        "entities": {"Gene": []},
        "relationships": {},
        "combinations": [],
    }
    assert len(model.questions) == 1


async def test_the_schema_of_a_database_is_a_source() -> None:
    schema = GraphSchema(
        (NodeKind("Gene", {"name": "STRING"}), NodeKind("cell_type"), NodeKind("TARGETS", {"day": "DATE"})),
        (EdgeKind("REGULATES", (("Gene", "Gene"),), {"score": "DOUBLE"}), EdgeKind("TARGETS", (("TARGETS", "Gene"),))),
    )
    model = ScriptedModel(
        [{"entities": ["TARGETS"]}, {"relationships": ["TARGETS"]}, {"Gene": ["name"], "TARGETS": ["day"]}]
    )
    engine = BioCypherPromptEngine(graph=schema, model=model)
    assert list(engine.entities) == ["Gene", "cell_type", "TARGETS"]
    found = await engine.aselect("Which?")
    assert of_selection(found) == {
        "entities": {"TARGETS": ["day"], "Gene": ["name"]},
        "relationships": {"TARGETS": []},
        "combinations": [["TARGETS", "TARGETS", "Gene"]],
    }
    with pytest.raises(InvalidInput, match="no entities"):
        BioCypherPromptEngine(graph=GraphSchema())


async def test_an_empty_question_is_refused_before_any_call() -> None:
    engine, model = engine_of()
    with pytest.raises(InvalidInput, match="The question is empty"):
        await engine.agenerate_query_prompt("  ")
    assert model.questions == []
