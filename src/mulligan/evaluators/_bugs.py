"""Recognises errors that are probably bugs of the function or of its judge, which another try cannot correct."""

from __future__ import annotations

import logging
import re
import sysconfig
from collections import Counter
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb

from mulligan.core.errors import described, headline
from mulligan.core.records import Feedback, Past

log = logging.getLogger("mulligan")

KINDS = (TypeError, AttributeError, LookupError, ArithmeticError, NameError, ImportError, RuntimeError)
"""Errors that a program seldom raises on purpose. A `ValueError` often says what is wrong with an answer."""


class Bugs:
    """Counts the errors of one call that look like bugs."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._named: set[str] = set()

    def verdict(self, error: Exception, whose: str) -> Feedback | None:
        """Feedback without a verdict if the same error was raised in two tries; else None. whose: the buggy code."""
        if not isinstance(error, KINDS) or (_deliberate(error) and not isinstance(error, NotImplementedError)):
            return None
        description = described(error)
        self._seen[description] += 1
        if self._seen[description] < 2:
            return None
        self._named.add(headline(error))
        text = f"Probably a bug in {whose}, not in the answer: it raised the same error in two tries. {description}"
        if self._seen[description] == 2:
            log.warning("%s", text)
        return Feedback(None, text, source="exception")

    def left_out(self, past: Past) -> Past:
        """What the next try is shown, without the errors that are bugs."""
        evidence = tuple(finding for finding in past.evidence if not finding.got.startswith(tuple(self._named)))
        return past if len(evidence) == len(past.evidence) else replace(past, evidence=evidence)


def _deliberate(error: Exception) -> bool:
    """Whether a `raise` statement in the program's own code raised it, so that it is a verdict."""
    foreign = (
        str(Path(__file__).parent.parent),
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("purelib"),
        "<frozen",
    )
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(foreign)]
    return bool(frames) and re.search(r"\braise\b", frames[-1].line or "") is not None
