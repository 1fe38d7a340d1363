"""The `Embedder` of any provider that pydantic-ai supports: batches, retries, costs.

pydantic-ai and the provider's SDK are imported at the first call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.records import Usage
from mulligan.models.failures import Failure
from mulligan.models.prices import Price
from mulligan.models.provider_client import ProviderClient, Target

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult

BATCH = 64  # texts in one call
BATCHES = {"alibaba": 10, "cohere": 96, "google": 100}  # for providers that accept fewer, or are known to accept more
OPENAI = ("openai-chat", "openai-responses")
NO_PROVIDER = "sentence-transformers"  # pydantic-ai runs these in this process: there is no server


class ProviderEmbedder(ProviderClient["EmbeddingModel"]):
    """An embedder of a provider, made by `open_embedder`, which has checked the key.

    Attributes:
        dim: the dimensions, from the name (`…@256` asks the provider for 256) or the first answer; 0 until known.
        spent: the usage of all calls; its cost is None once the cost of a call is unknown.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._model, self._asked_dim = dimensions(target.model)
        self.dim = self._asked_dim or 0
        self.spent = Usage()
        if target.provider == NO_PROVIDER:
            self._flat = self._flat or Price(0.0, 0.0)

    def _build(self) -> EmbeddingModel:
        """Raises `InvalidInput` if the provider has no embedders."""
        from pydantic_ai.embeddings import infer_embedding_model
        from pydantic_ai.exceptions import UserError

        from mulligan.models.wire import connection

        provider = "openai" if self._provider in OPENAI else self._provider
        made: Any = None if provider == NO_PROVIDER else connection(provider, self._access, self._settings)
        try:
            return infer_embedding_model(f"{provider}:{self._model}", provider_factory=lambda _: made)
        except UserError:
            raise InvalidInput(
                f"{self.id}: {provider} has no embedder that Mulligan supports. Use another provider, or local."
            ) from None

    async def embed(self, texts: Sequence[str]) -> Any:
        """A numpy array of float32 with shape (len(texts), dim), whose rows have length 1.

        An empty text is sent as a space, because providers refuse it. Raises `ModelError` after the last attempt, and
        if the answer is not such an array, or has another dimension than before. Earlier batches are then lost, but
        counted in `spent`.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dim), np.float32)
        await self._ready()
        size = BATCHES.get(self._provider, BATCH)
        return np.concatenate([await self._batch(texts[at : at + size]) for at in range(0, len(texts), size)])

    async def _batch(self, texts: Sequence[str]) -> Any:
        settings: Any = {"dimensions": self._asked_dim} if self._asked_dim else None
        sent = [text or " " for text in texts]
        result, attempts = await self._send(lambda: self.load().embed(sent, input_type="document", settings=settings))
        if isinstance(result, Failure):
            raise self._error(result, attempts)
        self.spent += self._usage(result, texts)
        return self._checked_vectors(result.embeddings, len(texts))

    def _checked_vectors(self, rows: Sequence[Sequence[float]], wanted: int) -> Any:
        """The rows, scaled to length 1. All answers must have the dimension of the first one."""
        import numpy as np

        try:
            vectors: Any = np.array(rows, np.float32)
        except (ValueError, TypeError):
            vectors = np.empty(0)
        if vectors.ndim != 2 or len(vectors) != wanted or not np.isfinite(vectors).all():
            raise ModelError(f"{self._where} returned something other than {wanted} vectors.")
        if vectors.shape[1] != (self.dim or vectors.shape[1]):
            raise ModelError(
                f"{self._where} returned vectors of {vectors.shape[1]} dimensions, not {self.dim}: they cannot be "
                "compared."
            )
        lengths: Any = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not lengths.all():
            raise ModelError(f"{self._where} returned a vector of length 0, which has no direction.")
        self.dim = int(vectors.shape[1])
        return vectors / lengths

    def _usage(self, result: EmbeddingResult, texts: Sequence[str]) -> Usage:
        tokens = result.usage.input_tokens or sum(map(len, texts)) // 4 + 1  # a guess if the server counts nothing
        if self._flat:
            return Usage(tokens, 0, 1, tokens * self._flat.input)
        try:
            cost = float(result.cost().total_price) if result.usage.input_tokens else None
        except (LookupError, ValueError, AssertionError):
            cost = None
        return Usage(tokens, 0, 1, cost)


def dimensions(model: str) -> tuple[str, int | None]:
    """Splits `text-embedding-3-small@256` into the name and the dimensions. (`NAME@003` is a whole name.)"""
    wanted = re.fullmatch(r"(.+)@([1-9]\d*)", model, re.ASCII)
    return (wanted[1], int(wanted[2])) if wanted else (model, None)
