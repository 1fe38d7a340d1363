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

FIRST, LONGEST = 0.5, 60.0
"""Seconds of the first wait and of the longest, where no others are named."""
BUSY = frozenset({408, 425, 429})
"""HTTP statuses below 500 that say nothing about the request."""
_TRANSIENT = re.compile(
    r"rate_?limit|toomanyrequests|throttl|overloaded|resourceexhausted|serviceunavailable|internalserver"
    r"|(connection|connect|network|transport|protocol|url|proxy)error$|timeout(error|exception)?$"
    r"|disconnected|incompleteread|chunkedencoding|ssleof|gaierror|deadline_?exceeded|resource_exhausted|^unavailable$"
    r"|slow_?down|service_unavailable|internal_server",
    re.IGNORECASE,
)
"""Names of exceptions of clients whose classes are not known here, and the codes that they carry."""
_LOST = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})
"""Numbers of an `OSError` that is a lost connection and has no class."""


@dataclass(frozen=True)
class FailedTry:
    """What a function that says how long to wait is given. The names are those of tenacity, so that its `wait_…` fit.

    Attributes:
        attempt_number: of the try, from 1.
        exception: what it raised.
    """

    attempt_number: int
    exception: BaseException


Wait: TypeAlias = float | tuple[float, float] | Callable[[FailedTry], float] | None


def check_wait(wait: Any) -> None:
    """Raises `InvalidInput` for what is no wait."""
    if wait is None or callable(wait):
        return
    parts: list[Any] = list(cast("tuple[Any, ...]", wait)) if isinstance(wait, tuple) else [wait, wait]
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in parts)
    if len(parts) != 2 or not numbers or not all(0 <= one < math.inf for one in parts) or parts[0] > parts[1]:
        raise InvalidInput(
            "'wait' must be the seconds of the first wait, the pair (first, longest), or a function of the failed try, "
            f"not {wait!r}."
        )


def seconds_to_wait(
    wait: Wait, number: int, error: BaseException, chance: Callable[[], float] = random.random
) -> float:
    """Seconds before the next try, after this exception of the try of this number.

    They double from try to try, and chance adds up to a half, so that programs that failed together do not try again
    together. What the server asks for counts where it is more. Nothing is longer than the longest wait.
    """
    if wait is None and not is_transient(error):
        return 0.0
    if callable(wait):
        asked = wait(FailedTry(number, error))
        return float(asked) if isinstance(asked, (int, float)) and math.isfinite(asked) and asked > 0 else 0.0
    if wait == 0:
        return 0.0
    first, longest = (
        (FIRST, LONGEST) if wait is None else wait if isinstance(wait, tuple) else (wait, max(wait, LONGEST))
    )
    grown = first * 2.0 ** min(number - 1, 60) * (1 + chance() / 2)
    return min(max(grown, retry_after(error) or 0.0), longest)


def is_transient(error: BaseException) -> bool:
    """Whether the exception says nothing about the answer: a rate limit, a lost connection, a server that fails.

    So does one that was raised from such an exception, and a group of nothing else.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_transient, cast("BaseExceptionGroup[BaseException]", error).exceptions))
    return any(map(_is_transient, _causes(error)))


def _is_transient(error: BaseException) -> bool:
    if any(map(_TRANSIENT.search, _codes(error))):  # of services that answer 400 to one request too many
        return True
    status = _status(error)
    if status is not None:
        return status in BUSY or status >= 500
    if isinstance(error, (ConnectionError, TimeoutError)) or (isinstance(error, OSError) and error.errno in _LOST):
        return True
    return any(_TRANSIENT.search(kind.__name__) for kind in type(error).__mro__[:-3])


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and those that it was raised from."""
    seen = set[int]()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__


def _status(error: BaseException) -> int | None:
    """The HTTP status that an exception of a client carries."""
    response = _get(error, "response")
    meta = _get(response, "ResponseMetadata")
    found = [_get(error, "status_code"), _get(error, "status"), _get(error, "code"), _get(response, "status_code")]
    found += [_get(response, "status"), _get(meta, "HTTPStatusCode")]
    numbers = (int(one) if isinstance(one, str) and re.fullmatch("[45][0-9]{2}", one) else one for one in found)
    return next((int(one) for one in numbers if isinstance(one, int) and 400 <= one < 600), None)


def _codes(error: BaseException) -> list[str]:
    """The names of errors that an exception carries, as those of gRPC and of AWS do."""
    code = _get(error, "code")
    try:
        code = code() if callable(code) else code
    except Exception:  # asks for arguments
        code = None
    found = [code, _get(code, "name"), _get(_get(_get(error, "response"), "Error"), "Code")]
    return [one for one in found if isinstance(one, str)]


def retry_after(error: BaseException) -> float | None:
    """The seconds that the server asked to wait, as an exception of a client carries them; None if it did not."""
    if isinstance(error, BaseExceptionGroup):
        inner = map(retry_after, cast("BaseExceptionGroup[BaseException]", error).exceptions)
        return max((one for one in inner if one is not None), default=None)
    for one in _causes(error):
        if (seconds := _seconds(_get(one, "retry_after"))) is not None:
            return seconds
        response = _get(one, "response")
        meta = _get(response, "ResponseMetadata")
        for headers in (_get(response, "headers"), _get(one, "headers"), _get(meta, "HTTPHeaders")):
            if (seconds := _of_headers(headers)) is not None:
                return seconds
    return None


def _of_headers(headers: Any) -> float | None:
    try:
        pairs = headers.items() if hasattr(headers, "items") else headers
        fields = {_text(name).lower(): value for name, value in pairs}
    except Exception:  # no headers
        return None
    milliseconds = _seconds(fields.get("retry-after-ms"))
    return _seconds(fields.get("retry-after")) if milliseconds is None else milliseconds / 1000


def _seconds(value: Any) -> float | None:
    """Seconds of a number, a time span, or a text with a number or a date."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    value = _text(value) if isinstance(value, (bytes, bytearray)) else value
    try:
        seconds = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None
    except OverflowError:  # an integer of hundreds of digits
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
    """An attribute or a key of what a client raised; None without it, or where asking for it raises."""
    try:
        return cast("Mapping[str, Any]", thing).get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
    except Exception:
        return None
