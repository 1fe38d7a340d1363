"""Passes an attempt that matches a regular expression.

Some patterns take forever on some texts, and Python's `re` blocks the whole process meanwhile. So the search runs in
the sandbox, where it can be stopped.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Literal

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Job, Sandbox
from mulligan.core.records import Episode, Feedback
from mulligan.text.thoughts import output_of

_SEARCH = """
import json, re, sys
pattern, flags, text = json.load(sys.stdin)
print("found" if re.search(pattern, text, flags) else "absent")
"""


class Regex:
    r"""Passes an output in which `pattern` is found. Write `\A…\Z` to match the whole output.

    The feedback quotes the pattern.

    Args:
        flags: letters as in `(?i)`: a ASCII, i ignore case, m ^ and $ at each line, s dot matches line breaks, x
            verbose.
        seconds: for a search. If it takes longer, the verdict is unknown.

    Raises:
        InvalidInput: the pattern is not valid. The message says where.
    """

    expects: Literal["text", "code", "workspace"] = "text"
    replayable = True

    def __init__(self, *, pattern: str, flags: str = "", sandbox: Sandbox, seconds: float = 5.0) -> None:
        if wrong := set(flags) - set("aimsx"):
            raise InvalidInput(f"regex: flags must be letters from aimsx, not {sorted(wrong)[0]!r}.")
        if seconds <= 0:
            raise InvalidInput(f"regex: seconds must be greater than 0, not {seconds}.")
        try:
            self._flags = re.compile(pattern, sum(getattr(re, letter.upper()) for letter in set(flags))).flags
        except (re.error, RecursionError, OverflowError) as error:
            raise InvalidInput(f"regex: the pattern `{pattern}` cannot be used: {_where(error)}.") from error
        self._pattern = pattern
        self._sandbox = sandbox
        self._seconds = seconds

    async def evaluate(self, episode: Episode) -> Feedback:
        """Search the last attempt. Raises `SandboxError` if nothing could be run."""
        output = output_of(episode.trials[-1].attempt)
        ran = await self._sandbox.run(
            Job(
                (sys.executable, "-I", "-S", "-c", _SEARCH),
                stdin=json.dumps([self._pattern, int(self._flags), output]),
                readable=(sys.prefix, sys.base_prefix),
                seconds=self._seconds,
            )
        )
        answer = ran.stdout.strip()
        if answer == "found":
            return Feedback(True, f"The output matches `{self._pattern}`.", source="regex")
        if answer == "absent":
            return Feedback(False, f"The output does not match `{self._pattern}`.", source="regex")
        late = f"the search took more than {self._seconds:g} s, so the pattern is a slow one"
        reason = late if ran.timed_out else f"the search ended with {ran.exit_code}: {ran.stderr.strip()[-300:]}"
        return Feedback(None, f"Could not be judged by `{self._pattern}`: {reason}.", source="regex")


def _where(error: Exception) -> str:
    if isinstance(error, re.error) and error.pos is not None:
        place = (
            f"line {error.lineno}, column {error.colno}" if "\n" in str(error.pattern) else f"character {error.pos + 1}"
        )
        return f"{error.msg} at {place}"
    return str(error)
