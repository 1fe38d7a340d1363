"""`ask_graph` answers a question from a graph database in one call, and `resume_graph` continues such a run.

They are what `mulligan ask-graph` and `mulligan runs resume` use.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig

from mulligan import Limits
from mulligan.graphs.opening import open_graph
from mulligan.graphs.protocol import Graph, GraphSchema
from mulligan.langgraph.agent import ReflexionAgentResult
from mulligan.langgraph.asking import recorded
from mulligan.langgraph.chat import ChatMulligan, chat_model
from mulligan.langgraph.defaults import OwnBank, store_of
from mulligan.langgraph.graph_texts import has_values, result_in, schema_text
from mulligan.langgraph.kg import KGQueryReflexionAgent, recorded_schema
from mulligan.langgraph.options import BEFORE, Followed, GraphOptions, ResumeGraphOptions
from mulligan.langgraph.prompt_engine import BioCypherPromptEngine
from mulligan.langgraph.sentence import sentence_of
from mulligan.langgraph.working import Recorder, Work, log
from mulligan.plugins import BadAnswer, Episode, InvalidInput, Json, estimate
from mulligan.running import (
    Event,
    Store,
    advance,
    check_resumable,
    from_json,
    located_model,
    taken_by,
)

T = TypeVar("T")

DRAFT_TOKENS = 400
"""The most tokens of a draft of an embedded model: a query, its reflection and some further queries. A hosted model has
no such limit, because its tokens may include thoughts."""
TEMPERATURES = (0.0, 0.8)
"""The temperatures of an embedded model for the first and for later drafts, since at 0 it repeats itself."""
ASKED, SENTENCE = "ask_graph", "answer"
"""The setting of a record that holds the request, and the step that holds the answer in a sentence, as
`mulligan runs show` and `mulligan runs resume` read them."""
LOCAL_PROVIDER = "local"
"""The provider of the models that run inside Mulligan."""
WHOLE_TOKENS = 1000
"""The approximate tokens of a schema that the model is shown whole, unless the caller decides."""


@taken_by(GraphOptions)
async def ask_graph(*args: Any, **named: Any) -> ReflexionAgentResult:
    """Write a query for a question, run and correct it, and return the query and its rows. The run is recorded.

    graph: a file, an address such as "bolt://localhost:7687" (with user, password and database), the `connection_args`
    of `KGQueryReflexionAgent`, or a `Graph`. model: a name, or a LangChain chat model.

    Returns:
        The query, its rows and, if it was requested, the answer in a sentence.

    Raises:
        InvalidInput, GraphError, ModelError, StoreError
    """
    options: GraphOptions = GraphOptions.from_call("ask_graph", args, named)
    graph, model = options.graph, options.model
    if isinstance(model, str):
        model = located_model(model, Path.cwd())
    opened = (
        graph
        if isinstance(graph, Graph)
        else open_graph(_absolute(graph), options.user, options.password, options.database)
    )
    chat = model if isinstance(model, BaseChatModel) else chat_model(model)
    if options.max_tokens is None:
        options = options.changed(max_tokens=_of_embedded(chat, "max_tokens", DRAFT_TOKENS))
    if options.temperatures is None:
        options = options.changed(temperatures=_of_embedded(chat, "temperature", list(TEMPERATURES)))
    located = _located(graph)
    named_all = located is not None and not isinstance(model, BaseChatModel) and isinstance(options.bank, str | None)
    name = model if isinstance(model, str) else None
    request: dict[str, Json] = {**options.to_json(), "model": name, "graph": located} if named_all else {}
    agent = _Agent(opened, chat, options, request)
    try:
        return agent.answered(await agent.aexecute(options.question, agent.describe_graph, agent.watched))
    finally:
        await agent.aclose()
        if opened is not graph:
            await opened.close()


@taken_by(ResumeGraphOptions)
async def resume_graph(*args: Any, **named: Any) -> ReflexionAgentResult:
    """Continue an interrupted run of `ask_graph`, given by its id or the beginning of its id.

    Returns:
        As `ask_graph`.

    Raises:
        InvalidInput: The run is finished, or it was started with objects instead of names, so that only the program
            that created them can continue it.
        NotFound, LeaseLost
    """
    given: ResumeGraphOptions = ResumeGraphOptions.from_call("resume_graph", args, named)
    async with _opened(given.store) as at:
        episode = await at.load((await at.resolve(given.run))[0])
        if ASKED not in episode.head.settings:
            check_resumable(episode)
            raise InvalidInput(
                f"Run {episode.run} did not query a graph. To resume it: mulligan runs resume {episode.run}"
            )
        request: Mapping[str, Any] = episode.head.settings[ASKED]
        followed: dict[str, Any] = {name: getattr(given, name) for name in Followed.fields()}
        values: dict[str, Any] = {**BEFORE, **request, **followed, "store": at}
        options = GraphOptions(episode.task.prompt, **values)
        graph = open_graph(request["graph"], options.user, options.password, options.database)
        agent = _Agent(graph, chat_model(request["model"]), options, request)
        try:
            return agent.answered(await agent.aresume(given.run, agent.describe_graph, agent.watched))
        finally:
            await agent.aclose()
            await graph.close()


@asynccontextmanager
async def _opened(store: Store | None) -> AsyncGenerator[Store]:
    """Yield the given store, or open the default one and close it at the end."""
    at = store_of(store)
    assert at is not None, "a store is given, or there is the default one"
    try:
        yield at
    finally:
        if store is None:
            await at.close()


class _Agent(KGQueryReflexionAgent):
    """The agent of one question.

    request: The options that the record keeps; empty if an option is an object, so that the run cannot be resumed.
    """

    def __init__(self, graph: Graph, chat: BaseChatModel, options: GraphOptions, request: Mapping[str, Json]) -> None:
        bank, remark = options.bank, options.notice or log.info
        super().__init__(
            chat,
            graph,
            max_steps=options.max_steps,
            good_score=options.good_score,
            rows=options.rows,
            seconds=options.seconds,
            until=options.until,
            drafts=options.drafts,
            max_tokens=options.max_tokens,
            temperatures=options.temperatures,
            store=options.store,
            agent_id=bank if isinstance(bank, str) else "",
            bank=OwnBank(bank, _learning_model(chat), remark) if isinstance(bank, str) else bank,
            learn=isinstance(bank, str),
        )
        self._options, self._request, self._notice = options, request, remark
        self._calls, self._sentence = _Calls(options.step), ""

    def _settings(self) -> dict[str, Json]:
        return {**super()._settings(), **({ASKED: dict(self._request)} if self._request else {})}

    @property
    def watched(self) -> RunnableConfig:
        return {"callbacks": [self._calls]}

    def _prepare(self) -> None:
        self._options.step(f"connecting to {self._database.name}")
        super()._prepare()

    async def _asked(self, query: str) -> dict[str, Json]:
        self._calls.last = ""
        self._options.step("running the query")
        return await super()._asked(query)

    def _recorder(self) -> Recorder:
        trials = self.max_steps if self.until == "judged" else max(self.max_steps - 1, 1)
        return _ObservedRecorder(self._store(), self._options, Limits(trials=trials, identical=None))

    def _conclude(self) -> Callable[[str, ToolMessage], Awaitable[None]] | None:
        return self._say if self._options.answer else None

    async def _say(self, question: str, message: ToolMessage) -> None:
        """Write the answer in a sentence, if there are rows. It is a step of the journal."""
        rows: Any = result_in(message)
        if not has_values(rows) or message.status == "error":
            return
        self._options.step("writing the answer")
        said = await sentence_of(question, rows, self.conversation.chat, self._texts)

        async def kept() -> Json:
            return said

        self._sentence = str(await recorded(SENTENCE, {"question": question}, kept))

    def answered(self, result: ReflexionAgentResult) -> ReflexionAgentResult:
        """Return the result with its answer in a sentence, if that is asked for."""
        none = f"There is no answer: {result.detail}." if self._options.answer else ""
        return replace(result, sentence=self._sentence or none)

    async def describe_graph(self, question: str) -> str:
        """Return the graph's description for the prompt: the chosen parts or the whole schema, and the named values."""
        schema = await recorded_schema(self._database)
        values = await self._querying.described(question, schema)
        return "\n\n".join(part for part in (await self._described(schema, question), values) if part)

    async def _described(self, schema: GraphSchema, question: str) -> str:
        whole, chooses = schema_text(schema), self._options.prompt_engine
        if not (estimate(whole) > WHOLE_TOKENS if chooses is None else chooses):
            return whole
        engine = BioCypherPromptEngine(graph=schema, conversation_factory=lambda: self.conversation)
        try:
            return await engine.agenerate_query_prompt(question)
        except BadAnswer as error:
            (self._options.notice or log.info)(
                f"the model gets the whole schema, because it chose no part of it: {error}"
            )
            return whole


_STEPS = {
    "SelectEntities": "choosing the labels that the question is about",
    "SelectRelationships": "choosing the relationships",
    "SelectProperties": "choosing the properties",
    "GenerateQuery": "writing a query",
    "ReviseQuery": "looking at the result",
    "JudgeRows": "judging the rows",
}


class _Calls(AsyncCallbackHandler):
    """Reports each call of the model before it is made. last: the newest request since the last query."""

    def __init__(self, step: Callable[[str], None]) -> None:
        self._step, self.last = step, ""

    async def on_chat_model_start(self, serialized: Any, messages: Any, **named: Any) -> None:
        asked = str(named.get("invocation_params")) + str(named.get("options"))
        name = next((name for name in _STEPS if name in asked), "")
        again = ", again: the answer could not be used" if name and name == self.last else ""
        self._step(_STEPS.get(name, "asking the model") + again)
        self.last = name


class _ObservedRecorder(Recorder):
    """A recorder that reports each episode when it begins or continues, and each event once it is recorded."""

    def __init__(self, store: Store | None, followed: Followed, limits: Limits) -> None:
        super().__init__(store)
        self._followed, self._limits = followed, limits
        self._at: dict[str, tuple[int, Episode]] = {}

    async def begin(self, episode: Episode, record: Any, files: Mapping[str, str]) -> None:
        await super().begin(episode, record, files)
        self._began(episode)

    async def stored(self, id: str) -> Json:
        begun = await super().stored(id)
        if begun is not None:
            self._began(from_json(Episode, begun))
        return begun

    def update(self, work: Work) -> Any:
        update = super().update(work)
        seen, episode = self._at.get(work.episode.id, (len(work.events), work.episode))
        for row in work.events[seen:]:
            event = from_json(Event, row)
            episode = advance(episode, event)
            for observer in self._followed.observers:
                observer(episode, event)
        self._at[work.episode.id] = (len(work.events), episode)
        return update

    def _began(self, episode: Episode) -> None:
        self._at[episode.id] = (0, episode)
        if self._followed.on_start is not None:
            self._followed.on_start(episode, self._limits)


def _located(graph: str | Path | Mapping[str, Any] | Graph) -> str | dict[str, Json] | None:
    """Return where the graph is in the form that a record keeps: files by their absolute path, no password."""
    if isinstance(graph, Graph):
        return None
    if isinstance(graph, Mapping):
        given = {key: value for key, value in graph.items() if key != "password" and value}
        kept = {k: v if isinstance(v, int) else _without_password(str(v)) for k, v in given.items()}
        return {**kept, "path": os.path.abspath(Path(given["path"]).expanduser())} if "path" in kept else kept
    if "://" not in str(graph):
        return os.path.abspath(Path(graph).expanduser())
    return _without_password(str(graph))


def _absolute(graph: str | Path | Mapping[str, Any]) -> Any:
    """Return where the graph is, a file by its absolute path, so that it has the same name when the run is resumed."""
    located = _located(graph)
    is_file = "path" in located if isinstance(located, dict) else "://" not in str(located)
    return located if is_file else graph


def _without_password(address: str) -> str:
    scheme, found, rest = address.partition("://")
    if not found:
        return address
    access, at, place = rest.rpartition("@")
    return f"{scheme}://{access.partition(':')[0]}{at}{place}"


def _learning_model(chat: BaseChatModel) -> Any:
    """Return the model that learns for the bank: the named one, but never the embedded default."""
    return chat.open()[0] if isinstance(chat, ChatMulligan) and not _is_embedded(chat) else None


def _of_embedded(chat: BaseChatModel, setting: Literal["max_tokens", "temperature"], default: T) -> T | None:
    """Return the default for an embedded model that has no such setting of its own; None for every other model."""
    if not isinstance(chat, ChatMulligan) or not _is_embedded(chat):
        return None
    own = (getattr(chat, setting), getattr(chat.open()[1], setting))
    return default if own == (None, None) else None


def _is_embedded(chat: ChatMulligan) -> bool:
    return chat.open()[0].name.partition(":")[0] == LOCAL_PROVIDER
