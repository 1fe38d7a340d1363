"""The environment of STATE-Bench: a customer, whom a model plays, and the tools of a domain.

An action is one or more calls, or words to the customer. The tools run in the sandbox, from the user's checkout. No
process keeps their state: each step repeats the earlier calls, which takes less time than a model's answer.

With a bank, `retrieve_learnings` is one of the tools, as in the benchmark's learning track.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mulligan.bench.state_bench._checkout import StateBenchCheckout, calls_of
from mulligan.plugins import Bank, Feedback, Json, Message, Outcome, Question, Sandbox, Step, Task, Tool, object_schema

_DETAIL = object_schema(id={"type": "string"}, passed={"type": "boolean"}, reasoning={"type": "string"})
RETRIEVE = Tool(
    "retrieve_learnings",
    "What was learned from earlier customers that helps with a request, or with an error of a tool.",
    object_schema(query={"type": "string"}),
)
TOP = 3
"""The maximum number of learnings for a query, as in the benchmark's official runs."""
VERDICT: Json = object_schema(details={"type": "array", "items": _DETAIL})


class StateBenchWorld:
    """The environment.

    Args:
        root: the folder of the checkout.
        domain: such as "travel".
        task: the id of the task.
        judge: whether the model also gives the judge's verdict at the end, which is then the outcome's feedback.
    """

    def __init__(
        self, *, root: str, domain: str, task: str, judge: bool = False, sandbox: Sandbox, bank: Bank | None = None
    ) -> None:
        self._checkout, self._task = StateBenchCheckout(Path(root), domain), task
        self._judge, self._sandbox, self._bank = judge, sandbox, bank
        self._moves: list[Json] = []
        self._answers: Sequence[Json] = ()
        self._opening: Mapping[str, Any] = {}

    async def reset(self) -> str:
        self._moves = []
        opening = await self._opened()
        return f"{opening['system']}\n\nCustomer: {opening['opening']}"

    async def offer(self, actions: Sequence[str]) -> Sequence[Tool]:
        """The domain's tools, which are always the same."""
        return (*map(_tool, (await self._opened())["tools"]), *([RETRIEVE] if self._bank else []))

    async def question(self, action: str, answers: Sequence[Json]) -> Question | None:
        """The question to the customer, and at the end, to the judge."""
        if calls_of(action) is not None or (answers and not self._judge):
            return None
        asked = await self._run("question", [*self._moves, {"say": action, "answers": list(answers)}])
        messages = tuple(Message(role, text) for role, text in asked["messages"])
        return Question(messages, VERDICT if asked["json"] else None) if messages else None

    def hear(self, answers: Sequence[Json]) -> None:
        self._answers = answers

    async def step(self, action: str) -> Step:
        """Raises `WorldError` if the checkout's code fails."""
        calls = calls_of(action)
        if calls is not None:
            results = await self._call(calls)
            observation = "\n".join(json.dumps(result, ensure_ascii=False) for result in results)
            return Step(action=action, observation=observation, outcome=Outcome())
        self._moves.append({"say": action, "answers": list(self._answers)})
        result = await self._run("step", self._moves)
        if not result["over"]:
            return Step(action=action, observation=f"Customer: {result['reply']}", outcome=Outcome())
        feedback = _feedback(result) if self._judge else None
        return Step(action=action, observation="The customer is gone.", outcome=Outcome(done=True, feedback=feedback))

    async def close(self) -> None:
        pass

    async def _call(self, calls: Sequence[Json]) -> list[Json]:
        """The results of the calls, in order. The bank answers its own calls, and the domain the others."""
        queries: dict[int, Any] = {
            n: call[1] for n, call in enumerate(calls) if self._bank and call[0] == RETRIEVE.name
        }
        others: list[Json] = [call for n, call in enumerate(calls) if n not in queries]
        results: list[Json] = []
        if others:
            self._moves.append({"calls": others})
            results = list((await self._run("step", self._moves))["results"])
        for n, arguments in queries.items():
            query = arguments.get("query", "") if arguments else ""
            results.insert(n, {"learnings": await self._learnings(str(query))})
        return results

    async def _learnings(self, query: str) -> list[Json]:
        recall = await self._bank.recall(Task(query), top_k=TOP) if self._bank and query.strip() else None
        return [f"{lesson.title}\n{lesson.content}" for lesson in recall.lessons] if recall else []

    async def _opened(self) -> Mapping[str, Any]:
        self._opening = self._opening or await self._run("opening", [])
        return self._opening

    async def _run(self, want: str, moves: Sequence[Json]) -> dict[str, Any]:
        return await self._checkout.run(self._sandbox, self._task, want, moves, judge=self._judge)


def _feedback(result: dict[str, Any]) -> Feedback:
    """The verdict on the final state and on the conversation together. Unknown if one of them is missing."""
    verdict = result.get("verdict")
    if verdict is None or result["state"] is None:
        return Feedback(None, "The judge gave no verdict.", source="oracle")
    score, why = verdict
    return Feedback(bool(score and result["state"]), f"{result['text']} {why}", source="oracle")


def _tool(schema: dict[str, Any]) -> Tool:
    return Tool(str(schema["name"]), str(schema.get("description", "")), schema.get("parameters") or {})
