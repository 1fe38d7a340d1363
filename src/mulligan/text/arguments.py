"""Matches names of arguments and fixed words in the spellings of clients and models: topK, top-k, Top_K."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TypeVar

from mulligan.core.errors import InvalidInput, UnknownName

T = TypeVar("T")

SYNONYMS = {
    **dict.fromkeys(("agent", "agentname", "bank", "bankid"), "agentid"),
    **dict.fromkeys(("k", "limit", "maxresults", "numresults"), "topk"),
}
"""Other words for a name, both in lower case without punctuation. docs/memory-tools.md lists them."""
_MAX_NAME = 200


def matched(name: str, known: Collection[str]) -> str | None:
    """Returns the known name that a spelling means; None if there is none, or more than one."""
    if name in known:
        return name
    wanted = _plain(name)
    for word in (wanted, SYNONYMS.get(wanted)):
        if names := [each for each in known if _plain(each) == word]:
            return names[0] if len(names) == 1 else None
    return None


def renamed(arguments: Mapping[str, T], known: Collection[str], of: str) -> dict[str, T]:
    """Returns the arguments under their known names.

    Args:
        of: the name of the tool or function, for errors.

    Raises:
        InvalidInput: a name is unknown, or two names refer to the same argument.
    """
    values: dict[str, T] = {}
    names: dict[str, str] = {}
    for name, value in arguments.items():
        argument = matched(name, known)
        if argument is None:
            raise UnknownName(f"argument of {of}", name[:_MAX_NAME], known)
        if argument in values and values[argument] != value:
            raise InvalidInput(f"{names[argument]!r} and {name!r} are the same argument: pass only {argument!r}.")
        values[argument], names[argument] = value, name
    return values


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()
