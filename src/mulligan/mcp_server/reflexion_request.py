"""The arguments of `reflexion-thinking`, checked in the seed's order and refused in the seed's words."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from mulligan.app.client_led_steps import MOST_TRIALS, ClientStep
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json

LONGEST = 2_000_000
"""Characters of all texts of a call together."""

_MISSING: Any = object()
_KINDS = {"actor": "act", "evaluator": "evaluate", "self-reflection": "reflect"}


@dataclass(frozen=True)
class Asked:
    """One call. text: `actorInputText`, where it is one, whatever the step. episode: the id that was passed."""

    step: ClientStep
    text: str | None = None
    episode: str | None = None
    reset: bool = False
    learn: bool = False


def asked(arguments: Mapping[str, Json] | None) -> Asked:
    """The call that these arguments make; None: none were sent. Raises `InvalidInput`."""
    if arguments is None:
        raise InvalidInput("Invalid input: stepData must be an object.")
    _bounded(arguments)
    trial, trials = _positive(arguments, "trialNumber"), _positive(arguments, "maxTrials")
    if trials > MOST_TRIALS:
        raise InvalidInput(f"Invalid 'maxTrials': must be at most {MOST_TRIALS}.")
    if trial > trials:
        raise InvalidInput("'trialNumber' cannot exceed 'maxTrials'.")
    memory = _memory(arguments.get("memoryOverride"))
    texts = _texts(arguments)
    passed = _truth(arguments, "passed")
    step = ClientStep(cast(Any, _KINDS[arguments["stepType"]]), trial, trials, **texts, passed=passed, memory=memory)
    text = arguments.get("actorInputText")
    episode, reset = _episode(arguments.get("episodeId")), bool(_truth(arguments, "reset"))
    if reset and episode is not None:
        raise InvalidInput("'reset' begins a new episode: leave 'episodeId' out, or go on with it without 'reset'.")
    learn = bool(_truth(arguments, "learn"))
    return Asked(step, text if isinstance(text, str) else None, episode, reset, learn)


def _bounded(arguments: Mapping[str, Json]) -> None:
    texts: list[Json] = list(arguments.values())
    override = arguments.get("memoryOverride")
    texts += cast(list[Json], override) if isinstance(override, list) else []
    length = sum(len(text) for text in texts if isinstance(text, str))
    if length > LONGEST:
        raise InvalidInput(f"The texts are {length:,} characters together, and {LONGEST:,} are taken: shorten them.")


def _positive(arguments: Mapping[str, Json], name: str) -> int:
    number = arguments.get(name)
    whole = isinstance(number, int) or (isinstance(number, float) and number.is_integer())
    if isinstance(number, bool) or not whole or cast(float, number) < 1:
        raise InvalidInput(f"Invalid '{name}': must be a positive integer.")
    return int(cast(float, number))


def _memory(given: Json) -> tuple[str, ...] | None:
    """What is no text is dropped from an override, as the seed's server does."""
    if given is None:
        return None
    if not isinstance(given, list):
        raise InvalidInput("Invalid 'memoryOverride': must be an array of strings.")
    return tuple(item for item in cast(list[Json], given) if isinstance(item, str))


def _texts(arguments: Mapping[str, Json]) -> dict[str, Json]:
    """What the step needs, and may have."""
    step = arguments.get("stepType", _MISSING)
    if not isinstance(step, str) or step not in _KINDS:
        raise InvalidInput(
            f"Unknown stepType: '{_as_javascript(step)}'. Must be 'actor', 'evaluator', or 'self-reflection'."
        )
    if step == "actor":
        return {"prompt": _text(arguments, "actorInputText", step)}
    texts: dict[str, Json] = {"output": _text(arguments, "actorOutputText", step)}
    score = arguments.get("evaluatorScore")
    if isinstance(score, str) or _number(score):
        texts["score"] = score
    elif step == "self-reflection":
        raise InvalidInput(f"Invalid 'evaluatorScore': must be a string or number for '{step}' step.")
    if step == "self-reflection" and arguments.get("reflectionText") is not None:
        texts["reflection"] = _text(arguments, "reflectionText", step)
    return texts


def _text(arguments: Mapping[str, Json], name: str, step: str) -> str:
    text = arguments.get(name)
    if not isinstance(text, str):
        raise InvalidInput(f"Invalid '{name}': must be a string for '{step}' step.")
    return text


def _number(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _truth(arguments: Mapping[str, Json], name: str) -> bool | None:
    value = arguments.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(f"Invalid '{name}': must be true or false.")
    return value


def _episode(given: Json) -> str | None:
    """An empty one counts as left out: some clients fill in every parameter."""
    if given is not None and not isinstance(given, str):
        raise InvalidInput("Invalid 'episodeId': must be a string.")
    return (given or "").strip() or None


def _as_javascript(value: Json) -> str:
    """As a template string of the seed's language has it."""
    if value is _MISSING:
        return "undefined"
    if isinstance(value, dict):
        return "[object Object]"
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return said if len(said) <= 100 else f"{said[:100]}…"
