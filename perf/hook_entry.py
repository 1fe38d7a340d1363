"""What a hook adds to a session: the program `mulligan-hook`, and the tool `hook` of a server that runs.

python perf/hook_entry.py [RUNS]

Medians: the time that the agent waits, and CPU (user and system). The program: from its start to its end, in turns with
Python alone. The tool: from the request to its answer, over stdio. The bank has 60 lessons. Linux only.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from mcp_parts.processes import Command, running

from mulligan.app.memory import open_bank
from mulligan.hooks.project import project_id
from mulligan.sessions.signature import digest, signature

OUTPUT = "Traceback (most recent call last):\n  File \"/a/b.py\", line 3\nModuleNotFoundError: No module named 'yaml'"
CALL: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "python app.py"}}
MOMENTS: dict[str, dict[str, Any]] = {
    "start": {"hook_event_name": "SessionStart", "source": "startup"},
    "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "install the package-7 for app7.py"},
    "before a tool": {"hook_event_name": "PreToolUse", **CALL},
    "failure": {"hook_event_name": "PostToolUseFailure", **CALL, "error": OUTPUT},
    "success (Codex)": {"hook_event_name": "PostToolUse", **CALL},
    "stop": {"hook_event_name": "Stop"},
}


async def fill(folder: str, lessons: int) -> None:
    async with open_bank(project_id(folder)) as bank:
        for n in range(lessons):
            text = OUTPUT.replace("yaml", f"yaml{n}x")
            await bank.add(
                f"python: {text.splitlines()[-1]}",
                f"failed: python app{n}.py\nworked: uv pip install package-{n}",
                context={"errors": [digest(signature(text if n else OUTPUT))]},
                nature="fact",
                confirmed=bool(n % 2),
                tags=["hook"],
            )


def payload(moment: str, folder: str, number: int) -> dict[str, Any]:
    session = {"session_id": f"{moment} {number}", "tool_use_id": f"t{number}"}
    return {"cwd": folder, "transcript_path": "", **session, **MOMENTS[moment]}


def agent_of(moment: str) -> str:
    return "codex" if "Codex" in moment else "claude"


def run(command: list[str], given: bytes) -> tuple[float, float]:
    """CPU and time of one run, in milliseconds."""
    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=file, stdout=subprocess.DEVNULL)
        _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        return (used.ru_utime + used.ru_stime) * 1000, (time.perf_counter() - began) * 1000


def program(folder: str, runs: int) -> dict[str, list[tuple[float, float]]]:
    python = [sys.executable, "-I", "-c"]
    alone = {"python -I -c pass": "pass", "python -I -c 'import json, sqlite3'": "import json, sqlite3"}
    rows: dict[str, list[tuple[float, float]]] = {}
    script = str(Path(sys.executable).parent / "mulligan-hook")
    for number in range(runs + 1):
        for name, code in alone.items():
            rows.setdefault(name, []).append(run([*python, code], b""))
        for moment in MOMENTS:
            given = json.dumps(payload(moment, folder, number)).encode()
            rows.setdefault(f"mulligan-hook, {moment}", []).append(run([script, agent_of(moment)], given))
    return {name: measured[1:] for name, measured in rows.items()}  # the first one writes the bytecode


def tool(folder: str, runs: int) -> dict[str, list[tuple[float, float]]]:
    rows: dict[str, list[tuple[float, float]]] = {}
    serve = Command("serve", (sys.executable, "-m", "mulligan", "serve", "--tools", "memory,hooks"), {})
    with running(serve, "2025-06-18") as server:

        def ask(moment: str, number: int) -> float:
            arguments = {"agent": agent_of(moment), **payload(moment, folder, number)}
            began = time.perf_counter()
            server.client.ask("tools/call", {"name": "hook", "arguments": arguments})
            return (time.perf_counter() - began) * 1000

        for moment in MOMENTS:
            ask(moment, -1)
            cpu = server.cpu()
            walls = [ask(moment, runs + number + 1) for number in range(10 * runs)]
            each = (server.cpu() - cpu) / len(walls) * 1000
            rows[f"tool hook, {moment}"] = [(each, wall) for wall in walls]
    return rows


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        os.environ |= {"MULLIGAN_HOME": home, "MULLIGAN_HOOKS_SECONDS": "10"}
        asyncio.run(fill(folder, 60))
        print(f"{runs} runs each, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        for name, measured in {**program(folder, runs), **tool(folder, runs)}.items():
            cpus, walls = zip(*measured, strict=True)
            print(f"{name:40} CPU {median(cpus):6.1f} ms   time {median(walls):6.1f} ms, least {min(walls):.1f} ms")
        print(f"load {os.getloadavg()[0]:.1f} at the end")


main()
