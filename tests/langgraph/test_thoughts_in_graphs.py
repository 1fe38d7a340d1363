"""A graph runs what a model answers, and nothing that it only thought of."""

import json
from pathlib import Path
from typing import Any

import pytest
from graph_agents import GOOD, draft, revision
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from reflexion_graphs import a_graph, asking, revised

from mulligan.core.errors import BadAnswer
from mulligan.graphs.bare_query import TAKEN_OUT
from mulligan.graphs.protocol import Graph
from mulligan.langgraph import ask_graph, chat_model
from mulligan.models.scripted import ScriptedModel

QUESTION, PROMPT = "Which genes does EOMES regulate?", "Nodes:\n- Gene: name (STRING)"
DRAFT = json.dumps({"answer": "drop all", "reflection": "what came to mind first, and must not be done at all"})
FINAL = json.dumps({"answer": "count", "reflection": "r"})
PASSED = json.dumps(revised(9, "count"))


@pytest.mark.parametrize(
    "texts",
    [
        (f"{DRAFT}\n</think>\n{FINAL}", PASSED),
        (f"<thinking>{DRAFT}</thinking>```json\n{FINAL}\n```", PASSED),
        (f"<think>{DRAFT}", FINAL, PASSED),
        (json.dumps({"answer": "<think>drop all?</think>count", "reflection": "r"}), PASSED),
        ("{'answer': 'count', 'reflection': 'r',}", PASSED),
    ],
)
def test_what_was_thought_of_is_not_run(texts: tuple[str, ...]) -> None:
    ran: list[str] = []

    def tool(answer: str) -> str:
        ran.append(answer)
        return "7"

    model = GenericFakeChatModel(messages=iter([AIMessage(text) for text in texts]))
    a_graph(model, tool, max_steps=2).invoke(asking())
    assert ran == ["count"]


def test_the_query_is_taken_out_and_it_is_said(graph: Graph, agent_on: Any) -> None:
    written = f"<think>MATCH (n) DETACH DELETE n</think>Here it is:\n```cypher\n{GOOD}\n```<|im_end|>"
    agent, chat = agent_on(graph, draft(written), revision(9))
    assert agent.execute(QUESTION, PROMPT).answer == GOOD
    assert json.loads(chat.asked[1][-1].text)["corrected"] == [TAKEN_OUT]


async def test_the_first_draft_gives_rows(kg: Path) -> None:
    answers: list[Any] = [
        {"answer": GOOD.replace("->", "-&gt;"), "reflection": "r"},
        *[{"score": 9, "reason": "-"}] * 4,
    ]
    found = await ask_graph(f"{QUESTION[:-1]} directly?", kg, model=chat_model(ScriptedModel(answers)), max_steps=1)
    assert found.tool_result


def test_a_chat_model_asks_once_more_for_an_answer() -> None:
    model = ScriptedModel(["<think>Seven?", "<think>9.</think>9"])
    message = chat_model(model).invoke("How many?")
    assert message.content == "9"
    assert message.usage_metadata
    with pytest.raises(BadAnswer, match="gave no answer"):
        chat_model(ScriptedModel(["<think>Seven?", "<think>Eight?"])).invoke("How many?")
