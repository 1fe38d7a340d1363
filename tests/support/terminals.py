"""Pseudo-terminals: their two ends, what is shown on one, and a command that runs on one of a given size."""

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Generator, Sequence


@contextlib.contextmanager
def terminal() -> Generator[tuple[int, int]]:
    """(the person's end, the program's end) of a pseudo-terminal."""
    person, program = pty.openpty()
    try:
        yield person, program
    finally:
        for end in (person, program):
            with contextlib.suppress(OSError):
                os.close(end)


async def seen(person: int, until: str) -> str:
    """What the screen shows until it ends so."""
    text = ""
    async with asyncio.timeout(10):
        while not text.endswith(until):
            text += (await asyncio.to_thread(os.read, person, 4096)).decode()
    return text


def on_terminal(
    command: Sequence[str],
    columns: int,
    resized: tuple[str, int] | None = None,
    /,
    answers: Sequence[str] = (),
    **env: str,
) -> tuple[int, str, str]:
    """Status, stdout (a pipe), and what a terminal of this width showed.

    answers: typed as a person is asked. resized: once the terminal shows this text, it takes this width.
    """
    master, slave = pty.openpty()  # the program's end is closed before the end of what is shown is read
    resize(slave, columns)
    process = subprocess.Popen(
        command,
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", **env},
    )
    os.close(slave)
    shown, asked = bytearray(), 0
    try:
        while chunk := os.read(master, 65536):
            shown += chunk
            if resized and resized[0].encode() in shown:
                resize(master, resized[1])
                process.send_signal(signal.SIGWINCH)
                resized = None
            if shown.count(b"what is wrong:") + shown.count(b"[y/N]:") > asked:
                os.write(master, f"{answers[asked]}\n".encode())
                asked += 1
    except OSError:  # Linux says so when the last writer has closed
        pass
    os.close(master)
    out, _ = process.communicate(timeout=30)
    return process.returncode, out.decode(), shown.decode()


def resize(end: int, columns: int) -> None:
    """Set the width of a pseudo-terminal, by either of its ends."""
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def without_controls(shown: str) -> str:
    """What a terminal showed, without what moves its cursor or changes its colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def letters(text: str) -> str:
    """The text without white space, so that where its lines were wrapped does not matter, and without the mark of no
    width, which rich leaves out where it stands alone in a line."""
    return "".join(text.split()).replace("\ufeff", "")
