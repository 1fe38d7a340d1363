"""A person in the loop: approvals before an answer is executed, stops before and after nodes, edits of the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from reflexion_graphs import a_graph, a_store, asking, chat, on_thread, recorded, run, texts

BOTH = ("invoke", "ainvoke")


def waits_for(found: dict[str, Any]) -> Any:
    """What a person is asked."""
    (asked,) = found["__interrupt__"]
    return asked.value


@pytest.mark.parametrize("way", BOTH)
def test_nothing_is_executed_before_a_person_has_approved(way: str) -> None:
    ran: list[str] = []

    def tool(answer: str) -> str:
        ran.append(answer)
        return "found"

    model = chat(3, 8)
    graph = a_graph(model, tool, approve=True, checkpointer=InMemorySaver())
    asked = waits_for(run(way, graph, asking(), on_thread()))
    assert (asked["approve"], asked["trial"], asked["question"]) == ("answer 1", 1, asking()["messages"][0].text)
    assert not ran
    asked = waits_for(run(way, graph, Command(resume=True), on_thread()))
    assert (asked["approve"], asked["trial"], ran) == ("answer 2", 2, ["answer 1"])
    found = run(way, graph, Command(resume="approve"), on_thread())
    assert found["reflexion"]["solved"]
    assert ran == ["answer 1", "answer 2"]
    assert len(model.asked) == 3


@pytest.mark.parametrize("way", BOTH)
def test_an_edited_answer_is_executed_and_the_model_sees_it_as_its_own(way: str, tmp_path: Path) -> None:
    model = chat(8)
    with a_store(tmp_path) as store:
        graph = a_graph(model, approve=True, checkpointer=InMemorySaver(), store=store)
        run(way, graph, asking(), on_thread())
        found = run(way, graph, Command(resume={"edit": "mine"}), on_thread())
    assert (found["reflexion"]["answer"], found["reflexion"]["tool_result"]) == ("mine", "ran mine")
    assert texts(found["messages"])[1:3] == ["mine", "ran mine"]
    assert texts(model.asked[1])[2:] == ["mine", "ran mine"]
    (episode,) = recorded(tmp_path)
    assert episode.trials[0].attempt.output == "mine"


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize(("said", "told"), [(False, ""), ("refuse", ""), ({"refuse": "It deletes."}, " It deletes.")])
def test_a_refusal_goes_to_the_model_as_the_tool_s_answer(way: str, said: Any, told: str, tmp_path: Path) -> None:
    ran: list[str] = []
    model = chat(0, 8)
    with a_store(tmp_path) as store:
        graph = a_graph(model, ran.append, approve=True, checkpointer=InMemorySaver(), store=store)
        run(way, graph, asking(), on_thread())
        found = run(way, graph, Command(resume=said), on_thread())
        refused = next(message for message in found["messages"] if isinstance(message, ToolMessage))
        assert (refused.text, refused.status) == (f"A person refused to run this.{told}", "error")
        assert not ran
        assert model.asked[1][-1].text == refused.text
        run(way, graph, Command(resume=True), on_thread())
    assert ran == ["answer 2"]
    (episode,) = recorded(tmp_path)
    assert episode.trials[0].attempt.steps[0].observation == refused.text
    assert episode.solved


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("said", ["perhaps", {"edit": " "}, {"edit": "a", "refuse": "b"}, 1, [True]])
def test_what_is_not_a_decision_is_asked_for_again(way: str, said: Any) -> None:
    graph = a_graph(chat(8), approve=True, checkpointer=InMemorySaver())
    run(way, graph, asking(), on_thread())
    asked = waits_for(run(way, graph, Command(resume=said), on_thread()))
    assert "is not a valid decision" in asked["error"]
    assert asked["approve"] == "answer 1"
    assert run(way, graph, Command(resume=True), on_thread())["reflexion"]["solved"]


def test_an_edit_reaches_the_blocks_that_providers_repeat_a_call_in() -> None:
    call = {"name": "Draft", "args": {"answer": "theirs", "reflection": "theirs too"}, "id": "c1", "type": "tool_call"}
    block = {"type": "tool_use", "id": "c1", "name": "Draft", "input": call["args"]}
    from mulligan.langgraph import ScriptedChat

    message = AIMessage([{"type": "text", "text": "So."}, block], tool_calls=[call])
    from reflexion_graphs import revised

    model = ScriptedChat([message, revised(8)])
    graph = a_graph(model, approve=True, checkpointer=InMemorySaver())
    graph.invoke(asking(), on_thread())
    graph.invoke(Command(resume={"edit": "mine"}), on_thread())
    seen: Any = model.asked[1][2]
    assert seen.content[1]["input"] == seen.tool_calls[0]["args"] == {"answer": "mine", "reflection": "theirs too"}


@pytest.mark.light_cases(4)
@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("node", ["draft", "execute_tool", "revise"])
@pytest.mark.parametrize("where", ["interrupt_before", "interrupt_after"])
def test_it_stops_where_it_is_told_to_and_goes_on(way: str, node: str, where: str, tmp_path: Path) -> None:
    model = chat(3, 8)
    stops: Any = {where: [node]}
    with a_store(tmp_path) as store:
        graph = a_graph(model, checkpointer=InMemorySaver(), store=store, **stops)
        found = run(way, graph, asking(), on_thread())
        times = 0
        while graph.get_state(on_thread()).next:
            times += 1
            found = run(way, graph, None, on_thread())
    assert times == (1 if node == "draft" else 2) - (where == "interrupt_after" and node == "revise")
    assert found["reflexion"]["solved"]
    assert len(model.asked) == 3
    (episode,) = recorded(tmp_path)
    assert (len(episode.trials), episode.solved) == (2, True)


@pytest.mark.parametrize("way", BOTH)
def test_a_proposal_edited_in_the_state_is_what_is_executed(way: str, tmp_path: Path) -> None:
    with a_store(tmp_path) as store:
        graph = a_graph(chat(8), checkpointer=InMemorySaver(), interrupt_before=["execute_tool"], store=store)
        run(way, graph, asking(), on_thread())
        proposal = graph.get_state(on_thread()).values["messages"][-1]
        call = {**proposal.tool_calls[0], "args": {"answer": "mine"}}
        graph.update_state(on_thread(), {"messages": [proposal.model_copy(update={"tool_calls": [call]})]})
        found = run(way, graph, None, on_thread())
    assert found["reflexion"]["tool_result"] == "ran mine"
    assert recorded(tmp_path)[0].trials[0].attempt.output == "mine"


@pytest.mark.parametrize("way", BOTH)
def test_a_person_s_remark_is_no_new_question(way: str) -> None:
    model = chat(3, 8)
    graph = a_graph(model, checkpointer=InMemorySaver(), interrupt_before=["revise"])
    run(way, graph, asking(), on_thread())
    graph.update_state(on_thread(), {"messages": [HumanMessage("Look at the direction.")]})
    run(way, graph, None, on_thread())
    found = run(way, graph, None, on_thread())
    assert found["reflexion"]["answer"] == "answer 2"
    assert [message.text for message in model.asked[1]][-1] == "Look at the direction."
    assert model.asked[1][1].text == asking()["messages"][0].text


@pytest.mark.parametrize("way", BOTH)
def test_a_subgraph_waits_within_its_parent(way: str) -> None:
    model = chat(8)
    outer: Any = StateGraph(MessagesState)
    outer.add_node("ask", a_graph(model, approve=True))
    outer.add_edge(START, "ask")
    graph = outer.compile(checkpointer=InMemorySaver())
    assert waits_for(run(way, graph, asking(), on_thread()))["approve"] == "answer 1"
    found = run(way, graph, Command(resume={"edit": "mine"}), on_thread())
    assert texts(found["messages"])[1:3] == ["mine", "ran mine"]
    assert len(model.asked) == 2


@pytest.mark.parametrize("way", BOTH)
def test_a_tool_may_ask_a_person_itself(way: str, tmp_path: Path) -> None:
    def tool(answer: str) -> str:
        return f"{answer}: {interrupt('Really?')}"

    model = chat(8)
    with a_store(tmp_path) as store:
        graph = a_graph(model, tool, checkpointer=InMemorySaver(), store=store)
        assert waits_for(run(way, graph, asking(), on_thread())) == "Really?"
        (episode,) = recorded(tmp_path)
        assert episode.stop is None
        found = run(way, graph, Command(resume="yes"), on_thread())
    assert found["reflexion"]["tool_result"] == "answer 1: yes"
    assert len(model.asked) == 2
