"""`wrap`: agents of real frameworks with their own test models."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import mulligan
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Attempt
from support.judges import in_euros


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def own_loop() -> Iterator[None]:
    """One for `run_sync` of pydantic-ai, which closes none that it makes."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


def record_of(wrapped: object) -> mulligan.Episode:
    found = cast(Any, wrapped).episode
    assert isinstance(found, mulligan.Episode)
    return found


# --- pydantic-ai ----------------------------------------------------------------------------------------------------


def teller(asked: list[str]) -> Agent[None, str]:
    """Looks once, then answers; with a currency only if its instructions say what was missing."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        request = next(one for one in reversed(messages) if isinstance(one, ModelRequest))
        if len(messages) == 1:
            return ModelResponse([TextPart("I look first."), ToolCallPart("look", {"line": 5}, "c1")])
        asked.append(request.instructions or "")
        return ModelResponse([TextPart("12 EUR" if "no currency" in asked[-1] else "12")])

    agent = Agent(FunctionModel(answer), instructions="Be brief.")

    @agent.tool_plain
    def look(line: int) -> str:
        return f"line {line}"

    return agent


@pytest.mark.usefixtures("own_loop")
def test_pydantic_ai_gets_notes_as_instructions_and_gives_steps_and_usage() -> None:
    asked = list[str]()
    agent = mulligan.wrap(teller(asked), judge=in_euros)
    assert agent.run_sync("The total of 5 and 7?").output == "12 EUR"
    assert asked[0] == "Be brief."
    assert asked[1].startswith("Be brief.")
    assert "no currency in '12'" in asked[1]
    episode = record_of(agent)
    assert (episode.task.prompt, episode.solved) == ("The total of 5 and 7?", True)
    (step,) = episode.trials[0].attempt.steps
    assert (step.thought, step.action, step.observation) == ("I look first.", 'look({"line":5})', "line 5")
    assert episode.usage.calls == 4
    assert episode.usage.input_tokens > 0


async def test_pydantic_ai_asynchronously_with_a_bank() -> None:
    asked = list[str]()
    agent = mulligan.wrap(teller(asked), judge=in_euros, bank="billing")
    assert (await agent.run("Write the total of the lines 5 and 7")).output == "12 EUR"
    assert (await agent.run("Write the total of the lines 8 and 9")).output == "12 EUR"
    assert len(asked) == 3  # the second run was right at once
    assert len(record_of(agent).trials) == 1
    assert agent.name == teller(asked).name  # any other attribute is the agent's own


@pytest.mark.usefixtures("own_loop")
def test_tokens_are_a_limit() -> None:
    agent = mulligan.wrap(teller([]), judge=lambda answer: False, limits={"tokens": 5}, tries=9)
    agent.run_sync("The total?")
    stop = record_of(agent).stop
    assert stop is not None
    assert stop.reason == "over_budget"


@pytest.mark.slow
@given(st.lists(st.integers(1, 3), min_size=2, max_size=5))
async def test_calls_at_once_never_mix_their_notes(right_at: list[int]) -> None:
    shown = dict[int, list[set[str]]]()
    agents = Agent(FunctionModel(lambda messages, info: answered(messages, info, shown)))

    def judge(task: str, answer: str) -> tuple[bool, str]:
        number = int(task.split()[-1])
        return len(shown[number]) >= right_at[number], f"<{number}.{len(shown[number])}>"

    agent = mulligan.wrap(agents, judge=judge, tries=4, record=False)
    answers = await asyncio.gather(*(agent.run(f"call {number}") for number in range(len(right_at))))
    assert [answer.output for answer in answers] == [f"call {n} is done" for n in range(len(right_at))]
    for number, tries in enumerate(right_at):
        assert shown[number] == [{f"<{number}.{n}>" for n in range(1, before)} for before in range(1, tries + 1)]


async def answered(messages: list[ModelMessage], info: AgentInfo, shown: dict[int, list[set[str]]]) -> ModelResponse:
    """Keeps which words of judges the call was shown, and lets other calls go on before it answers."""
    task = str(messages[0].parts[-1].content)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
    shown.setdefault(int(task.split()[-1]), []).append(set(re.findall(r"<[0-9.]+>", info.instructions or "")))
    await asyncio.sleep(0)
    return ModelResponse([TextPart(f"{task} is done")])


# --- LangChain, LangGraph -------------------------------------------------------------------------------------------


class Chat(BaseChatModel):
    """Answers with a currency only if somebody says what was missing."""

    seen: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.seen.append(messages)
        text = "12 EUR" if "no currency" in str(messages) else "12"
        usage: Any = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, usage_metadata=usage))])


INPUTS: list[Any] = [
    "The total?",
    [HumanMessage("The total?")],
    [("system", "Be brief."), ("user", "The total?")],
    [{"role": "user", "content": "The total?"}],
    [HumanMessage([{"type": "text", "text": "The total?"}])],
]


@pytest.mark.parametrize("given", INPUTS, ids=["text", "message", "pairs", "dicts", "parts"])
def test_a_chat_model_gets_notes_behind_the_question(given: Any) -> None:
    chat = Chat(seen=[])
    wrapped = mulligan.wrap(chat, judge=in_euros)
    before = json.dumps(given, default=str)
    assert wrapped.invoke(given).content == "12 EUR"
    assert json.dumps(given, default=str) == before
    assert "no currency in '12'" in str(chat.seen[1][-1].content)
    assert record_of(wrapped).task.prompt == "The total?"
    assert record_of(wrapped).usage.tokens == 18


async def test_a_graph_keeps_its_state_and_its_steps_are_recorded() -> None:
    def work(state: MessagesState) -> Mapping[str, Any]:
        answer = "12 EUR" if "no currency" in str(state["messages"]) else "12"
        call: Any = {"name": "look", "args": {"line": 5}, "id": "c1"}
        said = [AIMessage("I look.", tool_calls=[call]), ToolMessage("line 5", tool_call_id="c1"), AIMessage(answer)]
        return {"messages": said}

    graph = StateGraph(MessagesState)
    graph.add_node("work", work)  # pyright: ignore[reportUnknownMemberType]
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    agent = mulligan.wrap(graph.compile(), judge=in_euros)  # pyright: ignore[reportUnknownMemberType]
    given: Any = {"messages": [("user", "The total?")]}
    for result in (agent.invoke(given), await agent.ainvoke(given)):  # pyright: ignore[reportUnknownMemberType]
        assert result["messages"][-1].content == "12 EUR"
        (step,) = record_of(agent).trials[0].attempt.steps
        assert (step.thought, step.action, step.observation) == ("I look.", 'look({"line":5})', "line 5")


def test_a_chain_with_one_text_and_one_with_several() -> None:
    chat = Chat(seen=[])
    prompt = ChatPromptTemplate.from_messages([("user", "{question}")])
    assert mulligan.wrap(prompt | chat, judge=in_euros).invoke({"question": "The total?"}).content == "12 EUR"
    several = ChatPromptTemplate.from_messages([("user", "{question} {tone}")])
    with pytest.raises(InvalidInput, match="2 strings, so it is unclear"):
        mulligan.wrap(several | chat, judge=in_euros).invoke({"question": "The total?", "tone": "kindly"})


# --- what is not judged ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iter", "run_stream", "run_stream_sync", "run_stream_events", "to_web"])
def test_pydantic_ai_is_not_run_without_the_judge(name: str) -> None:
    asked = list[str]()
    method = getattr(mulligan.wrap(teller(asked), judge=in_euros), name)
    with pytest.raises(
        InvalidInput, match=rf"^Agent\.{name} of a wrapped agent .* Call run, run_sync, or use the agent"
    ):
        method("The total?")
    assert not asked


@each_row("name", ["stream", "astream", "batch", "with_config", "bind_tools", "with_structured_output"])
def test_a_runnable_is_not_run_without_the_judge(name: str) -> None:
    wrapped: Any = mulligan.wrap(Chat(seen=[]), judge=in_euros)
    with pytest.raises(
        InvalidInput, match=rf"^Chat\.{name} of a wrapped agent cannot be used: it .* Call invoke, ainvoke"
    ):
        getattr(wrapped, name)("The total?")
    with pytest.raises(InvalidInput, match=r"^Chat\.__call__ of a wrapped agent cannot be used"):
        (ChatPromptTemplate.from_messages([("user", "{question}")]) | wrapped).invoke({"question": "The total?"})


def test_what_a_method_cannot_be_called_with_is_no_try() -> None:
    chat = Chat(seen=[])
    wrapped: Any = mulligan.wrap(chat, judge=in_euros)
    with pytest.raises(TypeError, match=r"^Chat\.invoke: missing a required argument: 'input'"):
        wrapped.invoke()
    assert chat.seen == []


def test_attributes_are_the_agents() -> None:
    agent = teller([])
    wrapped = mulligan.wrap(agent, judge=in_euros)
    wrapped.name = "biller"
    assert agent.name == wrapped.name == "biller"


# --- others ---------------------------------------------------------------------------------------------------------


class Own:
    def ask(self, text: str) -> dict[str, str]:
        return {"said": "12 EUR" if "no currency" in text else "12"}


class OwnFramework:
    PACKAGE = "mine"
    ENTRIES: Mapping[str, bool] = {"ask": False}

    def recognises(self, agent: Any) -> bool:
        return True

    def task(self, agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        return args[0]

    def noted(self, agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str) -> Any:
        return agent, (f"{args[0]} {notes}",), kwargs

    def answer(self, result: Any) -> Any:
        return result["said"]

    def attempt(self, result: Any) -> Attempt:
        return Attempt(result["said"])


def test_a_framework_of_the_users_own() -> None:
    agent = mulligan.wrap(Own(), judge=in_euros, framework=OwnFramework())
    assert agent.ask("The total?") == {"said": "12 EUR"}


class Shouting(OwnFramework):
    """Calls another method, which gives more than the caller asked for."""

    def method(self, agent: Any, name: str) -> Any:
        def loud(text: str) -> Any:
            return agent.ask(text), len(text)

        return loud

    def given(self, result: Any) -> Any:
        return result[0]["said"].lower()

    def answer(self, result: Any) -> Any:
        return result[0]["said"]

    def attempt(self, result: Any) -> Attempt:
        return Attempt(f"{result[0]['said']} for {result[1]} letters")


def test_a_framework_may_call_what_it_likes_and_give_back_what_was_asked_for() -> None:
    agent: Any = mulligan.wrap(Own(), judge=in_euros, framework=Shouting())
    assert agent.ask("The total?") == "12 eur"
    assert record_of(agent).trials[0].attempt.output == "12 for 10 letters"
    with pytest.raises(TypeError, match=r"^Own\.ask: too many positional arguments"):
        agent.ask("The", "total?")


def test_an_agent_of_no_framework_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"Own is not an agent from a known framework .*dspy.*mulligan.retry"):
        mulligan.wrap(Own(), judge=in_euros)
