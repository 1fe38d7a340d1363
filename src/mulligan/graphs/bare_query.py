"""Extracts a query from a model's text: from thoughts, a code fence, JSON, a label, quotation marks or sentences.

Outside strings, typographic spaces, dashes and quotation marks and HTML entities become plain characters. A query that
can be read as it is stays unchanged.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any, cast

from mulligan.graphs._guard import BEGINNINGS, CHARACTERS, ELSEWHERE, WRITING, Refused, tokens
from mulligan.pages import answer_of
from mulligan.running import read_object

LONGEST = 5 * CHARACTERS
"""The most characters of a text in which a query is looked for."""
TAKEN_OUT = "the query alone was read, with plain spaces, dashes and quotation marks"
_STARTS = "|".join(sorted(BEGINNINGS | WRITING | ELSEWHERE - {"CYPHER", "SELECT"}))
_START = re.compile(rf"\s*(?://[^\n]*\n\s*|/\*.*?\*/\s*)*+(?:{_STARTS}|{_STARTS.lower()})\b(?!\s*:)", re.DOTALL)
_FENCE = re.compile(r"(?<![`~])(```|~~~)[ \t]*(?:\w+[ \t]*\n|\n)?(.*?)\1", re.DOTALL)
_LABEL = re.compile(
    r"\s*[*#]*\s*(?:(?:open)?cypher|(?:\w+[ \t]+){0,5}query|answer)[ \t]*(?:\*\*)?(?::|\n)(?:\*\*)?", re.I
)
_FIXED = re.compile(
    r"('(?:[^'\\]|\\.)*+(?:'|\\?\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|`[^`]*+(?:`|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z))",
    re.DOTALL,
)
"""Strings, names in backticks and comments, in which nothing is looked for."""
_FOREIGN = re.compile(r"</?\w+>|<\||\[/?[A-Z]+\]|&(?:lt|gt|amp|quot|#\w+);|`{3}")
"""Tags, and characters of a web page."""
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
_NAMES = ("query", "cypher", "cypher_query", "statement", "revised_query", "answer")
_WRAPPED = re.compile(
    r"""(?:\w+[ \t]*=[ \t]*)?(?:(?P<same>'{3}|"{3}|\$\$)(.*?)(?P=same)
    |<(?P<tag>\w{1,30})>(.*?)</(?P=tag)>|\[(?P<word>[A-Z]{1,30})\](.*?)\[/(?P=word)\]|\((.*)\)|\u00ab(.*)\u00bb)""",
    re.DOTALL | re.VERBOSE,
)
"""Tags, and marks of a program or of Markdown."""
_LINE = re.compile(
    r"^[ \t]*(?:(?:[-*>]|\d{1,2}[.)]|\w{1,20}\$)[ \t]+)?(?=(?:OPTIONAL\s+)?MATCH\s*\()|(?<=[:!] )(?=MATCH\s*\()",
    re.MULTILINE,
)
_SENTENCE = r"[A-Z][a-z']+,? [a-z]"
_ABOUT = r"(?:This|It|The) [a-z]+ [a-z]|(?:Explanation|Note): [A-Z][a-z]* [a-z]"
_WORDS_BEHIND = re.compile(
    rf"\n[ \t]*\n\s*+((?=[*#-]|\d{{1,2}}[.)] |{_SENTENCE}|(?<=\n)(?:{_ABOUT})))?"
    rf"|(?<=;)\s*+((?={_SENTENCE}))|\n((?={_ABOUT}))"
)
"""Where sentences begin: an empty group says so. Without one it is a gap, which is matched so that it is read once."""
_PLAIN = str.maketrans(
    {
        **dict.fromkeys(
            "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "
        ),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", ""),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)
_CURLY = re.compile("\u2018([^'\u2018\u2019\\\\\n]*)\u2019|\u201c([^\"\u201c\u201d\\\\\n]*)\u201d")


def bare_query(text: str) -> str:
    """Return the query in a model's text; "" if it has only thoughts.

    If there is no query, the text itself is returned, without thoughts.
    """
    query = text if _is_query(text) else answer_of(text)
    if len(query) > LONGEST or _is_query(query):
        return query
    found = query
    for _ in range(6):  # a label before JSON in a code fence, with odd characters
        found = _taken_out(found)
        if _is_query(found):
            return found
    return query


def _is_query(text: str) -> bool:
    """Whether a text begins like a query and consists of tokens, without sentences after it."""
    plain = _FIXED.sub("''", text)
    if not _START.match(text) or _FOREIGN.search(plain) or _words_behind(text) is not None:
        return False
    try:
        tokens(text)
    except Refused:
        return False
    return True


def _taken_out(text: str) -> str:
    """Return the text without the outermost wrapping of its query."""
    if blocks := [block for _, block in _FENCE.findall(text) if block.strip()]:
        return blocks[-1].strip()
    bare = text.strip().strip("*") if text.count("```") != 1 else text.replace("```", "").strip()
    if inner := _in_json(bare):
        return inner
    wrapped = _WRAPPED.fullmatch(bare)
    inner = wrapped[wrapped.lastindex or 0].strip() if wrapped else ""
    if _START.match(inner) or inner.startswith("{"):
        return inner
    if len(bare) > 2 and bare[-1] == _QUOTES.get(bare[0]):
        return bare.strip(bare[0] + bare[-1]).strip()
    if label := _LABEL.match(bare):
        return bare[label.end() :].strip()
    if not _START.match(bare) and (line := _LINE.search(bare)):
        return bare[line.end() :]
    if (behind := _words_behind(bare)) is not None:
        return bare[:behind].rstrip()
    if "\\" in bare and _is_query(inner := _in_json(f'"{bare}"')):
        return inner
    straight = _outside(bare, _straight)  # first, so that what is in the strings stays
    return straight if straight != bare else _outside(bare, lambda part: part.translate(_PLAIN)).strip()


def _words_behind(text: str) -> int | None:
    """Return where sentences about the query begin, outside its strings and comments; None without any."""
    fixed = _FIXED.sub(lambda part: "'" * len(part[0]), text)
    starts = (found.start() for found in _WORDS_BEHIND.finditer(text) if found.lastindex)
    return next((start for start in starts if fixed[start] != "'"), None)


def _outside(text: str, change: Callable[[str], str]) -> str:
    """Return the text with this change outside strings, names in backticks and comments."""
    return "".join(part if n % 2 else change(part) for n, part in enumerate(_FIXED.split(text)))


def _straight(text: str) -> str:
    return _CURLY.sub(lambda quote: f'"{quote[2]}"' if quote[1] is None else f"'{quote[1]}'", html.unescape(text))


def _in_json(text: str) -> str:
    try:
        value: Any = json.loads(text, strict=False) if text.startswith('"') else read_object(text).value
    except (ValueError, RecursionError):
        return ""
    if isinstance(value, dict):
        named = {name.lower(): each for name, each in cast(dict[str, Any], value).items()}
        value = next((named[name] for name in _NAMES if name in named), "")
    return value.strip() if isinstance(value, str) else ""
