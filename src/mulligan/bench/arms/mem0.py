"""mem0 with its vector store in a folder. No model is used (`infer=False`): the text of each episode is stored."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mulligan.bench.arms._installed import embedded_rows, package
from mulligan.plugins import Embedder, Episode, Task, episode_text
from mulligan.running import open_embedder

_USER = "exam"
_NO_MODEL = {"provider": "openai", "config": {"api_key": "none"}}


class _Embedding:
    """An embedder with mem0's interface, which mem0 calls in a thread."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return asyncio.run(embedded_rows(self._inner, texts))


class Mem0:
    """Recalls what a search finds.

    Args:
        embedder: as in [memory]. `hash` compares words.
        top_k: the maximum number of episodes.
    """

    def __init__(self, embedder: str = "hash", *, top_k: int = 20, folder: str) -> None:
        model = open_embedder(embedder)
        os.environ.setdefault("MEM0_TELEMETRY", "False")
        os.environ.setdefault("MEM0_DIR", folder)
        store = {"path": str(Path(folder, "vectors")), "embedding_model_dims": model.dim}
        history = str(Path(folder, "history.db"))
        config: dict[str, Any] = {"llm": _NO_MODEL, "embedder": _NO_MODEL, "history_db_path": history}
        config["vector_store"] = {"provider": "qdrant", "config": store}
        self._memory = package("mem0", "mem0ai", major=2).Memory.from_config(config)
        self._memory.embedding_model = _Embedding(model)
        self._top_k = top_k

    async def learn(self, episode: Episode) -> None:
        messages = [{"role": "user", "content": episode_text(episode)}]
        await asyncio.to_thread(self._memory.add, messages, user_id=_USER, infer=False)

    async def recall(self, task: Task) -> str:
        options = {"filters": {"user_id": _USER}, "top_k": self._top_k}
        results = (await asyncio.to_thread(self._memory.search, task.prompt, **options))["results"]
        return "\n\n".join(row["memory"] for row in results)

    async def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()
