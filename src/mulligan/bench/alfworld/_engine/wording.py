"""Translates commands and observations between ALFWorld's engine and the wording of the reference (1.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_PUT = re.compile(r"(?:put|move|place) (.+) (?:in/on|in|on|into|onto|to) (.+)")
_FORMS = ("move {} to {}", "put {} in/on {}", "put {} in {}", "put {} on {}")
"""Newer games say the first, older ones and ReAct's examples the second."""

_ARRIVED = re.compile(r"You arrive at loc \d+\. ")


def is_thought(action: str) -> bool:
    return action.lower().startswith(("think:", "think "))


def command(action: str, admissible: Sequence[str]) -> str:
    """The action as this engine has it: its own verb form, where another was used."""
    if action not in admissible:
        for form in _other_forms(action):
            if form in admissible:
                return form
    return action


def _other_forms(action: str) -> Iterator[str]:
    if found := _PUT.fullmatch(action):
        yield from (form.format(*found.groups()) for form in _FORMS)


def beginning(text: str) -> str:
    """The first observation: without the welcome, each other paragraph on a line."""
    return "\n".join(text.strip().split("\n\n")[1:]) or text.strip()


def observation(text: str) -> str:
    return _ARRIVED.sub("", text, count=1) if _ARRIVED.match(text) else text
