"""Records that a coding agent wrote to its transcript: JSON objects whose form is the agent's own, read leniently.

What is missing or of another type is as if it were empty: formats grow, and a session was killed while it wrote.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from mulligan.core.light import TYPE_CHECKING, cast
from mulligan.core.turns import Turn

if TYPE_CHECKING:
    from typing import Any, TypeAlias

Record: TypeAlias = "Mapping[str, Any]"

_INJECTED = (
    r"(?s)(?:<|&lt;)(hook_context|system-reminder|mulligan-(?:lessons|question|goal))\b[^>]*?(?:>|&gt;).*?"
    r"(?:(?:<|&lt;)/\1(?:>|&gt;)|\Z)"
)
"""What a hook or the agent itself put into a text."""
_SAMPLE = 50
"""Lines at the beginning that a format is recognised by."""
_BACKGROUND = (
    r"(?i)\A\s*(?:Command\b[^\n]{0,120}\b(?:in|to) (?:the )?background\b|Command was (?:manually )?backgrounded\b"
    r"|Background (?:shell|command|process|task)\b[^\n]{0,40}\bstarted\b|Process running with session\b)"
    r"(?:[^\n]*?\bID:? (?P<id>\w+))?"
)
"""What coding agents answer for a command that runs in the background: it has neither failed nor passed yet."""


_SAVED = (
    r"(?i)\A\s*(?:(?:Error: )?Exit code -?\d+\s+)?"
    r"(?:<persisted-output>|Output too large to read at once|Tool output was too large)"
    r"(?:[^\n]*\n)?[^\n]*\bsaved to: ([^\n]+)"
)
_CUT = (
    r"(?:\n\n\.\.\.[^\n]*\n\n)?(?:The tool call succeeded but the output was truncated\. )?Full output saved to: (\S+)"
)
"""What agents put in the place of an output that is saved to a file, and behind the beginning of one."""
_BOTH_ENDS = "Truncated part of the output:\n"
_TAIL = 80_000
"""Bytes at the end of a saved output that are read."""


def records(text: str) -> Iterator[Record]:
    """The objects in the lines. A line that holds none, such as one that was torn, is passed over."""
    for line in text.split("\n"):
        if line.lstrip().startswith("{") and (found := record_in(line)):
            yield found


def sample(text: str) -> list[Record]:
    """The first records, by which a format is recognised."""
    return [found for found, _ in zip(records(text), range(_SAMPLE), strict=False)]


def whole(text: str) -> Any:
    """The text as one JSON value; None where it is none."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def record_in(text: str) -> Record:
    return as_record(whole(text))


def as_record(value: Any) -> Record:
    return cast("Record", value) if isinstance(value, dict) else {}


def inner(record: Record, *keys: str) -> Record:
    """The object below these keys."""
    for key in keys:
        record = as_record(record.get(key))
    return record


def inner_list(record: Record, key: str) -> Sequence[Record]:
    """The objects in the list under this key."""
    value = record.get(key)
    return [as_record(one) for one in cast("list[Any]", value)] if isinstance(value, list) else []


def text_at(record: Record, *keys: str) -> str:
    """The text below these keys."""
    value = inner(record, *keys[:-1]).get(keys[-1])
    return value if isinstance(value, str) else ""


def number_at(record: Record, *keys: str) -> int | None:
    value = inner(record, *keys[:-1]).get(keys[-1])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def texts(value: Any) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, str):
        return value
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    return "\n".join(
        filter(None, (part if isinstance(part, str) else text_at(as_record(part), "text") for part in parts))
    )


def seconds(value: Any) -> float:
    """A time as seconds since the epoch: written out, or in milliseconds; 0 where it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 1000 if 0 <= value < 1e16 else 0.0
    from datetime import datetime  # the program of hooks needs no times

    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else 0.0
    except (ValueError, OverflowError):
        return 0.0


def arguments(value: Any) -> str:
    """The arguments of a call: a text, or what is written as JSON."""
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return ""


def background_id(output: str) -> str | None:
    """The id of a command that goes on in the background, "" where the answer names none; None for any other answer."""
    found = re.match(_BACKGROUND, output)
    return found and (found["id"] or "")


def unshortened(output: str, *places: str) -> str:
    """An output that was saved to a file: the end of that file; where it cannot be read, what is shown of the output's
    end, else of its beginning, without the notice. A preview alone does not show what went wrong.

    places: how the paths begin of files that may be read.
    """
    if "aved to: " not in output or not (notice := re.match(_SAVED, output) or re.search(_CUT, output)):
        return output
    path = os.path.realpath(notice[1].strip())
    if any(path.startswith(os.path.realpath(place) + place[len(place.rstrip(os.sep)) :]) for place in places):
        try:
            with open(path, "rb") as file:
                file.seek(max(os.path.getsize(path) - _TAIL, 0))
                return own(file.read(_TAIL).decode("utf-8", "replace"))
        except OSError:
            pass
    return output[: notice.start()] or output.partition(_BOTH_ENDS)[2]


def own(text: str) -> str:
    """The text without what hooks put into it."""
    return re.sub(_INJECTED, "", text).strip()


def without_main_agent(turns: Sequence[Turn]) -> list[Turn]:
    """The turns of a sub-agent without what the main agent, which is no person, says as its user. Its task stays."""
    return [turn for n, turn in enumerate(turns) if turn.role != "user" or n == 0]
