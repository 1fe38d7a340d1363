"""What the reader knows of `stream:game`: how rounds and facts are worded, but no stance and no opening."""

from __future__ import annotations

import re

from mulligan.bench.streams.reader.facts import Form, Notes

OPENING = "A match against the fencer Orlo:"
SIDES = ("high", "low", "left", "right", "centre")
OPEN = Form("in the stance '{stance}' the opening is '{side}'", ("stance",), "The stance '{stance}'")
FORMS = (OPEN,)

_STANCE = re.compile(r"Orlo takes the stance '(\w+)'")


def act(notes: Notes) -> str:
    """Strike at the known opening, else always at the same side."""
    stance = _STANCE.findall(notes.own)[-1]
    return f"strike[{next(iter(notes.values(OPEN, stance, marked=True)), SIDES[0])}]"
