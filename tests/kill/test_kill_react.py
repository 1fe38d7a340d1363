"""kill -9 in the middle of a react step: finished tool calls are not made again, the one in flight is reported."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from seed_agents import lay

from mulligan.app.trusting import trust

SUPPORT = Path(__file__).parent.parent / "support"
MULLIGAN = [sys.executable, "-m", "mulligan"]
SECONDS = 60.0
ANSWERS: list[dict[str, Any]] = [
    {"calls": [{"name": "read_skill", "arguments": {"name": "digging"}}]},
    {"calls": [{"name": "effects_note", "arguments": {"text": "one"}}], "answer": "I note it."},
    {"calls": [{"name": "effects_stall", "arguments": {}}]},
    {"calls": [{"name": "finish", "arguments": {"key": "done", "value": "dug"}}]},
]
AGENT = """---
name: digger
description: Digs.
version: "1.0.0"
pattern: react
call:
  uses: [digging]
---
Dig, and finish.
"""
SKILL = """---
name: digging
description: How to dig.
tools: ["mcp:effects"]
---
Note it, then stall.
"""


@pytest.fixture
def provider(tmp_path: Path) -> Generator[int]:
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps(ANSWERS))
    command = [sys.executable, str(SUPPORT / "provider_server.py"), "--answers", str(answers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.kill()


def project(folder: Path, log: Path) -> None:
    command = json.dumps([sys.executable, str(SUPPORT / "mcp_effects_server.py"), str(log)])
    toml = f"[mcp.effects]\ncommand = {command}\n"
    lay(folder, {"mulligan.toml": toml, "agents/digger/AGENT.md": AGENT, "skills/digging/SKILL.md": SKILL})
    trust(folder)


def stalled(pipe: Path) -> int:
    """The end of a pipe at which the stalled call is heard of."""
    os.mkfifo(pipe)
    return os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)


def asked(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/_log", timeout=10) as log:
        return len(json.load(log)["requests"])


@pytest.mark.slow
def test_a_killed_react_step_goes_on_behind_its_last_finished_call(tmp_path: Path, provider: int) -> None:
    log = tmp_path / "effects.log"
    project(tmp_path, log)
    pipe = stalled(log.with_suffix(".pipe"))
    env = {**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"http://127.0.0.1:{provider}/v1"}

    def mulligan(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*MULLIGAN, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    with subprocess.Popen(
        [*MULLIGAN, "run", "digger", "dig", "--model", "openai:m", "--quiet"], cwd=tmp_path, env=env
    ) as run:
        assert select.select([pipe], [], [], SECONDS)[0], "the tool was never called"
        run.kill()
    (listed,) = json.loads(mulligan("runs", "list", "--json").stdout)
    assert asked(provider) == 3

    resumed = mulligan("runs", "resume", listed["run"])
    assert resumed.returncode == 3, resumed.stderr
    assert "trial.1/act/tool.effects_stall#1" in resumed.stderr
    assert "--fork" in resumed.stderr
    assert log.read_text().splitlines() == ["one", "stall"]

    log.with_suffix(".go").touch()
    forked = mulligan("runs", "resume", listed["run"], "--fork", "--trace")
    assert (forked.returncode, forked.stdout.strip()) == (0, "dug"), forked.stderr
    assert log.read_text().splitlines() == ["one", "stall", "stall"]
    assert "tool.effects_note#1 (recorded)" in forked.stderr
    assert asked(provider) == 4
