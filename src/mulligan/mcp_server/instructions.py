"""What a client is told of the whole server when it connects, for its model."""

from __future__ import annotations

from mulligan.app.service import Service
from mulligan.mcp_server.choice import topics
from mulligan.mcp_server.prompts_text import files_of, name_of, rendered


def instructions(service: Service, which: str) -> str:
    """For the tools that are served. Raises `InvalidInput` for a prompt file of the user's that cannot be used."""
    files, agent = files_of(service.config), name_of(service.served.agent_id)
    prompts = [files.get(f"instructions.{part}") for part in (*topics(which), "server")]
    return "\n\n".join(rendered(prompt.check("agent_id"), agent_id=agent) for prompt in prompts)
