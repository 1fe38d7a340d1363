"""What the record of a graph's episodes says that they rest on."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from mulligan.core.records import Head, Json
from mulligan.langgraph.journalled import model_id, models_in


def head(models: Mapping[str, Any], prompts: Mapping[str, str], settings: Mapping[str, Json]) -> Head:
    """models: by role, as `journalled` gave them. prompts: sha256 by name. settings: JSON."""
    named = {role: ", ".join(map(model_id, models_in(model))) for role, model in models.items()}
    return Head(_versions(), named, {"led_by": "langgraph", **settings}, prompts)


@cache
def _versions() -> Mapping[str, str]:
    ours = {name: version(name) for name in ("mulligan", "langgraph", "langchain-core")}
    return {**ours, "python": platform.python_version(), "platform": platform.platform()}
