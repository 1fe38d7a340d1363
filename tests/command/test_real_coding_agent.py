"""The default, rehearsed with the command line of a real coding agent (Qwen Code) and a scripted model on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from command_project import CALC, PYTEST, git, project
from node_clients import NodeClients, installed
from provider_server import ProviderServer

pytestmark = pytest.mark.slow

NOTES = "## Existing memory files"
"""In a request that the agent makes for notes of its own."""
HALF = CALC.replace("return 0", "return a + b", 1)
WHOLE = HALF.replace("return 0", "return a - b", 1).replace("return 0", "return a * b", 1)
ENDING = 300.0


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> NodeClients:
    return installed(tmp_path_factory.mktemp("agent"), Path(__file__).parent / "coding_agent")


def writes(content: str) -> list[Any]:
    """A model's answers of one turn: it reads calc.py, writes it, and ends."""
    fill = {"folder": r"working in the directory: (/[^\\\s\"]+)"}
    read = {"name": "read_file", "arguments": {"file_path": "{folder}/calc.py"}}
    write = {"name": "write_file", "arguments": {"file_path": "{folder}/calc.py", "content": content}}
    return [{"calls": [read], "fill": fill}, {"calls": [write], "fill": fill}, "calc.py is mended."]


def asked(request: Any) -> str:
    """The newest message of the user's in a request: the prompt that the agent was given."""
    users = [message for message in request["messages"] if message["role"] == "user"]
    return json.dumps(users[-1]["content"], ensure_ascii=False)


async def rehearsed(tmp: Path, node: NodeClients, answers: list[Any], *options: str) -> tuple[str, list[Any]]:
    """What `mulligan solve` says of the run, and the bodies of the requests that the model got."""
    home = tmp / "home"
    (home / ".qwen").mkdir(parents=True)
    folder = project(tmp / "user")
    async with ProviderServer([{"when": NOTES, "answer": "Nothing to keep."}, *answers]) as server:
        provider = {"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1"}
        env = {**os.environ, **provider, "OPENAI_MODEL": "scripted", "HOME": str(home), "MULLIGAN_HOME": str(tmp / "m")}
        cli = node.folder / "node_modules" / "@qwen-code" / "qwen-code" / "cli.js"
        agent = f"command:{quote(str(node.node))} {quote(str(cli))} --auth-type openai --approval-mode auto-edit"
        command = ("solve", "Make the failing tests pass.", "--actor", agent, "--check", PYTEST, *options)
        ran = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mulligan", *command, "--workspace", str(folder)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=env,
        )
        try:
            said, _ = await asyncio.wait_for(ran.communicate(), ENDING)
        finally:
            if ran.returncode is None:
                ran.kill()
        bodies = [request.body for request in server.script.received if NOTES not in request.text]
    assert ran.returncode == 0, said.decode()
    (branch,) = git(folder, "branch", "--list", "mulligan/*", "--format=%(refname:short)").split()
    assert git(folder, "show", f"{branch}:calc.py") == WHOLE
    assert git(folder, "status", "--porcelain") == ""
    return said.decode(), bodies


async def test_a_real_agent_is_shown_what_the_check_printed(tmp_path: Path, node: NodeClients) -> None:
    said, bodies = await rehearsed(tmp_path, node, [*writes(HALF), *writes(WHOLE)])
    assert "strategy evidence: the actor is a command and no model is named, so there is no reflection" in said
    assert "solved on try 2 of 4" in said
    first, second = asked(bodies[0]), asked(bodies[3])
    assert "Make the failing tests pass." in first
    assert "FAILED test_calc.py::test_sub" in second
    assert "2 failed, 1 passed in" in second
    assert "The files are as your previous attempt left them." in second


async def test_a_real_agent_reflects_itself(tmp_path: Path, node: NodeClients) -> None:
    lesson = "sub and mul return 0 as well: they should return a - b and a * b."
    said, bodies = await rehearsed(tmp_path, node, [*writes(HALF), lesson, *writes(WHOLE)], "--reflector", "self")
    assert f"try 1 of 4: lesson: {lesson}" in said
    question, second = asked(bodies[3]), asked(bodies[4])
    assert "what you would do otherwise" in question
    assert "2 failed, 1 passed in" in question
    assert f"- {lesson}" in second
    assert "2 failed, 1 passed in" in second
