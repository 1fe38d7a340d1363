"""Find commands and advice that destroy work, widen rights or go around a safeguard.

One table (safeguards.toml) for all who decide by it: the screening of lessons holds back a text that matches, and hooks
never offer such a command as what fixed an error (`going_around`). design/125 says why.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

Patterns: TypeAlias = Sequence[tuple[str, re.Pattern[str]]]

LOOK_ALIKES = str.maketrans(
    "аеорсхуіѕјһԁɡкмтοαειρτυχν’‘“”ɪɢɴᴏʀᴇᴀʟᴘᴠᴜꜱᴛᴄᴅᴍʏʙʜᴋ", "aeopcxyisjhdgkmtoaeiptuxv''\"\"ignorealpvustcdmybhk"
)
"""Letters of other alphabets that look Latin, and typographic quotes."""
_DOTTED, _SPACED = re.compile(r"(?<=\b\w)[._*-](?=\w\b)"), re.compile(r"(?<=\b\w) (?=\w\b)")
_BUILT = re.compile(
    r"(?:\S*/)?(?:node_modules|\.ds_store|thumbs\.db|dist|build|target|out|coverage|htmlcov|vendor|venv|tmp|temp|[\w.-]*cache\w*|__pycache__"
    r"|pods|\.(?:next|nuxt|turbo|venv|tox|nox|parcel-cache|gradle|angular|svelte-kit|nyc_output|output|eggs|coverage|dart_tool)"
    r"|obj|_build|cmake-build-\w+|deriveddata|[\w.*-]+\.(?:egg-info|tsbuildinfo)"
    r"|package-lock\.json|yarn\.lock|\*\.(?:pyc|o|log|tmp)|[\w.-]+\.(?:pyc|o|log|tmp|lock|pid|sock))(?:/\S*)?"
)
"""What is made anew by the next build: removing it destroys nothing."""
_FINDS = re.compile(
    r"\bfind (?![\"']?[/~$])(?:(?!-(?:o|not|delete|exec)\b|!)[^;&|\s]+ )*?-i?name [\"']?([^\s\"']+)[\"']?"
    r"(?: -(?:type|prune|print0?|maxdepth)(?: [a-z\d]\b)?)*"
    r"(?: -delete\b| -exec rm (?:-\w+ )?\{\} ?(?:\\;|;|\+)| ?\| ?xargs (?:-0 )?rm(?: -\w+)*)"
)
"""What finds files by one name and removes them."""
_REMOVES = re.compile(r"(?<![\w-])(?<!compose )(?:rm|git rm|unlink|rmdir|del|remove-item)\s+((?:-\S+\s+)*)([^;&|\n]*)")


def folded(text: str) -> str:
    """The text in which patterns are looked for: one case, one width, no look-alikes, no letters set apart."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(LOOK_ALIKES)
    return re.sub(r"\s+", " ", _SPACED.sub("", _DOTTED.sub("", plain)))


def going_around(step: str) -> str:
    """What is wrong with a step as a remedy, such as "skips a check"; "" for nothing.

    Stricter than the screening of texts: a remedy is done without a second thought, and its absence harms nobody.
    """
    plain = _FINDS.sub(lambda found: "" if _BUILT.fullmatch(found[1]) else found[0], folded(step))
    for removal in _REMOVES.finditer(plain):
        paths = [path.strip("\"'") for path in removal[2].split() if not path.startswith(("2>", ">"))]
        if not paths or not all(map(_BUILT.fullmatch, paths)):
            return "destroys work"
    plain = _REMOVES.sub("", plain)
    for table in ("commands", "remedies"):
        for flag, pattern in patterns(table):
            if flag not in ("foreign code", "payment") and pattern.search(plain):
                return flag
    return ""


@cache
def patterns(table: str) -> Patterns:
    """The lines of a table of safeguards.toml, each with its flag."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return compiled(tables[table], tables["words"], look_alikes=True)


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
