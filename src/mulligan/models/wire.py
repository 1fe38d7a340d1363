"""Converts questions to requests of pydantic-ai, and its responses to replies. It is imported at the first call.

A question with a schema can be asked in three ways: `native` (the provider constrains the answer to the schema), `tool`
(the answer is the argument of a tool that must be called) and `prompted` (the instructions contain the schema).
Questions with tools offer them as they are. The calls of a conversation are numbered, because providers need ids.
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
from mulligan.models.tool_answers import arguments_of, completed_finish

Mode = Literal["native", "tool", "prompted"]
_ANSWER = "answer"
_NO_TAGS = ("\uffff", "\uffff")
_UNSAFE_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64  # characters of a tool's name that every provider allows


def build(provider: str, model: str, access: Access, settings: CallSettings) -> Model:
    """The model object of pydantic-ai."""
    sdk_provider = connection(provider, access, settings)
    if provider == "openai" and access.base_url:
        # `openai:` means Responses, but most servers that copy OpenAI's format have only Chat Completions.
        provider = "openai-chat"
    sdk_model = infer_model(f"{provider}:{model}", provider_factory=lambda _: sdk_provider)
    # Keep the text as it is: pydantic-ai would take tags in code for thoughts, and drop those that are not closed.
    sdk_model.profile["thinking_tags"] = _NO_TAGS
    return sdk_model


def connection(provider: str, access: Access, settings: CallSettings) -> Provider[Any]:
    """The connection to a provider.

    No socket is kept between calls: a model call takes seconds, and a socket that the server has closed would cost a
    retry. So nothing belongs to an event loop, or needs closing. Redirects are not followed, because they would carry
    the key elsewhere.
    """
    http = _http_library(provider)
    client = http.AsyncClient(
        timeout=http.Timeout(settings.timeout, connect=settings.connect),
        limits=http.Limits(max_keepalive_connections=0),
        headers={"User-Agent": get_user_agent()},
    )
    if provider == "openai" and access.base_url and find_spec("pydantic_ai.providers.openai_compatible"):
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        sdk_provider = OpenAICompatibleProvider(
            "openai", base_url=access.base_url, api_key=access.key, http_client=client
        )
    else:
        try:
            provider_class = infer_provider_class(provider)
        except ValueError:  # an older version
            raise InvalidInput(f"This version of pydantic-ai does not support the provider {provider}.") from None
        parameters = inspect.signature(provider_class.__init__).parameters
        options = {"api_key": access.key, "base_url": access.base_url, "http_client": client}
        sdk_provider = provider_class(
            **{name: value for name, value in options.items() if value is not None and name in parameters}
        )
    if hasattr(getattr(sdk_provider, "client", None), "max_retries"):
        sdk_provider.client.max_retries = 0  # only `provider_client` retries
    return sdk_provider


def _http_library(provider: str) -> Any:
    """httpx2, or httpx for older versions of the provider's SDK or of pydantic-ai, which accept only its clients."""
    package = PROVIDERS[provider].package if provider in PROVIDERS else None
    if package == "openai":
        import_parts([package], ["openai.types"])  # leaves out a quarter of its modules, which a request does not need
    sdk = import_module(package) if package else None
    if client := getattr(sdk, "DefaultAsyncHttpxClient", None):
        return import_module(client.__mro__[1].__module__)
    return import_module("httpx2" if hasattr(pydantic_ai.models, "create_async_httpx2_client") else "httpx")


def modes(profile: ModelProfile, schema: Json) -> list[Mode]:
    """The ways in which this model can be asked for JSON, best first.

    A tool needs a schema of an object. So does OpenAI, but not the servers that copy it; `anyOf` occurs only for models
    without tools.
    """
    rule = cast(dict[str, Json], schema)
    kind = rule.get("type")
    possible: list[Mode] = []
    if (kind == "object" or "anyOf" in rule) and profile.get("supports_json_schema_output", False):
        possible.append("native")
    if kind == "object" and profile.get("supports_tools", True):
        possible.append("tool")
    return [*possible, "prompted"]


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
    sampling: Sampling, model: Model, dropped: Collection[str], timeout: float, *, uses_max_tokens: bool
) -> ModelSettings:
    """The settings of one request: sampling and timeout.

    uses_max_tokens: send `max_tokens` under this name, not as OpenAI's `max_completion_tokens`, which servers that copy
    an older format would silently ignore.
    """
    max_tokens = sampling.max_tokens
    wanted: dict[str, Any] = {
        "temperature": None if _refuses_temperature(model.profile) else sampling.temperature,
        "max_tokens": None if uses_max_tokens else max_tokens,
        "extra_body": {"max_tokens": max_tokens} if uses_max_tokens and max_tokens is not None else None,
        "seed": sampling.seed,
        "stop_sequences": list(sampling.stop) or None,
        "timeout": timeout,
    }
    left_out = {*dropped, *getattr(model, "unsupported_settings", ())}  # pydantic-ai 2.31 lacks this attribute
    return cast(
        ModelSettings, {name: value for name, value in wanted.items() if value is not None and name not in left_out}
    )


def _refuses_temperature(profile: ModelProfile) -> bool:
    """Whether the model reasons, and so refuses a temperature."""
    known = cast(dict[str, Any], profile)
    if known.get("anthropic_disallows_sampling_settings"):
        return True
    if not known.get("openai_supports_reasoning"):
        return False
    efforts = known.get("openai_reasoning_efforts")
    if efforts is None:
        efforts = ["none"] if known.get("openai_supports_reasoning_effort_none", False) else []
    return "none" not in efforts or bool(known.get("thinking_enabled_by_default"))


def messages_of(question: Question) -> list[ModelMessage]:
    """The messages of a question in pydantic-ai's form.

    Raises `InvalidInput` for messages that no provider accepts: an image outside a user message, a result without a
    call.
    """
    sdk_messages: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    open_calls: list[ToolCallPart] = []  # their results follow in the same order
    call_count = 0
    for message in question.messages:
        if message.images and message.role != "user":
            raise InvalidInput(f"Only user messages can contain images, not the {message.role} message.")
        if message.role == "assistant":
            if parts:
                sdk_messages.append(ModelRequest(parts=parts))
            open_calls = [
                ToolCallPart(_safe_name(call.name), _safe_arguments(call.arguments), f"call_{number}")
                for number, call in enumerate(message.calls, call_count + 1)
            ]
            call_count += len(open_calls)
            text = [TextPart(message.text)] if message.text or not open_calls else []
            sdk_messages.append(ModelResponse(parts=[*text, *open_calls]))
            parts = []
        elif message.role == "tool":
            if not open_calls:
                raise InvalidInput("A tool message must follow the assistant message with its call.")
            call = open_calls.pop(0)
            result = message.text or "(nothing)"  # Anthropic refuses empty texts
            parts.append(ToolReturnPart(call.tool_name, result, call.tool_call_id))
        else:
            parts.append(SystemPromptPart(message.text) if message.role == "system" else UserPromptPart(_user(message)))
    return [*sdk_messages, ModelRequest(parts=parts)] if parts else sdk_messages


def _safe_name(name: str) -> str:
    """The name with only the characters that providers accept: for others they refuse the whole conversation."""
    return _UNSAFE_CHARACTER.sub("_", name)[:MAX_NAME] or "_"


def _safe_arguments(arguments: Json) -> Any:
    """The arguments unchanged, unless they are a text that SDKs parse as an object and then cannot send (nan, inf)."""
    if not isinstance(arguments, str):
        return arguments
    try:
        parsed: object = from_json(arguments)
    except ValueError:
        return arguments
    return {"refused": arguments} if isinstance(parsed, dict) else arguments


def _user(message: Message) -> str | Sequence[UserContent]:
    if not message.images:
        return message.text
    return [message.text, *(BinaryContent(image.data, media_type=image.media_type) for image in message.images)]


@dataclass(frozen=True)
class Reply:
    """A response.

    Attributes:
        text: the text of the answer; if it was given as a call of the tool `answer`, the arguments as JSON.
        thought: whether the response has thoughts.
        repairs: the faults in the JSON of the calls that were repaired.
    """

    text: str
    model: str | None
    finish: str | None
    calls: tuple[ToolCall, ...] = ()
    thought: bool = False
    repairs: tuple[str, ...] = ()


def _text(text: str) -> str:
    return cast(str, recordable(text))


def reply_of(response: ModelResponse, question: Question) -> Reply:
    if not question.tools:
        for call in response.tool_calls:
            if call.tool_name == _ANSWER:
                return Reply(call.args_as_json_str(), response.model_name, response.finish_reason)
    text = _text(response.text or "")
    sdk_calls = response.tool_calls if question.tools else []
    arguments = [arguments_of(call.args) for call in sdk_calls]
    calls = [ToolCall(_text(call.tool_name), reading.value) for call, reading in zip(sdk_calls, arguments, strict=True)]
    if calls and response.finish_reason == "length" and isinstance(cut := calls[-1].arguments, str):
        calls[-1] = completed_finish(f'{{"tool": {json.dumps(calls[-1].name)}, "arguments": {cut}') or calls[-1]
    thought = any(isinstance(part, ThinkingPart) for part in response.parts)
    repairs = tuple(dict.fromkeys(repair for reading in arguments for repair in reading.repairs))
    return Reply(text, response.model_name, response.finish_reason, tuple(calls), thought, repairs)
