"""Where things are and what was configured: `mulligan.toml`, the environment, the user's data folder."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.home import home
from mulligan.core.records import Json

FILE = "mulligan.toml"
KEYS = ("model", "reflect_model", "judge_model", "sandbox", "prompts", "limits", "calls")


@dataclass(frozen=True)
class Config:
    """`root` is the folder of the `mulligan.toml` that was found upward from the working folder, if there is one."""

    root: Path | None = None
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def database(self) -> Path:
        """`MULLIGAN_HOME` first, then `.mulligan` beside `mulligan.toml`, then the user's data folder."""
        if os.environ.get("MULLIGAN_HOME") or self.root is None:
            return home() / "mulligan.db"
        return self.root / ".mulligan" / "mulligan.db"

    def table(self, key: str) -> Mapping[str, Json]:
        """A setting that has to be a table. Raises `InvalidInput` when it is something else."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise InvalidInput(f"{self.root}/{FILE}: [{key}] must be a table, not {value!r}.")
        return cast(dict[str, Json], value)

    @contextmanager
    def blamed(self, key: str) -> Generator[None]:
        """What is wrong with a table's values is said with the file that they stand in."""
        try:
            yield
        except InvalidInput as error:
            raise InvalidInput(f"{self.root}/{FILE}, [{key}]: {error}") from error

    def text(self, key: str) -> str | None:
        """A setting that has to be text. Raises `InvalidInput` when it is something else."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{self.root}/{FILE}: {key} must be text, not {value!r}.")
        return value


def load(start: Path | None = None) -> Config:
    """The configuration in force below `start` (the working folder). Raises `InvalidInput` for a broken file."""
    here = (start or Path.cwd()).resolve()
    root = next((folder for folder in (here, *here.parents) if (folder / FILE).is_file()), None)
    if root is None:
        return Config()
    try:
        values = tomllib.loads((root / FILE).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{root / FILE} is not UTF-8 (byte {error.start}): save it as UTF-8.") from error
    except (tomllib.TOMLDecodeError, OSError) as error:
        raise InvalidInput(f"{root / FILE}: {error}.") from error
    for key in values:
        if key not in KEYS:
            raise UnknownName(f"setting in {root / FILE}", key, KEYS)
    return Config(root, values)


def choose_model(named: str | None, config: Config) -> str | None:
    """The model that was named: by the caller, `MULLIGAN_MODEL`, `mulligan.toml`. None when nobody named one.

    Never a provider just because its key is set.
    """
    if named is not None and not named.strip():  # a shell's variable that is not set, as likely as not
        raise InvalidInput("The model's name is empty: leave --model out, or name one.")
    return named or os.environ.get("MULLIGAN_MODEL") or config.text("model")
