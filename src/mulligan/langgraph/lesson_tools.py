"""`bank_tools`: a lesson bank as LangChain tools, to recall lessons before a task and to learn from it after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from mulligan.langgraph.defaults import OwnBank
from mulligan.pages import renamed
from mulligan.plugins import Json, Learned, MulliganError, Recall
from mulligan.running import episode_of, portal, summary

T = TypeVar("T")

RECALL, LEARN = "recall_lessons", "learn_lessons"


class Recalling(BaseModel):
    """Looks up what was learned from earlier tasks like this one. Call it before you begin."""

    task: str = Field(description="What the task is: its goal, and what it is about.")
    top_k: Annotated[int, Field(ge=1, le=20)] = Field(default=3, description="Lessons at most.")


class Did(BaseModel):
    """One thing that was done."""

    did: str = Field(description="What you did or said.")
    saw: str = Field(default="", description="What came of it, if anything did.")


class Drawn(BaseModel):
    """A lesson that you have drawn."""

    title: str = Field(description="What it is about, in a few words.")
    description: str = Field(description="When it is of use, in a sentence.")
    content: str = Field(description="What to do, or to avoid, and why.")
    steps: list[int] = Field(description="The numbers of the steps that show it, from 1.")


class Learning(BaseModel):
    """Hands in what was done for a task, so that lessons are learned from it. Call it when the task is over."""

    task: str = Field(description="What the task was.")
    steps: list[Did] = Field(description="What was done, in order.")
    success: bool | SkipJsonSchema[None] = Field(
        default=None, description="Whether the task succeeded; leave it out if unknown."
    )
    recall_id: str | SkipJsonSchema[None] = Field(default=None, description=f"The id that {RECALL} gave for this task.")
    lessons: list[Drawn] | SkipJsonSchema[None] = Field(
        default=None, description="Your own lessons; only when you are asked for them."
    )


def bank_tools(bank: Any) -> list[BaseTool]:
    """Return the tools `recall_lessons` and `learn_lessons`, for a synchronous or asynchronous LangChain or LangGraph
    agent.

    If the bank has no model, `learn_lessons` asks the calling agent for the lessons. Errors are returned to the agent.

    Args:
        bank: A bank, or an agent_id, whose bank is opened on first use.
    """
    own = OwnBank(bank) if isinstance(bank, str) else None

    async def do(work: Callable[[Any], Awaitable[T]]) -> T:
        return await (portal.settled(work(bank)) if own is None else own.do(work))

    async def recall(task: str, top_k: int) -> str:
        found: Recall = await do(lambda bank: bank.recall(task, top_k=top_k))
        if not found.lessons:
            return "No lesson helps with this yet."
        return f"{found.formatted_prompt}\n\n(recall_id: {found.id})"

    async def learn(**given: Any) -> str:
        return await do(lambda bank: _learn(bank, **given))

    return [_tool(RECALL, Recalling, recall), _tool(LEARN, Learning, learn)]


async def _learn(
    bank: Any,
    task: str,
    steps: Sequence[Did],
    success: bool | None = None,
    recall_id: str | None = None,
    lessons: Sequence[Drawn] | None = None,
) -> str:
    """Learn, and return what was learned or the question that the agent must answer."""
    items: list[Json] = []
    for step in steps:
        items.append({"role": "assistant", "content": step.did})
        items += [{"role": "tool", "content": step.saw}] if step.saw else []
    episode = episode_of(items, task, success)
    if recall_id:
        episode = replace(episode, recall=await bank.recalled(recall_id))
    learned: Learned = await bank.learn(episode, borrow=lessons is not None)
    if learned.question is not None and learned.success is None and success is not None:
        verdict = {"reasoning": "The calling agent said so.", "verdict": "success" if success else "failure"}
        learned = await bank.commit(str(learned.work), verdict)
    if learned.question is None:
        return summary(learned, bank.agent_id or "")
    if learned.success is None:
        return f"Whether the task succeeded is not known: call {LEARN} again with success, true or false."
    if lessons is None:
        prompt = "\n\n".join(message.text for message in learned.question.messages)
        return f"The lessons are yours to draw. Think about this, then call {LEARN} again with lessons:\n\n{prompt}"
    return summary(await bank.commit(str(learned.work), _answer(lessons, items)), bank.agent_id or "")


def _answer(lessons: Sequence[Drawn], items: Sequence[Json]) -> Json:
    """Return the lessons in the form that the bank asks for. It counts actions and their results as separate steps."""
    actions = [n for n, item in enumerate(items, 1) if item["role"] == "assistant"]

    def cited(lesson: Drawn) -> list[int]:
        return [actions[n - 1] for n in lesson.steps if 1 <= n <= len(actions)]

    drawn = [{**lesson.model_dump(), "steps": cited(lesson)} for lesson in lessons]
    return {"why": "The calling agent drew them.", "lessons": drawn, "nothing_because": "" if drawn else "it said so"}


class _Tool(StructuredTool):
    """A tool that understands other spellings of its arguments, and refuses what it does not know."""

    def _parse_input(self, tool_input: str | dict[str, Any], tool_call_id: str | None) -> str | dict[str, Any]:
        if isinstance(tool_input, dict):
            try:
                tool_input = renamed(tool_input, self.args, self.name)
            except MulliganError as error:
                raise ToolException(str(error)) from error
        return super()._parse_input(tool_input, tool_call_id)


def _tool(name: str, schema: type[BaseModel], work: Callable[..., Awaitable[str]]) -> BaseTool:
    async def later(**given: Any) -> str:
        try:
            return await work(**given)
        except MulliganError as error:
            raise ToolException(str(error)) from error

    def now(**given: Any) -> str:
        return portal.finish(later(**given))

    described = (schema.__doc__ or "").strip()
    return _Tool.from_function(now, later, name=name, description=described, args_schema=schema, handle_tool_error=True)
