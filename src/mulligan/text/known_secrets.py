"""Masks known secret values in any encoding."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from functools import cached_property

from mulligan.core.records import Json
from mulligan.text.secrets import MASK, each_text

SHORTEST = 8
"""The fewest characters of a value that is masked. A shorter one may be a word, such as the key "ollama"."""
_CODED = 6
"""The fewest characters of base64 that are looked for."""


class KnownSecrets:
    """Masks these values wherever they occur: plain, escaped for JSON, URLs or HTML, in hex or in base64."""

    def __init__(self, values: Iterable[str], shortest: int = SHORTEST) -> None:
        self._values = sorted({value for value in values if len(value) >= shortest}, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"KnownSecrets({MASK})"

    def mask(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self._values else text

    def mask_json(self, value: Json) -> Json:
        return each_text(value, lambda text, _: self.mask(text)) if self._values else value

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        forms = [form for value in self._values for form in (_escaped(value), *_coded(value))]
        return re.compile("|".join(forms))


def _escaped(value: str) -> str:
    """Returns a pattern for the value in which any character may be escaped for JSON, URLs or HTML."""
    parts: list[str] = []
    for char in value:
        wide = char.encode("utf-16-be").hex()
        coded = "".join(rf"\\{{1,8}}u{wide[at : at + 4]}" for at in range(0, len(wide), 4))
        percent = "".join(f"%(?:25){{0,3}}{byte:02x}" for byte in char.encode())
        hexed = rf"\\{{1,8}}x{ord(char):02x}|" if ord(char) < 256 else ""
        entity = rf"&\#(?:{ord(char)}|x0{{0,4}}{ord(char):x});"
        plain = rf"\\{{0,8}}{re.escape(char)}" if not char.isalnum() else re.escape(char)
        parts.append(f"(?:{plain}|(?i:{coded}|{hexed}{percent}|{entity}))")
    return "".join(parts)


def _coded(value: str) -> list[str]:
    """Returns patterns for the value in hex, and for the part of it that is the same in any base64."""
    data = value.encode()
    forms = [f"(?i:{data.hex()})"]
    for lead in range(3):
        coded = base64.b64encode(b"\0" * lead + data).decode().rstrip("=")
        first, last = -(-lead * 8 // 6), (lead + len(data)) * 8 // 6
        kept = coded[first:last]
        if len(kept) >= _CODED:
            forms.append(re.escape(kept).replace(r"\+", r"(?:\+|-|%2[bB])").replace("/", r"(?:\\?/|_|%2[fF])"))
    return forms
