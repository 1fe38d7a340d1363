"""The texts that the prompt engine asks with, and the one that it makes, word for word."""

from collections.abc import Sequence
from typing import Any

from inline_snapshot import snapshot

from mulligan.core.questions import Question
from mulligan.core.records import Json
from mulligan.graphs.protocol import EdgeKind, GraphSchema, NodeKind, Rows
from mulligan.langgraph.prompt_engine import BioCypherPromptEngine
from mulligan.models.scripted import ScriptedModel

SCHEMA = {
    "gene": {"represented_as": "node", "properties": {"name": "str", "p value": "float"}},
    "cell type": {"represented_as": "node"},
    "gene expressed in": {
        "represented_as": "edge",
        "label_as_edge": "EXPRESSED_IN",
        "source": "gene",
        "target": "cell type",
        "properties": {"level": "float"},
    },
    "is annotated": {"represented_as": "edge"},
}
ANSWERS: list[Any] = [
    {"entities": ["Gene", "CellType"]},
    {"relationships": ["GeneExpressedIn"]},
    {"Gene": ["name", "p value"], "GeneExpressedIn": ["level"]},
]
QUESTION = "Which genes are expressed in T cells?"


class Dialect:
    """A graph that is only asked what it speaks and what it holds."""

    name, language = "here", "Cypher (Ladybug dialect)"
    notes: Sequence[str] = ("There is no type().", "Paths are bounded.")

    async def run(self, query: str, parameters: Any = None, *, seconds: float = 1, rows: int = 1) -> Rows:
        raise NotImplementedError

    async def schema(self) -> GraphSchema:
        return GraphSchema(
            (NodeKind("Gene", {"name": "STRING"}),),
            (EdgeKind("REGULATES", (("Gene", "Gene"),), {"score": "DOUBLE"}),),
        )

    async def close(self) -> None:
        pass


def asked(question: Question) -> str:
    return "\n---\n".join(f"{message.role}: {message.text}" for message in question.messages)


def schema_of(question: Question) -> Json:
    return question.schema["properties"]["arguments"]


def selections() -> list[Question]:
    """The questions of the three selections, in their order."""
    model = ScriptedModel(ANSWERS)
    BioCypherPromptEngine(schema_config_or_info_dict=SCHEMA, model=model).select(QUESTION)
    return list(model.questions)


def test_what_the_selection_of_entities_asks() -> None:
    assert asked(selections()[0]) == snapshot("""\
system: Somebody asks a question, and a graph database holds the answer. Choose the kinds of nodes that a query for it has to go through: what the question asks for, what it names (in whatever words), and what has to stand between them. Choose as few as will do.

These kinds of nodes are in the graph, each with its properties:
- Gene: name, p value
- CellType

Hand over your choice by calling the tool SelectEntities.

You work by calling tools, one in each answer. These are all that there are:

- SelectEntities(entities): The entities that the question is about.
  - entities (array {"items": {"type": "string", "enum": ["Gene", "CellType"]}})

Answer with one JSON object and nothing else, such as
{"tool": "SelectEntities", "arguments": {"entities": ["..."]}}
The next message then says what came of it.
---
user: Which genes are expressed in T cells?\
""")


def test_what_the_selection_of_relationships_asks() -> None:
    assert asked(selections()[1]) == snapshot("""\
system: Somebody asks a question, and a graph database holds the answer. The query goes through these kinds of nodes: Gene, CellType. Choose the relationships that it has to follow to get from what the question names to what it asks for. Choose as few as will do, and none where a single kind of node holds the answer.

These relationships are in the graph, each with its direction and its properties:
- GeneExpressedIn: (:Gene)-[:EXPRESSED_IN]->(:CellType); level
- IsAnnotated: [:IsAnnotated]

Hand over your choice, by the names in front of the colons, by calling the tool SelectRelationships.

You work by calling tools, one in each answer. These are all that there are:

- SelectRelationships(relationships): The relationships that the question is about.
  - relationships (array {"items": {"type": "string", "enum": ["GeneExpressedIn", "IsAnnotated"]}})

Answer with one JSON object and nothing else, such as
{"tool": "SelectRelationships", "arguments": {"relationships": ["..."]}}
The next message then says what came of it.
---
user: Which genes are expressed in T cells?\
""")


def test_what_the_selection_of_properties_asks() -> None:
    assert asked(selections()[2]) == snapshot("""\
system: Somebody asks a question, and a graph database holds the answer. Of each kind of node and relationship below, choose the properties that the query needs: those that are compared with what the question names, those that it counts, sorts or filters by, and those that are shown in the answer, such as names. Leave the list of a kind empty where none of its properties is needed.

These properties are there, each with its type:
- Gene: name (str), p value (float)
- GeneExpressedIn: level (float)

Hand over your choice by calling the tool SelectProperties.

You work by calling tools, one in each answer. These are all that there are:

- SelectProperties(Gene, GeneExpressedIn): Of each kind, the properties that the query needs.
  - Gene (array {"items": {"type": "string", "enum": ["name", "p value"]}})
  - GeneExpressedIn (array {"items": {"type": "string", "enum": ["level"]}})

Answer with one JSON object and nothing else, such as
{"tool": "SelectProperties", "arguments": {"Gene": ["..."], "GeneExpressedIn": ["..."]}}
The next message then says what came of it.
---
user: Which genes are expressed in T cells?\
""")


def test_what_the_selections_may_answer() -> None:
    assert [schema_of(question) for question in selections()] == snapshot(
        [
            {
                "properties": {
                    "entities": {"items": {"type": "string", "enum": ["Gene", "CellType"]}, "type": "array"}
                },
                "type": "object",
                "required": ["entities"],
                "additionalProperties": False,
            },
            {
                "properties": {
                    "relationships": {
                        "items": {"type": "string", "enum": ["GeneExpressedIn", "IsAnnotated"]},
                        "type": "array",
                    }
                },
                "type": "object",
                "required": ["relationships"],
                "additionalProperties": False,
            },
            {
                "properties": {
                    "Gene": {"items": {"type": "string", "enum": ["name", "p value"]}, "type": "array"},
                    "GeneExpressedIn": {"items": {"type": "string", "enum": ["level"]}, "type": "array"},
                },
                "type": "object",
                "required": ["Gene", "GeneExpressedIn"],
                "additionalProperties": False,
            },
        ]
    )


def test_the_prompt_that_comes_out() -> None:
    engine = BioCypherPromptEngine(schema_config_or_info_dict=SCHEMA, model=ScriptedModel(ANSWERS))
    assert engine.generate_query_prompt(QUESTION) == snapshot("""\
Write a Cypher query that answers the user's question. Use the parts of the graph that are listed here and no others, spelt as they are here.

Nodes, with their properties:
- Gene: name (str), `p value` (float)
- CellType

Relationships, with their properties:
- EXPRESSED_IN: level (float)

How relationships join nodes, and in which direction:
- (:Gene)-[:EXPRESSED_IN]->(:CellType)\
""")


def test_the_prompt_for_another_language_and_without_known_ends() -> None:
    answers = [{"entities": ["CellType"]}, {"relationships": ["IsAnnotated"]}]
    engine = BioCypherPromptEngine(schema_config_or_info_dict=SCHEMA, model=ScriptedModel(answers))
    assert engine.generate_query_prompt(QUESTION, "SQL") == snapshot("""\
Write a SQL query that answers the user's question. Use the parts of the graph that are listed here and no others, spelt as they are here.

Nodes, with their properties:
- CellType

Relationships, with their properties:
- IsAnnotated\
""")


def test_a_live_graph_gives_the_schema_and_the_notes_on_its_dialect() -> None:
    answers = [{"entities": ["Gene"]}, {"relationships": ["REGULATES"]}, {"Gene": ["name"], "REGULATES": ["score"]}]
    engine = BioCypherPromptEngine(graph=Dialect(), model=ScriptedModel(answers))
    assert engine.generate_query_prompt(QUESTION) == snapshot("""\
Write a Cypher (Ladybug dialect) query that answers the user's question. Use the parts of the graph that are listed here and no others, spelt as they are here.

Nodes, with their properties:
- Gene: name (STRING)

Relationships, with their properties:
- REGULATES: score (DOUBLE)

How relationships join nodes, and in which direction:
- (:Gene)-[:REGULATES]->(:Gene)

About the language:
- There is no type().
- Paths are bounded.\
""")


def test_a_schema_and_a_live_graph_the_graph_gives_the_notes_alone() -> None:
    engine = BioCypherPromptEngine(schema_config_or_info_dict=SCHEMA, graph=Dialect(), model=ScriptedModel(ANSWERS))
    prompt = engine.generate_query_prompt(QUESTION)
    assert "REGULATES" not in prompt
    assert prompt.endswith("About the language:\n- There is no type().\n- Paths are bounded.")


def test_what_the_query_is_asked_with() -> None:
    model = ScriptedModel([*ANSWERS, {"query": " MATCH (g:Gene) RETURN g.name "}])
    engine = BioCypherPromptEngine(schema_config_or_info_dict=SCHEMA, model=model)
    assert engine.generate_query(QUESTION) == "MATCH (g:Gene) RETURN g.name"
    assert asked(model.questions[3]) == snapshot("""\
system: Write a Cypher query that answers the user's question. Use the parts of the graph that are listed here and no others, spelt as they are here.

Nodes, with their properties:
- Gene: name (str), `p value` (float)
- CellType

Relationships, with their properties:
- EXPRESSED_IN: level (float)

How relationships join nodes, and in which direction:
- (:Gene)-[:EXPRESSED_IN]->(:CellType)

Ask for names and values that a person can read, not for internal ids. Only read: a query that writes is refused.

Hand over the query by calling the tool WriteQuery.

You work by calling tools, one in each answer. These are all that there are:

- WriteQuery(query): A Cypher query that answers the question.

Answer with one JSON object and nothing else, such as
{"tool": "WriteQuery", "arguments": {"query": "..."}}
The next message then says what came of it.
---
user: Which genes are expressed in T cells?\
""")
