"""Asks people about reflections at the terminal, and records their decisions and ratings."""

from __future__ import annotations

import asyncio
import getpass
import os
import re
import shlex
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mulligan.core.episode import Rated, Revised
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.protocols import Store
from mulligan.core.records import Condensed, Episode, Rating, Reflection, Trial
from mulligan.evaluators.human import Terminal, printable
from mulligan.recording.drivers import led_by_graph
from mulligan.recording.ledger import Ledger
from mulligan.reflectors._editing import Choice
from mulligan.text.plain import count

NO_TERMINAL = (
    "--edit-reflections asks a person at a terminal, but there is no terminal here. Run the command in one, or "
    "omit the option (to resume such a run: --no-edit-reflections)."
)
_TAKEN, _EDIT, _VETO = ("t", "take"), ("e", "edit"), ("v", "veto")
_MIN_LESSON = 3
"""Fewer characters are not a lesson but a typing error."""
_ONE_WORD = re.compile(r"\W*[^\W\u2e80-\U0010ffff]*\W*")
"""One word, such as "yes" or "no!", is not a lesson but the answer to another question. Chinese has no spaces."""


def person() -> str:
    """The name of the user of this machine; "" if it has none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # Windows has no database of users
        return ""


async def revise(
    store: Store,
    run: str,
    trial: int | None,
    decision: Literal["taken", "edited", "written", "vetoed"],
    text: str,
    by: str,
) -> Trial:
    """Records a person's decision about a recorded reflection. Its previous version stays in the record.

    A condensed lesson made from it is no longer shown.

    Args:
        trial: its number; None is the newest trial that did not pass.

    Raises:
        InvalidInput: there is no such trial, or no lesson of it.
        LeaseLost: a process is working on the episode.
    """
    async with Ledger(store).hold(await _only(store, run)) as entry:
        if led_by_graph(entry.episode):
            raise InvalidInput(
                "A graph controls this episode without reading the episode's record, so lessons cannot be changed here."
            )
        revised = _trial(entry.episode, trial)
        number = revised.number
        if revised.reflection is None and decision != "written":
            raise InvalidInput(f"Try {number} has no lesson: write one with --text.")
        new = (revised.reflection or Reflection("")).decided(decision, text, by, round(time.time(), 3))
        await entry.append(Revised(number, replace(new, condensed=_condensed(new, number))))
        for other in entry.episode.trials:
            if other.reflection and other.reflection.condensed and not _condensed(other.reflection, number):
                await entry.append(Revised(other.number, replace(other.reflection, condensed=None)))
        return entry.episode.trials[number - 1]


async def rate_run(
    store: Store, run: str, score: float, *, trial: int | None = None, comment: str = "", by: str | None = None
) -> Episode:
    """Records a person's score for a run's result, or for this trial's lesson.

    Args:
        score: from 0 to 1; higher is better.
        by: the person's name. None: this machine's user.

    Raises:
        InvalidInput: the score is not from 0 to 1, or the trial has no lesson.
        LeaseLost: a process is working on the episode.
    """
    rating = Rating.given(score, person() if by is None else by, round(time.time(), 3), comment, trial)
    async with Ledger(store).hold(await _only(store, run)) as entry:
        if trial is not None:
            reflection = _trial(entry.episode, trial).reflection or Reflection("")
            if not reflection.text:
                why = f": {reflection.withheld}" if reflection.withheld else "."
                raise InvalidInput(f"Try {trial} has no lesson to rate{why}")
        if trial is None and not entry.episode.trials:
            raise InvalidInput(f"Episode {entry.episode.id} has no result to rate yet.")
        return await entry.append(Rated(rating))


async def recorded_trial(store: Store, run: str, trial: int | None) -> Trial:
    """The trial of this number, or the newest one that did not pass. Raises `InvalidInput`, `NotFound`."""
    return _trial(await store.load(await _only(store, run)), trial)


async def _only(store: Store, run: str) -> str:
    ids = await store.resolve(run)
    if len(ids) > 1:
        raise InvalidInput(f"Run {run} has {len(ids)} episodes: specify one, such as {ids[0]}.")
    return ids[0]


def _trial(episode: Episode, number: int | None) -> Trial:
    failed = [trial for trial in episode.trials if trial.feedback and not trial.feedback.passed]
    if number is None and failed:
        return failed[-1]
    if number is None or not 1 <= number <= len(episode.trials):
        which = f"no try {number}" if number is not None else "no failed try"
        raise InvalidInput(f"Episode {episode.id} has {which}; it has {count(len(episode.trials), 'try')}.")
    return episode.trials[number - 1]


def _condensed(reflection: Reflection, changed: int) -> Condensed | None:
    """Its condensed lesson, unless that replaces the lesson that was changed."""
    condensed = reflection.condensed
    return None if condensed and changed in condensed.trials else condensed


def editor_command() -> list[str]:
    """The user's own editor, from VISUAL or EDITOR; empty if neither is set."""
    given = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        return shlex.split(given)
    except ValueError:
        return [given]


class AtTerminal:
    """Shows each reflection, and reads Enter, "e" for the editor, "v" for a veto, or a line with another lesson.

    Raises:
        InvalidInput: there is no terminal.
    """

    def __init__(self, terminal: Terminal | None = None) -> None:
        self._terminal = terminal or Terminal.found(NO_TERMINAL)

    async def __call__(self, episode: Episode, reflection: Reflection) -> Choice:
        """Raises `MulliganError` if nobody answers: the episode pauses and can be resumed."""
        question = f"\n{_shown(episode, reflection)}\n{_choice(reflection)}"
        while True:
            try:
                reply = (await self._terminal.ask(question)).strip()
            except EOFError:
                raise MulliganError("no decision was made about the lesson") from None
            word = reply.lower().rstrip(".!")
            if word in _TAKEN or (not word and reflection.text and not reflection.withheld):
                if reflection.text:
                    return Choice("taken", by=person())
                question = f"There is no lesson to accept. {_choice(reflection)}"
            elif word in _VETO or not word:
                return Choice("vetoed", by=person())
            elif word in _EDIT:
                text, why = await self._edited(reflection.text)
                if text:
                    decision = "taken" if text == reflection.text.strip() else "edited"
                    return Choice(decision, text, person())
                question = f"{why} {_choice(reflection)}"
            elif len(reply) < _MIN_LESSON or _ONE_WORD.fullmatch(reply):
                question = f"Please choose one of these: {_choice(reflection)}"
            else:
                return Choice("written", reply, person())

    async def _edited(self, text: str) -> tuple[str, str]:
        """The edited text and ""; or "" and why there is none."""
        command = editor_command()
        if not command:
            return "", "Neither VISUAL nor EDITOR is set: write the lesson here on one line."
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
        """Runs a program at the terminal; it is terminated with the episode."""
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
    feedback = trial.feedback.text.strip() if trial.feedback else ""
    lines = [f"Try {trial.number} failed{': ' if feedback else '.'}{printable(feedback)}"]
    lines += [f"Lesson, withheld ({reflection.withheld})" if reflection.withheld else "Lesson:"]
    return "\n".join([*lines, f"\n{printable(reflection.text.strip()) or '(none)'}\n"])


def _choice(reflection: Reflection) -> str:
    if reflection.text and not reflection.withheld:
        return "Enter accepts it, e edits it, v vetoes it, or write another lesson: "
    taken = "t accepts it, e edits it" if reflection.text else "e opens the editor"
    return f"Enter leaves it out, {taken}, or write another lesson: "
