"""An agent as plain values, with the lines of its files. `agentfile.reading` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from mulligan.agentfile.problems import Problem
from mulligan.core.records import Json
from mulligan.models.steps import Skill

Pattern: TypeAlias = Literal["reflexion", "react", "oneshot"]


@dataclass(frozen=True)
class Source:
    """A file that was read: its path, its text, and the line of each key ("call.model.role", "uses.0")."""

    path: Path
    text: str = ""
    lines: Mapping[str, int] = field(default_factory=dict[str, int])

    def problem(self, key: str, message: str, level: Literal["error", "warning"] = "error") -> Problem:
        """A problem at the line of this key, or of the nearest key above it that has a line."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return Problem(self.path, self.lines.get(key), message, level)


@dataclass(frozen=True)
class ModelChoice:
    """The model that a step asks for: by a role of mulligan.toml, or by its name. At most one of the two is set."""

    role: str | None = None
    name: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    key: str = "model"
    """The key in its file: `model` or `call.model`."""
    source: Source | None = field(default=None, compare=False)
    """The file, if it is not the step's own: AGENT.md, which speaks for both steps."""


@dataclass(frozen=True)
class StepSpec:
    """A step, from a step file or from AGENT.md itself.

    Attributes:
        body: the system prompt, stripped.
        uses: names of skills.
        max_iter: the most model calls of a react step; None: the default.
        tools: what a react step can call without a skill.
    """

    source: Source
    pattern: Literal["react", "oneshot"]
    body: str
    model: ModelChoice = ModelChoice()
    uses: tuple[str, ...] = ()
    max_iter: int | None = None
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Memory:
    """Which lessons the agent recalls.

    Attributes:
        mode: whether it also teaches the bank ("online"), or only reads it ("frozen").
        forms: the parts of the bank that the prompt shows; None: what [memory] in mulligan.toml says.
    """

    bank: str | None = None
    top_k: int | None = None
    mode: Literal["online", "frozen"] = "online"
    forms: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Agent:
    """One agent, read from files without an error.

    Attributes:
        folder: the folder of AGENT.md.
        source: AGENT.md itself.
        act: the actor's step; for an agent with one step, AGENT.md.
        reflect: None unless the pattern is reflexion.
        max_iter: act-reflect cycles of a reflexion agent.
        strategy: the name of a plug-in.
        scale: such as "parallel:5".
        evaluate: as in AGENT.md: one of the keys `tests`, `check`, `evaluator`, and settings of the evaluator.
        reflector: as `reflect` in AGENT.md: the key `reflector` and settings of the reflector.
        limits: as in AGENT.md.
        foresight: as a table; False: none, None: what mulligan.toml says.
        judge_last: whether the reflector also judges the last trial.
        kind: the kind of its tasks.
        skills, skill_sources: the skills that it can reach, by name, and their files.
        all_skills: whether it is offered every skill that can be found.
    """

    folder: Path
    name: str
    description: str
    version: str
    pattern: Pattern
    source: Source
    act: StepSpec
    reflect: StepSpec | None = None
    max_iter: int = 4
    strategy: str | None = None
    scale: str | None = None
    memory: Memory | None = None
    evaluate: Mapping[str, Json] | None = None
    reflector: Mapping[str, Json] | None = None
    limits: Mapping[str, Json] = field(default_factory=dict[str, Json])
    foresight: Mapping[str, Json] | Literal[False] | None = None
    judge_last: bool = True
    kind: str = ""
    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    skill_sources: Mapping[str, Source] = field(default_factory=dict[str, Source])
    all_skills: bool = False

    @property
    def sources(self) -> tuple[Source, ...]:
        """All its files, AGENT.md first."""
        steps = (self.act.source, *((self.reflect.source,) if self.reflect else ()))
        sources = (self.source, *steps, *self.skill_sources.values())
        return tuple({source.path: source for source in sources}.values())
