"""The schemas of drafts and revisions, and how an answer in their fields is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, cast

from langchain_core.messages import AIMessage
from pydantic import BaseModel, BeforeValidator, Field

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.langgraph.state import Reading
from mulligan.models.json_answers import parse
from mulligan.text.plain import sound

ANSWERS = ("revised_answer", "revised_query", "answer")
"""The fields that may hold what is executed; the first of these that is not empty counts."""
_FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)


def score_of(value: Any) -> float | None:
    """Read a score such as "8", 8 or "8/10". Returns None unless it is a number from 0 to 10."""
    try:
        score = float(str(value).partition("/")[0])
    except ValueError:
        return None
    return score if 0 <= score <= 10 else None


def _valid_score(value: Any) -> float:
    if (score := score_of(value)) is None:
        raise ValueError("a score is a number from 0 to 10")
    return score


class Draft(BaseModel):
    """A first answer, to be executed."""

    answer: str = Field(description="What is to be executed, exactly as it is to be executed.")
    reflection: str = Field(default="", description="What could be wrong with it.")


class Revision(BaseModel):
    """The newest result, looked at; and the next answer."""

    reflection: str = Field(description="What the result shows, and what is wrong with the answer, if anything.")
    score: Annotated[float, BeforeValidator(_valid_score)] = Field(
        description="How well the result answers the question, from 0 (not at all) to 10 (fully)."
    )
    revised_answer: str = Field(description="What is to be executed next; the same answer where nothing is wrong.")


def check_schemas(draft: type[BaseModel], revise: type[BaseModel], judged: bool) -> None:
    """Raise `InvalidInput` for schemas that a graph cannot use. judged: whether a `judge` replaces the score."""
    for schema, role in ((draft, "draft"), (revise, "revise")):
        if not isinstance(schema, type) or not issubclass(schema, BaseModel):
            raise InvalidInput(f"{role} must be a pydantic model class, not {schema!r}.")
        if not any(name in schema.model_fields for name in ANSWERS):
            raise InvalidInput(f"{schema.__name__} has no field for what is executed: name one {' or '.join(ANSWERS)}.")
    if not judged and "score" not in revise.model_fields:
        raise InvalidInput(
            f"{revise.__name__} has no field 'score', so nothing says when it is good enough: give judge=…."
        )
    if draft.__name__ == revise.__name__:
        raise InvalidInput(f"Both schemas are named {draft.__name__}. Give them different names.")


def fields_of(message: AIMessage, schema: Mapping[str, Json] | None = None) -> Mapping[str, Any]:
    """Return the arguments of the first tool call; without a call, the JSON object in the text.

    Args:
        schema: The JSON schema of the text, where there is one.

    Raises:
        ValueError: There is no valid JSON object.
    """
    if message.tool_calls:
        return message.tool_calls[0]["args"]
    for call in message.invalid_tool_calls:
        raise ValueError(f"The arguments are not valid JSON: {call.get('error') or 'they are cut off'}")
    try:
        return parse(message.text, cast(dict[str, Json], schema or {"type": "object"}))
    except ValueError as error:
        raise ValueError(f"The answer must be one JSON object: {error}.") from None


def reading_of(message: AIMessage) -> Reading:
    """Read a draft or a revision. Text without fields is the answer itself."""
    try:
        fields = fields_of(message)
    except ValueError:
        return Reading(message.text)
    return Reading(answer_in(fields), str(fields.get("reflection") or ""), score_of(fields.get("score")))


def answer_in(fields: Mapping[str, Any]) -> str:
    """Return what is to be executed; "" if no field holds it."""
    return next((str(fields[name]) for name in ANSWERS if fields.get(name)), "")


def queries_in(fields: Mapping[str, Any]) -> list[str]:
    """Return the queries to run, the best one first, without the code fences that models put around them."""
    listed: Any = fields.get("search_queries") or []
    several = (
        [listed] if isinstance(listed, str) else cast(list[Any], listed) if isinstance(listed, list | tuple) else []
    )
    for group in ([fields.get("revised_query")], several, [fields.get("answer")]):
        if queries := [query for query in map(_unfenced, group) if query]:
            return queries
    return []


def _unfenced(value: Any) -> str:
    text = sound(value).strip() if isinstance(value, str) else ""
    fenced = _FENCED.fullmatch(text)
    return fenced[1].strip() if fenced else text


def merge_calls(message: AIMessage) -> AIMessage:
    """Return the message with its first tool call alone, since a revision judges one trial.

    The queries of further calls of the same tool are added to the first one's.
    """
    if len(message.tool_calls) < 2:
        return message
    first, *others = message.tool_calls
    more = [query for call in others if call["name"] == first["name"] for query in queries_in(call["args"])]
    arguments = {**first["args"], "search_queries": list(dict.fromkeys([*queries_in(first["args"]), *more]))}
    content: Any = message.content
    if isinstance(content, list):
        blocks = cast(list[Any], content)
        content = [block for block in blocks if not _is_call(block) or block.get("id") == first["id"]]
    return AIMessage(content, tool_calls=[{**first, "args": arguments}], usage_metadata=message.usage_metadata)


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and cast(dict[str, Any], block).get("type") in ("tool_use", "tool_call")
