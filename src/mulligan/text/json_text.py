"""Adds and removes values in the text of a JSON file, and leaves every other character unchanged.

The text may have comments, trailing commas and a byte order mark, as the settings of editors and agents do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_COMMENT = r"//[^\r\n]*+|(?>/\*.*?\*/)"
_BLANK = re.compile(rf"(?:[ \t\r\n\ufeff]|{_COMMENT})*+", re.DOTALL)
_STRING = r'"(?:[^"\\]|\\.)*"'
_SCALAR = re.compile(rf"{_STRING}|[^\s,:/\[\]{{}}\"]+", re.DOTALL)
_GAP = rf"(?:[ \t\r\n]|{_COMMENT})*+"
_EXTRA = re.compile(rf"({_STRING}|[{{\[]{_GAP},)|{_COMMENT}|,(?={_GAP}[}}\]])", re.DOTALL)
"""Comments and trailing commas; the group matches what must stay: strings, and the error of a comma without a value."""
_SPACE = " \t\r\n"


class Member(NamedTuple):
    """A member of an object or array: its key or number, its start, the start of its value, and its end."""

    key: str | int
    start: int
    value: int
    end: int


def loads(text: str) -> Any:
    """Returns the value of a text that may have comments and trailing commas. Raises `ValueError`."""
    try:
        return json.loads(_EXTRA.sub(lambda match: match[1] or " ", text.removeprefix("\ufeff")))
    except RecursionError as error:  # a thousand brackets
        raise ValueError(str(error)) from None


def add(text: str, path: Sequence[str], value: Any) -> str:
    """Appends `value` to the array at `path`, which is created if it is missing. The text must be a valid object."""
    at = _skip(text, 0)
    for depth, key in enumerate(path):
        inner = next((member for member in reversed(_members(text, at)[0]) if member.key == key), None)
        if inner is None:
            value = [value]
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _append(text, at, f"{json.dumps(key)}: ", value)
        at = inner.value
    return _append(text, at, "", value)


def remove(text: str, path: Sequence[str | int]) -> str:
    """Removes the member at `path` with its comma. Comments beside it stay."""
    at = _skip(text, 0)
    for key in path[:-1]:
        at = next(member.value for member in reversed(_members(text, at)[0]) if member.key == key)
    members, closing = _members(text, at)
    place = next(number for number, member in reversed(list(enumerate(members))) if member.key == path[-1])
    here = members[place]
    before, comma = text[: here.start], _skip(text, here.end)
    if place + 1 < len(members):
        after = members[place + 1].start
        return before + _comments(text[here.end : comma] + text[comma + 1 : after]).lstrip(_SPACE) + text[after:]
    if text[comma] == ",":  # a trailing comma
        right = text[here.end : comma] + text[comma + 1 : closing]
    else:
        right = text[here.end : closing]
        if place > 0:
            end = members[place - 1].end
            comma = _skip(text, end)
            before = text[:end] + _comments(text[end:comma] + text[comma + 1 : here.start])
    before = before.rstrip(_SPACE)
    if place == 0 and not before.removeprefix(text[: at + 1]) and not _comments(right):
        right = ""
    return _joined(before, right + text[closing:])


def _comments(between: str) -> str:
    """Returns the text between two members if it has comments, or ""."""
    return between if between.strip(_SPACE) else ""


def _joined(left: str, right: str) -> str:
    """Returns both texts, with a line break between them if the left one ends in a line comment."""
    last = left[max(left.rfind("\n"), left.rfind("\r")) + 1 :]
    open_comment = any(match[0].startswith("//") and match.end() == len(last) for match in _EXTRA.finditer(last))
    return left + ("\n" if open_comment and right.lstrip(" \t")[:1] not in ("\r", "\n") else "") + right


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    assert blank is not None  # it also matches an empty text
    return blank.end()


def _members(text: str, at: int) -> tuple[list[Member], int]:
    """Returns the members of the object or array that begins at `at`, and the index of its closing bracket."""
    members: list[Member] = []
    here = _skip(text, at + 1)
    while text[here] not in "}]":
        start, key = here, len(members)
        if text[at] == "{":
            end = _end(text, here)
            key, here = json.loads(text[here:end]), _skip(text, _skip(text, end) + 1)
        end = _end(text, here)
        members.append(Member(key, start, here, end))
        here = _skip(text, end)
        if text[here] == ",":
            here = _skip(text, here + 1)
    return members, here


def _end(text: str, at: int) -> int:
    """Returns the end of the value that begins at `at`."""
    if text[at] in "{[":
        return _members(text, at)[1] + 1
    scalar = _SCALAR.match(text, at)
    assert scalar is not None  # the text is valid
    return scalar.end()


def _append(text: str, at: int, key: str, value: Any) -> str:
    """Appends a member to the object or array that begins at `at`, with the indentation of the text."""
    members, closing = _members(text, at)
    end = members[-1].end if members else at + 1
    if members and "\n" not in text[at : members[0].start]:  # all on one line
        return f"{text[:end]}, {key}{json.dumps(value, ensure_ascii=False)}{text[end:]}"
    step = re.search(r"\n([ \t]+)[\"\[{}\]\w]", text)
    unit = step[1] if step else "  "
    line = text[text.rfind("\n", 0, members[0].start if members else at) + 1 :]
    indent = line[: len(line) - len(line.lstrip(" \t"))] + ("" if members else unit)
    body = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{indent}")
    new = f"\n{indent}{key}{body}"
    between = text[end:closing]
    comma, kept = ("," if members else ""), between.rstrip(_SPACE)
    if (after := _skip(kept, 0)) < len(kept):  # a trailing comma
        comma, kept, new = "", kept[: after + 1] + kept[after + 1 :].rstrip(_SPACE), f"{new},"
    rest = between[len(kept) :] if members else "\n" + indent.removesuffix(unit)
    new = new if members else new + rest
    new = new.replace("\n", "\r\n") if "\r\n" in text else new
    return text[:end] + comma + kept + new + (rest if members else "") + text[closing:]
