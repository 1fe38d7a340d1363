"""Any LangChain chat model, with every call journalled and metered while a node of ours is at work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, message_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding

from mulligan.core.records import Json, Usage
from mulligan.langgraph.working import Work, here

VOLATILE = ("id", "response_metadata", "usage_metadata", "additional_kwargs")
"""What of a message differs from run to run without meaning anything."""


class Journalled(BaseChatModel):
    """The model `inner`; outside a node of ours it does what `inner` does. Raises what `inner` raises."""

    inner: BaseChatModel

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type  # pyright: ignore[reportPrivateUsage]

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return self.inner._identifying_params  # pyright: ignore[reportPrivateUsage]

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        bound = self.inner.bind_tools(tools, **kwargs)
        if not isinstance(bound, RunnableBinding):
            raise NotImplementedError(f"{type(self.inner).__name__}.bind_tools gives no RunnableBinding")
        return cast(Runnable[LanguageModelInput, AIMessage], self.bind(**bound.kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        work, inner = here.get(), self.inner

        async def ask() -> ChatResult:
            return await inner._agenerate(messages, stop, run_manager, **kwargs)  # pyright: ignore[reportPrivateUsage]

        return await ask() if work is None else await self._recorded(work, messages, stop, kwargs, ask)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """Called in a thread of its own while the node's loop runs: the journal is spoken to over there."""
        work, inner = here.get(), self.inner
        if work is None:
            return inner._generate(messages, stop, run_manager, **kwargs)  # pyright: ignore[reportPrivateUsage]

        async def ask() -> ChatResult:
            return await asyncio.to_thread(inner._generate, messages, stop, run_manager, **kwargs)  # pyright: ignore

        recorded = self._recorded(work, messages, stop, kwargs, ask)
        return asyncio.run_coroutine_threadsafe(recorded, work.loop).result()

    async def _recorded(
        self,
        work: Work,
        messages: list[BaseMessage],
        stop: list[str] | None,
        kwargs: Mapping[str, Any],
        ask: Callable[[], Awaitable[ChatResult]],
    ) -> ChatResult:
        request = {
            "model": self._llm_type,
            "messages": [plain(message) for message in messages],
            "stop": stop,
            "options": {name: value for name, value in kwargs.items() if _is_json(value)},
        }

        async def call() -> Json:
            (generation,) = (await ask()).generations
            return said(cast(AIMessage, generation.message))

        row = cast(dict[str, Any], await work.journal.step("model", request, call))
        work.meter.add(Usage(**row["usage"]))
        return ChatResult(generations=[ChatGeneration(message=message_of(row))])


def plain(message: BaseMessage) -> Json:
    """The message as JSON without what is made up anew each time: ids of messages and of tool calls."""
    data = message_to_dict(message)
    kept = {key: value for key, value in data["data"].items() if key not in VOLATILE and value not in (None, [], {})}
    if calls := kept.pop("tool_calls", None):
        kept["tool_calls"] = [{"name": call["name"], "args": call["args"]} for call in calls]
    for key in ("tool_call_id", "invalid_tool_calls"):
        kept.pop(key, None)
    return {"type": data["type"], **kept}


def said(message: AIMessage) -> Json:
    """What a model answered, as the journal keeps it. A cost that nobody named is unknown."""
    used = message.usage_metadata
    usage = {
        "input_tokens": used["input_tokens"] if used else 0,
        "output_tokens": used["output_tokens"] if used else 0,
        "calls": 1,
        "cost": message.response_metadata.get("cost"),
    }
    calls = [{"name": call["name"], "args": call["args"], "id": call["id"]} for call in message.tool_calls]
    return {"content": message.content, "calls": calls, "usage": usage}


def message_of(row: Mapping[str, Any]) -> AIMessage:
    calls = [{"type": "tool_call", **call} for call in row["calls"]]
    return AIMessage(content=row["content"], tool_calls=calls)


def journalled(model: BaseChatModel) -> BaseChatModel:
    return model if isinstance(model, Journalled) else Journalled(inner=model)


def _is_json(value: Any) -> bool:
    from mulligan.core.codec import json_text
    from mulligan.core.errors import InvalidInput

    try:
        json_text(value)
    except InvalidInput:
        return False
    return True
