"""The table [memory] of mulligan.toml: the bank's settings, model, embedder and strategies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

from mulligan.app.config import Config
from mulligan.app.model_roles import errors_at
from mulligan.app.plugin_files import real_path
from mulligan.app.plugins import file_of, parse_spec, tried
from mulligan.bank.ports import Settings
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Json, Spec

STRATEGIES = ("retrieval", "deduplication", "merging")
OF_BANK = tuple(f.name for f in fields(Settings) if f.name != "paper")
"""The keys that are settings of the bank itself; the preset sets `paper`."""
OF_PAPER = (
    *STRATEGIES,
    "extraction",
    "learn_share",
    "reader",
    "admission",
    "fold",
    "near_duplicates",
    "auto_merge",
)
"""The keys that the preset "paper" sets."""


@dataclass(frozen=True)
class MemorySettings:
    """The settings in [memory]; `bank` has those of the bank itself.

    `agentfile/keys.toml` describes each for the docs. Raises `InvalidInput` for values that can never work.
    """

    preset: Literal["paper"] | None = None
    model: str | None = None
    embedder: str = "local"
    retrieval: Spec = Spec("fused")
    deduplication: Spec = Spec("semantic")
    merging: Spec = Spec("llm")
    bank: Settings = Settings()

    @classmethod
    def of(cls, config: Config, given: Mapping[str, Json] | None = None, preset: str | None = None) -> MemorySettings:
        """The settings of [memory], overridden by the given keys.

        Raises `InvalidInput` and `UnknownName`; errors in the file name its line.
        """
        table = config.table("memory")
        for key, value in table.items():
            with errors_at(config.where("memory", key)):
                check_key(key, value, config.root)
        overrides = {**(given or {}), **({"preset": preset} if preset else {})}
        for key, value in overrides.items():
            check_key(key, value)
        if overrides.get("preset") == "paper":  # asked for explicitly: it overrides the file
            table = {key: value for key, value in table.items() if key not in OF_PAPER}
        with errors_at(config.where("memory", "preset") if "preset" not in overrides and "preset" in table else ""):
            check_together({**table, **overrides})
        return cls._build(table, overrides, config.root)

    @classmethod
    def _build(cls, table: Mapping[str, Json], overrides: Mapping[str, Json], root: Path | None) -> MemorySettings:
        settings = {**table, **overrides}
        paper = settings.get("preset") == "paper"
        specs: dict[str, Any] = {"retrieval": Spec("cosine")} if paper else {}
        for role in STRATEGIES:
            if role in settings:
                specs[role] = spec_of(role, settings[role], None if role in overrides else root)
        bank = _overridden(Settings().as_in_the_paper() if paper else Settings(), settings)
        plain: dict[str, Any] = {key: settings[key] for key in ("preset", "model", "embedder") if key in settings}
        return cls(**plain, **specs, bank=bank)


LEARN_SHARE = 0.1
"""The default share of the tasks' tokens with which `solve`, `run` and `bench` learn."""


def for_reader(config: Config, given: Mapping[str, Json], *, small: bool) -> Mapping[str, Json]:
    """The given keys of [memory], with defaults for a reader of this size where neither they nor the file set a key."""
    table = {**config.table("memory"), **given}
    if table.get("preset") == "paper":
        return given
    size = table.get("reader", "small" if small else "large")
    forms: list[Json] = ["notebook", "lessons"] if size == "large" else ["lessons"]
    limits_lessons = "top_k" in table or "threshold" in table  # then the user has decided how much recalls may cost
    reader = "" if limits_lessons else size
    return {"reader": reader, "forms": forms, "learn_share": LEARN_SHARE, **config.table("memory"), **given}


KEYS = tuple(f.name for f in fields(MemorySettings) if f.name != "bank") + OF_BANK


def check_key(key: str, value: Json, folder: Path | None = None) -> None:
    """Raises `InvalidInput` for an invalid value of a key of [memory], and `UnknownName` for an unknown key."""
    if key not in KEYS:
        raise UnknownName("setting in [memory]", key, KEYS)
    if key in STRATEGIES:
        tried(key, spec_of(key, value, folder))
    elif key == "preset":
        if value != "paper":
            raise InvalidInput(f"The only preset is 'paper', not {value!r}.")
    elif key in OF_BANK:
        _overridden(Settings(), {key: value})
    elif not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{key} must be a name, not {value!r}.")


def check_together(table: Mapping[str, Json]) -> None:
    """Raises `InvalidInput` for keys that the preset sets."""
    conflicts = [key for key in OF_PAPER if key in table]
    if table.get("preset") == "paper" and conflicts:
        raise InvalidInput(f'preset = "paper" already sets {conflicts[0]}: remove one of the two.')


def spec_of(role: str, value: Json, folder: Path | None = None) -> Spec:
    """A strategy as [memory] names it: a string, or a table with `name` and settings. Files are relative to
    `folder`."""
    if isinstance(value, str) and value.strip():
        name: Json = value
        settings: dict[str, Json] = {}
    elif isinstance(value, dict):
        settings = dict(cast(dict[str, Json], value))
        name = settings.pop("name", _DEFAULT[role])
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"The name of {role} must be a string, such as {_DEFAULT[role]!r}, not {name!r}.")
    else:
        raise InvalidInput(f"{role} must be a name or a table with a name, not {value!r}.")
    spec = parse_spec(role, str(real_path(name, folder)) if file_of(name) else name)
    return Spec(spec.name, {**spec.settings, **settings})


_DEFAULT = {f.name: cast(Spec, f.default).name for f in fields(MemorySettings) if f.name in STRATEGIES}


def _overridden(bank: Settings, table: Mapping[str, Json]) -> Settings:
    """The bank's settings, overridden by those of the table."""
    settings: dict[str, Any] = {key: value for key, value in table.items() if key in OF_BANK}
    for key, value in settings.items():
        if isinstance(getattr(bank, key), bool) and not isinstance(value, bool):
            raise InvalidInput(f"{key} must be true or false, not {value!r}.")
    return replace(bank, **settings)
