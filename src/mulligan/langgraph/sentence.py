"""An answer in a sentence, made only from the rows of a query."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import HumanMessage
from pydantic import BaseModel, Field

from mulligan.langgraph.asking import SchemaResponder, fields_of
from mulligan.langgraph.graph_texts import shown
from mulligan.pages import labelled
from mulligan.plugins import BadAnswer, Json, Prompt, Prompts
from mulligan.running import portal

ROWS_TOKENS = 1500
"""The approximate tokens of the rows that the model is shown."""
NAMED = 10
"""The values that a sentence without a model names."""

_WORD = re.compile(r"\w(?:[\w.\-/'’]*\w)?")


class SayAnswer(BaseModel):
    """The answer in a sentence."""

    answer: str = Field(description="The answer to the question in one sentence, made only from the rows.")


def answer_prompt(prompts: Prompts) -> Prompt:
    """Return the prompt kg.answer. Raises `InvalidInput` for an unknown placeholder."""
    return prompts.get("kg.answer").check("tool", "schema")


async def sentence_of(question: str, rows: Sequence[Mapping[str, Json]], model: Any, prompts: Prompts) -> str:
    """Return the answer in a sentence.

    A sentence of the model with a name or a number that stands neither in the rows nor in the question is not used, nor
    is one that it could not give: then the values are listed.
    """
    responder = SchemaResponder(model, SayAnswer, answer_prompt(prompts), dict[str, str])
    parts = [labelled("Question", question), labelled("Rows", shown({"result": [*rows]}, ROWS_TOKENS), "json")]
    try:
        fields = fields_of(await portal.call(responder.arespond, [HumanMessage("\n\n".join(parts))]))
    except BadAnswer:
        return _listed(rows)
    said = " ".join(str(fields["answer"]).split())
    return said if is_made_of(said, question, rows) else _listed(rows)


def is_made_of(sentence: str, question: str, rows: Sequence[Mapping[str, Json]]) -> bool:
    """Whether each name and number of the sentence stands in the rows or in the question, or counts the rows."""
    known = f"{question} {json.dumps([*rows], ensure_ascii=False)} {len(rows)}".lower()
    words = _WORD.findall(sentence)
    telling = [word for n, word in enumerate(words) if _tells(word, first=not n)]
    known_words = set(_WORD.findall(known))
    return all(word.lower() in known_words or word.lower().removesuffix("'s") in known_words for word in telling)


def _tells(word: str, *, first: bool) -> bool:
    """Whether a word is a number or a name: it has a digit, or a capital that no sentence begins with."""
    return any(map(str.isdigit, word)) or any(map(str.isupper, word[1:] if first else word))


def _listed(rows: Sequence[Mapping[str, Json]]) -> str:
    texts = [_text(value) for row in rows for value in row.values() if value is not None]
    values = list(dict.fromkeys(texts))
    more = f", and {len(values) - NAMED} more" if len(values) > NAMED else ""
    return f"The answer is: {', '.join(values[:NAMED])}{more}." if values else "There is no answer in the rows."


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
