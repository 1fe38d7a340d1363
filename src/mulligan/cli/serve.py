"""`mulligan serve`: the episodes and the bank behind the Model Context Protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import click

CLIENTS = ("claude", "cursor", "vscode", "qoder", "cherry-studio", "json")


@click.command()
@click.option("--transport", type=click.Choice(["stdio", "sse", "http"]), default="stdio", help="How clients connect.")
@click.option("--host", default="127.0.0.1", metavar="HOST", help="Address to bind to, for sse and http.")
@click.option("--port", type=int, default=8000, metavar="PORT", help="Port to bind to, for sse and http.")
@click.option("--tools", "which", type=click.Choice(["reflexion", "memory", "all"]), default="all", help="Which tools.")
@click.option("--agent-id", metavar="NAME", help="Serve this agent alone: nobody can name another.")
@click.option("--model", metavar="MODEL", help="Who judges, extracts and solves (default: the client thinks).")
@click.option("--embedder", metavar="NAME", help="What finds lessons: local, PROVIDER:MODEL, none.")
@click.option("--preset", type=click.Choice(["paper"]), help="Remember as the ReasoningBank paper does.")
@click.option("--memory-depth", type=int, default=3, metavar="N", help="Reflections that reflexion-thinking shows.")
@click.option("--print-config", type=click.Choice(CLIENTS), help="Print what to paste into this client, and end.")
@click.option("--print-prompt", is_flag=True, help="Print the rules of the memory for an agent, and end.")
def serve(**given: Any) -> None:
    """Serve reflexion-thinking and the memory tools to MCP clients.

    Standard output belongs to the protocol; what is logged goes to standard error.
    """
    if given["print_config"] or given["print_prompt"]:
        from mulligan.cli.serve_paste import printed

        printed(click.get_current_context())
        return
    from mulligan.mcp_server.sdk import import_server

    import_server()  # before anything that imports the SDK
    from mulligan.app.service import Served, Service
    from mulligan.mcp_server.stdio import serve_stdio

    served = Served(given["agent_id"], given["model"], given["embedder"], given["preset"], given["memory_depth"])
    asyncio.run(serve_stdio(Service(served), given["which"]))
