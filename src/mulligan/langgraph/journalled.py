"""Wraps any LangChain chat model so that its calls inside a node of a Mulligan graph are journalled and metered.

The journal holds requests without the ids that differ in each run, and whole answers.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Any, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableParallel, RunnableSequence, RunnableWithFallbacks

from mulligan.langgraph.chat import chunk_of
from mulligan.langgraph.working import Work, here
from mulligan.plugins import InvalidInput, Json, Message, Usage
from mulligan.running import portal

_LEFT_OUT = object()
_SCALARS = frozenset({str, int, bool, type(None)})
_REQUEST_PARTS = ("content", "name", "tool_calls", "status", "role")
"""The attributes of a message that a model gets. It does not see ids, metadata and a provider's extras."""
_ANSWER_PARTS = ("tool_calls", "invalid_tool_calls", "usage_metadata", "response_metadata", "additional_kwargs", "name")

_KINDS: Mapping[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}


def as_messages(rendered: Sequence[Message]) -> list[BaseMessage]:
    """Return the messages of a rendered prompt as LangChain's."""
    return [_KINDS[message.role](message.text) for message in rendered]


def plain(message: BaseMessage) -> Json:
    """Return a message of a request as JSON without ids, which differ from run to run."""
    fields: dict[str, Json] = {"type": message.type}
    for name in _REQUEST_PARTS:
        value = getattr(message, name, None)
        if name == "tool_calls":
            value = [{"name": call["name"], "args": call["args"]} for call in value or ()]
        elif name == "content" and isinstance(value, list):
            value = [_without_id(block) for block in cast(list[Any], value)]
        if value not in (None, [], ""):
            fields[name] = jsonable(value)
    return fields


def answer_json(message: AIMessage) -> Json:
    """Return a model's answer as JSON: the whole message except its id, and its usage."""
    parts = {name: jsonable(getattr(message, name, None)) for name in _ANSWER_PARTS}
    kept = {name: value for name, value in parts.items() if value not in (None, [], {})}
    used = usage_of(message)
    usage = {name: getattr(used, name) for name in ("input_tokens", "output_tokens", "calls", "cost")}
    return {"message": {"content": jsonable(message.content), **kept}, "usage": usage}


def usage_of(message: AIMessage) -> Usage:
    """Return the usage of one call. Unknown tokens count as 0, and an unknown cost is None. An answer from LangChain's
    cache costs nothing."""
    used = cast(dict[str, Any], message.usage_metadata or {})
    cost = used.get("total_cost", message.response_metadata.get("cost"))
    known = float(cost) if isinstance(cost, int | float) and math.isfinite(cost) else None
    return Usage(used.get("input_tokens", 0), used.get("output_tokens", 0), 1, known)


def jsonable(value: Any) -> Json:
    """Return the value as strict JSON. What JSON cannot express is left out of lists and objects, or becomes None."""
    found = _json(value)
    return None if found is _LEFT_OUT else found


def _json(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, str | int):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else _LEFT_OUT
    if isinstance(value, (dict, Mapping)):
        table = cast(Mapping[Any, Any], value)
        return {str(key): found for key, item in table.items() if (found := _json(item)) is not _LEFT_OUT}
    if isinstance(value, list | tuple):
        return [item for item in map(_json, cast(list[Any], value)) if item is not _LEFT_OUT]
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return _LEFT_OUT


def _without_id(block: Any) -> Any:
    """Return a content block without ids: providers repeat those of tool calls there."""
    if not isinstance(block, Mapping):
        return block
    return {key: value for key, value in cast(Mapping[str, Any], block).items() if key not in ("id", "call_id")}


SHARED = ("callbacks", "tags", "metadata", "verbose", "name", "profile", "custom_get_token_ids")
"""The attributes of a chat model that its wrapper shares."""
_PARTS: Mapping[type[Any], Sequence[str]] = {
    RunnableWithFallbacks: ("runnable", "fallbacks"),  # first: it has every attribute of its runnable
    RunnableSequence: ("first", "middle", "last"),
    RunnableParallel: ("steps__",),
}


class Journalled(BaseChatModel):
    """Behaves as the model `inner`, and journals its calls inside a node of a Mulligan graph.

    It raises what `inner` raises. Cache, rate limit and streaming are those of `inner`: an answer from the journal does
    not count against them.
    """

    inner: BaseChatModel

    @property
    def _llm_type(self) -> str:
        return _private(self.inner)._llm_type

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return _private(self.inner)._identifying_params

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return _private(self.inner)._get_ls_params(stop=stop, **kwargs)

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("inner")
        if inner is None or name.startswith("__"):
            raise AttributeError(name)
        return getattr(inner, name)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return journalled(self.inner.bind_tools(tools, **kwargs))

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Runnable[LanguageModelInput, Any]:
        return journalled(cast(Any, self.inner).with_structured_output(schema, **kwargs))

    def _should_stream(self, *, async_api: bool, run_manager: Any = None, **kwargs: Any) -> bool:
        """Only a caller's own `stream` streams here. In other calls `inner` streams to its callbacks by itself."""
        return run_manager is None and _private(self.inner)._should_stream(async_api=async_api, **kwargs)

    def _generate_with_cache(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        """Inside a node this may run in the event loop's own thread, so the journalled call must not wait for it."""
        work, inner = here.get(), _private(self.inner)
        if work is None or work.entry is None:
            return _metered(work, inner._generate_with_cache(messages, stop, run_manager, **kwargs))

        async def ask() -> ChatResult:
            return inner._generate_with_cache(messages, stop, run_manager, **kwargs)

        return _identified(portal.finish(self._recorded(work, messages, stop, kwargs, ask)), run_manager)

    async def _agenerate_with_cache(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        work, inner = here.get(), _private(self.inner)
        if work is None or work.entry is None:
            return _metered(work, await inner._agenerate_with_cache(messages, stop, run_manager, **kwargs))

        async def ask() -> ChatResult:
            return await inner._agenerate_with_cache(messages, stop, run_manager, **kwargs)

        return _identified(await self._recorded(work, messages, stop, kwargs, ask), run_manager)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate_with_cache(messages, stop, run_manager, **kwargs)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return await self._agenerate_with_cache(messages, stop, run_manager, **kwargs)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        work, inner = here.get(), _private(self.inner)
        if work is None:
            yield from inner._stream(messages, stop, run_manager, **kwargs)
            return

        async def ask() -> ChatResult:
            whole: ChatGenerationChunk | None = None
            for chunk in inner._stream(messages, stop, run_manager, **kwargs):
                await _HandedOut(chunk)
                whole = chunk if whole is None else whole + chunk
            return _whole(whole)

        yield from _chunks(self._recorded(work, messages, stop, kwargs, ask))

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        work, inner = here.get(), _private(self.inner)
        if work is None:
            async for chunk in inner._astream(messages, stop, run_manager, **kwargs):
                yield chunk
            return
        chunks: asyncio.Queue[ChatGenerationChunk | None] = asyncio.Queue()

        async def ask() -> ChatResult:
            whole: ChatGenerationChunk | None = None
            async for chunk in inner._astream(messages, stop, run_manager, **kwargs):
                chunks.put_nowait(chunk)
                whole = chunk if whole is None else whole + chunk
            return _whole(whole)

        asking = asyncio.create_task(self._recorded(work, messages, stop, kwargs, ask))
        asking.add_done_callback(lambda _: chunks.put_nowait(None))
        handed = False
        try:
            while (chunk := await chunks.get()) is not None:
                handed = True
                yield chunk
            result = await asking
            if not handed:
                yield chunk_of(result.generations[0], last=False)
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await asking

    async def _recorded(
        self,
        work: Work,
        messages: list[BaseMessage],
        stop: list[str] | None,
        kwargs: Mapping[str, Any],
        ask: Callable[[], Awaitable[ChatResult]],
    ) -> ChatResult:
        """Return the answer: the new one, or the one in the journal."""
        live: list[ChatResult] = []
        if work.entry is None:
            return _metered(work, await ask())
        request = {
            "model": model_id(self.inner),
            "kind": self._llm_type,
            "messages": [plain(message) for message in messages],
            "stop": stop,
            "options": jsonable(kwargs),
        }

        async def call() -> Json:
            live.append(await ask())
            return answer_json(cast(AIMessage, live[0].generations[0].message))

        row = cast(dict[str, Any], await work.journal.step("model", request, call))
        work.meter.add(Usage(**row["usage"]))
        return live[0] if live else ChatResult(generations=[ChatGeneration(message=AIMessage(**row["message"]))])


def journalled(model: Any) -> Any:
    """Return the chat model with its calls journalled.

    In a runnable that was built from chat models (with tools, retries, fallbacks or parsers), each model is wrapped.
    Anything else is returned unchanged.
    """
    if isinstance(model, Journalled):
        return model
    if isinstance(model, BaseChatModel):
        shared = {name: value for name in SHARED if (value := getattr(model, name, None)) is not None}
        return Journalled(inner=model, cache=False, **shared)
    parts = {name: _each(part, journalled) for name, part in _parts(model).items()}
    return model.model_copy(update=parts) if parts else model


def models_in(model: Any) -> list[BaseChatModel]:
    """Return the chat models that `journalled` wrapped in this runnable."""
    if isinstance(model, Journalled):
        return [model.inner]
    found: list[BaseChatModel] = []
    for part in _parts(model).values():
        _each(part, lambda each: found.extend(models_in(each)))
    return found


def _parts(model: Any) -> dict[str, Any]:
    """Return the attributes of a runnable that hold other runnables."""
    for kind, names in _PARTS.items():
        if isinstance(model, kind):
            return {name: getattr(model, name) for name in names}
    return {"bound": model.bound} if hasattr(model, "bound") else {}


def _each(part: Any, do: Callable[[Any], Any]) -> Any:
    """Call the function with one runnable, or with each of a list or a table of them."""
    if isinstance(part, list | tuple):
        return [do(each) for each in cast(Sequence[Any], part)]
    if isinstance(part, Mapping):
        return {name: do(each) for name, each in cast(Mapping[str, Any], part).items()}
    return do(part)


def model_id(model: BaseChatModel) -> str:
    """Return the provider and name of a model, such as "openai:gpt-4.1-mini".

    For a model of Mulligan it is the whole id, with the hash of the weights if there are any.
    """
    kind = _private(model)._llm_type
    if ":" in kind:
        return kind
    params = _private(model)._get_ls_params()
    named = params.get("ls_model_name") or getattr(model, "model_name", None) or type(model).__name__
    return f"{params.get('ls_provider') or kind}:{named}"


def _metered(work: Work | None, result: ChatResult) -> ChatResult:
    if work is not None:
        work.meter.add(usage_of(cast(AIMessage, result.generations[0].message)))
    return result


def _identified(result: ChatResult, run_manager: Any) -> ChatResult:
    """Give a message from the journal, which has no id, the id of this run."""
    message = result.generations[0].message
    if message.id is None and run_manager is not None:
        message.id = f"lc_run--{run_manager.run_id}-0"
    return result


class _HandedOut:
    """Yields a chunk to `_chunks` when it is awaited inside the coroutine that `_chunks` runs."""

    def __init__(self, chunk: ChatGenerationChunk) -> None:
        self._chunk = chunk

    def __await__(self) -> Generator[Any, None, None]:
        yield self._chunk


def _chunks(work: Any) -> Iterator[ChatGenerationChunk]:
    """Yield the chunks that the coroutine hands out; if it hands out none, its result as one chunk."""
    context = copy_context()
    context.run(portal.blocking.set, True)
    handed = False
    try:
        while True:
            try:
                chunk = context.run(work.send, None)
            except StopIteration as end:
                if not handed:
                    yield chunk_of(end.value.generations[0], last=False)
                return
            handed = True
            yield chunk
    finally:
        context.run(work.close)


def _whole(chunk: ChatGenerationChunk | None) -> ChatResult:
    if chunk is None:
        raise InvalidInput("The model's stream ended without an answer.")
    message = message_chunk_to_message(chunk.message)
    return ChatResult(generations=[ChatGeneration(message=message, generation_info=chunk.generation_info)])


def _private(model: BaseChatModel) -> Any:
    """Return the model, typed so that its private methods can be called."""
    return model
