"""Makes keys of the steps that overcame an error, by which the same step in another session is recognised."""

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
    """The key of a step, which does not depend on folders and numbers."""
    return short_digest(_without_places(step))


def difference_key(fails: str, works: str) -> str:
    """The key of the difference between two commands, which can be the same for two others."""
    before, after = (_without_places(re.sub(r"['\"]", "", command)).split() for command in (fails, works))
    return short_digest(f"{' '.join(left_over(before, after))} -> {' '.join(left_over(after, before))}")


def mends_of(content: str, steps: Iterable[str]) -> dict[str, str]:
    """The steps of a lesson by their keys. That of a command that works instead is of its difference from the one that
    failed."""
    lines = content.split("\n")
    fails = lines[0].removeprefix("fails: ") if any(line.startswith("works: ") for line in lines) else ""
    return {difference_key(fails, step) if fails else mend_key(step): step for step in steps}


def follows(call: Turn, commands: Iterable[str], mends: Collection[str]) -> bool:
    """Whether a call follows a lesson: it is one of its steps, or differs from a failed command as the lesson says.

    Args:
        commands: those that failed.
        mends: the keys of the steps of the lesson.
    """
    core = plain(call.command)
    whole = " ".join((*variables(call.command), core))
    return mend_key(core) in mends or any(difference_key(failed, whole) in mends for failed in commands)


def _without_places(step: str) -> str:
    return re.sub(r"\d+", "0", re.sub(r"[\w.~-]*/(?:[\w.~-]+/)*", "", one_mask(step))).casefold()


def short_digest(text: str) -> str:
    """A digest of a text, whatever blanks are between its words."""
    return hashlib.sha256(" ".join(one_mask(text).split()).encode("utf-8", "replace")).hexdigest()[:16]
