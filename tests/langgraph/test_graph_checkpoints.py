"""Runs that are cut short, gone on with, replayed, and gone on with otherwise: what is recorded, and what is paid."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from reflexion_graphs import (
    a_graph,
    a_store,
    an_open_store,
    asking,
    by_messages,
    chat,
    drafted,
    on_thread,
    recorded,
    revised,
    run,
    scored,
    steps_of,
)

from mulligan.core.codec import from_json
from mulligan.core.episode import Event
from mulligan.core.errors import LeaseLost, ModelError
from mulligan.core.records import Episode
from mulligan.langgraph import ScriptedChat
from mulligan.langgraph.state import episode_of
from mulligan.langgraph.working import Recorder

BOTH = ("invoke", "ainvoke")


def outcomes(folder: Path) -> list[tuple[int, str | None]]:
    return [(len(episode.trials), episode.stop and episode.stop.reason) for episode in recorded(folder)]


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_model_that_failed_is_asked_again_and_the_others_are_not(way: str, at: int, tmp_path: Path) -> None:
    said: list[Any] = scored(3, 8)
    said.insert(at, ModelError("no credit"))
    model = ScriptedChat(said)
    with a_store(tmp_path) as store:
        graph = a_graph(model, checkpointer=InMemorySaver(), store=store)
        with pytest.raises(ModelError):
            run(way, graph, asking(), on_thread())
        (episode,) = recorded(tmp_path)
        assert episode.stop
        assert (episode.stop.reason, "no credit" in episode.stop.detail) == ("error", True)
        found = run(way, graph, None, on_thread())
    assert found["reflexion"]["solved"]
    assert len(model.asked) == 4
    assert outcomes(tmp_path) == [(2, "solved")]


@pytest.mark.parametrize("way", BOTH)
def test_a_tool_that_failed_is_run_again_without_a_call_of_the_model(way: str, tmp_path: Path) -> None:
    broken = True

    def tool(answer: str) -> str:
        if broken:
            raise ValueError("the network is down")
        return "found"

    model = chat(8)
    with a_store(tmp_path) as store:
        graph = a_graph(model, tool, checkpointer=InMemorySaver(), store=store, handle_errors=False)
        with pytest.raises(ValueError, match="network"):
            run(way, graph, asking(), on_thread())
        broken = False
        assert run(way, graph, None, on_thread())["reflexion"]["tool_result"] == "found"
    assert len(model.asked) == 2


async def test_a_run_that_is_cancelled_is_recorded_as_interrupted_and_goes_on(tmp_path: Path) -> None:
    started, broken = asyncio.Event(), True

    async def tool(answer: str) -> str:
        started.set()
        if broken:
            await asyncio.Event().wait()
        return "found"

    model = chat(8)
    async with an_open_store(tmp_path) as store:
        graph = a_graph(model, tool, checkpointer=InMemorySaver(), store=store)
        running = asyncio.create_task(graph.ainvoke(asking(), on_thread()))
        await asyncio.wait_for(started.wait(), 10)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        (episode,) = await store.list()
        assert episode.stop
        assert (episode.stop.reason, episode.stop.detail) == ("interrupted", "during act of trial.1")
        broken = False
        assert (await graph.ainvoke(None, on_thread()))["reflexion"]["solved"]
        (episode,) = await store.list()
        assert episode.solved
    assert len(model.asked) == 2


def test_without_a_checkpoint_the_same_message_of_a_thread_goes_on_from_the_record(tmp_path: Path) -> None:
    said: list[Any] = scored(3, 8)
    said.insert(2, ModelError("no credit"))
    model = ScriptedChat(said)
    with a_store(tmp_path) as store:
        with pytest.raises(ModelError):
            a_graph(model, store=store).invoke(asking(id="q"), on_thread())
        found = a_graph(model, store=store).invoke(asking(id="q"), on_thread())
    assert found["reflexion"]["solved"]
    assert len(model.asked) == 4
    assert outcomes(tmp_path) == [(2, "solved")]


@pytest.mark.parametrize("way", BOTH)
def test_a_replay_from_an_old_checkpoint_costs_nothing(way: str, tmp_path: Path) -> None:
    model = chat(3, 8)
    with a_store(tmp_path) as store:
        graph = a_graph(model, checkpointer=InMemorySaver(), store=store)
        first = run(way, graph, asking(), on_thread())
        for old in [*graph.get_state_history(on_thread())]:
            if old.next and old.next != ("__start__",):
                again = run(way, graph, None, old.config)
                assert again["reflexion"] == first["reflexion"]
    assert len(model.asked) == 3
    assert outcomes(tmp_path) == [(2, "solved")]


@pytest.mark.parametrize("way", BOTH)
def test_a_state_that_was_edited_goes_on_as_an_episode_of_its_own(way: str, tmp_path: Path) -> None:
    model = ScriptedChat([*scored(3, 8), revised(9)])
    with a_store(tmp_path) as store:
        graph = a_graph(model, checkpointer=InMemorySaver(), store=store)
        first = run(way, graph, asking(), on_thread())
        old = next(one for one in graph.get_state_history(on_thread()) if one.next == ("execute_tool",))
        proposal = old.values["messages"][-1]
        call = {**proposal.tool_calls[0], "args": {"answer": "mine"}}
        edited = proposal.model_copy(update={"tool_calls": [call]})
        found = run(way, graph, None, graph.update_state(old.config, {"messages": [edited]}))
    assert found["reflexion"]["tool_result"] == "ran mine"
    assert len(model.asked) == 4
    before, after = recorded(tmp_path)
    assert (before.run, after.run) == (first["reflexion"]["run"], found["reflexion"]["run"])
    assert after.forked_from == before.id
    assert [trial.attempt.output for trial in before.trials] == ["answer 1", "answer 2"]
    assert [trial.attempt.output for trial in after.trials] == ["answer 1", "mine"]
    assert (before.solved, after.solved) == (True, True)


@pytest.mark.parametrize("way", BOTH)
def test_another_prompt_after_a_crash_goes_on_as_a_fork_that_keeps_what_was_done(way: str, tmp_path: Path) -> None:
    said: list[Any] = [*scored(3), ModelError("no credit"), revised(8)]
    model, saver = ScriptedChat(said), InMemorySaver()
    with a_store(tmp_path) as store:
        with pytest.raises(ModelError):
            run(way, a_graph(model, checkpointer=saver, store=store), asking(), on_thread())
        graph = a_graph(model, instructions="Now be short.", checkpointer=saver, store=store)
        found = run(way, graph, None, on_thread())
    assert found["reflexion"]["solved"]
    assert len(model.asked) == 4
    before, after = recorded(tmp_path)
    assert before.stop
    assert (before.stop.reason, after.forked_from, len(after.trials)) == ("interrupted", before.id, 2)
    assert f"as run {after.run}" in before.stop.detail
    assert [row.key for row in steps_of(tmp_path, after.id)] == ["trial.2/evaluate/model#1"]


def test_a_fork_that_failed_is_resumed(tmp_path: Path) -> None:
    said: list[Any] = [*scored(3), ModelError("first"), drafted(), ModelError("second"), revised(8)]
    said[3] = ModelError("again")
    model, saver = ScriptedChat(said), InMemorySaver()
    with a_store(tmp_path) as store:
        graphs = [a_graph(model, instructions=text, checkpointer=saver, store=store) for text in ("", "short", "short")]
        with pytest.raises(ModelError):
            graphs[0].invoke(asking(), on_thread())
        for graph in graphs[1:]:
            with pytest.raises(ModelError):
                graph.invoke(None, on_thread())
        assert graphs[2].invoke(None, on_thread())["reflexion"]["solved"]
    assert outcomes(tmp_path) == [(2, "interrupted"), (2, "solved")]


@pytest.mark.parametrize("way", BOTH)
def test_a_store_that_knows_nothing_of_the_thread_is_told_what_the_state_holds(way: str, tmp_path: Path) -> None:
    model, saver = chat(3, 8), InMemorySaver()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    with a_store(tmp_path / "one") as store:
        graph = a_graph(model, checkpointer=saver, store=store, interrupt_after=["revise"])
        run(way, graph, asking(), on_thread())
    with a_store(tmp_path / "two") as store:
        found = run(way, a_graph(model, checkpointer=saver, store=store), None, on_thread())
    assert found["reflexion"]["solved"]
    (moved,) = recorded(tmp_path / "two")
    assert moved.solved
    assert [trial.attempt.output for trial in moved.trials] == ["answer 1", "answer 2"]
    assert len(model.asked) == 3


async def test_two_runs_of_one_thread_do_not_work_on_an_episode_at_once(tmp_path: Path) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def tool(answer: str) -> str:
        started.set()
        await go_on.wait()
        return "found"

    model = ScriptedChat(by_messages(8))
    async with an_open_store(tmp_path) as store:
        graph = a_graph(model, tool, store=store)
        first = asyncio.create_task(graph.ainvoke(asking(id="q"), on_thread()))
        await asyncio.wait_for(started.wait(), 10)
        with pytest.raises(LeaseLost, match="is in use by"):
            await graph.ainvoke(asking(id="q"), on_thread())
        go_on.set()
        assert (await first)["reflexion"]["solved"]
        assert (await graph.ainvoke(asking(id="q"), on_thread()))["reflexion"]["solved"]
        assert len(await store.list()) == 1
    assert len(model.asked) == 2


@pytest.mark.parametrize("way", BOTH)
def test_the_state_alone_says_what_the_store_says(way: str, tmp_path: Path) -> None:
    with a_store(tmp_path) as store:
        graph = a_graph(chat(3, 8), checkpointer=InMemorySaver(), store=store)
        run(way, graph, asking(), on_thread())
        record = graph.get_state(on_thread()).values["record"]
    (stored,) = recorded(tmp_path)
    assert episode_of(record) == stored
    assert all(from_json(Event, event) for event in record["events"])


@pytest.mark.parametrize("way", BOTH)
def test_each_visit_to_a_subgraph_is_an_episode(way: str, tmp_path: Path) -> None:
    model = ScriptedChat([*scored(8), *scored(9)])
    with a_store(tmp_path) as store:
        outer: Any = StateGraph(MessagesState)
        outer.add_node("one", a_graph(model, store=store))
        outer.add_node("two", a_graph(model, store=store))
        outer.add_edge(START, "one")
        outer.add_edge("one", "two")
        graph = outer.compile(checkpointer=InMemorySaver())
        found = run(way, graph, asking(), on_thread())
    assert outcomes(tmp_path) == [(1, "solved"), (1, "solved")]
    assert sum(isinstance(message, AIMessage) for message in found["messages"]) == 4


def test_episodes_are_remembered_up_to_a_number() -> None:
    recorder = Recorder(None)
    from mulligan.core.records import Task
    from mulligan.langgraph.working import REMEMBERED

    async def many() -> int:
        for n in range(REMEMBERED + 10):
            episode = Episode(f"{n}.1", Task("x"))
            record: Any = {"begun": episode, "events": [], "question": "", "steps": 0, "next": "", "spent": None}
            await recorder.begin(episode, record, {})
        return len(recorder._episodes)  # pyright: ignore[reportPrivateUsage]

    assert asyncio.run(many()) == REMEMBERED


@pytest.mark.parametrize("way", BOTH)
def test_a_judge_that_changed_its_mind_makes_a_fork(way: str, tmp_path: Path) -> None:
    """What was judged is kept; judged otherwise, from an old checkpoint, it is another episode."""
    verdicts, saver = [True], InMemorySaver()
    model = chat(3, 3, 3)
    with a_store(tmp_path) as store:
        given: Any = {"judge": lambda reading, message: verdicts[0], "checkpointer": saver, "store": store}  # pyright: ignore
        graph = a_graph(model, **given)
        assert run(way, graph, asking(), on_thread())["reflexion"]["solved"]
        old = next(one for one in graph.get_state_history(on_thread()) if one.next == ("revise",))
        verdicts[0] = False
        found = run(way, a_graph(model, max_steps=2, **given), None, old.config)
    assert not found["reflexion"]["solved"]
    assert len(model.asked) == 2
    before, after = recorded(tmp_path)
    assert (before.solved, after.solved, after.forked_from) == (True, False, before.id)


def test_records_of_other_agents_and_graphs_do_not_mix(tmp_path: Path) -> None:
    """The same message of the same thread, asked of two graphs and for two agents."""
    model = ScriptedChat([*scored(8)] * 3)
    with a_store(tmp_path) as store:
        for more in ({}, {"name": "other"}, {"agent_id": "me"}):
            given: Any = more
            assert a_graph(model, store=store, **given).invoke(asking(id="q"), on_thread())["reflexion"]["solved"]
    assert len(model.asked) == 6
    assert len({episode.run for episode in recorded(tmp_path)}) == 3
