"""Match names of arguments and fixed words in the spellings of clients and models: topK, top-k, Top_K."""

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
_LONGEST = 200


def matched(name: str, known: Collection[str]) -> str | None:
    """Returns the known name that a spelling means; None if there is none, or more than one."""
    if name in known:
        return name
    wanted = _plain(name)
    for word in (wanted, SYNONYMS.get(wanted)):
        found = [one for one in known if _plain(one) == word]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def renamed(given: Mapping[str, T], known: Collection[str], of: str) -> dict[str, T]:
    """Returns the arguments under their known names.

    Raises `InvalidInput` for an unknown name, with the nearest one, and for two names of one argument. of: the tool or
    function that has the arguments, for errors.
    """
    found: dict[str, T] = {}
    meant: dict[str, str] = {}
    for name, value in given.items():
        argument = matched(name, known)
        if argument is None:
            raise UnknownName(f"argument of {of}", name[:_LONGEST], known)
        if argument in found and found[argument] != value:
            raise InvalidInput(f"{meant[argument]!r} and {name!r} are the same argument: pass only {argument!r}.")
        found[argument], meant[argument] = value, name
    return found


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()
