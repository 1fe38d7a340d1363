"""What a program takes that drives its own loop: configuration, models, plug-ins by name, the store and its records.

    from mulligan.running import load, open_store

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.app.config import load
    from mulligan.app.memory import open_bank
    from mulligan.app.plugins import attribute_of, names
    from mulligan.app.transcripts import lessons_about
    from mulligan.bench.harness.single import Bench, open_bench, options_of
    from mulligan.core.episode import Acted, Evaluated, Event, Recalled, Reflected, Stopped
    from mulligan.core.home import home
    from mulligan.core.protocols import Observer, Store
    from mulligan.models.answers import answer_in
    from mulligan.models.catalog import open_embedder
    from mulligan.models.tool_answers import in_json
    from mulligan.store import open_store

_HOMES = {
    "Acted": "core.episode",
    "Bench": "bench.harness.single",
    "Evaluated": "core.episode",
    "Event": "core.episode",
    "Observer": "core.protocols",
    "Recalled": "core.episode",
    "Reflected": "core.episode",
    "Stopped": "core.episode",
    "Store": "core.protocols",
    "answer_in": "models.answers",
    "attribute_of": "app.plugins",
    "home": "core.home",
    "in_json": "models.tool_answers",
    "lessons_about": "app.transcripts",
    "load": "app.config",
    "names": "app.plugins",
    "open_bank": "app.memory",
    "open_bench": "bench.harness.single",
    "open_embedder": "models.catalog",
    "open_store": "store",
    "options_of": "bench.harness.single",
}

__all__ = [
    "Acted",
    "Bench",
    "Evaluated",
    "Event",
    "Observer",
    "Recalled",
    "Reflected",
    "Stopped",
    "Store",
    "answer_in",
    "attribute_of",
    "home",
    "in_json",
    "lessons_about",
    "load",
    "names",
    "open_bank",
    "open_bench",
    "open_embedder",
    "open_store",
    "options_of",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
