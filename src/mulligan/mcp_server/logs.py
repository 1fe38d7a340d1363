"""Logs of a server: to standard error, as lines for people or as JSON, and without what clients said."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from mulligan.text.plain import clean
from mulligan.text.secrets import MASK

LEVELS = ("debug", "info", "warning", "error")

_calls = logging.getLogger("mulligan.serve.calls")

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


_TOOL = re.compile(r"[a-z][a-z0-9_-]{0,39}")
"""The form of our tools' names. Anything else that is called is not repeated."""


async def told(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """Middleware of the SDK's server: logs each request by its method and tool, and how long it took."""
    if ctx.request_id is None or not _calls.isEnabledFor(logging.INFO):
        return await call_next(ctx)
    began, ended = time.monotonic(), "failed"
    try:
        result = cast("Mapping[str, Any]", await call_next(ctx))
        ended = "refused" if result.get("isError") else "answered"
        return result
    except asyncio.CancelledError:
        ended = "cancelled"
        raise
    finally:
        _log_call(ctx, ended, round((time.monotonic() - began) * 1000, 1))


def _log_call(ctx: Any, ended: str, ms: float) -> None:
    from mcp_types.methods import SPEC_CLIENT_METHODS

    method = ctx.method if ctx.method in SPEC_CLIENT_METHODS else "an unknown method"
    params = cast("Mapping[str, Any]", ctx.params or {})
    name = params.get("name") if method == "tools/call" else None
    tool = name if isinstance(name, str) and _TOOL.fullmatch(name) else None
    facts = {"method": method, "tool": tool, "ended": ended, "ms": ms}
    _calls.info("%s%s %s in %s ms", method, f" {tool}" if tool else "", ended, ms, extra={"facts": facts})
