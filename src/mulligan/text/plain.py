"""Makes untrusted text safe to show in a terminal or in a list of a client."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Returns the text without control characters, except tabs and line feeds.

    They could move the cursor, change colours or reverse the reading order.
    """
    return _CONTROL.sub("", text.replace("\r\n", "\n"))


def one_line(text: str, width: int | None = None) -> str:
    """Returns untrusted text in one line, with at most `width` characters if it is given."""
    folded = " ".join(clean(text).split())
    return folded if width is None or len(folded) <= width else f"{folded[: max(width - 3, 0)]}..."


def encodable(text: str) -> str:
    """Returns text that UTF-8 can encode: a lone surrogate becomes a question mark."""
    return text.encode(errors="replace").decode()


def escaped(text: str) -> str:
    """Returns text that UTF-8 can encode: a lone surrogate becomes its escape, `\\ud800`."""
    return text.encode("utf-8", "backslashreplace").decode()


def count(number: float, thing: str) -> str:
    """Returns a number with its noun, such as "1 lesson", "1,200 lessons" or "2 tries"."""
    things = f"{thing[:-1]}ies" if re.search(r"[^aeiou]y\Z", thing) else f"{thing}s"
    return f"{number:{',' if isinstance(number, int) else 'g'}} {thing if number == 1 else things}"


def count_of(number: int, thing: str) -> str:
    """Returns a number of things as the subject of a sentence in the past, such as "1 step was" or "2 steps were"."""
    return f"{count(number, thing)} {'was' if number == 1 else 'were'}"


def with_tries(text: str) -> str:
    """Returns a text of the record with "try" in place of "trial"."""
    return re.sub(r"\btrial(s?)\b", lambda match: "tries" if match[1] else "try", text)
