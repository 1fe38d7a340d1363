"""`create_reflexion_graph`: a compiled graph that drafts, executes and revises, for any chat model and any tool."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from langchain_core.messages import ToolMessage
from pydantic import BaseModel

from mulligan.app.prompts import FilePrompts
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Bank, Store
from mulligan.core.records import Head, Json
from mulligan.langgraph import approval
from mulligan.langgraph.asking import Asking, reading_of
from mulligan.langgraph.bridge import both_ways, called
from mulligan.langgraph.chat import chat_model
from mulligan.langgraph.executing import Executing
from mulligan.langgraph.graph import STEPS, Nodes, Parts, wired
from mulligan.langgraph.heads import head
from mulligan.langgraph.journalled import journalled, models_in
from mulligan.langgraph.roles import OwnBank
from mulligan.langgraph.roomy import ReflexionGraph
from mulligan.langgraph.schemas import Draft, Revision, checked_schemas
from mulligan.langgraph.state import Reading, checked
from mulligan.langgraph.working import Recorder

GOOD_SCORE = 7.0
"""A score that is good enough, of 10. The seed says "greater than 7", its code `>= 7`: so it is here."""

Judge: TypeAlias = Callable[[Reading, ToolMessage], "bool | Awaitable[bool | None] | None"]
"""Whether what was executed is good enough, by the revision that looked at it and the tool's message; None: it cannot
be told."""


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
    """A compiled graph with the nodes draft, execute_tool and revise: `graph.invoke({"messages": [("user", "…")]})`.

    model: a LangChain chat model, retries or fallbacks over some, or a name as in docs/models.md. tool: executes an
    answer; a function (also async), a LangChain tool or a runnable, given the answer, or those fields of the schemas
    that it takes by name; or a graph database (`mulligan.core.graphs.Graph`). instructions: what the answer has to be,
    for draft and revision.
    draft, revise: what the model is asked for, as pydantic models; see `mulligan.langgraph.schemas`. judge: when it is
    good enough; None: a score of good_score or more, 0 to 10. max_steps: drafts and revisions at most.
    store: where runs are recorded; None: where `mulligan runs` looks; False: nowhere. agent_id: whose record it is.
    bank: a bank, or an agent_id; recalled from before the draft. learn: it is taught by each episode that is over.
    checkpointer, interrupt_before, interrupt_after: as `StateGraph.compile` takes them. approve: a person approves,
    edits or refuses each answer before it is executed; needs a checkpointer. handle_errors: what the tool raises goes
    back to the model. repeatable: whether the tool may be run again where it was cut off. prompts: a folder with
    prompts in the place of ours. name: of the graph, and of its runs. Raises `InvalidInput`.
    """
    checked(max_steps, good_score)
    if max_steps < 1:
        raise InvalidInput(f"max_steps is a whole number from 1: drafts and revisions at most; not {max_steps}.")
    if learn and bank is None:
        raise InvalidInput("learn=True needs a bank to teach: give bank=…")
    checked_schemas(draft, revise, judge is not None)
    model = chat_model(model) if isinstance(model, str) else model
    asked = Asked.of(model, draft, revise, instructions, _prompts(prompts))
    executing = Executing(tool, draft, revise, repeatable=repeatable, handle_errors=handle_errors)
    settings = {"tool": executing.name, "good_score": None if judge else good_score, "approve": approve}
    settings |= {"graph": name, "max_steps": max_steps, "instructions": instructions}
    parts = _parts(asked, executing, _by_score(good_score) if judge is None else _judged(judge), approve)
    recorder, head = Recorder(_store(store)), asked.head(settings)
    graph = wired(Nodes(parts, recorder, max_steps, agent_id, head, asked.files, _bank(bank), learn, name))
    before, after = _names(interrupt_before), _names(interrupt_after)
    compiled = graph.compile(checkpointer=checkpointer, interrupt_before=before, interrupt_after=after, name=name)
    return cast(ReflexionGraph, compiled)


SLOTS = ("tool", "schema", "instructions", "lessons")


@dataclass(frozen=True)
class Asked:
    """Who is asked for drafts and revisions, and by which prompts."""

    draft: Asking
    revise: Asking
    prompts: FilePrompts

    @classmethod
    def of(
        cls, model: Any, draft: type[BaseModel], revise: type[BaseModel], instructions: str, prompts: FilePrompts
    ) -> Asked:
        """Raises `InvalidInput` for what is no chat model, and for prompts that cannot be."""
        if not models_in(journalled(model)):
            raise InvalidInput(f"model is a LangChain chat model, or made of some; {type(model).__name__} is none.")
        first, then = (
            Asking(model, schema, prompts.get(f"reflexion_graph.{role}").check(*SLOTS), instructions)
            for role, schema in (("draft", draft), ("revise", revise))
        )
        return cls(first, then, prompts)

    @property
    def files(self) -> Mapping[str, str]:
        return {f"prompts/{name}.md": text for name, text in self.prompts.texts.items()}

    def head(self, settings: Mapping[str, Json]) -> Head:
        models = {"draft": self.draft.model, "revise": self.revise.model}
        return head(models, self.prompts.used, settings)


def _parts(asked: Asked, executing: Executing, passed: Callable[[Reading, ToolMessage], Any], approve: bool) -> Parts:
    return Parts(
        asked.draft,
        executing,
        asked.revise,
        reading_of,
        lambda reading, message: reading.answer,
        passed,
        approve=approval.ask if approve else None,
    )


def _by_score(good_score: float) -> Callable[[Reading, ToolMessage], bool | None]:
    return lambda reading, message: None if reading.score is None else reading.score >= good_score


def _judged(judge: Judge) -> Callable[[Reading, ToolMessage], Any]:
    @both_ways
    async def verdict(reading: Reading, message: ToolMessage) -> bool | None:
        return await called(judge, reading, message)

    return verdict


def _names(given: Sequence[str] | None) -> Any:
    """The nodes to interrupt at, as `StateGraph.compile` takes them: "*" for all."""
    return given if given == "*" else list(given or ())


def _prompts(folder: str | os.PathLike[str] | None) -> FilePrompts:
    from mulligan.app.config import load, prompts_folder

    own = os.fspath(folder) if folder is not None else prompts_folder(load())
    return FilePrompts([Path(own)] if own else [])


def _store(given: Store | bool | None) -> Store | None:
    """The store that was given, or the one in force, which is opened when it is first used."""
    if given is None or given is True:
        from mulligan.app.config import load
        from mulligan.store import open_store

        return open_store(load().store)
    return given or None


def _bank(given: Bank | str | None) -> Bank | None:
    return OwnBank(given) if isinstance(given, str) else given
