"""`extract_memory`: lessons from what was done, by the server's model or by the calling agent's own thinking."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError, MulliganError
from mulligan.core.records import Json
from mulligan.mcp_server.learning import FAILED, NOTHING, OUTPUT, asked, learning, task_id, task_of
from mulligan.mcp_server.tool import Call, Reply, Tool

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank
    from mulligan.core.protocols import Learned
    from mulligan.core.records import Episode


@dataclass(frozen=True)
class _Given:
    """The arguments, of the right kinds. None: left out. lessons: an answer, as an object."""

    task: str | None
    recall: str | None
    signal: bool | None
    background: bool
    lessons: Json


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    agent, given = call.agent(arguments.get("agent_id")), _given(arguments)
    if given.task is None:
        bank, work = call.service.bank(agent or ""), None
        episode, judges = await _chosen(bank, await _episode(arguments, given, call, agent), arguments, given)
    else:
        bank, work = await task_of(call, given.task, agent)
        episode, judges = None, False
    given = replace(given, background=given.background and not bank.paper)
    try:
        if episode is None:
            learned = await _resumed(bank, str(work), given)
        else:
            borrow = judges or given.lessons is not None
            learned = await bank.learn(episode, background=given.background, borrow=borrow)
        learned = await _thought(bank, learned, given)
    except MulliganError as error:
        return await _went_wrong(bank, error, work or await bank.accepted(episode or []), given)
    if learned.failed:
        return _failure(learned.failed, task_id(learned.work), given.background)
    return Reply({**await learning(bank, learned), "async_mode": given.background})


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    task, background = arguments.get("task_id"), arguments.get("async_mode")
    return _failure(message, task[:80] if isinstance(task, str) else None, background is not False)


async def _episode(arguments: Mapping[str, Json], given: _Given, call: Call, agent: str | None) -> Episode:
    """What is to be learned from, with the recall that was used for it."""
    from mulligan.bank.learn.trajectory import episode_of

    for name, words in (("trajectory", "the list of the steps that were taken"), ("query", "what the task was")):
        if arguments.get(name) is None:
            raise InvalidInput(f"{name} is missing: {words}. Only a call with a task_id needs none.")
    episode = episode_of(arguments["trajectory"], arguments["query"], given.signal)
    if given.recall is None:
        return episode
    return replace(episode, recall=await call.service.bank(agent).recalled(given.recall))


async def _chosen(bank: Bank, episode: Episode, arguments: Mapping[str, Json], given: _Given) -> tuple[Episode, bool]:
    """The episode to learn from, and whether the signal is to be the verdict on it: where the same trajectory came
    without a signal before, and was not found otherwise, it is that one.
    """
    from mulligan.bank.learn.trajectory import episode_of

    if given.signal is None:
        return episode, False
    before = replace(episode_of(arguments["trajectory"], arguments["query"]), recall=episode.recall)
    work = await bank.accepted(before)
    known = await bank.outcome(work) if work else None
    if known is None or known.success not in (None, given.signal):
        return episode, False
    return before, known.success is None


async def _resumed(bank: Bank, work: str, given: _Given) -> Learned:
    known = await bank.outcome(work)
    if given.signal is not None and known.success not in (None, given.signal):
        raise InvalidInput(
            f"This task is held for a {'success' if known.success else 'failure'} already. To learn from it as the "
            "other, pass its trajectory and query with this success_signal, and no task_id."
        )
    if known.question is None and not known.pending:
        return known
    judges = given.signal is not None and known.success is None
    return await bank.resume(work, background=given.background, borrow=judges or given.lessons is not None)


async def _thought(bank: Bank, learned: Learned, given: _Given) -> Learned:
    """Takes the caller's verdict and lessons, where they are waited for. Raises `BadAnswer`."""
    if learned.question is not None and learned.success is None and given.signal is not None:
        verdict = {"reasoning": "The calling agent said so.", "verdict": "success" if given.signal else "failure"}
        learned = await bank.commit(str(learned.work), verdict)
        if given.lessons is None:
            learned = await bank.resume(str(learned.work), background=given.background)
    if learned.question is None or given.lessons is None:
        return learned
    if learned.success is None and "verdict" not in given.lessons:
        raise BadAnswer("Whether the task succeeded has to be said first: give success_signal, true or false.")
    return await bank.commit(str(learned.work), given.lessons)


async def _went_wrong(bank: Bank, error: MulliganError, work: str | None, given: _Given) -> Reply:
    """The error; where a question waits for a better answer, with that question."""
    message, about = str(error), dict[str, Json]()
    if work is not None and isinstance(error, BadAnswer | ModelError):
        left = await bank.outcome(work)
        work = left.work
        if left.question is not None and isinstance(error, BadAnswer):
            about = asked(left)
            message += " The task waits on: answer it again with this task_id, so that it fits `schema`."
        elif left.question is not None:
            message += " The task waits: try again, or ask memory_task for the question and draw the lessons yourself."
    return _failure(message, task_id(work), given.background, about)


def _failure(message: str, task: str | None, background: bool, about: Mapping[str, Json] = {}) -> Reply:
    answer: dict[str, Json] = {"status": "error", "message": FAILED + message, **NOTHING}
    return Reply({**answer, "task_id": task, "async_mode": background, **about}, error=True)


def _given(arguments: Mapping[str, Json]) -> _Given:
    for name, kind, words in (
        ("task_id", str, "the text that extract_memory gave"),
        ("retrieval_id", str, "the text that retrieve_memory gave"),
        ("success_signal", bool, "true, false, or left out where nobody knows"),
        ("async_mode", bool, "true or false"),
    ):
        value = arguments.get(name)
        if value is not None and not isinstance(value, kind):
            raise InvalidInput(f"{name} must be {words}, not {value!r:.80}.")
    task, recall = arguments.get("task_id") or None, arguments.get("retrieval_id") or None
    background = arguments.get("async_mode") is not False
    return _Given(task, recall, arguments.get("success_signal"), background, _answer(arguments.get("lessons")))


def _answer(lessons: Json) -> Json:
    """The answer to a question as an object: a bare list of lessons is one, and so is the JSON text of either."""
    if isinstance(lessons, str) and lessons.strip():
        try:
            lessons = json.loads(lessons)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"lessons is a text that is no JSON: {error}. Give the list itself.") from None
    if isinstance(lessons, list):
        return {"lessons": cast(list[Json], lessons), "nothing_because": ""}
    if lessons is not None and not isinstance(lessons, dict):
        raise InvalidInput('lessons must be a list of lessons, or an object with "lessons", as `schema` says.')
    return cast(Json, lessons)


_TEXT = {"type": "string"}
_STEP = {
    "type": "object",
    "properties": {
        "step": {"type": "number"},
        "role": {"type": "string", "enum": ["user", "assistant", "tool"]},
        "content": {**_TEXT, "description": "What was said, done or seen, and why."},
        "metadata": {"type": "object", "properties": {"tool_name": _TEXT, "action_type": _TEXT}},
    },
    "required": ["step", "role", "content"],
}
_LESSONS = {
    "anyOf": [
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "title": _TEXT,
                    "description": {**_TEXT, "description": "When it is of use."},
                    "content": {**_TEXT, "description": "What to do or to avoid in such tasks."},
                    "nature": {
                        "type": "string",
                        "enum": ["strategy", "fact"],
                        "description": "fact: holds in this project; keep its names and values.",
                    },
                    "steps": {"type": "array", "items": {"type": "integer"}, "description": "Those that show it."},
                },
                "required": ["title", "description", "content", "steps"],
            },
        },
        {"type": "object", "properties": {"nothing_because": {**_TEXT, "description": "Why there are none."}}},
    ],
    "description": "The lessons that you draw: one to three, for later tasks, not about this one alone.",
}
_INPUT = {
    "type": "object",
    "properties": {
        "trajectory": {
            "type": "array",
            "items": _STEP,
            "description": "The steps that mattered, numbered from 1. Needed unless there is a task_id.",
        },
        "query": {**_TEXT, "description": "The task, as you put it to retrieve_memory."},
        "success_signal": {
            "type": "boolean",
            "description": "Whether it succeeded, where something has shown it.",
        },
        "async_mode": {
            "type": "boolean",
            "default": True,
            "description": "false: wait for a model of the server.",
        },
        "agent_id": {**_TEXT, "description": "As with retrieve_memory."},
        "retrieval_id": {**_TEXT, "description": "As retrieve_memory gave it for this task."},
        "task_id": {**_TEXT, "description": "After needs_thinking."},
        "lessons": _LESSONS,
    },
}

TOOL = Tool(
    "extract_memory",
    "Learn from a task",
    "Keeps what a task has taught. Call it when a task is done, before your final answer, and when it has failed, with "
    "trajectory, query, success_signal and, in the same call, the lessons that you draw. Without lessons a model of "
    "the server draws them (`processing`: nothing more to do), or you are asked (`needs_thinking`): follow `prompt`, "
    "and call again with the task_id and what is wanted.",
    _INPUT,
    OUTPUT,
    call,
    failed,
    idempotent=True,
)
