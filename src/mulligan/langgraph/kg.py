"""`KGQueryReflexionAgent`: writes a query for a question, runs it on a graph database, and mends it (seed 001)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import BaseModel, Field

from mulligan.core.errors import QueryError
from mulligan.core.graphs import SECONDS, Graph, Rows
from mulligan.core.protocols import Store
from mulligan.core.records import Json
from mulligan.langgraph.agent import (
    GOOD_SCORE,
    ReflexionAgent,
    ReflexionAgentResult,
    ResponderWithRetries,
)
from mulligan.langgraph.bridge import run
from mulligan.langgraph.graph import STEPS, Reading
from mulligan.langgraph.logger import ReflexionAgentLogger
from mulligan.langgraph.schema_text import schema_text
from mulligan.langgraph.working import here

T = TypeVar("T")

ROWS = 30
"""Rows that a query may give the model."""


class GenerateQuery(BaseModel):
    """A query for the graph database that answers the question."""

    answer: str = Field(description="The query that answers the question.")
    reflection: str = Field(description="What may be wrong with the query, and how it could be better.")
    search_queries: list[str] = Field(
        default_factory=list, description="Queries to run, the best one first; empty: the answer alone."
    )


class ReviseQuery(GenerateQuery):
    """The query, scored by what it gave, and mended."""

    revised_query: str = Field(description="The query to run next.")
    score: str = Field(description="How well the result answers the question, from 0 (not at all) to 10 (fully).")


class KGQueryReflexionAgent(ReflexionAgent):
    """connection_args: `path` of an embedded graph, or `host`, `port`, `user`, `password`, `database`, or `uri`; or a
    `Graph`. query_lang: what the model is told to write; "Cypher" is made exact by the database's dialect.
    seconds: what one query may take. The rest is as in `ReflexionAgent`. Raises `InvalidInput`.
    """

    def __init__(
        self,
        conversation_factory: Callable[[], Any],
        connection_args: Mapping[str, Any] | Graph,
        query_lang: str = "Cypher",
        max_steps: int = STEPS,
        agent_logger: ReflexionAgentLogger | None = None,
        *,
        good_score: float = GOOD_SCORE,
        seconds: float = SECONDS,
        store: Store | bool | None = None,
        agent_id: str = "",
    ) -> None:
        super().__init__(
            conversation_factory, max_steps, agent_logger, good_score=good_score, store=store, agent_id=agent_id
        )
        self.query_lang, self.seconds = query_lang, seconds
        self._connection = connection_args
        self._opened: Graph | None = None
        self._database()  # what cannot be a connection is said at once

    async def aexecute(self, question: str, prompt: str | None = None) -> Any:
        """prompt: what the model is told of the graph (`BioCypherPromptEngine`); None: the graph's whole schema."""
        try:
            return await super().aexecute(question, prompt or schema_text(await self._database().schema()))
        finally:
            if self._opened is not None and self._opened is not self._connection:
                await self._opened.close()
                self._opened = None

    def _database(self) -> Graph:
        """Opened anew for each question: an engine's process belongs to one event loop."""
        if isinstance(self._connection, Graph):
            return self._connection
        if self._opened is None:
            from mulligan.app.graphs import open_graph

            self._opened = open_graph(self._connection)
        return self._opened

    def _create_initial_responder(self, prompt: str | None = None) -> Any:
        return self._responder("kg.draft", GenerateQuery, prompt)

    def _create_revise_responder(self, prompt: str | None = None) -> Any:
        return self._responder("kg.revise", ReviseQuery, prompt)

    def _responder(self, name: str, schema: type[BaseModel], prompt: str | None) -> ResponderWithRetries:
        from mulligan.app.prompts import FilePrompts

        database = self._database()
        told = FilePrompts().get(name).check("language", "rows", "schema", "notes", "lessons")
        messages = told.render(
            language=database.language if self.query_lang == "Cypher" else self.query_lang,
            rows=str(ROWS),
            schema=prompt or "",
            notes="\n".join(f"- {note}" for note in database.notes),
            lessons="",
        )
        system = [SystemMessage(message.text) for message in messages]
        model: Runnable[Any, Any] = self.conversation.chat.bind_tools([schema], tool_choice=schema.__name__)

        def asked(given: Mapping[str, Any]) -> list[BaseMessage]:
            return [*system, *given["messages"]]

        def check(message: AIMessage) -> bool:
            call = message.tool_calls[0]
            return call["name"] == schema.__name__ and bool(schema.model_validate(call["args"]))

        return ResponderWithRetries(RunnableLambda(asked) | model, check)

    def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
        """Runs the proposed queries in their order, until one gives rows; the message says which, and what came."""
        call = cast(AIMessage, state[-1]).tool_calls[0]
        given = call["args"]
        queries = [given["revised_query"]] if given.get("revised_query") else given.get("search_queries") or []
        found = self._awaited(self._first(queries or [given["answer"]]))
        status = "error" if "error" in found else "success"
        content = json.dumps(found, ensure_ascii=False)
        return ToolMessage(content, tool_call_id=call["id"] or "", name=call["name"], status=status)

    async def _first(self, queries: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for query in queries:
            found = await self._asked(query)
            if has_values(found["result"]):
                break
        return found

    async def _asked(self, query: str) -> dict[str, Any]:
        """{"query", "result"}, and "error" or "truncated"; journalled while a node is at work."""

        async def ask() -> Json:
            try:
                rows: Rows = await self._database().run(query, seconds=self.seconds, rows=ROWS)
            except QueryError as error:
                return {"query": query, "result": [], "error": str(error)}
            more = {"truncated": f"only the first {ROWS} rows"} if rows.truncated else {}
            return {"query": query, "result": [dict(row) for row in rows.rows], **more}

        work = here.get()
        return await (ask() if work is None else work.journal.step("query", {"query": query}, ask))

    def _awaited(self, asking: Coroutine[Any, Any, T]) -> T:
        work = here.get()
        return run(asking) if work is None else asyncio.run_coroutine_threadsafe(asking, work.loop).result()

    def _answered(self, reading: Reading, message: ToolMessage) -> str:
        return str(json.loads(str(message.content))["query"])

    def _passed(self, reading: Reading, message: ToolMessage) -> bool:
        if message.status == "error":
            return False
        return super()._passed(reading, message) or has_values(json.loads(str(message.content))["result"])

    def _parse_final_result(self, output: Any) -> ReflexionAgentResult:
        return self._result


def has_values(rows: Json) -> bool:
    """Whether any row holds a value; a text that says null is none (seed 001's code)."""
    listed = cast(list[Any], rows)
    values: list[Any] = [
        v for row in listed for v in (cast(dict[str, Any], row).values() if isinstance(row, dict) else [row])
    ]
    return any(value not in (None, "None", "null") for value in values)
