"""Change JSON as text: add to it and remove from it, and leave every other character as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")


class Member(NamedTuple):
    """A member of an object or array: its key or number, where it begins, where its value begins, and where it ends."""

    key: str | int
    start: int
    value: int
    end: int


def add(text: str, path: Sequence[str], value: Any) -> str:
    """Append `value` to the array at `path`, which is made if it is absent. The text is valid JSON, an object."""
    at = _skip(text, 0)
    for depth, key in enumerate(path):
        inner = next((member for member in reversed(_members(text, at)) if member.key == key), None)
        if inner is None:
            value = [value]
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _append(text, at, f"{json.dumps(key)}: ", value)
        at = inner.value
    return _append(text, at, "", value)


def remove(text: str, path: Sequence[str | int]) -> str:
    """Take the member at `path` out, with its comma."""
    at = _skip(text, 0)
    for key in path[:-1]:
        at = next(member.value for member in reversed(_members(text, at)) if member.key == key)
    members = _members(text, at)
    place = next(number for number, member in reversed(list(enumerate(members))) if member.key == path[-1])
    if place > 0:
        return text[: members[place - 1].end] + text[members[place].end :]
    if len(members) > 1:
        return text[: members[0].start] + text[members[1].start :]
    return text[: at + 1] + text[_skip(text, members[0].end) :]


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    assert blank is not None  # it matches nothing, too
    return blank.end()


def _members(text: str, at: int) -> list[Member]:
    """The members of the object or array that begins at `at`."""
    found: list[Member] = []
    here = _skip(text, at + 1)
    while text[here] not in "}]":
        start, key = here, len(found)
        if text[at] == "{":
            key, here = _DECODER.raw_decode(text, here)
            here = _skip(text, _skip(text, here) + 1)
        end = _DECODER.raw_decode(text, here)[1]
        found.append(Member(key, start, here, end))
        here = _skip(text, end)
        if text[here] == ",":
            here = _skip(text, here + 1)
    return found


def _append(text: str, at: int, key: str, value: Any) -> str:
    """Append a member to the object or array that begins at `at`, indented as the text is."""
    members = _members(text, at)
    end = members[-1].end if members else at + 1
    closing = _skip(text, end)
    if members and "\n" not in text[at : members[0].start]:  # all on one line
        return f"{text[:end]}, {key}{json.dumps(value, ensure_ascii=False)}{text[end:]}"
    step = re.search(r"\n([ \t]+)\S", text)
    unit = step[1] if step else "  "
    line = text[text.rfind("\n", 0, members[0].start if members else at) + 1 :]
    indent = line[: len(line) - len(line.lstrip(" \t"))] + ("" if members else unit)
    body = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{indent}")
    new = f"{',' if members else ''}\n{indent}{key}{body}"
    if not members:
        new += "\n" + indent.removesuffix(unit)
    new = new.replace("\n", "\r\n") if "\r\n" in text else new
    return text[:end] + new + text[end if members else closing :]
