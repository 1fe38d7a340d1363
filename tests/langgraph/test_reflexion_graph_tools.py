"""What executes an answer: functions, LangChain tools, runnables, graph databases; and what becomes of their errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import ToolException, tool
from pydantic import BaseModel
from reflexion_graphs import a_graph, asking, chat, run

from mulligan.core.errors import GraphError, InvalidInput, QueryError, StoreError
from mulligan.core.records import Json
from mulligan.graphs.protocol import GraphSchema, Rows
from mulligan.langgraph import ScriptedChat

BOTH = ("invoke", "ainvoke")


async def later(answer: str) -> str:
    return f"ran {answer}"


@tool
def described(answer: str) -> str:
    """Runs the answer."""
    return f"ran {answer}"


@tool
def named_otherwise(query: str, limit: int = 5) -> str:
    """Runs the query."""
    return f"ran {query}"


@tool
async def described_later(query: str) -> str:
    """Runs the query."""
    return f"ran {query}"


def by_name(*, query: str) -> str:
    return f"ran {query}"


def by_name_behind_another(note: str = "", *, query: str) -> str:
    return f"ran {note}{query}"


def with_an_option(answer: str, /, *, limit: int = 5) -> str:
    return f"ran {answer}" if limit == 5 else f"limit {limit}"


class Callable:
    def __call__(self, whatever: str) -> str:
        return f"ran {whatever}"


class CallableLater:
    async def __call__(self, whatever: str) -> str:
        return f"ran {whatever}"


TOOLS: dict[str, Any] = {
    "a function": lambda q: f"ran {q}",  # pyright: ignore
    "an async function": later,
    "a function with one keyword-only parameter": by_name,
    "a function with one required parameter, keyword-only": by_name_behind_another,
    "a function with a keyword-only option": with_an_option,
    "an object": Callable(),
    "an async object": CallableLater(),
    "a tool": described,
    "a tool whose parameter is called otherwise": named_otherwise,
    "a runnable": RunnableLambda(lambda q: f"ran {q}"),  # pyright: ignore
}


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("kind", TOOLS)
def test_anything_that_runs_an_answer_can_be_the_tool(way: str, kind: str) -> None:
    assert run(way, a_graph(chat(9), TOOLS[kind]), asking())["reflexion"]["tool_result"] == "ran answer 1"


def test_a_tool_that_is_only_async_runs_where_the_graph_does() -> None:
    assert run("ainvoke", a_graph(chat(9), described_later), asking())["reflexion"]["tool_result"] == "ran answer 1"


class Wide(BaseModel):
    """A draft with more fields."""

    answer: str
    limit: int
    reflection: str = ""


class Wider(Wide):
    """A revision with more fields."""

    score: int


WIDE = [{"answer": "a", "limit": 3}, {"answer": "b", "limit": 4, "score": 2}, {"answer": "c", "limit": 5, "score": 8}]


@pytest.mark.parametrize("way", BOTH)
def test_fields_of_the_schemas_go_to_the_parameters_of_their_names(way: str) -> None:
    seen: list[Any] = []

    def both(query: str, limit: int) -> str:
        seen.append((query, limit))
        return "ran"

    run(way, a_graph(ScriptedChat(WIDE), both, draft=Wide, revise=Wider), asking())
    run(way, a_graph(ScriptedChat(WIDE), named_otherwise, draft=Wide, revise=Wider), asking())
    assert seen == [("a", 3), ("b", 4)]

    def one(limit: int) -> str:
        seen.append(limit)
        return "ran"

    run(way, a_graph(ScriptedChat(WIDE), one, draft=Wide, revise=Wider), asking())
    assert seen[2:] == [3, 4], "a function with this parameter alone gets the field as well, not the answer"


def test_a_tool_that_wants_what_no_field_holds_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs start, stop"):
        a_graph(chat(9), lambda start, stop: "")  # pyright: ignore
    with pytest.raises(InvalidInput, match="tool must be a function"):
        a_graph(chat(9), 5)


class Other(BaseModel):
    text: str


class Unscored(BaseModel):
    answer: str


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"draft": Other}, "Other has no field to execute"),
        ({"revise": Unscored}, "no field 'score'"),
        ({"draft": dict}, "draft must be a pydantic model class"),
        ({"draft": Wider, "revise": Wider}, "Both schemas are named Wider"),
    ],
)
def test_schemas_that_a_graph_cannot_go_by_are_refused(given: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        a_graph(chat(9), **given)


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such gene"), "ValueError: no such gene"),
        (ToolException("busy"), "ToolException: busy"),
        (QueryError("line 1: no such label", "unknown"), "line 1: no such label"),
    ],
)
def test_what_a_tool_raises_goes_back_to_the_model(way: str, error: Exception, told: str) -> None:
    def fails(answer: str) -> str:
        if answer == "answer 1":
            raise error
        return "found"

    model = chat(1, 9)
    found = run(way, a_graph(model, fails), asking())
    assert [(m.text, m.status) for m in found["messages"] if isinstance(m, ToolMessage)] == [
        (told, "error"),
        ("found", "success"),
    ]
    assert model.asked[1][-1].text == told
    assert found["reflexion"]["tool_result"] == "found"


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("error", [GraphError("the database has died"), StoreError("the disk is full")])
def test_what_no_answer_can_mend_ends_the_run(way: str, error: Exception) -> None:
    def fails(answer: str) -> str:
        raise error

    with pytest.raises(type(error), match=str(error)):
        run(way, a_graph(chat(1, 9), fails), asking())


def test_errors_are_raised_where_they_are_wanted() -> None:
    def fails(answer: str) -> str:
        raise ValueError("no such gene")

    with pytest.raises(ValueError, match="no such gene"):
        a_graph(chat(1, 9), fails, handle_errors=False).invoke(asking())


class Genes:
    """A graph database that knows one query."""

    name, language, notes = "genes", "Cypher", ()

    async def run(
        self, query: str, parameters: Mapping[str, Json] | None = None, *, seconds: float = 1, rows: int = 9
    ) -> Rows:
        if query != "answer 2":
            raise QueryError("line 1, column 3: no such label", "unknown", 1, 3)
        return Rows(("gene",), ({"gene": "TBX21"},), truncated=True)

    async def schema(self) -> GraphSchema:
        return GraphSchema()

    async def close(self) -> None:
        return


@pytest.mark.parametrize("way", BOTH)
def test_a_graph_database_is_asked_and_what_it_says_goes_back(way: str) -> None:
    found = run(way, a_graph(chat(1, 4), Genes(), until="rows"), asking())
    messages: Sequence[Any] = found["messages"]
    assert json.loads(messages[2].text)["error"] == "line 1, column 3: no such label"
    assert messages[2].status == "error"
    assert json.loads(found["reflexion"]["tool_result"]) == {
        "query": "answer 2",
        "result": [{"gene": "TBX21"}],
        "truncated": "there are more than 1 row",
    }
    assert found["reflexion"]["stop"] == "unconfirmed", "rows end it, below a good score, too"


def test_errors_of_a_graph_database_are_raised_where_they_are_wanted() -> None:
    with pytest.raises(QueryError, match="no such label"):
        a_graph(chat(1, 9), Genes(), handle_errors=False).invoke(asking())


@pytest.mark.parametrize("tool", [str, Genes()])
def test_a_rule_of_the_end_is_for_a_graph_without_a_judge(tool: Any) -> None:
    judge = None if tool is str else lambda reading, message: True  # pyright: ignore
    with pytest.raises(InvalidInput, match="'until' can be used only with a graph database"):
        a_graph(chat(1), tool, until="rows", judge=judge)


def test_a_rule_of_the_end_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInput, match="until must be 'rows' or 'judged', not 'maybe'"):
        a_graph(chat(1), Genes(), until="maybe")


@pytest.mark.parametrize(
    ("given", "told"),
    [({"rows": [1]}, '{"rows": [1]}'), (Other(text="x"), '{"text": "x"}'), ("text", "text"), (None, "null")],
)
def test_what_a_tool_gives_is_told_as_text(given: Any, told: str) -> None:
    assert a_graph(chat(9), lambda answer: given).invoke(asking())["reflexion"]["tool_result"] == told  # pyright: ignore


@pytest.mark.parametrize("way", BOTH)
def test_a_graph_can_be_the_tool_of_a_graph(way: str) -> None:
    inner = a_graph(chat(9))
    outer = a_graph(chat(9), RunnableLambda(lambda answer: inner.invoke(asking(answer))["reflexion"]["answer"]))  # pyright: ignore
    assert run(way, outer, asking())["reflexion"]["tool_result"] == "answer 1"
