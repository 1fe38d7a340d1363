"""Crews of CrewAI. Each try runs in a copy of the crew, as in `kickoff_for_each`; notes follow the description of each
task."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Attempt, Usage
from mulligan.functions.frameworks._steps import Called, Returned, Said, steps_of
from mulligan.functions.retry import STREAMS as WHY

PACKAGE = "crewai"
ENTRIES = {"kickoff": False, "kickoff_async": True, "akickoff": True}
# fmt: off
UNJUDGED = (
    "kickoff_for_each", "kickoff_for_each_async", "akickoff_for_each",
    "copy", "fork", "from_checkpoint", "replay", "test", "train",
)
# fmt: on

WRITTEN_CALL = re.compile(r"(.*?)\bAction: *(.+?)\s*\nAction Input: *(.+?)\s*\nObservation:(.*)", re.DOTALL)
"""A call of a tool in the text of a model without tool calls."""


def recognises(agent: Any) -> bool:
    return hasattr(agent, "kickoff") and hasattr(agent, "tasks") and hasattr(agent, "agents")


def method(agent: Any, name: str) -> Any:
    inner = getattr(agent, name, None)
    if inner is None:
        return None

    @wraps(inner)
    def run(*args: Any, **kwargs: Any) -> Any:
        if agent.stream:
            raise InvalidInput(f"{type(agent).__name__}.{name} cannot be retried with stream=True: {WHY}.")
        return getattr(_fresh(agent), name)(*args, **kwargs)

    return run


def task(agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The descriptions of its tasks, with the inputs filled in."""
    inputs = (args[0] if args else kwargs.get("inputs")) or {}
    description = "\n".join(str(task.description) for task in agent.tasks)
    for name, value in inputs.items():
        description = description.replace(f"{{{name}}}", str(value))
    return description


def noted(
    agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    crew = agent.copy()
    plain = re.sub(r"\{(?=[A-Za-z_][\w-]*\})", "{ ", notes)  # CrewAI would take {name} for an input
    for task in crew.tasks:
        task.description = f"{task.description}\n\n{plain}"
    return crew, args, kwargs


def answer(result: Any) -> Any:
    return result.pydantic or result.json_dict or result.raw


def attempt(result: Any) -> Attempt:
    used = result.token_usage
    usage = Usage(used.prompt_tokens, used.completion_tokens, used.successful_requests, None)
    messages = [message for output in result.tasks_output for message in output.messages]
    return Attempt(str(result.raw), steps_of(_parts(messages)), usage=usage)


def _fresh(crew: Any) -> Any:
    """A copy of the crew with token counters at zero: copies share the counters, and nothing resets them."""
    copy = crew.copy()
    for llm in (copy.manager_llm, *(agent.llm for agent in copy.agents)):
        if isinstance(counters := getattr(llm, "_token_usage", None), dict):
            llm._token_usage = dict.fromkeys(counters, 0)
    return copy


def _parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[Said | Called | Returned]:
    for message in messages:
        content = message.get("content")
        if message["role"] == "assistant":
            if call := WRITTEN_CALL.fullmatch(str(content)):
                thought, tool, arguments, result = call.groups()
                yield Said(thought)
                yield Called(str(content), tool, arguments)
                yield Returned(str(content), result.strip())
            elif isinstance(content, str):
                yield Said(content)
            for call in message.get("tool_calls") or ():
                yield Called(call["id"], call["function"]["name"], call["function"]["arguments"])
        elif message["role"] == "tool":
            yield Returned(str(message.get("tool_call_id")), str(content))
