"""What the callers ask for: episodes of three trials, thoughts, echoes, recalls."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from mcp_parts.client import Caller, Visitor

Work = Callable[[], Caller]

TASK = "Write a Python function that takes two numbers and returns their sum."
OUTPUT = "def add(a, b):\n    return a - b"
SCORE = "Test failed: add(2, 3) returned -1, expected 5."
REFLECTION = "The function used subtraction instead of addition. I need to change '-' to '+'."
TRIALS = 3


def reflexion() -> Caller:
    """One episode of three trials after the other, without an id: four calls to a trial."""
    while True:
        for trial in range(1, TRIALS + 1):
            for step in _steps(trial):
                _ = yield step


def reflexion_strict() -> Caller:
    """The same with an episode's id from its second call on, so that the order is checked."""
    while True:
        named = dict[str, Any]()
        for trial in range(1, TRIALS + 1):
            for step in _steps(trial):
                answer = yield {**step, **(named or {"reset": True})}
                named = {"episodeId": answer["episodeId"]}


def _steps(trial: int) -> list[dict[str, Any]]:
    common = {"trialNumber": trial, "maxTrials": TRIALS}
    judged = {**common, "actorOutputText": OUTPUT, "evaluatorScore": SCORE}
    return [
        {"stepType": "actor", **common, "actorInputText": TASK},
        {"stepType": "evaluator", **common, "actorOutputText": OUTPUT},
        {"stepType": "self-reflection", **judged},
        {"stepType": "self-reflection", **judged, "reflectionText": REFLECTION},
    ]


def thoughts() -> Caller:
    """What sequential-thinking is asked for: chains of twelve thoughts, of the length of an episode's texts."""
    while True:
        for number in range(1, 13):
            thought = f"{TASK} {OUTPUT} {SCORE}"
            yield {"thought": thought, "thoughtNumber": number, "totalThoughts": 12, "nextThoughtNeeded": number < 12}


def echoes() -> Caller:
    """An episode's arguments, which come back as they are."""
    return reflexion()


def recalls(words: Callable[[int], str], agent: str) -> Work:
    """Tasks of 8 to 40 words, three lessons each."""
    chance = random.Random(1)

    def caller() -> Caller:
        while True:
            yield {"query": words(chance.randint(8, 40)), "top_k": 3, "agent_id": agent}

    return caller


def visits(words: Callable[[int], str], agent: str) -> Visitor:
    """What an agent of a team does over and over: three recalls, an episode of three trials, a lesson of its own."""
    chance = random.Random(agent)
    while True:
        for _ in range(3):
            _ = yield "retrieve_memory", {"query": words(chance.randint(8, 40)), "top_k": 3, "agent_id": agent}
        named = dict[str, Any]()
        for trial in range(1, TRIALS + 1):
            for step in _steps(trial):
                answer = yield "reflexion-thinking", {**step, **(named or {"agentId": agent, "reset": True})}
                named = {"episodeId": answer.get("episodeId", "none")}
        task = {"trajectory": [{"step": 1, "role": "assistant", "content": words(60)}], "query": words(12)}
        answer = yield "extract_memory", {**task, "success_signal": True, "agent_id": agent}
        lesson = {
            "title": words(7),
            "description": words(10),
            "content": words(60),
            "steps": [1],
            "tags": [],
            "kind": "",
        }
        _ = yield "extract_memory", {"task_id": answer.get("task_id", "none"), "lessons": [lesson], "agent_id": agent}
