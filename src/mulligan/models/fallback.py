"""Several models used as one: each question goes to the first, and to the next one if that fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.protocols import Model
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.models.failures import Unusable
from mulligan.models.prices import Price, Priced
from mulligan.models.sight import sees
from mulligan.text.model_names import SEPARATOR

log = logging.getLogger("mulligan.models")


class Fallback:
    """A `Model` that asks these models in turn until one answers. The answer's `model` tells which.

    A response that was paid for but cannot be used is an error; the next model is not asked then.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = models
        self.name = SEPARATOR.join(model.name for model in models)
        self.id = SEPARATOR.join(model.id for model in models)

    @classmethod
    def of(cls, names: Sequence[str], opens: Callable[[str], Model], key: str | None) -> Fallback:
        """Opens these models. Raises `InvalidInput` for a key, which would go to several providers."""
        if key is not None:
            raise InvalidInput(
                f"One key cannot be used for several models ({SEPARATOR.join(names)}): set their environment variables."
            )
        return cls([opens(name) for name in names])

    @property
    def sees(self) -> bool:
        """Whether all of them accept images."""
        return all(map(sees, self._models))

    @property
    def calls_tools(self) -> bool:
        """Whether all of them can call tools."""
        return all(getattr(model, "calls_tools", True) for model in self._models)

    def price(self) -> Price | None:
        """The highest of their prices, so that a budget holds for each of them; None if one is unknown."""
        prices = [model.price() for model in self._models if isinstance(model, Priced)]
        known = [price for price in prices if price is not None]
        if len(known) < len(prices):
            return None
        return Price(max((p.input for p in known), default=0.0), max((p.output for p in known), default=0.0))

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Asks the models in turn. Raises what the last one raises."""
        *first, last = self._models
        for model in first:
            try:
                return await model.ask(question, sampling)
            except Unusable:
                raise
            except ModelError as error:
                log.warning("asking the next model: %s", error)
        return await last.ask(question, sampling)
