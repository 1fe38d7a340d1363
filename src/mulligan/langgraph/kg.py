"""`KGQueryReflexionAgent`: writes a query for a question, runs it on a graph database, and corrects it."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, ConfigDict, Field, field_validator

from mulligan.graphs.bare_query import bare_query
from mulligan.graphs.opening import open_graph
from mulligan.graphs.protocol import SECONDS, Graph, GraphSchema, Rows, check_limits
from mulligan.langgraph.agent import (
    Prompted,
    ReflexionAgent,
    ReflexionAgentLogger,
    ReflexionAgentResult,
    Transcript,
)
from mulligan.langgraph.asking import (
    TIMES,
    ResponderWithRetries,
    SchemaResponder,
    every_query_in,
    merge_calls,
    queries_in,
    recorded,
    with_whole_fields,
)
from mulligan.langgraph.defaults import prompts_of
from mulligan.langgraph.executing import query_answered
from mulligan.langgraph.graph_texts import queries_run, record_in, schema_text, tool_message
from mulligan.langgraph.judging import RowsJudge, redraft_messages
from mulligan.langgraph.nodes import STEPS
from mulligan.langgraph.pairs import with_pairs
from mulligan.langgraph.querying import ROWS, Querying, Until, check_until, rows_settle
from mulligan.langgraph.state import GOOD_SCORE, Reading, last
from mulligan.langgraph.working import here
from mulligan.pages import labelled
from mulligan.plugins import BadAnswer, Bank, InvalidInput, Json, Prompt, Prompts, QueryError
from mulligan.running import Store, portal

T = TypeVar("T")

CYPHER = "Cypher"
"""The default query language; the database's own name for its dialect replaces it."""
SLOTS = ("language", "rows", "graph", "notes", "lessons")
"""The placeholders of the prompts kg.draft and kg.revise."""


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
    """An agent that answers questions from a graph database.

    The first question opens the database, before the model is asked. The database stays open until `close` or the end
    of the process. A subclass can override `_connect_db` to set `neodriver`, whose `query(query)` then replaces the
    database, or override `_query_graph_database` to answer queries itself.

    Args:
        connection_args: The `path` of an embedded graph; `host` or `uri`, with `port`, `user`, `password` and
            `database`; a path or an address alone; or a `Graph`.
        query_lang: The query language. "Cypher" is replaced with the name of the database's dialect.
        seconds: The time limit for one query, in seconds.
        rows: The number of rows that an answer keeps.
        until: "rows": the run ends at the first rows with a value. "judged": the rows must answer the question, as far
            as rules and the model can tell; see docs/knowledge-graphs.md.
        drafts: The number of first drafts, with "judged". Their answers are compared by their rows.
        max_tokens: The maximum number of tokens in a draft or revision. None: the model's own limit.
        temperatures: The temperatures for the first draft and for later ones. None: the model's own, as for the judge.
        prompts: A folder with replacements for the default prompts kg.draft.md, kg.revise.md and kg.judge.md.

    The other arguments and errors are those of `ReflexionAgent`.
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
        until: Until = "rows",
        drafts: int = 1,
        max_tokens: int | None = None,
        temperatures: Sequence[float] | None = None,
        prompts: str | Path | None = None,
        store: Store | bool | None = None,
        agent_id: str = "",
        bank: Bank | str | None = None,
        learn: bool = True,
    ) -> None:
        check_until(until, drafts)
        if max_tokens is not None and max_tokens < 1:
            raise InvalidInput(f"max_tokens must be at least 1, not {max_tokens}.")
        if temperatures is not None and (len(temperatures) != 2 or any(not 0 <= t <= 2 for t in temperatures)):
            raise InvalidInput(f"temperatures must be two numbers from 0 to 2, not {list(temperatures)}.")
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
        check_limits(seconds, rows)
        self.query_lang, self.seconds, self.rows = query_lang, seconds, rows
        self.until: Until = until
        self.drafts, self.max_tokens = drafts, max_tokens
        self._first_temperature, self._later_temperature = temperatures or (None, None)
        self._texts = prompts_of(prompts)
        self._prompts = query_prompts(self._texts)
        self._opened_here = not isinstance(connection_args, Graph)
        self._database = connection_args if isinstance(connection_args, Graph) else open_graph(connection_args)
        self.connection_args = _Access(connection_args if isinstance(connection_args, Mapping) else {})
        self.neodriver: Any = None
        self._querying = Querying(
            self._database,
            self._rows_of,
            is_own=lambda: not self._asks_elsewhere(),
            rows=rows,
            judged=until == "judged",
            drafts=drafts,
        )

    def _create_initial_responder(self, prompt: str | None = None) -> ResponderWithRetries:
        return self._responder("draft", GenerateQuery, prompt, self._first_temperature, _DraftResponder)

    def _create_revise_responder(self, prompt: str | None = None) -> ResponderWithRetries:
        if self.until == "judged":
            return self._responder("draft", GenerateQuery, prompt, self._later_temperature, _RedraftResponder)
        return self._responder("revise", ReviseQuery, prompt, self._later_temperature, _QueryResponder)

    def _judge(self) -> RowsJudge | None:
        if self.until == "rows":
            return None
        return RowsJudge(self.conversation.chat, self._texts, self._querying, self.good_score)

    def _responder(
        self,
        part: str,
        schema: type[BaseModel],
        prompt: str | None,
        temperature: float | None,
        responder_class: type[_QueryResponder],
    ) -> ResponderWithRetries:
        def values() -> Mapping[str, str]:
            database, language = self._database, self.query_lang
            return {
                "language": database.language if language == CYPHER else language,
                "rows": str(self.rows),
                "graph": prompt or "",
                "notes": "\n".join(f"- {note}" for note in database.notes),
            }

        options = {"max_tokens": self.max_tokens, "temperature": temperature}
        set_options = {name: value for name, value in options.items() if value is not None}
        responder = responder_class(self.conversation.chat, schema, self._prompts[part], values, **set_options)
        responder.drafts = self.drafts
        return responder

    def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
        """Run the proposed queries: see `Querying.tried`.

        The message's `artifact` holds the query and its whole result; its text holds as much as the model is shown.
        """
        calls = getattr(state[-1], "tool_calls", ())
        call: Mapping[str, Any] = calls[0] if calls else {"args": {"answer": state[-1].text}}
        queries = (every_query_in if self.until == "judged" else queries_in)(call["args"])
        running = self._querying.tried(queries, self._asked, queries_run(state), state[0].text)
        return tool_message(self._wait_for(running), call)

    def _prepare(self) -> None:
        if not self._overridden("_tool_function"):
            self._connect_db()

    def _connect_db(self) -> None:
        """Connect to the database; called before the model is first asked and before each query. Raises `GraphError`
        if the database cannot be reached."""
        if self.neodriver is None and not self._overridden("_query_graph_database"):
            self._wait_for(self._reach())

    async def _reach(self) -> None:
        with suppress(QueryError):  # it answers, even if it refuses the query
            await self._database.run("RETURN 1 AS connected", rows=1)

    def _query_graph_database(self, query: str) -> Any:
        """Return the rows of the query, and the `Rows` object. An override may return the rows alone.

        Raises `QueryError` for what the model can correct, and `GraphError`.
        """
        self._connect_db()
        if self.neodriver is not None:
            return self.neodriver.query(query)
        found = self._wait_for(self._run(query))
        return [dict(row) for row in found.rows], found

    async def _run(self, query: str) -> Rows:
        return await self._database.run(query, seconds=self.seconds, rows=self.rows)

    def _overridden(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(KGQueryReflexionAgent, name)

    async def _asked(self, query: str) -> dict[str, Json]:
        """Return the outcome of the query: see `Querying.asked`. Inside a node it is a step of the journal."""
        work = here.get()
        return await self._querying.asked(query, work.episode.task.prompt if work else "")

    def _asks_elsewhere(self) -> bool:
        """Whether a subclass asks something else than the database."""
        return self._overridden("_connect_db") or self._overridden("_query_graph_database")

    async def _rows_of(self, query: str) -> Rows:
        """Return the rows of the query, from the database or from what a subclass asks instead."""
        if not self._asks_elsewhere():
            return await self._run(query)
        found: Any = await asyncio.to_thread(self._query_graph_database, query)
        if inspect.isawaitable(found):
            found = await found
        rows, details = cast(tuple[Any, Any], (*found, None)[:2] if isinstance(found, tuple) else (found, None))
        if rows is None:  # how neo4j_utils reports an error
            raise QueryError("The database refused the query without giving a reason.", "failed")
        plain_rows: list[Any] = json.loads(json.dumps([_plain(row) for row in rows], default=_plain))
        truncated = len(plain_rows) > self.rows or (isinstance(details, Rows) and details.truncated)
        return Rows((), tuple(plain_rows[: self.rows]), truncated)

    def _wait_for(self, running: Coroutine[Any, Any, T]) -> T:
        work = here.get()
        if work is None:
            return portal.run_coroutine(running)
        work.pending = asyncio.run_coroutine_threadsafe(running, work.loop)
        return work.pending.result()

    def _answered(self, reading: Reading, message: ToolMessage) -> str:
        return query_answered(reading, message)

    def _passed(self, reading: Reading, message: ToolMessage) -> bool | None:
        """A good score; a query that failed never passes, whatever its score."""
        return False if message.status == "error" else super()._passed(reading, message)

    def _settles(self, message: ToolMessage) -> str:
        return rows_settle(message)

    def _final(self, messages: Transcript, result: dict[str, Any]) -> Any:
        """Return the result: that of the best query if the run ended unsure; without rows if it ended absent."""
        if result.get("stop") == "unsure":
            tools = {n: message for n, message in enumerate(messages) if isinstance(message, ToolMessage)}
            best = [n for n, tool in tools.items() if record_in(tool).get("query") == result["answer"]]
            messages = Transcript(messages[: (best[0] if best else max(tools)) + 1])
        final = super()._final(messages, result)
        is_absent = result.get("stop") == "absent" and isinstance(final, ReflexionAgentResult)
        return replace(final, tool_result=None) if is_absent else final

    def _parse_final_result(self, output: Any) -> ReflexionAgentResult:
        """Return the query that ran last, and its rows."""
        message = last(output, ToolMessage)
        if message is None:
            return ReflexionAgentResult(None)
        outcome = record_in(message)
        detail = f"the last query failed: {outcome['error']}" if "error" in outcome else ""
        note = "; ".join(str(outcome[name]) for name in ("truncated", "composed") if name in outcome)
        return ReflexionAgentResult(outcome.get("query"), outcome["result"], detail=detail, note=note)

    def _recalling(self) -> Bank | None:
        return with_pairs(super()._recalling(), self._querying)

    def _settings(self) -> dict[str, Json]:
        settings: dict[str, Json] = {"database": self._database.name, "language": self.query_lang, "rows": self.rows}
        settings |= {"until": self.until} if self.until != "rows" else {}
        settings |= {"max_tokens": self.max_tokens} if self.max_tokens else {}
        if self._first_temperature is not None:
            settings["temperatures"] = [self._first_temperature, self._later_temperature]
        return {**super()._settings(), **settings, "seconds": self.seconds}

    def _prompt_texts(self) -> Mapping[str, str]:
        return self._texts.texts

    def _with_lessons(self, prompt: str | None, lessons: str) -> str | None:
        """Return the prompt alone: the kg prompts have a placeholder of their own for lessons."""
        return prompt

    def _prompt(self, given: Prompted) -> Prompted:
        """Return the given prompt, or else the graph's whole schema. `BioCypherPromptEngine` chooses parts of it."""
        return given or self._schema

    async def _schema(self, question: str) -> str:
        return schema_text(await recorded_schema(self._database))

    async def aclose(self) -> None:
        """Same as `close`, for asynchronous code."""
        await super().aclose()
        if self._opened_here:
            await self._database.close()


class _Access(dict[str, Any]):
    """The connection's arguments, for an override of `_connect_db`. `repr` does not show their values."""

    def __repr__(self) -> str:
        return f"connection_args({', '.join(self)})"


def _plain(value: Any) -> Any:
    """Convert a row of another driver, or a value in it, to JSON."""
    if isinstance(value, str | int | float | list) or value is None:
        return cast(Any, value)
    return dict(cast(Mapping[str, Any], value)) if isinstance(value, Mapping) else str(value)


_LIMIT_AT_END = re.compile(r"(?:\s*;|\s+LIMIT\s+\d+)+$", re.IGNORECASE)


class _QueryResponder(SchemaResponder):
    """Asks for a query, and merges several tool calls into one. If a call was cut off, its complete fields count."""

    needs_tools = may_be_empty = True
    drafts = 1
    """The number of drafts that a `_DraftResponder` makes."""

    async def _ask(self, messages: list[BaseMessage]) -> Any:
        return merge_calls(with_whole_fields(await super()._ask(messages), self._schema))


class _DraftResponder(_QueryResponder):
    """Asks for several drafts of a query, each unlike those before it, and returns them all as one message."""

    @portal.both_ways
    async def arespond(self, state: Sequence[BaseMessage]) -> Any:
        message = await super().arespond(state)
        for _ in range(self.drafts - 1):
            written = every_query_in(message.tool_calls[0]["args"])
            try:
                other = await super().arespond([*state, in_another_way(written)])
            except BadAnswer:
                break
            more = every_query_in(other.tool_calls[0]["args"])[:1]
            call = message.tool_calls[0]
            arguments = {**call["args"], "search_queries": [*written, *more]}
            message = AIMessage(message.content, tool_calls=[{**call, "args": arguments}])
        return message


class _RedraftResponder(_QueryResponder):
    """Asks for another query, given the earlier ones: see `redraft_messages`.

    If the query failed or gave no rows before, another one is asked for, at most twice; then it counts.
    """

    @portal.both_ways
    async def arespond(self, state: Sequence[BaseMessage]) -> Any:
        messages, failed = redraft_messages(state), failed_in(state)
        message = await super().arespond(messages)
        for _ in range(TIMES - 1):
            written = every_query_in(message.tool_calls[0]["args"])
            if not written or not failed.issuperset(map(folded, written)):
                break
            try:
                message = await super().arespond([*messages, in_another_way(written)])
            except BadAnswer:
                break
        return message


def in_another_way(written: Sequence[str]) -> HumanMessage:
    """Return the request for a query that is unlike these."""
    request = "Answer the question with a query that is built in another way than these"
    return HumanMessage(labelled(request, "\n".join(written)))


def failed_in(messages: Sequence[BaseMessage]) -> frozenset[str]:
    """Return the folded queries that failed or gave no rows, as the model wrote them and as they were repaired.

    Those that look for something that is not in the graph are left out, since they may be right.
    """
    failed, written = list[str](), list[str]()
    for message in messages:
        if isinstance(message, AIMessage):
            written = [query for call in message.tool_calls for query in every_query_in(call["args"])]
        elif isinstance(message, ToolMessage):
            outcome = record_in(message)
            if outcome.get("result") or outcome.get("absent"):
                continue
            failed += [str(outcome.get("query", "")), *(written if len(written) == 1 else ())]
    return frozenset(map(folded, failed))


def folded(query: str) -> str:
    """Return the bare query with single spaces, without a limit or semicolon at its end, to compare queries."""
    return _LIMIT_AT_END.sub("", " ".join(bare_query(query).split()))


def query_prompts(prompts: Prompts) -> Mapping[str, Prompt]:
    """Return the prompts kg.draft and kg.revise. Raises `InvalidInput` for an unknown placeholder."""
    return {part: prompts.get(f"kg.{part}").check(*SLOTS) for part in ("draft", "revise")}


async def recorded_schema(database: Graph) -> GraphSchema:
    """Return the schema of a database. Inside a node it is a step of the journal."""

    async def read() -> Json:
        return (await portal.settled(database.schema())).to_json()

    return GraphSchema.from_json(await recorded("schema", {"graph": database.name}, read))
