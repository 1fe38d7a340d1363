"""Turns the text of a model into an `Answer`: leaves out the thoughts, and reads JSON.

All models of Mulligan make their answers here, so that thoughts are never taken for the answer (design/119).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mulligan.core.questions import Answer, Question, ToolCall
from mulligan.core.records import Usage
from mulligan.models import json_answers
from mulligan.models.failures import Unreadable
from mulligan.models.tool_answers import read_call
from mulligan.text.thoughts import spoken

ONLY_THOUGHTS = "it ended before the thoughts did, so that there is no answer"


def answer_in(
    text: str,
    question: Question,
    *,
    model: str,
    usage: Usage,
    calls: Sequence[ToolCall] = (),
    repairs: Sequence[str] = (),
    cut: str = "",
    stop: Sequence[str] = (),
) -> Answer:
    """Returns the answer in a model's text. Raises `Unreadable`.

    Args:
        question: the question as it was sent. If it has tools and a schema, the JSON represents a call (see
            `tool_answers.in_json`).
        calls: the tool calls of the response.
        repairs: the errors in the calls' JSON that were repaired.
        cut: why the text is not complete; "" if it is.
        stop: texts at which a text answer ends, for models that do not stop there.
    """
    if question.schema is None:
        return without_thoughts(Answer(text, model, usage, tuple(calls), repairs=tuple(repairs)), cut, stop)
    answer, finished = spoken(text)
    try:
        if question.tools:
            call, reading = read_call(answer, cut=bool(cut))
            is_all = reading.is_whole and answer.strip() == text.strip() and not reading.repairs
            return Answer("", model, usage, (call,), "" if is_all else text, reading.repairs)
        reading = json_answers.read(text, question.schema)
    except ValueError as error:
        again = not cut or not finished
        raise Unreadable(
            cut or str(error), text=text, model=model, usage=usage, again=again, thoughts=not finished
        ) from None
    return Answer(reading.value, model, usage, (), "" if reading.is_whole else text, reading.repairs)


def without_thoughts(answer: Answer, cut: str = "", stop: Sequence[str] = ()) -> Answer:
    """An answer in words without its thoughts, which stay in `raw`. Raises `Unreadable` if it has only thoughts."""
    text = str(answer.content)
    words, finished = spoken(text)
    if not finished and not answer.calls:
        why = f"{ONLY_THOUGHTS} ({cut})" if cut else ONLY_THOUGHTS
        raise Unreadable(why, text=text, model=answer.model, usage=answer.usage, thoughts=True)
    for end in stop:  # applied after the thoughts, which may contain the same texts
        words = words.split(end, 1)[0]
    return answer if words == text else replace(answer, content=words, raw=answer.raw or text)
