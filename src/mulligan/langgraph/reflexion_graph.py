"""`create_reflexion_graph`: a compiled graph that drafts, executes and revises, for any chat model and any tool."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Bank, Store
from mulligan.langgraph.asking import SchemaResponder
from mulligan.langgraph.bridge import both_ways, called
from mulligan.langgraph.chat import chat_model
from mulligan.langgraph.defaults import OwnBank, prompts_of, store_of
from mulligan.langgraph.executing import Executing
from mulligan.langgraph.journalled import journalled, models_in
from mulligan.langgraph.nodes import STEPS, Nodes, Parts, ask_person, episode_head
from mulligan.langgraph.schemas import Draft, Revision, check_schemas, reading_of
from mulligan.langgraph.state import Reading, check_limits
from mulligan.langgraph.state_graph import ReflexionGraph, wired
from mulligan.langgraph.working import Recorder

GOOD_SCORE = 7.0
"""The default score, of 10, from which an answer is good enough."""

Judge: TypeAlias = Callable[[Reading, ToolMessage], "bool | Awaitable[bool | None] | None"]
"""Returns whether the executed answer is good enough, given the revision and the tool's message; None: unknown."""


def create_reflexion_graph(
    model: Any,
    tool: Any,
    *,
    instructions: str = "",
    draft: type[BaseModel] = Draft,
    revise: type[BaseModel] = Revision,
    judge: Judge | None = None,
    max_steps: int = STEPS,
    good_score: float = GOOD_SCORE,
    store: Store | bool | None = None,
    agent_id: str = "",
    bank: Bank | str | None = None,
    learn: bool = False,
    checkpointer: Any = None,
    interrupt_before: Sequence[str] | None = None,
    interrupt_after: Sequence[str] | None = None,
    approve: bool = False,
    handle_errors: bool = True,
    repeatable: bool = True,
    prompts: str | os.PathLike[str] | None = None,
    name: str = "reflexion",
) -> ReflexionGraph:
    """Return a compiled graph with the nodes draft, execute_tool and revise.

    Run it with `graph.invoke({"messages": [("user", "…")]})`.

    Args:
        model: A LangChain chat model, retries or fallbacks over some, or a name as in docs/models.md.
        tool: Executes an answer: a function (also async), a LangChain tool or a runnable, which gets the answer or the
            fields of the schemas that its parameters name; or a graph database (`mulligan.graphs.Graph`).
        instructions: What the answer must be, for the draft and the revision.
        draft, revise: What the model is asked for, as pydantic models; see `mulligan.langgraph.schemas`.
        judge: Decides whether an answer is good enough; None: a score of good_score or more does.
        max_steps: The number of drafts and revisions at most.
        good_score: The score, 0 to 10, from which an answer is good enough.
        store: Where runs are recorded; None: the store that `mulligan runs` reads; False: nowhere.
        agent_id: The owner of the records.
        bank: Lessons are recalled from it before the draft; a bank, or an agent_id.
        learn: Whether the bank learns from each run that ends.
        checkpointer, interrupt_before, interrupt_after: As for `StateGraph.compile`.
        approve: Whether a person approves, edits or refuses each answer before it is executed. Needs a checkpointer.
        handle_errors: Whether the tool's errors go back to the model. Otherwise they are raised.
        repeatable: Whether the tool may run again after it was interrupted.
        prompts: A folder with prompts that replace the default ones.
        name: The name of the graph and of its runs.

    Raises:
        InvalidInput: A value is out of range, or the parts do not fit together.
    """
    check_limits(max_steps, good_score)
    if max_steps < 1:
        raise InvalidInput(f"max_steps must be at least 1, not {max_steps}. It limits drafts and revisions.")
    if learn and bank is None:
        raise InvalidInput("learn=True needs a bank to teach: give bank=…")
    check_schemas(draft, revise, judge is not None)
    model = chat_model(model) if isinstance(model, str) else model
    if not models_in(journalled(model)):
        raise InvalidInput(f"model must be a LangChain chat model, or made of some, not {type(model).__name__}.")
    texts = prompts_of(prompts)
    drafter, reviser = (
        SchemaResponder(
            model, schema, texts.get(f"reflexion_graph.{role}").check(*SLOTS), lambda: {"instructions": instructions}
        )
        for role, schema in (("draft", draft), ("revise", revise))
    )
    executing = Executing(tool, draft, revise, repeatable=repeatable, handle_errors=handle_errors)
    parts = Parts(
        drafter.arespond,
        executing,
        reviser.arespond,
        reading_of,
        lambda reading, message: reading.answer,
        _score_check(good_score) if judge is None else _judge_check(judge),
        approve=ask_person if approve else None,
    )
    settings = {"tool": executing.name, "good_score": None if judge else good_score, "approve": approve}
    settings |= {"graph": name, "max_steps": max_steps, "instructions": instructions}
    head = episode_head({"draft": drafter.model, "revise": reviser.model}, texts.used, settings)
    files = {f"prompts/{name}.md": text for name, text in texts.texts.items()}
    own_bank = OwnBank(bank) if isinstance(bank, str) else bank
    nodes = Nodes(parts, Recorder(store_of(store)), max_steps, agent_id, head, files, own_bank, learn, name)
    before, after = _names(interrupt_before), _names(interrupt_after)
    compiled = wired(nodes).compile(
        checkpointer=checkpointer, interrupt_before=before, interrupt_after=after, name=name
    )
    return cast(ReflexionGraph, compiled)


SLOTS = ("tool", "schema", "instructions", "lessons")


def _score_check(good_score: float) -> Callable[[Reading, ToolMessage], bool | None]:
    return lambda reading, message: None if reading.score is None else reading.score >= good_score


def _judge_check(judge: Judge) -> Callable[[Reading, ToolMessage], Any]:
    @both_ways
    async def verdict(reading: Reading, message: ToolMessage) -> bool | None:
        return await called(judge, reading, message)

    return verdict


def _names(given: Sequence[str] | None) -> Any:
    """Return the nodes to interrupt at, as `StateGraph.compile` takes them: "*" for all."""
    return given if given == "*" else list(given or ())
