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
from itertools import pairwise
from typing import TypeAlias

from mulligan.core.late_pattern import LatePattern

Patterns: TypeAlias = Sequence[tuple[str, LatePattern]]

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
    found: list[tuple[str, LatePattern]] = []
    for flag, text in lines.items():
        for line in filter(None, written(text).split("\n")):
            for _ in range(2):  # a list may name another
                for name, listed in lists.items():
                    line = line.replace(name, listed)
            found.append((flag, LatePattern(line, () if flags else beginnings(line), flags)))
    return found


_MARK = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]")
_ASIDE = re.compile(r"(?:\\b|\^|\(\?<[!=](?:\\.|[^()\\])*\))*")
_LITERALS = re.compile(r"(?:[\w \-/@:;=<>!,\"'#%&~`]|\\[^\w\s])*")
_OPTIONAL = ("?", "*", "{")


def beginnings(pattern: str) -> Sequence[str]:
    """The texts with one of which every match of a pattern begins; none where its first part does not say so.

    pattern: without flags.
    """
    found: list[str] = []
    for branch in _branches(pattern):
        at = _end(_ASIDE, branch, 0)
        if branch.startswith("(?:", at):
            end = _group_end(branch, at)
            begun = () if branch[end : end + 1] in _OPTIONAL else beginnings(branch[at + 3 : end - 1])
        else:
            end = _end(_LITERALS, branch, at)
            literal = re.sub(r"\\(.)", r"\1", branch[at:end])
            begun = [literal[:-1] if branch[end : end + 1] in _OPTIONAL else literal]
        if not all(begun) or not begun:
            return ()
        found += begun
    return tuple(dict.fromkeys(found))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _branches(pattern: str) -> Sequence[str]:
    """The alternatives of a pattern; those in groups stay together."""
    depth, cuts = 0, [-1]
    for mark in _MARK.finditer(pattern):
        depth += (mark[0] == "(") - (mark[0] == ")")
        if mark[0] == "|" and not depth:
            cuts.append(mark.start())
    return [pattern[left + 1 : right] for left, right in pairwise([*cuts, len(pattern)])]


def _group_end(branch: str, at: int) -> int:
    """Where the group ends that begins here."""
    depth = 0
    for mark in _MARK.finditer(branch, at):
        depth += (mark[0] == "(") - (mark[0] == ")")
        if not depth:
            return mark.end()
    return len(branch)
