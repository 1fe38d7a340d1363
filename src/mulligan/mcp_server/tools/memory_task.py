"""`memory_task`: what came of an extraction that was accepted."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.mcp_server import learning
from mulligan.mcp_server.tool import Call, Reply, Tool


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    agent, task = call.agent(arguments.get("agent_id")), arguments.get("task_id")
    if not isinstance(task, str) or not task:
        raise InvalidInput("task_id must be the one that extract_memory gave.")
    bank, work = await learning.task_of(call, task, agent)
    learned = await bank.outcome(work)
    answer = {**await learning.learning(bank, learned), "async_mode": True}
    if learned.pending:
        answer["message"] = _LATER if call.service.thinks else _NOBODY
    return Reply(answer)


_LATER = "The extraction is not done yet. Go on with something else, and look again later."
_NOBODY = (
    "It was accepted by a server with a model, and this one has none: it is done when one with a model runs. To draw "
    "the lessons yourself, call extract_memory with this task_id alone."
)


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    task = arguments.get("task_id")
    said = task[:80] if isinstance(task, str) else None
    return Reply({"status": "error", "message": message, "task_id": said}, error=True)


TOOL = Tool(
    "memory_task",
    "See what an extraction came to",
    "What came of an extract_memory that answered `processing`: the lessons, that it goes on, why it failed, or "
    "(`needs_thinking`) the question that waits for you. Calling it is never necessary.",
    {
        "type": "object",
        "properties": {
            "task_id": {"type": "string", "description": "As extract_memory gave it."},
            "agent_id": {"type": "string", "description": "The one that was given to extract_memory."},
        },
        "required": ["task_id"],
    },
    learning.OUTPUT,
    call,
    failed,
    read_only=True,
    idempotent=True,
    listed=lambda service: service.thinks,  # without a model nothing is done in the background
)
