"""`extract_memory`: learns lessons from a task, drawn by the server's model or by the calling agent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError, MulliganError
from mulligan.core.records import Episode, Json
from mulligan.mcp_server.tool import Call, Reply, Tool, definition
from mulligan.mcp_server.tools.memory_task import (
    FAILED,
    NOTHING,
    extraction_reply,
    facts_text,
    find_task,
    outcome_reply,
    question,
    task_id,
)
from mulligan.mcp_server.tools.retrieve_memory import kind_of

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank
    from mulligan.core.protocols import Learned


@dataclass(frozen=True)
class _Arguments:
    """The arguments. One that was left out is None; `background` is then True.

    Attributes:
        task: the id of an extraction to continue.
        recall: the id of the retrieval that was used.
        signal: whether the task succeeded.
        background: whether to learn in the background.
        lessons: the caller's answer to a question, as an object.
    """

    task: str | None
    recall: str | None
    signal: bool | None
    background: bool
    lessons: Json


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    """Learns from a new trajectory, continues an extraction, or only reports the outcome of a recall."""
    agent, parsed = call.agent(arguments.get("agent_id")), _parse(arguments)
    names = {name for name, value in arguments.items() if value is not None}
    if parsed.recall and parsed.signal is not None and names <= _OUTCOME_ONLY:
        bank = call.service.bank(agent or "")
        return Reply({**await outcome_reply(bank, parsed.recall, parsed.signal), "async_mode": False})
    if parsed.task is None:
        bank, work = call.service.bank(agent or ""), None
        episode = await _episode(arguments, parsed, call, agent)
        parsed = replace(parsed, lessons=_by_place(parsed.lessons, arguments["trajectory"]))
        episode, judges = await _earlier_episode(bank, episode, arguments, parsed)
    else:
        bank, work = await find_task(call, parsed.task, agent)
        episode, judges = None, False
    parsed = replace(parsed, background=parsed.background and not bank.paper)
    try:
        if episode is None:
            learned = await _resume(bank, str(work), parsed)
        else:
            borrow = judges or parsed.lessons is not None
            learned = await bank.learn(episode, background=parsed.background, borrow=borrow)
        learned = await _commit(bank, learned, parsed)
    except MulliganError as error:
        return await _error_reply(bank, error, work or await bank.accepted(episode or []), parsed)
    if learned.failed:
        return _failure(learned.failed + facts_text(learned.facts), task_id(learned.work), parsed.background)
    if learned.pending and parsed.background and call.on_task is not None and call.service.thinks:
        call.on_task(str(task_id(learned.work)))
    return Reply({**await extraction_reply(bank, learned), "async_mode": parsed.background})


_OUTCOME_ONLY = {"retrieval_id", "success_signal", "agent_id", "async_mode"}
"""The arguments of a call that only reports the outcome of a recall."""


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    task, background = arguments.get("task_id"), arguments.get("async_mode")
    return _failure(message, task[:80] if isinstance(task, str) else None, background is not False)


async def _episode(arguments: Mapping[str, Json], parsed: _Arguments, call: Call, agent: str | None) -> Episode:
    """The episode to learn from, with the recall that was used for it."""
    for name, meaning in (("trajectory", "the list of the steps that were taken"), ("query", "what the task was")):
        if arguments.get(name) is None:
            raise InvalidInput(
                f"{name} is missing: {meaning}. It can be omitted only with a task_id, or with retrieval_id and "
                "success_signal alone."
            )
    episode = read_trajectory(arguments["trajectory"], arguments["query"], parsed.signal)
    kind = kind_of(arguments.get("kind"))
    episode = replace(episode, task=replace(episode.task, kind=kind or ""))
    if parsed.recall is None:
        return episode
    return replace(episode, recall=await call.service.bank(agent).recalled(parsed.recall))


def read_trajectory(trajectory: Json, query: Json, signal: bool | None = None) -> Episode:
    """The episode of a trajectory: plain steps, or messages in a form that `mulligan learn` reads."""
    from mulligan.app.transcripts import read_messages
    from mulligan.bank.learn.trajectory import are_steps, episode_of

    if are_steps(trajectory) or not isinstance(query, str) or not query.strip():
        return episode_of(trajectory, query, signal)
    return read_messages(trajectory).episode(task=query, success=signal)


async def _earlier_episode(
    bank: Bank, episode: Episode, arguments: Mapping[str, Json], parsed: _Arguments
) -> tuple[Episode, bool]:
    """The episode to learn from, and whether the caller's signal is the verdict on it.

    If the same trajectory came before without a signal, and was not judged differently, that earlier episode is used.
    The signal is then the verdict on it, unless it was judged since. A new episode has the signal in it.
    """
    if parsed.signal is None:
        return episode, False
    before = replace(read_trajectory(arguments["trajectory"], arguments["query"]), recall=episode.recall)
    work = await bank.accepted(before)
    known = await bank.outcome(work) if work else None
    if known is None or known.success not in (None, parsed.signal):
        return episode, False
    return before, known.success is None


async def _resume(bank: Bank, work: str, parsed: _Arguments) -> Learned:
    """Continues an extraction that is not done. Raises `InvalidInput` if the signal contradicts its verdict."""
    known = await bank.outcome(work)
    if parsed.signal is not None and known.success not in (None, parsed.signal):
        raise InvalidInput(
            f"This task is already recorded as a {'success' if known.success else 'failure'}. To learn from it as "
            f"a {'failure' if known.success else 'success'}, pass its trajectory and query "
            "with this success_signal, and no task_id."
        )
    if known.question is None and not known.pending:
        return known
    judges = parsed.signal is not None and known.success is None
    return await bank.resume(work, background=parsed.background, borrow=judges or parsed.lessons is not None)


async def _commit(bank: Bank, learned: Learned, parsed: _Arguments) -> Learned:
    """Answers waiting questions with the caller's verdict and lessons. Raises `BadAnswer`."""
    if learned.question is not None and learned.success is None and parsed.signal is not None:
        verdict = {"reasoning": "The calling agent said so.", "verdict": "success" if parsed.signal else "failure"}
        learned = await bank.commit(str(learned.work), verdict)
        if parsed.lessons is None:
            learned = await bank.resume(str(learned.work), background=parsed.background)
    if learned.question is None or parsed.lessons is None:
        return learned
    if learned.success is None and "verdict" not in parsed.lessons:
        raise BadAnswer("First report whether the task succeeded: pass success_signal, true or false.")
    return await bank.commit(str(learned.work), parsed.lessons)


async def _error_reply(bank: Bank, error: MulliganError, work: str | None, parsed: _Arguments) -> Reply:
    """The answer for an error, with the question if that still waits for an answer."""
    message, fields = f"{error}{facts_text(error.facts)}", dict[str, Json]()
    if work is not None and isinstance(error, BadAnswer | ModelError):
        state = await bank.outcome(work)
        work = state.work
        if state.question is not None and isinstance(error, BadAnswer):
            fields = question(state)
            message += " The task still waits: answer it again with this task_id, so that it fits `schema`."
        elif state.question is not None:
            message += " The task waits: try again, or ask memory_task for the question and draw the lessons yourself."
    return _failure(message, task_id(work), parsed.background, fields)


def _by_place(lessons: Json, trajectory: Json) -> Json:
    """The lessons with the places of the steps that they cite, if the caller did not number its steps from 1.

    Raises `InvalidInput`: A lesson cites a number that no step has.
    """
    items = cast(list[Json], trajectory) if isinstance(trajectory, list) else []
    numbers = [_fields(item).get("step") for item in items]
    places = {str(number).removesuffix(".0"): place for place, number in enumerate(numbers, 1) if number is not None}
    answer = cast("dict[str, Json]", lessons or {})
    listed = answer.get("lessons")
    if not isinstance(listed, list) or len(places) < len(items) or [*places] == [*map(str, places.values())]:
        return lessons
    moved = list[Json]()
    for n, lesson in enumerate(cast(list[Json], listed), 1):
        steps = _fields(lesson).get("steps")
        several = cast(list[Json], steps) if isinstance(steps, list) else [steps]
        cited = [str(one).strip().lower().removeprefix("s") for one in several]
        if steps is not None and (missing := [one for one in cited if one not in places]):
            known = ", ".join([*places][:20])
            raise InvalidInput(f"Lesson {n} cites {missing[0]!r:.40}, which is not a step of the trajectory: {known}.")
        moved.append(lesson if steps is None else {**_fields(lesson), "steps": [places[one] for one in cited]})
    return {**answer, "lessons": moved}


def _fields(value: Json) -> dict[str, Json]:
    return cast(dict[str, Json], value) if isinstance(value, dict) else {}


def _failure(message: str, task: str | None, background: bool, fields: Mapping[str, Json] = {}) -> Reply:
    answer: dict[str, Json] = {"status": "error", "message": FAILED + message, **NOTHING}
    return Reply({**answer, "task_id": task, "async_mode": background, **fields}, error=True)


def _parse(arguments: Mapping[str, Json]) -> _Arguments:
    for name, kind, words in (
        ("task_id", str, "the text that extract_memory returned"),
        ("retrieval_id", str, "the text that retrieve_memory returned"),
        ("success_signal", bool, "true, false, or omitted if unknown"),
        ("async_mode", bool, "true or false"),
    ):
        value = arguments.get(name)
        if value is not None and not isinstance(value, kind):
            raise InvalidInput(f"{name} must be {words}, not {value!r:.80}.")
    task, recall = arguments.get("task_id") or None, arguments.get("retrieval_id") or None
    background = arguments.get("async_mode") is not False
    return _Arguments(task, recall, arguments.get("success_signal"), background, _answer(arguments.get("lessons")))


def _answer(lessons: Json) -> Json:
    """The answer to a question as an object, also from a list of lessons, or from the JSON text of either."""
    if isinstance(lessons, str) and lessons.strip():
        try:
            lessons = json.loads(lessons)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"'lessons' is a string that is not JSON: {error}. Pass the list itself.") from None
    if isinstance(lessons, list):
        return {"lessons": cast(list[Json], lessons), "nothing_because": ""}
    if lessons is not None and not isinstance(lessons, dict):
        raise InvalidInput(
            "'lessons' must be a list of lessons, or an object with \"lessons\", as described by `schema`."
        )
    return cast(Json, lessons)


TOOL = Tool(definition("extract_memory"), call, failed)
