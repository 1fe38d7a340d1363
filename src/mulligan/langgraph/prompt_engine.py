"""`BioCypherPromptEngine`: describes to a model the parts of a graph that it needs to write a query for a question.

It makes three selections, each one call of the model: entities, relationships, properties. For each there is what the
model may choose from, the JSON schema of its answer, and how the answer is read. Nothing is kept from one question to
the next, so one engine can serve many questions at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from mulligan.graphs.protocol import Graph, GraphSchema, bare, drawn, spelled
from mulligan.langgraph.asking import fields_of, invoke, recorded, until_valid, with_tool
from mulligan.langgraph.chat import chat_model
from mulligan.langgraph.defaults import prompts_of
from mulligan.langgraph.graph_texts import Known, Relationship, from_database, from_file, from_table, lines, typed
from mulligan.langgraph.journalled import as_messages, journalled, usage_of
from mulligan.langgraph.kg import CYPHER, recorded_schema
from mulligan.langgraph.working import here
from mulligan.plugins import BadAnswer, InvalidInput, Json, Model, Prompt, Prompts, Usage, object_schema
from mulligan.running import Meter, portal

Offered: TypeAlias = "Mapping[str, Mapping[str, str]]"
"""Properties (name to type) by the name of the entity or relationship that has them."""


class NothingSelected(BadAnswer, ValueError):
    """A selection without a result. The message says which one, and what was available."""


@dataclass(frozen=True)
class EntitySelection:
    """The part of a graph that a question is about, with the types of properties and the names of relationships."""

    entities: Mapping[str, Mapping[str, str]]
    relationships: Mapping[str, Relationship]

    @property
    def combinations(self) -> list[tuple[str, str, str]]:
        """The distinct (source, label, target)."""
        found = [(s, each.label, t) for each in self.relationships.values() for s, t in each.ends]
        return list(dict.fromkeys(found))

    @property
    def patterns(self) -> list[str]:
        """The combinations as a query has them, without an arrow if the relationship is undirected."""
        return list(dict.fromkeys(way for each in self.relationships.values() for way in _ways(each)))

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """The properties of the relationships by label."""
        found: dict[str, dict[str, str]] = {}
        for each in self.relationships.values():
            found.setdefault(each.label, {}).update(each.properties)
        return found


# --- what is available ----------------------------------------------------------------------------------------------


def relationships_for(entities: Iterable[str], known: Known) -> dict[str, Relationship]:
    """Return the relationships with both ends selected; if there are none, with one end; if there are none, all.

    Relationships with unknown ends are always included. Each keeps the pairs of ends that match.
    """
    chosen = set(entities)
    for needed in (2, 1, 0):
        found: dict[str, Relationship] = {}
        for name, each in known.relationships.items():
            ends = tuple(pair for pair in each.ends if sum(end in chosen for end in pair) >= needed)
            if ends or not each.ends:
                found[name] = replace(each, ends=ends)
        if any(each.ends for each in found.values()):
            return found
    return dict(known.relationships)


def properties_of(entities: Sequence[str], relationships: Mapping[str, Relationship], known: Known) -> Offered:
    """Return the properties of the selected entities and relationships that have any."""
    found = {name: known.entities.get(name, {}) for name in entities}
    found |= {name: each.properties for name, each in relationships.items()}
    return {name: properties for name, properties in found.items() if properties}


def schema_of_names(title: str, key: str, names: Sequence[str]) -> dict[str, Json]:
    """Return the schema of an object with a list of some of these names."""
    return _object(title, f"The {key} that the question is about.", {key: _some_of(names)})


def schema_of_properties(title: str, offered: Offered) -> dict[str, Json]:
    """Return the schema of an object with a list of properties for each kind."""
    lists = {name: _some_of(list(properties)) for name, properties in offered.items()}
    return _object(title, "Of each kind, the properties that the query needs.", lists)


def schema_of_query(title: str, language: str) -> dict[str, Json]:
    return _object(title, f"A {language} query that answers the question.", {"query": {"type": "string"}})


def _some_of(names: Sequence[str]) -> Json:
    return {"type": "array", "items": {"type": "string", "enum": list(names)}}


def _object(title: str, description: str, properties: dict[str, Json]) -> dict[str, Json]:
    return {"title": title, "description": description, **object_schema(**properties)}


# --- how an answer is read --------------------------------------------------------------------------------------


def take_entities(answer: Json, known: Known) -> list[str]:
    """Return the selected entities. Raises `NothingSelected` if there are none."""
    chosen = _taken("Entity", "entities", answer, _own(known.entities))
    if not chosen:
        raise NothingSelected(f"Entity selection failed: the model chose none of {', '.join(known.entities)}.")
    return chosen


def take_relationships(
    answer: Json, entities: Sequence[str], offered: Mapping[str, Relationship]
) -> tuple[list[str], dict[str, Relationship]]:
    """Return the entities, with those that the relationships also need, and the relationships.

    If the model chose none, these are the relationships between the entities. Raises `NothingSelected` for an answer
    with unknown names only.
    """
    spellings = {name: [name, each.label] for name, each in offered.items()}
    names = _taken("Relationship", "relationships", answer, spellings)
    if not names:
        return list(entities), joined(entities, offered)
    chosen = {name: each for name, each in offered.items() if name in names}
    ends = [end for each in chosen.values() for pair in each.ends for end in pair]
    return list(dict.fromkeys([*entities, *ends])), chosen


def joined(entities: Iterable[str], offered: Mapping[str, Relationship]) -> dict[str, Relationship]:
    """Return the relationships whose ends are both selected."""
    chosen = set(entities)
    return {name: each for name, each in offered.items() if each.ends and all(chosen.issuperset(p) for p in each.ends)}


def take_properties(answer: Json, offered: Offered) -> dict[str, dict[str, str]]:
    """Return the selected properties by the name of what has them; all if the model chose none.

    Raises `NothingSelected` for an answer with unknown names only.
    """
    given = _table("Property", answer, f"lists of properties for {', '.join(offered)}")
    found: dict[str, set[str]] = {}
    unknown: list[str] = []
    for kind, names in given.items():
        for wanted in _texts(names):
            kinds = _found(kind, _own(offered))
            places = [(name, match) for name in kinds for match in _found(wanted, _own(offered[name]))]
            for name, match in places:
                found.setdefault(name, set()).add(match)
            if not places:
                unknown.append(f"{kind}.{wanted}")
    if unknown and not found:
        there = "; ".join(f"{name}: {', '.join(properties)}" for name, properties in offered.items())
        raise NothingSelected(f"Property selection failed: there is no {', '.join(unknown[:5])}. Available: {there}.")
    if not found:
        return {name: dict(properties) for name, properties in offered.items()}
    return {
        name: {each: kind for each, kind in properties.items() if each in found.get(name, ())}
        for name, properties in offered.items()
    }


def selection(
    entities: Sequence[str], relationships: Mapping[str, Relationship], properties: Offered
) -> EntitySelection:
    return EntitySelection(
        {name: properties.get(name, {}) for name in entities},
        {name: replace(each, properties=properties.get(name, {})) for name, each in relationships.items()},
    )


def _own(names: Iterable[str]) -> dict[str, list[str]]:
    return {name: [name] for name in names}


def _taken(step: str, key: str, answer: Json, spellings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the distinct known names that the answer lists. Raises `NothingSelected` for unknown names only."""
    given = _table(step, answer, f"a list {key!r}")
    if not isinstance(given.get(key), list):
        raise NothingSelected(f"{step} selection failed: the answer must contain a list {key!r}.")
    wanted = _texts(given[key])
    found = list(dict.fromkeys(name for one in wanted for name in _found(one, spellings)))
    if wanted and not found:
        known = ", ".join(spellings)
        raise NothingSelected(f"{step} selection failed: there is no {', '.join(wanted[:5])}. Available: {known}.")
    return found


def _found(given: str, spellings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names that match: exactly, or else regardless of case, spaces and underscores."""
    exact = [name for name, known in spellings.items() if given in known]
    return exact or [name for name, known in spellings.items() if bare(given) in map(bare, known)]


def _table(step: str, answer: Json, wanted: str) -> dict[str, Json]:
    if not isinstance(answer, dict):
        raise NothingSelected(f"{step} selection failed: the answer must be an object with {wanted}.")
    return cast(dict[str, Json], answer)


def _texts(names: Json) -> list[str]:
    listed = cast(list[Json], names) if isinstance(names, list) else []
    return [name for name in listed if isinstance(name, str)]


T = TypeVar("T")
TIMES = 2
"""How often a model is asked for one selection."""
PROVIDERS = {"google_genai": "google", "mistralai": "mistral", "azure_openai": "azure", "bedrock_converse": "bedrock"}
"""LangChain's names of providers, where Mulligan's are different."""
_SLOTS = {
    "entities": ("entities", "question", "tool", "schema"),
    "relationships": ("entities", "relationships", "question", "tool", "schema"),
    "properties": ("properties", "question", "tool", "schema"),
    "selected": ("language", "entities", "relationships", "combinations", "notes"),
    "query": ("selected", "question", "tool", "schema"),
}


class BioCypherPromptEngine:
    """Writes prompts that describe the parts of a graph that are relevant to a question.

    Nothing is called before the first question. `usage` is the total usage of all questions so far. In a node of a
    Mulligan graph, each call is recorded in the graph's journal.

    Args:
        schema_config_or_info_path, schema_config_or_info_dict: BioCypher's schema configuration, or the schema info
            that it writes (`is_schema_info: true`); at most one of them.
        model_provider, model_name: The model, if neither `conversation_factory` nor `model` is given. If none
            of the four is given, the model is the one in MULLIGAN_MODEL or mulligan.toml.
        conversation_factory: Returns a conversation with a LangChain chat model as `.chat`.
        graph: A live database or its `GraphSchema`. It provides the schema, if it is not given otherwise, and the notes
            on the database's dialect.
        model: A name, or a model.
        prompts: The folder with the files prompt_engine.*.md.

    Raises:
        InvalidInput: The schema, the model or a prompt is invalid.
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
        files = prompts or prompts_of()
        self._prompts = {part: files.get(f"prompt_engine.{part}").check(*slots) for part, slots in _SLOTS.items()}
        self._model = (conversation_factory, model, model_provider, model_name)
        self._meter = Meter()
        self._asker: Asker | None = None
        if any(self._model):
            self._asking()

    @property
    def usage(self) -> Usage:
        """The total usage of all questions so far."""
        return self._meter.usage

    @property
    def entities(self) -> Mapping[str, Mapping[str, str]]:
        """The schema's entities by label, with their properties; empty for a live database."""
        return self._known.entities if self._known else {}

    @property
    def relationships(self) -> Mapping[str, Relationship]:
        """The schema's relationships by label, with their properties; empty for a live database."""
        return self._known.relationships if self._known else {}

    def generate_query_prompt(self, question: str, query_language: str = CYPHER) -> str:
        """Return a description of what a model must know about the graph to write a query for a question.

        Raises:
            InvalidInput: The question is empty, or a key is missing.
            NothingSelected: A selection is empty. This is a `BadAnswer` and a `ValueError`.
            Exception: What the model raises.
        """
        return portal.finish(self.agenerate_query_prompt(question, query_language))

    async def agenerate_query_prompt(self, question: str, query_language: str = CYPHER) -> str:
        """Same as `generate_query_prompt`, for asynchronous code."""
        return self._described(await self.aselect(question), query_language)

    def generate_query(self, question: str, query_language: str = CYPHER) -> str:
        """Return a query for a question, with a fourth call. Raises what `generate_query_prompt` raises."""
        return portal.finish(self.agenerate_query(question, query_language))

    async def agenerate_query(self, question: str, query_language: str = CYPHER) -> str:
        """Same as `generate_query`, for asynchronous code."""
        selected = await self.agenerate_query_prompt(question, query_language)
        schema = schema_of_query("WriteQuery", query_language)
        return await self._ask("query", schema, _query, selected=selected, question=question)

    def select(self, question: str) -> EntitySelection:
        """Return the part of the graph that is relevant to a question. Raises what `generate_query_prompt` raises."""
        return portal.finish(self.aselect(question))

    async def aselect(self, question: str) -> EntitySelection:
        """Same as `select`, for asynchronous code."""
        if not question.strip():
            raise InvalidInput("The question is empty. Write what you want to find out.")
        self._asking()  # a missing key is an error before the database is read
        known = self._known or from_database(await recorded_schema(cast(Graph, self._graph)))
        entities = await self._ask(
            "entities",
            schema_of_names("SelectEntities", "entities", list(known.entities)),
            lambda answer: take_entities(answer, known),
            entities=lines({name: listed(properties) for name, properties in known.entities.items()}),
            question=question,
        )
        offered, chosen = relationships_for(entities, known), dict[str, Relationship]()
        if offered:
            entities, chosen = await self._ask(
                "relationships",
                schema_of_names("SelectRelationships", "relationships", list(offered)),
                lambda answer: take_relationships(answer, entities, offered),
                entities=", ".join(entities),
                relationships=lines({name: _relationship(each) for name, each in offered.items()}),
                question=question,
            )
        wanted = properties_of(entities, chosen, known)
        if wanted:
            wanted = await self._ask(
                "properties",
                schema_of_properties("SelectProperties", wanted),
                lambda answer: take_properties(answer, wanted),
                properties=lines({name: typed(properties) for name, properties in wanted.items()}),
                question=question,
            )
        return selection(entities, chosen, wanted)

    async def _ask(self, part: str, schema: Mapping[str, Json], take: Callable[[Json], T], **values: str) -> T:
        return await self._asking().ask(self._prompts[part], schema, take, values)

    def _described(self, selection: EntitySelection, language: str) -> str:
        graph = self._graph
        messages = self._prompts["selected"].render(
            language=graph.language if graph is not None and language == CYPHER else language,
            entities=in_query(selection.entities),
            relationships=in_query(selection.labels),
            combinations="\n".join(f"- {pattern}" for pattern in selection.patterns),
            notes="\n".join(f"- {note}" for note in graph.notes) if graph is not None else "",
        )
        return "\n\n".join(message.text for message in messages)

    def _asking(self) -> Asker:
        if self._asker is None:
            self._asker = Asker(conversation_of(*self._model), self._meter)
        return self._asker


class Asker:
    """Asks for JSON of a schema: a chat model by a tool that it must call, any other conversation in words.

    Args:
        conversation: A chat model, an object with one as `.chat`, or an object with `reset`, `append_system_message`
            and `query(text)`, which returns (text, usage, correction).

    Raises:
        InvalidInput: The conversation is not one of these.
    """

    def __init__(self, conversation: Any, meter: Meter) -> None:
        self._meter = meter
        chat: Any = conversation if isinstance(conversation, BaseChatModel) else getattr(conversation, "chat", None)
        self._chat = None if chat is None else journalled(chat)
        self._conversation: Any = conversation
        if chat is None and not hasattr(conversation, "query"):
            kind = type(conversation).__name__
            raise InvalidInput(f"A conversation needs a chat model as .chat, or query(text); {kind} has neither.")

    async def ask(
        self, prompt: Prompt, schema: Mapping[str, Json], take: Callable[[Json], T], values: Mapping[str, str]
    ) -> T:
        """Return what `take` makes of the answer. Raises its `BadAnswer` if the second answer is not valid either."""
        bound: Any = None if self._chat is None else with_tool(self._chat, dict(schema), schema["title"])
        format = {"tool": schema["title"], "schema": ""} if bound else {"tool": "", "schema": json.dumps(schema)}
        messages = as_messages(prompt.render(**values, **format))

        def check(answer: AIMessage) -> T:
            return take(cast(Json, fields_of(answer, schema)))

        async def ask_chat(messages: list[BaseMessage]) -> AIMessage:
            answer: AIMessage = await invoke(bound or self._chat, messages)
            self._meter.add(usage_of(answer))
            return answer

        async def ask_in_words(messages: list[BaseMessage]) -> AIMessage:
            return AIMessage(await self._query(messages[-1].text, system))

        if self._chat is not None:
            return await until_valid(ask_chat, messages, check, TIMES)
        system = [message.text for message in messages[:-1]]
        self._conversation.reset()
        for text in system:
            self._conversation.append_system_message(text)
        return await until_valid(ask_in_words, messages, check, TIMES)

    async def _query(self, text: str, system: Sequence[str]) -> str:
        async def ask() -> Json:
            answer: Any = await portal.call(self._conversation.query, text)
            return str(cast(Any, answer)[0] if isinstance(answer, tuple) else answer)

        for meter in (self._meter, *((work.meter,) if (work := here.get()) else ())):
            meter.add(Usage(calls=1, cost=None))
        return await recorded("model", {"conversation": [*system], "asked": text}, ask)


def conversation_of(
    factory: Callable[[], Any] | None, model: str | Model | BaseChatModel | None, provider: str | None, name: str | None
) -> Any:
    """Return what is asked: the factory's product, else the model, else the model of this provider and name.

    Without any of them, MULLIGAN_MODEL or mulligan.toml names the model. A model of Mulligan is asked at temperature 0.
    Nothing is called. Raises `InvalidInput`.
    """
    if factory is not None:
        return factory()
    if isinstance(model, BaseChatModel):
        return model
    if model is not None:
        return chat_model(model, temperature=0.0)
    if name and provider:
        name = f"{PROVIDERS.get(provider, provider)}:{name}"
    if provider and not name:
        raise InvalidInput(f"No {provider} model was specified: pass model_name=….")
    return chat_model(name, temperature=0.0)


def listed(properties: Mapping[str, str]) -> str:
    return ", ".join(properties)


def in_query(kinds: Mapping[str, Mapping[str, str]]) -> str:
    """Return a line for each kind, with all names spelt as in a query."""
    return lines(
        {
            spelled(kind): typed({spelled(name): type for name, type in properties.items()})
            for kind, properties in kinds.items()
        }
    )


def _ways(each: Relationship) -> list[str]:
    return [drawn(source, each.label, target, each.directed) for source, target in each.ends]


def _relationship(each: Relationship) -> str:
    ways = ", ".join(_ways(each)) or f"[:{spelled(each.label)}]"
    return f"{ways}; {listed(each.properties)}" if each.properties else ways


def _query(answer: Json) -> str:
    found = cast(dict[str, Json], answer).get("query") if isinstance(answer, dict) else None
    if not isinstance(found, str) or not found.strip():
        raise BadAnswer("The answer must hold the query as a string.")
    return found.strip()


def _known(path: str | Path | None, table: Mapping[str, Any] | None, graph: Graph | GraphSchema | None) -> Known | None:
    """Return the schema; None if a live database must be asked for it."""
    if path is not None and table is not None:
        raise InvalidInput("schema_config_or_info_path and schema_config_or_info_dict cannot both be given.")
    if path is not None:
        return from_file(path)
    if table is not None:
        return from_table(table)
    if graph is None:
        raise InvalidInput(
            "The engine needs a schema: schema_config_or_info_path=…, schema_config_or_info_dict=…, or graph=…."
        )
    return from_database(graph) if isinstance(graph, GraphSchema) else None
