"""How long the way is: of a task from the command line to the prompt, and of a lesson into the bank.

    python tools/way.py solve TASK --model scripted:FILE ...             # any command that asks a scripted model
    python tools/way.py solve TASK --memory --model scripted:FILE ...

Prints for each model call the frames of ours below the command line, and at the end the functions and files of bank/,
store/ and text/ that ran while the bank learned (`Bank.learn`), in all threads. PYTHONPATH=OTHER/src measures another
checkout.
"""

from __future__ import annotations

import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

from mulligan.bank.bank import Bank
from mulligan.cli import main as cli
from mulligan.models.scripted import ScriptedModel

PACKAGE = Path(cli.__file__).parents[1]
ROOMS = ("bank", "store", "text")

learning = False
entered: set[tuple[str, str]] = set()
_ask, _learn = ScriptedModel.ask, Bank.learn


def file_of(frame: FrameType) -> str | None:
    """The file of the package that the frame is in; None for others."""
    file = Path(frame.f_code.co_filename)
    return str(file.relative_to(PACKAGE)) if file.is_relative_to(PACKAGE) else None


async def ask(self: Any, *given: Any, **options: Any) -> Any:
    """Counts the frames that the model is asked through."""
    files: list[str] = []
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if file := file_of(frame):
            files.append(file)
        frame = frame.f_back
    print(f"model call: {len(files)} frames in {len(set(files))} files", file=sys.stderr)
    return await _ask(self, *given, **options)


async def learn(self: Any, *given: Any, **options: Any) -> Any:
    """Learns, and has what runs meanwhile counted."""
    global learning
    learning = True
    try:
        return await _learn(self, *given, **options)
    finally:
        learning = False


def count(frame: FrameType, event: str, _: object) -> None:
    """Counts the function that is entered; no module, class body, lambda or comprehension."""
    code = frame.f_code
    if learning and event == "call" and code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<"):
        file = file_of(frame)
        if file and file.startswith(tuple(f"{room}/" for room in ROOMS)):
            entered.add((file, code.co_qualname))


def main() -> None:
    """Runs the command of the arguments in this process."""
    ScriptedModel.ask, Bank.learn = ask, learn
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        cli.main(sys.argv[1:])
    finally:
        sys.setprofile(None)
        if entered:
            files = {file for file, _ in entered}
            print(f"learning: {len(entered)} functions in {len(files)} files", file=sys.stderr)


if __name__ == "__main__":
    main()
