"""What happened in a session: its calls with their results, and what was said, from the turns of its transcript."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from mulligan.core.turns import Turn

_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def happened(turns: Iterable[Turn], *, subagent: str = "", folder: str = "") -> Iterator[Turn]:
    """The calls that were answered and what was said, in order, each with an id that no other has in the session.

    Args:
        subagent: the type of the sub-agent whose session it is.
        folder: where calls run of which the transcript does not say it.
    """
    pending: dict[str, Turn] = {}
    count = 0
    for turn in turns:
        if turn.role == "assistant" and turn.tool:
            pending[turn.id] = turn
        elif turn.role == "tool":
            if turn.id and (call := pending.pop(turn.id, None)) is not None:
                command, change = command_of(call.text)
                directory = turn.folder or call.folder or folder
                output = turn.text if not change or turn.failed else change
                yield Turn(
                    "tool", turn.text, call.tool, turn.id, turn.failed, turn.at, directory, command, output, subagent
                )
        elif turn.role in ("user", "assistant"):
            count += 1
            yield turn if turn.id else turn._replace(id=f"said:{count}")


def command_of(arguments: str) -> tuple[str, str]:
    """The command line or the path of the file in a call's arguments, and the lines that the call removes and adds."""
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        paths = _PATCHED.findall(arguments)
        return (", ".join(paths), arguments) if paths else (arguments.strip(), "")
    fields = cast(Mapping[str, Any], parsed)
    for key in ("command", "cmd", "script"):
        command = fields.get(key)
        if isinstance(command, list):
            words = [str(word) for word in cast(list[Any], command)]
            command = words[2] if words[1:2] in (["-lc"], ["-c"]) and len(words) == 3 else shlex.join(words)
        if isinstance(command, str) and command.strip():
            return command.strip(), ""
    if isinstance(patch := fields.get("input") or fields.get("patch"), str) and (paths := _PATCHED.findall(patch)):
        return ", ".join(paths), patch
    for key in ("file_path", "filePath", "absolute_path", "notebook_path", "path", "file"):
        if isinstance(path := fields.get(key), str) and path:
            return path, _change(fields)
    return "", ""


def _change(fields: Mapping[str, Any]) -> str:
    """The first lines that an edit removes and adds; a blank if it has none."""
    old = _first_text(fields, "old_string", "oldString", "old_str")
    new = _first_text(fields, "new_string", "newString", "new_str", "content", "file_text")
    old_lines, new_lines = set(old.splitlines()), set(new.splitlines())
    removed = [f"-{line}" for line in old.splitlines() if line not in new_lines and line.strip()]
    added = [f"+{line}" for line in new.splitlines() if line not in old_lines and line.strip()]
    return "\n".join([*removed[:3], *added[:3]]) or " "


def _first_text(fields: Mapping[str, Any], *keys: str) -> str:
    return next((text for key in keys if isinstance(text := fields.get(key), str)), "")
