"""What is recorded of a run of a reflexion graph, and how `mulligan runs` shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from forked import run_forked
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from reflexion_graphs import QUESTION, a_graph, a_store, asking, chat, on_thread, recorded, run, scored, steps_of

from mulligan.core.codec import digest
from mulligan.core.errors import ModelError
from mulligan.langgraph import ScriptedChat

BOTH = ("invoke", "ainvoke")


def mulligan(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mulligan", *words]
    return run_forked(command, env={"MULLIGAN_HOME": str(home)})


@pytest.mark.parametrize("way", BOTH)
def test_the_record_holds_trials_feedback_and_reflections(way: str, tmp_path: Path) -> None:
    with a_store(tmp_path) as store:
        result = run(way, a_graph(chat(3, 8), store=store, agent_id="me"), asking())["reflexion"]
    (episode,) = recorded(tmp_path)
    assert (episode.run, episode.agent, episode.task.prompt) == (result["run"], "me", QUESTION)
    first, second = episode.trials
    assert (first.attempt.output, first.attempt.steps[0].observation) == ("answer 1", "ran answer 1")
    assert first.feedback
    assert first.reflection
    assert (first.feedback.passed, first.feedback.score, first.reflection.text) == (False, 3, "lesson 1")
    assert second.feedback
    assert (second.feedback.passed, second.feedback.score, second.reflection) == (True, 8, None)
    assert episode.seconds > 0
    assert episode.usage.calls == 3
    assert [trial.usage.calls for trial in episode.trials] == [2, 1]


@pytest.mark.parametrize("way", BOTH)
def test_every_call_of_model_and_tool_is_a_journal_step(way: str, tmp_path: Path) -> None:
    with a_store(tmp_path) as store:
        run(way, a_graph(chat(3, 8), store=store), asking())
    (episode,) = recorded(tmp_path)
    rows = steps_of(tmp_path, episode.id)
    assert [row.key for row in rows] == [
        "trial.1/draft/model#1",
        "trial.1/act/tool.echo#1",
        "trial.1/evaluate/model#1",
        "trial.2/act/tool.echo#1",
        "trial.2/evaluate/model#1",
    ]
    assert rows[1].request == {"tool": "echo", "input": "answer 1"}
    assert rows[1].result == {"content": "ran answer 1", "status": "success"}
    asked = rows[2].request
    assert (asked["model"], asked["stop"], asked["options"]["tool_choice"]) == ("scripted:scripted", None, "Revision")
    assert [message["type"] for message in asked["messages"]] == ["system", "human", "ai", "tool"]
    assert asked["messages"][2]["tool_calls"] == [
        {"name": "Draft", "args": {"answer": "answer 1", "reflection": "may be wrong"}}
    ]
    assert rows[2].result["usage"]["calls"] == 1


def test_two_runs_ask_in_the_same_words(tmp_path: Path) -> None:
    """No id, no time, nothing that a run makes up."""
    with a_store(tmp_path) as store:
        for _ in range(2):
            a_graph(chat(3, 8), store=store).invoke(asking())
    first, second = ([row.request_hash for row in steps_of(tmp_path, e.id)] for e in recorded(tmp_path))
    assert first == second


def test_ids_that_providers_repeat_in_content_are_left_out(tmp_path: Path) -> None:
    def said(id: str) -> AIMessage:
        block = {"type": "tool_use", "id": id, "name": "Draft", "input": {"answer": "a"}}
        call = {"name": "Draft", "args": {"answer": "a"}, "id": id, "type": "tool_call"}
        return AIMessage([block], tool_calls=[call])

    with a_store(tmp_path) as store:
        for id in ("toolu_1", "toolu_2"):
            a_graph(ScriptedChat([said(id), scored(8)[1]]), store=store).invoke(asking())
    first, second = ([row.request_hash for row in steps_of(tmp_path, e.id)] for e in recorded(tmp_path))
    assert first == second


def test_the_whole_message_is_recorded_and_comes_back(tmp_path: Path) -> None:
    call = {"name": "Draft", "args": {"answer": "a"}, "id": "c", "type": "tool_call"}
    told: dict[str, Any] = {"model_name": "m", "nan": float("nan"), "odd": object(), "logprobs": [0.5, (1, 2)]}
    message = AIMessage(
        [{"type": "text", "text": "So."}, {"type": "reasoning", "reasoning": "hm"}],
        tool_calls=[call],
        response_metadata=told,
        additional_kwargs={"refusal": None},
        usage_metadata={
            "input_tokens": 5,
            "output_tokens": 2,
            "total_tokens": 7,
            "input_token_details": {"cache_read": 3},
        },
    )
    model = ScriptedChat([message, ModelError("down"), scored(8)[1]], cost=None)
    with a_store(tmp_path) as store:
        for _ in range(2):
            graph = a_graph(model, store=store)
            try:
                graph.invoke(asking(id="q"), on_thread())
            except ModelError:
                continue
    (episode,) = recorded(tmp_path)
    answered = steps_of(tmp_path, episode.id)[0].result["message"]
    assert answered["content"] == message.content
    assert answered["usage_metadata"]["input_token_details"] == {"cache_read": 3}
    assert answered["response_metadata"] == {"model_name": "m", "cost": None, "logprobs": [0.5, [1, 2]]}
    assert episode.solved
    assert (episode.usage.input_tokens > 5, episode.usage.cost) == (True, None)


def test_an_unknown_cost_is_not_zero_and_a_known_one_is_summed(tmp_path: Path) -> None:
    with a_store(tmp_path) as store:
        for cost in (None, 0.25):
            model = ScriptedChat(scored(8), cost=cost)
            found = a_graph(model, store=store).invoke(asking())["reflexion"]
            assert found["usage"]["cost"] == (None if cost is None else 0.5)
    assert [episode.usage.cost for episode in recorded(tmp_path)] == [None, 0.5]


@pytest.mark.slow
def test_the_head_says_what_it_rests_on(tmp_path: Path) -> None:
    with a_store(tmp_path) as store:
        graph = a_graph(chat(8), store=store, instructions="Be short.", name="asker", checkpointer=InMemorySaver())
        graph.invoke(asking(), on_thread("mine"))
    (episode,) = recorded(tmp_path)
    head = episode.head
    assert head.models == {"draft": "scripted:scripted", "revise": "scripted:scripted"}
    assert {"mulligan", "langgraph", "langchain-core", "python"} <= set(head.versions)
    told = {"led_by": "langgraph", "graph": "asker", "thread": "mine", "tool": "echo", "instructions": "Be short."}
    assert told.items() <= head.settings.items()
    exported = json.loads(mulligan(tmp_path, "runs", "export", episode.run).stdout)
    texts = exported["episodes"][0]["files"]
    assert {f"prompts/{name}.md" for name in head.prompts} == set(texts)
    assert len(head.prompts) == 2


def test_nothing_is_recorded_where_that_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    a_graph(chat(8), store=False).invoke(asking())
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_runs_are_recorded_where_mulligan_runs_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    result = a_graph(chat(3, 8), store=None).invoke(asking())["reflexion"]
    listed = mulligan(tmp_path, "runs", "list").stdout
    assert result["run"] in listed
    assert "solved" in listed
    shown = mulligan(tmp_path, "runs", "show", result["run"]).stdout
    assert "driven by the graph reflexion (LangGraph), tool echo, at most 30 steps" in shown
    assert "ran answer 2" in shown
    told = mulligan(tmp_path, "runs", "export", result["run"], "--format", "md").stdout
    assert "**Graph:**" in told


@pytest.mark.slow
def test_who_can_go_on_with_a_run_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    graph = a_graph(chat(8), store=None, checkpointer=InMemorySaver(), interrupt_before=["execute_tool"])
    graph.invoke(asking(), on_thread("mine"))
    row = json.loads(mulligan(tmp_path, "runs", "list", "--json").stdout)[0]
    assert row["state"] == "open"
    refused = mulligan(tmp_path, "runs", "resume", row["run"])
    assert refused.returncode != 0
    assert "call invoke(None, config) with the thread_id 'mine'" in refused.stderr


@pytest.mark.slow
def test_a_run_that_failed_is_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    with pytest.raises(ModelError):
        a_graph(ScriptedChat([ModelError("no credit")]), store=None).invoke(asking())
    row = json.loads(mulligan(tmp_path, "runs", "list", "--json").stdout)[0]
    assert (row["state"], row["stop"]["detail"]) == ("paused: error", "draft of trial.1: ModelError: no credit")


def test_another_model_or_prompt_is_another_request(tmp_path: Path) -> None:
    with a_store(tmp_path) as store:
        a_graph(chat(8), store=store).invoke(asking())
        a_graph(ScriptedChat(scored(8), model_name="other"), store=store).invoke(asking())
    one, other = ([row.request for row in steps_of(tmp_path, e.id)] for e in recorded(tmp_path))
    assert (one[0]["model"], other[0]["model"]) == ("scripted:scripted", "scripted:other")
    assert digest(one[1]) == digest(other[1])


def test_a_model_of_ours_is_recorded_with_its_whole_id(tmp_path: Path) -> None:
    """The same before its first call and after, so that a run that goes on asks in the same words."""
    script = tmp_path / "said.json"
    drafted, revised = scored(8)
    said = [{"tool": "Draft", "arguments": drafted}, {"tool": "Revision", "arguments": revised}]
    script.write_text(json.dumps(said))
    with a_store(tmp_path) as store:
        a_graph(f"scripted:{script}", store=store).invoke(asking())
    (episode,) = recorded(tmp_path)
    (model,) = {*episode.head.models.values()}
    assert model.startswith("scripted:said.json@")
    rows = [row.request for row in steps_of(tmp_path, episode.id) if "model" in row.key]
    assert {(request["model"], request["kind"]) for request in rows} == {(model, model)}


async def test_invoke_where_an_event_loop_runs(tmp_path: Path) -> None:
    """As in a notebook."""
    from reflexion_graphs import an_open_store

    async with an_open_store(tmp_path) as store:
        result = a_graph(chat(3, 8), store=store).invoke(asking())["reflexion"]
        assert result["solved"]
        (episode,) = await store.list()
        assert episode.solved
