"""Ctrl-C in a notebook, where `execute` is called while an event loop runs, ends the question as anywhere else."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from graph_agents import Chat

from mulligan.app.config import load
from mulligan.core.records import Stop
from mulligan.langgraph import KGQueryReflexionAgent
from mulligan.store import open_store


class Endless(Chat):
    """Is interrupted when it is asked, and says nothing before it is given up."""

    def __init__(self) -> None:
        super().__init__([])

    async def _agenerate(self, *given: Any, **named: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.wait_for(asyncio.Event().wait(), 20)


async def test_ctrl_c_where_a_loop_runs(kg: Path) -> None:
    agent = KGQueryReflexionAgent(Endless(), kg)
    with pytest.raises(KeyboardInterrupt):
        agent.execute("How many?", "-")
    await agent.aclose()
    store = open_store(load().store)
    (episode,) = await store.list()
    await store.close()
    assert episode.stop == Stop("interrupted", "during draft of trial.1")
