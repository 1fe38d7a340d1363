"""A small headless coding agent that writes one file, and three ways in which it comes to an end.

- own: it ends when it says that it is done, or writes the file again as it is.
- blind: it runs the tests itself, and is told to go on, without why, until they pass.
- goal: `mulligan goal` holds it by the Stop hook of Claude Code, and what that says is its next prompt.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from check import SECONDS, Repository, passes

from mulligan.goals.person import MARKS
from mulligan.plugins import Message, Model, Question, Sampling

ARMS = ("own", "blind", "goal")
TRIES, TOKENS, TEMPERATURE = 3, 350, 0.8
"""Edits at most; tokens of an answer at most."""
CHECK = "python -m pytest -q"
SYSTEM = (
    "You are a coding agent. You change the file {file} so that it does what the task and its docstrings say. "
    "Answer each message with the whole new text of {file} in one ```python block, and nothing else."
)
TASK = "{task}\n\n{file}:\n```python\n{module}```\n\ntest_{file}:\n```python\n{tests}```"
DONE = "If the task is done now, answer only DONE. If not, answer with the whole file again."
GO_ON = "The tests do not pass yet. Go on until they pass."
_BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


@dataclass
class Try:
    """An edit. `tokens` are those of the session so far, `visible` and `hidden` whether these tests pass then."""

    module: str
    tokens: int
    visible: bool
    hidden: bool


@dataclass
class Session:
    """A session of the agent.

    Attributes:
        claims: whether it ended as done: by its own word, by the tests, by the goal.
        said: what the agent was answered after each try.
    """

    task: str
    arm: str
    tries: list[Try] = field(default_factory=list[Try])
    said: list[str] = field(default_factory=list[str])
    claims: bool = False
    tokens: int = 0
    seconds: float = 0.0


class Answers:
    """The model, with its answers kept in a file: a question that was asked before, by whichever arm, has the same."""

    def __init__(self, model: Model, file: Path) -> None:
        self._model, self._file = model, file
        rows = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        self._known: dict[str, Any] = {row["key"]: row for row in map(json.loads, rows)}

    async def ask(self, messages: list[Message], seed: int, most: int) -> tuple[str, int]:
        """The text, and how many tokens the question and it have."""
        asked = json.dumps([[(one.role, one.text) for one in messages], seed, most, TEMPERATURE])
        key = hashlib.sha256(asked.encode()).hexdigest()
        if key not in self._known:
            sampling = Sampling(temperature=TEMPERATURE, max_tokens=most, seed=seed)
            began = time.monotonic()
            answer = await self._model.ask(Question(tuple(messages)), sampling)
            tokens = [answer.usage.input_tokens, answer.usage.output_tokens]
            text = str(answer.content)
            row = {"key": key, "text": text, "tokens": tokens, "seconds": round(time.monotonic() - began, 1)}
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            self._known[key] = row
        return self._known[key]["text"], sum(self._known[key]["tokens"])


class Held:
    """A folder under `mulligan goal`, with an own home, and the hooks of Claude Code there."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder = folder
        self._bin = Path(sys.executable).parent
        self._env = {name: value for name, value in environment().items() if name not in MARKS}
        self._env |= {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "MULLIGAN_HOME": str(home / "own")}
        self._run("mulligan", "hooks", "install", "claude", "--yes")
        self._run("mulligan", "goal", CHECK, "--tries", str(TRIES), "--check-seconds", str(SECONDS))

    def _run(self, program: str, *words: str, given: str = "") -> str:
        ran = subprocess.run(
            [self._bin / program, *words], cwd=self._folder, env=self._env, input=given, capture_output=True, text=True
        )
        if ran.returncode:
            raise RuntimeError(f"{program} {' '.join(words)}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def hook(self, event: str, **payload: Any) -> str:
        """The reason for which the agent is held; "" for none."""
        given = {"hook_event_name": event, "session_id": "study", "cwd": str(self._folder), "transcript_path": ""}
        return json.loads(self._run("mulligan-hook", "claude", given=json.dumps({**given, **payload})) or "{}").get(
            "reason", ""
        )

    def state(self) -> str:
        return json.loads(self._run("mulligan", "goal", "--json"))["state"]


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def tests_pass(folder: Path) -> bool:
    """Whether the agent's own run of the visible tests passes."""
    try:
        ran = subprocess.run(CHECK.split(), cwd=folder, env=environment(), capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return ran.returncode == 0


def commit(project: Path) -> None:
    git = ["git", "-c", "user.name=Study", "-c", "user.email=study@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=project, check=True)


async def work(repository: Repository, arm: str, answers: Answers, folder: Path) -> Session:
    """Let the agent work on a repository in an empty folder."""
    began = time.monotonic()
    project = folder / "project"
    repository.write(project)
    commit(project)
    session = Session(repository.name, arm)
    held = Held(project, folder / "home") if arm == "goal" else None
    prompt = TASK.format(
        file=repository.file, **{name: getattr(repository, name) for name in ("task", "module", "tests")}
    )
    if held:
        held.hook("UserPromptSubmit", prompt=prompt)
    messages = [Message("system", SYSTEM.format(file=repository.file)), Message("user", prompt)]
    while True:
        text, tokens = await answers.ask(messages, len(session.tries) + 1, TOKENS)
        session.tokens += tokens
        block = _BLOCK.search(text)
        if arm == "own" and session.tries and (not block or block[1] == session.tries[-1].module):
            session.claims = True
            break
        if block:
            (project / repository.file).write_text(block[1], encoding="utf-8")
        module = (project / repository.file).read_text(encoding="utf-8")
        visible, hidden = (passes(repository, module, tests) for tests in (repository.tests, repository.hidden))
        session.tries.append(Try(module, session.tokens, visible, hidden))
        messages.append(Message("assistant", text))
        said = DONE if arm == "own" else GO_ON
        if held:
            said = held.hook("Stop", last_assistant_message=text)
            session.claims = held.state() == "passed"
        elif arm == "blind":
            session.claims = tests_pass(project)
        session.said.append(said)
        if session.claims or not said:
            break
        messages.append(Message("user", said))
        if len(session.tries) == TRIES:
            if arm == "own":
                text, tokens = await answers.ask(messages, TRIES + 1, 8)
                session.tokens += tokens
                session.claims = "DONE" in text
            break
    session.seconds = round(time.monotonic() - began, 1)
    return session


def as_json(session: Session) -> str:
    return json.dumps(asdict(session), indent=1)
