"""Finds commands and advice that destroy work, widen permissions or bypass a safeguard.

safeguards.toml contains the patterns: the screening of lessons withholds a text that matches, and hooks never offer
such a command as a fix (`sessions.effects.going_around`). design/125 says why.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache

from mulligan.core.late_pattern import LatePattern

Patterns = Sequence[tuple[str, LatePattern]]

LOOK_ALIKES = str.maketrans(
    "аеорсхуіѕјһԁɡкмтοαειρτυχν’‘“”ɪɢɴᴏʀᴇᴀʟᴘᴠᴜꜱᴛᴄᴅᴍʏʙʜᴋ", "aeopcxyisjhdgkmtoaeiptuxv''\"\"ignorealpvustcdmybhk"
)
"""Letters of other alphabets that look Latin, and typographic quotes."""
_DOTTED, _SPACED = re.compile(r"(?<=\b\w)[._*-](?=\w\b)"), re.compile(r"(?<=\b\w) (?=\w\b)")


def folded(text: str) -> str:
    """Returns the text as patterns expect it: in one case and width, without look-alikes and spaced-out letters."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(LOOK_ALIKES)
    return re.sub(r"\s+", " ", _SPACED.sub("", _DOTTED.sub("", plain)))


@cache
def patterns(table: str, without: Sequence[str] = ()) -> Patterns:
    """Returns the patterns of a table of safeguards.toml with their flags, except those with a flag in `without`."""
    tables = _tables()
    lines = {flag: text for flag, text in tables[table].items() if flag not in without}
    return compiled(lines, tables["words"], look_alikes=True)


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    with open(f"{os.path.splitext(__file__)[0]}.toml", encoding="utf-8") as file:
        return tables_in(file.read())


_LINE = re.compile(r"""^\[(\w+)\]$|^(?:([\w-]+)|"(.+?)") = (?:'''\n(.*?)'''|'(.*?)')$""", re.MULTILINE | re.DOTALL)


def tables_in(text: str) -> Mapping[str, Mapping[str, str]]:
    """Returns the tables of a TOML file that has only literal strings. Importing `tomllib` takes longer than this."""
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for name, bare, quoted, lines, line in _LINE.findall(text):
        if name:
            table = tables[name] = {}
        else:
            table[bare or quoted] = lines or line
    return tables


def compiled(
    lines: Mapping[str, str], words: Mapping[str, str], *, look_alikes: bool, flags: re.RegexFlag = re.NOFLAG
) -> Patterns:
    """Returns the patterns by flag, one for each line, with the word lists filled in.

    look_alikes: whether the patterns match texts that `folded` returns.
    """

    def written(text: str) -> str:
        return unicodedata.normalize("NFKC", text).translate(LOOK_ALIKES) if look_alikes else text

    lists = {f"<{name}>": re.sub(r"\n\s*", "", written(listed)) for name, listed in words.items()}
    result: list[tuple[str, LatePattern]] = []
    for flag, text in lines.items():
        for line in filter(None, written(text).split("\n")):
            for _ in range(2):  # a list may refer to another
                line = _LISTED.sub(lambda match: lists.get(match[0], match[0]), line)
            result.append((flag, LatePattern(line, flags=flags)))
    return result


_LISTED = re.compile(r"<[\w -]+>")
