"""What the step that overcame an error is known by, so that another session that did the same is recognised."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

from mulligan.core.turns import Turn
from mulligan.sessions.commands import variables
from mulligan.sessions.plain_command import plain
from mulligan.sessions.remedies import left_over
from mulligan.text.secrets import one_mask


def mend_key(step: str) -> str:
    """What a step is known by in another session: without folders and numbers."""
    return short_digest(_without_places(step))


def difference_key(fails: str, works: str) -> str:
    """What the difference of two commands is known by, which may be that of two others as well."""
    before, after = (_without_places(re.sub(r"['\"]", "", one)).split() for one in (fails, works))
    return short_digest(f"{' '.join(left_over(before, after))} -> {' '.join(left_over(after, before))}")


def mends_of(content: str, steps: Iterable[str]) -> dict[str, str]:
    """What each step of a lesson is known by: one that works instead by its difference from the command that failed."""
    lines = content.split("\n")
    fails = lines[0].removeprefix("fails: ") if any(line.startswith("works: ") for line in lines) else ""
    return {difference_key(fails, step) if fails else mend_key(step): step for step in steps}


def follows(call: Turn, commands: Iterable[str], mends: Collection[str]) -> bool:
    """Whether a command is a step of a lesson, or differs as it says from one of these, which failed."""
    core = plain(call.command)
    whole = " ".join((*variables(call.command), core))
    return mend_key(core) in mends or any(difference_key(one, whole) in mends for one in commands)


def _without_places(step: str) -> str:
    return re.sub(r"\d+", "0", re.sub(r"[\w.~-]*/(?:[\w.~-]+/)*", "", one_mask(step))).casefold()


def short_digest(text: str) -> str:
    """What a text is known by, whatever blanks are between its words."""
    return hashlib.sha256(" ".join(one_mask(text).split()).encode("utf-8", "replace")).hexdigest()[:16]
