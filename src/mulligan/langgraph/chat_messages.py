"""Converts LangChain's messages to Mulligan's, and Mulligan's answers to LangChain's messages.

Mulligan's calls have no ids: tool messages follow the calls in their order. So this module makes ids, always the same
for the same conversation, and puts tool messages in the order of the calls.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages import InvalidToolCall as Invalid
from langchain_core.messages import ToolCall as Called
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk

from mulligan.core.codec import digest
from mulligan.core.errors import InvalidInput
from mulligan.core.questions import Answer, Message, ToolCall
from mulligan.core.records import Image, Json, Usage
from mulligan.models.failures import NotJson

UNANSWERED = "(nothing: this call was not made)"
"""The answer to a call that no tool message answers: providers refuse a call without an answer."""
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "system": "system"}


def to_messages(messages: Sequence[BaseMessage]) -> tuple[Message, ...]:
    """Convert a conversation.

    Raises:
        InvalidInput: There is no message, a tool message belongs to no call, content is neither text nor image, or an
            image is given by its address.
    """
    converted: list[Message] = []
    waiting: list[_Waiting] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            _answer(waiting, message)
            continue
        converted += [Message("tool", each.text) for each in waiting]
        waiting = []
        if isinstance(message, AIMessage):
            converted.append(Message("assistant", str(message.text), calls=_calls(message)))
            waiting = [_Waiting(call["id"] or "") for call in _all(message)]
        else:
            converted.append(_plain(message))
    converted += [Message("tool", each.text) for each in waiting]
    if not converted:
        raise InvalidInput("There is no message for the model to answer.")
    return tuple(converted)


@dataclass
class _Waiting:
    """A call of the newest assistant message, and its answer."""

    id: str
    text: str = UNANSWERED
    answered: bool = False


def _answer(waiting: Sequence[_Waiting], message: ToolMessage) -> None:
    for each in waiting:
        if each.id == message.tool_call_id and not each.answered:
            each.text, each.answered = _text(message), True
            return
    again = any(each.id == message.tool_call_id for each in waiting)
    why = "which is answered already" if again else "which the assistant message before it does not have"
    raise InvalidInput(f"The tool message {message.text[:40]!r} answers the call {message.tool_call_id!r}, {why}.")


def from_answer(answer: Answer, question: Sequence[Message]) -> AIMessage:
    """Convert an answer. Calls whose arguments are not a JSON object become `invalid_tool_calls`. `response_metadata`
    has the cost, if it is known."""
    made = [{"name": call.name, "arguments": call.arguments} for call in answer.calls]
    stem = digest([[_plain_json(message) for message in question], made])[:12] if made else ""
    calls: list[Called] = []
    invalid: list[Invalid] = []
    for n, call in enumerate(answer.calls, 1):
        id = f"call_{stem}_{n}"
        arguments: Json = call.arguments
        if isinstance(arguments, dict):
            calls.append(Called(name=call.name, args=cast(dict[str, Any], arguments), id=id, type="tool_call"))
        else:
            invalid.append(_invalid(call.name, str(arguments), id, "The arguments are not a JSON object."))
    text = answer.content if isinstance(answer.content, str) else json.dumps(answer.content, ensure_ascii=False)
    return _message(text, answer.model, answer.usage, tool_calls=calls, invalid_tool_calls=invalid)


def unreadable(bad: NotJson, tool: str) -> AIMessage:
    """Return the message for a call of this tool ("": any tool) that cannot be read."""
    invalid = _invalid(tool, bad.text, f"call_{digest(bad.text)[:12]}_1", bad.why)
    return _message("", bad.model, bad.usage, invalid_tool_calls=[invalid])


def chunk_of(generation: ChatGeneration) -> ChatGenerationChunk:
    """Return a whole answer as the only chunk of a stream."""
    message = cast(AIMessage, generation.message)
    chunk = AIMessageChunk(
        content=message.content,
        tool_calls=message.tool_calls,
        invalid_tool_calls=message.invalid_tool_calls,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )
    return ChatGenerationChunk(message=chunk)


def _invalid(name: str, text: str, id: str, error: str) -> Invalid:
    return Invalid(name=name, args=text, id=id, error=error, type="invalid_tool_call")


def _message(text: str, model: str, usage: Usage, **calls: Any) -> AIMessage:
    counted = UsageMetadata(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.tokens
    )
    return AIMessage(content=text, usage_metadata=counted, response_metadata=_metadata(model, usage), **calls)


def _metadata(model: str, usage: Usage) -> dict[str, Any]:
    """cost: US dollars."""
    return {"model_name": model} if usage.cost is None else {"model_name": model, "cost": usage.cost}


def _all(message: AIMessage) -> list[Called | Invalid]:
    return [*message.tool_calls, *message.invalid_tool_calls]


def _calls(message: AIMessage) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(call["name"] or "", cast(Json, call["args"] or {})) for call in _all(message))


def _plain(message: BaseMessage) -> Message:
    if isinstance(message, SystemMessage):
        return Message("system", _text(message))
    if isinstance(message, HumanMessage):
        return _human(message)
    role = _ROLES.get(message.role) if isinstance(message, ChatMessage) else None
    if role == "user":
        return _human(message)
    if role is None:
        kind = f"the role {message.role!r}" if isinstance(message, ChatMessage) else f"the type {message.type!r}"
        raise InvalidInput(f"A message with {kind} cannot be sent. Write system, human, ai or tool messages.")
    return Message(role, _text(message))  # pyright: ignore[reportArgumentType]


def _human(message: BaseMessage) -> Message:
    texts: list[str] = []
    images: list[Image] = []
    for block in message.content_blocks:
        kind = block["type"]
        if kind in ("text", "text-plain"):
            texts.append(str(block.get("text", "")))
        elif kind == "image":
            images.append(_image(cast(dict[str, Any], block)))
        else:
            raise _cannot(message, cast(dict[str, Any], block))
    return Message("user", "\n\n".join(texts) if len(texts) > 1 else "".join(texts), tuple(images))


def _text(message: BaseMessage) -> str:
    """Return the text of a message that may contain nothing else."""
    for block in message.content_blocks:
        if block["type"] not in ("text", "text-plain"):
            raise _cannot(message, cast(dict[str, Any], block))
    texts = [str(block.get("text", "")) for block in message.content_blocks]
    return "\n\n".join(texts) if len(texts) > 1 else "".join(texts)


def _image(block: dict[str, Any]) -> Image:
    given = block.get("base64")
    if not given:
        raise InvalidInput(
            "An image is given by its address, but Mulligan fetches nothing. Give the image itself, in base64."
        )
    try:
        data = base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("An image is not valid base64.") from None
    if not block.get("mime_type"):
        raise InvalidInput("An image lacks its mime_type, such as image/png.")
    return Image(block["mime_type"], data)


def _cannot(message: BaseMessage, block: dict[str, Any]) -> InvalidInput:
    value = block.get("value", {}) if block["type"] == "non_standard" else block
    where = "only human messages may contain images" if block["type"] == "image" else "only text and images are allowed"
    return InvalidInput(f"The {message.type} message contains {value.get('type', 'something')!r}, but {where}.")


def _plain_json(message: Message) -> Json:
    """Return a message as JSON, to tell conversations apart."""
    calls = [[call.name, call.arguments] for call in message.calls]
    return [message.role, message.text, [base64.b64encode(image.data).decode() for image in message.images], calls]
