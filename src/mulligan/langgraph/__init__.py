"""Reflexion on LangGraph: `ReflexionAgent`, questions to a knowledge graph, and parts for your own graphs.

Requires the extra "mulligan[langgraph]", and "mulligan[kg]" for graph databases. Each name is imported when it is first
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mulligan.plugins import require

if TYPE_CHECKING:
    from mulligan.langgraph.agent import (
        DRAFT_NODE,
        END_NODE,
        EXECUTE_TOOL_NODE,
        REVISE_NODE,
        ReflexionAgent,
        ReflexionAgentLogger,
        ReflexionAgentResult,
    )
    from mulligan.langgraph.ask import ask_graph, resume_graph
    from mulligan.langgraph.asking import Draft, ResponderWithRetries, Revision
    from mulligan.langgraph.bank_store import BankStore
    from mulligan.langgraph.chat import chat_model
    from mulligan.langgraph.conversation import GptConversation
    from mulligan.langgraph.kg import GenerateQuery, KGQueryReflexionAgent, ReviseQuery
    from mulligan.langgraph.lesson_tools import bank_tools
    from mulligan.langgraph.prompt_engine import BioCypherPromptEngine
    from mulligan.langgraph.reflexion_graph import create_reflexion_graph
    from mulligan.langgraph.scripted import ScriptedChat
    from mulligan.langgraph.state import Reading, ReflexionResult, ReflexionState, episode_of

_HOMES = {
    name: module
    for module, names in {
        "agent": "DRAFT_NODE END_NODE EXECUTE_TOOL_NODE REVISE_NODE "
        "ReflexionAgent ReflexionAgentLogger ReflexionAgentResult",
        "ask": "ask_graph resume_graph",
        "asking": "Draft ResponderWithRetries Revision",
        "bank_store": "BankStore",
        "chat": "chat_model",
        "conversation": "GptConversation",
        "kg": "GenerateQuery KGQueryReflexionAgent ReviseQuery",
        "lesson_tools": "bank_tools",
        "prompt_engine": "BioCypherPromptEngine",
        "reflexion_graph": "create_reflexion_graph",
        "scripted": "ScriptedChat",
        "state": "Reading ReflexionResult ReflexionState episode_of",
    }.items()
    for name in names.split()
}

__all__ = [
    "DRAFT_NODE",
    "END_NODE",
    "EXECUTE_TOOL_NODE",
    "REVISE_NODE",
    "BankStore",
    "BioCypherPromptEngine",
    "Draft",
    "GenerateQuery",
    "GptConversation",
    "KGQueryReflexionAgent",
    "Reading",
    "ReflexionAgent",
    "ReflexionAgentLogger",
    "ReflexionAgentResult",
    "ReflexionResult",
    "ReflexionState",
    "ResponderWithRetries",
    "ReviseQuery",
    "Revision",
    "ScriptedChat",
    "ask_graph",
    "bank_tools",
    "chat_model",
    "create_reflexion_graph",
    "episode_of",
    "resume_graph",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mulligan.langgraph' has no attribute {name!r}")
    require(f"mulligan.langgraph.{name} needs LangGraph", "langgraph", "langgraph")
    return getattr(import_module(f"mulligan.langgraph.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
