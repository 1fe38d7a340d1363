"""The server's logs: on standard error, as text or as JSON, without what clients send."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from mcp_types.methods import SPEC_CLIENT_METHODS

from mulligan.text.plain import clean
from mulligan.text.secrets import MASK, mask

_log = logging.getLogger("mulligan.serve.calls")

QUOTES = ("ValidationError",)
"""Errors whose messages quote what was validated; the log leaves these messages out."""


@contextmanager
def logs_on_stderr(level: str, *, as_json: bool = False, secrets: Iterable[str] = ()) -> Generator[None]:
    """Has the whole process log to standard error, until it ends.

    Args:
        level: of our own loggers. Libraries, which may log what clients send, log warnings; with "debug" also infos.
        as_json: log one JSON object to a line.
        secrets: masked wherever they occur.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter((_Json if as_json else _Text)(tuple(secrets)))
    root, mulligan = logging.getLogger(), logging.getLogger("mulligan")
    before, levels = list(root.handlers), (root.level, mulligan.level)
    ours, debug = logging.getLevelNamesMapping()[level.upper()], level == "debug"
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO if debug else max(ours, logging.WARNING))
    mulligan.setLevel(ours)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.handlers[:] = before
        root.setLevel(levels[0])
        mulligan.setLevel(levels[1])


class _Text(logging.Formatter):
    def __init__(self, secrets: tuple[str, ...]) -> None:
        super().__init__()
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """One line, followed by the traceback if there is one."""
        at = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{at} {record.levelname.lower()} {record.name}: {' '.join(clean(record.getMessage()).split())}"
        return self.masked("\n".join([line, *_traceback(record)]))

    def masked(self, text: str) -> str:
        """The text without what has the form of a secret, and without the secrets that are known."""
        return self.without_known(mask(text))

    def without_known(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


class _Json(_Text):
    def format(self, record: logging.LogRecord) -> str:
        """One object on one line. `error` is the traceback; facts about a request are fields of their own."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry: dict[str, Any] = {"time": f"{at}.{int(record.msecs):03}Z", "level": record.levelname.lower()}
        entry |= {"event": "message", "logger": record.name, "message": self.masked(record.getMessage())}
        entry |= getattr(record, "facts", {})
        if failure := "\n".join(_traceback(record)):
            entry["error"] = self.masked(failure)
        return self.without_known(json.dumps(entry, ensure_ascii=False, default=str))


def _traceback(record: logging.LogRecord) -> Iterator[str]:
    """The traceback, if there is one, with those of its causes; without source lines and quoting messages."""
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


_METHODS = SPEC_CLIENT_METHODS | {"tasks/get", "tasks/update", "tasks/cancel"}
"""The methods that are logged by their names."""

_TOOL = re.compile(r"[a-z][a-z0-9_-]{0,39}")
"""The form of our tools' names. No other name is logged."""


async def log_requests(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """Middleware of the SDK's server: logs the method, the tool, the outcome and the duration of each request."""
    if ctx.request_id is None or not _log.isEnabledFor(logging.INFO):
        return await call_next(ctx)
    start, outcome = time.monotonic(), "failed"
    try:
        result = cast("Mapping[str, Any]", await call_next(ctx))
        outcome = "refused" if result.get("isError") else "answered"
        return result
    except asyncio.CancelledError:
        outcome = "cancelled"
        raise
    finally:
        _log_request(ctx, outcome, round((time.monotonic() - start) * 1000, 1))


def _session(ctx: Any) -> str | None:
    """Tells the sessions of a log apart. The id itself would let its reader use the session."""
    id = ctx.request.headers.get("mcp-session-id") if ctx.request else None
    return hashlib.sha256(id.encode()).hexdigest()[:12] if id else None


def _log_request(ctx: Any, outcome: str, ms: float) -> None:
    method = ctx.method if ctx.method in _METHODS else "an unknown method"
    params = cast("Mapping[str, Any]", ctx.params or {})
    name = params.get("name") if method == "tools/call" else None
    tool = name if isinstance(name, str) and _TOOL.fullmatch(name) else None
    facts = {"event": "call", "method": method, "tool": tool, "session": _session(ctx), "ended": outcome, "ms": ms}
    _log.info("%s%s %s in %s ms", method, f" {tool}" if tool else "", outcome, ms, extra={"facts": facts})
