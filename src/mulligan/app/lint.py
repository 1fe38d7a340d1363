"""Finds every mistake in a project, an agent, a skill or a single file, without calling or starting anything."""

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
    """Checks the project, agent, skill, folder of agents or skills, or file at this path.

    Raises:
        InvalidInput: the path does not exist or contains nothing to check.
    """
    absolute = Path(path).expanduser().absolute()
    if not os.path.lexists(absolute):
        raise InvalidInput(f"{path} does not exist.")
    root = project_root(absolute if absolute.is_dir() else absolute.parent)
    project_problems = check_project(root) if root else []
    config = Config()
    if root:
        broken = any(problem.level == "error" for problem in project_problems)
        config = None if broken else read_project(root)[0]
    agents, skills, checks_project = _targets(absolute)
    if not (agents or skills or checks_project):
        raise InvalidInput(
            f"There is nothing to check in {path}: specify a project (a folder with {FILE} or agents/), an agent's "
            "or skill's folder, or one of its files."
        )
    known = config or Config(root)
    problems = [*project_problems] if checks_project or config is None else []
    pairs = [
        read(folder, config, strict=True) if config else read_agent(folder, skill_folders(folder, known), strict=True)
        for folder in agents
    ]
    problems += [problem for _, agent_problems in pairs for problem in agent_problems]
    problems += _shared_names(agent for agent, _ in pairs if agent is not None)
    for folder in skills:
        problems += _skill_problems(folder, config, known)
    return LintReport(tuple(dict.fromkeys(problems)), len(agents), len(skills))


def _targets(at: Path) -> tuple[list[Path], list[Path], bool]:
    """The folders of agents and skills at this path, and whether to check the project file."""
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
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in entries if path.is_dir() and not path.name.startswith(".")]


def _shared_names(agents: Iterable[Agent]) -> list[Problem]:
    """Problems with names that two agents share: `mulligan run NAME` could mean either."""
    first_by_name: dict[str, Agent] = {}
    problems: list[Problem] = []
    for agent in agents:
        other = first_by_name.setdefault(agent.name, agent)
        if other is not agent:
            why = (
                f"the name {agent.name!r} is taken: {other.folder.name}/AGENT.md also has it. Give each agent its "
                "own name."
            )
            problems.append(agent.source.problem("name", why))
    return problems


def _skill_problems(folder: Path, config: Config | None, here: Config) -> list[Problem]:
    """Problems of one skill, whether an agent uses it or not."""
    skills = Skills([folder.parent, *skill_folders(folder, here)])
    if not skill_file(folder):
        return [Problem(folder / "SKILL.md", None, "this file does not exist, so the folder is not a skill.")]
    skills.reach([SkillUse(folder.name, Source(folder / "SKILL.md"), "")])
    skills_read = with_own_tools(skills.found, skills.sources)
    tool_problems = check_skills(skills_read, skills.sources, config) if config else []
    return [*skills.problems, *tool_problems]
