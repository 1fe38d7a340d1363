"""Modules of DSPy. Notes are a part of the instructions of each of its predictors, in a copy of the module."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mulligan.core.records import Attempt, Usage

PACKAGE = "dspy"
ENTRIES = {"__call__": False, "acall": True}
UNJUDGED = ("forward", "aforward", "batch", "deepcopy", "reset_copy")


def recognises(agent: Any) -> bool:
    return hasattr(agent, "named_predictors") and hasattr(agent, "deepcopy")


def task(agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    texts = {name: value for name, value in kwargs.items() if isinstance(value, str)}
    return next(iter(texts.values())) if len(texts) == 1 else "\n".join(f"{n}: {text}" for n, text in texts.items())


def noted(
    agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    copy = agent.deepcopy()
    for _, predictor in copy.named_predictors():
        own = predictor.signature
        predictor.signature = own.with_instructions(f"{own.instructions}\n\n{notes}")
    return copy, args, kwargs


def answer(result: Any) -> Any:
    """The only field of a prediction, else the prediction."""
    fields = dict(result.items()) if hasattr(result, "items") else dict[str, Any]()
    fields.pop("reasoning", None)
    return next(iter(fields.values())) if len(fields) == 1 else result


def attempt(result: Any) -> Attempt:
    fields = dict(result.items()) if hasattr(result, "items") else dict[str, Any]()
    found = answer(result)
    output = found if isinstance(found, str) else "\n".join(f"{name}: {value}" for name, value in fields.items())
    used = (result.get_lm_usage() or {}) if hasattr(result, "get_lm_usage") else {}
    usage = Usage(
        sum(one.get("prompt_tokens") or 0 for one in used.values()),
        sum(one.get("completion_tokens") or 0 for one in used.values()),
        len(used),
        None,
    )
    return Attempt(output or str(result), usage=usage if used else Usage())
