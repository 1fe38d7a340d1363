"""Signs that a text wants to instruct whoever reads it, in English and Chinese.

Shapes and phrases only: it sees attempts that are known, not intentions. Advice that is merely wrong passes. A phrase
that is forbidden in its own sentence ("never send …"), or quoted in a text about such attacks, is no sign.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache

from mulligan.bank.learn.signs_commands import COMMANDS, WORDS
from mulligan.bank.learn.signs_known import FORBIDS, MARKUP, SAID, compiled

_FOLDED = str.maketrans("аеорсхуіѕјһԁɡν’‘“”", "aeopcxyisjhdgv''\"\"")
"""Letters of other alphabets that look Latin, and typographic quotes."""
_SPACED = re.compile(r"(?<=\b\w) (?=\w\b)")


def plain(text: str) -> str:
    """The text as signs are looked for in it: one case, one width, no look-alikes, no letters set apart."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_FOLDED)
    return re.sub(r"\s+", " ", _SPACED.sub("", folded))


_SAID, _FORBIDS = compiled(SAID), compiled(FORBIDS)
_MARKUP = compiled(MARKUP, re.IGNORECASE)
_FORBIDDEN = re.compile(
    r"(?:\b(?:never|not|don't|cannot|avoid|refuse to|instead of|against)\b(?!\s+(?:hesitate|fail|forget))[^.;:!?]{0,30}"
    r"|(?:不要|不得|不能|切勿|禁止|避免|拒绝)[^。;:!?]{0,8})$"
)
_WARNS = re.compile(
    r"(?:\b(?:never|not|don't|cannot|avoid|refuse to|instead of|against|jamais|évitez|ne"
    r"|niemals|nie|nicht|vermeide|nunca|evita|никогда|не|нельзя)\b(?!\s+(?:hesitate|fail|forget))[^.;:!?,]{0,60}"
    r"|(?:不要|不得|不能|切勿|禁止|避免|拒绝|決して)[^。;:!?]{0,16})$".translate(_FOLDED)
)
"""Before a command: it is warned of."""
_ABOUT = re.compile(
    r"\b(?:injections?|injected|attacks?|attackers?|jailbreaks?|untrusted|hostile|malicious|phishing|treat\w*|data|content)\b"
    r"|注入|攻击|恶意|内容|数据"
)
_QUOTED = re.compile(r"\"[^\"]{1,200}\"|'[^'\n]{1,200}'|`[^`]{1,200}`|「[^」]{1,200}」")
_CODE = re.compile(r"`[^`\n]{1,24}`")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/_=-])")
_DECODE = re.compile(
    r"\b(?:decode|decoded|decoding|base64|b64decode|atob|eval|execute|exec)\b|解码|执行", re.IGNORECASE
)


@cache
def _commands() -> list[tuple[str, re.Pattern[str]]]:
    lists = {name: words.translate(_FOLDED) for name, words in WORDS.items()}
    return compiled({flag: lines.translate(_FOLDED) for flag, lines in COMMANDS.items()}, words=lists)


def signs(text: str, named: str = "") -> tuple[str, ...]:
    """The flags that this text earns, sorted; none for most. named: a text whose commands are none, such as the
    task."""
    named = plain(named)
    return tuple(
        sorted({*_found(text, named), *(flag for blob in _blobs(text) for flag in ("encoded", *_found(blob)))})
    )


def _found(text: str, named: str = "") -> Iterator[str]:
    simple = plain(text)
    quoted = [found.span() for found in _QUOTED.finditer(simple)] if _ABOUT.search(simple) else []
    code = [found.span() for found in _CODE.finditer(text)]
    for flag, pattern in _SAID:
        if any(not _FORBIDDEN.search(simple[max(at - 60, 0) : at]) for at in _at(pattern, simple, quoted)):
            yield flag
    for flag, pattern in _commands():
        for found in pattern.finditer(simple):
            if not _WARNS.search(simple[max(found.start() - 90, 0) : found.start()]) and found[0] not in named:
                yield flag
                break
    yield from (flag for flag, pattern in _FORBIDS if any(True for _ in _at(pattern, simple, quoted)))
    yield from (flag for flag, pattern in _MARKUP if any(True for _ in _at(pattern, text, code)))


def _at(pattern: re.Pattern[str], text: str, spans: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Where the pattern is found, spans left out."""
    for found in pattern.finditer(text):
        if not any(start <= found.start() and found.end() <= end for start, end in spans):
            yield found.start()


def _blobs(text: str) -> Iterator[str]:
    """What base64 in the text stands for, where it is to be decoded or says something that is a sign by itself."""
    asked = bool(_DECODE.search(text))
    for found in _BLOB.finditer(text):
        if (
            not re.fullmatch(r"[0-9a-fA-F]+", found[0])
            and (said := _decoded(found[0]))
            and (asked or any(_found(said)))
        ):
            yield said


def _decoded(blob: str) -> str:
    """The text in it; "" where it is none."""
    body = blob.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        said = base64.b64decode(body + "=" * (-len(body) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return said if said.isprintable() or said.replace("\n", " ").isprintable() else ""
