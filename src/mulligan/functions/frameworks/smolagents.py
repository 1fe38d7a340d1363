"""Agents of smolagents. Notes stand behind the task. An agent holds the steps of one run, so it runs once at a time."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from threading import RLock
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Attempt, Usage
from mulligan.functions.frameworks._steps import Called, Returned, Said, steps_of
from mulligan.functions.retry import STREAMS as WHY

PACKAGE = "smolagents"
ENTRIES = {"run": False}
UNJUDGED = ("__call__", "step")


@dataclass(frozen=True)
class Ran:
    """What a run gave, and whether the caller asked for all of it."""

    full: Any
    all: bool


def recognises(agent: Any) -> bool:
    return hasattr(agent, "run") and hasattr(agent, "memory")


def method(agent: Any, name: str) -> Any:
    own = getattr(agent, name)

    @wraps(own)
    def run(*args: Any, **kwargs: Any) -> Ran:
        given = signature(own).bind(*args, **kwargs).arguments
        if given.get("stream"):
            raise InvalidInput(f"{type(agent).__name__}.{name} cannot be retried with stream=True: {WHY}.")
        wanted = given.get("return_full_result")
        with agent.__dict__.setdefault("_mulligan_turn", RLock()):
            full = own(*args, **{**kwargs, "return_full_result": True})
        return Ran(full, agent.return_full_result if wanted is None else wanted)

    return run


def task(agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    return str(args[0] if args else kwargs["task"])


def noted(
    agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    longer = f"{task(agent, args, kwargs)}\n\n{notes}"
    return (agent, (longer, *args[1:]), kwargs) if args else (agent, args, {**kwargs, "task": longer})


def given(ran: Ran) -> Any:
    return ran.full if ran.all else ran.full.output


def answer(ran: Ran) -> Any:
    return ran.full.output


def attempt(ran: Ran) -> Attempt:
    steps = list[Mapping[str, Any]](ran.full.steps)
    asked = max((n for n, step in enumerate(steps) if "task" in step), default=-1)
    new = steps[asked + 1 :]  # an agent that is not reset has those of earlier runs, too
    used = [step.get("token_usage") or {} for step in new]
    usage = Usage(
        sum(one.get("input_tokens") or 0 for one in used),
        sum(one.get("output_tokens") or 0 for one in used),
        len(new),
        None,
    )
    return Attempt(str(ran.full.output), steps_of(_parts(new)), usage=usage)


def _parts(steps: Sequence[Mapping[str, Any]]) -> Iterator[Said | Called | Returned]:
    for step in steps:
        said = step.get("plan") or step.get("model_output")
        if isinstance(said, str):
            if code := step.get("code_action"):  # it is the call's, in a block that a line begins
                said = said.partition(code)[0].strip().rpartition("\n")[0]
            yield Said(said)
        calls = step.get("tool_calls") or ()
        for call in calls:
            yield Called(call["id"], call["function"]["name"], call["function"]["arguments"])
        got = [step.get("observations") or "", (step.get("error") or {}).get("message", "")]
        if calls:  # one text for all of them
            yield Returned(calls[-1]["id"], "\n".join(part for part in got if part))
