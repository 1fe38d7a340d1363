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
    mended,
    merge_calls,
    queries_in,
    recorded,
)
from mulligan.langgraph.defaults import prompts_of
from mulligan.langgraph.executing import query_answered
from mulligan.langgraph.graph_texts import queries_run, record_in, schema_text, tool_message
from mulligan.langgraph.judging import RowsJudge, redraft_messages
from mulligan.langgraph.nodes import STEPS
from mulligan.langgraph.pairs import with_pairs
from mulligan.langgraph.querying import ROWS, Querying, Until, check_until, rows_settle
from mulligan.langgraph.working import GOOD_SCORE, Reading, here, last
from mulligan.pages import labelled
from mulligan.plugins import BadAnswer, Bank, InvalidInput, Json, Prompt, Prompts, QueryError
from mulligan.running import Store, both_ways, run_coroutine, settled

T = TypeVar("T")

CYPHER = "Cypher"
"""The default query language; the database's own name for its dialect replaces it."""
SLOTS = ("language", "rows", "graph", "notes", "lessons")


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

    The first question opens the database, before the model is asked; it stays open until `close` or the end of the
    process. An override of `_connect_db` may set `neodriver`, whose `query(query)` then replaces the database; an
    override of `_query_graph_database` answers queries by itself.

    Args:
        connection_args: `path` of an embedded graph, or `host`, `port`, `user`, `password`, `database`, or `uri`; a
            path or an address alone; or a `Graph`.
        query_lang: The language of the queries; "Cypher" is replaced by the name of the database's dialect.
        seconds: The time limit of one query.
        rows: The number of rows that an answer keeps.
        until: "rows": the first rows with a value end the run. "judged": the rows must answer the question, as far as
            rules and the model can tell; see docs/knowledge-graphs.md.
        drafts: The number of first drafts, at "judged". Their answers are compared by their rows.
        max_tokens: The most tokens of a draft or revision; None: the model's own limit.
        temperatures: Those of the first draft and of later ones; None: the model's own, which the judge always has.
        prompts: A folder with kg.draft.md, kg.revise.md and kg.judge.md that replace the default prompts.

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
        self._first, self._later = temperatures or (None, None)
        self._texts = prompts_of(prompts)
        self._prompts = query_prompts(self._texts)
        self._own = not isinstance(connection_args, Graph)
        self._database = connection_args if isinstance(connection_args, Graph) else open_graph(connection_args)
        self.connection_args = _Access(connection_args if isinstance(connection_args, Mapping) else {})
        self.neodriver: Any = None
        self._querying = Querying(
            self._database,
            self._found,
            is_own=lambda: not self._replaced(),
            rows=rows,
            judged=until == "judged",
            drafts=drafts,
        )

    def _create_initial_responder(self, prompt: str | None = None) -> ResponderWithRetries:
        return self._responder("draft", GenerateQuery, prompt, self._first, _DraftResponder)

    def _create_revise_responder(self, prompt: str | None = None) -> ResponderWithRetries:
        if self.until == "judged":
            return self._responder("draft", GenerateQuery, prompt, self._later, _RedraftResponder)
        return self._responder("revise", ReviseQuery, prompt, self._later, _QueryResponder)

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
        kind: type[_QueryResponder],
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
        given = {name: value for name, value in options.items() if value is not None}
        made = kind(self.conversation.chat, schema, self._prompts[part], values, **given)
        made.drafts = self.drafts
        return made

    def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
        """Run the proposed queries: see `Querying.tried`.

        The message's `artifact` holds the query and its result, its text as much of it as the model is shown.
        """
        calls = getattr(state[-1], "tool_calls", ())
        call: Mapping[str, Any] = calls[0] if calls else {"args": {"answer": state[-1].text}}
        queries = (every_query_in if self.until == "judged" else queries_in)(call["args"])
        tried = self._querying.tried(queries, self._asked, queries_run(state), state[0].text)
        return tool_message(self._awaited(tried), call)

    def _prepare(self) -> None:
        if not self._overridden("_tool_function"):
            self._connect_db()

    def _connect_db(self) -> None:
        """Connect to the database; called before the model is first asked and before each query. Raises `GraphError`
        if the database cannot be reached."""
        if self.neodriver is None and not self._overridden("_query_graph_database"):
            self._awaited(self._reached())

    async def _reached(self) -> None:
        with suppress(QueryError):  # it answers, even if it refuses the query
            await self._database.run("RETURN 1 AS connected", rows=1)

    def _query_graph_database(self, query: str) -> Any:
        """Return the rows of the query, and the `Rows` object. An override may return the rows alone.

        Raises `QueryError` for what the model can correct, and `GraphError`.
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
        """Return what came of the query: see `Querying.asked`. Inside a node it is a step of the journal."""
        work = here.get()
        return await self._querying.asked(query, work.episode.task.prompt if work else "")

    def _replaced(self) -> bool:
        """Whether a subclass asks something else than the database."""
        return self._overridden("_connect_db") or self._overridden("_query_graph_database")

    async def _found(self, query: str) -> Rows:
        """Return the rows of the database, or of what a subclass asks instead."""
        if not self._replaced():
            return await self._run(query)
        found: Any = await asyncio.to_thread(self._query_graph_database, query)
        if inspect.isawaitable(found):
            found = await found
        rows, more = cast(tuple[Any, Any], (*found, None)[:2] if isinstance(found, tuple) else (found, None))
        if rows is None:  # how neo4j_utils reports an error
            raise QueryError("The database refused the query without giving a reason.", "failed")
        listed: list[Any] = json.loads(json.dumps([_plain(row) for row in rows], default=_plain))
        truncated = len(listed) > self.rows or (isinstance(more, Rows) and more.truncated)
        return Rows((), tuple(listed[: self.rows]), truncated)

    def _awaited(self, asking: Coroutine[Any, Any, T]) -> T:
        work = here.get()
        if work is None:
            return run_coroutine(asking)
        work.waits = asyncio.run_coroutine_threadsafe(asking, work.loop)
        return work.waits.result()

    def _answered(self, reading: Reading, message: ToolMessage) -> str:
        return query_answered(reading, message)

    def _passed(self, reading: Reading, message: ToolMessage) -> bool | None:
        """A good score; a query that failed never passes, whatever its score."""
        return False if message.status == "error" else super()._passed(reading, message)

    def _settles(self, message: ToolMessage) -> str:
        """Rows with a value end the loop."""
        return rows_settle(message)

    def _final(self, messages: Transcript, ended: dict[str, Any]) -> Any:
        """Return the result: at the best query of a run that ended unsure; without rows if nothing is in the graph."""
        if ended.get("stop") == "unsure":
            runs = [n for n, m in enumerate(messages) if isinstance(m, ToolMessage)]
            best = next(
                (n for n in runs if record_in(cast(Any, messages[n])).get("query") == ended["answer"]), runs[-1]
            )
            messages = Transcript(messages[: best + 1])
        final = super()._final(messages, ended)
        is_absent = ended.get("stop") == "absent" and isinstance(final, ReflexionAgentResult)
        return replace(final, tool_result=None) if is_absent else final

    def _parse_final_result(self, output: Any) -> ReflexionAgentResult:
        """Return the query that ran last, and its rows."""
        message = last(output, ToolMessage)
        if message is None:
            return ReflexionAgentResult(None)
        found = record_in(message)
        failed = f"the last query failed: {found['error']}" if "error" in found else ""
        note = "; ".join(str(found[name]) for name in ("truncated", "composed") if name in found)
        return ReflexionAgentResult(found.get("query"), found["result"], detail=failed, note=note)

    def _recalling(self) -> Bank | None:
        return with_pairs(super()._recalling(), self._querying)

    def _settings(self) -> dict[str, Json]:
        settings: dict[str, Json] = {"database": self._database.name, "language": self.query_lang, "rows": self.rows}
        settings |= {"until": self.until} if self.until != "rows" else {}
        settings |= {"max_tokens": self.max_tokens} if self.max_tokens else {}
        if self._first is not None and self._later is not None:
            settings["temperatures"] = [self._first, self._later]
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
        await super().aclose()
        if self._own:
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


_LIMITED = re.compile(r"(?:\s*;|\s+LIMIT\s+\d+)+$", re.IGNORECASE)


class _QueryResponder(SchemaResponder):
    """Asks for a query, and merges several tool calls into one. Of a call that was cut off, the whole fields count.

    drafts: how many drafts a `_DraftResponder` makes.
    """

    needs_tools = may_be_empty = True
    drafts = 1

    async def _ask(self, messages: list[BaseMessage]) -> Any:
        return merge_calls(mended(await super()._ask(messages), self._schema))


class _DraftResponder(_QueryResponder):
    """Asks for the drafts of a query, each in another way than those before it, and returns all as one message."""

    @both_ways
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
    """Asks for another query, given what was tried: see `redraft_messages`. One that failed or gave no rows before is
    asked for anew, at most twice; then it counts."""

    @both_ways
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
    """Return the request for a query that is built otherwise than these."""
    asked = "Answer the question with a query that is built in another way than these"
    return HumanMessage(labelled(asked, "\n".join(written)))


def failed_in(messages: Sequence[BaseMessage]) -> frozenset[str]:
    """Return the queries that failed or gave no rows, folded: as the model wrote them, and as they were repaired. Not
    those that look for what is not in the graph, which may be the right ones."""
    failed, written = list[str](), list[str]()
    for message in messages:
        if isinstance(message, AIMessage):
            written = [query for call in message.tool_calls for query in every_query_in(call["args"])]
        elif isinstance(message, ToolMessage):
            found = record_in(message)
            if found.get("result") or found.get("absent"):
                continue
            failed += [str(found.get("query", "")), *(written if len(written) == 1 else ())]
    return frozenset(map(folded, failed))


def folded(query: str) -> str:
    """Return the query alone with single spaces, and without a limit or a semicolon at its end: no rows come either
    way."""
    return _LIMITED.sub("", " ".join(bare_query(query).split()))


def query_prompts(prompts: Prompts) -> Mapping[str, Prompt]:
    """Return the prompts kg.draft and kg.revise. Raises `InvalidInput` for an unknown placeholder."""
    return {part: prompts.get(f"kg.{part}").check(*SLOTS) for part in ("draft", "revise")}


async def recorded_schema(database: Graph) -> GraphSchema:
    """Return the schema of a database. Inside a node it is a step of the journal."""

    async def read() -> Json:
        return (await settled(database.schema())).to_json()

    return GraphSchema.from_json(await recorded("schema", {"graph": database.name}, read))
