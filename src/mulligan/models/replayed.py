"""A model that repeats the answers of a recorded run, and nothing else. It needs no provider and no key."""

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
    """Finds the recorded answer by the whole request: messages, schema and sampling, but not the model's id.

    If a request was recorded several times, the answers come in the order of the recording.

    Args:
        steps: the model calls among the journal steps that `mulligan runs export` writes: {key, request, result}.
    """

    def __init__(self, steps: list[dict[str, Any]], name: str = "replay") -> None:
        self.name = self.id = name
        self._steps = steps
        self._unused: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for step in steps:
            self._unused[hash_of(step["request"])].append(step)

    @classmethod
    def parse(cls, file: str, text: str) -> ReplayedModel:
        """Reads an export. Raises `InvalidInput` if it is not one, or contains no model call."""
        try:
            export: Json = json.loads(text)
            rows = cast(list[dict[str, Any]], export["steps"])
            steps = [row for row in rows if _is_model(row)]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidInput(
                f"replay:{file} is not an export of a run: create one with  mulligan runs export RUN > {file}"
            ) from None
        if not steps:
            raise InvalidInput(f"replay:{file} contains no finished model call.")
        model = cls(steps, f"replay:{file}")
        model.id = f"{model.name}@{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return model

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Raises `ModelError` if the question was not recorded; it names the most similar one and the differences."""
        request = request_of(self.id, question, sampling)
        steps = self._unused.get(hash_of(request))
        if not steps:
            raise ModelError(f"{self.name}: {self._why_not(request)}")
        row = steps.pop(0)["result"]
        return read_result(row, Usage(**row["usage"]))

    def _why_not(self, request: Json) -> str:
        leaves = _leaves(without_model(request))
        nearest = max(self._steps, key=lambda step: len(leaves & _leaves(without_model(step["request"]))))
        differences = changes(without_model(nearest["request"]), without_model(request))
        if not differences:
            times = sum(hash_of(step["request"]) == hash_of(request) for step in self._steps)
            return f"this was recorded {times} times and is asked once more (last at {nearest['key']})."
        return f"this was not recorded; the nearest is {nearest['key']}, which differs in {', '.join(differences)}."


def _is_model(row: dict[str, Any]) -> bool:
    name = row["key"].rpartition("/")[2]
    return name.startswith("model.") and bool(row["result"]) and "messages" in row["request"]


def _leaves(value: Json, at: str = "") -> set[tuple[str, str]]:
    """Each line of each value with its path, so that the common lines of two requests can be counted."""
    if isinstance(value, dict):
        return {leaf for key, inner in cast(dict[str, Json], value).items() for leaf in _leaves(inner, f"{at}.{key}")}
    if isinstance(value, list):
        return {leaf for n, inner in enumerate(cast(list[Json], value)) for leaf in _leaves(inner, f"{at}.{n}")}
    return {(at, line) for line in str(value).splitlines()}
