"""Agents of pydantic-ai. Notes are instructions of the run and follow the agent's own."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mulligan.core.records import Attempt, Usage
from mulligan.functions.frameworks._steps import Called, Returned, Said, steps_of

PACKAGE = "pydantic_ai"
ENTRIES = {"run": True, "run_sync": False}
STREAMS = ("iter", "run_stream", "run_stream_sync", "run_stream_events", "realtime")
UNJUDGED = ("to_cli", "to_cli_sync", "to_web")


def recognises(agent: Any) -> bool:
    return hasattr(agent, "run_sync") and hasattr(agent, "iter")


def task(agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    prompt = args[0] if args else kwargs.get("user_prompt")
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    return "\n".join(part for part in parts if isinstance(part, str))


def noted(
    agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    own = kwargs.get("instructions") or ()
    instructions = own if isinstance(own, (list, tuple)) else (own,)
    return agent, args, {**kwargs, "instructions": [*instructions, notes]}


def answer(result: Any) -> Any:
    return result.output


def attempt(result: Any) -> Attempt:
    used = result.usage
    usage = Usage(used.input_tokens or 0, used.output_tokens or 0, used.requests or 0, None)
    return Attempt(str(result.output), steps_of(_parts(result.new_messages())), usage=usage)


def _parts(messages: Sequence[Any]) -> Iterator[Said | Called | Returned]:
    for part in (part for message in messages for part in message.parts):
        match part.part_kind:
            case "text" | "thinking":
                yield Said(part.content)
            case "tool-call":
                yield Called(part.tool_call_id, part.tool_name, part.args)
            case "tool-return":
                yield Returned(part.tool_call_id, part.model_response_str())
            case "retry-prompt":
                yield Returned(part.tool_call_id, part.model_response())
            case _:
                pass
