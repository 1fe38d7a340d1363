"""Makes an `Answer` of the text of a model: its thoughts are left out, and JSON is read.

Every model of ours makes its answers here, so that nobody reads the thoughts for the answer: design/119.
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
    """The answer in what a model wrote. Raises `Unreadable`.

    Args:
        question: as it was asked. With tools and a schema, the JSON stands for a call (see `tool_answers.in_json`).
        calls: those that the model made of its own.
        repairs: faults in the JSON of these calls that were repaired.
        cut: why the text is not whole; "" if it is.
        stop: texts at which an answer in words ends, for models that do not end there themselves.
    """
    if question.schema is None:
        return without_thoughts(Answer(text, model, usage, tuple(calls), repairs=tuple(repairs)), cut, stop)
    said = spoken(text)
    try:
        if question.tools:
            call, read = read_call(said.answer, cut=bool(cut))
            is_all = read.is_whole and said.answer.strip() == text.strip() and not read.repairs
            return Answer("", model, usage, (call,), "" if is_all else text, read.repairs)
        read = json_answers.read(text, question.schema)
    except ValueError as error:
        again = not cut or not said.finished
        raise Unreadable(
            cut or str(error), text=text, model=model, usage=usage, again=again, thoughts=not said.finished
        ) from None
    return Answer(read.value, model, usage, (), "" if read.is_whole else text, read.repairs)


def without_thoughts(answer: Answer, cut: str = "", stop: Sequence[str] = ()) -> Answer:
    """The answer in words without thoughts, which stay in `raw`. Raises `Unreadable` if nothing else is in it."""
    text = str(answer.content)
    said, finished = spoken(text)
    if not finished and not answer.calls:
        why = f"{ONLY_THOUGHTS} ({cut})" if cut else ONLY_THOUGHTS
        raise Unreadable(why, text=text, model=answer.model, usage=answer.usage, thoughts=True)
    for end in stop:  # after the thoughts, in which the same texts may stand
        said = said.split(end, 1)[0]
    return answer if said == text else replace(answer, content=said, raw=answer.raw or text)
