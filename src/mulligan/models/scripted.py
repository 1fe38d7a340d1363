"""A model that gives prepared answers, for tests of Mulligan and of programs that use it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.questions import Answer, Question, Sampling, ToolCall
from mulligan.core.records import Json, Usage
from mulligan.models.answers import answer_in
from mulligan.text.plain import count

Line: TypeAlias = "str | dict[str, Json] | list[Json] | Exception"
"""An answer of a scripted model: a text, the JSON of a structured answer, or an error that it raises."""
_RULE = re.compile(r"^---[ \t]*$\n?", re.MULTILINE)


class ScriptedModel:
    """A model for tests that returns prepared answers in order, or the results of a function.

    Usage is counted in words, so that budgets can be tested exactly. The answer to a question with tools is a text,
    {"tool": NAME, "arguments": {...}} (one call), or {"calls": [{"tool": NAME, "arguments": {...}}, ...]} (several
    calls). A "text" key next to these is part of the answer. The script starts again in each process. For an episode
    that is killed and resumed, pass a function that takes the question.

    Args:
        answers: texts, JSON values (for questions with a schema) or exceptions to raise; or a function that takes the
            question and the sampling, and returns one of these. If a text answers a question with a schema, it is
            parsed like a provider's.
        cost: the cost of each call, in US dollars. None: unknown.
        sees: whether the model accepts images.

    Attributes:
        questions, samplings: the questions and samplings that it has received.
    """

    def __init__(
        self,
        answers: Iterable[Line] | Callable[[Question, Sampling], Line],
        name: str = "scripted",
        *,
        cost: float | None = 0.0,
        sees: bool = True,
    ) -> None:
        self.name = self.id = name
        self.sees = sees
        self.questions: list[Question] = []
        self.samplings: list[Sampling] = []
        self._cost = cost
        self._function = answers if callable(answers) else None
        self._answers: list[Line] = [] if callable(answers) else list(answers)

    @classmethod
    def parse(cls, file: str, text: str) -> ScriptedModel:
        """Parses a script: a JSON list (.json), one JSON value per line (.jsonl), or texts separated by lines of `---`.

        The model's id contains the text's hash, so that a changed script is detected.

        Raises:
            InvalidInput
        """
        answers = _read(file, text)
        if not answers:
            raise InvalidInput(f"scripted:{file} contains no answer.")
        model = cls(answers, f"scripted:{file}")
        model.id = f"{model.name}@{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return model

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Returns the next answer.

        Raises `ModelError` at the end of the script, `InvalidInput` if the answer to a question with tools is neither
        text nor calls, and the exceptions in the script.
        """
        self.questions.append(question)
        self.samplings.append(sampling)
        line = self._function(question, sampling) if self._function else self._next()
        if isinstance(line, Exception):
            raise line
        text = line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
        asked = sum(len(message.text.split()) for message in question.messages)
        usage = Usage(asked, len(text.split()), calls=1, cost=self._cost)
        if question.tools and not isinstance(line, str):
            text, calls = self._parse_calls(line)
            return Answer(text, self.id, usage, calls)
        if question.schema is not None and not isinstance(line, str):
            return Answer(line, self.id, usage)
        return answer_in(text, question, model=self.id, usage=usage)

    def _parse_calls(self, line: Json) -> tuple[str, tuple[ToolCall, ...]]:
        """The text and the calls of a line that is not a text."""
        table = cast(dict[str, Json], line) if isinstance(line, dict) else {}
        try:
            calls = tuple(ToolCall(call["tool"], call.get("arguments", {})) for call in table.get("calls", [table]))
        except (KeyError, TypeError, AttributeError):
            raise InvalidInput(
                f"{self.name}, answer {len(self.questions)}, cannot answer a question that has tools: "
                f"{json.dumps(line, ensure_ascii=False)[:80]}. Write a string, "
                '{"tool": NAME, "arguments": {...}}, or {"calls": [...]} with such objects.'
            ) from None
        return table.get("text", ""), calls

    def _next(self) -> Line:
        number = len(self.questions)
        if number > len(self._answers):
            last = self.questions[-1].messages[-1].text[:80] if self.questions[-1].messages else ""
            raise ModelError(
                f"{self.name} has {count(len(self._answers), 'answer')} but was asked for number {number}: add one. "
                f"The question ends with {last!r}."
            )
        return self._answers[number - 1]


def _read(file: str, text: str) -> list[Line]:
    if not file.endswith((".json", ".jsonl")):
        return [part.strip("\n") for part in _RULE.split(text.replace("\r\n", "\n")) if part.strip()]
    lines = [text] if file.endswith(".json") else text.split("\n")
    values: list[Json] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"scripted:{file}, line {number}: {error}.") from None
    answers: Json = values[0] if file.endswith(".json") and values else values
    if not isinstance(answers, list) or not all(isinstance(a, str | dict | list) for a in answers):  # pyright: ignore[reportUnknownVariableType]
        raise InvalidInput(f"scripted:{file} must contain a list of strings and JSON objects.")
    return answers  # pyright: ignore[reportUnknownVariableType]
