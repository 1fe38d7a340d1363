"""The server over standard input and output: one client, one process."""

from __future__ import annotations

from mulligan.app.service import Service
from mulligan.mcp_server.serving import make_server, one_connection
from mulligan.mcp_server.wire import wire


async def serve_stdio(service: Service, which: str) -> None:
    """Serves until the client closes our input."""
    server = make_server(service, which, lambda _: one_connection(service.served.agent_id))
    try:
        async with wire() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    finally:
        await service.close()
