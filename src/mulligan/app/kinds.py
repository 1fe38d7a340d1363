"""The kind of a task: given, or by the rules of mulligan.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from mulligan.app.config import Config
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json, KindOrigin, Task, checked_kind


def check_rule(pattern: str, kind: Json) -> re.Pattern[str]:
    """The pattern of a rule. Raises `InvalidInput` for a rule that cannot be used."""
    if not isinstance(kind, str) or not checked_kind(kind):
        raise InvalidInput(f"the kind of {pattern!r} must be a string, not {kind!r:.60}.")
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InvalidInput(f"{pattern!r} is not a valid regular expression: {error}.") from None


def with_kind(task: Task, kind: str | None, config: Config) -> Task:
    """The task with its kind: the given one, else its own, else that of the first rule of [kinds] that fits the prompt.

    Raises `InvalidInput` for a kind or a rule that cannot be used.
    """
    if kind is not None or task.kind:
        return replace(task, kind=task.kind if kind is None else kind, kind_from=KindOrigin("given"))
    with config.errors_at("kinds"):
        rules: Mapping[str, Json] = config.table("kinds")
        fitting = [pattern for pattern, found in rules.items() if check_rule(pattern, found).search(task.prompt)]
    return replace(task, kind=rules[fitting[0]], kind_from=KindOrigin("rule", fitting[0])) if fitting else task
