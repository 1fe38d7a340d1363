"""Opens models by name, each once: a model's own name, a role of mulligan.toml, or the name of a given object."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.app.config import Config
from mulligan.app.model_roles import errors_at, is_role, role_names, role_of
from mulligan.app.plugins import find, names
from mulligan.core.errors import InvalidInput
from mulligan.core.extras import MissingExtra
from mulligan.core.protocols import Model
from mulligan.core.records import Json
from mulligan.models.catalog import found_keys, open_model
from mulligan.models.settings import CallSettings


class Models:
    """Opens each model once, by its name or that of a role; a model given as an object answers to its own name.

    The table [calls] of mulligan.toml says how providers are called, and what a role says goes before it.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._given: dict[str, Model] = {}
        self._opened: dict[tuple[str, CallSettings, str | None], Model] = {}

    def name(self, given: str | Model | None) -> str | None:
        if given is None or isinstance(given, str):
            return given
        if self._given.setdefault(given.name, given) is not given:
            raise InvalidInput(f"Two models are called {given.name!r} here: give each a name of its own.")
        return given.name

    def open(self, name: str, *, calls: Mapping[str, Json] | None = None, key: str | None = None) -> Model:
        """calls: what goes before all that is configured of how a provider is called. key: the provider's key, where it
        does not stand in the environment. Raises `InvalidInput` for a model or a role that cannot be; nothing is
        called."""
        if name in self._given:
            return self._given[name]
        given, calls = calls or {}, self._config.table("calls")
        with self._config.errors_at("calls"):
            settings = CallSettings.parse({**calls, **given})
        if ":" in name or not is_role(self._config, name):
            return self._once(name, settings, key)
        role = role_of(self._config, name)
        with errors_at(role.source):
            settings = CallSettings.parse({**calls, **role.calls, **given})
            return self._once(role.model, settings, key)

    def _once(self, name: str, settings: CallSettings, key: str | None) -> Model:
        which = (name, settings, key)
        if which not in self._opened:
            try:
                self._opened[which] = open_model(name, settings=settings, key=key)
            except MissingExtra as error:
                raise InvalidInput(f"{error}. {_instead()}") from error
            except InvalidInput as error:
                if ":" in name:
                    raise
                roles = ", ".join(role_names(self._config))
                raise InvalidInput(f"{error} Or a model role: {roles}.") from error
        return self._opened[which]


def _instead() -> str:
    """What to use instead of an embedded model, from the keys and coding agents on this machine."""
    keys = [f"--model {name} ({variable} is set)" for variable, name in found_keys()]
    named = ", ".join(keys) or "--model PROVIDER:NAME, with the key that `mulligan models list` names"
    actors = [find("actors", name) for name in names("actors")]
    agents = [f'--actor "{spec}"' for actor in actors if hasattr(actor, "installed") for spec in actor.installed()]
    installed = f" Or let a coding agent try: {', '.join(agents)}." if agents else ""
    return f"Or name a provider's model: {named}.{installed}"
