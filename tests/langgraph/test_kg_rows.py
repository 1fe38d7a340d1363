"""What a model is shown of a result, and what is said back to it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from mulligan.core.errors import BadAnswer
from mulligan.langgraph import ResponderWithRetries
from mulligan.langgraph.asking import merge_calls, queries_in
from mulligan.langgraph.graph_texts import SHOWN, record_in, result_in, shown, tool_message
from mulligan.text.truncate import estimate

CALL = {"id": "call-1", "name": "GenerateQuery"}


def test_what_fits_is_shown_whole() -> None:
    found = {"query": "q", "result": [{"n": n} for n in range(100)], "truncated": "more"}
    assert json.loads(shown(found)) == found


def test_one_row_that_is_too_large_is_cut_within() -> None:
    row = {"text": "x" * 100_000, "many": list(range(5000)), "deep": {"a": {"b": "y" * 9000}}, "n": 1}
    said = json.loads(shown({"query": "q", "result": [row, row]}))
    (cut,) = said["result"]
    assert cut["text"].endswith("… (99,600 characters more)")
    assert cut["many"][-1] == "… (4,980 more)"
    assert cut["deep"]["a"]["b"].startswith("y" * 400)
    assert cut["n"] == 1
    assert said["shown"].startswith("the first of 2 rows")


def test_a_row_that_is_too_large_however_it_is_cut_is_not_shown() -> None:
    row = {f"{n:04}" * 50: {str(m): "z " * 200 for m in range(40)} for n in range(40)}
    text = shown({"query": "q", "result": [row]})
    said = json.loads(text)
    assert said["result"] == []
    assert "Return single properties" in said["shown"]
    assert estimate(text) < SHOWN


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner, max_size=30),
    max_leaves=60,
)


@pytest.mark.slow
@given(
    rows=st.lists(st.dictionaries(st.text(max_size=10), JSON, max_size=6), max_size=40), bound=st.integers(200, 4000)
)
def test_it_is_json_within_the_bound_and_begins_with_the_first_rows(rows: list[Any], bound: int) -> None:
    found = {"query": "MATCH", "result": rows}
    text = shown(found, bound)
    said = json.loads(text)
    assert estimate(text) <= bound + 60
    if "shown" not in said:
        assert said == found
    elif "cut short" not in said["shown"]:
        assert said["result"] == rows[: len(said["result"])]


def test_the_message_keeps_the_whole_beside_what_is_shown() -> None:
    found = {"query": "q", "result": [{"n": "x" * 200} for _ in range(500)]}
    message = tool_message(found, CALL)
    assert record_in(message) == found
    assert (message.tool_call_id, message.name, message.status) == ("call-1", "GenerateQuery", "success")
    assert len(json.loads(message.text)["result"]) < 500
    assert tool_message({"query": "q", "result": [], "error": "no"}, CALL).status == "error"


@pytest.mark.parametrize("text", ["plain", "[1, 2]", '{"other": 1}', ""])
def test_a_tools_message_of_another_kind_is_its_own_result(text: str) -> None:
    assert result_in(ToolMessage(text, tool_call_id="1")) == text


def test_one_call_keeps_what_the_others_proposed() -> None:
    first = {"name": "G", "args": {"answer": "a", "search_queries": ["b", "a"]}, "id": "1"}
    second = {"name": "G", "args": {"answer": "c"}, "id": "2"}
    other = {"name": "H", "args": {"answer": "d"}, "id": "3"}
    message = merge_calls(AIMessage("said", tool_calls=[first, second, other]))
    assert [(call["id"], call["args"]["search_queries"]) for call in message.tool_calls] == [("1", ["b", "a", "c"])]
    assert message.content == "said"
    alone = AIMessage("", tool_calls=[first])
    assert merge_calls(alone) is alone


@given(JSON)
def test_whatever_the_arguments_are_queries_are_texts(value: Any) -> None:
    for arguments in ({"search_queries": value}, {"answer": value}, {"revised_query": value, "answer": "x"}):
        assert all(isinstance(query, str) and query.strip() for query in queries_in(arguments))


class Says:
    """A runnable of another kind, without `ainvoke`."""

    def __init__(self, *messages: AIMessage) -> None:
        self.messages, self.asked = list(messages), list[int]()

    def invoke(self, given: Any) -> AIMessage:
        self.asked.append(len(given["messages"]))
        return self.messages.pop(0)


CALLED = AIMessage("", tool_calls=[{"name": "G", "args": {}, "id": "1"}])


def refuse(message: AIMessage) -> Any:
    if not message.tool_calls:
        raise ValueError("call the tool")


def test_a_validator_that_only_raises_is_enough() -> None:
    state = [HumanMessage("?")]
    says = Says(AIMessage("no"), CALLED)
    assert ResponderWithRetries(says, refuse).respond(state) is CALLED
    assert says.asked == [1, 3]
    assert len(state) == 1, "the state is left as it is"


async def test_a_runnable_without_coroutines_is_asked_all_the_same() -> None:
    assert await ResponderWithRetries(Says(AIMessage("no"), CALLED), refuse).arespond([HumanMessage("?")]) is CALLED


def test_after_three_times_it_is_over() -> None:
    with pytest.raises(BadAnswer, match=r"3 attempts\. Last problem: call the tool"):
        ResponderWithRetries(Says(*[AIMessage("no")] * 3), refuse).respond([HumanMessage("?")])


def test_a_bug_in_a_validator_is_not_told_to_the_model() -> None:
    def broken(message: AIMessage) -> Any:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        ResponderWithRetries(Says(CALLED), broken).respond([HumanMessage("?")])
