"""`KGQueryReflexionAgent`: writes a query for a question, runs it on a graph database, and mends it (seed 001)."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel, ConfigDict, Field, field_validator

from mulligan.app.prompts import FilePrompts
from mulligan.core.errors import InvalidInput, QueryError
from mulligan.core.graphs import SECONDS, Graph, Rows
from mulligan.core.protocols import Bank, Store
from mulligan.core.records import Json
from mulligan.langgraph.agent import ReflexionAgent, ReflexionAgentResult
from mulligan.langgraph.bridge import run, settled
from mulligan.langgraph.graph import STEPS, Reading
from mulligan.langgraph.kg_prompts import CYPHER, KGPrompts
from mulligan.langgraph.logger import ReflexionAgentLogger
from mulligan.langgraph.modern import GOOD_SCORE
from mulligan.langgraph.responder import NO_CALL, ResponderWithRetries, one_call, proposed
from mulligan.langgraph.roles import Prompted, recalled
from mulligan.langgraph.rows import has_values, record_in, result_in, tool_message
from mulligan.langgraph.schema_forms import schema_json, schema_of_json
from mulligan.langgraph.schema_text import schema_text
from mulligan.langgraph.working import here
from mulligan.text.truncate import truncate_text

T = TypeVar("T")

ROWS = 30
"""Rows of an answer that are kept, and that the model is told to ask for at most (seed 001's prompt)."""
QUERIES = 5
"""Queries of one draft or revision that are tried."""
ERROR_TOKENS = 1000


class GenerateQuery(BaseModel):
    """A query for the graph database that answers the question."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    answer: str = Field(description="The query that answers the question.")
    reflection: str = Field(description="What may be wrong with the query, and how it could be better.")
    search_queries: list[str] = Field(
        default_factory=list, description="Queries to run, the best one first; empty: the answer alone."
    )

    @field_validator("search_queries", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [] if value is None else [value] if isinstance(value, str) else value


class ReviseQuery(GenerateQuery):
    """The query, scored by what it gave, and mended."""

    revised_query: str = Field(description="The query to run next.")
    score: str = Field(description="How well the result answers the question, from 0 (not at all) to 10 (fully).")


class KGQueryReflexionAgent(ReflexionAgent):
    """connection_args: `path` of an embedded graph, or `host`, `port`, `user`, `password`, `database`, or `uri`; a path
    or an address alone; or a `Graph`. query_lang: what the model is told to write; "Cypher" is made exact by the
    database's dialect. seconds: what one query may take. rows: how many of an answer are kept. prompts: a folder with
    kg.draft.md and kg.revise.md in the place of ours. The rest is as in `ReflexionAgent`. Raises `InvalidInput`.

    The database is opened by the first question, before the model is asked, and stays open until `close` or the end of
    the process. An override of `_connect_db` may set `neodriver`, whose `query(query)` is then asked in the place of
    our database; one of `_query_graph_database` answers queries by itself.
    """

    def __init__(
        self,
        conversation_factory: Callable[[], Any] | Any,
        connection_args: Mapping[str, Any] | str | Path | Graph,
        query_lang: str = CYPHER,
        max_steps: int = STEPS,
        agent_logger: ReflexionAgentLogger | None = None,
        *,
        good_score: float = GOOD_SCORE,
        seconds: float = SECONDS,
        rows: int = ROWS,
        prompts: str | Path | None = None,
        store: Store | bool | None = None,
        agent_id: str = "",
        bank: Bank | str | None = None,
        learn: bool = True,
    ) -> None:
        super().__init__(
            conversation_factory,
            max_steps,
            agent_logger,
            good_score=good_score,
            store=store,
            agent_id=agent_id,
            bank=bank,
            learn=learn,
        )
        if seconds <= 0 or rows < 1:
            raise InvalidInput(f"A query is given some seconds and a row at least, not {seconds:g} s and {rows} rows.")
        self.query_lang, self.seconds, self.rows = query_lang, seconds, rows
        self._texts = _prompts(prompts)
        self._prompts = KGPrompts(self._texts)
        self._own = not isinstance(connection_args, Graph)
        self._database = _opened(connection_args)
        self.connection_args = _Access(connection_args if isinstance(connection_args, Mapping) else {})
        self.neodriver: Any = None

    def _create_initial_responder(self, prompt: str | None = None) -> ResponderWithRetries:
        return self._responder("draft", GenerateQuery, prompt)

    def _create_revise_responder(self, prompt: str | None = None) -> ResponderWithRetries:
        return self._responder("revise", ReviseQuery, prompt)

    def _responder(self, part: str, schema: type[BaseModel], prompt: str | None) -> ResponderWithRetries:
        def told() -> list[BaseMessage]:
            return self._prompts.messages(part, self._database, self.query_lang, self.rows, prompt or "", recalled())

        model = self.conversation.chat.bind_tools([schema], tool_choice=schema.__name__)

        def check(message: AIMessage) -> bool:
            if not message.tool_calls:
                raise ValueError(NO_CALL)
            call = message.tool_calls[0]
            if call["name"] != schema.__name__:
                raise ValueError(f"There is no tool {call['name']!r}: call {schema.__name__}.")
            return bool(schema.model_validate(call["args"]))

        return ResponderWithRetries(_Told(told, model), check)

    def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
        """Runs the proposed queries in their order, until one gives rows; the message says which, and what came of it.

        All of that is in its `artifact`, and in its text as much as the model is shown.
        """
        calls = getattr(state[-1], "tool_calls", ())
        call: Mapping[str, Any] = calls[0] if calls else {"args": {"answer": state[-1].text}}
        return tool_message(self._awaited(self._tried(proposed(call["args"]))), call)

    async def _tried(self, queries: Sequence[str]) -> dict[str, Json]:
        """{"query", "result"} of the first query that gives rows, else of the first that can be run, else of the first;
        "error", "truncated" and "others" where there is something to say."""
        if not queries:
            return {"query": "", "result": [], "error": "There was no query to run: put one into revised_query."}
        tried: list[dict[str, Json]] = []
        for query in dict.fromkeys(queries[:QUERIES]):
            tried.append(await self._asked(query))
            if has_values(tried[-1]["result"]):
                break
        ran = [found for found in tried if "error" not in found] or tried
        best = tried[-1] if has_values(tried[-1]["result"]) else ran[0]
        others = [{"query": f["query"], "gave": f.get("error", "no rows")} for f in tried if f is not best]
        return {**best, "others": others} if others else best

    def _prepare(self) -> None:
        if not self._overridden("_tool_function"):
            self._connect_db()

    def _connect_db(self) -> None:
        """Connects to the database, before the model is first asked and before each query. Raises `GraphError` where it
        cannot be reached."""
        if self.neodriver is None and not self._overridden("_query_graph_database"):
            self._awaited(self._reached())

    async def _reached(self) -> None:
        with suppress(QueryError):  # it answers, whatever it thinks of the query
            await self._database.run("RETURN 1 AS connected", rows=1)

    def _query_graph_database(self, query: str) -> Any:
        """The rows of the query, and what else the database says of them; an override may give the rows alone.

        Raises `QueryError` for what the model can mend, `GraphError`.
        """
        self._connect_db()
        if self.neodriver is not None:
            return self.neodriver.query(query)
        found = self._awaited(self._run(query))
        return [dict(row) for row in found.rows], found

    async def _run(self, query: str) -> Rows:
        return await self._database.run(query, seconds=self.seconds, rows=self.rows)

    def _overridden(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(KGQueryReflexionAgent, name)

    async def _asked(self, query: str) -> dict[str, Json]:
        """What came of the query; journalled while a node is at work."""

        async def ask() -> Json:
            try:
                found = await self._found(query)
            except QueryError as error:
                return {"query": query, "result": [], "error": truncate_text(str(error), ERROR_TOKENS)}
            more = {"truncated": f"there are more than these {len(found.rows)} rows"} if found.truncated else {}
            return {"query": query, "result": [*found.rows], **more}

        work, request = here.get(), {"query": query, "graph": self._database.name, "rows": self.rows}
        return await (ask() if work is None else work.journal.step("query", request, ask))

    async def _found(self, query: str) -> Rows:
        """The answer of our database, or of what a subclass asks in its place."""
        if not self._overridden("_connect_db") and not self._overridden("_query_graph_database"):
            return await self._run(query)
        found: Any = await asyncio.to_thread(self._query_graph_database, query)
        if inspect.isawaitable(found):
            found = await found
        rows, more = cast(tuple[Any, Any], (*found, None)[:2] if isinstance(found, tuple) else (found, None))
        if rows is None:  # so says neo4j_utils
            raise QueryError("The database refused the query, and did not say why.", "failed")
        listed: list[Any] = json.loads(json.dumps([_plain(row) for row in rows], default=_plain))
        truncated = len(listed) > self.rows or (isinstance(more, Rows) and more.truncated)
        return Rows((), tuple(listed[: self.rows]), truncated)

    def _awaited(self, asking: Coroutine[Any, Any, T]) -> T:
        work = here.get()
        if work is None:
            return run(asking)
        work.waits = asyncio.run_coroutine_threadsafe(asking, work.loop)
        return work.waits.result()

    def _answered(self, reading: Reading, message: ToolMessage) -> str:
        return str(record_in(message).get("query", reading.answer))

    def _passed(self, reading: Reading, message: ToolMessage) -> bool | None:
        """A good score; what failed is no answer, whatever the model says of it."""
        return False if message.status == "error" else super()._passed(reading, message)

    def _settles(self, message: ToolMessage) -> str:
        """Rows with a value in them end it, as in the seed."""
        return "rows came back" if message.status != "error" and has_values(result_in(message)) else ""

    def _parse_final_result(self, output: Any) -> ReflexionAgentResult:
        """The query that was run last, and its rows."""
        message = next((message for message in reversed(output) if isinstance(message, ToolMessage)), None)
        if message is None:
            return ReflexionAgentResult(None)
        found = record_in(message)
        failed = f"the last query failed: {found['error']}" if "error" in found else ""
        return ReflexionAgentResult(found.get("query"), found["result"], detail=failed, note=found.get("truncated", ""))

    def _settings(self) -> dict[str, Json]:
        settings = {"database": self._database.name, "language": self.query_lang, "rows": self.rows}
        return {**super()._settings(), **settings, "seconds": self.seconds}

    def _prompt_texts(self) -> Mapping[str, str]:
        return self._texts.texts

    def _with_lessons(self, prompt: str | None, lessons: str) -> str | None:
        """The prompt alone: lessons have a place of their own in ours."""
        return prompt

    def _prompt(self, given: Prompted) -> Prompted:
        """The graph's whole schema, where nothing is given (`BioCypherPromptEngine` chooses of it)."""
        return given or self._schema

    async def _schema(self, question: str) -> str:
        return schema_text(schema_of_json(await self._known_schema()))

    async def _known_schema(self) -> Json:
        """The database's schema as JSON; journalled while a node is at work."""
        database = self._database

        async def look() -> Json:
            return schema_json(await settled(database.schema()))

        work = here.get()
        return await (look() if work is None else work.journal.step("schema", {"graph": database.name}, look))

    async def aclose(self) -> None:
        await super().aclose()
        if self._own:
            await self._database.close()


class _Access(dict[str, Any]):
    """The connection's arguments, for an override of `_connect_db`; shown without their values."""

    def __repr__(self) -> str:
        return f"connection_args({', '.join(self)})"


def _plain(value: Any) -> Any:
    """A row of another driver, or what it holds, as JSON knows it."""
    if isinstance(value, str | int | float | list) or value is None:
        return cast(Any, value)
    return dict(cast(Mapping[str, Any], value)) if isinstance(value, Mapping) else str(value)


class _Told:
    """The model, told something before the messages of the conversation."""

    def __init__(self, told: Callable[[], Sequence[BaseMessage]], model: Any) -> None:
        self._told, self._model = told, model

    def invoke(self, given: Mapping[str, Any]) -> AIMessage:
        return one_call(self._model.invoke([*self._told(), *given["messages"]]))

    async def ainvoke(self, given: Mapping[str, Any]) -> AIMessage:
        return one_call(await self._model.ainvoke([*self._told(), *given["messages"]]))


def _prompts(folder: str | Path | None) -> FilePrompts:
    """Those of this folder, else of the one that mulligan.toml names, and ours."""
    from mulligan.app.config import load, prompts_folder

    chosen = folder or prompts_folder(load())
    return FilePrompts([Path(chosen)] if chosen else [])


def _opened(where: Mapping[str, Any] | str | Path | Graph) -> Graph:
    if isinstance(where, Graph):
        return where
    from mulligan.app.graphs import open_graph

    return open_graph(where)
