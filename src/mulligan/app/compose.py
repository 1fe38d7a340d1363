"""Builds the roles of one episode from its recipe and hands each the ports that it asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mulligan.app.earlier import EarlierEpisodes
from mulligan.app.editing import AtTerminal
from mulligan.app.environments import EpisodeEnvironment
from mulligan.app.foresight import CheckedActor, CheckedTools, CheckedWorld, Lookout, Person
from mulligan.app.plugins import ROLES, build, file_of, find, fitted, ports_of, settings_of
from mulligan.app.prompts import FilePrompts
from mulligan.app.recipe import Recipe, read_file, settled
from mulligan.app.workspaces import protected, recorded_baseline
from mulligan.core.errors import InvalidInput
from mulligan.core.foresight import Foresight
from mulligan.core.loop import Meter, Roles
from mulligan.core.optional import AdaptingStrategy, with_defaults
from mulligan.core.protocols import (
    Agent,
    Bank,
    Environment,
    Evaluator,
    Journal,
    Model,
    Reflector,
    Sandbox,
    Store,
    Strategy,
    Tools,
    World,
)
from mulligan.core.records import Head, Spec, Task
from mulligan.models.gate import Gate, check_prices
from mulligan.models.sight import Describer, sees
from mulligan.recording.journal import JournaledBank, JournaledEvaluator, NoJournal
from mulligan.reflectors._condensing import Condensing
from mulligan.reflectors._editing import Decide, Edited
from mulligan.text.lessons import LessonBudget
from mulligan.workspace.git_workspace import GitWorkspace

FOLDERS = {role.kind: folder for folder, role in ROLES.items()}
EXPECTS = ("text", "code", "workspace")
OBJECT = "object:"
"""The prefix of the names of roles that were given as objects; the class follows."""
_NO_MODEL_HINTS = {
    "evaluator": "Set judge_model= or model=, or judge with a command (check=) or tests (tests=).",
    "reflector": "Set reflect_model= or model=, let the acting agent reflect with reflector='self', or use "
    "strategy='evidence', which needs no lesson.",
    "condenser": "Set reflect_model= or model=, or use overflow='useful', which needs none.",
}
"""What to do in `solve` if a role needs a model and none is named."""


def object_name(given: Any) -> str:
    """The name in records of a role that was given as an object or a class."""
    cls = given if isinstance(given, type) else type(given)
    return f"{OBJECT}{cls.__module__}.{cls.__qualname__}"


def asks_model(kind: str, spec: Spec, objects: Mapping[str, Any] = {}) -> bool:
    """Whether the role asks one of Mulligan's models. A role given as an object brings what it needs."""
    return kind not in objects and "model" in ports_of(find(FOLDERS[kind], spec.name))


@dataclass(frozen=True)
class Parts:
    """What all episodes of a run share.

    Attributes:
        model: opens a model by name.
        objects: roles that were given as objects or classes; a class is instantiated for each episode.
        decide: asks a person about reflections; None: at the terminal.
        person: asks a person for a foresight; None: nobody can be asked.
    """

    model: Callable[[str], Model]
    sandbox: Sandbox
    objects: Mapping[str, Any] = field(default_factory=dict[str, Any])
    bank: Bank | None = None
    workspace: GitWorkspace | None = None
    tools: Tools | None = None
    decide: Decide | None = None
    person: Person | None = None


@dataclass(frozen=True)
class Drive:
    """What belongs to one drive of one episode. Without a journal nothing is recorded, for checking a recipe.

    store: the episode's store, in which earlier episodes are found.
    """

    journal: Journal = field(default_factory=NoJournal)
    meter: Meter = field(default_factory=Meter)
    seed: int = 0
    store: Store | None = None


@dataclass(frozen=True)
class Composition:
    """The roles of an episode, and what they consist of.

    Attributes:
        judge: the evaluator itself; the one in `roles` also journals.
        head: describes the roles for the record.
        texts: the texts of files and prompts that they use, by name.
        models: their models, by role.
    """

    roles: Roles
    judge: Evaluator
    head: Head
    texts: Mapping[str, str]
    models: Mapping[str, Model] = field(default_factory=dict[str, Model])

    def check_images(self, task: Task) -> None:
        """Raises `InvalidInput` if the task has images and a model cannot read them."""
        if not task.images or "vision" in self.models:
            return
        for kind, model in self.models.items():
            if not sees(model):
                raise InvalidInput(
                    f"The task has an image, but the model of the {kind} ({model.name}) cannot read images. Use a "
                    "model that can, or set a vision model, which describes images to this one "
                    "(vision_model=MODEL, or the role vision in mulligan.toml)."
                )


def compose(recipe: Recipe, parts: Parts, drive: Drive) -> Composition:
    """Builds the roles of a recipe, without calling or starting anything. Raises `InvalidInput` if it cannot work."""
    build = _Build(recipe, parts, drive)
    evaluator: Evaluator = _checked("expects", EXPECTS, build.role("evaluator", recipe.evaluator, recipe.judge_model))
    judge = protected(evaluator, parts.workspace)
    strategy: Strategy = _checked("reflects", (True, False), build.role("strategy", recipe.strategy))
    build.lookout = build.made_lookout()
    actor = build.role("actor", build.with_output("actor", recipe.actor, evaluator.expects))
    build.agent = actor if hasattr(actor, "ask") else None
    reflector = None
    if strategy.reflects:
        spec = build.with_output("reflector", recipe.reflector, evaluator.expects)
        reflector = build.role("reflector", spec, recipe.reflect_model)
        if recipe.edits:
            reflector = Edited(reflector, journal=drive.journal, decide=parts.decide or AtTerminal())
        reflector = build.condensing(reflector, strategy)
    elif recipe.edits:
        raise InvalidInput(
            f"The strategy {recipe.strategy.name!r} writes no lessons, so there are none to edit. Use one that "
            "does, such as evidence_and_reflexion or last_attempt_and_reflexion."
        )
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in build.files.items()}
    rests_on = {"evaluator": asdict(recipe.evaluator), "files": hashes, "model": build.models.get("evaluator")}
    roles = Roles(
        CheckedActor(actor, build.lookout) if build.lookout else actor,
        JournaledEvaluator(judge, drive.journal, drive.meter, rests_on),
        reflector,
        strategy,
        JournaledBank(parts.bank, drive.journal) if parts.bank and recipe.recalls else None,
        recipe.top_k,
    )
    head = Head(
        Head.versions_of(),
        build.models,
        recipe.to_json(),
        build.prompts.used,
        hashes,
        drive.seed,
    )
    return Composition(roles, evaluator, head, {**build.files, **build.prompts.texts}, build.opened)


def environment(spec: Spec, parts: Parts) -> Environment:
    """Builds an environment without starting it. Raises `InvalidInput` for settings that cannot work."""
    return build("environments", spec, {"sandbox": parts.sandbox, "bank": parts.bank})


class _Build:
    """Builds one composition, and collects the models, prompts and files that its roles use."""

    def __init__(self, recipe: Recipe, parts: Parts, drive: Drive) -> None:
        self._recipe = recipe
        self._parts = parts
        self._drive = drive
        self.prompts = FilePrompts(_prompt_folders(recipe))
        self.models: dict[str, str] = {}
        self.opened: dict[str, Model] = {}
        self._describer = self._vision()
        self.agent: Agent | None = None
        self.lookout: Lookout | None = None
        of_agent: list[str] = recipe.agent["files"] if recipe.agent else []
        self.files: dict[str, str] = {file: read_file(file, "agent's file") for file in of_agent}

    def role(self, kind: str, spec: Spec, model: str | None = None) -> Any:
        own = self._parts.objects.get(kind)
        if own is not None:
            return fitted(FOLDERS[kind], own() if isinstance(own, type) else own)
        if spec.name.startswith(OBJECT):
            raise InvalidInput(
                f"This episode was started from Python with its own {kind} ({spec.name[7:]}): resume it "
                f"there, with mulligan.resume(id, {kind}=...)."
            )
        if file := file_of(spec.name):
            self.files[file] = read_file(file, f"{kind} file")
        folder = FOLDERS[kind]
        ports = {
            "model": self._model(kind, spec, model) if "model" in ports_of(find(folder, spec.name)) else None,
            "sandbox": self._parts.sandbox,
            "journal": self._drive.journal,
            "prompts": self.prompts,
            "workspace": self._parts.workspace,
            "bank": self._bank(kind),
            "tools": self._tools(kind),
            "environment": self._world(kind),
            "agent": self.agent,
            "baseline": partial(recorded_baseline, self._drive.store) if self._drive.store else None,
            "solved": EarlierEpisodes(self._parts.bank, self._drive.store, self._drive.journal),
        }
        return build(folder, Spec(spec.name, settled(spec.settings, self.files)), ports)

    def condensing(self, reflector: Reflector, strategy: Strategy) -> Reflector:
        """The reflector, which condenses lessons with a model if the strategy asks for that."""
        budget = with_defaults(strategy, AdaptingStrategy).lessons
        if not isinstance(budget, LessonBudget) or budget.overflow != "condense":
            return reflector
        model = self._model("condenser", self._recipe.strategy, self._recipe.reflect_model)
        if model is None:
            raise InvalidInput("Condensing lessons needs a model, but none is set.")
        return Condensing(reflector, model=model, prompts=self.prompts, budget=budget)

    def made_lookout(self) -> Lookout | None:
        """The lookout that asks the foresight before actions; None without a foresight. Raises `InvalidInput` if the
        actor performs no action that can be checked."""
        recipe = self._recipe
        if recipe.foresight is None:
            return None
        if recipe.expansion is not None:
            raise InvalidInput("A foresight cannot be combined with a search: omit the foresight.")
        name = recipe.actor.name
        own = "actor" in self._parts.objects or name.startswith(OBJECT)
        if own or not {"tools", "environment"} & set(ports_of(find("actors", name))):
            raise InvalidInput(
                f"The actor {name!r} uses neither tools nor a Mulligan environment, so there is no action to check "
                "first. Omit the foresight, or use an agent with tools, or an actor such as interact."
            )
        foresight: Foresight = self.role("foresight", recipe.foresight)
        return Lookout(foresight, self._drive.journal, self._drive.meter, self._parts.person)

    def _bank(self, kind: str) -> Bank | None:
        """The bank for a role. A foresight gets one whose recalls are journaled, and only if the episode recalls."""
        bank = self._parts.bank
        if kind != "foresight" or bank is None:
            return bank
        return JournaledBank(bank, self._drive.journal) if self._recipe.recalls else None

    def _tools(self, kind: str) -> Tools | None:
        tools = self._parts.tools
        return CheckedTools(tools, self.lookout) if tools and self.lookout and kind == "actor" else tools

    def _world(self, kind: str) -> World | None:
        spec = self._recipe.environment
        if spec is None:
            return None
        cls = find("environments", spec.name)  # raises now if it is missing
        if file := file_of(spec.name):
            self.files[file] = read_file(file, "environment file")
        acts = kind == "actor"
        world = EpisodeEnvironment(
            spec,
            lambda: environment(spec, self._parts),
            self._drive.journal,
            declares=hasattr(cls, "critical"),
            partner=self._model("partner", spec, self._recipe.judge_model) if acts and hasattr(cls, "hear") else None,
        )
        return CheckedWorld(world, self.lookout) if self.lookout and acts else world

    def with_output(self, kind: str, spec: Spec, expects: str) -> Spec:
        """The role's spec, with the kind of output that the evaluator expects, if it has the setting `output`.

        Raises `InvalidInput` for an actor that only writes text if a changed workspace is judged, and for the reverse.
        """
        own = kind in self._parts.objects or spec.name.startswith(OBJECT)
        cls = None if own else find(FOLDERS[kind], spec.name)
        if kind == "actor" and expects == "code" and getattr(cls, "makes", "") == "workspace":
            raise InvalidInput(
                f"{self._recipe.evaluator.name} judges code in an answer, but the actor {spec.name!r} changes "
                "files. Judge the files instead, for example with check='pytest -q'."
            )
        if not self._recipe.checks:
            spec = Spec(spec.name, {**getattr(cls, "unchecked", {}), **spec.settings})
        if cls is None or "output" not in settings_of(cls):
            return spec
        works = "tools" in ports_of(cls) and self._parts.workspace is not None
        if expects == "workspace" and kind == "actor" and not works:
            way = f"the actor {spec.name!r} only writes text. Specify an agent with actor=command:…"
            if "tools" in ports_of(cls):
                way = "there is none. Specify its folder with workspace=DIR"
            raise InvalidInput(
                f"The check judges a changed workspace, but {way}, or use {{attempt}} in the check for the path of "
                "the attempt's file."
            )
        output = "text" if expects == "workspace" else expects
        return Spec(spec.name, {"output": output, **spec.settings})

    def _model(self, kind: str, spec: Spec, name: str | None) -> Model | None:
        name = name or self._recipe.model
        if name is None and kind in _NO_MODEL_HINTS and self._recipe.bench is None:
            raise InvalidInput(f"The {kind} {spec.name!r} needs a model, but none is set. {_NO_MODEL_HINTS[kind]}")
        if name is None:
            return None
        return self._gate(kind, name)

    def _gate(self, kind: str, name: str) -> Gate:
        model = self._parts.model(name)
        check_prices([model], self._recipe.limits)
        self.models[kind], self.opened[kind] = model.id, model
        drive = self._drive
        return Gate(
            model,
            role=kind,
            journal=drive.journal,
            meter=drive.meter,
            limits=self._recipe.limits,
            describer=self._describer,
        )

    def _vision(self) -> Describer | None:
        """The describer of images, if there is a vision model. Raises `InvalidInput` for one that cannot see."""
        self._describer = None
        if (name := self._recipe.vision_model) is None:
            return None
        gate = self._gate("vision", name)
        if not sees(self.opened["vision"]):
            raise InvalidInput(f"The vision model {gate.name} cannot read images. Choose one that can.")
        return Describer(gate, self._drive.journal, self._drive.meter)


def _checked(attribute: str, choices: tuple[object, ...], role: Any) -> Any:
    """The role itself. Raises `InvalidInput` if its attribute does not have one of these values."""
    value = getattr(role, attribute, None)
    if value not in choices:
        raise InvalidInput(
            f"{type(role).__name__}.{attribute} must be {' or '.join(map(repr, choices))}, not {value!r}: see "
            "mulligan docs plugins"
        )
    return role


def _prompt_folders(recipe: Recipe) -> list[Path]:
    """The user's prompts folder, then the folders of the user's plug-in files, which may have prompts beside them."""
    chosen = [Path(recipe.prompts)] if recipe.prompts else []
    roles = (recipe.actor, recipe.evaluator, recipe.reflector, recipe.strategy)
    files = (file_of(spec.name) for spec in (*roles, recipe.environment, recipe.foresight) if spec is not None)
    return [*chosen, *(Path(file).parent for file in files if file)]


UNCOMPARED = {"limits", "restarts", "edits"}
"""Settings that a resume may change, because what was done so far does not depend on them."""


def changed(before: Head, after: Head) -> list[str]:
    """What has changed of an episode's models, prompts, files and settings, except `UNCOMPARED`."""
    changes: list[str] = []
    for part in ("models", "prompts", "files"):
        old, new = getattr(before, part), getattr(after, part)
        changes += [
            f"{part.removesuffix('s')} {name}" for name in sorted({*old, *new}) if old.get(name) != new.get(name)
        ]
    old, new = Recipe.completed(before.settings), Recipe.completed(after.settings)
    changes += [f"setting {n}" for n in sorted({*old, *new} - UNCOMPARED) if old.get(n) != new.get(n)]
    return changes
