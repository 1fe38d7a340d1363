"""Asks a person on the terminal for the verdict.

The question goes to standard error and the answer comes from the terminal, so that a task can be piped in and the
result piped out. The model's text is shown without control characters, which could repaint the screen.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Literal, TextIO

from mulligan.core.errors import GaveUp, InvalidInput
from mulligan.core.records import Episode, Feedback
from mulligan.text.thoughts import output_of

_CHOICE = "pass, give up, or what is wrong: "
_UNCLEAR = frozenset({"", "y", "yes", "ok", "n", "no", "fail", "failed", "wrong"})
NOWHERE = (
    "The evaluator human asks at a terminal, but there is no terminal here. Run the command in one, or use another "
    "evaluator."
)
_SETTLED = 0.05
"""Seconds without another line after which a pasted answer is complete."""


class Human:
    """Shows each attempt, and takes "pass", "give up", or a line that says what is wrong.

    Giving up (or Ctrl-D) raises `GaveUp`, which ends the episode.

    Args:
        ask: shows a text and returns the person's answer; raises `EOFError` if nobody answers. None asks on the
            terminal.

    Raises:
        InvalidInput: `ask` is None and there is no terminal.
    """

    expects: Literal["text", "code", "workspace"] = "text"
    interactive = True

    def __init__(self, *, ask: Callable[[str], Awaitable[str]] | None = None) -> None:
        self._ask = ask or Terminal.found(NOWHERE).ask

    async def evaluate(self, episode: Episode) -> Feedback:
        trial = episode.trials[-1]
        places = "".join(
            f"\nIt is in {artifact.location}\n" for artifact in trial.attempt.artifacts if artifact.location
        )
        question = f"\nTrial {trial.number}:\n\n{printable(output_of(trial.attempt).strip())}\n{places}\n{_CHOICE}"
        while True:
            try:
                reply = (await self._ask(question)).strip()
            except EOFError:
                reply = "give up"
            word = reply.lower().rstrip(".!")
            if word in ("pass", "passed"):
                return Feedback(True, "A person let it pass.", source="human")
            if word == "give up":
                raise GaveUp("the person gave no verdict")
            if word not in _UNCLEAR:
                return Feedback(False, reply, source="human")
            question = f"Please write one of these: {_CHOICE}"


class Terminal:
    """Writes questions to one file descriptor, and reads the answers, line by line, from that of a terminal."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink

    @classmethod
    def found(cls, nowhere: str) -> Terminal:
        """Find a terminal: standard input if it is one, else the one that the process was started from.

        Raises `InvalidInput` with the text `nowhere` if there is none.
        """
        source = _tty(sys.stdin)
        if source is None:
            try:
                source = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
            except OSError as error:
                raise InvalidInput(nowhere) from error
        sink = _tty(sys.stderr)
        return cls(source, source if sink is None else sink)

    @property
    def ends(self) -> tuple[int, int]:
        """The descriptors that it reads from and writes to."""
        return self._source, self._sink

    async def ask(self, question: str) -> str:
        """Ask, and return what was typed or pasted, which may be several lines. Raises `EOFError` at Ctrl-D.

        It can be cancelled: no thread keeps reading.
        """
        unwritten = question.encode(errors="replace")
        while unwritten:
            unwritten = unwritten[os.write(self._sink, unwritten) :]
        reply = await self._read()
        if not reply:
            raise EOFError
        while await self._readable(_SETTLED):
            pasted = await self._read()
            reply += pasted
            if not pasted:
                break
        return reply.decode(errors="replace")

    async def _read(self) -> bytes:
        await self._readable(None)
        try:
            return os.read(self._source, 65_536)
        except OSError:  # the terminal was closed
            return b""

    async def _readable(self, seconds: float | None) -> bool:
        """Wait without blocking the loop, and return whether there is something to read before the time is over."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._source, ready.set)
        try:
            async with asyncio.timeout(seconds):
                await ready.wait()
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self._source)
        return True


def _tty(stream: TextIO | None) -> int | None:
    return stream.fileno() if stream is not None and stream.isatty() else None


def printable(text: str) -> str:
    """The text with control characters as escapes, so that text from a model cannot control the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
