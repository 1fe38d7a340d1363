"""`chat_model` gives any model of Mulligan as a LangChain chat model, such as `chat_model("openai:gpt-4o-mini")`.

It needs none of LangChain's provider packages. Inside a node of a Mulligan graph, wrapped by `journalled`, each call is
one step of the journal.

Mulligan's calls have no ids: tool messages follow the calls in their order. So this module makes ids, always the same
for the same conversation, and puts tool messages in the order of the calls.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
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
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr, SecretStr

from mulligan.plugins import (
    Answer,
    BadAnswer,
    Image,
    InvalidInput,
    Json,
    Message,
    Model,
    Question,
    Sampling,
    Tool,
    ToolCall,
    UnknownName,
    Usage,
    object_schema,
)
from mulligan.running import (
    Unreadable,
    asked_twice,
    call_of,
    configured_model,
    digest,
    in_json,
    portal,
)

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
    has the cost, if it is known, and the faults in JSON that were repaired, if any."""
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
    message = _message(text, answer.model, answer.usage, tool_calls=calls, invalid_tool_calls=invalid)
    if answer.repairs:
        message.response_metadata["repairs"] = [*answer.repairs]
    return message


def unreadable(bad: Unreadable, tool: str) -> AIMessage:
    """Return the message for a call of this tool ("": any tool) that cannot be read."""
    invalid = _invalid(tool, bad.text, f"call_{digest(bad.text)[:12]}_1", bad.why)
    return _message("", bad.model, bad.usage, invalid_tool_calls=[invalid])


def chunk_of(generation: ChatGeneration, *, last: bool = True) -> ChatGenerationChunk:
    """Return a whole answer as a chunk. last: whether it ends the stream; otherwise LangChain adds a last one."""
    message = cast(AIMessage, generation.message)
    chunk = AIMessageChunk(
        content=message.content,
        tool_calls=message.tool_calls,
        invalid_tool_calls=message.invalid_tool_calls,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        additional_kwargs=message.additional_kwargs,
        chunk_position="last" if last else None,
    )
    return ChatGenerationChunk(message=chunk)


def _invalid(name: str, text: str, id: str, error: str) -> Invalid:
    return Invalid(name=name, args=text, id=id, error=error, type="invalid_tool_call")


def _message(text: str, model: str, usage: Usage, **calls: Any) -> AIMessage:
    counted = UsageMetadata(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, total_tokens=usage.tokens
    )
    cost = {} if usage.cost is None else {"cost": usage.cost}
    return AIMessage(content=text, usage_metadata=counted, response_metadata={"model_name": model, **cost}, **calls)


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
        raise InvalidInput(f"A message with {kind} cannot be sent. Use system, human, ai or tool messages.")
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
            "An image was passed as a URL, but Mulligan does not fetch images. Pass the image itself, in base64."
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


ANY = "any"
REPLY = Tool(
    "reply",
    "Say something to the user, such as the answer, instead of calling another tool.",
    object_schema(text={"type": "string", "description": "What you say."}),
)
"""An extra tool for models that can only answer with a call."""


def tool_schemas(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return pydantic classes, functions, LangChain's tools and schemas as JSON that can be bound to a model.

    Raises `InvalidInput` for tools that run at a provider, which Mulligan does not support.
    """
    found: list[dict[str, Any]] = []
    for tool in tools:
        try:
            schema = convert_to_openai_tool(tool)
        except ValueError as error:
            raise InvalidInput(f"{tool!r} is not a tool: {str(error).splitlines()[0]}.") from None
        if schema.get("type") != "function" or "function" not in schema:
            raise InvalidInput(
                f"The tool {schema.get('type')!r} runs on its provider's servers, so it cannot be used here. Use "
                "functions, pydantic classes, LangChain's tools or JSON schemas."
            )
        found.append(schema)
    return found


def chosen_tool(choice: Any, tools: Sequence[Mapping[str, Any]]) -> str | None:
    """Return `tool_choice` as it is bound: "any", "none" or the name of a tool; None if the model may choose.

    Raises `UnknownName`.
    """
    names = [tool["function"]["name"] for tool in tools]
    match choice:
        case None | "auto" | False:
            return None
        case "any" | "required" | True:
            return ANY
        case {"function": {"name": str(name)}} | {"name": str(name)}:
            choice = name
        case {"type": str(kind)}:
            return chosen_tool(kind, tools)
        case _:
            pass
    if choice == "none" or choice in names:
        return choice
    raise UnknownName("tool", str(choice), names)


def tools_of(bound: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Return the result of `tool_schemas` as `Tool`s. Raises `InvalidInput` for two tools with the same name."""
    empty: Json = {"type": "object", "properties": {}}
    names = [each["function"]["name"] for each in bound]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"Two tools have the name {', '.join(twice)}. Give them different names.")
    return tuple(
        Tool(function["name"], function.get("description") or "", function.get("parameters") or empty)
        for function in (each["function"] for each in bound)
    )


@dataclass(frozen=True)
class ToolRequest:
    """One question to a model. choice: a result of `chosen_tool`. parallel: whether an answer may have many calls."""

    model: Model
    sampling: Sampling
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    choice: str | None = None
    parallel: bool = True

    async def answer(self) -> Answer:
        """Return the model's answer. Raises what the model raises, and `Unreadable` for a call that cannot be read and
        for a second answer of thoughts alone.

        Without tools, earlier calls become text: some providers refuse calls of tools that are not bound.
        """
        if not self.tools or self.choice == "none":
            asked = in_json(Question(self.messages))
            return await asked_twice(lambda question: self.model.ask(question, self.sampling), asked)
        if self.choice is not None:
            return await self._as_json(self.required)
        if not await asyncio.to_thread(getattr, self.model, "calls_tools", True):  # it may have to load its client
            reply = _reply(self.tools)
            return _replied(await self._as_json([*self.tools, reply]), reply)
        answer = await self.model.ask(Question(self.messages, tools=self.tools), self.sampling)
        return answer if self.parallel else replace(answer, calls=answer.calls[:1])

    @property
    def required(self) -> list[Tool]:
        """The tools of which one must be called."""
        return [tool for tool in self.tools if self.choice in (ANY, tool.name)]

    async def _as_json(self, tools: Sequence[Tool]) -> Answer:
        """Request a call of one of these tools as JSON of a schema, which local models and most providers enforce."""
        answer = await self.model.ask(in_json(Question(self.messages, tools=tuple(tools))), self.sampling)
        return replace(answer, content="", calls=(_call_in(answer, tools),))


def _call_in(answer: Answer, tools: Sequence[Tool]) -> ToolCall:
    """Return the call in an answer. If there is only one tool, an answer may hold its arguments alone.

    Raises `Unreadable` that tells what is wrong.
    """
    content: Json = answer.content
    given = cast(dict[str, Json], content) if isinstance(content, dict) else {}
    if len(tools) == 1 and "tool" not in given and not ("name" in given and "arguments" in given):
        return ToolCall(tools[0].name, given)
    text = json.dumps(given, ensure_ascii=False)
    try:
        call = call_of(text)
        if call.name not in [tool.name for tool in tools]:
            raise ValueError(f"there is no tool called {call.name!r}")
    except ValueError as error:
        raise Unreadable(str(error), text=text, model=answer.model, usage=answer.usage) from None
    return call


def _reply(tools: Sequence[Tool]) -> Tool:
    taken = {tool.name for tool in tools}
    return replace(REPLY, name=next(name for name in (REPLY.name, "say", "say_to_user") if name not in taken))


def _replied(answer: Answer, reply: Tool) -> Answer:
    """Return the answer, with a call of `reply` turned into its text."""
    (call,) = answer.calls
    if call.name != reply.name:
        return answer
    return replace(answer, content=str(cast(dict[str, Json], call.arguments).get("text", "")), calls=())


NO_MODEL = (
    'No model was named. Pass one, such as "openai:gpt-6-luna" or "local", set MULLIGAN_MODEL, or write model '
    '= "…" in mulligan.toml. For the names, see: mulligan docs models'
)
_SAMPLING = ("temperature", "max_tokens", "seed")
_OPTIONS = ("model", *_SAMPLING, "tools", "tool_choice", "parallel_tool_calls", "strict", "stream")


class ChatMulligan(BaseChatModel):
    """A LangChain chat model over a model of Mulligan. Make it with `chat_model`, which checks the arguments at once.

    Attributes that are None have the value of the role, or else the provider's default.

    Attributes:
        model: A name as in docs/models.md, or a role of mulligan.toml; None: `MULLIGAN_MODEL`, else mulligan.toml.
        base_url, timeout, max_retries: They replace the values of [calls] in mulligan.toml; timeout is in seconds per
            attempt.
        api_key: Kept in this object and sent to the provider only.

    Raises:
        ModelError: The model fails.
        BadAnswer: The model thought twice and gave no answer.
        InvalidInput: A message or an option is not valid.
    """

    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: list[str] | None = None
    base_url: str | None = None
    timeout: float | None = None
    max_retries: int | None = None
    api_key: SecretStr | None = None
    _opened: dict[str | None, tuple[Model, Sampling]] = PrivateAttr(default_factory=dict[str | None, Any])

    @property
    def _llm_type(self) -> str:
        """The model's id, which a journal keeps, the same before and after its first call; or its name, if it cannot
        be opened."""
        with suppress(InvalidInput):
            return self.open()[0].id
        return self.model or "mulligan"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        names = ("model", *_SAMPLING, "stop", "base_url")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        provider, _, name = cast(str, kwargs.get("model") or self.model or "").partition(":")
        params = super()._get_ls_params(stop, **kwargs)
        return {**params, "ls_provider": provider if name else "mulligan", "ls_model_name": name or provider}

    def open(self, name: str | None = None) -> tuple[Model, Sampling]:
        """Return the model, opened once, and its sampling. Nothing is called. Raises `InvalidInput`."""
        name = name or self.model
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    def _open(self, name: str | None) -> tuple[Model, Sampling]:
        calls = {"base_url": self.base_url, "timeout": self.timeout}
        if self.max_retries is not None:
            calls["attempts"] = self.max_retries + 1
        key = self.api_key.get_secret_value() if self.api_key else None
        given = {setting: value for setting, value in calls.items() if value is not None}
        if (found := configured_model(name, calls=given, key=key)) is None:
            raise InvalidInput(NO_MODEL)
        return found

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools to the model. Raises `InvalidInput` and `UnknownName`.

        A required call is requested as JSON of the tools' schemas, which local models and most providers enforce. If
        the model returns something else, the message has `invalid_tool_calls`.

        Args:
            tools: Pydantic classes, functions, LangChain's tools, schemas.
            tool_choice: "auto", "none", "any" (or "required"), or the name of the tool that must be called.
        """
        given = tool_schemas(tools)
        choice = chosen_tool(tool_choice, given)
        return self.bind(tools=given, **({} if choice is None else {"tool_choice": choice}), **kwargs)

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **kwargs: Any) -> Runnable[Any, Any]:
        """Like LangChain's. The result raises `BadAnswer` if the model's answer does not fit the schema."""
        parsed = super().with_structured_output(schema, include_raw=include_raw, **kwargs)
        return parsed if include_raw else parsed | _parsed

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        _check(kwargs)
        name = kwargs.get("model") or self.model
        opened = self._opened.get(name) or await asyncio.to_thread(self.open, name)
        bound = tool_schemas(cast(list[Any], kwargs.get("tools") or []))
        request = ToolRequest(
            opened[0],
            self._sampling(opened[1], stop, kwargs),
            to_messages(messages),
            tools_of(bound),
            chosen_tool(kwargs.get("tool_choice"), bound) if bound else None,
            parallel=kwargs.get("parallel_tool_calls") is not False,
        )
        try:
            answer = await request.answer()
        except Unreadable as bad:
            if not bound:
                raise
            message = unreadable(bad, request.required[0].name if len(request.required) == 1 else "")
        else:
            message = from_answer(answer, request.messages)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> ChatResult:
        return portal.run_coroutine(self._agenerate(messages, *given, **named))

    async def _astream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> AsyncIterator[Any]:
        """Yield the whole answer as one chunk: a call that can be resumed is not given out in pieces."""
        yield chunk_of((await self._agenerate(messages, *given, **named)).generations[0])

    def _stream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> Iterator[Any]:
        yield chunk_of(self._generate(messages, *given, **named).generations[0])

    def _sampling(self, of_role: Sampling, stop: Sequence[str] | None, options: Mapping[str, Any]) -> Sampling:
        """Return the sampling: the call's options first, then this object's, then the role's."""

        def first(name: str) -> Any:
            values = (options.get(name), getattr(self, name), getattr(of_role, name))
            return next((value for value in values if value is not None), None)

        return Sampling(first("temperature"), first("max_tokens"), first("seed"), tuple(stop or self.stop or ()))


def chat_model(
    model: str | Model | None = None,
    *,
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    stop: Sequence[str] | None = None,
    base_url: str | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    api_key: str | None = None,
) -> ChatMulligan:
    """Return a LangChain chat model for one of Mulligan's models: a name, a role in mulligan.toml, or an object.

    Nothing is called. For the arguments, see `ChatMulligan`.

    Raises:
        InvalidInput: the model is missing or unknown.
    """
    made = ChatMulligan(
        model=model.name if isinstance(model, Model) else model,
        temperature=temperature,
        max_tokens=max_tokens,
        seed=seed,
        stop=None if stop is None else list(stop),
        base_url=base_url,
        timeout=timeout,
        max_retries=max_retries,
        api_key=None if api_key is None else SecretStr(api_key),
    )
    if isinstance(model, Model):
        made._opened[made.model] = (model, Sampling())  # pyright: ignore[reportPrivateUsage]
    made.open()
    return made


def _check(options: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for unknown options. `strict` and `stream` are accepted and ignored."""
    for name in options:
        if name not in _OPTIONS:
            raise InvalidInput(f"Mulligan models have no option {name!r}. Available: {', '.join(_OPTIONS)}.")


def _parsed(parsed: Json) -> Json:
    if parsed is None:
        raise BadAnswer("The model's answer does not fit the schema. Raise max_tokens, or use a larger model.")
    return parsed
