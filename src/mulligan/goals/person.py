"""Whether a command comes from a person, and not from the session of a coding agent.

An agent that could set its goal could replace it by `true`. What is known of an agent's session is its environment and
the processes above: both can be hidden by whoever runs as the same user, as docs/goal.md says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

MARKS = (
    *("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"),
    *("GEMINI_CLI", "QWEN_CODE", "OPENCODE", "CURSOR_AGENT", "COPILOT_CLI"),
)
"""Variables that agents set for the commands that they run."""
_PROGRAMS = ("claude", "codex", "gemini", "qwen", "opencode", "cursor-agent", "copilot")
_DEEPEST = 64


def agent_above(environ: Mapping[str, str] = os.environ) -> str:
    """What shows that a coding agent has started this process; "" for nothing."""
    if mark := next((name for name in MARKS if environ.get(name)), ""):
        return f"the variable {mark} is set"
    return next((f"it runs below {program} (process {pid})" for pid, program in _above() if program), "")


def nested(agent: str, environ: Mapping[str, str] = os.environ) -> str:
    """What shows that no person typed the prompt that this agent's hook reads; "" for nothing.

    A coding agent started the agent's session, or the hook itself: Claude Code names the project's folder to hooks, and
    not to the commands of the model.
    """
    if agent == "claude" and environ.get("CLAUDECODE") and not environ.get("CLAUDE_PROJECT_DIR"):
        return "a command of the agent has started this hook (CLAUDECODE is set, and CLAUDE_PROJECT_DIR is not)"
    programs = list(_above())
    own = next((n for n, (_, program) in enumerate(programs) if program), len(programs))
    beyond = next((n for n in range(own, len(programs)) if not programs[n][1]), len(programs))
    return next(
        (f"{program} (process {pid}) has started this session" for pid, program in programs[beyond:] if program), ""
    )


def _above() -> Iterator[tuple[int, str]]:
    """The processes above this one, each with the name of the coding agent that it is, else ""."""
    pid = os.getppid()
    for _ in range(_DEEPEST):
        if pid <= 1:
            return
        names = {os.path.basename(word).removesuffix(".js").removesuffix(".exe") for word in _words(pid)[:2]}
        yield pid, next((name for name in _PROGRAMS if name in names), "")
        pid = _parent(pid)


def _words(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(4096).decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
