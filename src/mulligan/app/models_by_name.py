"""Models by name, opened once each: a model's own name, a role of mulligan.toml, or an object that was given."""

from __future__ import annotations

from mulligan.app.config import Config
from mulligan.app.model_roles import blamed, is_role, role_names, role_of
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Model
from mulligan.models.settings import CallSettings


class Models:
    """Opens each model once, by its name or that of a role; a model given as an object answers to its own name.

    The table [calls] of mulligan.toml says how providers are called, and what a role says goes before it.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._given: dict[str, Model] = {}
        self._opened: dict[tuple[str, CallSettings], Model] = {}

    def name(self, given: str | Model | None) -> str | None:
        if given is None or isinstance(given, str):
            return given
        if self._given.setdefault(given.name, given) is not given:
            raise InvalidInput(f"Two models are called {given.name!r} here: give each a name of its own.")
        return given.name

    def open(self, name: str) -> Model:
        """Raises `InvalidInput` for a model or a role that cannot be; nothing is called."""
        if name in self._given:
            return self._given[name]
        calls = self._config.table("calls")
        with self._config.blamed("calls"):
            settings = CallSettings.parse(calls)
        if ":" in name or not is_role(self._config, name):
            return self._once(name, settings)
        role = role_of(self._config, name)
        with blamed(role.source):
            settings = CallSettings.parse({**calls, **role.calls})
            return self._once(role.model, settings)

    def _once(self, name: str, settings: CallSettings) -> Model:
        from mulligan.models.catalog import open_model

        key = (name, settings)
        if key not in self._opened:
            try:
                self._opened[key] = open_model(name, settings=settings)
            except InvalidInput as error:
                if ":" in name:
                    raise
                roles = ", ".join(role_names(self._config))
                raise InvalidInput(f"{error} Or a model role: {roles}.") from error
        return self._opened[key]
