"""Reflexion on LangGraph: `ReflexionAgent`, questions to a knowledge graph, and parts for graphs of your own.

Needs the extra: pip install "mulligan[langgraph]", and "mulligan[kg]" for graph databases. Everything named here is
imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mulligan.langgraph.agent import (
        DRAFT_NODE,
        END_NODE,
        EXECUTE_TOOL_NODE,
        REVISE_NODE,
        ReflexionAgent,
        ReflexionAgentResult,
    )
    from mulligan.langgraph.kg import GenerateQuery, KGQueryReflexionAgent, ReviseQuery
    from mulligan.langgraph.logger import ReflexionAgentLogger
    from mulligan.langgraph.responder import ResponderWithRetries

_HOMES = {
    "DRAFT_NODE": "agent",
    "END_NODE": "agent",
    "EXECUTE_TOOL_NODE": "agent",
    "GenerateQuery": "kg",
    "KGQueryReflexionAgent": "kg",
    "REVISE_NODE": "agent",
    "ReflexionAgent": "agent",
    "ReflexionAgentLogger": "logger",
    "ReflexionAgentResult": "agent",
    "ResponderWithRetries": "responder",
    "ReviseQuery": "kg",
}

__all__ = [
    "DRAFT_NODE",
    "END_NODE",
    "EXECUTE_TOOL_NODE",
    "REVISE_NODE",
    "GenerateQuery",
    "KGQueryReflexionAgent",
    "ReflexionAgent",
    "ReflexionAgentLogger",
    "ReflexionAgentResult",
    "ResponderWithRetries",
    "ReviseQuery",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mulligan.langgraph' has no attribute {name!r}")
    if find_spec("langgraph") is None:
        from mulligan.core.errors import InvalidInput

        raise InvalidInput(f'mulligan.langgraph.{name} needs LangGraph: pip install "mulligan[langgraph]".')
    return getattr(import_module(f"mulligan.langgraph.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
