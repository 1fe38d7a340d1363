"""The golden traces, stop rules and names of the seed, which were written down before the code (tests/langgraph/golden)."""

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row
from graph_agents import Chat, Conversation, golden, never_good, revision, talking
from graph_agents import draft as drafted

import mulligan.langgraph as face
from mulligan.graphs.protocol import Graph
from mulligan.langgraph import GenerateQuery, KGQueryReflexionAgent, ReflexionAgent, ReflexionAgentResult, ReviseQuery
from mulligan.langgraph.graph_texts import has_values

TRACES = golden("traces")
RULES = golden("stop_rules")
NAMES = golden("interface")


class Watched(KGQueryReflexionAgent):
    """Keeps which node gave which message, and which queries were run."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.nodes: list[str] = []
        self.kinds: list[str] = []
        self.queries: list[str] = []

    def _log_step_message(self, step: int, node: str, output: Any) -> None:
        super()._log_step_message(step, node, output)
        self.nodes.append(node)

    async def _asked(self, query: str) -> dict[str, Any]:
        self.queries.append(query)
        return await super()._asked(query)

    def _parse_final_result(self, output: Any) -> ReflexionAgentResult:
        self.kinds = [message.type for message in output]
        return super()._parse_final_result(output)


@pytest.mark.parametrize("trace", TRACES["traces"], ids=lambda trace: trace["name"])
def test_the_agent_goes_the_way_of_the_trace(trace: Any, where: Any) -> None:
    factory, chat = talking(*trace["replies"])
    agent = Watched(factory, where, max_steps=trace.get("max_steps", 30), store=False)
    result = agent.execute(TRACES["question"], "The graph has genes.")
    assert agent.nodes == trace["nodes"]
    assert agent.kinds == trace["messages"]
    assert agent.queries == trace["queries"]
    assert len(chat.asked) == len(trace["replies"])
    assert (result.answer, result.tool_result, result.stop) == (trace["answer"], trace["tool_result"], trace["stop"])
    assert str(result) == trace["answer"]


@pytest.mark.light_cases(3)
@pytest.mark.parametrize("rule", RULES["steps"], ids=lambda rule: f"max_steps={rule['max_steps']}")
def test_the_step_limit_counts_drafts_and_revisions(rule: Any, graph: Graph) -> None:
    chat = Chat(never_good)
    agent = Watched(lambda: Conversation(chat), graph, max_steps=rule["max_steps"], store=False)
    result = agent.execute("Who is nobody?", "The graph has genes.")
    assert (len(chat.asked), len(agent.queries)) == (rule["model_calls"], rule["queries"])
    assert (result.stop, result.tool_result) == ("exhausted", [])
    assert result.answer == agent.queries[-1]


def test_the_default_is_the_seeds_thirty_steps_and_a_score_of_seven(graph: Graph) -> None:
    agent = KGQueryReflexionAgent(talking()[0], graph, store=False)
    assert agent.max_steps == RULES["default_max_steps"]["here"]
    assert agent.good_score == 7


@pytest.mark.parametrize("rule", RULES["scores"], ids=lambda rule: repr(rule["score"]))
def test_scores_that_end_it(rule: Any, graph: Graph) -> None:
    empty = "MATCH (g:Gene {name: 'nobody'}) RETURN g.name AS name"
    factory, chat = talking(drafted(empty), revision(rule["score"]), revision(0))
    result = KGQueryReflexionAgent(factory, graph, max_steps=3, store=False).execute("Who is nobody?", "Genes.")
    assert len(chat.asked) == (2 if rule["ends"] else 3)
    assert result.stop == ("solved" if rule["ends"] else "exhausted")


@each_row("rule", RULES["rows"])
def test_rows_that_are_empty(rule: Any) -> None:
    assert has_values(rule["rows"]) is not rule["empty"]


def test_a_setting_says_which_score_is_good_enough(graph: Graph) -> None:
    empty = "MATCH (g:Gene {name: 'nobody'}) RETURN g.name AS name"
    factory, chat = talking(drafted(empty), revision(8), revision(9))
    agent = KGQueryReflexionAgent(factory, graph, good_score=8.5, store=False)
    assert agent.execute("Who is nobody?", "Genes.").score == 9
    assert len(chat.asked) == 3


def test_every_name_of_the_seed_is_there() -> None:
    for name in (*NAMES["classes"], *NAMES["constants"]):
        assert name in face.__all__
    assert {name: getattr(face, name) for name in NAMES["constants"]} == NAMES["constants"]
    for name in NAMES["upstream_static"]:
        assert isinstance(inspect.getattr_static(ReflexionAgent, name), staticmethod)


@each_row("name", [*NAMES["seed_methods"], *NAMES["seed_may_override"]])
def test_the_seeds_methods_take_what_it_says(name: str) -> None:
    wanted = {**NAMES["seed_methods"], **NAMES["seed_may_override"]}[name]
    assert list(inspect.signature(getattr(ReflexionAgent, name)).parameters) == wanted


def test_a_subclass_has_to_write_what_upstreams_had_to() -> None:
    assert ReflexionAgent.__abstractmethods__ == set(NAMES["upstream_abstract"])


def test_arguments_stand_in_the_seeds_order() -> None:
    for agent, wanted in ((ReflexionAgent, "agent_arguments"), (KGQueryReflexionAgent, "kg_agent_arguments")):
        parameters = list(inspect.signature(agent).parameters)
        assert parameters[: len(NAMES[wanted])] == NAMES[wanted]
    assert list(inspect.signature(ReflexionAgent.execute).parameters)[:3] == NAMES["execute"]["arguments"]


def test_fields_have_the_seeds_names() -> None:
    assert list(GenerateQuery.model_fields) == NAMES["fields"]["GenerateQuery"]
    assert set(ReviseQuery.model_fields) == set(NAMES["fields"]["ReviseQuery"])
    assert list(inspect.signature(ReflexionAgentResult).parameters)[:2] == NAMES["fields"]["ReflexionAgentResult"]


def test_every_deviation_is_shown_by_a_test_that_is_there() -> None:
    there = {
        node.name
        for file in Path(__file__).parent.glob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {deviation["test"] for deviation in golden("deviations")["deviations"]} <= there
