"""`run` runs an agent that is kept as files on one task, as `mulligan run` does."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mulligan.app.agents import Overrides, config_of, find_agent, lends_model, load_agent, recipe_of, tools_of
from mulligan.app.config import load, prompts_folder
from mulligan.app.foresight import foresight_of
from mulligan.app.kinds import with_kind
from mulligan.app.model_roles import Models
from mulligan.app.runner import OnStart, log
from mulligan.app.scaling import scaled
from mulligan.app.session import (
    Session,
    absolute,
    asks_person,
    configured_limits,
    given_bank,
    located,
    of_bank,
    with_limits,
    with_memory_settings,
)
from mulligan.app.toolbox import check_packages, needs_workspace
from mulligan.app.workspaces import Notice
from mulligan.core.errors import InvalidInput
from mulligan.core.limits import Limits
from mulligan.core.protocols import Bank, Model, Observer, Store
from mulligan.core.records import Episode, Json, Task
from mulligan.recording.journal import StepObserver
from mulligan.reflectors._editing import Decide


async def run(
    agent: str | os.PathLike[str],
    task: str | Task,
    *,
    kind: str | None = None,
    model: str | Model | None = None,
    max_iter: int | None = None,
    scale: str | None = None,
    limits: Limits | Mapping[str, float | None] | None = None,
    workspace: str | os.PathLike[str] | None = None,
    mode: str | None = None,
    sandbox: str | None = None,
    seed: int = 0,
    edit_reflections: bool | Decide = False,
    bank: Bank | str | None = None,
    forms: Sequence[str] | str | None = None,
    foresight: str | Mapping[str, Json] | None = None,
    store: Store | None = None,
    observers: Sequence[Observer] = (),
    on_start: OnStart | None = None,
    on_step: StepObserver | None = None,
    notice: Notice | None = None,
) -> Episode:
    """Run an agent on a task. The episode is recorded, and `mulligan.resume` continues it.

    Args:
        agent: a name in the project's agents/, a path, or a built-in agent (code-improver, answerer, writer). An agent
            named by its path uses the settings, skills and records of the project that it lies in.
        kind: the kind of task, in free words. None is the task's own, else the agent's, else by the rules under [kinds]
            in mulligan.toml; "" is none.
        model: for every step, instead of what the agent's files say.
        max_iter: act-reflect cycles; of a react agent, model calls.
        scale: as for `solve`. None: what AGENT.md says.
        limits: all, or those that differ from the agent's.
        workspace, mode: the folder that tools and checks work in, and how it is kept apart.
        edit_reflections: as for `solve`.
        bank: as for `solve`. "" is the agent's own bank, or the one that its `memory` names. None is the same if the
            agent has a `memory`, else no bank.
        forms: what of the bank a task is shown (lessons, notebook, history), instead of what `memory` says.
        foresight: replaces what AGENT.md or mulligan.toml says: a name, or {"before": "delete", "checks": 3}.

    Returns:
        The episode. If nobody was to judge, it ends as "exhausted" after one trial, with `judged` False.

    Raises:
        InvalidInput: before any model is called, with every mistake in the files.
        StoreError: the record cannot be read or written.
        asyncio.CancelledError: the episode can be resumed.
    """
    here = load()
    wanted = Task(task) if isinstance(task, str) else task
    if not wanted.prompt.strip():
        raise InvalidInput("The task is empty: describe what to do.")
    folder = find_agent(agent, here)
    config = config_of(folder, here)
    found, warnings = load_agent(folder, config)
    wanted = with_kind(wanted, (wanted.kind or found.kind or None) if kind is None else kind, config)
    for warning in warnings:
        (notice or log.warning)(str(warning))
    if config.store != here.store:
        (notice or log.info)(
            f"{found.name} belongs to the project {config.root}: its settings count, and the run is recorded there. "
            f"To see or resume it, first: cd {shlex.quote(str(config.root))}"
        )
    if bank == "" or (bank is None and found.memory is not None):
        bank = (found.memory and found.memory.bank) or found.name
    needy = [tool for tool in tools_of(found) if needs_workspace(tool)]
    if needy and workspace is None:
        raise InvalidInput(f"{found.name} works in a folder ({', '.join(needy)}): name it with workspace=DIR.")
    check_packages(tools_of(found))
    models = Models(config)
    overrides = Overrides(models.name(model), max_iter)
    if lends_model(found, config, overrides):
        (notice or log.info)(
            "The model of act.md is asked in reflect.md, too: none is named there, and the small local model does not "
            "judge for another."
        )
    recipe = recipe_of(found, config, overrides, configured_limits(config, Limits(identical=None)))
    recipe = replace(
        recipe,
        limits=with_limits(recipe.limits, limits),
        workspace=_workspace(workspace, mode),
        sandbox=sandbox or config.text("sandbox") or "auto",
        prompts=prompts_folder(config),
        edits=asks_person(edit_reflections)[0],
        **of_bank(bank),
        seed=seed,
    )
    recipe = scaled(recipe, scale or found.scale, [] if max_iter is None else ["trials"])
    if foresight is not None:
        recipe = replace(recipe, foresight=foresight_of(foresight))
    if found.memory is not None:
        recipe = replace(recipe, learns=found.memory.mode == "online")
        forms = forms or found.memory.forms
    if forms is not None:
        recipe = with_memory_settings(recipe, {"forms": forms if isinstance(forms, str) else list(forms)})
    decide = asks_person(edit_reflections)[1]
    session = Session(config, models, {}, given_bank(bank), observers, on_start, on_step, notice, decide=decide)
    async with session.runner(store, located(recipe), found.name) as runner:
        return await runner.run(wanted)


def _workspace(folder: str | os.PathLike[str] | None, mode: str | None) -> dict[str, str] | None:
    if folder is None:
        if mode is not None:
            raise InvalidInput("A mode was given, and no workspace: name its folder (workspace=DIR).")
        return None
    return {"folder": absolute(folder) or "", **({"mode": mode} if mode else {})}
