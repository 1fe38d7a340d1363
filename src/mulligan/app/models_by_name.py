"""Opens the models of a run by their names."""

from __future__ import annotations

from mulligan.app.config import Config
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Model


class Models:
    """Opens each model once, by name; a model given as an object answers to its own name.

    The table [calls] of mulligan.toml says how providers are called.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._opened: dict[str, Model] = {}

    def name(self, given: str | Model | None) -> str | None:
        if given is None or isinstance(given, str):
            return given
        if self._opened.setdefault(given.name, given) is not given:
            raise InvalidInput(f"Two models are called {given.name!r} here: give each a name of its own.")
        return given.name

    def open(self, name: str) -> Model:
        from mulligan.models.catalog import open_model
        from mulligan.models.settings import CallSettings

        if name not in self._opened:
            with self._config.blamed("calls"):
                calls = CallSettings.parse(self._config.table("calls"))
            self._opened[name] = open_model(name, settings=calls)
        return self._opened[name]
