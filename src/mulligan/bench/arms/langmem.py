"""LangMem's memory tools with LangGraph's in-memory store. No model is used: the text of each episode is stored."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mulligan.bench.arms._installed import embedded_rows, package
from mulligan.plugins import Episode, Task, episode_text
from mulligan.running import open_embedder

_NAMESPACE = ("exam",)


class LangMem:
    """Recalls what a search finds.

    Args:
        embedder: as in [memory]. `hash` compares words.
        top_k: the maximum number of episodes.
    """

    def __init__(self, embedder: str = "hash", *, top_k: int = 10) -> None:
        model = open_embedder(embedder)

        async def embed(texts: Sequence[str]) -> list[list[float]]:
            return await embedded_rows(model, texts)

        langmem, stores = package("langmem", "langmem"), package("langgraph.store.memory", "langmem")
        store = stores.InMemoryStore(index={"dims": model.dim, "embed": embed})
        self._keep = langmem.create_manage_memory_tool(_NAMESPACE, store=store)
        self._search = langmem.create_search_memory_tool(_NAMESPACE, store=store)
        self._top_k = top_k

    async def learn(self, episode: Episode) -> None:
        await self._keep.ainvoke({"content": episode_text(episode), "action": "create"})

    async def recall(self, task: Task) -> str:
        rows = json.loads(await self._search.ainvoke({"query": task.prompt, "limit": self._top_k}))
        return "\n\n".join(row["value"]["content"] for row in rows)
