"""Find commands and advice that destroy work, widen rights or go around a safeguard.

One table (safeguards.toml) for all who decide by it: the screening of lessons holds back a text that matches, and hooks
never offer such a command as what fixed an error (`sessions.effects.going_around`). design/125 says why.
"""

from __future__ import annotations

import os
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeAlias

Patterns: TypeAlias = Sequence[tuple[str, re.Pattern[str]]]

LOOK_ALIKES = str.maketrans(
    "аеорсхуіѕјһԁɡкмтοαειρτυχν’‘“”ɪɢɴᴏʀᴇᴀʟᴘᴠᴜꜱᴛᴄᴅᴍʏʙʜᴋ", "aeopcxyisjhdgkmtoaeiptuxv''\"\"ignorealpvustcdmybhk"
)
"""Letters of other alphabets that look Latin, and typographic quotes."""
_DOTTED, _SPACED = re.compile(r"(?<=\b\w)[._*-](?=\w\b)"), re.compile(r"(?<=\b\w) (?=\w\b)")


def folded(text: str) -> str:
    """The text in which patterns are looked for: one case, one width, no look-alikes, no letters set apart."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(LOOK_ALIKES)
    return re.sub(r"\s+", " ", _SPACED.sub("", _DOTTED.sub("", plain)))


@cache
def patterns(table: str, without: Sequence[str] = ()) -> Patterns:
    """The lines of a table of safeguards.toml, each with its flag; those with a flag of `without` left out."""
    with open(f"{os.path.splitext(__file__)[0]}.toml", "rb") as file:
        tables = tomllib.load(file)
    lines = {flag: text for flag, text in tables[table].items() if flag not in without}
    return compiled(lines, tables["words"], look_alikes=True)


def compiled(
    lines: Mapping[str, str], words: Mapping[str, str], *, look_alikes: bool, flags: re.RegexFlag = re.NOFLAG
) -> Patterns:
    """Patterns by flag, one a line, with the word lists filled in. look_alikes: written as `folded` writes texts."""

    def written(text: str) -> str:
        return unicodedata.normalize("NFKC", text).translate(LOOK_ALIKES) if look_alikes else text

    lists = {f"<{name}>": re.sub(r"\n\s*", "", written(listed)) for name, listed in words.items()}
    found: list[tuple[str, re.Pattern[str]]] = []
    for flag, text in lines.items():
        for line in filter(None, written(text).split("\n")):
            for _ in range(2):  # a list may name another
                for name, listed in lists.items():
                    line = line.replace(name, listed)
            found.append((flag, re.compile(line, flags)))
    return found
