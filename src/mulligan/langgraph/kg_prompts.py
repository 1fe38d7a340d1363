"""What a model is told that writes queries for a graph: the files kg.draft.md and kg.revise.md, or yours."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from mulligan.core.graphs import Graph
from mulligan.core.protocols import Prompts

SLOTS = ("language", "rows", "graph", "notes", "lessons")
_KINDS = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
CYPHER = "Cypher"
"""As a language, it is made exact by what the database says of its own."""


class KGPrompts:
    """Raises `InvalidInput` for a file that cannot be used, or that has a placeholder which nobody fills."""

    def __init__(self, prompts: Prompts) -> None:
        self._parts = {part: prompts.get(f"kg.{part}").check(*SLOTS) for part in ("draft", "revise")}

    def messages(
        self, part: str, database: Graph, language: str, rows: int, schema: str, lessons: str = ""
    ) -> list[BaseMessage]:
        """part: "draft" or "revise". schema: the graph, in words. lessons: of earlier questions, in words."""
        rendered = self._parts[part].render(
            language=database.language if language == CYPHER else language,
            rows=str(rows),
            graph=schema,
            notes="\n".join(f"- {note}" for note in database.notes),
            lessons=lessons,
        )
        return [_KINDS[message.role](message.text) for message in rendered]
