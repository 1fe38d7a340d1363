"""`mulligan serve`: serves episodes and the bank over the Model Context Protocol."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from mulligan.cli.terminal import say
from mulligan.core.errors import InvalidInput
from mulligan.core.extras import require
from mulligan.mcp_server.lifecycle import unused_keys
from mulligan.web.tokens import Token, read_metrics_token

if TYPE_CHECKING:
    from mulligan.app.service import Service
    from mulligan.web.identity import IdentityProvider

LEVELS = ("debug", "info", "warning", "error")
CLIENTS = ("claude", "cursor", "vscode", "qoder", "cherry-studio", "json")


@click.command()
@click.option(
    "--transport",
    type=click.Choice(["stdio", "sse", "http"]),
    default="stdio",
    help="How clients connect to the server.",
)
@click.option("--host", default="127.0.0.1", metavar="HOST", help="Address to bind to (sse and http).")
@click.option("--port", type=int, default=8000, metavar="PORT", help="Port to bind to (sse and http).")
@click.option(
    "--tools",
    "which",
    default="all",
    metavar="NAMES",
    help="The tools to serve: reflexion, memory, all (both of these), scaling, hooks, goals, or names of individual "
    "tools.",
)
@click.option("--output-schemas", is_flag=True, help="Include output schemas in the tool list.")
@click.option(
    "--bank", "--agent-id", "agent_id", metavar="NAME", help="Serve only this agent. Clients cannot choose another one."
)
@click.option("--project", is_flag=True, help="Serve only the bank that the hooks use for this folder's project.")
@click.option(
    "--model", "-m", metavar="MODEL", help="The model that judges, extracts and solves (default: the client's own)."
)
@click.option("--embedder", metavar="NAME", help="The embedder used to find lessons: local, PROVIDER:MODEL or none.")
@click.option("--preset", type=click.Choice(["paper"]), help="Manage lessons as described in the ReasoningBank paper.")
@click.option(
    "--memory-depth",
    type=int,
    default=3,
    metavar="N",
    help="Number of reflections that the tool reflexion-thinking shows.",
)
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="URL",
    help="Origin of web pages that may call the server (sse and http).",
)
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Trust this reverse proxy's X-Forwarded-For and X-Forwarded-Host. Repeatable.",
)
@click.option("--issuer", metavar="URL", help="Accept access tokens from this OAuth identity provider (sse and http).")
@click.option("--jwks", metavar="FILE", help="The identity provider's public keys; requires --issuer.")
@click.option("--resource", metavar="URL", help="The URL at which callers reach this server; requires --issuer.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="ACTION=SCOPE",
    help="Scope that a token from the --issuer needs in order to read, write or administer. Repeatable.",
)
@click.option(
    "--rate",
    type=float,
    default=200.0,
    metavar="N",
    help="Maximum number of requests per second from each caller (0: no limit).",
)
@click.option(
    "--concurrency", type=int, default=64, metavar="N", help="Maximum number of concurrent requests (sse and http)."
)
@click.option(
    "--sessions/--no-sessions",
    default=None,
    help="Keep sessions for older clients over http (default: yes, unless other servers can use the store).",
)
@click.option(
    "--drain",
    type=float,
    default=10.0,
    metavar="S",
    help="When the server stops, wait up to S seconds for running calls to finish.",
)
@click.option(
    "--quota",
    multiple=True,
    metavar="NAME=N",
    help="Daily limit for each agent: calls=N, tokens=N, cost=DOLLARS. Repeatable.",
)
@click.option("--metrics", is_flag=True, help="Serve GET /metrics in Prometheus format (sse and http).")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="warning",
    help="The lowest level that is logged to standard error.",
)
@click.option("--log-json", is_flag=True, help="Log one JSON object per line.")
@click.option(
    "--print-config",
    type=click.Choice((*CLIENTS, "registry")),
    help="Print the configuration for this client, or a server.json for the MCP Registry, and exit.",
)
@click.option(
    "--print-prompt", is_flag=True, help="Print instructions that tell an agent how to use the memory, and exit."
)
def serve(**given: Any) -> None:
    """Serve reflexion-thinking and the memory tools to MCP clients.

    Over stdio, the protocol uses standard output. Logs are written to standard error. In --tools, separate names with
    commas, as in --tools retrieve_memory,extract_memory.
    """
    require("`mulligan serve` needs the MCP SDK", "mcp", "serve")
    if given["print_config"] or given["print_prompt"]:
        from mulligan.cli.serve_paste import printed

        printed(click.get_current_context())
        return
    from mulligan.mcp_server.sdk import import_server

    import_server()  # before anything that imports the SDK
    if given["project"]:
        given["agent_id"] = _bank_of_project(given["agent_id"])
    from mulligan.app.quotas import Quota
    from mulligan.app.service import ServerOptions, Service
    from mulligan.mcp_server.logs import logs_on_stderr

    same = {name: given[name] for name in ("agent_id", "model", "embedder", "preset", "output_schemas")}
    service = Service(ServerOptions(depth=given["memory_depth"], quota=Quota.parse(given["quota"]), **same))
    over_http = given["transport"] != "stdio"
    for name in () if over_http else ("host", "port", "metrics"):
        if click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise InvalidInput(f"--{name} needs HTTP: add --transport http, or omit --{name}.")
    tokens = Token.all_in_environment(given["agent_id"]) if over_http else ()
    for_metrics = read_metrics_token(tokens) if over_http else None
    identity = _identity(given["issuer"], given["jwks"], given["resource"], given["scopes"], over_http)
    secrets = [token.secret for token in (*tokens, for_metrics) if token]
    with logs_on_stderr(given["log_level"], as_json=given["log_json"], secrets=secrets):
        asyncio.run(_serving(service, tokens, {**given, "metrics_token": for_metrics, "identity": identity}))


def _identity(
    issuer: str | None, jwks: str | None, resource: str | None, scopes: Sequence[str], over_http: bool
) -> IdentityProvider | None:
    if issuer is None and jwks is None and resource is None and not scopes:
        return None
    if issuer is None or jwks is None or resource is None or not over_http:
        also = ", which --scope needs," if scopes else ""
        raise InvalidInput(
            f"--issuer, --jwks and --resource{also} must be used together, with --transport http or sse."
        )
    from mulligan.web.identity import IdentityProvider

    return IdentityProvider(issuer, jwks, resource, scopes)


def _bank_of_project(agent_id: str | None) -> str:
    """Returns the agent id of the bank that hooks use in this folder, or in the one that an agent's variable names."""
    from mulligan.hooks.journal import Journal
    from mulligan.hooks.project import project_id
    from mulligan.hooks.recall import store_file

    if agent_id is not None:
        raise InvalidInput("Use either --bank or --project: a project's bank has its own id.")
    folder = os.environ.get("CLAUDE_PROJECT_DIR") or os.environ.get("GEMINI_CWD") or os.getcwd()
    given, file = os.environ.get("MULLIGAN_STORE", ""), store_file()
    if given and given.removeprefix("sqlite:///") != file:
        click.echo(f"Hooks keep their banks in {file}, so --project does not use MULLIGAN_STORE.", err=True)
    os.environ["MULLIGAN_STORE"] = f"sqlite:///{file}"  # whatever a project's mulligan.toml says
    with Journal() as journal:
        return journal.bank_of(project_id(folder))


def _serving(service: Service, tokens: Sequence[Token], given: Mapping[str, Any]) -> Coroutine[Any, Any, None]:
    """Checks the model, and returns the coroutine that serves."""
    if given["model"] not in (None, "none"):  # its key is looked at when it is used
        from mulligan.app.model_roles import check_model

        check_model(service.model or "", service.config)
    for line in unused_keys(service):
        say(line)
    if given["transport"] == "stdio":
        if sys.stdin is not None and sys.stdin.isatty():
            say(
                "Serving MCP over this terminal; press Ctrl-C to stop. Clients start the server themselves: "
                "--print-config shows how"
            )
        from mulligan.mcp_server.stdio import serve_stdio

        return serve_stdio(service, given["which"])
    from mulligan.mcp_server.http import Listening, serve_http

    given = {**given, "tokens": tokens, "origins": given["allow_origin"]}
    listening = Listening(**{one.name: given[one.name] for one in fields(Listening)})
    return serve_http(service, given["which"], listening, lambda url: say(f"Serving MCP at {url}"))
