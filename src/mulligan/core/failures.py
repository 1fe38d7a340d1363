"""Exceptions of a function: which of them say nothing about its answer, and how long to wait before the next try."""

from __future__ import annotations

import errno
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias, cast

from mulligan.core.errors import InvalidInput

FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""The default seconds of the first and of the longest wait."""
TRANSIENT_STATUSES = frozenset({408, 425, 429})
"""HTTP statuses below 500 that say nothing about the request."""
_TRANSIENT = re.compile(
    r"rate_?limit|toomanyrequests|throttl|overloaded|resourceexhausted|serviceunavailable|internalserver"
    r"|(connection|connect|network|transport|protocol|url|proxy)error$|timeout(error|exception)?$"
    r"|disconnected|incompleteread|chunkedencoding|ssleof|gaierror|deadline_?exceeded|resource_exhausted|^unavailable$"
    r"|slow_?down|service_unavailable|internal_server",
    re.IGNORECASE,
)
"""Names of exceptions whose classes may not be imported here, and codes that they carry."""
_OF_MACHINE = frozenset(
    {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}
    | {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE}
)
"""Error numbers of a lost connection, a full disk or too many open files, for which `OSError` has no subclass."""


@dataclass(frozen=True)
class FailedTry:
    """The argument of a function that says how long to wait. Its names are tenacity's, so that its `wait_…` fit.

    Attributes:
        attempt_number: of the try, from 1.
        exception: what it raised.
    """

    attempt_number: int
    exception: BaseException


Wait: TypeAlias = float | tuple[float, float] | Callable[[FailedTry], float] | None


def check_wait(wait: Any) -> None:
    """Raises `InvalidInput` for a value that is not a `Wait`."""
    if wait is None or callable(wait):
        return
    parts: list[Any] = list(cast("tuple[Any, ...]", wait)) if isinstance(wait, tuple) else [wait, wait]
    numbers = all(isinstance(part, (int, float)) and not isinstance(part, bool) for part in parts)
    if len(parts) != 2 or not numbers or not all(0 <= part < math.inf for part in parts) or parts[0] > parts[1]:
        raise InvalidInput(
            "'wait' must be the first wait in seconds, a pair (first, longest), or a function that takes the "
            f"failed try, not {wait!r}."
        )


def seconds_to_wait(
    wait: Wait, number: int, error: BaseException, chance: Callable[[], float] = random.random
) -> float:
    """The seconds to wait after try `number` raised this exception.

    They double from try to try, and chance adds up to a half, so that programs that failed together do not try again
    together. If the server asked for a longer wait, that counts. Only a function may exceed the longest wait.
    """
    if wait is None and not is_transient(error):
        return 0.0
    if callable(wait):
        asked = wait(FailedTry(number, error))
        return float(asked) if isinstance(asked, (int, float)) and math.isfinite(asked) and asked > 0 else 0.0
    if wait == 0:
        return 0.0
    if wait is None:
        wait = FIRST_WAIT
    first, longest = wait if isinstance(wait, tuple) else (wait, max(wait, LONGEST_WAIT))
    grown = first * 2.0 ** min(number - 1, 60) * (1 + chance() / 2)
    return min(max(grown, retry_after(error) or 0.0), longest)


def is_transient(error: BaseException) -> bool:
    """Whether the exception says nothing about the answer: a rate limit, a failing server, a full disk.

    An exception that was raised from such a one counts too, and so does a group of nothing else.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_transient, cast("BaseExceptionGroup[BaseException]", error).exceptions))
    return any(map(_is_transient, _causes(error)))


def _is_transient(error: BaseException) -> bool:
    # Before the status, because some services answer 400 to one request too many.
    if any(map(_TRANSIENT.search, _codes(error))):
        return True
    status = _status(error)
    if status is not None:
        return status in TRANSIENT_STATUSES or status >= 500
    of_machine = isinstance(error, OSError) and error.errno in _OF_MACHINE
    if of_machine or isinstance(error, (ConnectionError, TimeoutError)):
        return True
    return any(_TRANSIENT.search(kind.__name__) for kind in type(error).__mro__[:-3])


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and those that it was raised from."""
    seen = set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__


def _status(error: BaseException) -> int | None:
    """The HTTP status that an exception of a client carries."""
    response = _get(error, "response")
    meta = _get(response, "ResponseMetadata")
    values = [_get(error, "status_code"), _get(error, "status"), _get(error, "code"), _get(response, "status_code")]
    values += [_get(response, "status"), _get(meta, "HTTPStatusCode")]
    statuses = (int(one) if isinstance(one, str) and re.fullmatch("[45][0-9]{2}", one) else one for one in values)
    return next((int(one) for one in statuses if isinstance(one, int) and 400 <= one < 600), None)


def _codes(error: BaseException) -> list[str]:
    """The error codes that an exception carries, as those of gRPC and AWS do."""
    code = _get(error, "code")
    try:
        code = code() if callable(code) else code
    except Exception:  # it takes arguments
        code = None
    codes = [code, _get(code, "name"), _get(_get(_get(error, "response"), "Error"), "Code")]
    return [name for name in codes if isinstance(name, str)]


def retry_after(error: BaseException) -> float | None:
    """The seconds that the server asked the client to wait, as the exception carries them; None if it did not."""
    if isinstance(error, BaseExceptionGroup):
        waits = map(retry_after, cast("BaseExceptionGroup[BaseException]", error).exceptions)
        return max((seconds for seconds in waits if seconds is not None), default=None)
    for cause in _causes(error):
        if (seconds := _seconds(_get(cause, "retry_after"))) is not None:
            return seconds
        response = _get(cause, "response")
        meta = _get(response, "ResponseMetadata")
        for headers in (_get(response, "headers"), _get(cause, "headers"), _get(meta, "HTTPHeaders")):
            if (seconds := _seconds_in_headers(headers)) is not None:
                return seconds
    return None


def _seconds_in_headers(headers: Any) -> float | None:
    try:
        pairs = headers.items() if hasattr(headers, "items") else headers
        fields = {_text(name).lower(): value for name, value in pairs}
    except Exception:  # not headers
        return None
    milliseconds = _seconds(fields.get("retry-after-ms"))
    return _seconds(fields.get("retry-after")) if milliseconds is None else milliseconds / 1000


def _seconds(value: Any) -> float | None:
    """The seconds that a number, a `timedelta`, or a text with a number or an HTTP date stands for; else None."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    value = _text(value) if isinstance(value, (bytes, bytearray)) else value
    try:
        seconds = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
    except OverflowError:  # an integer with hundreds of digits
        return None
    except ValueError:
        try:
            at = parsedate_to_datetime(str(value))
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            return max((at - datetime.now(UTC)).total_seconds(), 0.0)
        except (ValueError, OverflowError):
            return None
    return seconds if seconds is not None and math.isfinite(seconds) and seconds >= 0 else None


def _text(value: Any) -> str:
    return bytes(value).decode("latin-1") if isinstance(value, (bytes, bytearray)) else str(value)


def _get(thing: Any, name: str) -> Any:
    """An attribute or a key of an object; None if it has none, or if asking for it raises."""
    try:
        return cast("Mapping[str, Any]", thing).get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
    except Exception:
        return None
