"""Reads the folder of an agent and reports every problem of its files at once, without raising.

`app.agents` checks whether the named models, plug-ins and tools exist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel

from mulligan.agentfile.agent import Agent, Memory, ModelChoice, Source, StepSpec
from mulligan.agentfile.checking import checked
from mulligan.agentfile.frontmatter import Document, read_document
from mulligan.agentfile.problems import Problem
from mulligan.agentfile.schema import (
    FOREIGN_KEYS,
    FOREIGN_PATTERNS,
    AgentFile,
    EvaluateTable,
    MemoryTable,
    ModelTable,
    ReflectTable,
    StepKeys,
)
from mulligan.agentfile.skills import Skills, SkillUse, misnamed, uses
from mulligan.agentfile.subagents import FOLDERS, read_subagent
from mulligan.core.records import Json

M = TypeVar("M", bound=BaseModel)

CYCLES = 4
"""The default number of act-reflect cycles of a reflexion agent, as in tama."""


def read_agent(folder: Path, skills: Sequence[Path], *, strict: bool) -> tuple[Agent | None, list[Problem]]:
    """The agent, and every problem of its files in order, AGENT.md first. The agent is None if a problem is an error.

    Args:
        skills: folders that contain `<name>/SKILL.md`; the agent's own `skills/` is searched before them.
        strict: an unknown key is an error instead of a warning, and prompts are checked, too (`lint`).
    """
    if folder.suffix in FOLDERS.values() and folder.is_file():  # the file of an agent of another program
        return read_subagent(folder)
    reading = _Reading(folder, skills, strict)
    agent = reading.agent()
    first = (folder / name for name in ("AGENT.md", "act.md", "reflect.md"))
    files = list(dict.fromkeys((*first, *(problem.file for problem in reading.problems))))
    order = sorted(reading.problems, key=lambda problem: (files.index(problem.file), problem.line or 0))
    return agent, order


class _Reading:
    """Reads one agent. `_usable` is False as soon as the agent cannot be used."""

    def __init__(self, folder: Path, skills: Sequence[Path], strict: bool) -> None:
        self._folder, self._strict = folder, strict
        self._skills = Skills([folder / "skills", *skills])
        self._wanted: list[SkillUse] = []
        self._problems: list[Problem] = []
        self._usable = True

    @property
    def problems(self) -> list[Problem]:
        return [*self._problems, *self._skills.problems]

    def agent(self) -> Agent | None:
        path = self._folder / "AGENT.md"
        if not os.path.lexists(path):
            self._problems.append(self._missing_agent())
            return None
        document = self._read_file(path)
        values = self._agent_keys(document) if document else None
        pattern = document.values.get("pattern") if document else None
        act = reflect = None
        if document and pattern in ("react", "oneshot"):
            act = self._single_step(document, values, pattern)
        else:
            act = self._step("act", document, values)
            reflect = self._step("reflect", document, values)
            if document and pattern == "reflexion":
                self._check_files(document, values, act, reflect)
        self._skills.reach(self._wanted)
        if document and values and values.skills == "found":
            act, reflect = self._with_all_skills(document, act, reflect)
        if not (self._usable and self._skills.usable and document and values and act):
            return None
        return self._agent(document, values, act, reflect)

    # --- AGENT.md

    def _missing_agent(self) -> Problem:
        if not os.path.isdir(self._folder):
            return Problem(self._folder, None, "this is not a folder. An agent is a folder with an AGENT.md in it.")
        hint = misnamed(self._folder, "AGENT.md") or " `mulligan add reflexion NAME` makes an agent."
        return Problem(
            self._folder / "AGENT.md", None, f"this file does not exist, so the folder is not an agent.{hint}"
        )

    def _agent_keys(self, document: Document) -> AgentFile | None:
        if not document.present:
            why = "this file has no front matter. Begin it with ---, then lines such as name: my-agent, then ---."
            self._blame(document.source, "", why)
            return None
        pattern = document.values.get("pattern")
        if pattern in FOREIGN_PATTERNS:
            why = f"Mulligan does not run the pattern {pattern!r} of tama. Available: reflexion, react, oneshot."
            self._blame(document.source, "pattern", why)
            own_keys = {key: value for key, value in document.values.items() if key not in FOREIGN_KEYS}
            document = replace(document, values=own_keys, refused=document.refused | {"pattern"})
        return self._validated(document, AgentFile)

    def _single_step(
        self, document: Document, values: AgentFile | None, pattern: Literal["react", "oneshot"]
    ) -> StepSpec | None:
        """The one step of a react or oneshot agent, which AGENT.md describes."""
        source = document.source
        for name in ("act.md", "reflect.md"):
            if os.path.lexists(self._folder / name):
                why = f"this file is not used: an agent of pattern {pattern} has its prompt in AGENT.md."
                self._unused(name, why)
        if values is not None and "judge_last" in values.model_fields_set:
            self._warn(source, "judge_last", "judge_last has an effect only with the pattern reflexion.")
        if not self._has_prompt(document):
            return None
        if pattern == "react":
            self._check_ending(document, pattern, judged=False)
        return self._spec(document, values, pattern) if values else None

    # --- steps

    def _step(
        self, name: Literal["act", "reflect"], agent: Document | None, agent_keys: AgentFile | None
    ) -> StepSpec | None:
        """The step of this file; None if the file is missing or cannot be used."""
        path = self._folder / f"{name}.md"
        document = self._read_file(path) if os.path.lexists(path) else None
        if document is None:
            return None
        values = self._validated(document, StepKeys)
        prompted = self._has_prompt(document)
        if values is None or not prompted:
            return None
        pattern = values.pattern
        if pattern is None:
            skill_names, _ = _picked(values, "uses")
            pattern = "react" if name == "act" or skill_names else "oneshot"
        judged = name == "reflect" and (agent_keys is None or agent_keys.evaluate is None)
        self._check_ending(document, pattern, judged=judged)
        spec = self._spec(document, values, pattern)
        return self._inherited(spec, values, agent.source, agent_keys) if agent and agent_keys else spec

    def _spec(self, document: Document, values: AgentFile | StepKeys, pattern: Literal["react", "oneshot"]) -> StepSpec:
        """The step as its own file describes it. Keys without effect in a oneshot step are left out, with a warning."""
        source = document.source
        model, model_key = _picked(values, "model")
        skill_names, uses_key = _picked(values, "uses")
        max_iter, max_key = _picked(values, "max_iter")
        if pattern == "oneshot":
            for value, key in ((skill_names, uses_key), (max_iter, max_key)):
                if value:
                    why = f"{key} has no effect in a oneshot step, which is one model call: write pattern: react."
                    self._warn(source, key, why)
            skill_names = max_iter = None
        self._wanted += uses(source, uses_key, skill_names)
        return StepSpec(source, pattern, document.body, _choice(model, model_key), tuple(skill_names or ()), max_iter)

    def _inherited(self, spec: StepSpec, own: StepKeys, source: Source, agent_keys: AgentFile) -> StepSpec:
        """The step, with the keys of AGENT.md that its own file leaves out."""
        model, model_key = _picked(agent_keys, "model")
        if model is not None and _picked(own, "model")[0] is None:
            spec = replace(spec, model=replace(_choice(model, model_key), source=source))
        if spec.pattern == "oneshot":
            return spec
        skill_names, uses_key = _picked(agent_keys, "uses")
        if skill_names is not None and _picked(own, "uses")[0] is None:
            new_uses = [use for use in uses(source, uses_key, skill_names) if use not in self._wanted]
            self._wanted += new_uses
            spec = replace(spec, uses=tuple(skill_names))
        model_calls = agent_keys.call.max_iter if agent_keys.call else None
        return spec if spec.max_iter else replace(spec, max_iter=model_calls)

    def _with_all_skills(
        self, document: Document, act: StepSpec | None, reflect: StepSpec | None
    ) -> tuple[StepSpec | None, StepSpec | None]:
        """The steps, with every skill that can be found for those of pattern react."""
        names = tuple(self._skills.reach_all(document.source, "skills"))

        def offered(step: StepSpec | None) -> StepSpec | None:
            if step is None or step.pattern != "react":
                return step
            return replace(step, uses=tuple(dict.fromkeys((*step.uses, *names))))

        return offered(act), offered(reflect)

    def _check_files(
        self, document: Document, values: AgentFile | None, act: StepSpec | None, reflect: StepSpec | None
    ) -> None:
        """Reports missing files of a reflexion agent, and files and keys without effect."""
        source = document.source
        missing = [name for name in ("act.md", "reflect.md") if not os.path.lexists(self._folder / name)]
        if missing:
            called = values.name if values else self._folder.name
            hints = "".join(misnamed(self._folder, name) for name in missing)
            way = hints or " `mulligan add reflexion NAME` makes an agent that has both."
            why = f"agent {called!r}: missing required files: {', '.join(missing)}.{way}"
            self._blame(source, "pattern", why)
        if document.body:
            why = "this text is not used: a reflexion agent has its prompts in act.md and reflect.md."
            self._problems.append(Problem(source.path, document.body_line, why, "warning"))
        if os.path.lexists(self._folder / "evaluate.md"):
            why = "this file is not used: reflect.md judges, or the judge under evaluate in AGENT.md. Remove it."
            self._unused("evaluate.md", why)
        if values is None:
            return
        if values.evaluate is not None and "judge_last" in values.model_fields_set:
            why = "judge_last has no effect with evaluate, because the reflector then judges no try."
            self._warn(source, "judge_last", why)
        names, key = _picked(values, "uses")
        steps = [step for step in (act, reflect) if step]
        if names and steps and all(step.pattern == "oneshot" for step in steps):
            why = f"{key} has no effect here: no step of this agent has the pattern react."
            self._warn(source, key, why)

    def _has_prompt(self, document: Document) -> bool:
        if document.body:
            return True
        why = (
            "this file has no text below its front matter. That text is the system prompt: write what the model "
            "should do."
        )
        if not document.present:
            why = "this file is empty. Write the system prompt: what the model should do."
        self._blame(document.source, "", why)
        return False

    def _check_ending(self, document: Document, pattern: str, *, judged: bool) -> None:
        """Reports a prompt without the word that ends the loop, if `lint` reads the agent."""
        word = "finish" if pattern == "react" else "DONE"
        if not self._strict or re.search(rf"\b{word}\b", document.body, re.IGNORECASE):
            return
        if pattern == "react":
            call = 'finish(key="done", value=...)'
            call += (
                ' to stop the loop, and finish(key="retry", value=...) to continue'
                if judged
                else " when it is finished"
            )
            why = f"the text never mentions finish. Tell the model to call {call}."
        elif judged:
            why = "the text never mentions DONE, so the loop cannot be stopped. Tell the model when to answer DONE."
        else:
            return
        self._problems.append(Problem(document.source.path, document.body_line, why, "warning"))

    # --- both

    def _read_file(self, path: Path) -> Document | None:
        document, problems = read_document(path)
        self._problems += problems
        self._usable = self._usable and not problems
        return document

    def _validated(self, document: Document, model: type[M]) -> M | None:
        values, problems = checked(document, model, strict=self._strict)
        self._problems += problems
        self._usable = self._usable and values is not None
        return values

    def _blame(self, source: Source, key: str, why: str) -> None:
        self._problems.append(source.problem(key, why))
        self._usable = False

    def _warn(self, source: Source, key: str, why: str) -> None:
        self._problems.append(source.problem(key, why, "warning"))

    def _unused(self, name: str, why: str) -> None:
        self._problems.append(Problem(self._folder / name, None, why, "warning"))

    def _agent(self, document: Document, values: AgentFile, act: StepSpec, reflect: StepSpec | None) -> Agent:
        evaluate: Mapping[str, Json] | None = None
        if values.evaluate is not None:
            is_name = not isinstance(values.evaluate, EvaluateTable)
            evaluate = (
                {"evaluator": values.evaluate} if is_name else _renamed(document.values["evaluate"], judge="evaluator")
            )
        reflector: Mapping[str, Json] | None = None
        if values.reflect is not None:
            is_name = not isinstance(values.reflect, ReflectTable)
            reflector = {"reflector": values.reflect} if is_name else document.values["reflect"]
        memory = Memory() if values.memory is True else None
        if isinstance(values.memory, MemoryTable):
            table = values.memory
            forms = tuple(table.forms) if table.forms else None
            memory = Memory(table.bank, table.top_k, table.mode or "online", forms)
        foresight = document.values["foresight"] if values.foresight is not None else None
        if foresight is True or isinstance(foresight, str):
            foresight = {"name": foresight} if isinstance(foresight, str) else {}
        return Agent(
            folder=self._folder,
            name=values.name,
            description=values.description,
            version=values.version,
            pattern=values.pattern,
            source=document.source,
            act=act,
            reflect=reflect,
            max_iter=(values.max_iter if values.pattern == "reflexion" else None) or CYCLES,
            strategy=values.strategy,
            scale=values.scale,
            memory=memory,
            evaluate=evaluate,
            reflector=reflector,
            limits=_renamed(values.limits.model_dump(exclude_unset=True), tries="trials") if values.limits else {},
            foresight=foresight,
            judge_last=values.judge_last is not False,
            kind=values.kind or "",
            skills=self._skills.found,
            skill_sources=self._skills.sources,
            all_skills=values.skills is not None,
        )


def _renamed(table: Mapping[str, Any], **names: str) -> dict[str, Json]:
    """The table with some keys renamed: from the names that people write to those of records."""
    return {names.get(key, key): value for key, value in table.items()}


def _picked(values: AgentFile | StepKeys, key: Literal["model", "uses", "max_iter"]) -> tuple[Any, str]:
    """The value of a key at the top level or in `call`, and the full key."""
    value, in_call = getattr(values, key), getattr(values.call, key, None)
    return (in_call, f"call.{key}") if value is None and in_call is not None else (value, key)


def _choice(model: Any, key: str) -> ModelChoice:
    if isinstance(model, ModelTable):
        return ModelChoice(model.role, model.name, model.temperature, model.max_tokens, key)
    return ModelChoice(name=cast(str | None, model), key=key)
