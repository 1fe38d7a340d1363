"""Logs of a server: to standard error, as lines for people or as JSON, and without what clients said."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

from mulligan.core.plain import clean
from mulligan.core.secrets import MASK

LEVELS = ("debug", "info", "warning", "error")

QUOTES = ("ValidationError",)
"""Errors whose messages quote what was validated: their messages are left out."""


def log_to_stderr(level: str, *, as_json: bool = False, secrets: Iterable[str] = ()) -> None:
    """From now on, for the whole process. level: of our own loggers; those of libraries, which write down what passes
    through them, say their warnings, and with "debug" what they call information. secrets: never written.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter((_Json if as_json else _Text)(tuple(secrets)))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    ours, debug = logging.getLevelNamesMapping()[level.upper()], level == "debug"
    root.setLevel(logging.INFO if debug else max(ours, logging.WARNING))
    logging.getLogger("mulligan").setLevel(ours)
    logging.captureWarnings(True)


class _Text(logging.Formatter):
    def __init__(self, secrets: tuple[str, ...]) -> None:
        super().__init__()
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback below it."""
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        said = f"{at} {record.levelname.lower()} {record.name}: {' '.join(clean(record.getMessage()).split())}"
        return self.masked("\n".join([said, *_failure(record)]))

    def masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


class _Json(_Text):
    def format(self, record: logging.LogRecord) -> str:
        """One object, on one line. `error` holds the traceback; what is known of a request stands beside the rest."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        said: dict[str, Any] = {"time": f"{at}.{int(record.msecs):03}Z", "level": record.levelname.lower()}
        said |= {"logger": record.name, "message": record.getMessage(), **getattr(record, "facts", {})}
        if failure := "\n".join(_failure(record)):
            said["error"] = failure
        return self.masked(json.dumps(said, ensure_ascii=False, default=str))


def _failure(record: logging.LogRecord) -> Iterator[str]:
    """The traceback, if there is one, with what led to it; without the lines that quote."""
    error, seen = record.exc_info[1] if record.exc_info else None, set[int]()
    chain: list[BaseException] = []
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        chain.insert(0, error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    for one in chain:
        yield from (clean(line.rstrip("\n")) for line in traceback.format_tb(one.__traceback__))
        name = type(one).__name__
        yield f"{name}: (what it quotes is left out)" if name in QUOTES else f"{name}: {clean(str(one))}"
