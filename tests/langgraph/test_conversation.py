"""`GptConversation`: names, keys that are missing, and what is remembered."""

import json
from pathlib import Path

import pytest
from each_row import each_row

from mulligan.core.errors import InvalidInput, ModelError
from mulligan.langgraph import GptConversation


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DEEPSEEK_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def scripted(folder: Path, *answers: str) -> GptConversation:
    file = folder / "answers.json"
    file.write_text(json.dumps(answers), "utf-8")
    return GptConversation(f"scripted:{file}")


@each_row(
    ("given", "name"),
    [
        ("gpt-3.5-turbo", "openai:gpt-3.5-turbo"),
        ("openai:gpt-4o-mini", "openai:gpt-4o-mini"),
        ("deepseek:deepseek-v4-pro", "deepseek:deepseek-v4-pro"),
        ("local", "local"),
        ("local:smollm2-135m", "local:smollm2-135m"),
        ("worker", "worker"),
    ],
)
def test_a_name_without_a_provider_is_openais_unless_it_is_ours(given: str, name: str) -> None:
    assert GptConversation(given, {}).model_name == name


@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_key_that_is_missing_is_reported_before_any_call(key: str | None) -> None:
    conversation = GptConversation("gpt-4o-mini", prompts={})
    assert conversation.set_api_key(key, user="me") is False
    for ask in (lambda: conversation.chat, lambda: conversation.query("And?")):
        with pytest.raises(
            InvalidInput, match=r"openai:gpt-4o-mini needs a key: set OPENAI_API_KEY.*set_api_key\(KEY\)"
        ):
            ask()


def test_a_key_in_the_environment_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    assert GptConversation("gpt-4o-mini").set_api_key(None) is True


def test_a_model_that_needs_no_key_needs_none(tmp_path: Path) -> None:
    conversation = scripted(tmp_path, "Fine.")
    assert conversation.set_api_key(None) is True
    assert conversation.query("And?")[0] == "Fine."


def test_what_else_is_wrong_is_raised() -> None:
    with pytest.raises(InvalidInput, match="No model provider is called 'opnai'"):
        GptConversation("opnai:gpt-4o").set_api_key("sk-x")
    with pytest.raises(InvalidInput, match="No model was named"):
        GptConversation().set_api_key("sk-x")


def test_a_question_that_failed_is_no_part_of_the_conversation(tmp_path: Path) -> None:
    conversation = scripted(tmp_path, "Fine.")
    conversation.append_system_message("Be brief.")
    conversation.query("And?")
    with pytest.raises(ModelError, match="has 1 answer "):
        conversation.query("And now?")
    assert [message.text for message in conversation.messages] == ["Be brief.", "And?", "Fine."]
    conversation.reset()
    assert conversation.messages == []
