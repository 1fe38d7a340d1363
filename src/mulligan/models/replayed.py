"""A model that repeats the answers of a recorded run, and answers nothing else. Needs no provider and no key."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from typing import Any, cast

from mulligan.core.codec import changes
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Json, Usage
from mulligan.models.gate import read_result
from mulligan.models.requests import hash_of, request_of, without_model


class ReplayedModel:
    """Finds the recorded answer by the whole request: messages, schema and sampling; the model's id is left out.

    steps: journal steps as `mulligan runs export` writes them, {key, request, result}; those of models count. The same
    request recorded several times is answered in the order of the recording.
    """

    def __init__(self, steps: list[dict[str, Any]], name: str = "replay") -> None:
        self.name = self.id = name
        self._steps = steps
        self._left: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for step in steps:
            self._left[hash_of(step["request"])].append(step)

    @classmethod
    def parse(cls, file: str, text: str) -> ReplayedModel:
        """Read an export. Raises `InvalidInput` if it is not one, or holds no model call."""
        try:
            export: Json = json.loads(text)
            rows = cast(list[dict[str, Any]], export["steps"])
            steps = [row for row in rows if _is_model(row)]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInput(
                f"replay:{file} is not an export of a run: make one with  mulligan runs export RUN > {file}"
            ) from None
        if not steps:
            raise InvalidInput(f"replay:{file} contains no finished model call.")
        model = cls(steps, f"replay:{file}")
        model.id = f"{model.name}@{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return model

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Raises `ModelError` for a question that was not recorded: it names the nearest, and where that differs."""
        request = request_of(self.id, question, sampling)
        steps = self._left.get(hash_of(request))
        if not steps:
            raise ModelError(f"{self.name}: {self._why_not(request)}")
        row = steps.pop(0)["result"]
        return read_result(row, Usage(**row["usage"]))

    def _why_not(self, request: Json) -> str:
        mine = _leaves(without_model(request))
        nearest = max(self._steps, key=lambda step: len(mine & _leaves(without_model(step["request"]))))
        where = changes(without_model(nearest["request"]), without_model(request))
        if not where:
            times = sum(hash_of(step["request"]) == hash_of(request) for step in self._steps)
            return f"this was recorded {times} times and is asked once more (last at {nearest['key']})."
        return f"this was not recorded; the nearest is {nearest['key']}, which differs in {', '.join(where)}."


def _is_model(row: dict[str, Any]) -> bool:
    name = row["key"].rpartition("/")[2]
    return name.startswith("model.") and bool(row["result"]) and "messages" in row["request"]


def _leaves(value: Json, at: str = "") -> set[tuple[str, str]]:
    """Each line of each value with the place where it stands: what two requests have in common can be counted."""
    if isinstance(value, dict):
        return {leaf for key, inner in cast(dict[str, Json], value).items() for leaf in _leaves(inner, f"{at}.{key}")}
    if isinstance(value, list):
        return {leaf for n, inner in enumerate(cast(list[Json], value)) for leaf in _leaves(inner, f"{at}.{n}")}
    return {(at, line) for line in str(value).splitlines()}
