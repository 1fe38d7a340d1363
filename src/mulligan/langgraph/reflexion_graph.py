"""`create_reflexion_graph`: a compiled graph that drafts, executes and revises, for any chat model and any tool."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from mulligan.graphs.protocol import Graph
from mulligan.langgraph.asking import Draft, Revision, SchemaResponder, check_schemas, reading_of
from mulligan.langgraph.chat import chat_model
from mulligan.langgraph.defaults import bank_of, prompts_of, store_of
from mulligan.langgraph.executing import Executing, query_answered
from mulligan.langgraph.journalled import journalled, models_in
from mulligan.langgraph.judging import RowsJudge
from mulligan.langgraph.nodes import STEPS, Parts, ask_person
from mulligan.langgraph.pairs import with_pairs
from mulligan.langgraph.querying import Until, check_until, rows_settle
from mulligan.langgraph.state import GOOD_SCORE, Reading, check_limits
from mulligan.langgraph.state_graph import ReflexionGraph, assemble
from mulligan.langgraph.working import Recorder
from mulligan.plugins import Bank, InvalidInput, Json
from mulligan.running import FilePrompts, Store, portal

SLOTS = ("tool", "schema", "instructions", "lessons")
"""The placeholders of the prompts reflexion_graph.draft and reflexion_graph.revise."""

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
    until: Until | None = None,
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
        model: A LangChain chat model, with or without retries or fallbacks, or a name as in docs/models.md.
        tool: What executes an answer: a function (also asynchronous), a LangChain tool or a runnable, which receives
            the answer or the schema fields that its parameters name; or a graph database (`mulligan.graphs.Graph`).
        instructions: What the answer must contain, for the draft and the revision.
        draft, revise: The schemas of the model's answers, as pydantic models; see `mulligan.langgraph.asking`.
        judge: Decides whether an answer is good enough. None: an answer with a score of at least good_score is.
        until: For a graph database without a judge. "judged" (or None): the rows must answer the question, as far as
            rules and the model can tell. "rows": the run ends at the first rows with a value.
        max_steps: The maximum number of drafts and revisions.
        good_score: The minimum score, from 0 to 10, of an answer that is good enough.
        store: Where runs are recorded; None: the store that `mulligan runs` reads; False: nowhere.
        agent_id: The owner of the records.
        bank: A bank or an agent_id. Lessons are recalled from it before the draft.
        learn: Whether the bank learns from each run that ends.
        checkpointer, interrupt_before, interrupt_after: As for `StateGraph.compile`.
        approve: Whether a person approves, edits or refuses each answer before it is executed. Needs a checkpointer.
        handle_errors: Whether the tool's errors are returned to the model. Otherwise, they are raised.
        repeatable: Whether the tool may run again after it was interrupted.
        prompts: A folder with prompts that replace the default ones.
        name: The name of the graph and of its runs.

    Raises:
        InvalidInput: A value is out of range, or the parts do not fit together.
    """
    _check_arguments(tool, max_steps=max_steps, good_score=good_score, bank=bank, learn=learn, until=until, judge=judge)
    judges_rows = isinstance(tool, Graph) and judge is None and until != "rows"
    check_schemas(draft, revise, judge is not None or judges_rows)
    model, texts = _opened_model(model), prompts_of(prompts)
    drafter = _responder(model, texts, "draft", draft, instructions)
    reviser = _responder(model, texts, "revise", revise, instructions)
    executing = Executing(
        tool, draft, revise, repeatable=repeatable, handle_errors=handle_errors, judged=judges_rows, approved=approve
    )
    querying = executing.querying
    parts = Parts(
        draft=drafter.arespond,
        execute=executing,
        revise=reviser.arespond,
        read=reading_of,
        answered=query_answered if querying else lambda reading, message: reading.answer,
        passed=portal.both_ways(partial(portal.call, judge))
        if judge
        else lambda reading, message: reading.passes(good_score),
        settles=rows_settle if until == "rows" else lambda message: "",
        judge=RowsJudge(journalled(model), texts, querying, good_score) if querying and judges_rows else None,
        approve=ask_person if approve else None,
    )
    settings: dict[str, Json] = {
        "tool": executing.name,
        "good_score": None if judge else good_score,
        "approve": approve,
        **({"until": until or "judged"} if judges_rows or until else {}),
        "graph": name,
        "max_steps": max_steps,
        "instructions": instructions,
    }
    graph = assemble(
        parts,
        recorder=Recorder(store_of(store)),
        steps=max_steps,
        models={"draft": drafter.model, "revise": reviser.model},
        prompts=texts.texts,
        settings=settings,
        agent_id=agent_id,
        bank=with_pairs(bank_of(bank), querying) if querying else bank_of(bank),
        learn=learn,
        name=name,
    )
    before, after = _nodes_to_interrupt(interrupt_before), _nodes_to_interrupt(interrupt_after)
    compiled = graph.compile(checkpointer=checkpointer, interrupt_before=before, interrupt_after=after, name=name)
    return cast(ReflexionGraph, compiled)


def _check_arguments(
    tool: Any,
    *,
    max_steps: int,
    good_score: float,
    bank: Bank | str | None,
    learn: bool,
    until: Until | None,
    judge: Judge | None,
) -> None:
    """Raise `InvalidInput` if a value is out of range, or the arguments do not fit together."""
    check_limits(max_steps, good_score)
    if max_steps < 1:
        raise InvalidInput(f"max_steps must be at least 1, not {max_steps}. It limits drafts and revisions.")
    if learn and bank is None:
        raise InvalidInput("learn=True needs a bank: pass bank=…")
    if until is not None:
        check_until(until)
        if judge is not None or not isinstance(tool, Graph):
            raise InvalidInput("'until' can be used only with a graph database and without your own judge: omit it.")


def _opened_model(model: Any) -> Any:
    """Return the chat model that a name stands for, or the given model or chain of models."""
    model = chat_model(model) if isinstance(model, str) else model
    if not models_in(journalled(model)):
        raise InvalidInput(f"model must be a LangChain chat model, or a chain of them, not {type(model).__name__}.")
    return model


def _responder(
    model: Any, texts: FilePrompts, role: str, schema: type[BaseModel], instructions: str
) -> SchemaResponder:
    prompt = texts.get(f"reflexion_graph.{role}").check(*SLOTS)
    return SchemaResponder(model, schema, prompt, lambda: {"instructions": instructions})


def _nodes_to_interrupt(names: Sequence[str] | None) -> Any:
    """Return the names as `StateGraph.compile` takes them: "*" for all nodes, else a list."""
    return names if names == "*" else list(names or ())
