"""What the prompt engine asks: conversations of every kind, models by name; inside a node, in its journal."""

import asyncio
import json
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from wire_client import KEY, Wire, running

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Usage
from mulligan.graphs.sample import schema_info
from mulligan.langgraph import BioCypherPromptEngine, GptConversation, KGQueryReflexionAgent, ScriptedChat, chat_model
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

QUESTION = "Which genes does EOMES regulate?"
ANSWERS: list[Any] = [
    {"entities": ["Gene"]},
    {"relationships": ["GeneRegulatesGene"]},
    {"Gene": ["name"], "GeneRegulatesGene": []},
]
GOOD = "MATCH (g:Gene {name: 'EOMES'})-[:REGULATES]->(t:Gene) RETURN t.name AS name ORDER BY name"
PATTERN = "(:Gene)-[:REGULATES]->(:Gene)"


class Spoken:
    """A conversation without a chat model: BioChatter's three methods."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.told = list(answers), list[list[str]]()

    def reset(self) -> None:
        self.told.append([])

    def append_system_message(self, text: str) -> None:
        self.told[-1].append(text)

    def query(self, text: str) -> tuple[str, Any, None]:
        self.told[-1].append(text)
        return self.answers.pop(0), {"tokens": 3}, None


class Toolless(BaseChatModel):
    """A chat model that knows no tools."""

    answers: list[str]

    @property
    def _llm_type(self) -> str:
        return "toolless"

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.answers.pop(0)))])


class Talk:
    """What a factory may make: anything with a chat model."""

    def __init__(self, chat: Any) -> None:
        self.chat = chat


def engine_on(factory: Callable[[], Any], **given: Any) -> BioCypherPromptEngine:
    return BioCypherPromptEngine(schema_config_or_info_dict=schema_info(), conversation_factory=factory, **given)


def in_words(*answers: Any) -> list[str]:
    return [f"Here it is:\n```json\n{json.dumps(answer)}\n```" for answer in answers]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "GOOGLE_", "GEMINI_"))]:
        monkeypatch.delenv(name)
    with running("--port", "0") as wire:
        yield wire


def test_the_seeds_example_with_a_conversation_that_has_its_own_key(provider: Wire) -> None:
    provider.plays(*({"answer": answer} for answer in ANSWERS))

    def create_conversation() -> GptConversation:
        conversation = GptConversation(model_name="gpt-3.5-turbo", prompts={}, base_url=provider.url)
        conversation.set_api_key(KEY, user="my_user")
        return conversation

    prompt_engine = BioCypherPromptEngine(
        schema_config_or_info_dict=schema_info(), conversation_factory=create_conversation
    )
    kg_prompt = prompt_engine.generate_query_prompt(QUESTION)
    assert PATTERN in kg_prompt
    assert "Disease" not in kg_prompt
    assert len(provider.bodies) == 3
    assert prompt_engine.usage.calls == 3


def test_a_conversation_keeps_what_was_said_until_it_is_reset(provider: Wire) -> None:
    provider.plays({"answer": "Fine.", "usage": [7, 2]}, "Better.", "Anew.")
    conversation = GptConversation("gpt-4o-mini", base_url=provider.url)
    conversation.append_system_message("Be brief.")
    text, usage, correction = conversation.query("And?")
    assert (text, usage["input_tokens"], usage["output_tokens"], correction) == ("Fine.", 7, 2, None)
    conversation.query("And now?")
    conversation.reset()
    asyncio.run(conversation.aquery("Hello?"))
    said = [[message["content"] for message in body["messages"]] for body in provider.bodies]
    assert said == [["Be brief.", "And?"], ["Be brief.", "And?", "Fine.", "And now?"], ["Hello?"]]


def test_a_conversation_without_a_chat_model_is_asked_in_words() -> None:
    talk = Spoken(*in_words(*ANSWERS))
    engine = engine_on(lambda: talk)
    assert PATTERN in engine.generate_query_prompt(QUESTION)
    assert [len(told) for told in talk.told] == [2, 2, 2]
    assert '"enum": ["Gene", "Transcript"' in talk.told[0][0]
    assert engine.usage == Usage(calls=3, cost=None)


async def test_a_conversation_in_words_is_told_once_what_was_wrong() -> None:
    talk = Spoken("Genes, I think.", *in_words(*ANSWERS))
    assert PATTERN in await engine_on(lambda: talk).agenerate_query_prompt(QUESTION)
    assert "must be one JSON object" in talk.told[0][2]
    with pytest.raises(BadAnswer, match="must be one JSON object"):
        await engine_on(lambda: Spoken("No.", "No.")).aselect(QUESTION)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Talk(chat_model(ScriptedModel(ANSWERS))),
        lambda: chat_model(ScriptedModel(ANSWERS)),
        lambda: Talk(ScriptedChat(ANSWERS)),
        lambda: Talk(Toolless(answers=in_words(*ANSWERS))),
    ],
    ids=["chat", "bare", "scripted", "toolless"],
)
async def test_whatever_has_a_chat_model_will_do(made: Callable[[], Any]) -> None:
    assert PATTERN in await engine_on(made).agenerate_query_prompt(QUESTION)
    assert PATTERN in await asyncio.to_thread(engine_on(made).generate_query_prompt, QUESTION)
    assert PATTERN in engine_on(made).generate_query_prompt(QUESTION)  # in a running loop, as in a notebook


def test_what_is_not_a_conversation_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"needs a chat model as .chat, or query\(text\); object has neither"):
        engine_on(object)


@pytest.mark.usefixtures("provider")
def test_a_model_is_named_or_nothing_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_info()
    engine = BioCypherPromptEngine(schema_config_or_info_dict=schema)
    with pytest.raises(InvalidInput, match="No model was named"):
        engine.generate_query_prompt(QUESTION)
    with pytest.raises(InvalidInput, match="No google_genai model was specified"):
        BioCypherPromptEngine(schema_config_or_info_dict=schema, model_provider="google_genai")
    with pytest.raises(InvalidInput, match=r"google:gemini-2\.0-flash needs"):
        BioCypherPromptEngine(None, schema, "google_genai", "gemini-2.0-flash")
    with pytest.raises(InvalidInput, match="openai:gpt-4o needs a key"):
        BioCypherPromptEngine(None, schema, model_name="openai:gpt-4o")
    script = tmp_path / "answers.json"
    script.write_text(json.dumps(ANSWERS), "utf-8")
    monkeypatch.setenv("MULLIGAN_MODEL", f"scripted:{script}")
    assert PATTERN in engine.generate_query_prompt(QUESTION)


def test_a_model_of_ours_is_asked_at_temperature_0() -> None:
    model = ScriptedModel(ANSWERS)
    BioCypherPromptEngine(schema_config_or_info_dict=schema_info(), model=model).select(QUESTION)
    assert [sampling.temperature for sampling in model.samplings] == [0.0] * 3


def answering(question: Question, sampling: Sampling) -> Any:
    """The engine's three answers, and the agent's draft and revision."""
    name = question.schema["properties"]["tool"]["const"]
    given: dict[str, Any] = {"answer": GOOD, "reflection": "", "search_queries": []}
    answers: dict[str, Any] = {
        "SelectEntities": ANSWERS[0],
        "SelectRelationships": ANSWERS[1],
        "SelectProperties": ANSWERS[2],
        "GenerateQuery": given,
        "ReviseQuery": {**given, "revised_query": GOOD, "score": "9"},
    }
    return answers[name]


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("asynchronous", [True, False], ids=["async", "sync"])
async def test_inside_a_node_each_call_is_in_the_journal(kg: Path, tmp_path: Path, asynchronous: bool) -> None:
    model, store = ScriptedModel(answering), SqliteStore(tmp_path / "runs.db")
    engine = BioCypherPromptEngine(schema_config_or_info_dict=schema_info(), model=model)
    talk = Talk(chat_model(model))
    agent = KGQueryReflexionAgent(lambda: talk, {"path": str(kg)}, store=store)
    result = await agent.aexecute(
        QUESTION, engine.agenerate_query_prompt if asynchronous else engine.generate_query_prompt
    )
    assert result.tool_result
    (episode,) = await store.resolve(result.run)
    steps = await store.steps(episode)
    asked = [step for step in steps if step.key.rpartition("/")[2].startswith("model#")]
    assert len(asked) == len(model.questions) == 5
    told = [str(step.request["options"]["tool_choice"]) for step in asked]
    assert told == ["SelectEntities", "SelectRelationships", "SelectProperties", "GenerateQuery", "ReviseQuery"]
    record = await store.load(episode)
    assert sum(trial.attempt.usage.calls for trial in record.trials) == 4
    assert engine.usage.calls == 3
    await agent.aclose()
    await store.close()
