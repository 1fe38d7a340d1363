"""What fails, by the output of a check: the tests that it names, and the causes of errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from mulligan.sessions.signature import causes, signature

_TESTS = re.compile(
    r"^\s*(?:FAILED|ERROR)\s+(?P<pytest>[^\s:]+::\S+|\S+\.py(?=\s|$))|^(?:FAIL|ERROR): (?P<unittest>\S+ \(\S+\))"
    r"|^\s*--- FAIL: (?P<go>\S+)|^test (?P<cargo>\S+) \.\.\. FAILED|^\s*(?:✕|✗|×|✖) (?P<marked>\S.*?)"
    r"(?: \(\d+ ?m?s\)| \d+ms)?\s*$|^\s*not ok \d+ - (?P<tap>.+?)\s*$|^\s*● (?P<jest>\S.* › .+?)\s*$",
    re.MULTILINE,
)
_MOST = 60


def failures(output: str, *, unknown: bool = False) -> Sequence[str]:
    """What fails: the names of tests, then causes; without either the lines that name the error.

    Never empty: the last resort is a checksum of the text without its numbers, which tells whether it changed.
    unknown: there is no verdict; without tests and causes, the first line says why.
    """
    tests = (next(filter(None, found.groups())) for found in _TESTS.finditer(output))
    found = list(dict.fromkeys([*tests, *causes(output)]))
    found = found or ([output.partition("\n")[0]] if unknown else list(dict.fromkeys(signature(output))))
    return found[:_MOST] or [sha256(re.sub(r"\d+", "0", output).encode(errors="replace")).hexdigest()]
