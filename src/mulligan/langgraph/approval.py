"""Asks a person before an answer is executed, who approves, edits or refuses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import interrupt

Approve: TypeAlias = Callable[[AIMessage, str, str, int], tuple[AIMessage, ToolMessage | None]]
"""Takes the proposal, its answer, the question and the trial's number. Returns the proposal to execute, perhaps edited,
and the tool message that replaces its execution if it was refused."""

REFUSED = "A person refused to run this."
HOW = 'Answer with Command(resume=…): True, {"edit": "…"} or {"refuse": "why"}.'


def ask(proposal: AIMessage, answer: str, question: str, trial: int) -> tuple[AIMessage, ToolMessage | None]:
    """Interrupt the graph until a person has decided. An invalid decision is asked for again."""
    payload: dict[str, Any] = {"approve": answer, "question": question, "trial": trial, "how": HOW}
    decision = interrupt(payload)
    while (taken := _taken(decision, proposal, answer)) is None:
        decision = interrupt({**payload, "error": f"{decision!r} is not a valid decision."})
    return taken


def _taken(decision: Any, proposal: AIMessage, answer: str) -> tuple[AIMessage, ToolMessage | None] | None:
    if decision is True or decision == "approve":
        return proposal, None
    if decision is False or decision == "refuse":
        return proposal, refusal(proposal, "")
    if not isinstance(decision, dict) or len(decided := cast(dict[str, Any], decision)) != 1:
        return None
    ((kind, said),) = decided.items()
    if kind == "edit" and isinstance(said, str) and said.strip():
        return edited(proposal, answer, said), None
    if kind == "refuse" and isinstance(said, str):
        return proposal, refusal(proposal, said)
    return None


def refusal(proposal: AIMessage, why: str) -> ToolMessage:
    """Return the tool message that replaces the execution."""
    call = proposal.tool_calls[0] if proposal.tool_calls else {"id": "", "name": None}
    said = f"{REFUSED} {why}".strip()
    return ToolMessage(said, tool_call_id=call["id"] or "", name=call["name"], status="error")


def edited(proposal: AIMessage, answer: str, instead: str) -> AIMessage:
    """Return the proposal with another answer, in its text or wherever its tool call holds the answer."""
    if not proposal.tool_calls:
        return proposal.model_copy(update={"content": instead})
    call = proposal.tool_calls[0]
    args = {name: _replaced(value, answer, instead) for name, value in call["args"].items()}
    calls = [{**call, "args": args}, *proposal.tool_calls[1:]]
    content = proposal.content
    if isinstance(content, list):  # providers that repeat their calls there
        content = [_block(block, call["id"], args) for block in content]
    return proposal.model_copy(update={"tool_calls": calls, "content": content, "additional_kwargs": {}})


def _replaced(value: Any, answer: str, instead: str) -> Any:
    if isinstance(value, list):
        return [_replaced(item, answer, instead) for item in cast(list[Any], value)]
    return instead if value == answer else value


def _block(block: Any, id: str | None, args: dict[str, Any]) -> Any:
    if not isinstance(block, dict):
        return block
    found = cast(dict[str, Any], block)
    return {**found, "input": args} if found.get("type") == "tool_use" and found.get("id") == id else found
