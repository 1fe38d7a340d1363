"""Asks a model, before a critical action, to imagine that it went wrong: go on, change the action, or ask a person."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
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
"""Risk and reason come before the decision, so that it follows from them."""


class Premortem:
    """Checks what is declared critical, what fits a pattern, or what the model finds critical.

    The question shows the task, the trajectory, and lessons: those that the bank has on the action, those that it gave
    for the task, and those of earlier trials. An answer that does not fit is asked for once more.

    Args:
        before: what is checked besides what the environment or a tool declares critical: regular expressions that are
            found in the action, in any case. "model" checks every action, and the model says whether it is critical;
            "declared" adds nothing.
        checks: the most checks of an episode. Later actions are performed unchecked.
        unclear: what happens to an action if two answers cannot be used.
        attended: False never asks a person. An action that a person would have to allow is then not performed.
        lessons: how many of the bank's lessons are shown.
        temperature: of the sampling.
        max_tokens: of an answer.
        tokens: what the trajectory may take of the prompt.
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
            raise InvalidInput(f"premortem: checks must be at least 1 and lessons 0, not {checks} and {lessons}.")
        wanted = [before] if isinstance(before, str) else list(before)
        self._by_model = BY_MODEL in wanted
        self._patterns = [_compiled(text) for text in wanted if text not in (DECLARED, BY_MODEL)]
        self.checks, self.attended = checks, attended
        self._unclear, self._most = unclear, lessons
        self._model, self._bank, self._tokens = model, bank, tokens
        self._prompt = prompts.get("premortem.check").check(*SLOTS)
        self._sampling = Sampling(temperature, max_tokens)

    def critical(self, ahead: Ahead) -> str:
        if ahead.declared:
            return DECLARED
        fitting = (pattern.pattern for pattern in self._patterns if pattern.search(ahead.action))
        if (pattern := next(fitting, None)) is not None:
            return f"pattern {pattern}"
        harmless = any(step.check and not step.check.critical for step in ahead.steps if step.action == ahead.action)
        return BY_MODEL if self._by_model and not harmless else ""

    async def check(self, ahead: Ahead, because: str) -> Check:
        lessons = await self._lessons(ahead)
        question = self.ask(ahead, lessons)
        sampling = replace(self._sampling, seed=ahead.episode.head.seed + len(ahead.episode.trials))
        notes: tuple[str, ...] = ()
        try:
            answer = (await self._model.ask(question, sampling)).content
            try:
                found = self.take(ahead, answer)
            except BadAnswer as error:
                notes = ("The first answer could not be used.",)
                question = asked_again(question, answer, str(error))
                found = self.take(ahead, (await self._model.ask(question, sampling)).content)
        except BadAnswer as error:
            found = Check(
                ahead.action, reason="no answer of the model could be used", performed=self._unclear == "go_on"
            )
            notes = (f"No answer could be used: {error}",)
        critical = found.critical if because == BY_MODEL else True
        if not critical:
            found = replace(found, decision="go_on", change="", question="")
        return replace(found, critical=critical, lessons=tuple(one.id for one in lessons), notes=(*found.notes, *notes))

    def ask(self, ahead: Ahead, lessons: Sequence[Lesson]) -> Question:
        """The question about this action."""
        told = [f"{lesson.title}: {lesson.content}" for lesson in lessons]
        told += [reflection.text for reflection in ahead.past.reflections]
        steps = trajectory_text(truncate(ahead.steps, self._tokens))
        return Question(
            self._prompt.render(
                task=task_text(ahead.episode.task),
                lessons=fenced(truncate_text(reflections_text(told), self._tokens)) if told else "",
                trajectory=fenced(steps) if steps else "",
                tools=fenced("\n".join(map(_tool_text, ahead.tools))) if ahead.tools else "",
                action=fenced(ahead.action),
            ),
            SCHEMA,
        )

    def take(self, ahead: Ahead, answer: Json) -> Check:
        """The check that this answer comes to. Raises `BadAnswer`."""
        given = cast(dict[str, Json], answer) if isinstance(answer, dict) else {}
        risk, reason, change, question = (
            text.strip() if isinstance(text := given.get(key, ""), str) else ""
            for key in ("risk", "reason", "action", "question")
        )
        decision = str(given.get("decision")).strip().lower().replace(" ", "_")
        if decision not in DECISIONS:
            raise BadAnswer(f'"decision" must be one of {", ".join(DECISIONS)}, not {given.get("decision")!r}.')
        found = Check(ahead.action, critical=given.get("critical") is not False, risk=risk, reason=reason)
        if decision == "ask":
            return replace(found, decision="ask", question=question or "Should it do this?")
        if decision == "go_on":
            return found
        change = _action(change, ahead.tools)
        if change == ahead.action:
            return replace(found, notes=("It named the same action as the change, so nothing was changed.",))
        return replace(found, decision="change", change=change)

    async def _lessons(self, ahead: Ahead) -> Sequence[Lesson]:
        """Those of the bank that are about the action, then those that it gave for the task; each once."""
        found = dict[str, Lesson]()
        if self._bank is not None and self._most:
            found = _by_id((await self._bank.recall(Task(ahead.action), top_k=self._most)).lessons)
        given = ahead.past.recall.lessons if ahead.past.recall else ()
        return list({**found, **_by_id(one for one in given if one.id not in found)}.values())[: self._most]


def _compiled(pattern: str) -> re.Pattern[str]:
    if not pattern.strip():
        raise InvalidInput("premortem: a pattern of `before` is empty, so every action would be checked. Leave it out.")
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InvalidInput(f"premortem: {pattern!r} in `before` is not a regular expression: {error}.") from error


def _action(text: str, tools: Sequence[Tool]) -> str:
    """The action in the form of the agent's own. Raises `BadAnswer` if it cannot be performed here."""
    if not text:
        raise BadAnswer('To change the action, write the new one in "action".')
    if not tools:
        if len(text.splitlines()) > 1:
            raise BadAnswer('"action" must be a single action, in one line.')
        return text
    call = call_of(text)
    if call.name not in (names := [tool.name for tool in tools]):
        raise BadAnswer(f"There is no tool {call.name!r}; there are {', '.join(names)}.")
    return shown(call)


def _tool_text(tool: Tool) -> str:
    schema = cast(Mapping[str, Json], tool.parameters)
    return f"- {tool.name}: {' '.join(tool.description.split())} Arguments: {json.dumps(schema.get('properties', {}))}"


def _by_id(lessons: Iterable[Lesson]) -> dict[str, Lesson]:
    return {lesson.id: lesson for lesson in lessons}
