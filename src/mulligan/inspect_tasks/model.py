"""Makes the model of an Inspect evaluation a Mulligan model. Inspect handles provider, retries, cache and limits."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from importlib import import_module
from typing import Any

from mulligan.plugins import Answer, InvalidInput, Message, ModelError, Question, Sampling, Usage
from mulligan.running import answer_in, in_json


def part(name: str = "") -> Any:
    """The module `inspect_ai`, or a submodule. Raises `InvalidInput` if it is not installed."""
    try:
        return import_module(f"inspect_ai.{name}" if name else "inspect_ai")
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"This needs the package inspect-ai ({error}): pip install 'mulligan[inspect]', "
            'or, in a checkout, pip install -c constraints.txt -e ".[inspect]".'
        ) from error


_SCHEMA_REQUEST = "\n\nAnswer with JSON that fits this schema, and nothing else:\n"


class InspectModel:
    """A model of Inspect.

    Tools are described in the prompt and called in JSON, as for any model without tool calls. Usage is what Inspect
    counts. The cost is None if Inspect does not report it.

    Args:
        role: one of Inspect's model roles. None: the evaluation's own model.

    Attributes:
        name: the model's name in a recipe.
        id: Inspect's name of the model, which is recorded.
    """

    def __init__(self, role: str | None = None) -> None:
        get_model: Any = part("model").get_model
        self._model: Any = get_model(role=role) if role else get_model()
        self.name = f"inspect-{role or 'model'}"
        self.id = f"inspect:{self._model}"

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        json_question = in_json(question)
        api = part("model")
        options = {
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            "seed": sampling.seed,
            "stop_seqs": [stop for stop in sampling.stop if stop.strip()] or None,  # Anthropic refuses a bare line end
        }
        messages = _with_schema(json_question)
        try:
            config = api.GenerateConfig(**{name: value for name, value in options.items() if value is not None})
            output: Any = await self._model.generate([_message(message) for message in messages], config=config)
        except Exception as error:
            if type(error).__name__ == "LimitExceededError":  # Inspect ends the sample with it
                raise
            raise ModelError(f"{self.id} failed: {type(error).__name__}: {error}") from error
        if output.error:
            raise ModelError(f"{self.id} failed: {output.error}")
        text, usage = str(output.completion), _usage(output.usage)
        cut = "the answer was cut off: raise max_tokens" if output.stop_reason in ("max_tokens", "model_length") else ""
        original = replace(json_question, tools=question.tools)
        return answer_in(text, original, model=self.id, usage=usage, cut=cut, stop=sampling.stop)


def _with_schema(question: Question) -> tuple[Message, ...]:
    """The messages, with the schema in the last one if there is a schema."""
    if question.schema is None:
        return question.messages
    *before, last = question.messages
    text = last.text + _SCHEMA_REQUEST + json.dumps(question.schema, ensure_ascii=False)
    return (*before, Message(last.role, text, last.images))


def _message(message: Message) -> Any:
    api = part("model")
    kinds = {"system": api.ChatMessageSystem, "assistant": api.ChatMessageAssistant}
    content: Any = message.text
    if message.images:
        urls = [f"data:{i.media_type};base64,{base64.b64encode(i.data).decode()}" for i in message.images]
        content = [api.ContentText(text=message.text), *(api.ContentImage(image=url) for url in urls)]
    return kinds.get(message.role, api.ChatMessageUser)(content=content)


def _usage(usage: Any) -> Usage:
    """Inspect's usage of one call, in which cached tokens are counted separately."""
    if usage is None:
        return Usage(calls=1, cost=None)
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return Usage(usage.input_tokens + cached, usage.output_tokens, 1, getattr(usage, "total_cost", None))
