"""The environment of STATE-Bench: a customer, whom a model plays, and the tools of a domain.

An action is one or more calls, or else words to the customer. The tools run in the sandbox, from the reader's checkout.
They keep no process: each step repeats the earlier calls, which takes less time than a model's answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mulligan.bench.state_bench._checkout import StateBenchCheckout, calls_of
from mulligan.core.protocols import Sandbox
from mulligan.core.questions import Message, Question, Tool, object_schema
from mulligan.core.records import Feedback, Json, Outcome, Step

_DETAIL = object_schema(id={"type": "string"}, passed={"type": "boolean"}, reasoning={"type": "string"})
VERDICT: Json = object_schema(details={"type": "array", "items": _DETAIL})


class StateBenchWorld:
    """The environment.

    Args:
        root: of the checkout.
        domain: such as "travel".
        task: the id of the task.
        judge: whether the model is also asked for the judge's verdict at the end. It is then the outcome's feedback.
    """

    def __init__(self, *, root: str, domain: str, task: str, judge: bool = False, sandbox: Sandbox) -> None:
        self._checkout, self._task = StateBenchCheckout(Path(root), domain), task
        self._judge, self._sandbox = judge, sandbox
        self._moves: list[Json] = []
        self._answers: Sequence[Json] = ()
        self._tools: Sequence[Tool] = ()

    async def reset(self) -> str:
        self._moves = []
        found = await self._run("opening", [])
        self._tools = [_tool(one) for one in found["tools"]]
        tools = "\n".join(_tool_text(tool) for tool in self._tools)
        return f"{found['system']}\n\nTools:\n{tools}\n\nCustomer: {found['opening']}"

    async def question(self, action: str, answers: Sequence[Json]) -> Question | None:
        """What the customer is asked, then at the end the judge."""
        if calls_of(action) is not None or (answers and not self._judge):
            return None
        found = await self._run("question", [*self._moves, {"say": action, "answers": list(answers)}])
        messages = tuple(Message(role, text) for role, text in found["messages"])
        return Question(messages, VERDICT if found["json"] else None) if messages else None

    def hear(self, answers: Sequence[Json]) -> None:
        self._answers = answers

    async def step(self, action: str) -> Step:
        """Raises `WorldError` where the checkout's code fails."""
        calls = calls_of(action)
        self._moves.append({"say": action, "answers": list(self._answers)} if calls is None else {"calls": calls})
        found = await self._run("step", self._moves)
        if calls is not None:
            observation = "\n".join(json.dumps(one, ensure_ascii=False) for one in found["results"])
            return Step(action=action, observation=observation, outcome=Outcome())
        if not found["over"]:
            return Step(action=action, observation=f"Customer: {found['reply']}", outcome=Outcome())
        feedback = _feedback(found) if self._judge else None
        return Step(action=action, observation="The customer is gone.", outcome=Outcome(done=True, feedback=feedback))

    async def close(self) -> None:
        pass

    async def _run(self, want: str, moves: Sequence[Json]) -> dict[str, Any]:
        return await self._checkout.run(self._sandbox, self._task, want, moves, judge=self._judge)


def _feedback(found: dict[str, Any]) -> Feedback:
    """The verdict on the final state and on the conversation together; unknown where one is missing."""
    verdict = found.get("verdict")
    if verdict is None or found["state"] is None:
        return Feedback(None, "The judge gave no verdict.", source="oracle")
    score, why = verdict
    return Feedback(bool(score and found["state"]), f"{found['text']} {why}", source="oracle")


def _tool(schema: dict[str, Any]) -> Tool:
    return Tool(str(schema["name"]), str(schema.get("description", "")), schema.get("parameters") or {})


def _tool_text(tool: Tool) -> str:
    properties: dict[str, Any] = tool.parameters.get("properties", {})  # type: ignore[union-attr]
    needed = tool.parameters.get("required", ())  # type: ignore[union-attr]
    names = ", ".join(name if name in needed else f"{name}?" for name in properties)
    lines = [f"- {tool.name}({names}): {' '.join(tool.description.split())}"]
    return "\n".join([*lines, *(f"    {name}: {json.dumps(about)}" for name, about in properties.items())])
