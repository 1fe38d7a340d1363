"""What an agent of a real framework lives through in its own environment: `with_NAME.py` in tests/functions/frameworks.

Each of these scripts makes agents whose model is scripted by `Model`, and tells the story: once as "first", once as
"later" in a new process. What happened is written to a file, for tests/functions/test_real_frameworks.py to look at.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import mulligan
from mulligan.plugins import InvalidInput

TASK = "Write the total of lines T5T and T7T."
LATER = "Write the total of lines T8T and T9T."
AT_ONCE = 8
RUNS = re.compile("a?(run|stream|iter|invoke|batch|kickoff|generate|call|forward|transform)")


@dataclass
class Model:
    """Looks once, then answers; with a currency only if somebody says what was missing.

    Attributes:
        looks: whether it has a tool to look with.
        asked: the whole text of each call, instructions and messages.
    """

    looks: bool = True
    asked: list[str] = field(default_factory=list[str])

    def turn(self, text: str, looked: bool) -> str | None:
        """The answer; None if the tool is to be called, which is called `look` and has the argument line=5."""
        self.asked.append(text)
        if self.looks and not looked:
            return None
        return "12 EUR" if "no currency" in text else "12"


@dataclass(frozen=True)
class Part:
    """An agent in the story.

    Attributes:
        run, arun: call the wrapped agent with a task, and return the answer in its result.
        refused: the names of methods that may not be called.
        misused: other calls that are refused.
        tokens: what the model says that a call took, in and out; None where it counts itself.
        looks: parts of the call by which it looks, and of what it is given back.
    """

    agent: Any
    model: Model
    run: Callable[[Any, str], Any]
    arun: Callable[[Any, str], Any] | None = None
    refused: tuple[str, ...] = ()
    misused: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict[str, Callable[[Any], Any]])
    tokens: tuple[int, int] | None = (7, 2)
    looks: tuple[str, str] = ("look", "line 5")


def right(task: str, answer: str) -> None:
    if not answer.endswith("EUR"):
        raise ValueError(f"no currency in {answer!r} for {{what}} of {re.findall('T[0-9]+T', task)}")


def tell(parts: Mapping[str, Part]) -> None:
    """Live through it: `with_NAME.py first|later FILE`."""
    network = list[str]()

    def watch(event: str, given: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo"):
            network.append(f"{event} {given[-1]}" if event == "socket.connect" else f"{event} {given[0]}")
            raise OSError("no network is used in this test")

    sys.addaudithook(watch)
    logging.getLogger("mulligan").setLevel(logging.ERROR)
    when, file = sys.argv[1:]
    live = first if when == "first" else later
    told = {name: live(name, part) for name, part in parts.items()}
    Path(file).write_text(json.dumps({"network": network, "parts": told}))


def first(name: str, part: Part) -> dict[str, Any]:
    part.model.asked.clear()
    agent: Any = mulligan.wrap(part.agent, judge=right, bank=name)
    answer = part.run(agent, TASK)
    told = {"answer": answer, "asked": list(part.model.asked), **record(agent.episode)}
    told |= {"tokens": part.tokens, "looks": part.looks, "unjudged": unjudged(agent, part.agent)}
    misused = {name: partial(call, name=name) for name in part.refused} | dict(part.misused)
    told["refused"] = {name: refusal(agent, misuse) for name, misuse in misused.items()}
    told["at_once"] = at_once(part)
    return told


def later(name: str, part: Part) -> dict[str, Any]:
    part.model.asked.clear()
    agent: Any = mulligan.wrap(part.agent, judge=right, bank=name)
    return {"answer": part.run(agent, LATER), "asked": list(part.model.asked), **record(agent.episode)}


def record(episode: mulligan.Episode) -> dict[str, Any]:
    trials = [
        {
            "output": trial.attempt.output,
            "steps": [(step.thought, step.action, step.observation) for step in trial.attempt.steps],
            "usage": [trial.attempt.usage.input_tokens, trial.attempt.usage.output_tokens, trial.attempt.usage.calls],
        }
        for trial in episode.trials
    ]
    return {"task": episode.task.prompt, "solved": episode.solved, "trials": trials}


def unjudged(wrapped: Any, agent: Any) -> list[str]:
    """The methods whose names say that they run the agent, and that the wrapped one has unchanged."""
    kind = cast(Any, type(agent))
    names = [name for name in dir(kind) if RUNS.match(name) and callable(getattr(kind, name))]
    return [name for name in names if getattr(wrapped, name) == getattr(agent, name)]


def call(agent: Any, name: str) -> Any:
    return agent("x") if name == "__call__" else getattr(agent, name)("x")


def refusal(agent: Any, misuse: Callable[[Any], Any]) -> str:
    try:
        misuse(agent)
    except InvalidInput as error:
        return str(error)
    return ""


def at_once(part: Part) -> list[list[str]]:
    """The line numbers in each text that the model was given while calls of one wrapped agent went on at once."""
    part.model.asked.clear()
    agent: Any = mulligan.wrap(part.agent, judge=right, record=False)
    tasks = [f"Write the total of line T{n}T." for n in range(AT_ONCE)]
    if part.arun is None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = [ended.result() for ended in [pool.submit(part.run, agent, task) for task in tasks]]
    else:

        async def every() -> list[Any]:
            assert part.arun is not None
            return await asyncio.gather(*(part.arun(agent, task) for task in tasks))

        answers = asyncio.run(every())
    assert answers == ["12 EUR"] * AT_ONCE, answers
    return [sorted(set(re.findall("T[0-9]+T", text))) for text in part.model.asked]
