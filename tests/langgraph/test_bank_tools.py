"""The bank within LangGraph: tools for any agent, and graphs that recall before they draft and teach at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from banks import a_bank, lessons_of, mind
from langchain_core.messages import AIMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode
from reflexion_graphs import QUESTION, a_graph, a_store, an_open_store, asking, chat, on_thread, recorded, run, scored

from mulligan import Bank
from mulligan.core.errors import ModelError
from mulligan.langgraph import ScriptedChat, bank_tools

BOTH = ("invoke", "ainvoke")
STEPS = [{"did": "MATCH (g:gene)", "saw": "no rows"}, {"did": "MATCH (g:Gene)", "saw": "5 rows"}]
DRAWN = {
    "title": "Labels of nodes",
    "description": "When a query for nodes finds nothing.",
    "content": "Labels are spelt with a capital letter.",
    "steps": [2],
}


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    made = a_bank(tmp_path / "lessons.db", "me")
    yield made
    asyncio.run(made.close())


def used(way: str, tool: Any, **given: Any) -> str:
    return tool.invoke(given) if way == "invoke" else asyncio.run(tool.ainvoke(given))


def taught(bank: Bank) -> None:
    asyncio.run(bank.add("Regulation of genes", "Genes regulate by REGULATES.", query=QUESTION))


@pytest.mark.parametrize("way", BOTH)
def test_an_agent_recalls_what_was_learned(way: str, bank: Bank) -> None:
    recall, _ = bank_tools(bank)
    assert used(way, recall, task=QUESTION) == "No lesson helps with this yet."
    taught(bank)
    said = used(way, recall, task=QUESTION, top_k=1)
    assert "Genes regulate by REGULATES." in said
    assert "(recall_id: r" in said


@pytest.mark.parametrize("way", BOTH)
def test_an_agent_draws_its_lessons_where_the_bank_has_no_model(way: str, bank: Bank) -> None:
    recall, learn = bank_tools(bank)
    taught(bank)
    receipt = used(way, recall, task=QUESTION).rpartition("recall_id: ")[2].rstrip(")")
    task: dict[str, Any] = {"task": QUESTION, "steps": STEPS, "success": True, "recall_id": receipt}
    asked = used(way, learn, **task)
    assert "call learn_lessons again with lessons" in asked
    assert "MATCH (g:Gene)" in asked
    assert used(way, learn, **task, lessons=[DRAWN]).startswith("1 lesson learned: ")
    said = used(way, recall, task="A query for nodes finds nothing: labels of nodes?")
    assert "Labels are spelt with a capital letter." in said
    (outcome,) = asyncio.run(bank.receipt(receipt)).outcomes
    assert outcome.success is True


@pytest.mark.parametrize("way", BOTH)
def test_a_bank_with_a_model_learns_by_itself(way: str, tmp_path: Path) -> None:
    model = mind(lambda text: lessons_of(("Labels", "Spell labels with a capital letter.")))
    made = a_bank(tmp_path / "lessons.db", "me", model=model)
    _, learn = bank_tools(made)
    assert used(way, learn, task=QUESTION, steps=STEPS, success=True).startswith("1 lesson learned by mind: ")
    asyncio.run(made.close())


def test_whether_it_succeeded_has_to_be_known(bank: Bank) -> None:
    _, learn = bank_tools(bank)
    task: dict[str, Any] = {"task": QUESTION, "steps": STEPS}
    assert "Whether the task succeeded is not known" in learn.invoke(task)
    assert "call learn_lessons again with lessons" in learn.invoke({**task, "success": False})


@pytest.mark.parametrize("way", BOTH)
def test_what_is_wrong_is_told_to_the_agent(way: str, bank: Bank) -> None:
    recall, learn = bank_tools(bank)
    assert "The query is empty" in used(way, recall, task=" ")
    assert "at least one step" in used(way, learn, task=QUESTION, steps=[], success=True)
    assert "There is no recall 'r0'" in used(way, learn, task=QUESTION, steps=STEPS, success=True, recall_id="r0")
    wrong = {**DRAWN, "steps": [7]}
    assert "step" in used(way, learn, task=QUESTION, steps=STEPS, success=True, lessons=[wrong])


@pytest.mark.parametrize("way", BOTH)
def test_names_of_arguments_are_understood_or_refused(way: str, bank: Bank) -> None:
    for n in range(3):
        asyncio.run(bank.add(f"Label {n}", f"The label {n} of nodes is spelt with a capital letter."))
    recall, learn = bank_tools(bank)
    assert used(way, recall, task="the label of nodes", topK=3).count("capital letter") == 3
    assert used(way, recall, task="the label of nodes", limit=1).count("capital letter") == 1
    assert "No argument of recall_lessons is called 'tasks'. Did you mean 'task'?" in used(way, recall, tasks="t")
    assert "No argument of learn_lessons is called 'agent'" in used(way, learn, task="t", steps=STEPS, agent="bob")


def test_no_tool_offers_a_choice_of_types_that_some_providers_refuse(bank: Bank) -> None:
    for tool in bank_tools(bank):
        assert "anyOf" not in str(convert_to_openai_tool(tool))


def test_they_are_tools_like_any_other(bank: Bank) -> None:
    taught(bank)
    tools = bank_tools(bank)
    assert [tool.name for tool in tools] == ["recall_lessons", "learn_lessons"]
    call = {"name": "recall_lessons", "args": {"task": QUESTION}, "id": "1", "type": "tool_call"}
    from langgraph.graph import START, MessagesState, StateGraph

    graph: Any = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "tools")
    found = graph.compile().invoke({"messages": [AIMessage("", tool_calls=[call])]})
    assert "REGULATES" in found["messages"][-1].text


def test_an_agent_id_opens_its_bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    (tmp_path / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    monkeypatch.chdir(tmp_path)
    recall, learn = bank_tools("me")
    learn.invoke({"task": QUESTION, "steps": STEPS, "success": True})
    learn.invoke({"task": QUESTION, "steps": STEPS, "success": True, "lessons": [DRAWN]})
    said = asyncio.run(recall.ainvoke({"task": "A query for nodes finds nothing: labels of nodes?"}))
    assert "capital letter" in said


# --- graphs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", BOTH)
def test_a_graph_recalls_before_it_drafts(way: str, bank: Bank, tmp_path: Path) -> None:
    taught(bank)
    model = chat(3, 8)
    with a_store(tmp_path) as store:
        run(way, a_graph(model, bank=bank, store=store), asking())
    for asked in model.asked:
        assert "Genes regulate by REGULATES." in asked[0].text
    (episode,) = recorded(tmp_path)
    assert episode.plan.recalls
    assert episode.recall
    assert [lesson.title for lesson in episode.recall.lessons] == ["Regulation of genes"]
    (outcome,) = asyncio.run(bank.receipt(episode.recall.id)).outcomes
    assert (outcome.work, outcome.success) == ("", episode.solved)  # counted, though nothing is learned


@pytest.mark.parametrize("way", BOTH)
def test_a_graph_teaches_the_bank_when_it_is_asked_to(way: str, tmp_path: Path) -> None:
    model = mind(lambda text: lessons_of(("Direction", "Look at the direction of a relationship.")))
    made = a_bank(tmp_path / "lessons.db", "me", model=model)
    with a_store(tmp_path) as store:
        run(way, a_graph(chat(3, 8), bank=made, store=store), asking())
        assert asyncio.run(made.list()) == ()
        run(way, a_graph(chat(3, 8), bank=made, learn=True, store=store), asking())
    (lesson,) = asyncio.run(made.list())
    assert lesson.title == "Direction"
    assert lesson.origin.episode == recorded(tmp_path)[1].id
    asyncio.run(made.close())


@pytest.mark.parametrize("way", BOTH)
def test_without_a_store_it_recalls_and_teaches_too(way: str, tmp_path: Path) -> None:
    model = mind(lambda text: lessons_of(("Direction", "Look at the direction.")))
    made = a_bank(tmp_path / "lessons.db", "me", model=model)
    taught(made)
    asked = chat(8)
    run(way, a_graph(asked, bank=made, learn=True), asking())
    assert "REGULATES" in asked.asked[0][0].text
    assert len(asyncio.run(made.list())) == 2
    asyncio.run(made.close())


def test_a_run_that_goes_on_is_shown_what_was_recalled_at_first(bank: Bank, tmp_path: Path) -> None:
    taught(bank)
    said: list[Any] = scored(3, 8)
    said.insert(1, ModelError("down"))
    model = ScriptedChat(said)
    with a_store(tmp_path) as store:
        graph = a_graph(model, bank=bank, store=store)
        with pytest.raises(ModelError):
            graph.invoke(asking(id="q"), on_thread())
        asyncio.run(bank.add("Something else", "Which genes does EOMES regulate? Those of the list.", query=QUESTION))
        graph.invoke(asking(id="q"), on_thread())
    assert all("Something else" not in asked[0].text for asked in model.asked)
    (episode,) = recorded(tmp_path)
    assert episode.recall
    assert (len(episode.recall.lessons), episode.solved) == (1, True)


async def test_a_bank_serves_an_event_loop_and_threads_at_once(bank: Bank, tmp_path: Path) -> None:
    """The same bank, by `ainvoke` here and by `invoke` in a thread."""
    await bank.add("Regulation of genes", "Genes regulate by REGULATES.", query=QUESTION)
    async with an_open_store(tmp_path) as store:
        graph = a_graph(ScriptedChat(lambda messages: scored(8)[len(messages) > 2]), bank=bank, learn=True, store=store)
        found = await asyncio.gather(
            *(graph.ainvoke(asking()) for _ in range(3)), *(asyncio.to_thread(graph.invoke, asking()) for _ in range(3))
        )
        assert all(one["reflexion"]["solved"] for one in found)
        assert all(episode.recall and episode.recall.lessons for episode in await store.list())
    await asyncio.wait_for(bank.close(), 20)


@pytest.mark.parametrize("way", BOTH)
def test_a_bank_by_name_is_opened_by_the_graph(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    (tmp_path / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    monkeypatch.chdir(tmp_path)

    async def teach() -> None:
        async with Bank.open("me") as opened:
            await opened.add("Regulation of genes", "Genes regulate by REGULATES.", query=QUESTION)

    asyncio.run(teach())
    model = ScriptedChat([*scored(8), *scored(8)])
    graph = a_graph(model, bank="me")
    for _ in range(2):
        run(way, graph, asking())
    assert "REGULATES" in model.asked[2][0].text
