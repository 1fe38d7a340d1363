"""The eight defects of the code that seed 001 documents (reference A3), each tried against both databases."""

import json
import logging
import re
from typing import Any

import pytest
from graph_agents import EMPTY, GOOD, REGULATED, Chat, Conversation, draft, never_good, revision
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from mulligan.langgraph import KGQueryReflexionAgent, ReflexionAgentLogger

QUESTION, PROMPT = "Which genes does EOMES regulate?", "The graph has genes."


def told(chat: Chat, call: int) -> dict[str, Any]:
    """What the tool answered, as the model saw it at this call."""
    message = chat.asked[call][-1]
    assert isinstance(message, ToolMessage)
    return json.loads(message.text)


def test_a_syntax_error_goes_back_to_the_model(where: Any, agent_on: Any) -> None:
    wrong = "MATCH (g:Gene)\nWHERE g.name = RETURN g.name"
    agent, chat = agent_on(where, draft(wrong), revision(0, GOOD), revision(9))
    result = agent.execute(QUESTION, PROMPT)
    said = told(chat, 1)
    assert said["query"] == wrong
    assert said["result"] == []
    assert re.search(r"line:? 2, (column|offset):? \d+", said["error"])
    assert (result.answer, result.tool_result, result.stop) == (GOOD, REGULATED, "solved")


def test_a_query_that_fails_goes_back_to_the_model(where: Any, agent_on: Any) -> None:
    agent, chat = agent_on(where, draft("RETURN date('nonsense') AS day"), revision(0, GOOD), revision(9))
    result = agent.execute(QUESTION, PROMPT)
    assert "nonsense" in told(chat, 1)["error"]
    assert (result.answer, result.tool_result) == (GOOD, REGULATED)


def test_a_query_that_never_gets_better_ends_in_a_clear_result(where: Any, agent_on: Any) -> None:
    agent, chat = agent_on(where, draft("RETURN 1/0 AS x"), revision(9, "RETURN 2/0 AS x"), revision(9), max_steps=3)
    result = agent.execute(QUESTION, PROMPT)
    assert len(chat.asked) == 3
    assert (result.answer, result.tool_result, result.stop) == ("RETURN 2/0 AS x", [], "exhausted")
    assert "the last query failed: " in result.detail
    assert "zero" in result.detail


def test_no_score_makes_an_error_good(where: Any, agent_on: Any) -> None:
    agent, chat = agent_on(where, draft("RETURN 1/0 AS x"), revision(10, GOOD), revision(0))
    assert agent.execute(QUESTION, PROMPT).answer == GOOD
    assert len(chat.asked) == 3


def test_a_query_that_writes_is_refused_and_said(where: Any, agent_on: Any) -> None:
    agent, chat = agent_on(
        where, draft("MATCH (g:Gene {name: 'EOMES'}) SET g.name = 'gone' RETURN g"), revision(0, GOOD), revision(9)
    )
    assert agent.execute(QUESTION, PROMPT).tool_result == REGULATED
    assert "SET" in told(chat, 1)["error"]


@pytest.mark.parametrize("reply", ["MATCH (g:Gene) RETURN g.name", ""], ids=["text", "nothing"])
def test_a_reply_without_a_tool_call(where: Any, agent_on: Any, reply: str) -> None:
    agent, chat = agent_on(where, reply, draft(GOOD), revision(9))
    assert agent.execute(QUESTION, PROMPT).tool_result == REGULATED
    assert "no tool call" in chat.asked[1][-1].text
    agent, chat = agent_on(where, reply, reply, reply)
    result = agent.execute(QUESTION, PROMPT)
    assert len(chat.asked) == 3
    assert (result.answer, result.tool_result, result.stop, str(result)) == (None, None, "gave_up", "")
    assert "3 attempts" in result.detail
    assert "no tool call" in result.detail


def test_a_draft_that_never_fits_ends_in_a_clear_result(where: Any, agent_on: Any) -> None:
    bad = {"tool": "GenerateQuery", "arguments": {"reflection": "I forgot the query."}}
    agent, chat = agent_on(where, bad, bad, bad)
    result = agent.execute(QUESTION, PROMPT)
    assert len(chat.asked) == 3
    assert (result.answer, result.tool_result, result.stop) == (None, None, "gave_up")
    assert "answer" in result.detail


def test_a_revision_that_never_fits_keeps_the_result(where: Any, agent_on: Any) -> None:
    bad = {"tool": "ReviseQuery", "arguments": {"answer": "no score"}}
    agent, chat = agent_on(where, draft(EMPTY), bad, bad, bad)
    result = agent.execute(QUESTION, PROMPT)
    assert len(chat.asked) == 4
    assert (result.answer, result.tool_result, result.stop) == (EMPTY, [], "gave_up")
    assert "score" in result.detail


def test_rows_are_enough_where_no_revision_fits(where: Any, agent_on: Any) -> None:
    """The seed's third rule: a result that is not empty ends it."""
    agent, _ = agent_on(where, draft(GOOD), "Fine!", "Fine!", "Fine!")
    result = agent.execute(QUESTION, PROMPT)
    assert (result.answer, result.tool_result, result.stop) == (GOOD, REGULATED, "unconfirmed")
    assert result.score is None
    assert result.detail.startswith("rows came back; The model gave no valid answer in 3 attempts.")


def test_what_was_wrong_is_reported_after_the_reply(where: Any, agent_on: Any) -> None:
    bad = {"tool": "GenerateQuery", "arguments": {"answer": GOOD, "search_queries": {"no": "list"}}}
    agent, chat = agent_on(where, bad, draft(GOOD), revision(9))
    assert agent.execute(QUESTION, PROMPT).tool_result == REGULATED
    question, reply, answer = chat.asked[1][-3:]
    assert isinstance(question, HumanMessage)
    assert isinstance(reply, AIMessage)
    assert isinstance(answer, ToolMessage)
    assert answer.tool_call_id == reply.tool_calls[0]["id"]
    assert "reflection" in answer.text
    assert "search_queries" in answer.text
    assert [message.type for message in chat.asked[2]] == ["system", "human", "ai", "tool"]


@pytest.mark.slow
def test_as_many_steps_as_were_asked_for(where: Any, agent_on: Any) -> None:
    chat = Chat(never_good)
    agent = KGQueryReflexionAgent(lambda: Conversation(chat), where, max_steps=40)
    result = agent.execute("Who is nobody?", PROMPT)
    agent.close()
    assert len(chat.asked) == 40
    assert (result.stop, result.tool_result) == ("exhausted", [])


def test_scalar_rows_are_rows(where: Any, agent_on: Any) -> None:
    agent, chat = agent_on(where, draft("RETURN 7"), revision(1))
    (row,) = agent.execute("How many?", PROMPT).tool_result
    assert list(row.values()) == [7]
    assert len(chat.asked) == 2


class Scalars(KGQueryReflexionAgent):
    """A tool of the user's that gives values, no mappings."""

    def _tool_function(self, state: Any) -> ToolMessage:
        call = state[-1].tool_calls[0]
        return ToolMessage(json.dumps({"query": "values", "result": ["EOMES", 7]}), tool_call_id=call["id"])


def test_a_tool_that_gives_values_ends_it_too(where: Any) -> None:
    chat = Chat([draft(EMPTY), revision(0)])
    agent = Scalars(lambda: Conversation(chat), where, store=False)
    result = agent.execute(QUESTION, PROMPT)
    agent.close()
    assert (result.answer, result.tool_result, result.stop) == ("values", ["EOMES", 7], "unconfirmed")


def test_the_log_tells_of_each_step_as_information(where: Any, agent_on: Any, caplog: Any) -> None:
    caplog.set_level(logging.INFO, "mulligan.langgraph")
    agent, _ = agent_on(where, draft(GOOD), revision(9, reflection="All\nfive."))
    agent.execute(QUESTION, PROMPT)
    lines = agent.get_logs().splitlines()
    assert [line.partition(" - ")[2].partition(":")[0] for line in lines] == [
        "step 1, draft", "step 2, execute_tool", "step 3, revise", "result",
    ]  # fmt: skip
    assert all(line.startswith("[info]") for line in lines)
    assert GOOD in lines[0]
    assert "CREBBP" in lines[1]
    assert lines[3].endswith(GOOD)
    ours = [record for record in caplog.records if record.message.startswith(("step", "result"))]
    assert [record.levelno for record in ours] == [logging.INFO] * 4


def test_two_agents_do_not_share_a_log(where: Any, agent_on: Any) -> None:
    one, _ = agent_on(where, draft(GOOD), revision(9))
    other, _ = agent_on(where)
    one.execute(QUESTION, PROMPT)
    assert other.get_logs() == ""
    logger = ReflexionAgentLogger()
    third, _ = agent_on(where, draft(GOOD), revision(9), agent_logger=logger)
    third.execute(QUESTION, PROMPT)
    assert third.get_logs() == logger.logs != ""


def test_the_result_is_the_query_and_more(where: Any, agent_on: Any) -> None:
    agent, _ = agent_on(where, draft(GOOD), revision(8))
    cypher_query = agent.execute(QUESTION, PROMPT)
    assert f"{cypher_query}" == GOOD
    assert (cypher_query.tool_result, cypher_query.score) == (REGULATED, 8)
    assert cypher_query.run
