"""Chat models over real wire formats, on loopback: tools, structured output, images, keys, failures."""

import base64
import logging
import os
from collections.abc import Generator
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel
from wire_client import KEY, Wire, running

from mulligan.app.trusting import trust
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.langgraph.chat import chat_model
from mulligan.langgraph.conversation import GptConversation

FORMATS = ["openai:gpt-4o", "anthropic:claude-haiku-4-5", "alibaba:qwen-plus"]
OTHER = "sk-other-9876543210fedcbaHIDDEN"


class Weather(BaseModel):
    """How the weather is."""

    city: str


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@pytest.fixture(scope="module")
def provider() -> Generator[Wire]:
    with running("--port", "0") as wire:
        yield wire


@pytest.fixture
def wire(provider: Wire, monkeypatch: pytest.MonkeyPatch) -> Wire:
    provider.plays()
    for name in ("OPENAI", "ANTHROPIC", "DASHSCOPE"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{provider.port}")
    monkeypatch.setenv("DASHSCOPE_BASE_URL", f"http://127.0.0.1:{provider.port}/compatible-mode/v1")
    return provider


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_", "DASHSCOPE_"))]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("name", FORMATS)
async def test_a_conversation_with_tools_in_every_format(wire: Wire, name: str) -> None:
    sums = [{"name": "add", "arguments": {"a": 1, "b": 2}}, {"name": "add", "arguments": {"a": 3, "b": 4}}]
    wire.plays({"answer": "I add.", "calls": sums, "usage": [9, 5]}, "3 and 7.")
    bound = chat_model(name).bind_tools([add, Weather])
    messages: list[Any] = [HumanMessage("1 + 2, and 3 + 4?")]
    first = await bound.ainvoke(messages)
    assert first.content == "I add."
    assert [call["args"] for call in first.tool_calls] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert first.usage_metadata == {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
    answers = [add.invoke(call) for call in reversed(first.tool_calls)]
    second = await bound.ainvoke([*messages, first, *answers])
    assert second.content == "3 and 7."
    assert [request["tools"] for request in wire.requests] == [["add", "Weather"]] * 2
    assert [result["text"] for result in wire.requests[1]["results"]] == ["3", "7"]


@pytest.mark.parametrize("name", FORMATS)
def test_structured_output_in_every_format(wire: Wire, name: str) -> None:
    wire.plays({"answer": {"tool": "Weather", "arguments": {"city": "Rome"}}})
    found = chat_model(name).with_structured_output(Weather).invoke("And the weather?")
    assert found == Weather(city="Rome")


def test_a_call_that_has_to_be_made_behind_others(wire: Wire) -> None:
    wire.plays(
        {"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}, '{"tool":"Weather","arguments":{"city":"Rome"}}'
    )
    chat = chat_model("openai:gpt-4o")
    first = chat.bind_tools([add]).invoke("?")
    second = chat.bind_tools([Weather], tool_choice="Weather").invoke(
        [HumanMessage("?"), first, ToolMessage("3", tool_call_id=first.tool_calls[0]["id"])]
    )
    assert second.tool_calls[0]["args"] == {"city": "Rome"}
    assert wire.requests[1]["results"] == []
    assert "Result of add:" in str(wire.bodies[1])


def test_a_server_that_takes_no_tools(wire: Wire) -> None:
    wire.plays(
        {"status": 400, "body": {"error": {"message": "this model does not support tools"}}},
        '{"tool": "add", "arguments": {"a": 1, "b": 2}}',
        '{"tool": "reply", "arguments": {"text": "It is 3."}}',
    )
    bound = chat_model("openai:tiny").bind_tools([add])
    first = bound.invoke("1 + 2?")
    assert first.tool_calls[0]["args"] == {"a": 1, "b": 2}
    assert bound.invoke([HumanMessage("1 + 2?"), first, add.invoke(first.tool_calls[0])]).content == "It is 3."


def test_an_image_reaches_the_provider(wire: Wire) -> None:
    wire.plays("A pixel.")
    pixel = base64.b64encode(b"\x89PNG").decode()
    block = {"type": "image", "base64": pixel, "mime_type": "image/png"}
    message = HumanMessage([{"type": "text", "text": "What is it?"}, block])
    assert chat_model("openai:gpt-4o").invoke([message]).content == "A pixel."
    assert pixel in str(wire.bodies[0])


def test_what_is_given_goes_before_what_is_configured(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/nowhere")
    wire.plays({"status": 500, "body": {}}, "Fine.")
    chat = chat_model("openai:gpt-4o", base_url=wire.url, max_retries=0, timeout=20, temperature=0.5, max_tokens=7)
    with pytest.raises(ModelError, match="tried once"):
        chat.invoke("And?")
    assert chat.invoke("And?").content == "Fine."
    assert wire.bodies[0]["temperature"] == 0.5
    assert wire.bodies[0]["max_tokens"] == 7


def test_a_role_of_the_project_is_a_model(wire: Wire, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mulligan.toml").write_text(
        'model = "openai:big"\n[models]\ncheap = { name = "openai:small", temperature = 0.25 }\n', "utf-8"
    )
    trust(tmp_path)
    monkeypatch.chdir(tmp_path)
    wire.plays("a", "b", "c")
    chat_model("cheap").invoke("And?")
    chat_model("cheap", temperature=0.75).invoke("And?")
    chat_model().invoke("And?")
    found = [(body["model"], body.get("temperature")) for body in wire.bodies]
    assert found == [("small", 0.25), ("small", 0.75), ("big", None)]


@pytest.mark.usefixtures("no_key")
def test_no_model_and_no_key_are_reported_before_any_call() -> None:
    with pytest.raises(InvalidInput, match=r"No model was named\. Pass one"):
        chat_model()
    with pytest.raises(InvalidInput, match="openai:gpt-4o needs a key: set OPENAI_API_KEY"):
        chat_model("openai:gpt-4o")
    with pytest.raises(InvalidInput, match="'base_url' must begin with http"):
        chat_model("openai:gpt-4o", base_url="here")


@pytest.mark.usefixtures("no_key")
def test_a_conversation_hands_its_key_to_the_provider_alone(provider: Wire, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    provider.plays("Fine.", {"status": 401, "body": {"error": {"message": f"bad key {OTHER}"}}})
    conversation = GptConversation("gpt-4o-mini", {}, base_url=provider.url)
    assert conversation.set_api_key(OTHER, user="me") is True
    assert conversation.query("And?")[0] == "Fine."
    with pytest.raises(ModelError) as caught:
        conversation.query("And now?")
    (first, _) = provider.requests
    assert first["headers"]["authorization"] == f"Bearer {OTHER}"
    assert first["body"]["model"] == "gpt-4o-mini"
    seen = [str(caught.value), caplog.text, repr(conversation), repr(vars(conversation)), repr(conversation.chat)]
    assert [text for text in seen if OTHER in text] == []
    assert "OPENAI_API_KEY" not in os.environ


@pytest.mark.usefixtures("no_key")
def test_two_conversations_keep_their_own_keys(provider: Wire) -> None:
    provider.plays("a", "b", "c")
    one, two = (GptConversation("gpt-4o-mini", base_url=provider.url) for _ in range(2))
    assert one.set_api_key(KEY)
    assert two.set_api_key(OTHER)
    for conversation in (one, two, one):
        conversation.query("And?")
    sent = [request["headers"]["authorization"] for request in provider.requests]
    assert sent == [f"Bearer {KEY}", f"Bearer {OTHER}", f"Bearer {KEY}"]
