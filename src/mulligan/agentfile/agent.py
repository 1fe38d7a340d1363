"""An agent as plain values, with the lines of its files that they come from. `agentfile.reading` reads it."""

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
    """A file that was read: its path, its text, and on which line each key stands ("call.model.role", "uses.0")."""

    path: Path
    text: str = ""
    lines: Mapping[str, int] = field(default_factory=dict[str, int])

    def problem(self, key: str, message: str, level: Literal["error", "warning"] = "error") -> Problem:
        """What is wrong with the value of this key, or of the nearest one above it that the file has."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return Problem(self.path, self.lines.get(key), message, level)


@dataclass(frozen=True)
class ModelChoice:
    """Which model a step wants: a role of mulligan.toml or a model by name, at most one; None leaves it to the rest."""

    role: str | None = None
    name: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    key: str = "model"
    """Where it stands in its file: `model` or `call.model`."""
    source: Source | None = field(default=None, compare=False)
    """The file that it stands in, where that is not the step's own: AGENT.md, which speaks for both steps."""


@dataclass(frozen=True)
class StepSpec:
    """A step file, or the one step that AGENT.md itself is. `body` is the system prompt, stripped.

    uses: names of skills. max_iter: model calls at most in a react step, None leaves the default. tools: what a react
    step can call without a skill.
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
    """Which lessons the agent recalls, and whether it teaches the bank ("online") or only reads ("frozen").

    forms: what of the bank its tasks are shown; None: what [memory] in mulligan.toml says.
    """

    bank: str | None = None
    top_k: int | None = None
    mode: Literal["online", "frozen"] = "online"
    forms: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Agent:
    """One agent, read from files without an error.

    folder: where AGENT.md stands. source: AGENT.md itself. act: the actor's step; AGENT.md where there is one step.
    reflect: None but for reflexion. max_iter: act-reflect cycles of a reflexion agent. evaluate: as in AGENT.md, one of
    the keys `tests`, `check`, `evaluator`, and settings of the evaluator. reflector: of `reflect` in AGENT.md, the key
    `reflector` and settings of the reflector. limits: as in AGENT.md. foresight: as in AGENT.md, as a table;
    False: none, None: what mulligan.toml says. strategy: a name. scale: such as "parallel:5". judge_last: whether the
    reflector judges the last trial too. kind: that of its tasks. skills: all that can be read, by name, and where each
    stands. all_skills: whether it is offered every skill that can be found.
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
        """Every file that it rests on, AGENT.md first."""
        steps = (self.act.source, *((self.reflect.source,) if self.reflect else ()))
        found = (self.source, *steps, *self.skill_sources.values())
        return tuple({source.path: source for source in found}.values())
