"""Runnables of LangChain: chat models, chains, agents, compiled graphs of LangGraph. Notes follow the newest message of
the user, or the only text of an input without messages."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Attempt, Usage
from mulligan.functions.frameworks._steps import Called, Returned, Said, steps_of

PACKAGE = "langchain_core"
ENTRIES = {"invoke": False, "ainvoke": True}
STREAMS = ("stream", "astream", "stream_events", "astream_events", "astream_log", "transform", "atransform")
# fmt: off
UNJUDGED = (
    "batch", "abatch", "batch_as_completed", "abatch_as_completed", "generate", "agenerate",
    "generate_prompt", "agenerate_prompt", "pipe", "map", "pick", "assign", "as_tool", "bind", "bind_tools", "copy",
    "with_config", "with_fallbacks", "with_listeners", "with_alisteners", "with_retry", "with_types",
    "with_structured_output", "configurable_fields", "configurable_alternatives", "model_copy",
)
# fmt: on


def recognises(agent: Any) -> bool:
    return hasattr(agent, "ainvoke") and hasattr(agent, "batch")


def task(agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    input = args[0] if args else kwargs.get("input")
    messages = _messages(input)
    if messages is not None:
        return next((text for role, text in map(_role_and_text, reversed(messages)) if role == "user"), "")
    if isinstance(input, Mapping):
        return "\n".join(f"{name}: {text}" for name, text in input.items() if isinstance(text, str))
    return str(input)


def noted(
    agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    if args:
        return agent, (_with_notes(args[0], notes), *args[1:]), kwargs
    return agent, args, {**kwargs, "input": _with_notes(kwargs.get("input"), notes)}


def answer(result: Any) -> Any:
    messages = _messages(result)
    newest = messages[-1] if messages else result
    return _text(newest.content) if hasattr(newest, "content") else newest


def attempt(result: Any) -> Attempt:
    messages = _messages(result) or [result]
    last_question = next(
        (n for n, message in reversed(list(enumerate(messages))) if _role_and_text(message)[0] == "user"), -1
    )
    new = messages[last_question + 1 :]
    used = [getattr(message, "usage_metadata", None) or {} for message in new]
    usage = Usage(
        sum(message.get("input_tokens", 0) for message in used),
        sum(message.get("output_tokens", 0) for message in used),
        sum(_role_and_text(message)[0] == "assistant" for message in new),
        None,
    )
    return Attempt(str(answer(result)), steps_of(_parts(new)), usage=usage)


def _messages(input: Any) -> list[Any] | None:
    """The messages in an input or a state; None if it has none."""
    messages = input.get("messages") if isinstance(input, Mapping) else input
    return list(messages) if isinstance(messages, (list, tuple)) else None


def _role_and_text(message: Any) -> tuple[str, str]:
    """The role of a message ("user", "assistant", "tool", …) and its text."""
    roles = {"human": "user", "ai": "assistant"}
    if isinstance(message, Mapping):
        role, content = str(message.get("role", "")), message.get("content", "")
    elif isinstance(message, tuple) and len(message) == 2:
        role, content = message
    else:
        role, content = str(getattr(message, "type", "")), getattr(message, "content", "")
    return roles.get(role, role), _text(content)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else ()
    texts = (part if isinstance(part, str) else part.get("text", "") for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _with_notes(input: Any, notes: str) -> Any:
    """The input with the notes appended."""
    messages = _messages(input)
    if messages is not None:
        position = next((n for n in reversed(range(len(messages))) if _role_and_text(messages[n])[0] == "user"), None)
        if position is None:
            raise InvalidInput("The input has no user message to append the notes to.")
        messages = [*messages[:position], _message_with_notes(messages[position], notes), *messages[position + 1 :]]
        return {**input, "messages": messages} if isinstance(input, Mapping) else messages
    if isinstance(input, Mapping):
        texts = [name for name, text in input.items() if isinstance(text, str)]
        if len(texts) == 1:
            return {**input, texts[0]: f"{input[texts[0]]}\n\n{notes}"}
        raise InvalidInput(
            f"The input has {len(texts)} strings, so it is unclear where to append the notes. Use mulligan.retry "
            "to decorate a function that places them."
        )
    return f"{input}\n\n{notes}"


def _message_with_notes(message: Any, notes: str) -> Any:
    if isinstance(message, Mapping):
        return {**message, "content": _content_with_notes(message.get("content", ""), notes)}
    if isinstance(message, tuple):
        role, content = message
        return (role, _content_with_notes(content, notes))
    return message.model_copy(update={"content": _content_with_notes(message.content, notes)})


def _content_with_notes(content: Any, notes: str) -> Any:
    if isinstance(content, str):
        return f"{content}\n\n{notes}"
    return [*content, {"type": "text", "text": notes}]


def _parts(messages: Sequence[Any]) -> Iterator[Said | Called | Returned]:
    for message in messages:
        role, text = _role_and_text(message)
        if role == "assistant":
            if text:
                yield Said(text)
            for call in getattr(message, "tool_calls", ()):
                yield Called(str(call.get("id")), call["name"], call["args"])
        elif role == "tool":
            yield Returned(str(getattr(message, "tool_call_id", "")), text)
