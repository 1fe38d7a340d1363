"""Converts questions to requests of pydantic-ai, and its responses to replies. Imported at the first call.

A question with a schema can be put in three ways: `native` (the provider constrains the answer to the schema), `tool`
(the answer is the argument of a tool that must be called) and `prompted` (the schema stands in the instructions).
A question with tools offers them as they are; the calls of a conversation are numbered, as providers want ids for them.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, cast

import pydantic_ai.models
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, get_user_agent, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_core import from_json

from mulligan.core.errors import InvalidInput
from mulligan.core.packages import import_parts
from mulligan.core.questions import Message, Question, Sampling, ToolCall
from mulligan.core.records import Json
from mulligan.models.json_answers import recordable
from mulligan.models.providers import PROVIDERS, Access
from mulligan.models.settings import CallSettings
from mulligan.models.tool_answers import arguments_of, mended

Mode = Literal["native", "tool", "prompted"]
_ANSWER = "answer"
_NO_TAGS = ("\uffff", "\uffff")
_ODD = re.compile(r"[^A-Za-z0-9_-]")
NAME = 64  # characters that every provider allows in a tool's name


def build(provider: str, model: str, access: Access, settings: CallSettings) -> Model:
    """pydantic-ai's model."""
    made = connection(provider, access, settings)
    if provider == "openai" and access.base_url:
        # Servers that speak OpenAI's format speak Chat Completions; few speak Responses, which `openai:` means.
        provider = "openai-chat"
    built = infer_model(f"{provider}:{model}", provider_factory=lambda _: made)
    # The text stays as the model wrote it: pydantic-ai takes tags in code for thoughts, and drops one that is open.
    built.profile["thinking_tags"] = _NO_TAGS
    return built


def connection(provider: str, access: Access, settings: CallSettings) -> Provider[Any]:
    """The way to a provider. No connection is kept between calls: a model call takes seconds, and one that the server
    dropped meanwhile would cost a retry; and so nothing belongs to an event loop or needs closing. Redirects are not
    followed: they would carry the key to wherever they point."""
    http = _http_library(provider)
    client = http.AsyncClient(
        timeout=http.Timeout(settings.timeout, connect=settings.connect),
        limits=http.Limits(max_keepalive_connections=0),
        headers={"User-Agent": get_user_agent()},
    )
    if provider == "openai" and access.base_url and find_spec("pydantic_ai.providers.openai_compatible"):
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        made = OpenAICompatibleProvider("openai", base_url=access.base_url, api_key=access.key, http_client=client)
    else:
        try:
            kind = infer_provider_class(provider)
        except ValueError:  # an older version
            raise InvalidInput(f"This version of pydantic-ai does not know the provider {provider}.") from None
        takes = inspect.signature(kind.__init__).parameters
        given = {"api_key": access.key, "base_url": access.base_url, "http_client": client}
        made = kind(**{name: value for name, value in given.items() if value is not None and name in takes})
    if hasattr(getattr(made, "client", None), "max_retries"):
        made.client.max_retries = 0  # the SDK's own: we alone retry
    return made


def _http_library(provider: str) -> Any:
    """httpx2, or httpx where older versions of the provider's SDK, or else of pydantic-ai, take its clients alone."""
    package = PROVIDERS[provider].package if provider in PROVIDERS else None
    if package == "openai":
        import_parts([package], ["openai.types"])  # a quarter of its modules, of which a request needs none
    sdk = import_module(package) if package else None
    if client := getattr(sdk, "DefaultAsyncHttpxClient", None):
        return import_module(client.__mro__[1].__module__)
    return import_module("httpx2" if hasattr(pydantic_ai.models, "create_async_httpx2_client") else "httpx")


def modes(profile: ModelProfile, schema: Json) -> list[Mode]:
    """The ways in which this model can be asked for JSON, best first. A tool needs an object outermost; so does OpenAI,
    but not the servers that copy it, and `anyOf` is asked of those that know no tools."""
    given = cast(dict[str, Json], schema)
    kind = given.get("type")
    found: list[Mode] = []
    if (kind == "object" or "anyOf" in given) and profile.get("supports_json_schema_output", False):
        found.append("native")
    if kind == "object" and profile.get("supports_tools", True):
        found.append("tool")
    return [*found, "prompted"]


def parameters(question: Question, mode: Mode) -> ModelRequestParameters:
    schema = question.schema
    if question.tools:
        tools = [
            ToolDefinition(name=tool.name, parameters_json_schema=tool.parameters, description=tool.description)
            for tool in question.tools
        ]
        return ModelRequestParameters(function_tools=tools)
    if schema is None:
        return ModelRequestParameters()
    if mode == "tool":
        tool = ToolDefinition(
            name=_ANSWER, parameters_json_schema=schema, description="Give your answer.", kind="output"
        )
        return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    return ModelRequestParameters(
        output_mode=mode, output_object=OutputObjectDefinition(json_schema=schema, name=_ANSWER)
    )


def model_settings(
    sampling: Sampling, model: Model, dropped: Collection[str], timeout: float, *, old_name: bool
) -> ModelSettings:
    """The settings of one request: sampling and timeout.

    old_name: `max_tokens` goes out under that name, not as OpenAI's `max_completion_tokens`, which a server that
    copies an older format would pass over without a word.
    """
    most = sampling.max_tokens
    wanted: dict[str, Any] = {
        "temperature": None if _refuses_temperature(model.profile) else sampling.temperature,
        "max_tokens": None if old_name else most,
        "extra_body": {"max_tokens": most} if old_name and most is not None else None,
        "seed": sampling.seed,
        "stop_sequences": list(sampling.stop) or None,
        "timeout": timeout,
    }
    left_out = {*dropped, *getattr(model, "unsupported_settings", ())}  # pydantic-ai 2.31 has none
    return cast(
        ModelSettings, {name: value for name, value in wanted.items() if value is not None and name not in left_out}
    )


def _refuses_temperature(profile: ModelProfile) -> bool:
    """A reasoning model, which refuses a temperature."""
    known = cast(dict[str, Any], profile)
    if known.get("anthropic_disallows_sampling_settings"):
        return True
    if not known.get("openai_supports_reasoning"):
        return False
    efforts = known.get("openai_reasoning_efforts")
    may_rest = "none" in efforts if efforts is not None else known.get("openai_supports_reasoning_effort_none", False)
    return not may_rest or bool(known.get("thinking_enabled_by_default"))


def messages_of(question: Question) -> list[ModelMessage]:
    """Raises `InvalidInput` for what no provider takes: an image outside a user message, a result without a call."""
    said: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    waiting: list[ToolCallPart] = []  # for their results, which come in the order of the calls
    made = 0
    for message in question.messages:
        if message.images and message.role != "user":
            raise InvalidInput(f"Only user messages can contain images, not the {message.role} message.")
        if message.role == "assistant":
            if parts:
                said.append(ModelRequest(parts=parts))
            waiting = [
                ToolCallPart(_safe_name(call.name), _safe_arguments(call.arguments), f"call_{number}")
                for number, call in enumerate(message.calls, made + 1)
            ]
            made += len(waiting)
            text = [TextPart(message.text)] if message.text or not waiting else []
            said.append(ModelResponse(parts=[*text, *waiting]))
            parts = []
        elif message.role == "tool":
            if not waiting:
                raise InvalidInput("A tool message must follow the assistant message with its call.")
            call = waiting.pop(0)
            result = message.text or "(nothing)"  # Anthropic refuses empty texts
            parts.append(ToolReturnPart(call.tool_name, result, call.tool_call_id))
        else:
            parts.append(SystemPromptPart(message.text) if message.role == "system" else UserPromptPart(_user(message)))
    return [*said, ModelRequest(parts=parts)] if parts else said


def _safe_name(name: str) -> str:
    """The name in characters that a provider takes: it refuses the whole conversation for others."""
    return _ODD.sub("_", name)[:NAME] or "_"


def _safe_arguments(arguments: Json) -> Any:
    """The arguments as they were made, but no text that SDKs take for an object (nan and inf in it) and cannot send."""
    if not isinstance(arguments, str):
        return arguments
    try:
        taken: object = from_json(arguments)
    except ValueError:
        return arguments
    return {"refused": arguments} if isinstance(taken, dict) else arguments


def _user(message: Message) -> str | Sequence[UserContent]:
    if not message.images:
        return message.text
    return [message.text, *(BinaryContent(image.data, media_type=image.media_type) for image in message.images)]


@dataclass(frozen=True)
class Reply:
    """A response: `text` is the answer's text or, for the answering tool, its arguments as JSON. `repairs`: faults in
    the JSON of the calls that were repaired."""

    text: str
    model: str | None
    finish: str | None
    calls: tuple[ToolCall, ...] = ()
    thought: bool = False
    repairs: tuple[str, ...] = ()


def _text(given: str) -> str:
    return cast(str, recordable(given))


def reply_of(response: ModelResponse, question: Question) -> Reply:
    if not question.tools:
        for call in response.tool_calls:
            if call.tool_name == _ANSWER:
                return Reply(call.args_as_json_str(), response.model_name, response.finish_reason)
    text = _text(response.text or "")
    made = response.tool_calls if question.tools else []
    read = [arguments_of(call.args) for call in made]
    calls = [ToolCall(_text(call.tool_name), each.value) for call, each in zip(made, read, strict=True)]
    if calls and response.finish_reason == "length" and isinstance(cut := calls[-1].arguments, str):
        calls[-1] = mended(f'{{"tool": {json.dumps(calls[-1].name)}, "arguments": {cut}') or calls[-1]
    thought = any(isinstance(part, ThinkingPart) for part in response.parts)
    repairs = tuple(dict.fromkeys(repair for each in read for repair in each.repairs))
    return Reply(text, response.model_name, response.finish_reason, tuple(calls), thought, repairs)
