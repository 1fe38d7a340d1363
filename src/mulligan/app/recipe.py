"""The recipe of an episode: its roles and settings as JSON, from which a resume builds the roles again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.core.limits import Limits
from mulligan.core.records import Json, Spec
from mulligan.core.scaling import scale_of
from mulligan.text.files import read_text

DEFAULT_STRATEGY = "evidence_and_reflexion"
"""The strategy if none is named. A record names its own, which a resume keeps."""

BEFORE: Mapping[str, Json] = {"checks": False}
"""Values that older records imply, if the default of a newer setting differs."""


@dataclass(frozen=True)
class Recipe:
    """The roles and settings of an episode, as they are recorded. A role given as an object is named `object:…`.

    A setting of the form {"file": path} stands for that file's text, which a resume reads again.

    Attributes:
        model: None if no model was named and no role needs one.
        workspace: the settings of the user's folder as a workspace (folder, mode, link, …), and `deliver`: how a solved
            result is delivered (branch, patch, in_place).
        learns: whether the episode teaches the bank.
        bank: the agent_id whose bank is opened for it. None: no bank is opened.
        top_k: how many lessons are recalled. None: the bank's own number.
        memory: settings of the bank that override those of [memory] in mulligan.toml.
        agent: for a recipe made from an agent's files, what `app.agents` makes it from again. A resume reads its
            `files` again.
        environment: the world that the actor acts in.
        foresight: what is asked before critical actions. None: nothing.
        expansion: of a search, how many children a candidate gets. None: one line of trials.
        bench: the id of the benchmark run that the episode belongs to, which alone can resume it.
        edits: whether a person is asked about each reflection.
        vision_model: describes images to models that cannot read them. None: they are only told that there was an
            image.
        scale: how many trajectories of the task there are, such as "parallel:5". None: one, or restarts.
        checks: whether a reflector checks what it writes. False uses the settings of its attribute `unchecked`.
    """

    actor: Spec
    evaluator: Spec
    reflector: Spec
    strategy: Spec
    limits: Limits = Limits()
    model: str | None = None
    reflect_model: str | None = None
    judge_model: str | None = None
    workspace: Mapping[str, Json] | None = None
    sandbox: str = "auto"
    prompts: str | None = None
    recalls: bool = False
    learns: bool = False
    bank: str | None = None
    top_k: int | None = None
    memory: Mapping[str, Json] | None = None
    agent: Mapping[str, Json] | None = None
    environment: Spec | None = None
    foresight: Spec | None = None
    expansion: int | None = None
    bench: str | None = None
    vision_model: str | None = None
    checks: bool = True
    edits: bool = False
    scale: str | None = None
    restarts: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.restarts < 1:
            raise InvalidInput(f"restarts must be at least 1, not {self.restarts}.")
        if self.expansion is not None and self.expansion < 1:
            raise InvalidInput(f"expansion must be at least 1, not {self.expansion}.")
        if (scale := scale_of(self.scale)) is None:
            return
        if self.restarts > 1:
            raise InvalidInput(f"{self.scale} and restarts cannot be combined: pass only one.")
        if self.expansion is not None:
            raise InvalidInput(
                f"{self.scale} makes sequences of tries, but this method searches a tree: use another method."
            )
        if self.workspace is not None and scale.kind != "sequential":
            raise InvalidInput(
                f"{self.scale} produces several results, but a workspace accepts only one: use "
                f"sequential:{scale.k} there."
            )

    @property
    def grouped(self) -> bool:
        """Whether a run is a group of trajectories, from which the bank learns when all are over."""
        scale = scale_of(self.scale)
        return scale is not None and scale.kind != "sequential"

    def to_json(self) -> Json:
        return asdict(self)

    @staticmethod
    def completed(settings: Mapping[str, Json]) -> dict[str, Json]:
        """Recorded settings of any version, with the defaults of settings that did not exist yet.

        The default of a new setting must therefore be what was done before it existed, or `BEFORE` must have it.
        """
        optional: dict[str, Json] = {f.name: f.default for f in fields(Recipe) if f.default is not MISSING}
        limits: Any = settings.get("limits") or {}
        return {**optional, **BEFORE, **_renamed(settings), "limits": {**asdict(Limits()), **limits}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Recipe:
        """The recipe that `to_json` wrote, in any version."""
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in {**BEFORE, **_renamed(data)}.items() if key in known}
        for role in ("actor", "evaluator", "reflector", "strategy"):
            values[role] = Spec(**values[role])
        for role in ("environment", "foresight"):
            if values.get(role) is not None:
                values[role] = Spec(**values[role])
        values["limits"] = Limits(**values["limits"])
        return cls(**values)


def _renamed(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings, with `extraction = "none"` of older records as `learn_share = 0`."""
    memory: Mapping[str, Json] = settings.get("memory") or {}
    if memory.get("extraction") != "none":
        return settings
    kept = {name: value for name, value in memory.items() if name != "extraction"}
    return {**settings, "memory": {**kept, "learn_share": 0}}


def read_file(path: str, what: str) -> str:
    """The text of a file that the user named, without a byte order mark.

    Raises `InvalidInput` when it cannot be read.
    """
    file = Path(path).expanduser()
    if not file.exists():
        raise InvalidInput(f"The {what} {path} does not exist.")
    return read_text(file, f"The {what} {path}", newline=None)


def settled(settings: Mapping[str, Json], files: dict[str, str]) -> dict[str, Json]:
    """The settings, with the texts of files in place of their paths. Adds the texts to `files` by path."""
    values: dict[str, Json] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and set(value) == {"file"}:  # pyright: ignore[reportUnknownArgumentType]
            path = str(value["file"])  # pyright: ignore[reportUnknownArgumentType]
            files[path] = value = read_file(path, f"{name} file")
        values[name] = value
    return values
