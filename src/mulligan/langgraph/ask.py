"""`ask_graph` answers a question from a graph database in one call, and `resume_graph` continues such a run.

They are what `mulligan ask-graph` and `mulligan runs resume` use.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig

from mulligan.app.config import load, located_model
from mulligan.app.graphs import open_graph
from mulligan.app.runner import OnStart
from mulligan.app.session import DEFAULT_MODEL, opened_store
from mulligan.app.workspaces import Notice
from mulligan.core.codec import event_from_json, from_json
from mulligan.core.episode import advance
from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.limits import Limits
from mulligan.core.protocols import Bank, Observer, Store
from mulligan.core.records import Episode, Json
from mulligan.graphs.protocol import SECONDS, Graph, GraphSchema
from mulligan.langgraph.agent import ReflexionAgentResult
from mulligan.langgraph.asking import recorded
from mulligan.langgraph.chat import ChatMulligan, chat_model
from mulligan.langgraph.defaults import OwnBank
from mulligan.langgraph.graph_texts import has_values, result_in, schema_text
from mulligan.langgraph.kg import KGQueryReflexionAgent, recorded_schema
from mulligan.langgraph.nodes import STEPS
from mulligan.langgraph.prompt_engine import BioCypherPromptEngine
from mulligan.langgraph.querying import ROWS, Until
from mulligan.langgraph.reflexion_graph import GOOD_SCORE
from mulligan.langgraph.sentence import sentence_of
from mulligan.langgraph.working import Recorder, Work, log
from mulligan.recording.drivers import ASKED, SENTENCE, check_resumable
from mulligan.text.truncate import estimate

T = TypeVar("T")

DRAFT_TOKENS = 400
"""The most tokens of a draft of an embedded model: a query, its reflection and some further queries. Those of a hosted
model may include its thoughts."""
TEMPERATURES = (0.0, 0.8)
"""The temperatures of an embedded model: of the first draft, and of later ones, since at 0 it repeats itself."""
WHOLE_TOKENS = 1000
"""The approximate tokens of a schema that the model is shown whole, unless the caller decides."""


@dataclass(frozen=True)
class GraphRequest:
    """The settings of a question that a record keeps, so that a run can be resumed. The password is not among them.

    The defaults are those of runs that were recorded before there was the setting.
    """

    graph: str | Mapping[str, Json] | None
    model: str | None
    user: str | None = None
    database: str | None = None
    max_steps: int = STEPS
    good_score: float = GOOD_SCORE
    rows: int = ROWS
    seconds: float = SECONDS
    prompt_engine: bool | None = True
    bank: str | None = None
    until: Until = "rows"
    drafts: int = 1
    answer: bool = False
    max_tokens: int | None = None
    temperatures: Sequence[float] | None = None
    """As `TEMPERATURES`; None: the model's own."""


@dataclass(frozen=True)
class Callbacks:
    """What is called while a question is answered: see `ask_graph`."""

    observers: Sequence[Observer] = ()
    on_start: OnStart | None = None
    on_step: Notice | None = None
    notice: Notice = log.info

    def step(self, sentence: str) -> None:
        if self.on_step is not None:
            self.on_step(sentence)


async def ask_graph(
    question: str,
    graph: str | Path | Mapping[str, Any] | Graph,
    *,
    model: str | BaseChatModel | None = None,
    user: str | None = None,
    password: str | None = None,
    database: str | None = None,
    max_steps: int = STEPS,
    good_score: float = GOOD_SCORE,
    rows: int = ROWS,
    seconds: float = SECONDS,
    prompt_engine: bool | None = None,
    until: Until = "judged",
    drafts: int = 1,
    answer: bool = False,
    max_tokens: int | None = None,
    bank: Bank | str | None = None,
    store: Store | None = None,
    observers: Sequence[Observer] = (),
    on_start: OnStart | None = None,
    on_step: Notice | None = None,
    notice: Notice | None = None,
) -> ReflexionAgentResult:
    """Write a query for the question, run it and correct it; return the query and its rows. The run is recorded.

    Args:
        graph: A file, an address such as "bolt://localhost:7687" (with user, password and database), the
            `connection_args` of `KGQueryReflexionAgent`, or a `Graph`.
        model: A name, or a LangChain chat model; None: `MULLIGAN_MODEL`, else mulligan.toml.
        max_steps: The number of drafts and revisions at most.
        good_score: The score, 0 to 10, from which rows are good enough.
        rows: The number of rows that an answer keeps.
        seconds: The time limit of one query.
        prompt_engine: Whether the model first chooses, in three calls, the parts of the graph that the question is
            about; None: if the whole schema is long. Otherwise, and if it chooses nothing, it gets the whole schema.
        until: "judged": the rows must answer the question, as far as rules and the model can tell. "rows": the first
            rows with a value end the run.
        drafts: The number of first drafts, whose answers are compared by their rows; only with "judged".
        answer: Whether the result also has the answer in a sentence, for one more call of the model.
        max_tokens: The most tokens of a draft; None: 400 for a model that runs inside Mulligan and has no limit of its
            own, and the model's own limit for others.
        bank: Lessons are recalled from it; a bank, or an agent_id, whose bank also learns from the run.
        observers: Called with the episode and each event.
        on_start: Called when the run begins or continues.
        on_step: Called with a sentence about the next step.
        notice: Called with remarks, such as what was learned.

    Raises:
        InvalidInput, GraphError, ModelError, StoreError
    """
    if isinstance(model, str):
        model = located_model(model, Path.cwd())
    opened = graph if isinstance(graph, Graph) else open_graph(_absolute(graph), user, password, database)
    chat = model if isinstance(model, BaseChatModel) else chat_model(model)
    request = GraphRequest(
        _located(graph),
        model if isinstance(model, str) else None,
        user,
        database,
        max_steps,
        good_score,
        rows,
        seconds,
        prompt_engine,
        bank if isinstance(bank, str) else None,
        until,
        drafts,
        answer,
        _of_embedded(chat, "max_tokens", DRAFT_TOKENS) if max_tokens is None else max_tokens,
        _of_embedded(chat, "temperature", list(TEMPERATURES)),
    )
    all_named = request.graph is not None and not isinstance(model, BaseChatModel) and bank == request.bank
    callbacks = Callbacks(observers, on_start, on_step, notice or log.info)
    agent = _Agent(opened, chat, request, bank, store, callbacks, all_named)
    try:
        return agent.answered(await agent.aexecute(question, agent.describe_graph, agent.watched))
    finally:
        await agent.aclose()
        if opened is not graph:
            await opened.close()


async def resume_graph(
    run: str,
    *,
    password: str | None = None,
    store: Store | None = None,
    observers: Sequence[Observer] = (),
    on_start: OnStart | None = None,
    on_step: Notice | None = None,
    notice: Notice | None = None,
) -> ReflexionAgentResult:
    """Continue a run of `ask_graph` (its id, or the beginning of one) where it was interrupted.

    Raises:
        InvalidInput: The run is complete, or it was started with objects instead of names, so that only the program
            that made them can continue it.
        NotFound, LeaseLost
    """
    async with opened_store(store, load()) as at:
        episode = await at.load((await at.resolve(run))[0])
        if ASKED not in episode.head.settings:
            check_resumable(episode)
            raise InvalidInput(f"Run {episode.run} asked no graph. To resume it: mulligan runs resume {episode.run}")
        request = GraphRequest(**episode.head.settings[ASKED])
        assert request.graph is not None
        graph = open_graph(request.graph, request.user, password, request.database)
        callbacks = Callbacks(observers, on_start, on_step, notice or log.info)
        agent = _Agent(graph, chat_model(request.model), request, request.bank, at, callbacks, True)
        try:
            return agent.answered(await agent.aresume(run, agent.describe_graph, agent.watched))
        finally:
            await agent.aclose()
            await graph.close()


class _Agent(KGQueryReflexionAgent):
    """The agent of one question. all_named: whether everything it uses has a name, so that the run can be resumed."""

    def __init__(
        self,
        graph: Graph,
        chat: BaseChatModel,
        request: GraphRequest,
        bank: Bank | str | None,
        store: Store | None,
        callbacks: Callbacks,
        all_named: bool,
    ) -> None:
        super().__init__(
            chat,
            graph,
            max_steps=request.max_steps,
            good_score=request.good_score,
            rows=request.rows,
            seconds=request.seconds,
            until=request.until,
            drafts=request.drafts,
            max_tokens=request.max_tokens,
            temperatures=request.temperatures,
            store=store,
            agent_id=request.bank or "",
            bank=OwnBank(bank, _learning_model(chat), callbacks.notice) if isinstance(bank, str) else bank,
            learn=isinstance(bank, str),
        )
        self._request, self._callbacks, self._all_named = request, callbacks, all_named
        self._calls, self._sentence = _Calls(callbacks.step), ""

    def _settings(self) -> dict[str, Json]:
        return {**super()._settings(), **({ASKED: asdict(self._request)} if self._all_named else {})}

    @property
    def watched(self) -> RunnableConfig:
        return {"callbacks": [self._calls]}

    def _prepare(self) -> None:
        self._callbacks.step(f"connecting to {self._database.name}")
        super()._prepare()

    async def _asked(self, query: str) -> dict[str, Json]:
        self._calls.last = ""
        self._callbacks.step("running the query")
        return await super()._asked(query)

    def _recorder(self) -> Recorder:
        trials = self.max_steps if self.until == "judged" else max(self.max_steps - 1, 1)
        return _ObservedRecorder(self._store(), self._callbacks, Limits(trials=trials, identical=None))

    def _conclude(self) -> Callable[[str, ToolMessage], Awaitable[None]] | None:
        return self._say if self._request.answer else None

    async def _say(self, question: str, message: ToolMessage) -> None:
        """Write the answer in a sentence, if there are rows. It is a step of the journal."""
        rows: Any = result_in(message)
        if not has_values(rows) or message.status == "error":
            return
        self._callbacks.step("writing the answer")
        said = await sentence_of(question, rows, self.conversation.chat, self._texts)

        async def kept() -> Json:
            return said

        self._sentence = str(await recorded(SENTENCE, {"question": question}, kept))

    def answered(self, result: ReflexionAgentResult) -> ReflexionAgentResult:
        """Return the result with its answer in a sentence, if that is asked for."""
        none = f"There is no answer: {result.detail}." if self._request.answer else ""
        return replace(result, sentence=self._sentence or none)

    async def describe_graph(self, question: str) -> str:
        """Return what the model is told about the graph: the parts that it chose, or the whole schema; and the values
        that the question names."""
        schema = await recorded_schema(self._database)
        values = await self._querying.described(question, schema)
        return "\n\n".join(part for part in (await self._described(schema, question), values) if part)

    async def _described(self, schema: GraphSchema, question: str) -> str:
        whole, chooses = schema_text(schema), self._request.prompt_engine
        if not (estimate(whole) > WHOLE_TOKENS if chooses is None else chooses):
            return whole
        engine = BioCypherPromptEngine(graph=schema, conversation_factory=lambda: self.conversation)
        try:
            return await engine.agenerate_query_prompt(question)
        except BadAnswer as error:
            self._callbacks.notice(f"the model gets the whole schema, because it chose no part of it: {error}")
            return whole


_STEPS = {
    "SelectEntities": "choosing the labels that the question is about",
    "SelectRelationships": "choosing the relationships",
    "SelectProperties": "choosing the properties",
    "GenerateQuery": "writing a query",
    "ReviseQuery": "looking at what came back",
    "JudgeRows": "judging the rows",
}


class _Calls(AsyncCallbackHandler):
    """Reports each call of the model before it is made. last: what was asked for since the last query."""

    def __init__(self, step: Notice) -> None:
        self._step, self.last = step, ""

    async def on_chat_model_start(self, serialized: Any, messages: Any, **named: Any) -> None:
        asked = str(named.get("invocation_params")) + str(named.get("options"))
        name = next((name for name in _STEPS if name in asked), "")
        again = ", again: the answer could not be used" if name and name == self.last else ""
        self._step(_STEPS.get(name, "asking the model") + again)
        self.last = name


class _ObservedRecorder(Recorder):
    """A recorder that reports each episode when it begins or continues, and each event once it is recorded."""

    def __init__(self, store: Store | None, callbacks: Callbacks, limits: Limits) -> None:
        super().__init__(store)
        self._callbacks, self._limits = callbacks, limits
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
            event = event_from_json(row)
            episode = advance(episode, event)
            for observer in self._callbacks.observers:
                observer(episode, event)
        self._at[work.episode.id] = (len(work.events), episode)
        return update

    def _began(self, episode: Episode) -> None:
        self._at[episode.id] = (0, episode)
        if self._callbacks.on_start is not None:
            self._callbacks.on_start(episode, self._limits)


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
    return chat.open()[0].name.partition(":")[0] == DEFAULT_MODEL
