"""`memory_task`: tells what became of an extraction that runs in the background."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.mcp_server.tool import Call, Reply, Tool, definition
from mulligan.mcp_server.tools.extraction import extraction_reply, find_task


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    agent, task = call.agent(arguments.get("agent_id")), arguments.get("task_id")
    if not isinstance(task, str) or not task:
        raise InvalidInput("task_id must be the one that extract_memory gave.")
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
