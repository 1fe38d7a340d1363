"""Times and amounts as people read them, in the terminal, in the studio and in files."""

from __future__ import annotations

import time

from mulligan.core.records import Usage
from mulligan.text.plain import count


def when(at: float) -> str:
    """Returns a time as text, in this machine's time zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (ValueError, OverflowError, OSError):  # a year that calendars do not have
        return f"{at:g} s"


def zone(at: float | None = None) -> str:
    """Returns the time zone that `when` uses, now or at another time."""
    name = time.strftime("%Z (UTC%z)", time.localtime(at))
    return "UTC" if name == "UTC (UTC+0000)" else name


def dollars(usage: Usage) -> str:
    """Returns the cost in US dollars as text; "" if nothing was used. An unknown cost is never shown as zero."""
    if usage.cost is None:
        return "cost unknown" if usage.tokens else ""
    return money(usage.cost) if usage.cost else ""


def money(cost: float) -> str:
    """Returns US dollars as text: with hundredths of a cent below one dollar, else with cents."""
    return f"${cost:,.4f}" if cost < 1 else f"${cost:,.2f}"


def used(usage: Usage, seconds: float | None = None) -> str:
    """Returns the known parts of a usage as text; "" if there are none."""
    parts = [
        count(usage.calls, "call") if usage.calls else "",
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out" if usage.tokens else "",
        dollars(usage),
        "" if seconds is None else f"{seconds:.1f} s",
    ]
    return ", ".join(filter(None, parts))
