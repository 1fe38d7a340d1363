"""The cost of calls, from the price tables that come with pydantic-ai (genai-prices). Unknown is None, never zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from mulligan.models.settings import CallSettings

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse


@dataclass(frozen=True)
class Price:
    """US dollars per token, at the rate for short prompts."""

    input: float
    output: float


@runtime_checkable
class Priced(Protocol):
    """A model whose price is known in advance. Other models are trusted to report their costs."""

    def price(self) -> Price | None: ...


def given(settings: CallSettings) -> Price | None:
    """The price that the user has set, if any."""
    if settings.input_price is None or settings.output_price is None:
        return None
    return Price(settings.input_price / 1e6, settings.output_price / 1e6)


def listed(provider: str, model: str) -> Price | None:
    """The price in the tables; None if they do not have the model."""
    from genai_prices import Usage, calc_price

    try:
        input_price, output_price = (
            float(calc_price(usage, model, provider_id=provider).total_price) / 1000
            for usage in (Usage(input_tokens=1000, output_tokens=0), Usage(input_tokens=0, output_tokens=1000))
        )
    except (LookupError, ValueError):
        return None
    return Price(input_price, output_price)


def cost_of(response: ModelResponse, provider: str, model: str) -> float | None:
    """The cost of this response, with the rates for cached tokens and long prompts; None if unknown."""
    from genai_prices import calc_price

    if response.usage.cost is not None:
        return float(response.usage.cost)
    for name in (response.model_name, model):
        try:
            return float(calc_price(response.usage, name or model, provider_id=provider).total_price)
        except (LookupError, ValueError):
            continue
    return None
