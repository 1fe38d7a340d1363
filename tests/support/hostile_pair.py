"""A client that works until it is killed, as a process of its own; each thing that it was acknowledged is a line of stdout.

python tests/support/hostile_pair.py stdio AGENT           starts its own server, and says its pid first
python tests/support/hostile_pair.py http://.../mcp AGENT
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

from raw_http import RawHttp
from serving import piped

Json = Any
Call = Callable[[str, Json], Json]


def works(call: Call, agent: str) -> None:
    """One task after the other: two trials with a reflection, then a lesson of it."""
    for n in count():
        task = f"{agent} task {n}"
        known: dict[str, Json] = {"maxTrials": 2}
        for trial in (1, 2):
            steps: list[dict[str, Json]] = [
                {"stepType": "actor", "actorInputText": task},
                {"stepType": "evaluator", "actorOutputText": f"{task} output {trial}"},
                {
                    "stepType": "self-reflection",
                    "actorOutputText": f"{task} output {trial}",
                    "evaluatorScore": "no",
                    "reflectionText": f"{task} reflection {trial}",
                },
            ]
            for step in steps:
                said = call("reflexion-thinking", {**known, **step, "trialNumber": trial, "agentId": agent})
                known["episodeId"] = said["episodeId"]
                tell(episode=said["episodeId"], trial=trial, step=step["stepType"], task=task)
        lesson = {"title": f"{task} title", "description": "When it is so.", "content": f"{task}: do it.", "steps": [1]}
        trajectory = [{"step": 1, "role": "assistant", "content": f"{task} done"}]
        about = {"trajectory": trajectory, "query": task, "success_signal": True, "agent_id": agent}
        said = call("extract_memory", {**about, "lessons": [lesson]})
        tell(lesson=said["memory_id"], title=lesson["title"], task=task)


def tell(**fact: Json) -> None:
    print(json.dumps(fact), flush=True)


def good(result: Json) -> Json:
    assert not result.get("isError"), result
    return result["structuredContent"]


def main(where: str, agent: str) -> None:
    if where == "stdio":
        with piped() as server:
            tell(pid=server.process.pid)
            server.handshake()
            works(lambda tool, arguments: good(server.call(tool, arguments)), agent)
    client = RawHttp(where)
    client.handshake("2025-06-18")
    tell(pid=0)
    works(lambda tool, arguments: good(client.call(tool, arguments)), agent)


if __name__ == "__main__":
    main(*sys.argv[1:])
