"""`run` runs an agent that is defined in files on one task, as `mulligan run` does."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from mulligan.agentfile.agent import Agent
from mulligan.app.agents import config_of, find_agent, lends_model, load_agent, recipe_of, tools_of
from mulligan.app.config import load, prompts_folder
from mulligan.app.foresight import foresight_of
from mulligan.app.kinds import with_kind
from mulligan.app.options import RunOptions, taken_by
from mulligan.app.recipe import Recipe
from mulligan.app.runner import log
from mulligan.app.scaling import scaled
from mulligan.app.session import (
    Session,
    absolute,
    configured_limits,
    located,
    of_bank,
    with_limits,
    with_memory_settings,
)
from mulligan.app.toolbox import check_packages, needs_workspace
from mulligan.core.errors import InvalidInput
from mulligan.core.limits import Limits
from mulligan.core.records import Episode, Task


@taken_by(RunOptions)
async def run(*args: Any, **named: Any) -> Episode:
    """Run an agent on a task. The episode is recorded, and `mulligan.resume` continues it.

    agent: a name in the project's agents/, a path, or a built-in agent (code-improver, answerer, writer). An agent
    named by its path uses the settings, skills and records of its project. Options that you leave out are taken from
    the agent's files; kind may also come from the task. If the agent has a `memory`, bank is the one that it names, or
    else the agent's own; so it is with bank="".

    Returns:
        The episode. Without a judge, it ends as "exhausted" after one try, with `judged` False.

    Raises:
        InvalidInput: before any model is called, with every mistake in the files.
        StoreError: the record cannot be read or written.
        asyncio.CancelledError: the episode can be resumed.
    """
    options: RunOptions = RunOptions.from_call("run", args, named)
    here = load()
    task = Task(options.task) if isinstance(options.task, str) else options.task
    if not task.prompt.strip():
        raise InvalidInput("The task is empty: describe what to do.")
    folder = find_agent(options.agent, here)
    config = config_of(folder, here)
    agent, warnings = load_agent(folder, config)
    task = with_kind(task, (task.kind or agent.kind or None) if options.kind is None else options.kind, config)
    for warning in warnings:
        (options.notice or log.warning)(str(warning))
    session = Session.of(options, config, options.edit_reflections)
    if config.store != here.store:
        session.notice(
            f"{agent.name} belongs to the project {config.root}: its settings apply, and the run is recorded there. "
            f"To see or resume it, first: cd {shlex.quote(str(config.root))}"
        )
    recipe = _recipe(agent, options, session)
    async with session.runner(options.store, located(recipe), agent.name) as runner:
        return await runner.run(task)


def _recipe(agent: Agent, options: RunOptions, session: Session) -> Recipe:
    """The recipe of this agent with these options."""
    config, bank, settings = session.config, options.bank, options.settings or {}
    if bank == "" or (bank is None and agent.memory is not None):
        bank = (agent.memory and agent.memory.bank) or agent.name
    workspace_tools = [tool for tool in tools_of(agent) if needs_workspace(tool)]
    workspace = options.workspace
    is_foreign = agent.source.path.name != "AGENT.md"
    if workspace_tools and workspace is None and is_foreign:  # as the program that the agent comes from does
        workspace = Path.cwd()
        session.notice(f"{agent.name} works on a copy of {workspace}.")
    if workspace_tools and workspace is None:
        listed = ", ".join(workspace_tools)
        raise InvalidInput(f"{agent.name} works in a folder ({listed}): pass the folder with workspace=DIR.")
    if "workspace" in settings and workspace is None:
        raise InvalidInput("A mode needs a workspace: pass its folder (workspace=DIR).")
    check_packages(tools_of(agent))
    model = session.models.name(options.model)
    if lends_model(agent, config, model):
        session.notice(
            "reflect.md also uses the model of act.md: it names none, and the small local model does not judge for "
            "another model."
        )
    if options.max_iter is not None and agent.pattern == "oneshot" and agent.evaluate is None:
        session.notice(
            f"max_iter has no effect: {agent.name} is one model call without a judge. Add evaluate to its file."
        )
    limits = configured_limits(config, Limits(identical=None))
    recipe = recipe_of(agent, config, limits, model=model, max_iter=options.max_iter)
    recipe = replace(
        recipe,
        limits=with_limits(recipe.limits, options.limits),
        workspace=None if workspace is None else {"folder": absolute(workspace), **settings.get("workspace", {})},
        sandbox=options.sandbox or config.text("sandbox") or "auto",
        prompts=prompts_folder(config),
        edits=options.edit_reflections is not False,
        foresight=recipe.foresight if options.foresight is None else foresight_of(options.foresight),
        **of_bank(bank),
        seed=options.seed,
    )
    recipe = scaled(recipe, options.scale or agent.scale, [] if options.max_iter is None else ["trials"])
    memory = dict(settings.get("memory", {}))
    if agent.memory is not None:
        recipe = replace(recipe, learns=agent.memory.mode == "online")
        if agent.memory.forms and not memory.get("forms"):
            memory["forms"] = list(agent.memory.forms)
    return with_memory_settings(recipe, memory)
