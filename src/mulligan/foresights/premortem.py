"""Before a critical action, asks a model to imagine that it went wrong: go on, change the action, or ask a person."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, cast

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.foresight import Ahead
from mulligan.core.protocols import Bank, Model, Prompts
from mulligan.core.questions import Question, Sampling, Tool, asked_again, object_schema
from mulligan.core.records import Check, Json, Lesson, Task
from mulligan.models.steps import call_of, shown
from mulligan.text.formatting import TOKENS, fenced, reflections_text, task_text, trajectory_text
from mulligan.text.truncate import truncate, truncate_text

CHECKS = 5
DECLARED, BY_MODEL = "declared", "model"
SLOTS = ("task", "lessons", "trajectory", "tools", "action")
DECISIONS = ("go_on", "change", "ask")
SCHEMA: Json = object_schema(
    risk={"type": "string"},
    critical={"type": "boolean"},
    reason={"type": "string"},
    decision={"type": "string", "enum": list(DECISIONS)},
    action={"type": "string"},
    question={"type": "string"},
)
"""Risk and reason come first, so that the model decides after it has written them."""


class Premortem:
    """Checks actions that are declared critical, match a pattern, or are critical in the eyes of the model.

    The question shows the task, the trajectory, and lessons: the bank's, about the action and the task, and
    those of earlier trials. If an answer cannot be used, the model is asked once more.

    Args:
        before: what is checked besides actions that the environment or a tool declares critical: regular expressions
            that match anywhere in the action, ignoring case. "model" checks every action, and the model says whether it
            is critical. "declared" adds nothing.
        checks: the maximum number of checks in an episode. Later actions are not checked.
        unclear: what happens to an action if two answers cannot be used.
        attended: if false, no person is asked, and an action that a person would have to allow is not performed.
        lessons: the maximum number of the bank's lessons that are shown.
        temperature: the sampling temperature.
        max_tokens: the maximum number of tokens of an answer.
        tokens: the maximum number of tokens of the trajectory in the prompt.
    """

    def __init__(
        self,
        *,
        before: Annotated[
            str | Sequence[str],
            "What is checked besides what an environment or a tool declares critical: regular expressions, matched "
            "anywhere in the action, or `model` for what the model considers critical.",
        ] = DECLARED,
        checks: Annotated[int, "Maximum number of checks in an episode."] = CHECKS,
        unclear: Annotated[
            Literal["go_on", "refuse"], "What to do with an action if the model twice gives an unusable answer."
        ] = "go_on",
        attended: Annotated[bool, "Whether a person may be asked, if there is a terminal."] = True,
        lessons: Annotated[int, "How many lessons from the bank are shown."] = 5,
        temperature: Annotated[float | None, "The sampling temperature."] = 0.0,
        max_tokens: Annotated[int, "Maximum number of tokens in an answer."] = 500,
        tokens: Annotated[int, "Maximum number of tokens of the trajectory in the prompt."] = TOKENS,
        model: Model,
        prompts: Prompts,
        bank: Bank | None = None,
    ) -> None:
        if checks < 1 or lessons < 0:
            raise InvalidInput(
                f"premortem: checks must be at least 1 and lessons at least 0, not {checks} and {lessons}."
            )
        patterns = [before] if isinstance(before, str) else list(before)
        self._by_model = BY_MODEL in patterns
        self._patterns = [_compiled(text) for text in patterns if text not in (DECLARED, BY_MODEL)]
        self.checks, self.attended = checks, attended
        self._unclear, self._max_lessons = unclear, lessons
        self._model, self._bank, self._tokens = model, bank, tokens
        self._prompt = prompts.get("premortem.check").check(*SLOTS)
        self._sampling = Sampling(temperature, max_tokens)

    def critical(self, ahead: Ahead) -> str:
        """Why the action is checked; "" if it is not checked."""
        if ahead.declared:
            return DECLARED
        for pattern in self._patterns:
            if pattern.search(ahead.action):
                return f"pattern {pattern.pattern}"
        harmless = any(step.check and not step.check.critical for step in ahead.steps if step.action == ahead.action)
        return BY_MODEL if self._by_model and not harmless else ""

    async def check(self, ahead: Ahead, because: str) -> Check:
        """Asks the model about the action. because: what `critical` returned."""
        lessons = await self._lessons(ahead)
        question = self.ask(ahead, lessons)
        sampling = replace(self._sampling, seed=ahead.episode.head.seed + len(ahead.episode.trials))
        notes: tuple[str, ...] = ()
        try:
            answer = (await self._model.ask(question, sampling)).content
            try:
                check = self.take(ahead, answer)
            except BadAnswer as error:
                notes = ("The first answer could not be used.",)
                question = asked_again(question, answer, str(error))
                check = self.take(ahead, (await self._model.ask(question, sampling)).content)
        except BadAnswer as error:
            check = Check(
                ahead.action, reason="no answer of the model could be used", performed=self._unclear == "go_on"
            )
            notes = (f"No answer could be used: {error}",)
        critical = check.critical if because == BY_MODEL else True
        if not critical:
            check = replace(check, decision="go_on", change="", question="")
        ids = tuple(lesson.id for lesson in lessons)
        return replace(check, critical=critical, lessons=ids, notes=(*check.notes, *notes))

    def ask(self, ahead: Ahead, lessons: Sequence[Lesson]) -> Question:
        """The question about this action."""
        texts = [f"{lesson.title}: {lesson.content}" for lesson in lessons]
        texts += [reflection.text for reflection in ahead.past.reflections]
        steps = trajectory_text(truncate(ahead.steps, self._tokens))
        return Question(
            self._prompt.render(
                task=task_text(ahead.episode.task),
                lessons=fenced(truncate_text(reflections_text(texts), self._tokens)) if texts else "",
                trajectory=fenced(steps) if steps else "",
                tools=fenced("\n".join(map(_tool_text, ahead.tools))) if ahead.tools else "",
                action=fenced(ahead.action),
            ),
            SCHEMA,
        )

    def take(self, ahead: Ahead, answer: Json) -> Check:
        """The check that an answer results in. Raises `BadAnswer` if the answer cannot be used."""
        fields = cast(dict[str, Json], answer) if isinstance(answer, dict) else {}
        risk, reason, change, question = (
            text.strip() if isinstance(text := fields.get(key, ""), str) else ""
            for key in ("risk", "reason", "action", "question")
        )
        decision = str(fields.get("decision")).strip().lower().replace(" ", "_")
        if decision not in DECISIONS:
            raise BadAnswer(f'"decision" must be one of {", ".join(DECISIONS)}, not {fields.get("decision")!r}.')
        check = Check(ahead.action, critical=fields.get("critical") is not False, risk=risk, reason=reason)
        if decision == "ask":
            return replace(check, decision="ask", question=question or "Should it do this?")
        if decision == "go_on":
            return check
        change = _action(change, ahead.tools)
        if change == ahead.action:
            return replace(check, notes=("It named the same action as the change, so nothing was changed.",))
        return replace(check, decision="change", change=change)

    async def _lessons(self, ahead: Ahead) -> Sequence[Lesson]:
        """The bank's lessons about the action, then those recalled for the task, each once."""
        lessons = list[Lesson]()
        if self._bank is not None and self._max_lessons:
            lessons += (await self._bank.recall(Task(ahead.action), top_k=self._max_lessons)).lessons
        lessons += ahead.past.recall.lessons if ahead.past.recall else ()
        by_id = dict[str, Lesson]()
        for lesson in lessons:
            by_id.setdefault(lesson.id, lesson)
        return list(by_id.values())[: self._max_lessons]


def _compiled(pattern: str) -> re.Pattern[str]:
    if not pattern.strip():
        raise InvalidInput("premortem: a pattern in `before` is empty, so every action would be checked. Remove it.")
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InvalidInput(f"premortem: {pattern!r} in `before` is not a regular expression: {error}.") from error


def _action(text: str, tools: Sequence[Tool]) -> str:
    """The changed action, in the form of the agent's actions. Raises `BadAnswer` if it cannot be performed."""
    if not text:
        raise BadAnswer('To change the action, write the new one in "action".')
    if not tools:
        if len(text.splitlines()) > 1:
            raise BadAnswer('"action" must be a single action, in one line.')
        return text
    call = call_of(text)
    if call.name not in (names := [tool.name for tool in tools]):
        raise BadAnswer(f"There is no tool {call.name!r}. Available tools: {', '.join(names)}.")
    return shown(call)


def _tool_text(tool: Tool) -> str:
    schema = cast(Mapping[str, Json], tool.parameters)
    return f"- {tool.name}: {' '.join(tool.description.split())} Arguments: {json.dumps(schema.get('properties', {}))}"
