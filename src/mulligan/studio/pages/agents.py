"""The pages of the project's agents: their files, and what is wrong with them, live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mulligan.plugins import NotFound
from mulligan.running import ProjectAgent, lint
from mulligan.studio.rendering import render, studio_of


async def agents(request: Request) -> Response:
    """The list of agents, with what `mulligan lint` reports about the project."""
    studio = studio_of(request)
    listed = await asyncio.to_thread(ProjectAgent.all_in, studio.root)
    report = await asyncio.to_thread(lint, studio.root) if listed or studio.service.config.root else None
    return render(request, "agents.html", root=studio.root, agents=listed, report=report, live="/live/agents")


async def live(request: Request) -> Response:
    """Sends an event when a file of the project's agents changes."""
    studio = studio_of(request)
    root = studio.root

    async def look() -> object:
        return await asyncio.to_thread(_stamps, root)

    return studio.listeners.stream(look)


def _stamps(root: Path) -> Mapping[str, tuple[int, int]]:
    """The modification time and the size of each file that `lint` reads."""
    files = [*root.glob("*.toml"), *root.glob("agents/**/*"), *root.glob("skills/**/*")]
    stats = {str(file): file.stat() for file in files if file.is_file()}
    return {name: (stat.st_mtime_ns, stat.st_size) for name, stat in stats.items()}


async def agent(request: Request) -> Response:
    """The page of an agent: its keys, what is wrong with it, and its files."""
    name = str(request.path_params["name"])
    listed = await asyncio.to_thread(ProjectAgent.all_in, studio_of(request).root)
    shown = next((agent for agent in listed if agent.name == name), None)
    if shown is None:
        raise NotFound(f"This project has no agent {name!r} in its agents/ folder.")
    files = {source.path.name: source.text for source in shown.agent.sources} if shown.agent else _texts(shown.folder)
    return render(request, "agent.html", shown=shown, keys=_keys(shown), files=files, live="/live/agents")


def _texts(folder: Path) -> Mapping[str, str]:
    """The step files of an agent that cannot be loaded."""
    files = [file for file in sorted(folder.glob("*.md")) if file.is_file() and not file.is_symlink()]
    return {file.name: file.read_text(encoding="utf-8", errors="replace") for file in files}


def _keys(shown: ProjectAgent) -> Mapping[str, str]:
    """What the files set, by labels. Keys that are not set are left out."""
    agent = shown.agent
    if agent is None:
        return {}
    steps = {"act": agent.act, "reflect": agent.reflect}
    models = [
        f"{name}: {step.model.role or step.model.name or 'as configured'}" for name, step in steps.items() if step
    ]
    memory = agent.memory
    labelled = {
        "Name": agent.name,
        "Description": agent.description,
        "Version": agent.version,
        "Pattern": agent.pattern,
        "Models": ", ".join(models),
        "Tries": str(agent.max_iter),
        "Strategy": agent.strategy or "",
        "Evaluate": json.dumps(dict(agent.evaluate), ensure_ascii=False) if agent.evaluate else "",
        "Kind of task": agent.kind,
        "Skills": ", ".join(agent.skills),
        "Tools": ", ".join(shown.tools),
        "Memory": f"{f'bank {memory.bank}' if memory.bank else 'own bank'}, {memory.mode}" if memory else "",
    }
    return {name: text for name, text in labelled.items() if text}


routes = [Route("/agents", agents), Route("/live/agents", live), Route("/agents/{name}", agent)]
