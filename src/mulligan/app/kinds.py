"""The kind of a task: given by the user, or found by the rules of mulligan.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from mulligan.app.config import Config
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json, KindOrigin, Task, checked_kind


def check_rule(pattern: str, kind: Json) -> re.Pattern[str]:
    """The compiled pattern of a rule. Raises `InvalidInput` for an invalid rule."""
    if not isinstance(kind, str) or not checked_kind(kind):
        raise InvalidInput(f"the kind of {pattern!r} must be a string, not {kind!r:.60}.")
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InvalidInput(f"{pattern!r} is not a valid regular expression: {error}.") from None


def with_kind(task: Task, kind: str | None, config: Config) -> Task:
    """The task with its kind: the given one, else its own, else that of the first rule in [kinds] that fits the prompt.

    Raises `InvalidInput` for an invalid kind or rule.
    """
    if kind is not None or task.kind:
        return replace(task, kind=task.kind if kind is None else kind, kind_from=KindOrigin("given"))
    with config.errors_at("kinds"):
        rules: Mapping[str, Json] = config.table("kinds")
        matching = [pattern for pattern, name in rules.items() if check_rule(pattern, name).search(task.prompt)]
    return replace(task, kind=rules[matching[0]], kind_from=KindOrigin("rule", matching[0])) if matching else task
