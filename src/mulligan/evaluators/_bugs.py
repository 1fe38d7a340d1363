"""Errors that look like bugs of the function or of its judge, which no further try can correct."""

from __future__ import annotations

import logging
import re
import sysconfig
from collections import Counter
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb

from mulligan.core.errors import described
from mulligan.core.records import Feedback, Past

log = logging.getLogger("mulligan")

KINDS = (TypeError, AttributeError, LookupError, ArithmeticError, NameError, ImportError, RuntimeError)
"""Errors that a program seldom means to raise. A `ValueError` often says what is wrong with an answer."""


class Bugs:
    """The errors of one call that look like bugs, by what and where they are."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._named: set[str] = set()

    def verdict(self, error: Exception, whose: str) -> Feedback | None:
        """No verdict, with the reason, once the same error was raised in two tries; None otherwise."""
        if not isinstance(error, KINDS) or (_deliberate(error) and not isinstance(error, NotImplementedError)):
            return None
        what = described(error)
        self._seen[what] += 1
        if self._seen[what] < 2:
            return None
        self._named.add(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        text = f"Probably a bug in {whose}, not in the answer: it raised the same error in two tries. {what}"
        if self._seen[what] == 2:
            log.warning("%s", text)
        return Feedback(None, text, source="exception")

    def left_out(self, past: Past) -> Past:
        """What the next try is shown, without these errors."""
        evidence = tuple(one for one in past.evidence if not one.got.startswith(tuple(self._named)))
        return past if len(evidence) == len(past.evidence) else replace(past, evidence=evidence)


def _deliberate(error: Exception) -> bool:
    """Whether the program's own code raised it by a statement, so that it is a verdict and no accident."""
    apart = (str(Path(__file__).parent.parent), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<frozen")
    own = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(apart)]
    return bool(own) and re.search(r"\braise\b", own[-1].line or "") is not None
