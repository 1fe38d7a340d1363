"""A chat model that answers in the fields of a schema: by a tool call, or in JSON where it knows no tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableBinding
from pydantic import BaseModel, ValidationError

from mulligan.core.errors import BadAnswer
from mulligan.core.prompts import Prompt
from mulligan.langgraph.bridge import blocking
from mulligan.langgraph.journalled import journalled
from mulligan.langgraph.responder import said_back
from mulligan.langgraph.schemas import ANSWERS, score_of
from mulligan.langgraph.state import Reading, text_of
from mulligan.langgraph.working import here
from mulligan.models.json_answers import parse
from mulligan.text.formatting import labelled

TIMES = 3
"""How often a model is asked for an answer that fits; what is wrong with one is told with the next question."""


class Asking:
    """Asks for the fields of `schema`, with the prompt and what the bank recalled before the messages.

    Given the messages since the question, it gives the model's message; it can be called from both kinds of code.
    Raises `BadAnswer` after the third answer that does not fit, and what the model raises.
    """

    both_ways = True

    def __init__(self, model: Any, schema: type[BaseModel], prompt: Prompt, instructions: str) -> None:
        self._schema, self._prompt, self._instructions = schema, prompt, instructions
        self._scores = "score" in schema.model_fields
        try:
            bound = model.bind_tools([schema], tool_choice=schema.__name__)
            self._tools = True
        except NotImplementedError:
            bound, self._tools = model, False
        self.model: Any = journalled(bound)
        self._asked, self._options = self.model, dict[str, Any]()
        made: object = self.model
        if isinstance(made, RunnableBinding) and not cast(Any, made).config:  # asked without its detour
            self._asked, self._options = cast(Any, made).bound, cast(Any, made).kwargs
        self._systems: dict[str, list[BaseMessage]] = {}

    async def __call__(self, messages: Sequence[BaseMessage]) -> AIMessage:
        work = here.get()
        recall = work.episode.recall if work else None
        told = [*self._system(recall.formatted_prompt if recall else ""), *self._spoken(messages)]
        wrong = ""
        for _ in range(TIMES):
            message = await self._answer(told)
            if not (wrong := self._wrong(message)):
                return message
            told += said_back(message, wrong)
        raise BadAnswer(f"The model gave nothing that can be used, {TIMES} times: {wrong}")

    async def _answer(self, told: list[BaseMessage]) -> AIMessage:
        if blocking.get():
            return self._asked.invoke(told, **self._options)
        return await self._asked.ainvoke(told, **self._options)

    def _system(self, lessons: str) -> list[BaseMessage]:
        known = self._systems  # replaced whole: another thread may ask with other lessons meanwhile
        if lessons not in known:
            schema = "" if self._tools else json.dumps(self._schema.model_json_schema(), ensure_ascii=False)
            rendered = self._prompt.render(
                tool=self._schema.__name__ if self._tools else "",
                schema=schema,
                instructions=self._instructions,
                lessons=lessons,
            )
            known = self._systems = {lessons: [SystemMessage(message.text) for message in rendered]}
        return known[lessons]

    def _spoken(self, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        if self._tools:
            return messages
        return [HumanMessage(labelled("Result", text_of(m))) if isinstance(m, ToolMessage) else m for m in messages]

    def _wrong(self, message: AIMessage) -> str:
        """What is wrong with it; "" for nothing."""
        name = self._schema.__name__
        if message.invalid_tool_calls:
            return f"The arguments are no JSON: {message.invalid_tool_calls[0].get('error') or 'they cannot be read'}"
        if self._tools and [call["name"] for call in message.tool_calls] != [name]:
            return f"Answer with one call of the tool {name}."
        try:
            given = fields_of(message)
            self._schema.model_validate(given)
        except ValidationError as error:
            return "; ".join(f"{'.'.join(map(str, e['loc'])) or name}: {e['msg']}" for e in error.errors()[:5])
        except ValueError as error:
            return str(error)
        return (
            "" if reading_of(message).answer.strip() or "score" in self._schema.model_fields else "The answer is empty."
        )


def fields_of(message: AIMessage) -> Mapping[str, Any]:
    """The arguments of the first tool call; without one, the JSON object in the text. Raises `ValueError`."""
    if message.tool_calls:
        return message.tool_calls[0]["args"]
    return parse(message.text, {"type": "object"})


def reading_of(message: AIMessage) -> Reading:
    """What a draft or a revision says; its text is the answer where it has no fields."""
    try:
        given = fields_of(message)
    except ValueError:
        return Reading(message.text)
    return Reading(answer_in(given), str(given.get("reflection") or ""), score_of(given.get("score")))


def answer_in(given: Mapping[str, Any]) -> str:
    """What is to be executed, of the fields that a model gave; "" for nothing."""
    for name in ANSWERS:
        if said := given.get(name):
            return str(said)
    return ""
