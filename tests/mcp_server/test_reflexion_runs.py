"""What a client led, as `mulligan runs` shows it; and a server that is killed while a client leads."""

import json
import random
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from forked import run_forked
from reflexion_clients import NAME, a_client, a_service, good, step
from serving import Piped, piped

TASK = "Name a prime above 8."


def mulligan(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mulligan", *arguments]
    return run_forked(command)


async def led(*, passed: bool) -> str:
    """The id of an episode whose second trial passed, or was not judged yet."""
    async with a_service() as service, a_client(service) as client:
        id = (await good(client, step("actor", 1, 4, actorInputText=TASK)))["episodeId"]
        attempt = {"actorOutputText": "9", "episodeId": id}
        await good(client, step("evaluator", 1, 4, **attempt))
        said = {"evaluatorScore": "3 divides it.", "reflectionText": "Divide first."}
        await good(client, step("self-reflection", 1, 4, **attempt, **said))
        await good(client, step("actor", 2, 4, actorInputText=TASK, episodeId=id))
        await good(client, step("evaluator", 2, 4, actorOutputText="11", episodeId=id, passed=passed))
        return id


async def test_it_is_listed_shown_and_exported_and_resumed_by_nobody_else(tmp_path: Path) -> None:
    solved, going = await led(passed=True), await led(passed=False)
    rows = json.loads(mulligan("runs", "list", "--json").stdout)
    assert [(row["episode"], row["state"], row["trials"]) for row in rows] == [
        (going, "open", 2),
        (solved, "solved", 2),
    ]
    assert rows[0]["used"]["cost"] is None
    shown = mulligan("runs", "show", solved).stdout
    for said in ("an MCP client, 4 tries planned", TASK, "3 divides it.", "Divide first.", "Try 2: passed"):
        assert said in shown
    shown = mulligan("runs", "show", going).stdout
    assert "\nopen, " in shown
    assert f", Run {going}\n" in shown
    (exported,) = json.loads(mulligan("runs", "export", solved).stdout)["episodes"]
    assert exported["episode"]["stop"]["reason"] == "solved"
    assert [one["key"] for one in exported["steps"]][:2] == ["trial.1/act/client#1", "trial.1/evaluate/client#1"]
    assert "**Controlled by:** an MCP client" in mulligan("runs", "export", solved, "--format", "md").stdout
    for id, more in ((going, ()), (solved, ()), (going, ("--fork",))):
        ran = mulligan("runs", "resume", id, *more)
        assert ran.returncode == 2
        assert "controlled by an MCP client" in ran.stderr
        assert "reflexion-thinking with its episodeId" in ran.stderr


def calls_of(trials: int) -> list[dict[str, Any]]:
    calls = list[dict[str, Any]]()
    for n in range(1, trials + 1):
        attempt = {"actorOutputText": f"attempt {n}"}
        said = {**attempt, "evaluatorScore": f"wrong {n}"}
        calls += [
            step("actor", n, trials, actorInputText=TASK),
            step("evaluator", n, trials, **attempt),
            step("self-reflection", n, trials, **said),
            step("self-reflection", n, trials, **said, reflectionText=f"lesson {n}"),
        ]
    return calls


@contextmanager
def a_server() -> Generator[Piped]:
    with piped("--tools", "reflexion") as server:
        server.handshake()
        yield server


@contextmanager
def killed_after(server: Piped, seconds: float) -> Generator[None]:
    """A separate killer, which knows nothing of the call."""
    script = f"sleep {seconds:.4f}; kill -9 {server.process.pid} 2>/dev/null"
    with subprocess.Popen(["sh", "-c", script]) as killer:
        yield
        killer.wait(10)


@pytest.mark.slow
def test_a_server_that_is_killed_at_any_moment_loses_nothing_that_was_answered() -> None:
    """The client makes its call again, to the next server, until it is answered."""
    chance, calls, answers = random.Random(7), calls_of(5), list[dict[str, Any]]()
    with a_server() as server:
        answers.append(json.loads(server.call(NAME, calls[0])["content"][0]["text"]))
    id, kills = answers[0]["episodeId"], 0
    while len(answers) < len(calls):
        with a_server() as server:
            alive = True
            while alive and len(answers) < len(calls):
                number = len(answers)
                request = {"name": NAME, "arguments": {**calls[number], "episodeId": id}}
                alive = chance.random() < 0.5
                with nullcontext() if alive else killed_after(server, chance.random() * 0.003):
                    server.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": request})
                    line = server.line()
                kills += not line
                if line:
                    answer = json.loads(line)
                    assert answer["id"] == number
                    assert not answer["result"].get("isError"), answer
                    answers.append(json.loads(answer["result"]["content"][0]["text"]))
    assert kills, "some calls had no answer"
    assert answers[-1]["memory"] == ["lesson 5", "lesson 4", "lesson 3"]
    assert [answer["trial_history_length"] for answer in answers[3::4]] == [1, 2, 3, 4, 5]
    (row,) = json.loads(mulligan("runs", "list", "--json").stdout)
    assert (row["episode"], row["state"], row["trials"]) == (id, "exhausted", 5)
