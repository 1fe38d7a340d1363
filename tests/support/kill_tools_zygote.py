"""Runs one agent with tools for each line on stdin, in a child forked from a process that has everything imported.

An order (see `forking`) is {"folder": PROJECT, "resume": RUN or null, "fork": bool}. A child has real SQLite, a real git
worktree, real commands, a real MCP server. What happens outside the worktree leaves a line in the project's effects.log.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from forking import serve, tell

import mulligan
from mulligan.app.trusting import trust
from mulligan.core.protocols import Lease
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Json
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

PRELOADED = (
    *("mcp", "mcp.client.stdio", "jsonschema", "referencing", "yaml", "mulligan.workspace.deliver"),
    *("mulligan.tools.mcp", "mulligan.tools.run_command", "mulligan.evaluators.review", "mulligan.actors.agent"),
)
"""Imported before the fork, so that a child does not spend its short life on it."""


def call(tool: str, **arguments: Json) -> Json:
    return {"tool": tool, "arguments": arguments}


def finish(key: str, value: str) -> Json:
    return call("finish", key=key, value=value)


def effect(name: str, log: Path) -> str:
    """A command that takes a moment and leaves a line outside the worktree, and one inside."""
    return f"sleep 0.02; echo {name} >> '{log}'; echo {name} >> said.txt; sleep 0.02"


def actor(trial: int, done: int, log: Path) -> Json:
    lines: list[Json] = [
        call("read_skill", name="digging"),
        call("write_file", path=f"deep/{trial}.txt", content=f"written {trial}\n"),
        call("run_command", command=effect(f"command {trial}", log)),
        {"calls": [call("list_files"), call("effects_note", text=f"note {trial}"), call("read_file", path="said.txt")]},
        call(
            "run_command", command=f"rm start.txt; cat deep/*.txt >> all.txt; mkdir -p made/{trial}; chmod +x all.txt"
        ),
        call("effects_note", text=f"again {trial}"),
        call("write_file", path="all.txt", content=f"whole {trial}\n"),
        finish("done", f"attempt {trial}"),
    ]
    return lines[done]


def reviewer(trial: int, done: int, log: Path) -> Json:
    lines: list[Json] = [
        call("read_skill", name="checking"),
        call("run_command", command=effect(f"check {trial}", log)),
        call("effects_note", text=f"checked {trial}"),
        call("write_file", path="all.txt", content="the reviewer was here\n"),
        call("read_file", path="all.txt"),
        finish("retry", "more") if trial < 2 else finish("done", "fine"),
    ]
    return lines[done]


def model(log: Path) -> ScriptedModel:
    def answer(question: Question, _: Sampling) -> Json:
        time.sleep(0.01)
        system, told = question.messages[0].text, question.messages[1].text
        done = sum(message.role == "assistant" for message in question.messages)
        trial = 2 if "attempt 2" in told or "Previous attempt" in told else 1
        role = actor if system.startswith("Dig") else reviewer
        with open(log, "a") as out:
            out.write(f"asked {role.__name__} {trial} {done}\n")
        return role(trial, done, log)

    return ScriptedModel(answer)


class Announced(SqliteStore):
    """Says when the episode begins: everything before is the program's start."""

    async def acquire(self, episode: str, owner: str, seconds: float, *, removing: bool = False) -> Lease:
        lease = await super().acquire(episode, owner, seconds, removing=removing)
        tell(ready=True)
        return lease


async def episode(order: dict[str, Any]) -> str:
    folder = Path(order["folder"])
    os.chdir(folder)
    os.environ["MULLIGAN_HOME"] = str(folder / "home")
    trust(folder)
    store = Announced(folder / "store.db")
    own: dict[str, Any] = {"model": model(folder / "effects.log"), "store": store}
    try:
        if order["resume"]:
            ended = await mulligan.resume(order["resume"], fork=order["fork"], **own)
        else:
            ended = await mulligan.run("digger", "Get to the gold.", workspace="repo", sandbox="limits", **own)
    except mulligan.MulliganError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await store.close()
    return f"{ended.stop.reason}: {ended.stop.detail}" if ended.stop else "open"


if __name__ == "__main__":
    serve(PRELOADED, episode, lambda order: Path(order["folder"], "said"))
