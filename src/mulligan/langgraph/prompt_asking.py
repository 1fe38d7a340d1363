"""Asks for JSON of a schema: a chat model by a tool that it has to call, anything else in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.loop import Meter
from mulligan.core.prompts import Prompt
from mulligan.core.protocols import Model
from mulligan.core.questions import Message
from mulligan.core.records import Json, Usage
from mulligan.langgraph.bridge import blocking, called
from mulligan.langgraph.chat import chat_model
from mulligan.langgraph.journalled import journalled
from mulligan.langgraph.messages import usage_of
from mulligan.langgraph.responder import said_back
from mulligan.langgraph.working import here
from mulligan.models.json_answers import parse

T = TypeVar("T")
TIMES = 2
"""How often one thing is asked: what is wrong with an answer is told with the next question."""
PROVIDERS = {"google_genai": "google", "mistralai": "mistral", "azure_openai": "azure", "bedrock_converse": "bedrock"}
"""LangChain's names for providers, where ours are others."""


class Asker:
    """conversation: what has a chat model as `.chat`, a chat model, or what has `reset`, `append_system_message` and
    `query(text)`, which gives (text, usage, correction). Raises `InvalidInput` for anything else."""

    def __init__(self, conversation: Any, meter: Meter) -> None:
        self._meter = meter
        chat: Any = conversation if isinstance(conversation, BaseChatModel) else getattr(conversation, "chat", None)
        self._chat = None if chat is None else journalled(chat)
        self._conversation: Any = conversation
        if chat is None and not hasattr(conversation, "query"):
            kind = type(conversation).__name__
            raise InvalidInput(f"A conversation needs a chat model as .chat, or query(text); {kind} has neither.")

    async def ask(
        self, prompt: Prompt, schema: Mapping[str, Json], take: Callable[[Json], T], values: Mapping[str, str]
    ) -> T:
        """What `take` makes of the answer; `BadAnswer` of it is told to the model, and raised the second time."""
        bound = self._bound(schema)
        told = {"tool": schema["title"], "schema": ""} if bound else {"tool": "", "schema": json.dumps(schema)}
        rendered = prompt.render(**values, **told)
        if self._chat is None:
            return await self._in_words(rendered, schema, take)
        messages = [_KINDS[message.role](message.text) for message in rendered]
        for times in range(1, TIMES + 1):
            model = bound or self._chat
            answer: AIMessage = model.invoke(messages) if blocking.get() else await model.ainvoke(messages)
            self._meter.add(usage_of(answer))
            try:
                return take(_given(answer, schema))
            except BadAnswer as error:
                if times == TIMES:
                    raise
                messages += said_back(answer, str(error))
        raise AssertionError("asked at least once")

    def _bound(self, schema: Mapping[str, Json]) -> Any:
        """The model that has to call a tool of this schema; None for one that knows no tools."""
        if self._chat is None:
            return None
        try:
            return self._chat.bind_tools([dict(schema)], tool_choice=schema["title"])
        except NotImplementedError:
            return None

    async def _in_words(self, told: tuple[Message, ...], schema: Mapping[str, Json], take: Callable[[Json], T]) -> T:
        talk, wrong = self._conversation, ""
        talk.reset()
        for message in told[:-1]:
            talk.append_system_message(message.text)
        for times in range(1, TIMES + 1):
            text = await self._queried(f"That cannot be used. {wrong}" if wrong else told[-1].text, told)
            try:
                return take(_read(text, schema))
            except BadAnswer as error:
                if times == TIMES:
                    raise
                wrong = str(error)
        raise AssertionError("asked at least once")

    async def _queried(self, text: str, told: tuple[Message, ...]) -> str:
        """Journalled while a node is at work."""

        async def ask() -> Json:
            said: Any = await called(self._conversation.query, text)
            return str(cast(Any, said)[0] if isinstance(said, tuple) else said)

        self._meter.add(Usage(calls=1, cost=None))
        work = here.get()
        if work is None:
            return await ask()
        work.meter.add(Usage(calls=1, cost=None))
        request = {"conversation": [message.text for message in told[:-1]], "asked": text}
        return await work.journal.step("model", request, ask)


_KINDS: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}


def conversation_of(
    factory: Callable[[], Any] | None, model: str | Model | BaseChatModel | None, provider: str | None, name: str | None
) -> Any:
    """What is asked: the factory's product, else the model, else the one that is called so. Without any: the model that
    MULLIGAN_MODEL or mulligan.toml names. A model of ours is asked at temperature 0. Raises `InvalidInput`; nothing is
    called."""
    if factory is not None:
        return factory()
    if isinstance(model, BaseChatModel):
        return model
    if model is not None:
        return chat_model(model, temperature=0.0)
    if name and provider:
        name = f"{PROVIDERS.get(provider, provider)}:{name}"
    if provider and not name:
        raise InvalidInput(f"Which model of {provider}? Name one: model_name=….")
    return chat_model(name, temperature=0.0)


def _given(answer: AIMessage, schema: Mapping[str, Json]) -> Json:
    if answer.tool_calls:
        return answer.tool_calls[0]["args"]
    if answer.invalid_tool_calls:
        raise BadAnswer(f"The arguments are no JSON: {answer.invalid_tool_calls[0].get('error') or 'they are cut off'}")
    return _read(str(answer.text), schema)


def _read(text: str, schema: Mapping[str, Json]) -> Json:
    try:
        return parse(text, cast(dict[str, Json], schema))
    except ValueError as error:
        raise BadAnswer(f"It must be one JSON object: {error}.") from None
