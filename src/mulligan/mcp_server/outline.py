"""What the outermost object of a message says, of one that cannot be read as a whole: too long, too deep, broken."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

ENDS = 64 * 1024
"""Bytes from the beginning of a message that are looked through, and as many from its end are kept."""

LAST = 2048
"""Bytes at the end of a message in which what stands after its params is looked for."""

_NAME = re.compile(rb'[\s,{]*"([^"\\]{0,40})"\s*:\s*')
_SCALAR = re.compile(rb'(?:"(?:[^"\\]|\\.)*"|-?\d{1,4000}|true|false|null)(?=\s*[,}])', re.DOTALL)
_MARK = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def outline(head: bytes, tail: bytes) -> Mapping[str, Any]:
    """The fields that stand there whole, and None for those whose values do not. head, tail: both ends of the message,
    which may overlap; nothing of it is ever read into more than its own length.
    """
    return {**_first(head[:ENDS]), **_last(tail[-LAST:])}


def _first(head: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    at = len(head) - len(head.lstrip())
    if not head[at:].startswith(b"{"):
        return fields
    while name := _NAME.match(head, at):
        scalar = _SCALAR.match(head, name.end())
        fields[name[1].decode("utf-8", "replace")] = _read(scalar[0]) if scalar else None
        end = scalar.end() if scalar else _after(head, name.end())
        if end is None:
            break
        at = end
    return fields


def _after(head: bytes, at: int) -> int | None:
    """Where the list or object that begins here ends; None: not in this part."""
    depth = 0
    for mark in _MARK.finditer(head, at):
        if mark[0] in b"[{":
            depth += 1
        elif mark[0] in b"]}":
            depth -= 1
        if depth <= 0:
            return mark.end()
    return None


def _last(tail: bytes) -> dict[str, Any]:
    """What stands after the last list or object: the longest end that is an object of its own once it is opened."""
    for comma in re.finditer(rb',(?=\s*")', tail):
        found = _read(b"{" + tail[comma.end() :])
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return {}


def _read(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8", "replace"), parse_int=_number)
    except (ValueError, RecursionError):
        return None


def _number(digits: str) -> int | None:
    """None for a number that Python would refuse to read."""
    return int(digits) if len(digits) <= 4000 else None
