"""Agents as files: those of the project, what is wrong with their files, live, and the files themselves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mulligan.agentfile.agent import Agent
from mulligan.agentfile.problems import Problem
from mulligan.app.agents import agents_of, read, tools_of
from mulligan.app.config import Config, read_project
from mulligan.app.lint import LintReport, lint
from mulligan.plugins import NotFound
from mulligan.studio.rendering import Studio, render, studio_of


@dataclass(frozen=True)
class Shown:
    """An agent of the project. agent: None if its files have errors."""

    name: str
    agent: Agent | None
    problems: Sequence[Problem]


async def agents(request: Request) -> Response:
    """The agents, with what `mulligan lint` finds in the project."""
    root, shown, report = await asyncio.to_thread(_project, studio_of(request))
    return render(request, "agents.html", root=root, agents=shown, report=report, live="/live/agents")


def _project(studio: Studio) -> tuple[Path, Sequence[Shown], LintReport]:
    """The folder of the project, its agents, and what is wrong in it now."""
    root = studio.root
    found = [_shown(name, folder, root) for name, folder in agents_of(Config(root)).items()]
    return root, found, lint(root) if found or studio.service.config.root else LintReport(())


def _shown(name: str, folder: Path, root: Path) -> Shown:
    agent, problems = read(folder, read_project(root)[0], strict=True)
    return Shown(name, agent, problems)


async def live(request: Request) -> Response:
    """Events whenever a file of the project's agents changes."""
    studio = studio_of(request)
    root = studio.root

    async def look() -> object:
        return await asyncio.to_thread(_stamps, root)

    return studio.listeners.stream(look)


def _stamps(root: Path) -> Mapping[str, tuple[int, int]]:
    """When each file that `lint` reads was changed, and its size."""
    files = [*root.glob("*.toml"), *root.glob("agents/**/*"), *root.glob("skills/**/*")]
    found = [(str(file), file.stat()) for file in files if file.is_file()]
    return {name: (stat.st_mtime_ns, stat.st_size) for name, stat in found}


async def agent(request: Request) -> Response:
    """An agent: its keys, what is wrong with it, and its files."""
    root, name = studio_of(request).root, str(request.path_params["name"])
    folder = agents_of(Config(root)).get(name)
    if folder is None:
        raise NotFound(f"This project has no agent {name!r} in its folder agents/.")
    shown = await asyncio.to_thread(_shown, name, folder, root)
    files = {source.path.name: source.text for source in shown.agent.sources} if shown.agent else _texts(folder)
    return render(
        request,
        "agent.html",
        shown=shown,
        keys=_keys(shown.agent) if shown.agent else {},
        files=files,
        live="/live/agents",
    )


def _texts(folder: Path) -> Mapping[str, str]:
    """The step files of an agent that cannot be read as one."""
    files = [file for file in sorted(folder.glob("*.md")) if file.is_file() and not file.is_symlink()]
    return {file.name: file.read_text(encoding="utf-8", errors="replace") for file in files}


def _keys(agent: Agent) -> Mapping[str, str]:
    """What the files set, in words."""
    steps = {"act": agent.act, "reflect": agent.reflect}
    models = [f"{name}: {step.model.role or step.model.name or 'as set'}" for name, step in steps.items() if step]
    memory = agent.memory
    said = {
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
        "Tools": ", ".join(tools_of(agent)),
        "Memory": f"bank {memory.bank or 'of its own'}, {memory.mode}" if memory else "",
    }
    return {name: text for name, text in said.items() if text}


routes = [Route("/agents", agents), Route("/live/agents", live), Route("/agents/{name}", agent)]
