"""The table [memory] of mulligan.toml: how the bank behaves, and which model, embedder and strategies it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

from mulligan.app.config import Config
from mulligan.app.model_roles import blamed
from mulligan.app.plugins import PORTS, Spec, build, checked, file_of, find
from mulligan.app.prompts import FilePrompts
from mulligan.bank.settings import Settings
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import Json

STRATEGIES = ("retrieval", "deduplication", "merging")
OF_BANK = tuple(f.name for f in fields(Settings) if f.name != "paper")
"""The keys that are the bank's own settings; `paper` is what the preset says."""
OF_PAPER = ("retrieval", "deduplication", "merging", "fold", "near_duplicates", "auto_merge")
"""What the preset "paper" decides by itself."""


@dataclass(frozen=True)
class MemorySettings:
    """What the table says, beside the bank's own settings. Raises `InvalidInput` for what can never work.

    preset: `paper` does as the ReasoningBank paper: the past task's query is compared, nothing is folded, linked or
    merged, one experience is recalled.
    model: the model that judges, extracts and merges, or a role of [models]; left out, whoever calls the bank is asked
    to think: no model is taken that was not named here, by a flag or in MULLIGAN_MODEL.
    embedder: what makes vectors of texts, `local` or PROVIDER:MODEL; left out, `local` if it is there, and lessons are
    found by their words alone if it is not.
    retrieval: how lessons are found: fused, hybrid, cosine, or a file of your own, `./mine.py`; or a table with the
    name and its settings.
    deduplication: which lessons nearly say the same: its name, a file of your own, or a table with its settings.
    merging: how lessons that are alike become one: llm, voting, a file of your own, or a table with its settings.
    """

    preset: Literal["paper"] | None = None
    model: str | None = None
    embedder: str | None = None
    retrieval: Spec = Spec("fused")
    deduplication: Spec = Spec("semantic")
    merging: Spec = Spec("llm")
    bank: Settings = Settings()


KEYS = tuple(f.name for f in fields(MemorySettings) if f.name != "bank") + OF_BANK


def memory_settings(config: Config) -> MemorySettings:
    """What [memory] says. Raises `InvalidInput`, `UnknownName` that name file and line."""
    table = config.table("memory")
    for key, value in table.items():
        with blamed(config.where("memory", key)):
            check_key(key, value, config.root)
    with blamed(config.where("memory", "preset")):
        check_together(table)
    given = {key: table[key] for key in ("preset", "model", "embedder") if key in table}
    specs = {role: spec_of(role, table[role], config.root) for role in STRATEGIES if role in table}
    bank = Settings()
    if table.get("preset") == "paper":
        specs = {"retrieval": Spec("cosine")}
        bank = bank.as_in_the_paper()
    return MemorySettings(**given, **specs, bank=_over(bank, table))


def check_key(key: str, value: Json, folder: Path | None = None) -> None:
    """Raises `InvalidInput` for a value that a key of [memory] cannot have, `UnknownName` for a key that is none."""
    if key not in KEYS:
        raise UnknownName("setting in [memory]", key, KEYS)
    if key in STRATEGIES:
        _check_strategy(spec_of(key, value, folder), key)
    elif key == "preset":
        if value != "paper":
            raise InvalidInput(f"The only preset is 'paper', not {value!r}.")
    elif key in OF_BANK:
        _over(Settings(), {key: value})
    elif not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{key} must be a name, not {value!r}.")


def check_together(table: Mapping[str, Json]) -> None:
    """Raises `InvalidInput` for keys that the preset decides by itself."""
    taken = [key for key in OF_PAPER if key in table]
    if table.get("preset") == "paper" and taken:
        raise InvalidInput(f'preset = "paper" decides {taken[0]} by itself: take one of the two out.')


def spec_of(role: str, value: Json, folder: Path | None = None) -> Spec:
    """A strategy as [memory] names it: text, or a table with `name` and settings. A file is looked for in `folder`."""
    if isinstance(value, str) and value.strip():
        name, settings = value, {}
    elif isinstance(value, dict):
        settings = dict(cast(dict[str, Json], value))
        name = settings.pop("name", None)
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"{role} needs a name, such as {_DEFAULT[role]!r}.")
    else:
        raise InvalidInput(f"{role} must be a name or a table with a name, not {value!r}.")
    spec = Spec.parse(role, str((folder or Path.cwd()) / Path(name).expanduser()) if file_of(name) else name)
    return Spec(spec.name, {**spec.settings, **settings})


_DEFAULT = {f.name: cast(Spec, f.default).name for f in fields(MemorySettings) if f.name in STRATEGIES}


def _check_strategy(spec: Spec, role: str) -> None:
    cls = find(role, spec.name)
    checked(spec.name, cls, spec.settings)
    if cls.__module__.startswith("mulligan."):
        build(role, spec, {**dict.fromkeys(PORTS, object()), "prompts": FilePrompts()})


def _over(bank: Settings, table: Mapping[str, Json]) -> Settings:
    """The bank's settings with those of the table in their place."""
    given: dict[str, Any] = {key: value for key, value in table.items() if key in OF_BANK}
    for key, value in given.items():
        if isinstance(getattr(Settings, key), bool) and not isinstance(value, bool):
            raise InvalidInput(f"{key} must be true or false, not {value!r}.")
    return replace(bank, **given)
