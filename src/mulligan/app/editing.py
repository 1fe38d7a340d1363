"""Asks about reflections at the terminal, and keeps what people say of recorded episodes."""

from __future__ import annotations

import asyncio
import getpass
import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mulligan.core.errors import MulliganError
from mulligan.core.records import Episode, Reflection
from mulligan.evaluators.human import Terminal, printable
from mulligan.reflectors._editing import Choice

NOWHERE = (
    "--edit-reflections asks a person on a terminal, and there is none here. Start it from one, or leave the option "
    "out (to resume such a run: --no-edit-reflections)."
)
_TAKEN, _EDIT, _VETO = ("t", "take"), ("e", "edit"), ("v", "veto")
_LEAST = 3
"""Characters below which a line is no lesson but a slip of the finger."""


def person() -> str:
    """The name of the user of this machine; "" if it has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def editor_command() -> list[str]:
    """The user's own editor, from VISUAL or EDITOR; empty if neither is set."""
    given = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        return shlex.split(given)
    except ValueError:
        return [given]


class AtTerminal:
    """Shows each reflection, and takes Enter, "e" for the editor, "v", or a line that is the lesson.

    Raises:
        InvalidInput: there is no terminal.
    """

    def __init__(self, terminal: Terminal | None = None) -> None:
        self._terminal = terminal or Terminal.found(NOWHERE)

    async def __call__(self, episode: Episode, reflection: Reflection) -> Choice:
        """Raises `MulliganError` if nobody answers: the episode pauses and can be resumed."""
        question = f"\n{_shown(episode, reflection)}\n{_choice(reflection)}"
        while True:
            try:
                reply = (await self._terminal.ask(question)).strip()
            except EOFError:
                raise MulliganError("nobody decided about the lesson") from None
            word = reply.lower().rstrip(".!")
            if word in _TAKEN or (not word and reflection.text and not reflection.withheld):
                if reflection.text:
                    return Choice("taken", by=person())
                question = f"There is no lesson to take. {_choice(reflection)}"
            elif word in _VETO or not word:
                return Choice("vetoed", by=person())
            elif word in _EDIT:
                text, why = await self._edited(reflection.text)
                if text:
                    decision = "taken" if text == reflection.text.strip() else "edited"
                    return Choice(decision, text, person())
                question = f"{why} {_choice(reflection)}"
            elif len(reply) >= _LEAST:
                return Choice("written", reply, person())
            else:
                question = f"Please choose one of these: {_choice(reflection)}"

    async def _edited(self, text: str) -> tuple[str, str]:
        """The text after the user's editor, or why there is none."""
        command = editor_command()
        if not command:
            return "", "Neither VISUAL nor EDITOR is set: write the lesson here in one line."
        with tempfile.TemporaryDirectory(prefix="mulligan-") as folder:
            file = Path(folder, "lesson.txt")
            _write(file, text)
            try:
                status = await self._run([*command, str(file)])
                new = _read(file)
            except (OSError, UnicodeDecodeError) as error:
                return "", f"The editor {command[0]} cannot be used: {error}."
        if status:
            return "", f"The editor ended with status {status}, so nothing was changed."
        return new, "" if new else "The editor left no text."

    async def _run(self, command: Sequence[str]) -> int:
        """Run a program on the terminal; it ends with the episode."""
        source, sink = self._terminal.ends
        program = await asyncio.create_subprocess_exec(*command, stdin=source, stdout=sink, stderr=sink)
        try:
            return await program.wait()
        finally:
            if program.returncode is None:
                program.terminate()


def _write(file: Path, text: str) -> None:
    file.write_text(f"{text}\n", encoding="utf-8")


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()


def _shown(episode: Episode, reflection: Reflection) -> str:
    trial = episode.trials[-1]
    said = trial.feedback.text.strip() if trial.feedback else ""
    lines = [f"Trial {trial.number} failed{': ' if said else '.'}{printable(said)}"]
    lines += [f"Lesson, withheld ({reflection.withheld})" if reflection.withheld else "Lesson:"]
    return "\n".join([*lines, f"\n{printable(reflection.text.strip()) or '(none)'}\n"])


def _choice(reflection: Reflection) -> str:
    if reflection.text and not reflection.withheld:
        return "Enter takes it, e edits it, v vetoes it, or write another lesson: "
    taken = "t takes it, e edits it" if reflection.text else "e opens the editor"
    return f"Enter leaves it out, {taken}, or write another lesson: "
