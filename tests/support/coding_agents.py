"""The command lines of coding agents of five makers, run without a terminal against a scripted model on loopback.

npm installs them at exact versions, of 100 to 400 MB each, into a folder that the tests share: `MULLIGAN_TEST_NPM`, else
one that goes with the run.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from node_clients import NodeClients, find_node, shared_package
from provider_server import ProviderServer, Received, tools_of

ENDING = 180.0
"""Seconds within which a session ends on a busy machine."""
TASKS = """\
import pathlib, sys
made = pathlib.Path(__file__).with_name("orders.schema")
if sys.argv[1] == "generate":
    made.write_text("orders")
    print("generated", made.name)
elif made.exists():
    print("the report is written")
else:
    sys.exit(f"SchemaError: the schema of orders is not generated: {made} is missing")
"""
FAILS, MENDS = "python3 tasks.py report", "python3 tasks.py generate"


TASK = "Do what was asked for."
"""What a sub-agent is told."""


@dataclass(frozen=True)
class CodingAgent:
    """How a coding agent is installed and run.

    Attributes:
        program: below node_modules; a file of JavaScript is run by Node.
        options: `{prompt}` is the prompt. They let it run tools without a question.
        resume: the options that go on with the session `{session}`.
        delegates: calls by which it hands `TASK` to a sub-agent and waits for it; `{spawned}` is the sub-agent's id.
        tool: its tool for commands, and the arguments with the command as `{command}`.
        env: `{url}` is the address of the model, without a path.
        files: what it needs in its home besides, with `{url}`.
    """

    name: str
    package: str
    version: str
    program: str
    options: tuple[str, ...]
    tool: tuple[str, dict[str, Any]]
    env: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    resume: tuple[str, ...] = ()
    delegates: tuple[dict[str, Any], ...] = ()

    def call(self, command: str, id: str) -> dict[str, Any]:
        """A call of its tool for commands, as the provider's script has it."""
        name, arguments = self.tool
        filled = {key: command if value == "{command}" else value for key, value in arguments.items()}
        return {"id": id, "name": name, "arguments": filled}


CLAUDE = CodingAgent(
    "claude",
    "@anthropic-ai/claude-code",
    "2.1.330",
    "@anthropic-ai/claude-code-linux-x64/claude",
    options=("-p", "{prompt}", "--allowedTools", "Bash"),
    resume=("-p", "{prompt}", "--allowedTools", "Bash", "--resume", "{session}"),
    tool=("Bash", {"command": "{command}", "description": "runs it"}),
    delegates=(
        {
            "name": "Agent",
            "arguments": {
                "description": "does it",
                "prompt": TASK,
                "subagent_type": "general-purpose",
                "run_in_background": False,
            },
        },
    ),
    env={
        "ANTHROPIC_API_KEY": "sk-none",
        "ANTHROPIC_BASE_URL": "{url}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    },
)
CODEX = CodingAgent(
    "codex",
    "@openai/codex",
    "0.169.0",
    "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    options=("exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "{prompt}"),
    resume=(
        *("exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"),
        *("resume", "{session}", "{prompt}"),
    ),
    tool=("exec_command", {"cmd": "{command}"}),
    delegates=(
        {"namespace": "multi_agent_v1", "name": "spawn_agent", "arguments": {"message": TASK, "agent_type": "worker"}},
        {"namespace": "multi_agent_v1", "name": "wait_agent", "arguments": {"targets": ["{spawned}"]}},
    ),
    env={"LOOPBACK_KEY": "none"},
    files={
        ".codex/config.toml": 'model = "scripted"\nmodel_provider = "loopback"\n[model_providers.loopback]\n'
        'name = "loopback"\nbase_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "LOOPBACK_KEY"\n'
        "request_max_retries = 0\nstream_max_retries = 0\n"
    },
)
GEMINI = CodingAgent(
    "gemini",
    "@google/gemini-cli",
    "0.61.0",
    "@google/gemini-cli/bundle/gemini.js",
    options=("--skip-trust", "--yolo", "-m", "gemini-2.5-flash", "-p", "{prompt}"),
    resume=("--skip-trust", "--yolo", "-m", "gemini-2.5-flash", "-p", "{prompt}", "--resume", "{session}"),
    tool=("run_shell_command", {"command": "{command}"}),
    env={"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "{url}"},
    files={".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}\n'},
)
OPENCODE = CodingAgent(
    "opencode",
    "opencode-ai",
    "1.18.33",
    "opencode-linux-x64/bin/opencode",
    options=("run", "{prompt}"),
    resume=("run", "--session", "{session}", "{prompt}"),
    tool=("bash", {"command": "{command}", "description": "runs it"}),
    env={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    files={
        ".config/opencode/opencode.json": json.dumps(
            {
                "provider": {
                    "loopback": {
                        "npm": "@ai-sdk/openai-compatible",
                        "name": "loopback",
                        "options": {"baseURL": "{url}/v1", "apiKey": "none"},
                        "models": {"scripted": {"name": "scripted"}},
                    }
                },
                "model": "loopback/scripted",
                "small_model": "loopback/scripted",
                "permission": "allow",
                "share": "disabled",
            }
        )
    },
)
QWEN = CodingAgent(
    "qwen",
    "@qwen-code/qwen-code",
    "0.24.4",
    "@qwen-code/qwen-code/cli.js",
    options=("--auth-type", "openai", "--yolo", "-p", "{prompt}"),
    resume=("--auth-type", "openai", "--yolo", "-p", "{prompt}", "--resume", "{session}"),
    tool=("run_shell_command", {"command": "{command}", "is_background": False}),
    env={"OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted", "OPENAI_BASE_URL": "{url}/v1"},
)


def installed(agent: CodingAgent, folder: Path) -> NodeClients:
    """The agent, from the folder that tests share, else in this one. Skips where Node is absent."""
    return NodeClients(find_node()[0], shared_package(agent.name, agent.package, agent.version, folder))


@dataclass
class Desk:
    """A user's home and project, with a coding agent and the model that it asks."""

    agent: CodingAgent
    node: NodeClients
    server: ProviderServer
    home: Path
    project: Path
    env: dict[str, str]
    sessions: int = 0
    within: tuple[str, ...] = ()
    """What each command line begins with, such as `SmallDisk.enter`."""

    async def session(
        self,
        prompt: str,
        commands: Sequence[str],
        *options: str,
        resumed: str = "",
        kill: bool = False,
        when: Mapping[str, str] | None = None,
        delegated: bool = False,
        script: Sequence[Any] | None = None,
    ) -> list[Received]:
        """Run a session in which the model calls for these commands, one after the other, and then ends.

        Args:
            options: Further ones of the agent's.
            resumed: The id of the session that goes on.
            kill: Kill the agent where it would end.
            when: What the model says instead to requests that hold a text.
            delegated: The commands are run by a sub-agent.
            script: What the model says instead, as the provider has it.

        Returns:
            The requests that the model got and that offer tools.
        """
        self.sessions += 1
        calls = [self.agent.call(command, f"call_{self.sessions}_{number}") for number, command in enumerate(commands)]
        end = {"hang": True} if kill else {"answer": "That is all."}
        spoken: list[Any] = [{"after": number, "calls": [call]} for number, call in enumerate(calls)]
        first: list[Any] = [{"when": text, "answer": answer} for text, answer in (when or {}).items()]
        if delegated:
            fill = {"spawned": r"agent_id\W+([0-9a-f-]{36})"}
            first += [
                {"when": prompt, "after": number, "calls": [{**call, "id": f"main_{number}"}], "fill": fill}
                for number, call in enumerate(self.agent.delegates)
            ]
            first.append({"when": prompt, "after": len(self.agent.delegates), "answer": "It is done."})
        told = [*first, *spoken, {"after": len(calls), **end}] if script is None else script
        self.server.script.load([*told, {"when": "", "answer": "ok"}])
        start = self.agent.resume if resumed else self.agent.options
        words = [word.replace("{prompt}", prompt).replace("{session}", resumed) for word in (*start, *options)]
        program = self.node.folder / "node_modules" / self.agent.program
        node = [str(self.node.node)] if program.suffix == ".js" else []
        ran = await self._started(*node, str(program), *words)
        try:
            if kill:
                await asyncio.wait_for(self.server.script.hanging.wait(), ENDING)
                os.killpg(ran.pid, signal.SIGKILL)
            said, _ = await asyncio.wait_for(ran.communicate(), ENDING)
        finally:
            if ran.returncode is None:
                os.killpg(ran.pid, signal.SIGKILL)
        assert kill or ran.returncode == 0, said.decode()
        return [request for request in self.server.script.received if tools_of(request.body)]

    async def mulligan(self, *words: str, status: int = 0) -> str:
        """What a command of Mulligan's prints that ends with this status."""
        ran = await self._started(sys.executable, "-m", "mulligan", *words)
        said, _ = await asyncio.wait_for(ran.communicate(), ENDING)
        assert ran.returncode == status, said.decode()
        return said.decode()

    async def _started(self, *words: str) -> asyncio.subprocess.Process:
        none, pipe, both = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        return await asyncio.create_subprocess_exec(
            *self.within,
            *words,
            cwd=self.project,
            env=self.env,
            stdin=none,
            stdout=pipe,
            stderr=both,
            start_new_session=True,
        )


@dataclass(frozen=True)
class SmallDisk:
    """A disk of 2 MB that is mounted at a folder, for the programs that `enter` begins."""

    folder: Path
    enter: tuple[str, ...]

    async def fill(self) -> None:
        """Leave no block free."""
        await self._run(f'dd if=/dev/zero of="{self.folder}/ballast" bs=1k 2>/dev/null; :')

    async def empty(self) -> None:
        await self._run(f'rm "{self.folder}/ballast"')

    async def _run(self, line: str) -> None:
        ran = await asyncio.create_subprocess_exec(*self.enter, "sh", "-c", line)
        assert await asyncio.wait_for(ran.wait(), ENDING) == 0


@asynccontextmanager
async def small_disk(folder: Path, working: Path) -> AsyncGenerator[SmallDisk]:
    """Mount it, in a mount namespace that ends with the test. Skips where that is not allowed."""
    if os.geteuid() != 0 or shutil.which("nsenter") is None:
        pytest.skip("needs root")
    mounted = f'mkdir "{folder}" && mount -t tmpfs -o size=2m tmpfs "{folder}" && echo ready && read end'
    pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    holder = await asyncio.create_subprocess_exec(
        "unshare", "--mount", "sh", "-c", mounted, stdin=pipe, stdout=pipe, stderr=both
    )
    try:
        assert holder.stdout is not None
        said = await asyncio.wait_for(holder.stdout.readline(), ENDING)
        if b"not permitted" in said or b"denied" in said:
            pytest.skip("needs root")
        assert said == b"ready\n", said
        yield SmallDisk(folder, ("nsenter", f"--target={holder.pid}", "--mount", f"--wd={working}", "--"))
    finally:
        await holder.communicate(b"\n")


@asynccontextmanager
async def desk(agent: CodingAgent, folder: Path) -> AsyncGenerator[Desk]:
    """A home and a project of git's below `folder`, and a model that answers as scripted."""
    node = installed(agent, folder.parent)  # the run's, where `folder` is a test's tmp_path
    home, project = folder / "home", folder / "project"
    project.mkdir()
    home.mkdir()
    (project / "tasks.py").write_text(TASKS)
    git = shutil.which("git")
    assert git is not None
    await (await asyncio.create_subprocess_exec(git, "init", "-q", str(project))).wait()
    async with ProviderServer([]) as server:
        url = f"http://127.0.0.1:{server.port}"
        for name, text in agent.files.items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{url}", url))
        program = node.folder / "node_modules" / agent.program
        path = [str(Path(sys.executable).parent), str(node.node.parent), str(program.parent), os.environ["PATH"]]
        own = {"HOME": str(home), "MULLIGAN_HOME": str(folder / "mulligan"), "PATH": os.pathsep.join(path)}
        own["MULLIGAN_HOOKS_SECONDS"] = "20"  # a busy machine changes no verdict
        theirs = {name: value.replace("{url}", url) for name, value in agent.env.items()}
        kept = {name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX", "LANG", "TMPDIR") if name in os.environ}
        yield Desk(agent, node, server, home, project, {**kept, **own, **theirs})
