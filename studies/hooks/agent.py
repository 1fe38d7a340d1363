"""A small coding agent with one tool, a shell, and the hooks of Claude Code.

    python studies/hooks/agent.py --model local:qwen2.5-coder-1.5b < PROMPT

It works in the present folder, calls `mulligan-hook claude` as Claude Code does, adds what the hooks answer to the
conversation, and writes a transcript in Claude Code's form into `MULLIGAN_HOME`. The last line that it prints says how
many tokens it took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from mulligan.core.home import home
from mulligan.models.catalog import open_model
from mulligan.plugins import Message, Question, Sampling

STEPS, SAME = 5, 3
"""Commands at most; the same command so often in a row ends the session, too."""
TOKENS, SHOWN, SECONDS = 100, 500, 20.0
"""Tokens of an answer, characters of an output that the model is shown, seconds of a command."""
SYSTEM = """You are a coding agent with a shell. Answer each message with one command in a bash block.
When a command has done the task, answer DONE instead."""
EXAMPLE: tuple[tuple[Literal["user", "assistant"], str], ...] = (
    ("user", "Task: I need the file all.txt. `cat a b > all.txt` writes it."),
    ("assistant", "```bash\ncat a b > all.txt\n```"),
    ("user", "Exit code 1\ncat: b: No such file or directory"),
    ("assistant", "```bash\nls\n```"),
    ("user", "a\nb.txt"),
    ("assistant", "```bash\ncat a b.txt > all.txt\n```"),
    ("user", "(no output)"),
    ("assistant", "DONE"),
)
NUDGE = "`{}` failed, and was not run again. Run it again, or answer DONE again."
"""The first answer to a DONE behind a failure that was not overcome."""
NO_COMMAND = "No command was run yet."
_BLOCK = re.compile(r"```(?:bash|sh|shell)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


@dataclass
class Session:
    """One session: its hooks and its transcript."""

    folder: str
    transcript: Path
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    hooks: bool = True
    calls: int = 0

    def hook(self, event: str, **payload: Any) -> str:
        """What the hooks want the model to read; "" for nothing."""
        if not self.hooks:
            return ""
        given = {"hook_event_name": event, "session_id": self.id, "cwd": self.folder, **payload}
        given["transcript_path"] = str(self.transcript)
        program = Path(sys.executable).with_name("mulligan-hook")
        ran = subprocess.run([program, "claude"], input=json.dumps(given), capture_output=True, text=True, check=True)
        answer: dict[str, Any] = json.loads(ran.stdout or "{}")
        return answer.get("hookSpecificOutput", {}).get("additionalContext", "")

    def write(self, role: str, content: Any) -> None:
        row = {
            "type": role,
            "uuid": str(uuid.uuid4()),
            "sessionId": self.id,
            "cwd": self.folder,
            "timestamp": datetime.now(UTC).isoformat(),
            "message": {"role": role, "content": content},
        }
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def run(self, command: str) -> tuple[int, str]:
        """Runs a command; its exit code, and what the model is shown of it."""
        self.calls += 1
        id = f"toolu_{self.id[:8]}{self.calls:04}"
        self.write("assistant", [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}])
        code, output = shell(command, self.folder)
        said = f"Exit code {code}\n{output}" if code else output
        result = {"type": "tool_result", "tool_use_id": id, "is_error": bool(code), "content": said}
        self.write("user", [result])
        shown = said if len(said) <= SHOWN else f"{said[: SHOWN // 2]}\n[...]\n{said[-SHOWN // 2 :]}"
        if not code:
            return 0, shown.strip() or "(no output)"
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id}
        lessons = self.hook("PostToolUseFailure", **call, error=said, is_interrupt=False)
        return code, "\n\n".join(filter(None, (shown.strip(), lessons)))


def shell(command: str, folder: str) -> tuple[int, str]:
    """The exit code and the output of a command, which is killed with all that it started when its time is over."""
    running = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = running.communicate(timeout=SECONDS)
        return running.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        output, _ = running.communicate()
        return 124, f"{output}\nerror: the command took longer than {SECONDS:.0f} seconds"


async def work(model_name: str, prompt: str, session: Session, say: Any = print) -> Mapping[str, int]:
    """Works on the task until the model is done; the tokens."""
    model = open_model(model_name)
    added = [session.hook("SessionStart", source="startup"), session.hook("UserPromptSubmit", prompt=prompt)]
    session.write("user", prompt)
    messages = [Message("system", SYSTEM), *(Message(role, text) for role, text in EXAMPLE)]
    messages.append(Message("user", "\n\n".join(filter(None, (*added, f"Task: {prompt}")))))
    tokens = {"input_tokens": 0, "output_tokens": 0}
    commands: list[str] = []
    asked, failed = False, ""
    while len(commands) < STEPS:
        answer = await model.ask(Question(tuple(messages)), Sampling(temperature=0.0, max_tokens=TOKENS, seed=0))
        text = str(answer.content).strip()
        tokens["input_tokens"] += answer.usage.input_tokens
        tokens["output_tokens"] += answer.usage.output_tokens
        say(f"< {text}")
        if not (found := _BLOCK.search(text)) or not (command := found[1].strip()):
            session.write("assistant", [{"type": "text", "text": text or "(nothing)"}])
            if asked or (commands and not failed):
                break
            asked = True
            messages += [Message("assistant", text), Message("user", NUDGE.format(failed) if failed else NO_COMMAND)]
            continue
        commands.append(command)
        code, shown = session.run(command)
        failed = command if code else "" if command == failed else failed
        say(f"> {shown}")
        if commands[-SAME:] == [command] * SAME:
            break
        messages += [Message("assistant", text[: found.end()]), Message("user", shown)]
    session.hook("SessionEnd", reason="other")
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    given = parser.parse_args()
    id = str(uuid.uuid4())
    session = Session(os.getcwd(), home() / "transcripts" / f"{id}.jsonl", id)
    tokens = asyncio.run(work(given.model, sys.stdin.read().strip(), session))
    print(json.dumps({"usage": tokens}))


if __name__ == "__main__":
    main()
