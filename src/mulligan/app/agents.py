"""Finds agents, checks the names in their files, and turns an agent into a recipe: who acts, who judges, which models.

`agentfile` reads the files; this module compares them with the plug-ins and mulligan.toml.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from mulligan.agentfile.agent import Agent, Source, StepSpec
from mulligan.agentfile.checking import meant
from mulligan.agentfile.problems import Problem, problem_of, refuse
from mulligan.agentfile.reading import read_agent
from mulligan.agentfile.scaffold import builtin_agents
from mulligan.agentfile.subagents import FOLDERS, subagents
from mulligan.app.config import Config, load, project_root, read_project
from mulligan.app.foresight import foresight_of
from mulligan.app.model_roles import ROLE_MODELS, StepModel, chosen, implicit, role_models
from mulligan.app.plugin_files import is_code, is_own
from mulligan.app.plugins import check_setting, examine, file_of, names, tried
from mulligan.app.recipe import Recipe, settled
from mulligan.app.scaling import scaled
from mulligan.app.session import with_limits
from mulligan.app.tasks import plugin_beside, spec_beside, tests_spec
from mulligan.app.toolbox import check_tools, is_server
from mulligan.app.trust import Contents, code_named, contents, untrusted
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.limits import Limits
from mulligan.core.records import Json, Spec
from mulligan.models.steps import Skill, StepFile

FROM_FILES = ("actor", "evaluator", "reflector", "strategy", "model", *ROLE_MODELS, "top_k", "agent")
"""The fields of a recipe that a resume takes from the agent's files as they are now. The others stay as recorded."""

SKILLS = ("skills", ".agents/skills", ".claude/skills")
"""The folders of a project's skills: Mulligan's own, that of the open standard, and Claude Code's."""

DEFAULT_MAX_ITER = 10
"""The default maximum of model calls of a react step."""


def agents_of(config: Config) -> dict[str, Path]:
    """The project's agents by name: the folders in agents/, and the files of agents of other programs."""
    project = config.root or Path.cwd()
    folder = project / "agents"
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    folders = {path.name: path for path in entries if path.is_dir() and not path.name.startswith(".")}
    return folders | {name: path for name, path in subagents(project).items() if name not in folders}


@dataclass(frozen=True)
class ProjectAgent:
    """A project's agent, and all problems with its files.

    Attributes:
        agent: None if the files have errors.
    """

    name: str
    folder: Path
    agent: Agent | None
    problems: Sequence[Problem]

    @property
    def tools(self) -> Sequence[str]:
        """The tools that the agent can call, including those that its skills can unlock."""
        return tools_of(self.agent) if self.agent else ()

    @classmethod
    def all_in(cls, root: Path) -> Sequence[ProjectAgent]:
        """Returns the agents of the project in this folder.

        Calls no model.

        Raises:
            InvalidInput: the project file is invalid.
        """
        folders = agents_of(Config(root)).items()
        config = read_project(root)[0] if folders else Config(root)
        return [cls(name, folder, *read(folder, config, strict=True)) for name, folder in folders]


def find_agent(agent: str | os.PathLike[str], config: Config) -> Path:
    """The folder or file of an agent: given by a path, by its name in agents/ or in the folders of other programs, by
    the `name` in its file, or by the name of a built-in agent.

    Raises `UnknownName` with the nearest name, and `InvalidInput` if the path does not exist or two agents have the
    same name.
    """
    text = str(agent)
    path = Path(text).expanduser()
    if path.name == "AGENT.md" and path.is_file():
        return path.resolve().parent
    if os.sep in text or text in (".", "..") or not isinstance(agent, str):
        if path.is_file() and path.suffix in FOLDERS.values():
            return path.resolve()
        if not path.is_dir():
            raise InvalidInput(f"The agent's folder {text} does not exist.")
        return path.resolve()
    own = agents_of(config)
    if text in own:
        return own[text]
    named = [folder for folder in own.values() if _name(folder) == text]
    if len(named) > 1:
        raise InvalidInput(
            f"{len(named)} agents are named {text!r}: {', '.join(map(str, named))}. Pass the folder of the one to run."
        )
    if named:
        return named[0]
    if path.is_dir() and (path / "AGENT.md").is_file():
        return path.resolve()
    shipped = builtin_agents()
    if text not in shipped:
        where = "" if own else "There is no agent in agents/ here: mulligan add reflexion NAME makes one."
        raise UnknownName("agent", text, {*own, *shipped}, where)
    return shipped[text]


def config_of(folder: Path, here: Config) -> Config:
    """The configuration of the project that contains an agent's folder. For a built-in agent, or without a project, it
    is `here`, that of the working folder. Raises `InvalidInput` for a broken file."""
    root = None if folder in builtin_agents().values() else project_root(folder)
    return here if root in (None, here.root) else load(root)


def read(folder: Path, config: Config, *, strict: bool) -> tuple[Agent | None, list[Problem]]:
    """The agent in this folder, and every problem with it, in the order of its files. Calls no model."""
    agent, problems = read_agent(folder, skill_folders(folder, config), strict=strict)
    if agent is not None:
        agent = with_skill_files(agent)
        problems = [*problems, *check(agent, config)]
        skills = {
            name: replace(skill, tools=tuple(tool for tool in skill.tools if _exists(tool, config)))
            for name, skill in agent.skills.items()
        }
        agent = replace(agent, skills=skills)
    return agent, problems


def with_skill_files(agent: Agent) -> Agent:
    """The agent, with full paths for the tools of its skills that are files."""
    return replace(agent, skills=with_own_tools(agent.skills, agent.skill_sources))


def agent_contents(agent: Agent) -> Contents:
    """What an agent's files run or redirect: commands and code that judge, reflect or serve as tools, files outside its
    folder, and the bank that it reads."""
    plugins = {
        "evaluate": agent.evaluate and agent.evaluate.get("evaluator"),
        "reflect": agent.reflector and agent.reflector.get("reflector"),
        "strategy": agent.strategy,
        "foresight": agent.foresight and agent.foresight.get("name"),
    }
    values: dict[str, Any] = {key: name for key, name in plugins.items() if isinstance(name, str) and is_own(name)}
    evaluate = agent.evaluate or {}
    folder = agent.folder.resolve()
    named_files = [evaluate.get("tests"), *(cast(Any, v).get("file") for v in evaluate.values() if isinstance(v, dict))]
    files_elsewhere = [file for file in named_files if file and folder not in (folder / str(file)).resolve().parents]
    if "check" in evaluate or str(evaluate.get("evaluator")).partition(":")[0] == "command" or files_elsewhere:
        values["evaluate"] = dict(evaluate)
    if agent.memory is not None:
        values["memory.bank"] = agent.memory.bank or agent.name
    for step in steps_of(agent):
        if step.model.name and step.model.name.endswith(".gguf"):
            values[f"model of {step.source.path.name}"] = step.model.name
    links = [source.path for source in agent.sources if source.path.is_symlink() or source.path.parent.is_symlink()]
    values |= {f"link {path.name}": os.path.relpath(os.path.realpath(path), folder) for path in links}
    skills = {n: s.path for n, s in agent.skill_sources.items() if not s.path.is_relative_to(Path.home() / ".agents")}
    if agent.all_skills:
        values |= {f"skill {name}": agent.skill_sources[name].text for name in skills}
    runs = skills if "run_command" in tools_of(agent) else {}
    scripts = {n: path for n, path in runs.items() if any(f.is_file() and is_code(f) for f in path.parent.rglob("*"))}
    values |= {f"scripts of {name}": "" for name in scripts}
    tools = [tool for tool in tools_of(agent) if is_own(tool)]
    values |= {f"tool {os.path.relpath(tool, agent.folder) if file_of(tool) else tool}": "" for tool in tools}
    code = [*code_named([*plugins.values(), evaluate.get("check"), *tools], agent.folder), *scripts.values()]
    sources = [source.path for source in agent.sources]
    return contents(agent.folder, sources, values, code, {})


def with_own_tools(skills: Mapping[str, Skill], sources: Mapping[str, Source]) -> dict[str, Skill]:
    """The skills, with full paths for tools that are files (`./mine.py`), relative to the skill's folder."""

    def located(tool: str, folder: Path) -> str:
        return str((folder / tool).resolve()) if file_of(tool) else tool

    return {
        name: replace(skill, tools=tuple(located(tool, sources[name].path.parent) for tool in skill.tools))
        for name, skill in skills.items()
    }


def skill_folders(folder: Path, config: Config) -> Sequence[Path]:
    """The folders of skills for an agent or a skill in this folder. Without a project file, the project is the folder
    that contains `agents/` or `skills/`, or else the working folder."""
    around = config.root or (folder.parent.parent if folder.parent.name in ("agents", "skills") else Path.cwd())
    return [*(around / name for name in SKILLS), Path.home() / ".agents" / "skills"]


def load_agent(folder: Path, config: Config) -> tuple[Agent, list[Problem]]:
    """The agent, and the warnings. Raises `InvalidInput` with every error, and if the agent runs or redirects something
    and is not trusted."""
    agent, problems = read(folder, config, strict=False)
    refuse(problems)
    assert agent is not None, "an agent that cannot be used has an error"
    if not (needs_trust := agent_contents(agent)).trusted:
        raise InvalidInput(untrusted(needs_trust))
    needs_trust.hold()
    return agent, problems


@dataclass
class _ProblemCollector:
    """Collects errors as problems, each at the key of the agent's file, or the line of mulligan.toml, that causes
    it."""

    config: Config
    problems: list[Problem] = field(default_factory=list[Problem])

    @contextmanager
    def at(self, source: Source, key: str) -> Generator[None]:
        try:
            yield
        except InvalidInput as error:
            elsewhere = problem_of(self.config.root / self.config.file, error) if self.config.root else None
            problem = elsewhere or source.problem(key, str(error))
            if problem not in self.problems:
                self.problems.append(problem)


def check(agent: Agent, config: Config) -> list[Problem]:
    """Problems with names in the files: model roles, plug-ins, settings and tools that do not exist or are invalid."""
    collector = _ProblemCollector(config)
    for step in steps_of(agent):
        with collector.at(step.model.source or step.source, step.model.key):
            chosen(config, step.model, step.pattern, None)
    if agent.evaluate is not None:
        _check_evaluator(agent, agent.evaluate, collector)
    if agent.reflector is not None:
        with collector.at(agent.source, "reflect"):
            tried("reflectors", reflector_of(agent, agent.reflector))
    if agent.strategy is not None:
        with collector.at(agent.source, "strategy"):
            tried("strategies", plugin_beside("strategies", agent.folder, agent.strategy))
    with collector.at(agent.source, "foresight"):
        if agent.foresight:
            tried("foresights", foresight_of(agent.foresight, agent.folder))
    with collector.at(agent.source, "limits"):
        limits_of(agent, Limits())
    return [*collector.problems, *check_skills(agent.skills, agent.skill_sources, config)]


def _check_evaluator(agent: Agent, given: Mapping[str, Json], collector: _ProblemCollector) -> None:
    judge = next(key for key in ("tests", "check", "evaluator") if key in given)
    count_before = len(collector.problems)
    with collector.at(agent.source, f"evaluate.{judge}"):
        spec = evaluator_of(agent)
        cls = examine("evaluators", spec.name)
        values = settled(spec.settings, {})
        for key in given:
            if key != judge:
                with collector.at(agent.source, f"evaluate.{key}"):
                    check_setting(spec.name, cls, key, values[key])
        if len(collector.problems) == count_before:
            tried("evaluators", Spec(spec.name, values))


def check_skills(skills: Mapping[str, Skill], sources: Mapping[str, Source], config: Config) -> list[Problem]:
    """Problems with the tools of skills: errors if they are not set up, and warnings if they are unknown, because
    skills are often written for other programs."""
    collector = _ProblemCollector(config)
    for name, source in sources.items():
        unknown = [tool for tool in skills[name].tools if not _exists(tool, config)]
        if unknown:
            hint = next(filter(None, (meant(tool, names("tools")) for tool in unknown)), "")
            message = f"these tools do not exist in Mulligan and are left out: {', '.join(unknown)}.{hint}"
            collector.problems.append(source.problem("tools", message, "warning"))
        for number, tool in enumerate(skills[name].tools):
            if tool in unknown:
                continue
            with collector.at(source, f"tools.{number}"):
                check_tools([tool], config.table("tools"), config.table("mcp"))
                if file_of(tool):
                    _check_methods(tool)
    return collector.problems


def _exists(tool: str, config: Config) -> bool:
    """Whether a tool of this name exists, even if it is not set up. Servers are set up by the user alone."""
    if is_server(tool):
        return True
    try:
        check_tools([tool], config.table("tools"), config.table("mcp"))
    except UnknownName:
        return False
    except InvalidInput:
        pass
    return True


def _check_methods(tool: str) -> None:
    cls = examine("tools", tool)
    if getattr(cls, "unread", False):
        return
    if missing := [f"{name}()" for name in ("offer", "call", "close") if not hasattr(cls, name)]:
        raise InvalidInput(f"{cls.__name__} in {file_of(tool)} is not a tool: it has no {', '.join(missing)}.")


def steps_of(agent: Agent) -> tuple[StepSpec, ...]:
    return (agent.act, *((agent.reflect,) if agent.reflect else ()))


def tools_of(agent: Agent) -> list[str]:
    """The tools that an agent can call, including those that its skills may unlock."""
    unlocked = (tool for skill in agent.skills.values() for tool in skill.tools)
    return list(dict.fromkeys([*(tool for step in steps_of(agent) for tool in step.tools), *unlocked]))


def recipe_of(
    agent: Agent,
    config: Config,
    limits: Limits = Limits(identical=None),
    *,
    model: str | None = None,
    max_iter: int | None = None,
) -> Recipe:
    """The recipe of an agent. A reflexion agent's reflector is also the judge, unless it has `evaluate`. An agent of
    one step without a judge is tried once.

    Args:
        limits: those of mulligan.toml; the agent's own limits override them.
        model, max_iter: override the agent's files, for every step.
    """
    act = chosen(config, agent.act.model, agent.act.pattern, model)
    default = "none" if agent.evaluate is None else "evidence" if agent.reflector is None else "evidence_and_reflexion"
    recipe = Recipe(
        actor=Spec("agent", {"step": _step(agent.act, agent, act, max_iter)}),
        evaluator=Spec("unjudged") if agent.evaluate is None else evaluator_of(agent),
        reflector=Spec("verbal") if agent.reflector is None else reflector_of(agent, agent.reflector),
        strategy=_strategy_of(agent, default),
        limits=limits_of(agent, limits, max_iter),
        model=act.name,
        **role_models(config),
        foresight=_foresight(agent, config),
        top_k=agent.memory.top_k if agent.memory else None,
        agent={
            "folder": str(agent.folder if agent.source.path.name == "AGENT.md" else agent.source.path),
            "files": [*(str(source.path) for source in agent.sources), *filter(None, map(file_of, tools_of(agent)))],
            "model": model,
            "max_iter": max_iter,
        },
    )
    if agent.reflect is None:
        return recipe
    reviewer = chosen(config, agent.reflect.model, agent.reflect.pattern, model)
    if lends_model(agent, config, model):
        reviewer = replace(reviewer, name=act.name)
    settings = {"step": _step(agent.reflect, agent, reviewer, max_iter)}
    if agent.evaluate is not None:
        strategy = _strategy_of(agent, "last_attempt_and_reflexion")
        return replace(recipe, reflector=Spec("review", settings), strategy=strategy, reflect_model=reviewer.name)
    judged = {} if agent.judge_last else {"judged": recipe.limits.trials - 1}
    return replace(
        recipe,
        evaluator=Spec("review", {**settings, **judged}),
        reflector=Spec("feedback"),
        strategy=_strategy_of(agent, "last_attempt"),
        judge_model=reviewer.name,
    )


def remade(recorded: Recipe, config: Config, model: str | None) -> Recipe:
    """The recipe of a recorded run, made anew from the agent's files. model: overrides the recorded option.

    Raises `InvalidInput` if the files are gone or broken.
    """
    options: Any = recorded.agent
    agent, _ = load_agent(find_agent(Path(options["folder"]), config), config)
    recipe = recipe_of(agent, config, recorded.limits, model=model or options["model"], max_iter=options["max_iter"])
    recipe = scaled(recipe, recorded.scale)
    current = {name: getattr(recipe, name) for name in FROM_FILES}
    if model is None:  # a run that began with the embedded model as its judge keeps it
        judges = {key: getattr(recorded, key) for key in ("judge_model", "reflect_model")}
        current |= {key: name for key, name in judges.items() if name and implicit(config, name)}
    if agent.strategy is None:  # the default may have changed since the run began
        current["strategy"] = recorded.strategy
    return replace(recorded, **current)


def evaluator_of(agent: Agent) -> Spec:
    """The evaluator that `evaluate` names. Its files are relative to the agent's folder."""
    settings: dict[str, Json] = dict(agent.evaluate or {})
    if "tests" in settings:
        spec = tests_spec(agent.folder / str(settings.pop("tests")))
    elif "check" in settings:
        spec = Spec("command", {"check": settings.pop("check")})
    else:
        return spec_beside("evaluators", agent.folder, str(settings.pop("evaluator")), settings)
    return Spec(spec.name, {**spec.settings, **settings})


def reflector_of(agent: Agent, given: Mapping[str, Json]) -> Spec:
    """The reflector that `reflect` names. Its files are relative to the agent's folder."""
    settings = {key: value for key, value in given.items() if key != "reflector"}
    return spec_beside("reflectors", agent.folder, str(given["reflector"]), settings)


def _strategy_of(agent: Agent, default: str) -> Spec:
    return plugin_beside("strategies", agent.folder, agent.strategy or default)


def limits_of(agent: Agent, base: Limits, max_iter: int | None = None) -> Limits:
    """The limits of `base`, with the agent's own limits in their place. Raises `InvalidInput`, `UnknownName`."""
    limits = with_limits(base, agent.limits)  # pyright: ignore[reportArgumentType]
    trials = agent.limits.get("trials") or (agent.max_iter if agent.pattern == "reflexion" else 1)
    cycles = agent.pattern == "reflexion" or (agent.pattern == "oneshot" and agent.evaluate is not None)
    return replace(limits, trials=(max_iter if cycles else None) or trials)


def _foresight(agent: Agent, config: Config) -> Spec | None:
    """The foresight that the agent's file asks for; else, if it has tools, that of mulligan.toml."""
    if agent.foresight is not None:
        return None if agent.foresight is False else foresight_of(agent.foresight, agent.folder)
    if "foresight" not in config.values or not tools_of(agent):
        return None
    with config.errors_at("foresight"):
        return foresight_of(config.table("foresight"), config.root or Path.cwd())


def lends_model(agent: Agent, config: Config, model: str | None) -> bool:
    """Whether reflect.md also uses the model of act.md, because only act.md's was named.

    The embedded model, which nobody named, does not judge or reflect for another model.
    """
    if agent.reflect is None:
        return False
    act, reviewer = (chosen(config, step.model, step.pattern, model).name for step in (agent.act, agent.reflect))
    return implicit(config, reviewer) and not implicit(config, act)


def _step(step: StepSpec, agent: Agent, model: StepModel, max_iter: int | None) -> Json:
    """The step as JSON, for its role. max_iter: overrides that of a react agent's step."""
    override = max_iter if agent.pattern == "react" else None
    file = StepFile(
        instructions=step.body,
        pattern=step.pattern,
        temperature=model.temperature,
        max_tokens=model.max_tokens,
        max_iter=override or step.max_iter or DEFAULT_MAX_ITER,
        uses=step.uses,
        skills=_reachable(step.uses, agent.skills),
        tools=step.tools,
    )
    return file.to_json()


def _reachable(names: Sequence[str], skills: Mapping[str, Skill]) -> dict[str, Skill]:
    """The skills of these names, and those that they use."""
    skills_found: dict[str, Skill] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        if name not in skills_found:
            skills_found[name] = skills[name]
            waiting += skills[name].uses
    return skills_found


def _name(folder: Path) -> str | None:
    """The `name` in an agent's file; None if it cannot be read."""
    agent, _ = read_agent(folder, (), strict=False)
    return agent.name if agent else None
