"""Subclasses of `ReflexionAgent`, written as seed 001 tells and as the code that it documents wants them."""

import asyncio
from typing import Any, cast

import pytest
from graph_agents import Chat, Conversation
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers.openai_tools import JsonOutputToolsParser, PydanticToolsParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.langgraph import (
    END_NODE,
    EXECUTE_TOOL_NODE,
    ReflexionAgent,
    ReflexionAgentResult,
    ResponderWithRetries,
)


class Guess(BaseModel):
    """A guess at the number."""

    answer: str


class Better(Guess):
    """A better guess."""

    reflection: str
    score: str


def guess(answer: str, score: str | None = None, number: int = 0) -> AIMessage:
    name, more = ("Guess", {}) if score is None else ("Better", {"reflection": "Too small.", "score": score})
    return AIMessage("", tool_calls=[{"name": name, "args": {"answer": answer, **more}, "id": f"call-{number}"}])


def answered(state: list[BaseMessage], secret: str = "7") -> ToolMessage:
    call = cast(AIMessage, state[-1]).tool_calls[0]
    said = "right" if call["args"]["answer"] == secret else "wrong"
    return ToolMessage(f'{{"result": ["{said}"]}}', tool_call_id=call["id"])


class SixMethods(ReflexionAgent):
    """As seed 001 documents it: the last message is what is parsed and logged."""

    def __init__(self, factory: Any, **given: Any) -> None:
        super().__init__(factory, store=False, **given)
        self.seen: list[Any] = []

    def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
        return answered(state)

    def _create_initial_responder(self, prompt: str | None = None) -> ResponderWithRetries:
        template = ChatPromptTemplate.from_messages(
            [("system", prompt or "Guess a number."), MessagesPlaceholder("messages")]
        )
        model = template | self.conversation.chat.bind_tools([Guess], tool_choice="Guess")
        return ResponderWithRetries(runnable=model, validator=PydanticToolsParser(tools=[Guess]))

    def _create_revise_responder(self, prompt: str | None = None) -> ResponderWithRetries:
        template = ChatPromptTemplate.from_messages([("system", "Guess better."), MessagesPlaceholder("messages")])
        model = template | self.conversation.chat.bind_tools([Better], tool_choice="Better")
        return ResponderWithRetries(runnable=model, validator=PydanticToolsParser(tools=[Better]))

    def _log_step_message(self, step: int, node: str, output: BaseMessage) -> None:
        self.seen.append((step, node, output.type))

    def _log_final_result(self, output: Any) -> None:
        self.seen.append(("final", output.tool_calls[0]["name"]))

    def _parse_final_result(self, output: Any) -> Any:
        return output.tool_calls[0]["args"]["answer"]


class FourMethods(ReflexionAgent):
    """As the code that the seed documents has it: all messages are parsed, and the logger logs."""

    def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
        assert self._get_user_question(state) == "Which number?"
        return answered(state)

    def _create_initial_responder(self, prompt: str | None = None) -> Any:
        def drafted(given: dict[str, Any]) -> Any:
            return self.conversation.chat.invoke(given["messages"])

        return RunnableLambda(drafted)

    def _create_revise_responder(self, prompt: str | None = None) -> Any:
        return self._revised

    def _revised(self, messages: list[BaseMessage]) -> Any:
        return self.conversation.chat.invoke(messages)

    def _parse_final_result(self, output: list[BaseMessage]) -> ReflexionAgentResult:
        assert isinstance(output[0], HumanMessage)
        last: Any = output[-1]
        return ReflexionAgentResult(last.tool_calls[0]["args"]["answer"], self._get_last_tool_result(output))


def test_the_seeds_six_methods_run() -> None:
    chat = Chat([guess("1"), guess("7", "2", 1), guess("7", "9", 2)])
    agent = SixMethods(lambda: Conversation(chat))
    assert agent.execute("Which number?", "Guess a number below ten.") == "7"
    assert agent.seen == [
        (1, "draft", "ai"), (2, "execute_tool", "tool"), (3, "revise", "ai"), (4, "execute_tool", "tool"),
        (5, "revise", "ai"), ("final", "Better"),
    ]  # fmt: skip
    assert chat.asked[0][0].text == "Guess a number below ten."


def test_upstreams_four_methods_run() -> None:
    chat = Chat([guess("1"), guess("7", "2", 1), guess("7", "9", 2)])
    agent = FourMethods(lambda: Conversation(chat), max_steps=5)
    result = agent.execute("Which number?")
    agent.close()
    assert (result.answer, result.tool_result, result.score, result.stop) == ("7", ["right"], 9, "solved")
    assert [line.partition(" - ")[2].partition(":")[0] for line in agent.get_logs().splitlines()][-1] == "result"


def test_a_subclass_without_its_own_rule_ends_at_a_good_score() -> None:
    chat = Chat([guess("1"), guess("2", "7", 1)])
    assert SixMethods(lambda: Conversation(chat)).execute("Which number?") == "2"
    assert len(chat.asked) == 2


class OwnRule(SixMethods):
    """Ends when the tool says so, whatever the score; and after four steps."""

    def _should_continue(self, state: list[BaseMessage]) -> str:
        if self._get_last_tool_result(state) == ["right"] or self._get_num_iterations(state) >= 4:
            return END_NODE
        return EXECUTE_TOOL_NODE

    def _parse_final_result(self, output: Any) -> ReflexionAgentResult:
        return ReflexionAgentResult(output.tool_calls[0]["args"]["answer"], self._get_last_tool_result(output))


def test_a_subclass_has_the_last_word_on_going_on() -> None:
    chat = Chat([guess("1"), guess("7", "10", 1), guess("7", "0", 2)])
    result = OwnRule(lambda: Conversation(chat)).execute("Which number?")
    assert (result.answer, result.tool_result, result.stop) == ("7", ["right"], "unconfirmed")
    assert result.detail == "the agent's own rule ended it; scored 0 of 10 by the model itself: Too small."
    chat = Chat([guess("1"), *(guess("2", "10", n) for n in (1, 2, 3))])
    OwnRule(lambda: Conversation(chat)).execute("Which number?")
    assert len(chat.asked) == 4


class HalfOwnRule(SixMethods):
    def _should_continue(self, state: list[BaseMessage]) -> str:
        return END_NODE if self._get_last_tool_result(state) == ["right"] else super()._should_continue(state)


@pytest.mark.parametrize(("scores", "calls"), [(("2", "8"), 3), (("2", "2", "2", "2"), 4)], ids=["score", "steps"])
def test_the_rules_of_ours_can_be_asked_by_its_own(scores: tuple[str, ...], calls: int) -> None:
    chat = Chat([guess("1"), *(guess("2", score, n) for n, score in enumerate(scores, 1))])
    HalfOwnRule(lambda: Conversation(chat), max_steps=4).execute("Which number?")
    assert len(chat.asked) == calls


def test_the_step_limit_holds_whatever_its_own_rule_says() -> None:
    class Endless(SixMethods):
        def _should_continue(self, state: list[BaseMessage]) -> str:
            return EXECUTE_TOOL_NODE

    chat = Chat([guess("1"), *(guess("2", "10", n) for n in range(1, 9))])
    Endless(lambda: Conversation(chat), max_steps=3).execute("Which number?")
    assert len(chat.asked) == 3


def test_methods_may_be_asynchronous() -> None:
    class Later(SixMethods):
        async def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:  # pyright: ignore[reportIncompatibleMethodOverride]
            await asyncio.sleep(0)
            return answered(state)

        def _create_initial_responder(self, prompt: str | None = None) -> Any:
            async def drafted(messages: list[BaseMessage]) -> Any:
                return await self.conversation.chat.ainvoke(messages)

            return drafted

    chat = Chat([guess("1"), guess("7", "8", 1)])
    assert Later(lambda: Conversation(chat)).execute("Which number?") == "7"


def test_what_a_responder_raises_is_raised() -> None:
    class Broken(SixMethods):
        def _create_initial_responder(self, prompt: str | None = None) -> Any:
            raise LookupError("no such template")

    chat = Chat([])
    with pytest.raises(LookupError, match="no such template"):
        Broken(lambda: Conversation(chat)).execute("Which number?")
    assert chat.asked == []


def test_what_the_tool_raises_is_raised() -> None:
    class Broken(SixMethods):
        def _tool_function(self, state: list[BaseMessage]) -> ToolMessage:
            raise ConnectionError("nobody is there")

    with pytest.raises(ConnectionError, match="nobody is there"):
        Broken(lambda: Conversation(Chat([guess("1")]))).execute("Which number?")


def test_nothing_to_parse_is_reported_clearly() -> None:
    chat = Chat(["Seven!", "Seven!", "Seven!"])
    with pytest.raises(BadAnswer, match=r"3 attempts.*no tool call"):
        SixMethods(lambda: Conversation(chat)).execute("Which number?")


@pytest.mark.parametrize("question", ["", " \n"])
def test_an_empty_question_is_refused(question: str) -> None:
    with pytest.raises(InvalidInput, match="question is empty"):
        SixMethods(lambda: Conversation(Chat([]))).execute(question)


def test_a_chat_model_is_enough_and_nothing_is_refused() -> None:
    chat = Chat([guess("7"), guess("7", "8", 1)])
    assert SixMethods(chat).execute("Which number?") == "7"
    assert SixMethods(Conversation(Chat([guess("7"), guess("7", "8", 1)]))).execute("Which number?") == "7"
    with pytest.raises(InvalidInput, match="must return an object with a chat model"):
        SixMethods(lambda: object())
    for wrong in ({"good_score": 70}, {"good_score": "7"}, {"max_steps": 2.5}, {"max_steps": "3"}):
        with pytest.raises(InvalidInput, match=rf"{next(iter(wrong))} must be a"):
            SixMethods(chat, **wrong)


async def test_it_runs_where_a_loop_runs_and_as_a_coroutine() -> None:
    def talk() -> Conversation:
        return Conversation(Chat([guess("1"), guess("7", "2", 1), guess("7", "9", 2)]))

    assert SixMethods(talk).execute("Which number?") == "7"
    assert await SixMethods(talk).aexecute("Which number?") == "7"


async def test_one_agent_answers_two_questions_at_once() -> None:
    def reply(messages: list[BaseMessage]) -> AIMessage:
        asked = next(message.text for message in messages if isinstance(message, HumanMessage))
        steps = sum(isinstance(message, AIMessage) for message in messages)
        return guess(asked, "9", 1) if steps else guess("0")

    agent = SixMethods(lambda: Conversation(Chat(reply)))
    assert await asyncio.gather(*(agent.aexecute(str(n)) for n in range(5))) == [str(n) for n in range(5)]


def test_a_prompt_may_be_made_of_the_question() -> None:
    chat = Chat([guess("7"), guess("7", "8", 1)])
    SixMethods(lambda: Conversation(chat)).execute("Which number?", lambda question: f"About: {question}")
    assert chat.asked[0][0].text == "About: Which number?"


@pytest.mark.parametrize(("store", "recorded"), [(None, 1), (True, 1), (False, 0)])
async def test_a_store_of_its_own_or_none(store: bool | None, recorded: int) -> None:
    from mulligan.app.config import load
    from mulligan.store import open_store

    class Recorded(SixMethods):
        def __init__(self, chat: Chat) -> None:
            ReflexionAgent.__init__(self, chat, store=store)
            self.seen = []

    agent = Recorded(Chat([guess("7"), guess("7", "8", 1)]))
    assert await agent.aexecute("Which number?") == "7"
    await agent.aclose()
    opened = open_store(load().store)
    assert len(await opened.list()) == recorded
    await opened.close()


class AsTheSeedSays(SixMethods):
    """The seed's own signature, with the parser that its code uses."""

    def _parse_final_result(self, output: BaseMessage) -> Any:
        return JsonOutputToolsParser().invoke(cast(AIMessage, output))[0]["args"]["answer"]

    def _log_final_result(self, output: BaseMessage) -> None:
        self.seen.append(("final", cast(AIMessage, output).tool_calls[0]["name"]))


@pytest.mark.parametrize("kind", [SixMethods, AsTheSeedSays])
@pytest.mark.parametrize(
    ("replies", "steps", "answer", "last"),
    [
        ([guess("1"), guess("7", "9", 1)], 30, "7", "Better"),
        ([guess("1")], 1, "1", "Guess"),
        ([guess("1"), guess("2", "3", 1), "Seven!", "Seven!", "Seven!"], 30, "2", "Better"),
        ([guess("1"), "Seven!", "Seven!", "Seven!"], 30, "1", "Guess"),
    ],
    ids=["solved", "one step", "gave up later", "gave up at the first revision"],
)
def test_the_newest_message_of_the_model_is_parsed_however_it_ended(
    kind: type[SixMethods], replies: list[Any], steps: int, answer: str, last: str
) -> None:
    class Retried(kind):
        def _create_revise_responder(self, prompt: str | None = None) -> ResponderWithRetries:
            model = self.conversation.chat.bind_tools([Better], tool_choice="Better")
            return ResponderWithRetries(lambda_of(model), PydanticToolsParser(tools=[Better]))

    agent = Retried(lambda: Conversation(Chat(replies)), max_steps=steps)
    assert agent.execute("Which number?") == answer
    assert agent.seen[-1] == ("final", last)


def lambda_of(model: Any) -> RunnableLambda[Any, Any]:
    return RunnableLambda(lambda given: model.invoke(given["messages"]))
