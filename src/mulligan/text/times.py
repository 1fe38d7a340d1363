"""Times as people write them: a date, seconds since the epoch, or a span such as 30d."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from mulligan.core.errors import InvalidInput
from mulligan.text.plain import count

_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
_SPAN = re.compile(r"(\d{1,6})([hdw])")
_SECONDS = re.compile(r"\d{9,}(?:\.\d*)?")  # fewer digits may be a date such as 20260131
_DAY = timedelta(days=1).total_seconds()


def span_of(text: str) -> timedelta | None:
    """Returns the span of a text such as 30d, 12h or 8w; None for any other text."""
    match = _SPAN.fullmatch(text.strip())
    return match and timedelta(hours=int(match[1]) * _HOURS[match[2]])


def time_of(value: str | float | None, *, future: bool = False) -> float | None:
    """Returns a time as seconds since the epoch.

    Args:
        value: such as 2026-01-31, 2026-01-31T12:00, 2026-01-31T12:00Z, 30d, seconds since the epoch, or never.
            A time without a zone is in the zone of this machine.
        future: whether a span begins now; otherwise it ends now.

    Returns:
        None for never.

    Raises:
        InvalidInput: the value is not one of these.
    """
    if value is None or value == "never":
        return None
    text = str(value).strip()
    try:
        if (span := span_of(text)) is not None:
            return round(time.time() + (1 if future else -1) * span.total_seconds(), 3)
        number = isinstance(value, float | int) or _SECONDS.fullmatch(text)
        at = float(text) if number else datetime.fromisoformat(text).timestamp()
        datetime.fromtimestamp(at, UTC)
        return at
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"{text!r:.60} is not a time such as 2026-01-31, 2026-01-31T12:00Z, 30d or never.") from None


def day(at: float) -> str:
    """Returns the day of a time, in UTC."""
    return moment(at, "%Y-%m-%d")


def moment(at: float, form: str = "%Y-%m-%d %H:%M:%S UTC") -> str:
    """Returns a time in UTC as text, for a reader whose time zone is unknown."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):  # a year that calendars do not have
        return f"{at:g} s"


def age(at: float) -> str:
    """Returns a day and how many days ago it was, such as "2026-01-31, 34 days ago"."""
    days = int((time.time() - at) // _DAY)
    return f"{day(at)}, {count(days, 'day')} ago" if days > 0 else day(at)
