"""`retrieve_memory`: lessons that help with a task."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.records import Json
from mulligan.mcp_server.tool import Call, Reply, Tool


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    recall = await call.service.bank(call.agent(arguments.get("agent_id"))).recall(str(arguments.get("query", "")))
    return Reply({"status": "success", "retrieval_id": recall.id})


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    return Reply({"status": "error", "message": message}, error=True)


TOOL = Tool(
    "retrieve_memory",
    "Recall lessons",
    "Lessons that earlier tasks taught.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    {"type": "object"},
    call,
    failed,
)
