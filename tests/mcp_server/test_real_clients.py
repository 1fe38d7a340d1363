"""Clients of other makers walk the seeds' examples: the TypeScript SDK's, in both major versions, and the Inspector."""

import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from node_clients import NodeClients, installed
from serving import by_stdio, served
from walks import SEEDS, TOOLS, check, memory_walk, misfit, reflexion_walk

pytestmark = pytest.mark.slow
TRANSPORTS = ["stdio", "sse", "http"]
OLD, NEW = "2025-11-25", "2026-07-28"


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> NodeClients:
    return installed(tmp_path_factory.mktemp("clients"))


@contextmanager
def reached(transport: str) -> Generator[dict[str, Any]]:
    """What a walker needs to get to a server over this transport."""
    if transport == "stdio":
        command = by_stdio()
        yield {"transport": "stdio", "command": command.command, "args": command.args, "env": dict(os.environ)}
        return
    with served(transport=transport) as server:
        yield {"transport": transport, "url": server.url}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_first_typescript_client(clients: NodeClients, transport: str) -> None:
    steps = [*reflexion_walk(), *memory_walk()]
    with reached(transport) as where:
        report = clients.walk("walk_v1.mjs", {**where, "steps": steps})
    check(report, steps)
    assert report["revision"] == OLD
    assert bool(report["session"]) == (transport == "http")
    _check_the_rest(report)


@pytest.mark.parametrize(("era", "revision"), [("legacy", OLD), ("auto", NEW), ({"pin": NEW}, NEW)])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_second_typescript_client(clients: NodeClients, transport: str, era: Any, revision: str) -> None:
    stateless = transport == "http" and revision == NEW
    steps = [*reflexion_walk(named=stateless), *memory_walk()]
    with reached(transport) as where:
        report = clients.walk("walk_v2.mjs", {**where, "era": era, "steps": steps})
    check(report, steps)
    assert report["revision"] == revision
    _check_the_rest(report)


def _check_the_rest(report: dict[str, Any]) -> None:
    """The episode that was walked and the lesson that was learned are there to read, and there are prompts."""
    assert report["instructions"]
    assert report["prompts"]
    assert report["templates"]
    assert len(report["resources"]) >= 2
    assert report["read"]


@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_inspector_lists_and_calls(clients: NodeClients, transport: str, era: str) -> None:
    with reached(transport) as where:
        if transport == "stdio":
            target = [where["command"], *where["args"], "-e", f"MULLIGAN_HOME={os.environ['MULLIGAN_HOME']}"]
        else:
            target = ["--transport", transport, "--server-url", where["url"]]

        def ask(method: str, *more: str, status: int = 0) -> dict[str, Any]:
            ran = clients.inspect(*target, "--protocol-era", era, "--method", method, *more)
            assert ran.returncode == status, ran.stdout + ran.stderr
            assert "Warning: tool" not in ran.stderr, "a schema that some client cannot take"
            said = json.loads(ran.stdout)
            return said.get("result", said)

        tools = ask("tools/list", "--strict")["tools"]
        assert {tool["name"] for tool in tools} == TOOLS
        (first, *_), (empty, *_) = reflexion_walk(), memory_walk()
        for step in (first, empty):
            arguments = json.dumps(step["arguments"])
            said = ask("tools/call", "--tool-name", step["tool"], "--tool-args-json", arguments)
            answer = {key: value for key, value in said["structuredContent"].items() if key not in step["also"]}
            assert misfit(step["answer"], answer) == ""
        assert ask("prompts/list")["prompts"]
        resources = ask("resources/list")["resources"]
        assert resources, "the episode that was begun"
        assert ask("resources/read", "--uri", resources[0]["uri"])["contents"]


CALLS = 4


@pytest.mark.parametrize("walker", ["walk_v1.mjs", "walk_v2.mjs"])
def test_solve_tells_these_clients_how_it_goes(clients: NodeClients, walker: str, tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text("\n---\n".join(["41", "More than 41.", "42"] * CALLS))
    command = by_stdio("--model", f"scripted:{tmp_path / 'script.txt'}", "--tools", "reflexion")
    where = {"transport": "stdio", "command": command.command, "args": command.args, "env": dict(os.environ)}
    step = {"tool": "solve", "arguments": {"task": "What is six times seven?", "expected": "42", "trials": 2}}
    results = clients.walk(walker, {**where, "steps": [step] * CALLS})["results"]
    assert [result["structuredContent"]["solved"] for result in results] == [True] * CALLS
    expected = [
        "trial 1 of 2: tried",
        "trial 1 of 2: failed: The answer is wrong.",
        "trial 1 of 2: reflected: More than 41.",
    ]
    told = [[one["message"] for one in result["told"]][1:4] for result in results]
    assert expected in told
    # Both clients drop what arrives in one piece with the result, as it does on a busy machine.
    assert [one for one in told if one != expected[: len(one)]] == []
    assert {one["total"] for result in results for one in result["told"]} == {2}


def test_a_client_of_the_seeds_servers_changes_only_the_command(clients: NodeClients, tmp_path: Path) -> None:
    """One file for both, as the Inspector and most clients read it; the key that they set is neither used nor minded."""
    ours = {"command": str(Path(sys.executable).with_name("mulligan")), "args": ["serve"]}
    config = {"mcpServers": {name: {**theirs, **ours} for name, theirs in SEEDS.items()}}
    (tmp_path / "mcp.json").write_text(json.dumps(config))
    _asked_by_config(clients, tmp_path / "mcp.json")


def test_a_client_of_the_seeds_server_over_sse_changes_nothing(clients: NodeClients, tmp_path: Path) -> None:
    """But the port, which is a free one here; and the Inspector wants to be told that a URL is one of SSE."""
    with served(transport="sse") as server:
        assert server.url.endswith("/sse")
        config = {"mcpServers": {name: {"type": "sse", "url": server.url} for name in SEEDS}}
        (tmp_path / "mcp.json").write_text(json.dumps(config))
        _asked_by_config(clients, tmp_path / "mcp.json")


def _asked_by_config(clients: NodeClients, config: Path) -> None:
    """The first call of each seed's example, by the servers' names in this file."""
    (first, *_), (empty, *_) = reflexion_walk(), memory_walk()
    for name, step in (("reflexion-thinking", first), ("reasoning-bank", empty)):
        arguments = ("--tool-name", step["tool"], "--tool-args-json", json.dumps(step["arguments"]))
        ran = clients.inspect("--config", str(config), "--server", name, "--method", "tools/call", *arguments)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        said = json.loads(ran.stdout)
        said = said.get("result", said)["structuredContent"]
        assert misfit(step["answer"], {k: v for k, v in said.items() if k not in step["also"]}) == ""
