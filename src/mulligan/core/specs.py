"""A plug-in by name with its settings, as it stands in a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mulligan.core.records import Json


@dataclass(frozen=True)
class Spec:
    """Plain JSON: what `mulligan.app.plugins` finds and builds. `name`: of a file here, a dotted path, `./mine.py`."""

    name: str
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def with_settings(self, **settings: Json) -> Spec:
        return Spec(self.name, {**self.settings, **settings})
