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
"""The keys that are the bank's own settings; `paper` is what the preset says."""
OF_PAPER = (
    "retrieval",
    "deduplication",
    "merging",
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
    """What [memory] says, beside the bank's own settings (`bank`).

    The docs take what each means from `agentfile/keys.toml`. Raises `InvalidInput` for values that can never work.
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
        """What [memory] says, with the keys that are given in their place.

        Raises `InvalidInput`, `UnknownName`; what is wrong in the file is said with its line.
        """
        table = config.table("memory")
        for key, value in table.items():
            with errors_at(config.where("memory", key)):
                check_key(key, value, config.root)
        over = {**(given or {}), **({"preset": preset} if preset else {})}
        for key, value in over.items():
            check_key(key, value)
        if over.get("preset") == "paper":  # asked for by name: what the file says of the same is passed over
            table = {key: value for key, value in table.items() if key not in OF_PAPER}
        with errors_at(config.where("memory", "preset") if "preset" not in over and "preset" in table else ""):
            check_together({**table, **over})
        return cls._made(table, over, config.root)

    @classmethod
    def _made(cls, table: Mapping[str, Json], over: Mapping[str, Json], root: Path | None) -> MemorySettings:
        both = {**table, **over}
        paper = both.get("preset") == "paper"
        specs: dict[str, Any] = {"retrieval": Spec("cosine")} if paper else {}
        for role in STRATEGIES:
            if role in both:
                specs[role] = spec_of(role, both[role], None if role in over else root)
        bank = _over(Settings().as_in_the_paper() if paper else Settings(), both)
        plain: dict[str, Any] = {key: both[key] for key in ("preset", "model", "embedder") if key in both}
        return cls(**plain, **specs, bank=bank)


LEARN_SHARE = 0.1
"""The share of the tasks' tokens that `solve`, `run` and `bench` learn with, where nobody chose."""


def for_reader(config: Config, given: Mapping[str, Json], *, small: bool) -> Mapping[str, Json]:
    """The given keys of [memory], with those for a reader of this size that neither they nor the file have."""
    table = {**config.table("memory"), **given}
    if table.get("preset") == "paper":
        return given
    size = table.get("reader", "small" if small else "large")
    forms: list[Json] = ["notebook", "lessons"] if size == "large" else ["lessons"]
    reader = "" if "top_k" in table or "threshold" in table else size  # who says how many are shown has named the price
    return {"reader": reader, "forms": forms, "learn_share": LEARN_SHARE, **config.table("memory"), **given}


KEYS = tuple(f.name for f in fields(MemorySettings) if f.name != "bank") + OF_BANK


def check_key(key: str, value: Json, folder: Path | None = None) -> None:
    """Raises `InvalidInput` for a value that a key of [memory] cannot have, `UnknownName` for a key that is none."""
    if key not in KEYS:
        raise UnknownName("setting in [memory]", key, KEYS)
    if key in STRATEGIES:
        tried(key, spec_of(key, value, folder))
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
        raise InvalidInput(f'preset = "paper" already sets {taken[0]}: remove one of the two.')


def spec_of(role: str, value: Json, folder: Path | None = None) -> Spec:
    """A strategy as [memory] names it: text, or a table with `name` and settings. A file is looked for in `folder`."""
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


def _over(bank: Settings, table: Mapping[str, Json]) -> Settings:
    """The bank's settings with those of the table in their place."""
    given: dict[str, Any] = {key: value for key, value in table.items() if key in OF_BANK}
    for key, value in given.items():
        if isinstance(getattr(bank, key), bool) and not isinstance(value, bool):
            raise InvalidInput(f"{key} must be true or false, not {value!r}.")
    return replace(bank, **given)
