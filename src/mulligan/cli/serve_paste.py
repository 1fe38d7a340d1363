"""The options --print-config and --print-prompt of `mulligan serve`: what to paste into a client or an agent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from mulligan.app.config import load, located_model
from mulligan.app.prompts import FilePrompts
from mulligan.app.service import ServerOptions
from mulligan.cli.terminal import emit, say
from mulligan.core.errors import InvalidInput
from mulligan.mcp_server.client_config import TOKEN, ServerCommand, client_config, environment, program, registry_entry
from mulligan.mcp_server.prompt_texts import memory_rules
from mulligan.mcp_server.tools import select_tools, topics
from mulligan.models.providers import PROVIDERS
from mulligan.web.hosts import is_loopback

_ELSEWHERE = ("transport", "host", "port", "print_config", "print_prompt")
"""Options that the configuration expresses in another way, or that are not about serving."""


def printed(context: click.Context) -> None:
    """Prints the requested text. Raises `InvalidInput` for options with which the server could not start."""
    given = context.params
    select_tools(given["which"])
    ServerOptions(given["agent_id"], given["model"], given["embedder"], given["preset"], given["memory_depth"])
    if given["print_config"] and given["print_prompt"]:
        raise InvalidInput("Use either --print-config or --print-prompt, not both.")
    if given["print_prompt"]:
        print_prompt(given["agent_id"], given["which"])
    else:
        print_config(given["print_config"], context)


def print_config(client: str, context: click.Context) -> None:
    """Prints the JSON on stdout, and where to paste it on stderr."""
    given = context.params
    if given["transport"] != "stdio" and not given["port"]:
        raise InvalidInput("A client needs to know the port: specify it with --port.")
    serving = ServerCommand(
        given["transport"],
        given["host"],
        given["port"],
        _typed(context),
        program(),
        environment(),
        token=bool(os.environ.get(TOKEN)) or not is_loopback(given["host"]),
        keys=_keys(given["model"]),
    )
    pasted = registry_entry(serving) if client == "registry" else client_config(client, serving)
    emit(json.dumps(pasted.config, ensure_ascii=False, indent=2))
    for note in pasted.notes:
        say(note)


def _keys(model: str | None) -> tuple[str, ...]:
    """Returns the variables for the key of this model's provider; empty if it needs none."""
    provider = PROVIDERS.get((model or "").partition(":")[0])
    return provider.keys if provider and not provider.keyless else ()


def print_prompt(agent_id: str | None, which: str) -> None:
    """Prints instructions for the use of the memory, to paste into an agent's own instructions."""
    if "memory" not in topics(which):
        raise InvalidInput(f"--print-prompt prints instructions for the memory tools: omit --tools {which}.")
    emit(memory_rules(FilePrompts.of(load()), agent_id))


def _typed(context: click.Context) -> tuple[str, ...]:
    """Returns the other options on the command line, with absolute paths, for clients that start in another folder."""
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        if name in _ELSEWHERE or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        words += _words(max(option.opts, key=len), context.params[name])
    return tuple(words)


def _words(option: str, value: Any) -> list[str]:
    if value is True:
        return [option]
    values = value if isinstance(value, tuple) else (value,)  # pyright: ignore[reportUnknownVariableType]
    texts = [located_model(str(one), Path.cwd()) if option == "--model" else str(one) for one in values]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [word for one in texts for word in (option, one)]
