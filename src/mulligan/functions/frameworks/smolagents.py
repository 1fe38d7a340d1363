"""Agents of smolagents. Notes follow the task. An agent holds the steps of only one run, so runs take turns."""

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
class RunResult:
    """The full result of a run, and whether the caller asked for it or only for the output."""

    full: Any
    wants_full: bool


def recognises(agent: Any) -> bool:
    return hasattr(agent, "run") and hasattr(agent, "memory")


def method(agent: Any, name: str) -> Any:
    inner = getattr(agent, name)

    @wraps(inner)
    def run(*args: Any, **kwargs: Any) -> RunResult:
        arguments = signature(inner).bind(*args, **kwargs).arguments
        if arguments.get("stream"):
            raise InvalidInput(f"{type(agent).__name__}.{name} cannot be retried with stream=True: {WHY}.")
        wanted = arguments.get("return_full_result")
        with agent.__dict__.setdefault("_mulligan_turn", RLock()):
            full = inner(*args, **{**kwargs, "return_full_result": True})
        return RunResult(full, agent.return_full_result if wanted is None else wanted)

    return run


def task(agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    return str(args[0] if args else kwargs["task"])


def noted(
    agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    longer = f"{task(agent, args, kwargs)}\n\n{notes}"
    return (agent, (longer, *args[1:]), kwargs) if args else (agent, args, {**kwargs, "task": longer})


def given(ran: RunResult) -> Any:
    return ran.full if ran.wants_full else ran.full.output


def answer(ran: RunResult) -> Any:
    return ran.full.output


def attempt(ran: RunResult) -> Attempt:
    steps = list[Mapping[str, Any]](ran.full.steps)
    last_task = max((n for n, step in enumerate(steps) if "task" in step), default=-1)
    new = steps[last_task + 1 :]  # an agent that was not reset also has the steps of earlier runs
    used = [step.get("token_usage") or {} for step in new]
    usage = Usage(
        sum(tokens.get("input_tokens") or 0 for tokens in used),
        sum(tokens.get("output_tokens") or 0 for tokens in used),
        len(new),
        None,
    )
    return Attempt(str(ran.full.output), steps_of(_parts(new)), usage=usage)


def _parts(steps: Sequence[Mapping[str, Any]]) -> Iterator[Said | Called | Returned]:
    for step in steps:
        text = step.get("plan") or step.get("model_output")
        if isinstance(text, str):
            if code := step.get("code_action"):  # it belongs to the call; the line before it opens the code block
                text = text.partition(code)[0].strip().rpartition("\n")[0]
            yield Said(text)
        calls = step.get("tool_calls") or ()
        for call in calls:
            yield Called(call["id"], call["function"]["name"], call["function"]["arguments"])
        results = [step.get("observations") or "", (step.get("error") or {}).get("message", "")]
        if calls:  # all calls of a step share one result
            yield Returned(calls[-1]["id"], "\n".join(text for text in results if text))
