"""For tests of agents on graphs: a chat model that says what it is told to, and an agent that writes no queries."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

GOLDEN = Path(__file__).parents[1] / "langgraph" / "golden"
GOOD = "MATCH (g:Gene {name: 'EOMES'})-[:REGULATES]->(t:Gene) RETURN t.name AS name ORDER BY name"
EMPTY = "MATCH (g:Gene {name: 'nobody'}) RETURN g.name AS name"
REGULATED = [{"name": name} for name in ("CREBBP", "IL1R1", "LRP6", "NOTCH3", "VHL")]


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


class Chat(BaseChatModel):
    """Gives its replies in order: messages, {"tool", "arguments"}, texts, or exceptions to raise; or asks a function of
    the messages for each. `asked` are the messages of each call so far, `bound` what it was bound with."""

    _replies: Any = PrivateAttr()
    _asked: list[list[BaseMessage]] = PrivateAttr(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
    _bound: list[dict[str, Any]] = PrivateAttr(default_factory=list)  # pyright: ignore[reportUnknownVariableType]

    def __init__(self, replies: Sequence[Any] | Callable[[list[BaseMessage]], Any]) -> None:
        super().__init__()
        self._replies = replies

    @property
    def asked(self) -> list[list[BaseMessage]]:
        return self._asked

    @property
    def bound(self) -> list[dict[str, Any]]:
        return self._bound

    @property
    def _llm_type(self) -> str:
        return "told"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        self._bound.append({"tools": [tool.__name__ for tool in tools], **kwargs})
        return self.bind(tools=[tool.__name__ for tool in tools])  # pyright: ignore[reportReturnType]

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        number = len(self._asked)
        self._asked.append(list(messages))
        reply = self._replies(messages) if callable(self._replies) else self._replies[number]
        if isinstance(reply, Exception):
            raise reply
        return ChatResult(generations=[ChatGeneration(message=message(reply, number))])


def message(reply: Any, number: int = 0) -> AIMessage:
    if isinstance(reply, AIMessage):
        return reply
    if isinstance(reply, str):
        return AIMessage(reply)
    call = {"name": reply["tool"], "args": reply["arguments"], "id": f"call-{number}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


class Conversation:
    """What a conversation factory makes: something with `.chat`."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat


def talking(*replies: Any) -> tuple[Callable[[], Conversation], Chat]:
    """A conversation factory, and the chat model that it gives out."""
    chat = Chat(replies)
    return lambda: Conversation(chat), chat


def draft(query: str, *more: str, reflection: str = "Perhaps.") -> dict[str, Any]:
    arguments: dict[str, Any] = {"answer": query, "reflection": reflection, "search_queries": list(more)}
    return {"tool": "GenerateQuery", "arguments": arguments}


def revision(score: Any, query: str = EMPTY, reflection: str = "Not yet.") -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "answer": query,
        "reflection": reflection,
        "search_queries": [],
        "revised_query": query,
    }
    return {"tool": "ReviseQuery", "arguments": {**arguments, "score": str(score)}}


def never_good(messages: list[BaseMessage]) -> dict[str, Any]:
    """A draft, then revisions without end, none of which finds anything."""
    steps = sum(isinstance(one, AIMessage) for one in messages)
    return revision(0, f"{EMPTY} LIMIT {steps + 1}") if steps else draft(EMPTY)
