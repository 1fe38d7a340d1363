"""`BioCypherPromptEngine`: what a model is told of a graph to write a query for one question, and no more (seed 001).

Three selections, each one call of the model: entities, relationships, properties. Nothing is kept from one question to
the next, so an engine can be asked many at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from langchain_core.language_models import BaseChatModel

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.graphs import Graph, GraphSchema
from mulligan.core.loop import Meter
from mulligan.core.protocols import Model, Prompts
from mulligan.core.records import Json, Usage
from mulligan.langgraph import prompt_selection as choosing
from mulligan.langgraph.bridge import finish, settled
from mulligan.langgraph.prompt_asking import Asker, conversation_of
from mulligan.langgraph.prompt_selection import Selection
from mulligan.langgraph.schema_forms import (
    Known,
    Relationship,
    from_database,
    from_file,
    from_table,
    schema_json,
    schema_of_json,
)
from mulligan.langgraph.working import here

CYPHER = "Cypher"
"""As a language, it is made exact by what a live database says of its own."""
_SLOTS = {
    "entities": ("entities", "question", "tool", "schema"),
    "relationships": ("entities", "relationships", "question", "tool", "schema"),
    "properties": ("properties", "question", "tool", "schema"),
    "selected": ("language", "entities", "relationships", "combinations", "notes"),
    "query": ("selected", "question", "tool", "schema"),
}
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class BioCypherPromptEngine:
    """schema_config_or_info_path, schema_config_or_info_dict: BioCypher's schema configuration, or the schema info that
    it writes (`is_schema_info: true`); one of them. graph: a live database or its `GraphSchema`: the schema, where none
    of the two is given, and the notes on its dialect.

    The model: what `conversation_factory` makes (with a LangChain chat model as `.chat`), else `model` (a name, or a
    model), else model_provider and model_name, else what MULLIGAN_MODEL or mulligan.toml names; there is no other
    default. prompts: where the files prompt_engine.*.md come from. Raises `InvalidInput`; nothing is called before the
    first question.

    `usage` is what all questions took so far. Inside a node of ours each call is a step of its journal.
    """

    def __init__(
        self,
        schema_config_or_info_path: str | Path | None = None,
        schema_config_or_info_dict: Mapping[str, Any] | None = None,
        model_provider: str | None = None,
        model_name: str | None = None,
        conversation_factory: Callable[[], Any] | None = None,
        *,
        graph: Graph | GraphSchema | None = None,
        model: str | Model | BaseChatModel | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        self._known = _known(schema_config_or_info_path, schema_config_or_info_dict, graph)
        self._graph = None if isinstance(graph, GraphSchema) else graph
        files = prompts or _prompts()
        self._prompts = {part: files.get(f"prompt_engine.{part}").check(*slots) for part, slots in _SLOTS.items()}
        self._model = (conversation_factory, model, model_provider, model_name)
        self._meter = Meter()
        self._asker: Asker | None = None
        if any(self._model):
            self._asking()

    @property
    def usage(self) -> Usage:
        return self._meter.usage

    @property
    def entities(self) -> Mapping[str, Mapping[str, str]]:
        """The entities of the schema by label, with their properties; those of a live database are not known here."""
        return self._known.entities if self._known else {}

    @property
    def relationships(self) -> Mapping[str, Relationship]:
        return self._known.relationships if self._known else {}

    def generate_query_prompt(self, question: str, query_language: str = CYPHER) -> str:
        """What a model has to know of the graph to write a query for this question, in words.

        Raises `InvalidInput` for an empty question or a missing key, `NothingSelected` (a `BadAnswer` and a
        `ValueError`) for a selection that came to nothing, and what the model raises.
        """
        return finish(self.agenerate_query_prompt(question, query_language))

    async def agenerate_query_prompt(self, question: str, query_language: str = CYPHER) -> str:
        return self._described(await self.aselect(question), query_language)

    def generate_query(self, question: str, query_language: str = CYPHER) -> str:
        """A query for this question, by a fourth call. Raises as `generate_query_prompt` does."""
        return finish(self.agenerate_query(question, query_language))

    async def agenerate_query(self, question: str, query_language: str = CYPHER) -> str:
        selected = await self.agenerate_query_prompt(question, query_language)
        schema = choosing.schema_of_query("WriteQuery", query_language)
        values = {"selected": selected, "question": question}
        return await self._asking().ask(self._prompts["query"], schema, _query, values)

    def select(self, question: str) -> Selection:
        """The part of the graph that the question is about. Raises as `generate_query_prompt` does."""
        return finish(self.aselect(question))

    async def aselect(self, question: str) -> Selection:
        if not question.strip():
            raise InvalidInput("The question is empty: say what is to be found out.")
        asker = self._asking()
        known = self._known or await self._live()
        entities = await self._entities(asker, question, known)
        entities, relationships = await self._relationships(asker, question, entities, known)
        chosen = await self._properties(asker, question, choosing.properties_of(entities, relationships, known))
        return choosing.selection(entities, relationships, chosen)

    async def _entities(self, asker: Asker, question: str, known: Known) -> list[str]:
        values = {
            "entities": _lines({name: listed(properties) for name, properties in known.entities.items()}),
            "question": question,
        }
        schema = choosing.schema_of_names("SelectEntities", "entities", list(known.entities))
        return await asker.ask(
            self._prompts["entities"], schema, lambda answer: choosing.take_entities(answer, known), values
        )

    async def _relationships(
        self, asker: Asker, question: str, entities: Sequence[str], known: Known
    ) -> tuple[list[str], dict[str, Relationship]]:
        offered = choosing.relationships_for(entities, known)
        if not offered:
            return list(entities), {}
        values = {
            "entities": ", ".join(entities),
            "relationships": _lines({name: _relationship(each) for name, each in offered.items()}),
            "question": question,
        }
        schema = choosing.schema_of_names("SelectRelationships", "relationships", list(offered))
        return await asker.ask(
            self._prompts["relationships"],
            schema,
            lambda answer: choosing.take_relationships(answer, entities, offered),
            values,
        )

    async def _properties(
        self, asker: Asker, question: str, offered: choosing.Offered
    ) -> Mapping[str, Mapping[str, str]]:
        if not offered:
            return {}
        values = {
            "properties": _lines({name: typed(properties) for name, properties in offered.items()}),
            "question": question,
        }
        schema = choosing.schema_of_properties("SelectProperties", offered)
        return await asker.ask(
            self._prompts["properties"], schema, lambda answer: choosing.take_properties(answer, offered), values
        )

    def _described(self, selection: Selection, language: str) -> str:
        graph = self._graph
        messages = self._prompts["selected"].render(
            language=graph.language if graph is not None and language == CYPHER else language,
            entities=in_query(selection.entities),
            relationships=in_query(selection.labels),
            combinations="\n".join(f"- {pattern(*each)}" for each in selection.combinations),
            notes="\n".join(f"- {note}" for note in graph.notes) if graph is not None else "",
        )
        return "\n\n".join(message.text for message in messages)

    def _asking(self) -> Asker:
        if self._asker is None:
            self._asker = Asker(conversation_of(*self._model), self._meter)
        return self._asker

    async def _live(self) -> Known:
        """The schema of the database as it is now."""
        graph = cast(Graph, self._graph)

        async def look() -> Json:
            return schema_json(await settled(graph.schema()))

        work = here.get()
        found = await (look() if work is None else work.journal.step("schema", {"graph": graph.name}, look))
        return from_database(schema_of_json(found))


def listed(properties: Mapping[str, str]) -> str:
    return ", ".join(properties)


def typed(properties: Mapping[str, str]) -> str:
    """name (str), score (float)"""
    return ", ".join(f"{name} ({kind})" if kind else name for name, kind in properties.items())


def in_query(kinds: Mapping[str, Mapping[str, str]]) -> str:
    """A line for each, all names spelt as a query has to spell them."""
    return _lines(
        {
            spelled(kind): typed({spelled(name): type for name, type in properties.items()})
            for kind, properties in kinds.items()
        }
    )


def spelled(name: str) -> str:
    """As a query has to spell it."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def pattern(source: str, label: str, target: str) -> str:
    return f"(:{spelled(source)})-[:{spelled(label)}]->(:{spelled(target)})"


def _relationship(each: Relationship) -> str:
    ways = ", ".join(pattern(source, each.label, target) for source, target in each.ends) or f"[:{spelled(each.label)}]"
    return f"{ways}; {listed(each.properties)}" if each.properties else ways


def _lines(said: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {text}" if text else f"- {name}" for name, text in said.items())


def _query(answer: Json) -> str:
    found = cast(dict[str, Json], answer).get("query") if isinstance(answer, dict) else None
    if not isinstance(found, str) or not found.strip():
        raise BadAnswer("The answer must hold the query as a text.")
    return found.strip()


def _known(path: str | Path | None, table: Mapping[str, Any] | None, graph: Graph | GraphSchema | None) -> Known | None:
    """None: a live database is asked for its schema."""
    if path is not None and table is not None:
        raise InvalidInput(
            "schema_config_or_info_path and schema_config_or_info_dict are both given: give one of them."
        )
    if path is not None:
        return from_file(path)
    if table is not None:
        return from_table(table)
    if graph is None:
        raise InvalidInput(
            "The engine needs a schema: schema_config_or_info_path=…, schema_config_or_info_dict=…, or graph=…."
        )
    return from_database(graph) if isinstance(graph, GraphSchema) else None


def _prompts() -> Prompts:
    """The user's prompts, as mulligan.toml says, and ours."""
    from mulligan.app.config import load, prompts_folder
    from mulligan.app.prompts import FilePrompts

    folder = prompts_folder(load())
    return FilePrompts([Path(folder)] if folder else [])
