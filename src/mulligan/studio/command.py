"""`mulligan studio`."""

from __future__ import annotations

import asyncio
import webbrowser
from contextlib import suppress
from typing import Any

import click

from mulligan.plugins import require
from mulligan.terminal import say


@click.command()
@click.option("--open", "opens", is_flag=True, help="Open the studio in a browser.")
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="HOST",
    help="Address to bind to. Any address other than 127.0.0.1 requires MULLIGAN_TOKEN.",
)
@click.option("--port", type=int, default=8642, metavar="PORT", help="Port to bind to (default: 8642; 0: a free port).")
@click.option(
    "--bank",
    "--agent-id",
    "agent_id",
    metavar="NAME",
    help="Show only this agent's runs and bank (default: all agents).",
)
@click.option(
    "--write", is_flag=True, help="Allow changes, for example to lessons. Without this option, the studio is read-only."
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Another URL at which browsers reach the studio, such as a proxy's URL. Repeatable.",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Trust this reverse proxy's X-Forwarded-Host. Repeatable.",
)
def studio(opens: bool, agent_id: str | None, **options: Any) -> None:
    """Show runs, banks, coding agents and benchmarks live in a browser.

    By default, the studio is read-only and can be reached only from this machine. Press Ctrl-C to stop it.
    """
    for module, extra in (("starlette", "studio"), ("jinja2", "studio"), ("uvicorn", "studio")):
        require("`mulligan studio` needs its web server", module, extra)
    from mulligan.serving import ServerOptions, Service, Token
    from mulligan.studio.serving import serve_studio

    service, tokens = Service(ServerOptions(agent_id)), Token.all_in_environment(agent_id)

    def announce(url: str) -> None:
        say(
            f"The studio is at {url}/{' (add ?token=TOKEN the first time)' if tokens else ''}. Press Ctrl-C to stop it."
        )
        if opens and not webbrowser.open(url):
            say("No browser was found. Open this address yourself.")

    with suppress(KeyboardInterrupt):
        asyncio.run(serve_studio(service, announce, tokens=tokens, **options))
