"""Finds every mistake in a project, an agent, a skill or one file. Calls no model and starts nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mulligan.agentfile.agent import Agent, Source
from mulligan.agentfile.problems import Problem
from mulligan.agentfile.reading import read_agent
from mulligan.agentfile.skills import Skills, SkillUse, skill_file
from mulligan.app.agents import agents_of, check_skills, read, skill_folders, with_own_tools
from mulligan.app.config import FILE, TAMA, Config, project_file, project_root, read_project
from mulligan.app.project_file import check_project
from mulligan.core.errors import InvalidInput

STEPS = ("AGENT.md", "act.md", "reflect.md")


@dataclass(frozen=True)
class LintReport:
    """The number of agents and skills that were checked, and the problems, file by file."""

    problems: tuple[Problem, ...]
    agents: int = 0
    skills: int = 0

    @property
    def ok(self) -> bool:
        return not any(problem.level == "error" for problem in self.problems)


def lint(path: str | os.PathLike[str] = ".") -> LintReport:
    """path: a project's folder, an agent's, a skill's, a folder of such, or one of their files.

    Raises `InvalidInput` for a path that leads nowhere, or to nothing that can be checked.
    """
    at = Path(path).expanduser().absolute()
    if not os.path.lexists(at):
        raise InvalidInput(f"{path} does not exist.")
    root = project_root(at if at.is_dir() else at.parent)
    broken = check_project(root) if root else []
    config = _config(root) if not any(problem.level == "error" for problem in broken) else None
    agents, skills, whole = _meant(at)
    if not (agents or skills or whole):
        raise InvalidInput(
            f"There is nothing to check in {path}: name a project (a folder with {FILE} or agents/), the folder of an "
            "agent or of a skill, or one of their files."
        )
    here = config or Config(root)
    problems = [*broken] if whole or config is None else []
    pairs = [
        read(folder, config, strict=True) if config else read_agent(folder, skill_folders(folder, here), strict=True)
        for folder in agents
    ]
    problems += [problem for _, found in pairs for problem in found]
    problems += _taken(agent for agent, _ in pairs if agent is not None)
    for folder in skills:
        problems += _skill(folder, config, here)
    return LintReport(tuple(dict.fromkeys(problems)), len(agents), len(skills))


def _config(root: Path | None) -> Config:
    return read_project(root)[0] if root else Config()


def _meant(at: Path) -> tuple[list[Path], list[Path], bool]:
    """The folders of agents and skills at this path, and whether the project file is to be checked."""
    if at.is_file():
        folder = at.parent
        return (
            [folder] if at.name in STEPS else [],
            [folder] if at.name.lower() == "skill.md" else [],
            at.name in (FILE, TAMA),
        )
    if any((at / name).is_file() for name in STEPS):
        return [at], [], False
    if skill_file(at):
        return [], [at], False
    if at.name in ("agents", "skills"):
        inside = _folders(at)
        return (inside, [], False) if at.name == "agents" else ([], inside, False)
    project = project_file(at) is not None or (at / "agents").is_dir()
    return list(agents_of(Config(at)).values()), _folders(at / "skills"), project


def _folders(folder: Path) -> list[Path]:
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in found if path.is_dir() and not path.name.startswith(".")]


def _taken(agents: Iterable[Agent]) -> list[Problem]:
    """Names that two agents share: `mulligan run NAME` could mean either."""
    first: dict[str, Agent] = {}
    found: list[Problem] = []
    for agent in agents:
        other = first.setdefault(agent.name, agent)
        if other is not agent:
            why = (
                f"the name {agent.name!r} is taken: {other.folder.name}/AGENT.md also has it. Give each agent its "
                "own name."
            )
            found.append(agent.source.problem("name", why))
    return found


def _skill(folder: Path, config: Config | None, here: Config) -> list[Problem]:
    """Problems of one skill, whether an agent uses it or not."""
    skills = Skills([folder.parent, *skill_folders(folder, here)])
    if not skill_file(folder):
        return [Problem(folder / "SKILL.md", None, "this file does not exist, so the folder is not a skill.")]
    skills.reach([SkillUse(folder.name, Source(folder / "SKILL.md"), "")])
    own = with_own_tools(skills.found, skills.sources)
    found = check_skills(own, skills.sources, config) if config else []
    return [*skills.problems, *found]
