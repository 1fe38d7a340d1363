"""`memory_task` reports the state of an extraction. The answers of all tools that learn are made here, too.

The tools call an extraction a task. Its id is `extract_` and the id of the work in the bank's queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mulligan.core.errors import InvalidInput, NotFound
from mulligan.core.records import Json, Lesson
from mulligan.mcp_server.tool import Call, Reply, Tool, definition

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank
    from mulligan.core.protocols import Learned
    from mulligan.core.questions import Question

PREFIX = "extract_"
ACCEPTED = "Memory extraction task has been submitted and is being processed in the background"
LEARNED = "Memory extraction successful"
FAILED = "Extraction failed: "


async def extraction_reply(bank: Bank, learned: Learned, *, by_tool: bool = True) -> dict[str, Json]:
    """The answer; its `status` is success, processing, needs_thinking (with the question), or error.

    Args:
        bank: the bank of the agent that learned.
        learned: the result of the extraction so far.
        by_tool: whether the caller can answer a question through extract_memory.
    """
    head: dict[str, Json] = {"task_id": task_id(learned.work), "agent_id": bank.agent_id or None}
    if learned.question is not None:
        return {"status": "needs_thinking", "message": _to_think(bank, learned, by_tool), **head, **question(learned)}
    if learned.pending:
        return {"status": "processing", "message": ACCEPTED, **head}
    if learned.failed:
        return {"status": "error", "message": FAILED + learned.failed + facts_text(learned.facts), **head, **NOTHING}
    kept = [await bank.get(id) for id in learned.lessons if id not in learned.quarantined]
    first = [*(lesson.id for lesson in kept), *learned.folded][:1]
    return {
        "status": "success",
        "message": _summary(learned, kept),
        "memory_id": first[0] if first else None,
        **head,
        "success": learned.success,
        "extracted_count": len(kept),
        "memories": [
            {"memory_id": lesson.id, "title": lesson.title, "description": lesson.description} for lesson in kept
        ],
        "management": await _management(bank, learned, kept),
    }


NOTHING: dict[str, Json] = {"success": None, "extracted_count": 0, "memories": []}
"""The fields of an answer without a result."""


async def outcome_reply(bank: Bank, recall: str, success: bool) -> dict[str, Json]:
    """Counts the outcome for the recalled lessons, without learning, and returns the answer."""
    counted = await bank.outcome_of(recall, success)
    said = "The outcome counts towards the worth of what was recalled; nothing is learned."
    if counted != success:
        said = f"The outcome does not count: it was reported before, as a {'success' if counted else 'failure'}."
    message = " ".join([said, *(f"From now on {sentence}." for sentence in await bank.retired_for_harm())])
    head: dict[str, Json] = {"status": "success", "message": message, "task_id": None}
    return {**head, "agent_id": bank.agent_id or None, **NOTHING, "success": counted}


def question(learned: Learned) -> dict[str, Json]:
    """The question that waits for an answer, as text, with the JSON schema of the answer."""
    assert learned.question is not None
    return {"wanted": "success" if learned.success is None else "lessons", **prompt_of(learned.question)}


def prompt_of(question: Question) -> dict[str, Json]:
    return {"prompt": "\n\n".join(message.text for message in question.messages), "schema": question.schema}


def task_id(work: str | None) -> str | None:
    return None if work is None else PREFIX + work


async def find_task(call: Call, task: str, agent: str | None) -> tuple[Bank, str]:
    """The bank of a task's agent, and the id of the work.

    Args:
        task: the task's id.
        agent: the agent that it has to belong to; None: any.

    Raises:
        NotFound: there is no such task, or it is another agent's.
    """
    try:
        if not task.startswith(PREFIX):
            raise NotFound("There is no task with this id.")
        queued = await call.service.store.memory.queue.look(agent, task.removeprefix(PREFIX))
        if queued.kind != "extract":
            raise NotFound("This job is not an extraction.")
    except NotFound:
        raise NotFound(
            f"There is no task {task[:80]!r} here: pass the task_id that extract_memory returned, with the same "
            "agent_id."
        ) from None
    return call.service.bank(queued.agent_id), queued.id


def _to_think(bank: Bank, learned: Learned, by_tool: bool) -> str:
    from mulligan.app.teaching import memory_command

    why = f"The last attempt was not accepted: {learned.failed} " if learned.failed else ""
    if not by_tool:
        return (
            f"{why}No model was named on this server, and extract_memory is not offered here. Think about `prompt`, "
            "write your answer, JSON that fits `schema`, to a file, and have it kept by this command: "
            f"{memory_command(bank.agent_id, 'pending', str(learned.work), 'FILE')}"
        )
    if learned.success is None:
        return (
            f"{why}Whether the task succeeded is not known. Judge it by `prompt`, then call extract_memory with this "
            "task_id and success_signal: true, or false for a failure and for what cannot be told."
        )
    return (
        f"{why}No model was named on this server, so the lessons are yours to draw. Think about `prompt`, then call "
        "extract_memory with this task_id and your answer, JSON that fits `schema`, as lessons."
    )


def _summary(learned: Learned, kept: list[Lesson]) -> str:
    if kept:
        return LEARNED
    if learned.quarantined:
        return f"{LEARNED}, but nothing that can be recalled yet: see management."
    if learned.retired:
        return f"{LEARNED}, but somebody has retired what was learned, so it is not recalled: see management."
    if learned.folded:
        return f"{LEARNED}; all of it was already known."
    because = learned.nothing_because or "the lessons no longer exist"
    if learned.facts:
        return f"No strategy was learned: {because}.{facts_text(learned.facts)}"
    return f"Nothing was learned: {because}"


def facts_text(facts: Sequence[str]) -> str:
    """The facts that were learned by rules, in a sentence after another; "" for none."""
    return f" Facts learned by rules: {', '.join(facts)}." if facts else ""


async def _management(bank: Bank, learned: Learned, kept: list[Lesson]) -> dict[str, Json]:
    """merges_triggered: merges of these lessons that were made or are queued by now."""
    from mulligan.app.teaching import memory_command, restore_command

    new = {lesson.id for lesson in kept}
    merged = {lesson.superseded_by for lesson in kept if lesson.superseded_by}
    queued = [work for work in await bank.pending("merge") if new & set(work.payload["lessons"])]
    to_read = memory_command(bank.agent_id, "list", "--quarantined")
    parts = [
        f"{len(learned.folded)} already known, and counted there." if learned.folded else "",
        f"{len(learned.quarantined)} quarantined until a person has read it ({to_read})."
        if learned.quarantined
        else "",
        f"{len(learned.retired)} retired, so not recalled, until somebody brings it back "
        f"({restore_command(bank.agent_id, learned)})."
        if learned.retired
        else "",
    ]
    return {
        "duplicates_skipped": len(learned.folded),
        "merges_triggered": len(merged) + len(queued),
        "message": " ".join(part for part in parts if part) or "Nothing was a duplicate.",
    }


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    agent, task = call.agent(arguments.get("agent_id")), arguments.get("task_id")
    if not isinstance(task, str) or not task:
        raise InvalidInput("task_id must be the one that extract_memory returned.")
    bank, work = await find_task(call, task, agent)
    learned = await bank.outcome(work)
    answer = {**await extraction_reply(bank, learned), "async_mode": True}
    if learned.pending:
        answer["message"] = _NOT_YET if call.service.thinks else _NO_MODEL
    return Reply(answer)


_NOT_YET = "The extraction is not done yet. Go on with something else, and look again later."
_NO_MODEL = (
    "It was accepted by a server with a model, and this one has none: it is done when one with a model runs. To draw "
    "the lessons yourself, call extract_memory with this task_id alone."
)


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    task = arguments.get("task_id")
    shown = task[:80] if isinstance(task, str) else None
    return Reply({"status": "error", "message": message, "task_id": shown}, error=True)


TOOL = Tool(
    definition("memory_task", output_of="extract_memory"),
    call,
    failed,
    listed=lambda service: service.thinks,  # without a model nothing is done in the background
)
