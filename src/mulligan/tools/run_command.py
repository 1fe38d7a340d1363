"""Runs a shell command in the workspace, confined by the sandbox and without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from mulligan.core.errors import InvalidInput, ToolError
from mulligan.core.protocols import Job, Ran, Sandbox
from mulligan.core.questions import Tool
from mulligan.core.records import Json
from mulligan.text.plain import count
from mulligan.tools._folder import OneTool, parameters

OUT, ERR = 8_000, 3_000
"""Characters of standard output and of standard error that are shown, half of them from the end."""


class RunCommand(OneTool):
    """Passes the command to `sh -c`. In the sandbox a shell can do no more than any other program.

    A status other than 0 is not an error: it is the first line of the answer.
    """

    def __init__(
        self,
        *,
        folder: str,
        sandbox: Sandbox,
        seconds: Annotated[float, "The time limit for a call, in seconds."] = 60,
        memory: Annotated[int, "Maximum memory for a command, in megabytes."] = 1024,
        readable: Annotated[
            Sequence[str], "Folders outside the workspace that a command may read, such as a virtual environment."
        ] = (),
    ) -> None:
        if seconds <= 0:
            raise InvalidInput(f"A command's time limit in seconds must be greater than 0, not {seconds}.")
        self._folder, self._sandbox = folder, sandbox
        self._seconds, self._memory, self._readable = seconds, memory, tuple(readable)
        command = {"type": "string", "minLength": 1, "description": "As for a shell: pipes and && work."}
        about = (
            "Run a shell command in the workspace's folder, which it may change. There is no network, and it is ended "
            f"after {seconds:g} seconds."
        )
        self._tool = Tool("run_command", about, parameters(command=command), changes=True)

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> str:
        given: Mapping[str, Any] = arguments
        command: str = given["command"]
        if "\0" in command or not _encodes(command):
            raise ToolError("the command contains characters that are not allowed in a command")
        job = Job(
            ("sh", "-c", command),
            cwd=self._folder,
            env={"PWD": self._folder},
            writable=(self._folder,),
            readable=self._readable,
            seconds=self._seconds,
            memory=self._memory,
        )
        return _answer(await self._sandbox.run(job), self._seconds)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _answer(ran: Ran, seconds: float) -> str:
    if ran.timed_out:
        how = f"stopped after {count(seconds, 'second')}"
    else:
        how = "killed" if ran.exit_code is None else f"exit status {ran.exit_code}"
    out, err = _shortened(ran.stdout, OUT), _shortened(ran.stderr, ERR)
    return "\n".join(part for part in (how, out, err and f"[on standard error]\n{err}") if part)


def _shortened(text: str, most: int) -> str:
    """The head and the tail of a long text, with the number of characters cut between."""
    text = text.strip("\n")
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[… {len(text) - most:,} characters cut …]\n{text[-(most // 2) :]}"
