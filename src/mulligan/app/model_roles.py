"""Model roles, from environment variables and `mulligan.toml`: which model a step gets.

A role's name can be used wherever a model's can. Records contain the role, which a resume looks up again.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_type_hints

from mulligan.agentfile.agent import ModelChoice
from mulligan.app.config import Config, choose_model, load, located_model
from mulligan.app.plugins import find, names
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.extras import MissingExtra, install_command
from mulligan.core.protocols import Model
from mulligan.core.questions import Sampling
from mulligan.core.records import Json
from mulligan.models.catalog import found_keys, open_model
from mulligan.models.fallback import Fallback
from mulligan.models.providers import PROVIDERS, require_sdk
from mulligan.models.settings import CallSettings
from mulligan.models.weights.known import KNOWN
from mulligan.text.model_names import SEPARATOR, model_names

_LOCAL = "local"
OWN_KINDS = (_LOCAL, "scripted", "replay", "reader")
"""The kinds of models that no provider serves: the first parts of their names."""
_RESERVED = frozenset({*OWN_KINDS, *PROVIDERS})

BUILT_IN: Mapping[str, float] = {"thinker": 1.0, "worker": 0.0, "default": 0.8}
"""The roles that always exist, with their temperatures. Other roles have the temperature of `default`."""

_ROLE_OF_PATTERN = {"react": "thinker", "oneshot": "worker"}
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


@dataclass(frozen=True)
class RoleSettings:
    """The settings of a role, except how its provider is called.

    `agentfile/keys.toml` describes each for the docs. Raises `InvalidInput` for values that can never work.
    """

    name: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.name is not None and (not isinstance(self.name, str) or not self.name.strip()):
            raise InvalidInput(f"The name must be a model name, such as {_LOCAL!r}, not {self.name!r}.")
        value: object = self.temperature
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if value is not None and not (number and 0 <= cast(float, value) <= 2):
            raise InvalidInput(f"The temperature must be a number from 0 to 2, not {value!r}.")
        tokens: object = self.max_tokens
        if tokens is not None and (not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1):
            raise InvalidInput(f"max_tokens must be an integer of at least 1, not {tokens!r}.")


_SETTINGS = tuple(f.name for f in fields(RoleSettings))
_CALLS = tuple(f.name for f in fields(CallSettings))
_KINDS = {**get_type_hints(RoleSettings), **get_type_hints(CallSettings)}


@dataclass(frozen=True)
class Role:
    """A role, from the environment and the file. `calls` overrides the table [calls].

    source: where its model is named; "" for the embedded one.
    """

    name: str
    model: str
    temperature: float
    max_tokens: int | None = None
    calls: Mapping[str, Json] = field(default_factory=dict[str, Json])
    source: str = ""


@dataclass(frozen=True)
class StepModel:
    """The model of a step, by name or role (see `Models.open`), and its sampling."""

    name: str
    temperature: float | None = None
    max_tokens: int | None = None


def chosen(
    config: Config, choice: ModelChoice | None, pattern: Literal["react", "oneshot"], flag: str | None
) -> StepModel:
    """The model of a step: that of the flag (a role or a model), else of the front matter, the environment, or
    mulligan.toml, else the built-in one.

    If the front matter names no model, a react step gets `thinker` and a oneshot step `worker`. A model that is named
    instead of a role keeps the role's temperature and max_tokens, unless the front matter sets them. Raises
    `UnknownName` for an unknown role, and `InvalidInput` for an invalid setting or name of a model.
    """
    choice = choice or ModelChoice()
    if flag is not None and not flag.strip():
        raise InvalidInput("The model name is empty: omit model=, or set it to a model.")
    role = role_of(config, flag if flag and is_role(config, flag) else choice.role or _ROLE_OF_PATTERN[pattern])
    for name in model_names(choice.name or ""):
        if name and not is_role(config, name):
            check_model_name(name)
    return StepModel(
        flag or choice.name or role.name,
        role.temperature if choice.temperature is None else choice.temperature,
        role.max_tokens if choice.max_tokens is None else choice.max_tokens,
    )


def role_names(config: Config) -> list[str]:
    """The built-in roles, then those of mulligan.toml. Raises `InvalidInput` for a name that roles cannot have."""
    own = config.table("models")
    for name in own:
        check_role_name(name, config.where("models", name))
    return list(dict.fromkeys((*BUILT_IN, *own)))


def check_role_name(name: str, where: str) -> None:
    """Raises `InvalidInput` for a name that is reserved for models, or that cannot be part of a variable's name."""
    if name in _RESERVED:
        raise InvalidInput(f"{where}: {name!r} is reserved for model names, so a role cannot use it.")
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{where}: the role {name!r} must be in lower case, such as my-role or my_role.")


def is_role(config: Config, name: str) -> bool:
    """Returns whether a role has this name: a built-in role, or one from mulligan.toml or the environment."""
    if name in role_names(config) or ("models", name) in config.held:
        return True
    return bool(_NAME.fullmatch(name) and name not in _RESERVED and _environment(_variable(name)))


def implicit(config: Config, name: str) -> bool:
    """Whether this is a role with the embedded model because nobody named another."""
    return is_role(config, name) and not role_of(config, name).source


def role_of(config: Config, name: str) -> Role:
    """The role, with its own model, or else that of `default`, or else the one that `solve` would use.

    Raises `UnknownName` for an unknown role, and `InvalidInput` for an invalid setting.
    """
    if not is_role(config, name):
        hint = "A role of your own is a line in the table [models] of mulligan.toml."
        raise UnknownName("model role", name, role_names(config), hint)
    settings = _settings_of(config, name)
    if "name" not in settings:
        settings = {**_settings_of(config, "default"), **settings}
    if "name" not in settings:
        settings = {**_default_settings(config), **settings}
    model, source = settings["name"]
    if is_role(config, model):
        raise InvalidInput(f"{source}: {model!r} is a role. Specify the model itself, such as {_LOCAL!r}.")
    values = {key: value for key, (value, _) in settings.items()}
    value = values.get("temperature", BUILT_IN.get(name, BUILT_IN["default"]))
    calls = {key: values[key] for key in _CALLS if key in values}
    return Role(name, model, value, values.get("max_tokens"), calls, source)


def vision_role(config: Config) -> str | None:
    """The role of the model that describes images for models that cannot see; None if nobody named one."""
    return "vision" if is_role(config, "vision") and ("models", "vision") not in config.held else None


ROLE_MODELS = ("reflect_model", "judge_model", "vision_model")
"""The options, and fields of a recipe, that name the model of a role."""


def role_models(config: Config, chosen_models: Mapping[str, str | None] = {}) -> dict[str, Any]:
    """The model for each of `ROLE_MODELS`: the chosen one, else the one of mulligan.toml."""
    return {
        name: chosen_models.get(name) or (vision_role(config) if name == "vision_model" else config.text(name))
        for name in ROLE_MODELS
    }


def check_model_name(name: str) -> None:
    """Raises `InvalidInput` for a name that no model can have. Needs no key and no package, and calls nothing."""
    if len(names := model_names(name)) > 1:
        for one in names:
            check_model_name(one)
        return
    kind, _, rest = name.strip().partition(":")
    if kind == "local" and (not rest or rest.endswith(".gguf")):
        return
    if kind == "local":
        if rest not in KNOWN:
            raise UnknownName("local model", rest, KNOWN, "Or use a file: local:FILE.gguf.")
    elif kind in ("scripted", "replay"):
        if not rest or not Path(rest).expanduser().is_file():
            open_model(name)  # raises an error that says what is wrong
    elif kind == "reader" or not rest:
        open_model(name)
    elif kind not in PROVIDERS:
        try:
            from pydantic_ai.providers import infer_provider_class

            infer_provider_class(kind)
        except ImportError:
            if get_close_matches(kind, PROVIDERS, n=1, cutoff=0.75):  # a typing error, which pydantic-ai would report
                raise UnknownName("model provider", kind, [*PROVIDERS, *OWN_KINDS]) from None
        except ValueError:
            raise UnknownName("model provider", kind, [*PROVIDERS, *OWN_KINDS]) from None


def check_model(name: str, config: Config) -> None:
    """Raises `InvalidInput` for an invalid model or role, and `MissingExtra` if its package is not installed. Needs no
    key, and opens and calls nothing."""
    if len(names := model_names(name)) > 1:
        for one in names:
            check_model(one, config)
        return
    if is_role(config, name):
        name = role_of(config, name).model
    if ":" not in name and name != "local":
        open_model(name)  # raises an error that says what is wrong
    check_model_name(name)
    if name.partition(":")[0] not in OWN_KINDS:
        require_sdk(f"{name} needs pydantic-ai")


def check_setting(key: str, value: Json) -> None:
    """Raises `InvalidInput` for an invalid value of a role's setting, and `UnknownName` for an unknown setting."""
    if key in _SETTINGS:
        RoleSettings(**{key: value})
    elif key in ("input_price", "output_price"):  # another check reports a price that is missing
        CallSettings(input_price=value, output_price=value)
    elif key in _CALLS:
        CallSettings(**{key: value})
    else:
        raise UnknownName("setting of a model role", key, [*_SETTINGS, *_CALLS])


def _settings_of(config: Config, role: str) -> dict[str, tuple[Any, str]]:
    """The role's settings, each with its source. The environment takes precedence over the file."""
    return {**_settings_in_file(config, role), **_settings_in_environment(role)}


def _default_settings(config: Config) -> dict[str, tuple[Any, str]]:
    """The settings of roles that name no model. Their model may itself be a role."""
    model = choose_model(None, config)
    if model is None:
        return {"name": (_LOCAL, "")}
    variable = "MULLIGAN_MODEL"
    source = variable if _environment(variable) else config.where("model")
    if not is_role(config, model):
        return {"name": (model, source)}
    return {"name": (model, source), **_settings_of(config, model)}


def _settings_in_file(config: Config, role: str) -> dict[str, tuple[Any, str]]:
    value = config.table("models").get(role, {})
    where = config.where("models", role)
    if isinstance(value, dict):
        settings = cast(dict[str, Any], value)
        table = {key: (setting, config.where("models", role, key)) for key, setting in settings.items()}
    elif isinstance(value, str):
        table: dict[str, tuple[Any, str]] = {"name": (value, where)}
    else:
        raise InvalidInput(f"{where}: the role {role!r} must be a model's name or a table, not {value!r}.")
    for key, (setting, source) in table.items():
        with errors_at(source):
            check_setting(key, setting)
    if "name" in table and config.root:
        table["name"] = (located_model(table["name"][0], config.root), table["name"][1])
    return table


def _settings_in_environment(role: str) -> dict[str, tuple[Any, str]]:
    settings: dict[str, tuple[Any, str]] = {}
    for key in (*_SETTINGS, *_CALLS):
        variable = _variable(role, "" if key == "name" else key)
        text = _environment(variable)
        if not text:
            continue
        if str not in get_args(_KINDS[key]) and _KINDS[key] is not str:
            settings[key] = ((text == "true" if text in ("true", "false") else _number(variable, text)), variable)
        else:
            settings[key] = (text, variable)
        with errors_at(variable):
            check_setting(key, settings[key][0])
    if "name" in settings:
        settings["name"] = (located_model(settings["name"][0], Path.cwd()), settings["name"][1])
    return settings


def _number(variable: str, text: str) -> float:
    try:
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise InvalidInput(f"The environment variable {variable} must be a number.") from None


def _variable(role: str, key: str = "") -> str:
    """The name of a variable, such as MULLIGAN_MODEL_MY_ROLE or MULLIGAN_MODEL_MY_ROLE_MAX_TOKENS."""
    parts = ("MULLIGAN_MODEL", role.replace("-", "_"), key)
    return "_".join(part.upper() for part in parts if part)


def _environment(variable: str) -> str:
    return os.environ.get(variable, "").strip()


@contextmanager
def errors_at(where: str) -> Generator[None]:
    """Puts the place before the message of an `InvalidInput`; "" adds nothing."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}" if where else str(error)) from error


class Models:
    """Opens each model once, by its own name or a role. A model given as an object is found by its `name`.

    The table [calls] of mulligan.toml says how providers are called; the settings of a role override it.

    Args:
        opens: called with the name of a model that is not a role, and with settings and key as `open_model` is.
    """

    def __init__(self, config: Config, opens: Callable[..., Model] = open_model) -> None:
        self._config = config
        self._opens = opens
        self._given: dict[str, Model] = {}
        self._opened: dict[tuple[str, CallSettings, str | None], Model] = {}

    @property
    def given(self) -> Sequence[str]:
        """The names of the models that were given as objects."""
        return tuple(self._given)

    def name(self, given: str | Model | Sequence[str] | None) -> str | None:
        """The name of a model; several names as one text. A model that is an object is remembered for `open`."""
        if given is None or isinstance(given, str):
            return given
        if isinstance(given, list | tuple):
            if not given or not all(isinstance(one, str) and one.strip() for one in given):
                raise InvalidInput(f"model must be the name of a model or a list of names, not {given!r:.200}.")
            return SEPARATOR.join(given)
        if not isinstance(given, Model):
            raise InvalidInput(f"A model must be a name, or an object with `ask`, not {given!r}.")
        if self._given.setdefault(given.name, given) is not given:
            raise InvalidInput(f"Two models are called {given.name!r}: give them different names.")
        return given.name

    def open(self, name: str, *, calls: Mapping[str, Json] | None = None, key: str | None = None) -> Model:
        """Opens a model; nothing is called.

        calls: overrides the configuration of how its provider is called. key: the provider's key, if it is not in the
        environment. Raises `InvalidInput` for an invalid model or role.
        """
        if name in self._given:
            return self._given[name]
        if len(names := model_names(name)) > 1:
            return Fallback.of(names, partial(self.open, calls=calls), key)
        given, calls = calls or {}, self._config.table("calls")
        with self._config.errors_at("calls"):
            settings = CallSettings.parse({**calls, **given})
        if ":" in name or not is_role(self._config, name):
            return self._once(name, settings, key)
        role = role_of(self._config, name)
        self._config.refuse_held("models", name)
        if not role.source:
            self._config.refuse_held("model")
        with errors_at(role.source):
            settings = CallSettings.parse({**calls, **role.calls, **given})
            return self._once(role.model, settings, key)

    def _once(self, name: str, settings: CallSettings, key: str | None) -> Model:
        which = (name, settings, key)
        if which not in self._opened:
            try:
                self._opened[which] = self._opens(name, settings=settings, key=key)
            except MissingExtra as error:
                if name.partition(":")[0] != _LOCAL:
                    raise
                raise InvalidInput(f"{error}. {_alternatives()}") from error
            except InvalidInput as error:
                if ":" in name:
                    raise
                roles = ", ".join(role_names(self._config))
                raise InvalidInput(f"{error} Or use a model role: {roles}.") from error
        return self._opened[which]


def _alternatives() -> str:
    """Says what to use instead of an embedded model, by the keys and coding agents on this machine."""
    with_keys = [f"model='{name}' ({variable} is set)" for variable, name in found_keys()]
    try:
        require_sdk("")
        after_install = ""
    except MissingExtra:
        after_install = f", after {install_command('models')}"
    models = ", ".join(with_keys) or "model=PROVIDER:NAME, with its key (see `mulligan models list`)"
    actors = [find("actors", name) for name in names("actors")]
    agents = [f'actor="{spec}"' for actor in actors if hasattr(actor, "installed") for spec in actor.installed()]
    installed = f" Or let a coding agent try: {', '.join(agents)}." if agents else ""
    return f"Or use a provider's model{after_install}: {models}.{installed}"


def configured_model(
    name: str | None, *, calls: Mapping[str, Json] | None = None, key: str | None = None
) -> tuple[Model, Sampling] | None:
    """Returns the model from the caller or the configuration, with its role's sampling; None if neither names a model.

    Args:
        calls: Overrides the configured call settings.
        key: The provider's key, if it is not in the environment.

    Raises:
        InvalidInput: The model, the role or a setting is invalid.
    """
    config = load()
    named = choose_model(name, config)
    if named is None:
        return None
    CallSettings.parse(calls or {})  # checked here, so that an error does not blame mulligan.toml
    model = Models(config).open(named, calls=calls, key=key)
    if ":" in named or not is_role(config, named):
        return model, Sampling()
    role = role_of(config, named)
    return model, Sampling(role.temperature, role.max_tokens)
