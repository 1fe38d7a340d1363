"""Model calls as canonical JSON, for the journal and to find recordings. It has no headers, keys or times."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, cast

from mulligan.core.codec import digest
from mulligan.core.questions import Answer, Message, Question, Sampling, Tool, ToolCall
from mulligan.core.records import Json, Usage
from mulligan.text.secrets import each_text, mask_json, one_mask


def request_of(model: str, question: Question, sampling: Sampling) -> Json:
    """{model, messages, schema, sampling}, with whole images in base64; tools and calls only if there are any."""
    request: dict[str, Json] = {
        "model": model,
        "messages": [_message(message) for message in question.messages],
        "schema": question.schema,
        "sampling": {
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            "seed": sampling.seed,
            "stop": list(sampling.stop),
        },
    }
    if question.tools:
        request["tools"] = [_tool(tool) for tool in question.tools]
    return request


def result_of(answer: Answer) -> dict[str, Json]:
    """{content, model, usage}, and calls, raw and repairs if there are any. `answer_of` reads it."""
    row: dict[str, Json] = {"content": answer.content, "model": answer.model, "usage": asdict(answer.usage)}
    row |= {"raw": answer.raw} if answer.raw else {}
    row |= {"repairs": [*answer.repairs]} if answer.repairs else {}
    return row | _calls(answer.calls)


def answer_of(row: dict[str, Any]) -> Answer:
    """The answer in a row that `result_of` made."""
    calls = tuple(ToolCall(call["name"], call["arguments"]) for call in row.get("calls", ()))
    raw, repairs = row.get("raw", ""), tuple(row.get("repairs", ()))
    return Answer(row["content"], row["model"], Usage(**row["usage"]), calls, raw, repairs)


def without_model(request: Json) -> Json:
    """The request without the model's id."""
    return {name: value for name, value in cast(dict[str, Json], request).items() if name != "model"}


def hash_of(request: Json) -> str:
    """The sha256 by which a recorded answer is found.

    Secrets are masked first, as in an export. All masks count as equal, because older exports do not tell which secret
    a mask stands for.
    """
    return digest(each_text(mask_json(without_model(request)), lambda text, _: one_mask(text)))


def _message(message: Message) -> Json:
    row: dict[str, Json] = {"role": message.role, "text": message.text}
    if message.images:
        row["images"] = [
            {"media_type": image.media_type, "data": b64encode(image.data).decode()} for image in message.images
        ]
    return row | _calls(message.calls)


def _tool(tool: Tool) -> Json:
    """The part of a tool that the model sees."""
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _calls(calls: Iterable[ToolCall]) -> dict[str, Json]:
    rows: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in calls]
    return {"calls": rows} if rows else {}
