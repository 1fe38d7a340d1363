"""Runs a command-line agent as the actor: it changes the files of a workspace, and each trial is kept as a commit.

The command runs as the user would run it, with the user's environment; only its writes are confined, where the
kernel has Landlock. It knows nothing of git (the workspace does that) or of how the result is judged.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Literal

from mulligan.core.episode import newest_state
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.protocols import Checkout, Job, Journal, Prompts, Ran, Reply, Sandbox, Workspace
from mulligan.core.records import Artifact, Attempt, Episode, Json, Outcome, Past, Step, kept_text
from mulligan.sessions.agents import NAMES, agent
from mulligan.text.command_lines import split_line
from mulligan.text.formatting import TOKENS, past_text, task_text
from mulligan.text.plain import count
from mulligan.text.thoughts import answer_of
from mulligan.text.truncate import truncate_text

SLOTS = ("task", "recall", "past", "state")
ARGUMENT = 120_000
"""Bytes that fit into one argument of a command on Linux (131,072 with its end), with room to spare."""

HOMES = (
    *(path for name in NAMES for path in agent(name).writes or (agent(name).settings.folder,)),
    "~/.aider",
    "~/.config",
    "~/.cache",
    "~/.local/share",
    "~/.local/state",
    *("~/.npm", "~/.yarn", "~/.bun", "~/.cargo", "~/go", "~/.gradle", "~/.m2", "~/.nuget"),
)
"""Where common agents store their sessions and settings, and where the tools that they run have their caches."""

_SLOT = re.compile(r"\{prompt_file\}|\{prompt\}")
_STATES = {
    "first": "",
    "fresh": "The files are back in the state they had before your earlier attempts.",
    "last": "The files are as your previous attempt left them.",
}


class Command:
    """Runs the agent once for each trial. The state of the folder afterwards is the attempt.

    A non-zero exit is not an error: the trajectory and the attempt's `outcome.halted` name it.

    Args:
        command: the agent's command line, split as a shell would but run without one (write `sh -c '…'` for a shell).
            `{prompt}` is replaced by the prompt, `{prompt_file}` by the path of a file that holds it. Without either,
            the prompt goes to standard input.
        seconds: wall time of one trial. After it all processes of the agent are killed, and the state is judged.
        fresh: every trial starts from the user's tree as it was found, instead of from the last trial's state.
        writable: folders that the agent may write to besides the workspace and its TMPDIR, where writes can be
            confined. None means `HOMES`; a list replaces them. Missing folders are left out; "/" confines nothing.
        tokens: what a shown attempt, and the kept output of the agent, may each take.

    Raises:
        MulliganError: the user's own tree changed during the trial.
    """

    in_words = "a command"
    makes = "workspace"

    @classmethod
    def installed(cls) -> list[str]:
        """Coding agents of this machine, each as `--actor` takes it."""
        found = [name for name in NAMES if shutil.which(name)]
        return [f"command:{command}" for name in found if (command := agent(name).command)]

    def __init__(
        self,
        command: str,
        *,
        workspace: Workspace,
        journal: Journal,
        sandbox: Sandbox,
        prompts: Prompts,
        seconds: float = 1800,
        fresh: bool = False,
        writable: Sequence[str] | None = None,
        tokens: int = TOKENS,
    ) -> None:
        self._command = command
        self._argv = split_command(command)
        if seconds <= 0:
            raise InvalidInput(f"The agent's time limit in seconds must be greater than 0, not {seconds}.")
        self._workspace = workspace
        self._journal = journal
        self._sandbox = sandbox
        self._prompt = prompts.get("command.task").check(*SLOTS)
        self._seconds = seconds
        self._fresh = fresh
        self._writable = HOMES if writable is None else tuple(writable)
        self._tokens = tokens

    async def act(self, episode: Episode, past: Past) -> Attempt:
        place = await self._workspace.open(episode)
        number = len(episode.trials) + 1
        base = place.start if self._fresh else newest_state(episode) or place.start
        prompt = self._worded(episode, past, base == place.start)

        async def run() -> Json:
            return await self._run(place, number, base, prompt)

        # Repeatable: every run begins with a reset to `base`, so an interrupted run leaves nothing behind.
        request = {"command": self._command, "prompt": prompt, "state": base, "fresh": self._fresh}
        did = await self._journal.step("command", request, run, repeatable=True)
        await place.reset(did["state"])  # a recorded step was not run: the folder may be as the trial before left it
        return Attempt(
            did["diff"],
            (Step(action=self._command, observation=did["said"]),),
            Outcome(halted=did["halted"]) if did["halted"] else None,
            (Artifact("git", did["state"], place.folder),),
        )

    async def _run(self, place: Checkout, number: int, base: str, prompt: str) -> Json:
        await place.reset(base, ignored=self._fresh)
        ran = await self._sandbox.run(self._job(place, prompt))
        state, notes = await place.save(number, base)
        await check_tree(place, f"trial {number}")
        return {
            "state": state,
            "exit": ran.exit_code,
            "said": "\n".join(part for part in (_said(ran, self._tokens), *notes) if part),
            "halted": halted(ran, self._seconds),
            "diff": kept_text(await place.diff(state)),  # judged in the folder, not by this text
        }

    async def ask(self, episode: Episode, prompt: str) -> Reply:
        """What the agent prints for this prompt, in a temporary copy of the folder of its newest trial.

        It runs as in a trial: the same command line, confinement and wall time. Raises as `act` does.
        """
        state = newest_state(episode)
        if state is None:
            raise MulliganError("The agent has not made an attempt yet, so there is nothing to ask it about.")

        async def run() -> Json:
            async with self._workspace.aside(episode, state) as place:
                ran = await self._sandbox.run(self._job(place, prompt))
                await check_tree(place, "the question to the agent")
                return {
                    "exit": ran.exit_code,
                    "text": truncate_text(answer_of(ran.stdout).strip(), self._tokens),
                    "said": _said(ran, self._tokens),
                    "halted": halted(ran, self._seconds),
                    "discarded": list(await place.changed()),
                }

        # Repeatable: every run begins with a new copy, so an interrupted run leaves nothing behind.
        request = {"command": self._command, "prompt": prompt, "state": state}
        did = await self._journal.step("command", request, run, repeatable=True)
        if did["halted"]:
            return Reply(did["said"], did["halted"], tuple(did["discarded"]))
        return Reply(did["text"], None, tuple(did["discarded"]))

    def _job(self, place: Checkout, prompt: str) -> Job:
        return agent_job(self._argv, prompt, place, seconds=self._seconds, writable=self._writable)

    def _worded(self, episode: Episode, past: Past, at_start: bool) -> str:
        state: Literal["first", "fresh", "last"] = "first" if not episode.trials else "fresh" if at_start else "last"
        return self._prompt.text(
            task=task_text(episode.task),
            recall=past.recall.formatted_prompt if past.recall else "",
            past=past_text(past, tokens=self._tokens),
            state=_STATES[state],
        )


def agent_job(
    argv: Sequence[str],
    prompt: str,
    place: Checkout,
    *,
    seconds: float,
    writable: Sequence[str] = HOMES,
    env: Mapping[str, str] | None = None,
) -> Job:
    """One session of an agent in a folder. Raises `InvalidInput` for a prompt that is too long for an argument."""
    fills = {"{prompt}": prompt, "{prompt_file}": "{scratch}/task.md"}
    filled = tuple(_SLOT.sub(lambda slot: fills[slot[0]], part) for part in argv)
    if longest := max((len(part.encode()) for part in filled if len(part.encode()) > ARGUMENT), default=0):
        raise InvalidInput(
            f"The prompt is a command-line argument of {longest} bytes, which is too long. "
            "Use {prompt_file} instead, or omit both placeholders to pass the prompt on standard input."
        )
    placed = any(_SLOT.search(part) for part in argv)
    return Job(
        filled,
        files={"task.md": prompt},
        stdin="" if placed else prompt,
        cwd=place.folder,
        # Claude Code looks neither at TMPDIR nor whether it can write to /tmp.
        env={"PWD": place.folder, "CLAUDE_CODE_TMPDIR": "{scratch}", **(env or {})},
        writable=(*place.writable, *(path for path in map(os.path.expanduser, writable) if os.path.exists(path))),
        network=True,
        seconds=seconds,
        confined=False,
    )


async def check_tree(place: Checkout, when: str) -> None:
    if strayed := await place.strayed():
        raise MulliganError(
            f"Files in your own tree changed during {when}: {', '.join(strayed[:10])}. If the agent changed them, "
            "check the changes and confine the agent. If you changed them, resume the run. `watch: false` in the "
            "workspace settings allows such changes."
        )


def split_command(command: str) -> tuple[str, ...]:
    """The arguments of an agent's command. Raises `InvalidInput` if it cannot be started."""
    try:
        parts = split_line(command)
    except ValueError as error:
        raise InvalidInput(f"The agent's command {command!r} cannot be parsed: {error}.") from error
    if not parts:
        raise InvalidInput("The agent's command is empty. Use, for example, actor='command:claude -p'.")
    # A relative path with a folder in it starts in the workspace, which is not there yet.
    if (os.path.isabs(parts[0]) or os.sep not in parts[0]) and shutil.which(parts[0]) is None:
        raise InvalidInput(
            f"The agent's command {parts[0]!r} was not found: install it, or use its full path. It runs without a "
            "shell, so aliases do not work."
        )
    return parts


def _said(ran: Ran, tokens: int) -> str:
    """Output and errors of the agent, shortened; each keeps its head and its tail."""
    out, err = (truncate_text(text.strip(), tokens // 2) for text in (ran.stdout, ran.stderr))
    return "\n".join(part for part in (out, err and f"[on standard error]\n{err}") if part)


def halted(ran: Ran, seconds: float) -> str | None:
    """Why the agent did not end normally; None if it did."""
    if ran.timed_out:
        return f"the agent was stopped after {count(seconds, 'second')}"
    if ran.exit_code is None:
        return "the agent was killed"
    return f"the agent ended with status {ran.exit_code}" if ran.exit_code else None
