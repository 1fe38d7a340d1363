"""`ask_graph`: a question to a graph database, in one call: what `mulligan ask-graph` does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from mulligan.app.config import load, located_model
from mulligan.app.graph_led import ASKED, refuse_resume
from mulligan.app.graphs import open_graph
from mulligan.app.places import Notice
from mulligan.app.runner import OnStart
from mulligan.app.session import DEFAULT_MODEL, with_store
from mulligan.core.codec import event_from_json, from_json
from mulligan.core.episode import advance
from mulligan.core.errors import BadAnswer
from mulligan.core.limits import Limits
from mulligan.core.protocols import Bank, Observer, Store
from mulligan.core.records import Episode, Json
from mulligan.graphs.protocol import SECONDS, Graph
from mulligan.langgraph.agent import ReflexionAgentResult
from mulligan.langgraph.chat import ChatMulligan, chat_model
from mulligan.langgraph.defaults import OwnBank
from mulligan.langgraph.kg import ROWS, KGQueryReflexionAgent, recorded_schema
from mulligan.langgraph.nodes import STEPS
from mulligan.langgraph.prompt_engine import BioCypherPromptEngine
from mulligan.langgraph.reflexion_graph import GOOD_SCORE
from mulligan.langgraph.schema_forms import schema_text
from mulligan.langgraph.working import Recorder, Work, log


@dataclass(frozen=True)
class Asked:
    """How a question is asked, as far as a record can hold it. The password is not part of it."""

    graph: str | Mapping[str, Json] | None
    model: str | None
    user: str | None = None
    database: str | None = None
    max_steps: int = STEPS
    good_score: float = GOOD_SCORE
    rows: int = ROWS
    seconds: float = SECONDS
    prompt_engine: bool = True
    bank: str | None = None


@dataclass(frozen=True)
class Told:
    """Who is told how it goes."""

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
    prompt_engine: bool = True,
    bank: Bank | str | None = None,
    store: Store | None = None,
    observers: Sequence[Observer] = (),
    on_start: OnStart | None = None,
    on_step: Notice | None = None,
    notice: Notice | None = None,
) -> ReflexionAgentResult:
    """Writes a query for the question, runs it, and mends it; the query and its rows, recorded and resumable.

    graph: a file, an address such as "bolt://localhost:7687" (with user, password and database), `connection_args`, or
    a `Graph`. model: a name, or a LangChain chat model; None: `MULLIGAN_MODEL`, else mulligan.toml. max_steps: drafts
    and revisions at most. good_score: of a revision, 0 to 10. rows: how many are kept. seconds: of one query.
    prompt_engine: the model first chooses what of the graph the question is about, by three calls; else, and where it
    chooses nothing, it is told all of the schema. bank: recalled from and taught; a bank, or an agent_id.
    observers, on_start, notice: are told how it goes; on_step: what is about to be done, in a sentence.

    Raises `InvalidInput`, `GraphError`, `ModelError`, `StoreError`.
    """
    if isinstance(model, str):
        model = located_model(model, Path.cwd())
    asked = Asked(
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
    )
    by_name = asked.graph is not None and not isinstance(model, BaseChatModel) and (bank is None or bank == asked.bank)
    opened = graph if isinstance(graph, Graph) else open_graph(_in_place(graph), user, password, database)
    told = Told(observers, on_start, on_step, notice or log.info)
    agent = _Agent(opened, model, asked, bank, store, told, by_name)
    try:
        return await agent.aexecute(question, agent.told, agent.watched)
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
    """Goes on with what `ask_graph` began (a run's id, or the beginning of one) where it was cut short.

    Raises `NotFound`, `LeaseLost`, `InvalidInput` where there is nothing left to do, or where the run was asked with
    objects of a program's, which alone can go on with it.
    """

    async def go_on(at: Store) -> ReflexionAgentResult:
        episode = await at.load((await at.resolve(run))[0])
        if ASKED not in episode.head.settings:
            refuse_resume(episode)
        asked = Asked(**episode.head.settings[ASKED])
        assert asked.graph is not None
        graph = open_graph(asked.graph, asked.user, password, asked.database)
        agent = _Agent(
            graph, asked.model, asked, asked.bank, at, Told(observers, on_start, on_step, notice or log.info), True
        )
        try:
            return await agent.aresume(run, agent.told, agent.watched)
        finally:
            await agent.aclose()
            await graph.close()

    return await with_store(store, load(), go_on)


class _Agent(KGQueryReflexionAgent):
    """by_name: whether all that it works with has a name, so that the record can say how to go on."""

    def __init__(
        self,
        graph: Graph,
        model: str | BaseChatModel | None,
        asked: Asked,
        bank: Bank | str | None,
        store: Store | None,
        told: Told,
        by_name: bool,
    ) -> None:
        chat = model if isinstance(model, BaseChatModel) else chat_model(model)
        super().__init__(
            chat,
            graph,
            max_steps=asked.max_steps,
            good_score=asked.good_score,
            rows=asked.rows,
            seconds=asked.seconds,
            store=store,
            agent_id=asked.bank or "",
            bank=OwnBank(bank, _thinking(chat), told.notice) if isinstance(bank, str) else bank,
            learn=isinstance(bank, str),
        )
        self._wish, self._tells, self._by_name = asked, told, by_name
        self._calls = _Calls(told.step)

    def _settings(self) -> dict[str, Json]:
        return {**super()._settings(), **({ASKED: asdict(self._wish)} if self._by_name else {})}

    @property
    def watched(self) -> RunnableConfig:
        return {"callbacks": [self._calls]}

    def _prepare(self) -> None:
        self._tells.step(f"connecting to {self._database.name}")
        super()._prepare()

    async def _asked(self, query: str) -> dict[str, Json]:
        self._calls.last = ""
        self._tells.step("running the query")
        return await super()._asked(query)

    def _recorder(self) -> Recorder:
        return Telling(self._store(), self._tells, Limits(trials=max(self.max_steps - 1, 1), identical=None))

    async def told(self, question: str) -> str:
        """What the model is told of the graph: what the question is about, chosen by the model, or all of it."""
        schema = await recorded_schema(self._database)
        if not self._wish.prompt_engine:
            return schema_text(schema)
        engine = BioCypherPromptEngine(graph=schema, conversation_factory=lambda: self.conversation)
        try:
            return await engine.agenerate_query_prompt(question)
        except BadAnswer as error:
            self._tells.notice(f"the whole schema is told, as nothing of it was chosen: {error}")
            return schema_text(schema)


_STEPS = {
    "SelectEntities": "choosing the labels that the question is about",
    "SelectRelationships": "choosing the relationships",
    "SelectProperties": "choosing the properties",
    "GenerateQuery": "writing a query",
    "ReviseQuery": "looking at what came back",
}


class _Calls(AsyncCallbackHandler):
    """Says what the model is asked for, each time before it is. last: what it was asked for last, since a query."""

    def __init__(self, step: Notice) -> None:
        self._step, self.last = step, ""

    async def on_chat_model_start(self, serialized: Any, messages: Any, **named: Any) -> None:
        asked = str(named.get("invocation_params")) + str(named.get("options"))
        name = next((name for name in _STEPS if name in asked), "")
        again = ", again: the answer could not be used" if name and name == self.last else ""
        self._step(_STEPS.get(name, "asking the model") + again)
        self.last = name


class Telling(Recorder):
    """A recorder that says how it goes: each episode as it is begun or gone on with, each event once it is recorded."""

    def __init__(self, store: Store | None, told: Told, limits: Limits) -> None:
        super().__init__(store)
        self._told, self._limits = told, limits
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
            for observer in self._told.observers:
                observer(episode, event)
        self._at[work.episode.id] = (len(work.events), episode)
        return update

    def _began(self, episode: Episode) -> None:
        self._at[episode.id] = (0, episode)
        if self._told.on_start is not None:
            self._told.on_start(episode, self._limits)


def _located(graph: str | Path | Mapping[str, Any] | Graph) -> str | dict[str, Json] | None:
    """Where the graph is, as a record may hold it: files by their whole path, no password."""
    if isinstance(graph, Graph):
        return None
    if isinstance(graph, Mapping):
        given = {key: value for key, value in graph.items() if key != "password" and value}
        kept = {k: v if isinstance(v, int) else _without_password(str(v)) for k, v in given.items()}
        return {**kept, "path": os.path.abspath(Path(given["path"]).expanduser())} if "path" in kept else kept
    if "://" not in str(graph):
        return os.path.abspath(Path(graph).expanduser())
    return _without_password(str(graph))


def _in_place(graph: str | Path | Mapping[str, Any]) -> Any:
    """Where the graph is, a file by its whole path: as it is called when the run is gone on with from elsewhere."""
    located = _located(graph)
    is_file = "path" in located if isinstance(located, dict) else "://" not in str(located)
    return located if is_file else graph


def _without_password(address: str) -> str:
    scheme, found, rest = address.partition("://")
    if not found:
        return address
    access, at, place = rest.rpartition("@")
    return f"{scheme}://{access.partition(':')[0]}{at}{place}"


def _thinking(chat: BaseChatModel) -> Any:
    """The model that thinks for the bank: the one that was named, but never the embedded one behind somebody's back."""
    if not isinstance(chat, ChatMulligan):
        return None
    model = chat.open()[0]
    return None if model.name.partition(":")[0] == DEFAULT_MODEL else model
