"""A run that is cancelled can be gone on with at once: LangGraph does not wait for the node that it cancels."""

import asyncio
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from reflexion_graphs import a_graph, an_open_store, asking, by_messages, on_thread

from mulligan.langgraph import ScriptedChat


async def test_a_run_that_was_cancelled_goes_on_at_once(tmp_path: Path) -> None:
    entered, going_on = asyncio.Event(), asyncio.Event()

    async def tool(answer: str) -> str:
        entered.set()
        await going_on.wait()
        return "ran"

    chat = ScriptedChat(by_messages(8))
    async with an_open_store(tmp_path) as store:
        graph = a_graph(chat, tool, store=store, checkpointer=InMemorySaver())
        running = asyncio.create_task(graph.ainvoke(asking(), on_thread("t")))
        await asyncio.wait_for(entered.wait(), 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        going_on.set()
        found = await asyncio.wait_for(graph.ainvoke(None, on_thread("t")), 20)
    assert found["reflexion"]["solved"]
    assert len(chat.asked) == 2, "the draft was not asked for again"
