"""`create_reflexion_graph`: it drafts, executes and revises until it is good enough or the steps are used up."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import pytest
from each_row import each_row
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from reflexion_graphs import QUESTION, WAYS, a_graph, asking, chat, drafted, on_thread, revised, run, scored, texts

from mulligan.core.errors import InvalidInput, ModelError
from mulligan.langgraph import ScriptedChat


@pytest.mark.parametrize("way", WAYS)
def test_it_revises_until_the_score_is_good_enough(way: str) -> None:
    model = chat(3, 8)
    found = run(way, a_graph(model), asking())
    assert texts(found["messages"]) == [QUESTION, "answer 1", "ran answer 1", "answer 2", "ran answer 2", "answer 3"]
    result = found["reflexion"]
    assert (result["answer"], result["tool_result"]) == ("answer 2", "ran answer 2")
    assert (result["score"], result["solved"], result["stop"], result["steps"]) == (8, True, "solved", 3)
    assert result["reflections"] == ["lesson 1"]
    assert result["usage"]["calls"] == len(model.asked) == 3


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("steps", [1, 2, 3, 6])
def test_a_step_is_a_draft_or_a_revision(way: str, steps: int) -> None:
    model = chat(*[2] * 9)
    result = run(way, a_graph(model, max_steps=steps), asking())["reflexion"]
    assert len(model.asked) == result["steps"] == steps
    last = max(steps - 1, 1)
    assert (result["answer"], result["tool_result"]) == (f"answer {last}", f"ran answer {last}")
    assert (result["stop"], result["solved"]) == ("exhausted", False)
    assert result["score"] == (None if steps == 1 else 2)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("given", [{}, {"recursion_limit": 1}, {"recursion_limit": 25}])
@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_the_recursion_limit_is_never_reached_before_the_step_limit(way: str, given: Any) -> None:
    graph = a_graph(chat(*[2] * 60), max_steps=60)
    assert run(way, graph, asking(), given)["reflexion"]["steps"] == 60
    graph = a_graph(chat(*[2] * 60), max_steps=60).with_config(given)
    assert run(way, graph, asking())["reflexion"]["steps"] == 60


def test_a_parent_s_recursion_limit_does_not_reach_it_and_its_own_reaches_no_child() -> None:
    limits: list[int] = []

    def child(state: Any, config: RunnableConfig) -> Any:
        limits.append(config.get("recursion_limit", 0))

    inner: Any = StateGraph(Parent)
    inner.add_node("look", child)
    inner.add_edge(START, "look")
    seen = inner.compile()

    def tool(answer: str) -> str:
        seen.invoke({"steps": 1})
        return answer

    outer: Any = StateGraph(Parent)
    outer.add_node("reflexion", a_graph(chat(*[2] * 40), tool, max_steps=40))
    outer.add_edge(START, "reflexion")
    found = outer.compile().invoke({**asking(), "result": 1}, {"recursion_limit": 3})
    assert len(found["messages"]) == 1 + 40 + 39
    assert min(limits) >= 85


class Parent(TypedDict):
    """A graph around ours, with keys that ours could be thought to have."""

    messages: Annotated[list[AnyMessage], add_messages]
    result: int
    steps: int
    next: str
    record: str


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("saver", [None, InMemorySaver])
def test_as_a_node_it_shares_the_messages_alone(way: str, saver: Any) -> None:
    graph: Any = StateGraph(Parent)
    graph.add_node("reflexion", a_graph(chat(3, 8)))
    graph.add_node("after", lambda state: {"steps": state["steps"] + 1})  # pyright: ignore
    graph.add_edge(START, "reflexion")
    graph.add_edge("reflexion", "after")
    mine: dict[str, Any] = {"result": 1, "steps": 2, "next": "mine", "record": "mine too"}
    config = on_thread() if saver else None
    found = run(way, graph.compile(checkpointer=saver and saver()), {**asking(), **mine}, config)
    assert len(found.pop("messages")) == 6
    assert found == {**mine, "steps": 3}


def test_a_parent_that_has_a_key_for_it_is_handed_the_result() -> None:
    class Wants(Parent):
        reflexion: Any

    graph: Any = StateGraph(Wants)
    graph.add_node("ask", a_graph(chat(9)))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    assert graph.compile().invoke(asking())["reflexion"]["answer"] == "answer 1"


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_two_questions_of_one_thread_know_nothing_of_each_other(way: str) -> None:
    model = ScriptedChat([*scored(3, 8), *scored(9)])
    graph = a_graph(model, checkpointer=InMemorySaver())
    first = run(way, graph, asking("The first?"), on_thread())["reflexion"]
    found = run(way, graph, asking("The second?"), on_thread())
    assert (first["steps"], found["reflexion"]["steps"]) == (3, 2)
    assert first["run"] != found["reflexion"]["run"]
    assert found["reflexion"]["reflections"] == []
    assert len(found["messages"]) == 6 + 4
    for asked in model.asked[3:]:
        assert "The first?" not in [message.text for message in asked]
        assert texts(asked)[1] == "The second?"


def test_both_prompts_hold_the_instructions_and_the_question() -> None:
    model = chat(3, 8)
    a_graph(model, instructions="Write SQL.").invoke(asking())
    for asked in model.asked:
        assert "Write SQL." in asked[0].text
        assert asked[1].text == QUESTION
    assert "Draft" in model.asked[0][0].text
    assert "Revision" in model.asked[1][0].text


def test_prompts_of_the_user_take_the_place_of_ours(tmp_path: Any) -> None:
    (tmp_path / "reflexion_graph.draft.md").write_text("[[system]]\nMine. {{instructions}}\n")
    model = chat(8)
    a_graph(model, instructions="Be short.", prompts=tmp_path).invoke(asking())
    assert model.asked[0][0].text == "Mine. Be short."
    (tmp_path / "reflexion_graph.draft.md").write_text("[[system]]\n{{question}}\n")
    with pytest.raises(InvalidInput, match=r"question.*is not available here"):
        a_graph(model, prompts=tmp_path)


@each_row(
    ("given", "said"),
    [
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"max_steps": 2.5}, "max_steps must be an integer, "),
        ({"good_score": 11}, "good_score must be a number from 0 to 10"),
        ({"good_score": True}, "good_score must be a number from 0 to 10"),
        ({"learn": True}, "needs a bank"),
        ({"interrupt_before": ["nowhere"]}, "nowhere"),
    ],
)
def test_what_cannot_be_is_refused_before_a_model_is_called(given: Any, said: str) -> None:
    model = chat(8)
    with pytest.raises(ValueError, match=said):
        a_graph(model, **given)
    assert not model.asked


@pytest.mark.parametrize("messages", [[("user", "  ")], [("ai", "Hello")]])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_without_a_question_nothing_is_asked(way: str, messages: Any) -> None:
    model = chat(8)
    with pytest.raises(InvalidInput, match="question"):
        run(way, a_graph(model), {"messages": messages})
    assert not model.asked


def test_what_the_model_raises_is_raised() -> None:
    graph = a_graph(ScriptedChat([ModelError("no credit")]))
    with pytest.raises(ModelError, match="no credit"):
        graph.invoke(asking())


def test_the_newest_question_is_found_among_messages_of_others() -> None:
    model = chat(8)
    before = [HumanMessage("An old one?"), AIMessage("Old answer."), HumanMessage(QUESTION), AIMessage("I hand over.")]
    found = a_graph(model).invoke({"messages": before})
    assert texts(model.asked[0])[1:] == [QUESTION, "I hand over."]
    assert found["reflexion"]["answer"] == "answer 1"


def test_a_message_that_was_removed_is_missed_by_name() -> None:
    from langchain_core.messages import RemoveMessage

    graph = a_graph(
        ScriptedChat([drafted(), revised(8)]),
        checkpointer=InMemorySaver(),
        interrupt_before=["revise"],
    )
    graph.invoke(asking(), on_thread())
    state = graph.get_state(on_thread())
    tool = next(message for message in state.values["messages"] if isinstance(message, ToolMessage))
    graph.update_state(on_thread(), {"messages": [RemoveMessage(id=tool.id or "")]})
    with pytest.raises(InvalidInput, match=r"ToolMessage.*was removed"):
        graph.invoke(None, on_thread())
