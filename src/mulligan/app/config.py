"""The configuration: `mulligan.toml`, `.env`, environment variables and the user's data folder."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import cast

from mulligan.app.options import SolveOptions, options_in
from mulligan.app.plugin_files import real_path
from mulligan.app.trust import Contents, allowed, has_own_bank, risky, say_held, settings_contents, without
from mulligan.core import trusted
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.home import home
from mulligan.core.records import Json
from mulligan.hooks.project import Project, allow, project_of
from mulligan.text.files import read_text
from mulligan.text.model_names import SEPARATOR, model_names
from mulligan.text.toml_lines import line_of

FILE = "mulligan.toml"
OLD_NAME = "MULLIGAN_DATABASE"
"""The former name of `MULLIGAN_STORE`."""
TAMA = "tama.toml"
"""The project file of tama. Its models are read if there is no mulligan.toml beside it."""
OPTIONS = tuple(it.name for it in options_in(SolveOptions) if it.project)
"""The options of a run that the file may set, as strings."""
MODELS = tuple(name for name in OPTIONS if name.endswith("model"))
KEYS = (*OPTIONS, "limits", "calls", "project", "models", "foresight", "memory", "tools", "mcp", "kinds", "graphs")
"""The top-level keys of the file; a test compares them with `app.project_schema`."""

_LARGEST = 4 << 20
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENDS = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Config:
    """The configuration of a project, or an empty one.

    Attributes:
        root: the folder that contains the project file, if there is one.
        source: the file's text, for the line numbers in errors.
        file: the file's name.
        held: the keys that are ignored until the project is trusted (`app.trust`).
        own_bank: whether the bank next to the file can be used.
    """

    root: Path | None = None
    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    source: str = ""
    file: str = FILE
    held: frozenset[tuple[str, ...]] = frozenset()
    own_bank: bool = True

    @property
    def database(self) -> Path:
        """The store's file.

        It is in `MULLIGAN_HOME` if that is set, else in `.mulligan` next to `mulligan.toml`, unless that bank came with
        the repository and is not trusted, else in the user's data folder."""
        if os.environ.get("MULLIGAN_HOME") or self.root is None or not self.own_bank:
            return home() / "mulligan.db"
        return self.root / trusted.BANK / "mulligan.db"

    @property
    def store(self) -> str | Path:
        """The store's address: `MULLIGAN_STORE`, or else the file `database`.

        Raises:
            InvalidInput: the variable's former name is set, which would otherwise be ignored.
        """
        if not (address := os.environ.get("MULLIGAN_STORE")) and os.environ.get(OLD_NAME):
            raise InvalidInput(f"{OLD_NAME} is now called MULLIGAN_STORE: rename it. Its values stay the same.")
        return address or self.database

    def table(self, key: str) -> Mapping[str, Json]:
        """Returns a setting that must be a table.

        Raises:
            InvalidInput: the setting is not a table.
        """
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise InvalidInput(f"{self.where(key)}: [{key}] must be a table, not {value!r}.")
        return cast(dict[str, Json], value)

    def where(self, *keys: str) -> str:
        """Returns `path/mulligan.toml:LINE` for a key or for the nearest table above it."""
        line = line_of(self.source, keys)
        return f"{self.root}/{self.file}:{line}" if line else f"{self.root}/{self.file}"

    def refuse_held(self, *keys: str) -> None:
        """Raises `InvalidInput` if this setting is a model that needs trust, because no other model can replace it."""
        if keys in self.held:
            where = self.where(*keys)
            raise InvalidInput(
                f"{where} sets the model but is not trusted yet. Run mulligan trust, or specify a model."
            )

    @contextmanager
    def errors_at(self, key: str) -> Generator[None]:
        """Adds the file and the table to the messages of `InvalidInput` errors."""
        try:
            yield
        except InvalidInput as error:
            raise InvalidInput(f"{self.root}/{self.file}, [{key}]: {error}") from error

    def text(self, key: str) -> str | None:
        """Returns a setting that must be a string.

        Raises:
            InvalidInput: the setting is not a string.
        """
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{self.where(key)}: {key} must be a string, not {value!r}.")
        return value


def project_file(folder: Path) -> Path | None:
    """The project file in this folder: mulligan.toml, else tama.toml; None if there is neither."""
    return next((folder / name for name in (FILE, TAMA) if os.path.isfile(folder / name)), None)


def project_root(start: Path | None = None) -> Path | None:
    """The nearest folder with a project file, upward from `start` (the working folder)."""
    here = (start or Path.cwd()).absolute()
    return next((folder for folder in (here, *here.parents) if project_file(folder)), None)


def project_here(config: Config, folder: Path | None = None, *, allowed: bool = False) -> Project:
    """The project whose facts are used: the `name` in [project], else the repository, else the project file's folder.
    Without any of these, its id is "".

    Args:
        folder: default is the working folder. A folder without a repository is a project of its own.
        allowed: a person allowed the folder to use the lessons of the project that it names.
    """
    find = allow if allowed else project_of
    here = (folder or Path.cwd()).absolute()
    named = config.table("project").get("name")
    refused = Project("")
    if isinstance(named, str) and named.strip() and config.root in (here, *here.parents):
        refused = find(str(config.root), named.strip())
        if not refused.notice:
            return refused
    own = find(str(here))
    if folder is None and own.id == os.path.realpath(here):
        own = Project("") if config.root is None else find(str(config.root))
    return Project(own.id, refused.claim, refused.folder, refused.owner) if refused.notice else own


def load(start: Path | None = None) -> Config:
    """Returns the configuration for `start` (default: the working folder).

    Until the project is trusted, settings that run, redirect or loosen something are ignored, which is reported once
    (`app.trust`). A trusted project also sets variables from the `.env` next to its file, unless they are already set.
    Model files are relative to the project file. Without a project file, no `.env` is read.

    Raises:
        InvalidInput: a file is invalid.
    """
    config, contents = read_project(start)
    if contents is None:
        return config
    other_home = os.environ.get("MULLIGAN_HOME") or os.environ.get("MULLIGAN_STORE")
    own_bank = bool(other_home) or has_own_bank(contents.folder)
    is_held = not contents.trusted
    if is_held or not own_bank:
        say_held(contents, bank=not own_bank)
    if is_held:
        held = frozenset(risky(config.values, contents.folder))
        return replace(config, values=without(config.values, held), held=held, own_bank=own_bank)
    return replace(config, own_bank=own_bank)


def read_project(start: Path | None = None) -> tuple[Config, Contents | None]:
    """The configuration with all settings, trusted or not, and, if there is a project, what it would run or redirect.

    For checks that run nothing. A trusted project sets the variables of its `.env`. Raises as `load` does.
    """
    root = project_root(start)
    file = root and project_file(root)
    if root is None or file is None:
        return Config(), None
    dotenv = root / ".env"
    for name in (file, dotenv):
        if name.is_file() and name.stat().st_size > _LARGEST:
            raise InvalidInput(f"{name} is larger than {_LARGEST >> 20} MB, which is too large for a settings file.")
    text = read_text(file)
    values = parse(file, text)
    config = Config(root, values, text, file.name)
    if file.name == TAMA:
        config = replace(config, values=_tama_settings(config))
    else:
        _check_keys(config)
    risks = risky(config.values, root)
    for key in MODELS:
        if isinstance(value := values.get(key), str):
            values[key] = located_model(value, root)
    variables = allowed(read_dotenv(dotenv), risks) if os.path.isfile(dotenv) else {}
    contents = settings_contents(root, file, risks, variables)
    if contents.trusted:
        contents.hold()
        if "MULLIGAN_HOME" in variables:
            os.environ.setdefault(trusted.HOME, str(home()))
        for name, value in variables.items():
            is_model = name.startswith("MULLIGAN_MODEL")
            os.environ.setdefault(name, located_model(value, root) if is_model else value)
    return config, contents


def _check_keys(config: Config) -> None:
    for key in config.values:
        if key not in KEYS:
            raise UnknownName(f"setting in {config.where(key)}", key, KEYS)


def _tama_settings(config: Config) -> dict[str, Json]:
    """The settings of a tama.toml that Mulligan uses: [models], each with the base_url of its provider."""
    tables = {name: cast(Mapping[str, Json], t) for name, t in config.table("providers").items() if isinstance(t, dict)}
    urls = {name: table["base_url"] for name, table in tables.items() if "base_url" in table}
    models: dict[str, Json] = {}
    for role, model in config.table("models").items():
        table: dict[str, Json] = dict(cast(Mapping[str, Json], model)) if isinstance(model, dict) else {"name": model}
        provider = str(table.get("name")).partition(":")[0]
        models[role] = {"base_url": urls[provider], **table} if provider in urls else model
    return {"models": models} if models else {}


def parse(file: Path, text: str) -> dict[str, Json]:
    """The text as TOML. Raises `InvalidInput` with the line of the mistake."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"at line (\d+)", str(error))
        line = match[1] if match else len(text.splitlines()) or 1
        raise InvalidInput(f"{file}:{line}: {error}.") from error
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, or a thousand brackets
        raise InvalidInput(f"{file} cannot be read: {error}.") from error


def read_dotenv(file: Path) -> dict[str, str]:
    """The variables of a `.env` file. `$NAME` and `${NAME}` are not replaced; of several lines for a name, the last
    counts.

    Raises `InvalidInput`, which never shows the text, for a file that is not UTF-8 and a line that does not have the
    form NAME=VALUE.
    """
    from dotenv.parser import parse_stream

    variables: dict[str, str] = {}
    for binding in parse_stream(StringIO(read_text(file))):
        text = binding.original.string
        line = binding.original.line + len(_ENDS.findall(text[: len(text) - len(text.lstrip())]))
        if binding.error or (binding.key is not None and binding.value is None):
            raise InvalidInput(f"{file}:{line}: a line must have the form NAME=VALUE, with each quote closed.")
        if binding.key is None or binding.value is None:
            continue
        if not _VARIABLE.fullmatch(binding.key):
            raise InvalidInput(f"{file}:{line}: a name of letters, digits and _ must come before the =.")
        if "\0" in binding.value:
            raise InvalidInput(f"{file}:{line}: the value contains a NUL character.")
        variables[binding.key] = binding.value
    return variables


def located_model(name: str, folder: Path) -> str:
    """Returns the name of one or more models, with absolute paths (scripted:FILE, replay:FILE, local:FILE.gguf).

    Relative paths are relative to `folder`."""
    if len(names := model_names(name)) > 1:
        return SEPARATOR.join(located_model(one, folder) for one in names)
    kind, _, file = name.partition(":")
    is_file = kind in ("scripted", "replay") or (kind == "local" and file.endswith(".gguf"))
    return f"{kind}:{real_path(file, folder)}" if is_file and file else name


def choose_model(named: str | None, config: Config) -> str | None:
    """The model that the caller, `MULLIGAN_MODEL` or `mulligan.toml` names, in this order; None without any.

    A provider is never chosen because its key is set.
    """
    if named is not None and not named.strip():  # probably from a shell variable that is not set
        raise InvalidInput("The model name is empty: omit model=, or set it to a model.")
    return named or os.environ.get("MULLIGAN_MODEL") or config.text("model")


def prompts_folder(config: Config) -> str | None:
    """The absolute path of the user's prompts folder."""
    folder = config.text("prompts")
    return str((config.root or Path.cwd()) / folder) if folder else None
