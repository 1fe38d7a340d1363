"""Draft, execute, revise, and again: Reflexion as a LangGraph graph over core's state machine (BioChatter's agent).

A trial is an answer that was drafted or revised and what its execution gave; one call of the model then evaluates it,
reflects on it and makes the next answer. The graph owns order, checkpoints, streaming and interrupts.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict, TypeVar, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from mulligan.core.episode import Acted, Evaluated, Reflected, Stopped, due
from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.limits import Limits
from mulligan.core.records import Attempt, Episode, Feedback, Head, Json, Plan, Reflection, Step, Stop, Task
from mulligan.langgraph.working import Recorder, Work

T = TypeVar("T")

DRAFT, EXECUTE_TOOL, REVISE = "draft", "execute_tool", "revise"
STEPS = 30
"""A step is one draft or one revise (seed 001)."""


class ReflexionState(TypedDict):
    """messages: the question, then draft, tool's answer, revision, tool's answer, … episode: the record as JSON; seq:
    how many of its events were kept. steps: drafts and revisions so far. next: where the graph goes on. result: what
    came of it: {"answer", "tool_result", "score", "stop", "detail", "run"}; executing the answer gave the tool_result.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    episode: Json
    seq: int
    steps: int
    next: str
    result: Json


@dataclass(frozen=True)
class Reading:
    """What a draft or a revision says: the answer to be executed, the critique of the last one, and its score, 0 to 10,
    higher is better (None: it named none)."""

    answer: str
    reflection: str = ""
    score: float | None = None


@dataclass(frozen=True)
class Parts:
    """What the nodes do. Functions may be async; others run in a thread. Messages are those since the newest question.

    read: what a draft or a revision says. answered: the answer that was really executed. passed: whether a trial is
    good enough, by the revision's reading and the tool's answer. goes_on: the user's own rule after a revision,
    "execute_tool" or END; None: `passed` and the limits. A draft or a revision may raise `BadAnswer`: the model gave
    nothing that can be used.
    """

    draft: Callable[[list[BaseMessage]], Any]
    execute: Callable[[list[BaseMessage]], Any]
    revise: Callable[[list[BaseMessage]], Any]
    read: Callable[[AIMessage], Reading]
    answered: Callable[[Reading, ToolMessage], str]
    passed: Callable[[Reading, ToolMessage], bool]
    goes_on: Callable[[list[BaseMessage]], str] | None = None


@dataclass(frozen=True)
class Nodes:
    """The three nodes and the way between them. agent_id: whose record it is."""

    parts: Parts
    recorder: Recorder
    steps: int = STEPS
    agent_id: str = ""
    head: Head = field(default_factory=Head)

    @property
    def limits(self) -> Limits:
        """A trial takes a revision to be judged, and the draft is a step too."""
        return Limits(trials=max(self.steps - 1, 1), identical=None)

    async def draft(self, state: ReflexionState, config: RunnableConfig) -> Mapping[str, Any]:
        messages = since_question(state["messages"])
        record = await self._begun(messages[0], config)
        async with self.recorder.work(record, 0, "trial.1", "act") as work:
            try:
                message = await called(self.parts.draft, messages)
            except BadAnswer as error:
                return {"steps": 1, **await self._given_up(work, messages, error)}
        return {"messages": [message], "episode": record, "seq": 0, "steps": 1, "result": None, "next": EXECUTE_TOOL}

    async def execute_tool(self, state: ReflexionState) -> Mapping[str, Any]:
        messages = since_question(state["messages"])
        number = len(state["episode"]["trials"]) + 1
        async with self.recorder.work(state["episode"], state["seq"], f"trial.{number}", "act") as work:
            message: ToolMessage = await called(self.parts.execute, messages)
            answer = self.parts.answered(self.parts.read(cast(AIMessage, messages[-1])), message)
            step = Step(action=answer, observation=str(message.content))
            await work.keep(Acted(number, Attempt(answer, (step,), usage=work.spent())))
            update = {"messages": [message], **self._held(work)}
            if self.steps > 1:
                return {**update, "next": REVISE}
            return {**update, "next": END, "result": result_of(work.episode, [*messages, message])}

    async def revise(self, state: ReflexionState) -> Mapping[str, Any]:
        messages = since_question(state["messages"])
        number = len(state["episode"]["trials"])
        async with self.recorder.work(state["episode"], state["seq"], f"trial.{number}", "evaluate") as work:
            try:
                message: AIMessage = await called(self.parts.revise, messages)
            except BadAnswer as error:
                return {"steps": state["steps"] + 1, **await self._given_up(work, messages, error)}
            reading = self.parts.read(message)
            goes_on = self.parts.goes_on and self.parts.goes_on([*messages, message]) != END
            passed = self.parts.passed(reading, cast(ToolMessage, messages[-1])) and not goes_on
            said = "no score" if reading.score is None else f"scored {reading.score:g} of 10 by the model itself"
            await work.keep(Evaluated(number, Feedback(passed, said, reading.score, "revise", usage=work.spent())))
            move = due(work.episode, self.limits)
            if isinstance(move, Stop):
                await work.keep(Stopped(move))
            elif goes_on is False:
                await work.keep(Stopped(Stop("gave_up", "the agent's own rule ended it")))
            else:
                await work.keep(Reflected(number, Reflection(reading.reflection)))
            update = {"messages": [message], **self._held(work), "steps": state["steps"] + 1}
            if work.episode.stop is None:
                return {**update, "next": EXECUTE_TOOL}
            return {**update, "next": END, "result": result_of(work.episode, messages)}

    async def _given_up(self, work: Work, messages: Sequence[BaseMessage], error: BadAnswer) -> dict[str, Any]:
        await work.keep(Stopped(Stop("gave_up", str(error)), work.spent()))
        return {**self._held(work), "next": END, "result": result_of(work.episode, messages)}

    async def _begun(self, question: BaseMessage, config: RunnableConfig) -> Json:
        """The record that this run of the graph works on: with a checkpointer, the same one each time it is run on the
        same question of the same thread."""
        thread = config.get("configurable", {}).get("thread_id")
        named = f"{thread}/{config.get('configurable', {}).get('checkpoint_ns', '')}/{question.id}"
        run = secrets.token_hex(4) if thread is None else hashlib.sha256(named.encode()).hexdigest()[:8]
        prompt = question.text
        if not prompt.strip():
            raise InvalidInput("The question is empty: say what is to be found out.")
        if (known := await self.recorder.stored(f"{run}.1")) is not None:
            return self.recorder.held(known)
        started = round(time.time(), 3)
        plan = Plan(recalls=False, reflects=True)
        return await self.recorder.begin(
            Episode(f"{run}.1", Task(prompt), run, self.agent_id, plan, self.head, started)
        )

    def _held(self, work: Work) -> dict[str, Any]:
        return {"episode": self.recorder.held(work.episode), "seq": work.seq}


def since_question(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The newest question of a person, and what followed it. Raises `InvalidInput` where nobody asked anything."""
    for n in range(len(messages) - 1, -1, -1):
        if isinstance(messages[n], HumanMessage):
            return list(messages[n:])
    raise InvalidInput('There is no question: begin with {"messages": [("user", "…")]}.')


def result_of(episode: Episode, messages: Sequence[BaseMessage]) -> Json:
    """The answer that was executed last, and what that gave."""
    tool = next((message for message in reversed(messages) if isinstance(message, ToolMessage)), None)
    newest, stop = episode.trials[-1] if episode.trials else None, episode.stop
    return {
        "answer": newest.attempt.output if newest else None,
        "tool_result": None if tool is None else tool.content,
        "score": newest.feedback.score if newest and newest.feedback else None,
        "stop": stop.reason if stop else None,
        "detail": stop.detail if stop else "",
        "run": episode.run,
    }


async def called(function: Callable[..., Any], *given: Any) -> Any:
    """The function's result; one that is not async runs in a thread, so that it may take its time."""
    if inspect.iscoroutinefunction(function):
        return await function(*given)
    result = await asyncio.to_thread(function, *given)
    return await result if inspect.isawaitable(result) else result


def wired(nodes: Nodes) -> Any:
    """The nodes in their order, as a `StateGraph` that is not compiled yet."""
    graph: Any = StateGraph(ReflexionState)
    graph.add_node(DRAFT, nodes.draft)
    graph.add_node(EXECUTE_TOOL, nodes.execute_tool)
    graph.add_node(REVISE, nodes.revise)
    graph.add_edge(START, DRAFT)
    graph.add_conditional_edges(DRAFT, _next, [EXECUTE_TOOL, END])
    graph.add_conditional_edges(EXECUTE_TOOL, _next, [REVISE, END])
    graph.add_conditional_edges(REVISE, _next, [EXECUTE_TOOL, END])
    return graph


def _next(state: ReflexionState) -> str:
    return state["next"]
