"""What an agent on a graph leaves behind: the record, lessons, and the way on for a run that was cut short."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bolt_server import BoltServer, package
from graph_agents import EMPTY, GOOD, REGULATED, Chat, Conversation, draft, revision
from langchain_core.messages import AIMessage, BaseMessage
from sample_graphs import NEEDS_BOLT

from mulligan.app.config import load
from mulligan.app.memory import open_bank
from mulligan.core.errors import GraphError, InvalidInput, ModelError
from mulligan.core.protocols import Learned
from mulligan.core.records import Episode, Lesson, Recall, Task
from mulligan.graphs.opening import open_graph
from mulligan.langgraph import KGQueryReflexionAgent
from mulligan.store import open_store
from mulligan.store.export import export
from mulligan.store.sqlite import SqliteStore

QUESTION, PROMPT = "Which genes does EOMES regulate?", "Nodes:\n- Gene: name (STRING)"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "runs.db")
    yield store
    asyncio.run(store.close())


def test_the_record_says_what_it_rests_on(kg: Path, agent_on: Any, store: SqliteStore) -> None:
    agent, _ = agent_on(str(kg), draft(EMPTY), revision(1, GOOD, "Capitals."), revision(9), store=store, agent_id="me")
    result = agent.execute(QUESTION, PROMPT)

    async def look() -> tuple[Episode, Any, Any]:
        episode = await store.load(f"{result.run}.1")
        return episode, await store.files(episode.id), [step.key for step in await store.steps(episode.id)]

    episode, files, steps = asyncio.run(look())
    assert (episode.agent, episode.solved, episode.task.prompt) == ("me", True, QUESTION)
    assert [trial.attempt.output for trial in episode.trials] == [EMPTY, GOOD]
    assert [reflection.text for reflection in episode.reflections] == ["Capitals."]
    settings = episode.head.settings
    assert (settings["agent"], settings["database"], settings["max_steps"]) == ("KGQueryReflexionAgent", str(kg), 30)
    assert set(episode.head.prompts) == {"kg.draft", "kg.revise"}
    assert files["prompt.md"] == PROMPT
    assert "{{graph}}" in files["prompts/kg.draft.md"]
    assert [key.rpartition("/")[2] for key in steps] == ["model#1", "query#1", "model#1", "query#1", "model#1"]


def test_nothing_is_recorded_where_nothing_is_to_be(kg: Path, agent_on: Any) -> None:
    agent, _ = agent_on(str(kg), draft(GOOD), revision(9), store=False)
    assert agent.execute(QUESTION, PROMPT).tool_result == REGULATED

    async def look() -> Any:
        store = open_store(load().store)
        found = await store.list()
        await store.close()
        return found

    assert not asyncio.run(look())
    with pytest.raises(InvalidInput, match="records nothing"):
        agent.resume("abc")


def test_secrets_in_rows_are_masked_where_the_record_leaves_the_house(
    kg: Path, agent_on: Any, store: SqliteStore
) -> None:
    key = "sk-" + "a1b2c3d4e5f6a7b8c9d0"
    query = f"RETURN '{key}' AS leaked"
    agent, _ = agent_on(str(kg), draft(query), revision(9), store=store)
    result = agent.execute(QUESTION, PROMPT)
    assert result.tool_result == [{"leaked": key}], "the caller gets what is there"
    exported = asyncio.run(export(store, [f"{result.run}.1"]))
    assert key not in json.dumps(exported)


def replying(*replies: Any) -> Chat:
    """A chat model whose answer depends on how many steps there were, as one that is asked again after a crash."""

    def reply(messages: list[BaseMessage]) -> Any:
        return replies[sum(isinstance(message, AIMessage) for message in messages)]

    return Chat(reply)


@pytest.mark.slow
def test_a_run_that_was_cut_short_is_resumed(access: Any, store: SqliteStore) -> None:
    broken = replying(draft(EMPTY), ModelError("the provider is down"))
    agent = KGQueryReflexionAgent(lambda: Conversation(broken), access, store=store)
    with pytest.raises(ModelError, match="provider is down"):
        agent.execute(QUESTION, PROMPT)
    agent.close()

    async def newest() -> Episode:
        return (await store.list())[0]

    episode = asyncio.run(newest())
    assert episode.stop is not None
    assert episode.stop.reason == "error"
    healed = replying(None, revision(1, GOOD), revision(9))
    again = KGQueryReflexionAgent(lambda: Conversation(healed), access, store=store)
    result = again.resume(episode.run)
    assert (result.answer, result.tool_result, result.run) == (GOOD, REGULATED, episode.run)
    assert len(healed.asked) == 2, "the draft was not asked for again"
    assert PROMPT in healed.asked[0][0].text
    with pytest.raises(InvalidInput, match="has ended: solved"):
        again.resume(episode.run)
    again.close()


@pytest.mark.slow
def test_another_agents_run_is_not_resumed(kg: Path, store: SqliteStore) -> None:
    class Other(KGQueryReflexionAgent):
        pass

    other = Other(lambda: Conversation(replying(draft(EMPTY), ModelError("down"))), str(kg), store=store)
    with pytest.raises(ModelError):
        other.execute(QUESTION, PROMPT)
    other.close()
    agent = KGQueryReflexionAgent(lambda: Conversation(Chat([])), str(kg), store=store)
    run = asyncio.run(store.list())[0].run  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="is not a run of KGQueryReflexionAgent"):
        agent.resume(run)
    agent.close()


@pytest.mark.slow
def test_a_database_that_was_away_is_resumed_when_it_is_back(tmp_path: Path, store: SqliteStore) -> None:
    if package() is None:
        pytest.skip(NEEDS_BOLT)
    server = BoltServer(tmp_path / "server")
    chat = replying(draft("RETURN 7 AS n"), revision(9))
    agent = KGQueryReflexionAgent(lambda: Conversation(chat), server.access, store=store)
    with pytest.raises(GraphError):
        agent.execute(QUESTION, PROMPT)
    server.start()
    try:
        run = asyncio.run(store.list())[0].run  # pyright: ignore[reportArgumentType]
        assert agent.resume(run).tool_result == [{"n": 7}]
    finally:
        agent.close()
        server.stop()
    assert len(chat.asked) == 2


class Kept:
    """A bank that keeps what it was taught, and recalls one lesson."""

    def __init__(self) -> None:
        self.taught: list[Episode] = []

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        lesson = Lesson("l1", "Symbols", "Gene symbols are in capitals.", "success")
        return Recall("r1", (lesson,), formatted_prompt="Lesson: gene symbols are in capitals.")

    async def learn(self, episodes: Any) -> Learned:
        self.taught += episodes
        return Learned()


@pytest.mark.slow
def test_lessons_stand_in_the_prompt_and_the_bank_is_taught(kg: Path, agent_on: Any) -> None:
    bank = Kept()
    agent, chat = agent_on(str(kg), draft(EMPTY), revision(1, GOOD), revision(9), bank=bank)
    agent.execute(QUESTION, PROMPT)
    assert all("Lesson: gene symbols are in capitals." in asked[0].text for asked in chat.asked)
    (episode,) = bank.taught
    assert episode.solved
    assert episode.recall is not None
    agent, _ = agent_on(str(kg), draft(GOOD), revision(9), bank=bank, learn=False)
    agent.execute(QUESTION, PROMPT)
    assert len(bank.taught) == 1


def test_a_bank_of_an_agent_id_serves_question_after_question(
    kg: Path, agent_on: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')

    async def keep() -> None:
        async with open_bank("biologist") as bank:
            await bank.add(title="Genes", content="EOMES regulates other genes: mind the direction.", query=QUESTION)

    asyncio.run(keep())
    agent, chat = agent_on(
        str(kg), draft(GOOD), revision(9), draft(GOOD), revision(9), bank="biologist", agent_id="biologist"
    )
    for _ in range(2):
        assert agent.execute(QUESTION, PROMPT).tool_result == REGULATED
    assert all("mind the direction" in asked[0].text for asked in chat.asked)


async def test_a_graph_that_was_given_is_left_open(kg: Path) -> None:
    graph = open_graph(str(kg))
    agent = KGQueryReflexionAgent(lambda: Conversation(Chat([draft(GOOD), revision(9)])), graph)
    assert (await agent.aexecute(QUESTION, PROMPT)).tool_result == REGULATED
    await agent.aclose()
    assert (await graph.run("RETURN 1 AS n")).rows == ({"n": 1},)
    await graph.close()


def test_the_agents_graph_is_a_part_of_others(kg: Path, agent_on: Any) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    agent, _ = agent_on(str(kg), draft(EMPTY), revision(1, GOOD), revision(9))
    compiled = agent.graph(PROMPT).compile(checkpointer=InMemorySaver(), interrupt_before=["execute_tool"])
    config = {"configurable": {"thread_id": "t"}}
    state = compiled.invoke({"messages": [("user", QUESTION)]}, config)
    assert state["messages"][-1].tool_calls[0]["args"]["answer"] == EMPTY
    for _ in range(2):
        state = compiled.invoke(None, config)
    assert state["reflexion"]["answer"] == GOOD
    assert state["reflexion"]["solved"] is True
