"""LangChain's messages become ours: roles, images, tool messages in the order of the calls, and what is refused."""

import base64
from typing import Any

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from mulligan.core.errors import InvalidInput
from mulligan.core.questions import Message, ToolCall
from mulligan.core.records import Image
from mulligan.langgraph.chat import UNANSWERED, to_messages

PIXEL = base64.b64encode(b"\x89PNG").decode()
IMAGE = Image("image/png", b"\x89PNG")


def call(name: str, id: str | None, **arguments: Any) -> Any:
    return {"name": name, "args": arguments, "id": id, "type": "tool_call"}


def test_roles_and_texts() -> None:
    messages: list[BaseMessage] = [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "One."}, "Two."]),
        AIMessage([{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "Fine."}]),
        ChatMessage(content="And?", role="user"),
        ChatMessage(content="Well.", role="assistant"),
    ]
    assert to_messages(messages) == (
        Message("system", "Be brief."),
        Message("user", "One.\n\nTwo."),
        Message("assistant", "Fine."),
        Message("user", "And?"),
        Message("assistant", "Well."),
    )


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": PIXEL, "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "image", "source_type": "base64", "data": PIXEL, "mime_type": "image/png"},
    ],
    ids=["standard", "openai", "anthropic", "langchain 0.3"],
)
def test_images_in_every_format(block: Any) -> None:
    (message,) = to_messages([HumanMessage([{"type": "text", "text": "What is it?"}, block])])
    assert message == Message("user", "What is it?", (IMAGE,))


def test_tool_messages_are_put_in_the_order_of_the_calls() -> None:
    asked = AIMessage("I look.", tool_calls=[call("one", "a", x=1), call("two", "b")])
    found = to_messages(
        [HumanMessage("?"), asked, ToolMessage("2", tool_call_id="b"), ToolMessage("1", tool_call_id="a")]
    )
    assert found[1:] == (
        Message("assistant", "I look.", calls=(ToolCall("one", {"x": 1}), ToolCall("two", {}))),
        Message("tool", "1"),
        Message("tool", "2"),
    )


def test_a_call_that_nobody_answered_is_told_so() -> None:
    asked = AIMessage("", tool_calls=[call("one", "a"), call("two", None)])
    found = to_messages([asked, ToolMessage("1", tool_call_id="a"), HumanMessage("Never mind."), AIMessage("Good.")])
    assert [message.role for message in found] == ["assistant", "tool", "tool", "user", "assistant"]
    assert [message.text for message in found[1:3]] == ["1", UNANSWERED]


def test_a_call_that_could_not_be_read_is_told_with_what_it_was() -> None:
    broken: Any = {"name": "one", "args": '{"x": ', "id": "a", "error": None, "type": "invalid_tool_call"}
    found = to_messages([AIMessage("", invalid_tool_calls=[broken]), ToolMessage("No JSON.", tool_call_id="a")])
    assert found == (
        Message("assistant", "", calls=(ToolCall("one", '{"x": '),)),
        Message("tool", "No JSON."),
    )


@each_row(
    ("messages", "text"),
    [
        ([], "no message"),
        ([ToolMessage("1", tool_call_id="a")], "'a', which the assistant message before it does not have"),
        (
            [
                AIMessage("", tool_calls=[call("one", "a")]),
                ToolMessage("1", tool_call_id="a"),
                ToolMessage("2", tool_call_id="a"),
            ],
            "'a', which is answered already",
        ),
        ([HumanMessage([{"type": "image", "url": "http://127.0.0.1/x.png"}])], "does not fetch images"),
        ([HumanMessage([{"type": "image", "base64": "!", "mime_type": "image/png"}])], "not valid base64"),
        ([HumanMessage([{"type": "image", "base64": PIXEL}])], "lacks its mime_type"),
        ([HumanMessage([{"type": "audio", "base64": PIXEL, "mime_type": "audio/wav"}])], "contains 'audio'"),
        ([HumanMessage([{"type": "hologram"}])], "contains 'hologram'"),
        (
            [SystemMessage([{"type": "image", "base64": PIXEL, "mime_type": "image/png"}])],
            "system message contains 'image'",
        ),
        ([ChatMessage(content="x", role="narrator")], "the role 'narrator'"),
        ([FunctionMessage(content="x", name="f")], "the type 'function'"),
    ],
)
def test_what_cannot_be_said_is_refused(messages: list[BaseMessage], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        to_messages(messages)
    assert text in str(caught.value)


CALLS = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)


@given(st.lists(st.tuples(CALLS, st.randoms(use_true_random=False), st.booleans()), max_size=5))
def test_every_call_has_one_answer_behind_it_in_its_order(turns: list[Any]) -> None:
    messages: list[BaseMessage] = [HumanMessage("?")]
    for ids, random, all_answered in turns:
        messages.append(AIMessage("", tool_calls=[call(f"tool_{id}", id) for id in ids]))
        answered = ids if all_answered else ids[:1]
        messages += random.sample([ToolMessage(f"of tool_{id}", tool_call_id=id) for id in answered], len(answered))
    waiting: list[str] = []
    for message in to_messages(messages):
        if message.role == "tool":
            assert message.text in (f"of {waiting.pop(0)}", UNANSWERED)
        else:
            assert waiting == []
            waiting = [each.name for each in message.calls]
    assert waiting == []
