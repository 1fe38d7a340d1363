"""Modules of DSPy. Notes are appended to the instructions of each predictor, in a copy of the module."""

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
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n".join(f"{name}: {text}" for name, text in texts.items())


def noted(
    agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    copy = agent.deepcopy()
    for _, predictor in copy.named_predictors():
        signature = predictor.signature
        predictor.signature = signature.with_instructions(f"{signature.instructions}\n\n{notes}")
    return copy, args, kwargs


def answer(result: Any) -> Any:
    """The value of a prediction with one field; otherwise the prediction."""
    fields = dict(result.items()) if hasattr(result, "items") else dict[str, Any]()
    fields.pop("reasoning", None)
    return next(iter(fields.values())) if len(fields) == 1 else result


def attempt(result: Any) -> Attempt:
    fields = dict(result.items()) if hasattr(result, "items") else dict[str, Any]()
    value = answer(result)
    output = value if isinstance(value, str) else "\n".join(f"{name}: {value}" for name, value in fields.items())
    used = (result.get_lm_usage() or {}) if hasattr(result, "get_lm_usage") else {}
    usage = Usage(
        sum(usage_of_model.get("prompt_tokens") or 0 for usage_of_model in used.values()),
        sum(usage_of_model.get("completion_tokens") or 0 for usage_of_model in used.values()),
        len(used),
        None,
    )
    return Attempt(output or str(result), usage=usage if used else Usage())
