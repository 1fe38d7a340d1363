"""Rows that are judged: by rules, by the model, and what ends a run that is not sure."""

import json
from pathlib import Path
from typing import Any

import pytest
from graph_agents import EMPTY, GOOD, REGULATED, Chat, draft
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from mulligan.core.errors import InvalidInput
from mulligan.graphs.protocol import Graph
from mulligan.graphs.values import link_values, probe_values
from mulligan.langgraph import KGQueryReflexionAgent, ask_graph, create_reflexion_graph
from mulligan.langgraph.agent import ReflexionAgentResult
from mulligan.recording.drivers import sentence_in
from mulligan.store import open_store

PLAIN = "Which genes does EOMES regulate?"
"""A question whose words compose a query."""
COMPOSED = 'MATCH (x:Gene)<-[:REGULATES]-(:Gene {name: "EOMES"}) RETURN DISTINCT x.name'
QUESTION = "Which genes does EOMES regulate directly?"
"""A question with a word that no rule can place, so that only the model writes queries for it."""
REVERSED = "MATCH (g:Gene)-[:REGULATES]->(t:Gene {name: 'EOMES'}) RETURN g.name AS name"
ITSELF = "MATCH (g:Gene {name: 'EOMES'})-[:REGULATES]->(g) RETURN g.name AS name"
SHORT = f"{GOOD} LIMIT 2"
UNKNOWN = "MATCH (g:Gene {name: 'FOOBAR1'})-[:REGULATES]->(t:Gene) RETURN t.name AS name"
COUNT = "MATCH (g:Gene {{name: '{}'}})-[:REGULATES]->(t:Gene {{name: '{}'}}) RETURN count(t) AS n"


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives look-ups the time that they need on a busy machine: what is left out is not called absent."""
    for look_up in (link_values, probe_values):
        monkeypatch.setattr(look_up, "__kwdefaults__", {**(look_up.__kwdefaults__ or {}), "seconds": 60})


def judged(score: float, reason: str = "nothing") -> dict[str, Any]:
    return {"tool": "JudgeRows", "arguments": {"score": score, "reason": reason}}


async def answer(where: Any, question: str, *replies: Any, **given: Any) -> tuple[ReflexionAgentResult, Chat]:
    chat = Chat([*replies])
    async with open_store("memory:") as store:
        result = await ask_graph(question, where, model=chat, store=store, **given)
    assert len(chat.asked) == len(replies), "each reply was asked for"
    return result, chat


async def test_rows_that_nothing_objects_to_are_judged_and_end_the_run(graph: Graph) -> None:
    result, chat = await answer(graph, QUESTION, draft(GOOD), judged(9))
    assert (result.answer, result.tool_result, result.stop, result.score) == (GOOD, REGULATED, "solved", 9)
    shown = chat.asked[1][1].text
    assert QUESTION in shown
    assert all(row["name"] in shown for row in REGULATED)
    assert "(:Gene)-[:REGULATES]->(:Gene)" in chat.asked[1][0].text, "the part of the schema"
    assert "Drug" not in chat.asked[1][0].text


async def test_a_model_that_is_right_at_the_second_draft_is_asked_three_times(where: Any) -> None:
    given: dict[str, Any] = {"password": where["password"]} if isinstance(where, dict) else {}
    result, chat = await answer(where, QUESTION, draft(REVERSED), draft(GOOD), judged(10), **given)
    assert (result.answer, result.stop) == (GOOD, "solved")
    again = chat.asked[1][1].text
    assert REVERSED in again
    assert "The arrow points the wrong way" in again
    assert chat.asked[1][0].text == chat.asked[0][0].text, "the same instructions, so that a local model has read them"
    print(f"cost: {len(chat.asked)} calls of the model, 2 queries")


async def test_what_the_judge_misses_goes_into_the_next_draft(graph: Graph) -> None:
    other = GOOD.replace("RETURN", "RETURN DISTINCT")
    result, chat = await answer(graph, QUESTION, draft(GOOD), judged(2, "Twice."), draft(other), judged(8))
    assert (result.answer, result.stop) == (other, "solved")
    assert chat.asked[2][1].text.endswith("What is wrong with the newest: Twice.")


async def test_at_the_limit_the_best_query_is_the_result_and_marked(graph: Graph) -> None:
    replies = draft(GOOD), judged(6, "Perhaps."), draft(REVERSED), draft(EMPTY)
    result, _ = await answer(graph, QUESTION, *replies, max_steps=3)
    assert (result.answer, result.tool_result, result.stop, result.score) == (GOOD, REGULATED, "unsure", 6)
    assert result.detail == "3 of 3 steps used; Perhaps."


async def test_without_rows_at_the_limit_there_is_no_answer(graph: Graph) -> None:
    query = "MATCH (g:Gene {name: 'EOMES'})-[:REGULATES]->(t:Gene {name: 'EOMES'}) RETURN t.name AS name"
    result, _ = await answer(graph, QUESTION, draft(query), draft("nonsense"), max_steps=2)
    assert (result.tool_result, result.stop) == ([], "exhausted")


async def test_a_judge_that_gives_no_valid_answer_leaves_the_run_unsure(graph: Graph) -> None:
    invalid = {"tool": "JudgeRows", "arguments": {"score": "very good"}}
    result, _ = await answer(graph, QUESTION, draft(GOOD), invalid, invalid, invalid, max_steps=1)
    assert (result.answer, result.tool_result, result.stop) == (GOOD, REGULATED, "unsure")


async def test_what_is_not_in_the_graph_ends_the_run(graph: Graph) -> None:
    result, _ = await answer(graph, "Which genes does FOOBAR1 regulate?", draft(UNKNOWN))
    assert (result.answer, result.tool_result, result.stop) == (UNKNOWN, None, "absent")
    assert result.detail.startswith('no Gene has the name "FOOBAR1"')


async def test_a_near_value_goes_back_to_the_model_before_the_run_ends(graph: Graph) -> None:
    question = "Which genes does EOMESS regulate?"
    query = GOOD.replace("EOMES", "EOMESS")
    result, chat = await answer(graph, question, draft(query), draft(f"{query} LIMIT 5"))
    assert result.stop == "absent"
    assert 'nearest: "EOMES"' in result.detail
    assert 'nearest: \\"EOMES\\"' in chat.asked[1][1].text


@pytest.mark.slow
async def test_a_near_value_that_is_asked_for_instead_is_no_answer(graph: Graph) -> None:
    result, _ = await answer(
        graph, "Which genes does FOXP33 regulate?", draft(GOOD.replace("EOMES", "FOXP3")), max_steps=1
    )
    assert (result.tool_result, result.stop) == (None, "absent")


DNA = "As to DNA, which genes does EOMES regulate?"


async def test_good_rows_are_kept_where_a_word_of_the_question_is_no_value(graph: Graph) -> None:
    result, chat = await answer(graph, DNA, draft(GOOD), judged(9, "nothing"))
    assert (result.answer, result.tool_result, result.stop, result.score) == (GOOD, REGULATED, "unsure", 9)
    assert result.detail == 'The question names "DNA", which no value equals, and the query does not ask for it.'
    assert DNA in chat.asked[1][1].text, "the judge has seen them"


async def test_the_next_draft_is_told_of_such_a_word(graph: Graph) -> None:
    replies = draft(GOOD), judged(4, "Too many."), draft(f"{GOOD} "), judged(9)
    result, chat = await answer(graph, DNA, *replies)
    assert (result.tool_result, result.stop) == (REGULATED, "unsure")
    assert 'newest: Too many. The question names "DNA"' in chat.asked[2][1].text


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("name", ["FOOBAR1", '"DNA"'])
async def test_an_identifier_or_a_quoted_name_is_no_such_word(graph: Graph, name: str) -> None:
    result, _ = await answer(graph, DNA.replace("DNA", name), draft(GOOD), max_steps=1)
    assert (result.tool_result, result.stop) == (None, "absent")


async def test_zero_is_an_answer_where_everything_exists(graph: Graph) -> None:
    question = "How many times does EOMES regulate TP53?"
    query = COUNT.format("EOMES", "TP53")
    result, _ = await answer(graph, question, draft(query), judged(9))
    assert (result.tool_result, result.stop) == ([{"n": 0}], "solved")


async def test_zero_of_what_does_not_exist_is_none(graph: Graph) -> None:
    result, _ = await answer(
        graph, "How many times does FOOBAR1 regulate TP53?", draft(COUNT.format("FOOBAR1", "TP53"))
    )
    assert (result.tool_result, result.stop) == (None, "absent")


async def test_all_queries_of_a_draft_are_run_and_the_best_counts(graph: Graph) -> None:
    result, _ = await answer(graph, QUESTION, draft(SHORT, REVERSED, GOOD), judged(9))
    assert (result.answer, result.stop) == (GOOD, "solved")


async def test_the_query_that_the_words_compose_stands_beside_the_first_draft(graph: Graph) -> None:
    result, chat = await answer(graph, PLAIN, draft(REVERSED), judged(9))
    assert result.stop == "solved"
    assert {row["x.name"] for row in result.tool_result or ()} == {row["name"] for row in REGULATED}
    assert result.answer == COMPOSED
    assert result.note == "the query was composed by rules from the words of the question, and not by the model"
    assert "composed by rules" not in chat.asked[1][1].text, "the judge looks at the rows alone"


async def test_the_composed_query_counts_before_other_rows_of_the_model(graph: Graph) -> None:
    fewer = GOOD.replace(" RETURN", " WHERE t.name < 'M' RETURN")
    result, _ = await answer(graph, PLAIN, draft(fewer), judged(9))
    assert (result.answer, result.stop) == (COMPOSED, "solved")


async def test_a_query_of_the_model_with_the_same_rows_counts_before_the_composed_one(graph: Graph) -> None:
    result, _ = await answer(graph, PLAIN, draft(GOOD), judged(9))
    assert (result.answer, result.note) == (GOOD, "")


async def test_a_query_that_gave_nothing_is_asked_for_anew(graph: Graph) -> None:
    replies = draft(ITSELF), draft(f"{ITSELF}  limit 3;"), draft(GOOD), judged(9)
    result, chat = await answer(graph, QUESTION, *replies, max_steps=2)
    assert (result.answer, result.stop) == (GOOD, "solved")
    assert chat.asked[2][-1].text.startswith("Answer the question with a query that is built in another way than these")
    assert ITSELF in chat.asked[2][-1].text


async def test_a_query_that_comes_again_and_again_is_run_again(graph: Graph) -> None:
    result, _ = await answer(graph, QUESTION, *[draft(ITSELF)] * 4, max_steps=2)
    assert (result.tool_result, result.stop) == ([], "exhausted")


async def test_a_model_that_has_no_other_query_keeps_the_one_it_has(graph: Graph) -> None:
    result, _ = await answer(graph, QUESTION, draft(ITSELF), draft(ITSELF), *["I have no other."] * 3, max_steps=2)
    assert (result.answer, result.stop) == (ITSELF, "exhausted")


async def test_a_query_whose_rows_were_doubted_may_come_again(graph: Graph) -> None:
    result, _ = await answer(graph, QUESTION, draft(GOOD), judged(4), draft(GOOD), judged(4), max_steps=2)
    assert (result.answer, result.stop) == (GOOD, "unsure")


async def test_drafts_are_compared_by_their_rows(graph: Graph) -> None:
    same = GOOD.replace("AS name ORDER BY name", "AS gene ORDER BY gene DESC")
    result, chat = await answer(graph, QUESTION, draft(GOOD), draft(same), judged(9), drafts=2)
    assert (result.answer, result.stop) == (GOOD, "solved")
    assert GOOD in chat.asked[1][2].text
    other = GOOD.replace("RETURN", "WHERE t.name > 'J' RETURN")
    replies = draft(GOOD), draft(other), draft(GOOD), judged(9)
    result, chat = await answer(graph, QUESTION, *replies, drafts=2)
    assert result.stop == "solved"
    assert "Another draft of the query gave other rows." in chat.asked[2][1].text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"until": "maybe"}, "until"),
        ({"drafts": 0}, "drafts"),
        ({"until": "rows", "drafts": 2}, "'drafts' needs judged rows"),
    ],
)
async def test_what_cannot_be_is_refused(graph: Graph, given: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        await answer(graph, QUESTION, **given)


def test_an_agent_of_the_seed_judges_where_that_is_asked(kg: Path, agent_on: Any) -> None:
    agent, chat = agent_on(str(kg), draft(REVERSED), draft(GOOD), judged(9), store=False, until="judged")
    assert isinstance(agent, KGQueryReflexionAgent)
    assert agent.execute(QUESTION).tool_result == REGULATED
    assert len(chat.asked) == 3


async def test_a_new_graph_judges(graph: Any) -> None:
    drafted = {"tool": "Draft", "arguments": {"answer": REVERSED, "reflection": ""}}
    revised = {"tool": "Revision", "arguments": {"reflection": "", "score": 9, "revised_answer": GOOD}}
    chat = Chat([drafted, revised, judged(9)])
    made: Any = create_reflexion_graph(chat, graph, store=False)
    found = await made.ainvoke({"messages": [("user", QUESTION)]})
    assert found["reflexion"]["solved"]
    assert json.loads(found["reflexion"]["tool_result"])["result"] == REGULATED
    assert chat.asked[1][-1].text.startswith("The arrow points the wrong way"), "the critique"


async def test_a_new_graph_runs_the_composed_query_too(graph: Any) -> None:
    drafted = {"tool": "Draft", "arguments": {"answer": REVERSED, "reflection": ""}}
    chat = Chat([drafted, judged(9)])
    made: Any = create_reflexion_graph(chat, graph, store=False)
    ended = (await made.ainvoke({"messages": [("user", PLAIN)]}))["reflexion"]
    assert (ended["solved"], ended["answer"]) == (True, COMPOSED)
    assert json.loads(ended["tool_result"])["composed"].startswith("the query was composed by rules")


async def test_nothing_runs_that_a_person_did_not_approve(graph: Any) -> None:
    drafted = {"tool": "Draft", "arguments": {"answer": REVERSED, "reflection": ""}}
    made: Any = create_reflexion_graph(
        Chat([drafted]), graph, store=False, approve=True, checkpointer=InMemorySaver(), max_steps=1
    )
    config = {"configurable": {"thread_id": "1"}}
    await made.ainvoke({"messages": [("user", PLAIN)]}, config)
    ended = (await made.ainvoke(Command(resume=True), config))["reflexion"]
    assert (ended["solved"], ended["answer"]) == (False, REVERSED)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "EOMES regulates CREBBP, IL1R1, LRP6, NOTCH3 and VHL.",
            "EOMES regulates CREBBP, IL1R1, LRP6, NOTCH3 and VHL.",
        ),
        ("EOMES regulates CREBBP and BRCA1.", "The answer is: CREBBP, IL1R1, LRP6, NOTCH3, VHL."),
        ("EOMES regulates 7 genes.", "The answer is: CREBBP, IL1R1, LRP6, NOTCH3, VHL."),
        ("EOMES regulates 5 genes.", "EOMES regulates 5 genes."),
    ],
)
async def test_a_sentence_is_made_from_the_rows_only(graph: Graph, said: str, sentence: str) -> None:
    spoken = {"tool": "SayAnswer", "arguments": {"answer": said}}
    result, _ = await answer(graph, QUESTION, draft(GOOD), judged(9), spoken, answer=True)
    assert result.sentence == sentence


async def test_what_the_sentence_costs_is_in_the_record(graph: Graph) -> None:
    spoken = {"tool": "SayAnswer", "arguments": {"answer": "EOMES regulates 5 genes."}}
    async with open_store("memory:") as store:
        chat = Chat([draft(GOOD), judged(9), spoken])
        result = await ask_graph(QUESTION, graph, model=chat, store=store, answer=True)
        episode = await store.load(f"{result.run}.1")
        assert sentence_in(await store.steps(episode.id)) == result.sentence == "EOMES regulates 5 genes."
    assert episode.usage.calls == 3


async def test_without_rows_no_model_writes_the_sentence(graph: Graph) -> None:
    result, _ = await answer(graph, "Which genes does FOOBAR1 regulate?", draft(UNKNOWN), answer=True)
    assert result.sentence.startswith('There is no answer: no Gene has the name "FOOBAR1"')
