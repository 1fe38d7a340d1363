"""A process that runs a checkpointed reflexion graph and dies when it is told to. Each call of its model and its tool is
a line in a file.

    python mortal_graph.py FOLDER SIDE DURABILITY DIE_AFTER [PAUSE]

SIDE: sync or async. DIE_AFTER: nodes after which it kills itself; -1: never. PAUSE: seconds that a call takes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from mulligan.langgraph import ScriptedChat, create_reflexion_graph
from mulligan.store.sqlite import SqliteStore

THREAD: Any = {"configurable": {"thread_id": "t"}}
SCORES = (3, 3, 8)


def noted(file: Path, line: str) -> None:
    with file.open("a") as lines:
        lines.write(f"{line}\n")


def graph(folder: Path, saver: Any, pause: float) -> Any:
    def answer(messages: list[BaseMessage]) -> Any:
        tried = sum(isinstance(message, ToolMessage) for message in messages)
        noted(folder / "calls.txt", str(tried))
        time.sleep(pause)
        if not tried:
            return {"answer": "answer 1", "reflection": ""}
        return {"reflection": f"lesson {tried}", "score": SCORES[tried - 1], "revised_answer": f"answer {tried + 1}"}

    def tool(answer: str) -> str:
        noted(folder / "runs.txt", answer)
        time.sleep(pause)
        return f"ran {answer}"

    store = SqliteStore(folder / "mulligan.db")
    return create_reflexion_graph(ScriptedChat(answer), tool, store=store, checkpointer=saver)


def given(found: Any) -> Any:
    """The question, unless the thread says what comes next. (It says so not always: what a node has written may be kept,
    and the checkpoint after it not; then the same question is asked again.)"""
    return None if found.next else {"messages": [{"role": "user", "content": "Which?", "id": "q"}]}


def passed(nodes: int, die_after: int) -> int:
    if nodes + 1 == die_after:
        os.kill(os.getpid(), signal.SIGKILL)
    return nodes + 1


def sync(folder: Path, durability: Any, die_after: int, pause: float) -> None:
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        made, nodes = graph(folder, saver, pause), 0
        if die_after == 0:
            passed(-1, 0)
        for _ in made.stream(given(made.get_state(THREAD)), THREAD, stream_mode="updates", durability=durability):
            nodes = passed(nodes, die_after)
        print(made.get_state(THREAD).values["reflexion"]["answer"])


async def asynchronous(folder: Path, durability: Any, die_after: int, pause: float) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        made, nodes = graph(folder, saver, pause), 0
        asked = given(await made.aget_state(THREAD))
        async for _ in made.astream(asked, THREAD, stream_mode="updates", durability=durability):
            nodes = passed(nodes, die_after)
        print((await made.aget_state(THREAD)).values["reflexion"]["answer"])


if __name__ == "__main__":
    where, side, kept, last = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    seconds = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0
    if side == "sync":
        sync(where, kept, last, seconds)
    else:
        asyncio.run(asynchronous(where, kept, last, seconds))
