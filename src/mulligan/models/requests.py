"""A model call as canonical JSON: what the journal keeps, what recordings are found by. No headers, keys or times."""

from __future__ import annotations

from base64 import b64encode
from typing import cast

from mulligan.core.journal import digest
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Json
from mulligan.core.secrets import mask_json


def request_of(model: str, question: Question, sampling: Sampling) -> Json:
    """{model, messages, schema, sampling}; images whole, in base64."""
    return {
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


def asked(request: Json) -> Json:
    """What was asked, whoever was asked: the request without the model's id."""
    return {name: value for name, value in cast(dict[str, Json], request).items() if name != "model"}


def hash_of(request: Json) -> str:
    """The sha256 by which a recording answers. Secrets count as masked, as they are in an export."""
    return digest(mask_json(asked(request)))


def _message(message: Message) -> Json:
    said: dict[str, Json] = {"role": message.role, "text": message.text}
    if message.images:
        said["images"] = [
            {"media_type": image.media_type, "data": b64encode(image.data).decode()} for image in message.images
        ]
    return said
