"""One episode through every face: the same record, the same stop reason. Faces to come join the list."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from forked import run_forked
from mcp import Client
from seed_agents import lay
from serving import by_stdio

import mulligan
from mulligan.core.codec import to_json
from mulligan.core.records import Episode
from mulligan.store.sqlite import SqliteStore

ENDS = {
    "solved": ["five", "Not five: say 2 + 2 in digits.", "4"],
    "exhausted": ["five", "Not five: say 2 + 2 in digits.", "six", "Neither is six: what do 2 and 2 make?", "seven"],
    "stuck": ["five", "Not five: say 2 + 2 in digits.", "five"],
    "error": ["five"],
}
TASK = "What is 2 + 2?"
LIMITS = {"trials": 3, "identical": 2}
STRATEGY = "reflexion"


def in_python(script: Path, home: Path) -> None:
    async def run() -> None:
        store = SqliteStore(home / "mulligan.db")
        asked: Any = {"strategy": STRATEGY, "limits": LIMITS, "model": f"scripted:{script}"}
        await mulligan.solve(TASK, evaluator="exact_match:4", **asked, store=store)
        await store.close()

    asyncio.run(run())


def on_the_command_line(script: Path, home: Path) -> None:
    options = ["--evaluator", "exact_match:4", "--model", f"scripted:{script}", "--trials", "3", "--identical", "2"]
    options += ["--strategy", STRATEGY]
    command = [sys.executable, "-m", "mulligan", "solve", TASK, *options, "--quiet"]
    run_forked(command, env={"MULLIGAN_HOME": str(home)})


AGENT = f"""---
name: answerer
description: Answers.
version: "1.0.0"
pattern: reflexion
max_iter: 3
limits: {{identical: 2}}
strategy: {STRATEGY}
evaluate: exact_match:4
---
"""


def as_an_agent(script: Path, home: Path) -> None:
    files = {"AGENT.md": AGENT, "act.md": "---\npattern: oneshot\n---\nAnswer.", "reflect.md": "Say what was wrong."}
    agent = lay(home / "agents" / "answerer", files)
    command = [sys.executable, "-m", "mulligan", "run", str(agent), TASK, "--model", f"scripted:{script}", "--quiet"]
    run_forked(command, env={"MULLIGAN_HOME": str(home)})


def through_mcp(plain: Episode, home: Path) -> None:
    """A client of `mulligan serve` that comes to the same attempts, verdicts and reflections."""

    async def lead() -> None:
        id: dict[str, str] = {}
        async with Client(by_stdio("--tools", "reflexion", env={"MULLIGAN_HOME": str(home)})) as client:
            for trial in plain.trials:
                assert trial.feedback
                output = {"actorOutputText": trial.attempt.output}
                verdict = {"evaluatorScore": trial.feedback.text, "passed": trial.feedback.passed}
                reflection = {"reflectionText": trial.reflection.text if trial.reflection else "It was the last."}
                for step, more in (
                    ("actor", {"actorInputText": TASK}),
                    ("evaluator", output),
                    ("self-reflection", {**output, **verdict, **({} if trial.feedback.passed else reflection)}),
                ):
                    numbers = {"trialNumber": trial.number, "maxTrials": LIMITS["trials"]}
                    result = await client.call_tool("reflexion-thinking", {"stepType": step, **numbers, **id, **more})
                    assert not result.is_error, result.content
                    id = {"episodeId": result.structured_content["episodeId"]}

    asyncio.run(lead())


def recorded(home: Path) -> Episode:
    async def read() -> Episode:
        store = SqliteStore(home / "mulligan.db")
        (episode,) = await store.list()
        await store.close()
        return episode

    return asyncio.run(read())


def comparable(episode: Episode) -> dict[str, Any]:
    record = to_json(episode)
    for volatile in ("id", "run", "started", "seconds"):
        record.pop(volatile)
    return record


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("end", ENDS)
def test_every_face_leaves_the_same_record(tmp_path: Path, end: str) -> None:
    script = tmp_path / "answers.json"
    script.write_text(json.dumps(ENDS[end]))
    records: list[dict[str, Any]] = []
    for face in (in_python, on_the_command_line):
        home = tmp_path / face.__name__
        face(script, home)
        episode = recorded(home)
        assert episode.stop
        assert episode.stop.reason == end
        records.append(comparable(episode))
    assert records[0] == records[1]


def course(episode: Episode) -> dict[str, Any]:
    """What happened, whatever the roles are called and however the model was asked."""
    trials = [
        (
            trial.attempt.output,
            trial.feedback and (trial.feedback.passed, trial.feedback.text, trial.feedback.source),
            trial.reflection and trial.reflection.text,
        )
        for trial in episode.trials
    ]
    stop = episode.stop and (episode.stop.reason, episode.stop.detail.partition(":")[0])
    return {"task": episode.task, "plan": episode.plan, "trials": trials, "stop": stop}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_an_agent_kept_as_files_takes_the_same_course(tmp_path: Path, end: str) -> None:
    script = tmp_path / "answers.json"
    script.write_text(json.dumps(ENDS[end]))
    (tmp_path / "python").mkdir()
    in_python(script, tmp_path / "python")
    as_an_agent(script, tmp_path / "agent")
    plain, agent = recorded(tmp_path / "python"), recorded(tmp_path / "agent")
    assert course(agent) == course(plain)
    assert to_json(agent).keys() == to_json(plain).keys()


@pytest.mark.slow
@pytest.mark.parametrize("end", ["solved", "exhausted"])
def test_a_client_over_mcp_takes_the_same_course(tmp_path: Path, end: str) -> None:
    """But for who judged, and for the reflection on the last trial, which the loop does not ask for."""
    script = tmp_path / "answers.json"
    script.write_text(json.dumps(ENDS[end]))
    in_python(script, tmp_path / "python")
    plain = recorded(tmp_path / "python")
    through_mcp(plain, tmp_path / "mcp")
    led = recorded(tmp_path / "mcp")
    assert {trial.feedback.source for trial in led.trials if trial.feedback} == {"client"}
    assert judged_by_anybody(led) == judged_by_anybody(plain)
    assert to_json(led).keys() == to_json(plain).keys()
    assert [to_json(trial).keys() for trial in led.trials] == [to_json(trial).keys() for trial in plain.trials]


def judged_by_anybody(episode: Episode) -> dict[str, Any]:
    told = course(episode)
    trials = [(output, feedback and feedback[:2], reflection) for output, feedback, reflection in told["trials"]]
    return {**told, "trials": [*trials[:-1], trials[-1][:2]]}


GRAPH_ENDS: dict[str, list[Any]] = {
    "solved": [
        {"answer": "five"},
        {"reflection": "Not five: say 2 + 2 in digits.", "score": 0, "revised_answer": "4"},
        {"reflection": "", "score": 10, "revised_answer": "4"},
    ],
    "exhausted": [
        {"answer": "five"},
        {"reflection": "Not five: say 2 + 2 in digits.", "score": 0, "revised_answer": "six"},
        {"reflection": "Neither is six: what do 2 and 2 make?", "score": 0, "revised_answer": "seven"},
        {"reflection": "", "score": 0, "revised_answer": "eight"},
    ],
    "error": [{"answer": "five"}],
}
"""A trial takes a call less there: a revision judges, reflects and answers anew. Nothing is "stuck": seed 001."""


def as_a_langgraph_graph(end: str, home: Path) -> None:
    from mulligan.langgraph import ScriptedChat, create_reflexion_graph

    async def run() -> None:
        store = SqliteStore(home / "mulligan.db")
        graph: Any = create_reflexion_graph(
            ScriptedChat(GRAPH_ENDS[end]),
            lambda answer: "right" if answer == "4" else "wrong",  # pyright: ignore
            judge=lambda reading, message: message.text == "right",
            max_steps=1 + LIMITS["trials"],
            store=store,
        )
        with suppress(mulligan.MulliganError):
            await graph.ainvoke({"messages": [("user", TASK)]})
        await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("end", GRAPH_ENDS)
def test_a_langgraph_graph_leaves_the_same_record(tmp_path: Path, end: str) -> None:
    script = tmp_path / "answers.json"
    script.write_text(json.dumps(ENDS[end]))
    in_python(script, tmp_path)
    (tmp_path / "graph").mkdir()
    as_a_langgraph_graph(end, tmp_path / "graph")
    plain, graph = recorded(tmp_path), recorded(tmp_path / "graph")
    assert schema(to_json(graph)) == schema(to_json(plain))
    assert graph.stop
    assert plain.stop
    assert graph.stop.reason == plain.stop.reason == end
    if end != "error":
        steps = 1 + LIMITS["trials"]  # the limit of a graph is said as its user set it
        assert graph.stop.detail == (f"{steps} of {steps} steps used" if end == "exhausted" else plain.stop.detail)
        tried, before = (
            [(t.attempt.output, t.reflection and t.reflection.text) for t in e.trials] for e in (graph, plain)
        )
        assert tried == before
        assert {*to_json(graph)["trials"][0]} == {*to_json(plain)["trials"][0]}
    assert graph.task == plain.task
    assert graph.plan == plain.plan


def schema(record: Any) -> Any:
    """The keys of a record, and of what is in it; of settings, which each face has its own of, nothing."""
    if isinstance(record, dict):
        found: dict[str, Any] = record  # pyright: ignore[reportUnknownVariableType]
        open_ended = ("versions", "models", "settings", "prompts", "files")
        return {key: None if key in open_ended else schema(value) for key, value in found.items() if key != "trials"}
    return None
