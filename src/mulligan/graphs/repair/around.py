"""Takes a query out of what a model wrote around it, before its text is read: design/119.

Each rule knows one thing that stands around or in place of a right query: a code fence, a label, quotation marks, JSON,
characters of a web page. A query that can be read as it is stays as it is.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from typing import cast

from mulligan.graphs._guard import BEGINNINGS, CHARACTERS, ELSEWHERE, LINKS, WRITING, Refused, tokens
from mulligan.graphs.schema_check import Checked
from mulligan.models.near_json import NearJson
from mulligan.text.thoughts import answer_of

THOUGHTS = "thoughts and tokens of the chat format were left out"
LONGEST = 5 * CHARACTERS
"""The characters of the longest text in which a query is sought."""
_STARTS = "|".join(sorted(BEGINNINGS | WRITING | ELSEWHERE - {"CYPHER", "SELECT"}))
_START = re.compile(
    rf"\s*(?://[^\n]*\n\s*|/\*.*?\*/\s*)*+(?:(?:{_STARTS}|{_STARTS.lower()})\b(?!\s*:)|Match\s*\()", re.DOTALL
)
"""How a query begins; a word such as "Use" or "With" begins a sentence."""
_INK = re.compile(r"\s*(?://[^\n]*(?:\n\s*|\Z)|/\*.*?\*/\s*)*+\S", re.DOTALL)
"""More than comments."""
_LINE = re.compile(
    r"(?:^[ \t]*(?:[-*][ \t]+)?|(?<=[:>.$]) *)(?=(?:OPTIONAL\s+)?MATCH\s*\()"
    r"|^[ \t]*(?:(?:OPTIONAL\s+)?MATCH\s*\w|(?:UNWIND|CALL|WITH|RETURN)\s|[Mm]atch\s*\()",
    re.MULTILINE,
)
_MATCH = re.compile(r"\bMATCH\s*\(")
_WRAPPED = re.compile(
    r"""\s*(?:\w+[ \t]*=[ \t]*)?(?:(?P<same>'{3}|"{3}|\*\*|\$\$)(?P<inner>.*?)(?P=same)
    |<(?P<tag>\w{1,30})>(?P<tagged>.*?)</(?P=tag)>|\[(?P<word>[A-Z]{1,30})\](?P<worded>.*?)\[/(?P=word)\]
    |\{(?P<braced>.*)\}|\((?P<rounded>.*)\)|\u00ab(?P<angled>.*)\u00bb)\s*""",
    re.DOTALL | re.VERBOSE,
)
_INNER = ("inner", "tagged", "worded", "braced", "rounded", "angled")
_OPEN_END = re.compile(r"\s*`{2,}\s*\Z")
_FENCE = re.compile(r"(?<![`~])(`{3,}+|~{3,}+)[ \t]*(?:\w+[ \t]*\n|\n)?(.*?)\1", re.DOTALL)
_LABEL = re.compile(
    r"\s*(?:[*#]+[ \t]*)?(?:(?:open)?cypher|(?:\w+[ \t]+){0,5}query|answer)"
    r"(?:[ \t]*(?:\*\*)?[ \t]*:(?:\*\*)?|[ \t]*\n)\s*",
    re.IGNORECASE,
)
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
_NAMES = ("query", "cypher", "cypher_query", "statement", "revised_query", "answer")
_PARTS = re.compile(
    r"(?P<fixed>'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|`[^`]*+(?:`|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|[^'\"`/]++|/",
    re.DOTALL,
)
"""The parts of a query: `fixed` are strings, names in backticks and comments, in which nothing is changed."""
_SPACES = re.compile(r"[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_NOTHING = re.compile(r"[\u200b-\u200d\u2060\ufeff]")
_DASHES = re.compile(r"[\u2010-\u2015\u2212]")
_ENTITY = re.compile(r"&(?:gt|lt|amp|quot|apos|nbsp|#\d{1,5}|#x[0-9a-fA-F]{1,4});")
_CURLY = re.compile("\u2018([^'\u2018\u2019\\\\\n]*)\u2019|\u201c([^\"\u201c\u201d\\\\\n]*)\u201d")
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*|\n(?=(?:This|It|The)[ ][a-z]+[ ][a-z]+\b)")
_WORDS = re.compile(r"(?:[*#_-]+|\d{1,2}[.)])?[ \t]*([A-Z][\w']*),?[ \t]+([a-z][\w'-]*),?[ \t]+[\w'`\"-]+")

_MARKED = re.compile(r"\*\*\w|#{1,6} \w|-{3,}[ \t]*\n|(?:Explanation|Note):[ \t]+[A-Z][a-z]*[ ][a-z]")
"""Markdown, and a label before words."""


def bare_query(text: str) -> Checked:
    """The query in the text of a model, and what was left out or changed, a sentence each. "" for thoughts alone.

    A text in which no query is found is returned as it is, without thoughts.
    """
    query = text if _is_query(text) and not _tagged(text) else answer_of(text)
    changes = [] if query == text else [THOUGHTS]
    if len(query) > LONGEST or _is_query(query):
        return Checked(query, tuple(changes))
    found = query
    for said, rule in (*_RULES, *_RULES):
        taken = rule(found)
        if taken is not None and taken != found:
            found = taken
            changes.append(said)
            if _is_query(found):
                break
    if not _START.match(found):
        return Checked(query, (THOUGHTS,) if THOUGHTS in changes else ())
    return Checked(found, tuple(dict.fromkeys(changes)))


def _tagged(text: str) -> bool:
    """Whether tags of thoughts stand outside its comments."""
    bare = _PARTS.sub(lambda part: "" if part[0].startswith(("//", "/*")) else part[0], text)
    return answer_of(bare) != bare


def _is_query(text: str) -> bool:
    """Whether a text begins as a query, and consists of tokens, with nothing behind it."""
    if not _START.match(text) or _unescaped(text) != text or _split_at(text) is not None:
        return False
    try:
        tokens(text)
    except Refused:
        return False
    return True


def _split_at(text: str) -> int | None:
    """Where words about the query begin, behind its semicolon or an empty line; None: there are none."""
    for part in _PARTS.finditer(text):
        if part["fixed"]:
            continue
        if (end := part[0].find(";") + 1) > 0:
            after = text[part.start() + end :]
            return part.start() + end if _INK.match(after) and not _START.match(after) else None
        for found in _PARAGRAPH.finditer(part[0]):
            here = part.start() + found.end()
            if _MARKED.match(text, here):
                return here
            words = _WORDS.match(text, here)
            if words and words[1].upper() not in LINKS | BEGINNINGS and words[2].upper() not in LINKS:
                return here
    return None


def _fenced(text: str) -> str | None:
    blocks = [block.strip() for _, block in _FENCE.findall(text)]
    return next((block for block in reversed(blocks) if _begins(_json(block) or block)), None)


def _begins(text: str) -> bool:
    """Whether a query begins here, perhaps with more around it."""
    bare = _NOTHING.sub("", _SPACES.sub(" ", text))
    label = _LABEL.match(bare)
    return bool(_START.match(bare, label.end() if label else 0))


def _json(text: str) -> str | None:
    try:
        value: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        near = NearJson(text.strip(), 0, 10)
        try:
            value = near.value() if text.lstrip()[:1] in ("{", "[") else None
        except ValueError:
            return None
        if near.at < len(text.strip()):
            return None
    if isinstance(value, list) and len(cast(list[object], value)) == 1:
        value = cast(list[object], value)[0]
    if isinstance(value, dict):
        named = [one for name, one in cast(dict[str, object], value).items() if name.lower() in _NAMES]
        value = named[0] if len(named) == 1 else None
    return value.strip() if isinstance(value, str) and value.strip() else None


def _unquoted(text: str) -> str | None:
    bare = text.strip().rstrip(";").rstrip()
    ticks = len(bare) - len(bare.lstrip("`"))
    size = ticks or 1
    closes = len(bare) > 2 * size and bare[-size:] == _QUOTES.get(bare[0], "") * size
    return bare[size:-size].strip() if closes and _begins(bare[size:-size]) else None


def _unlabelled(text: str) -> str | None:
    label = _LABEL.match(text)
    rest = text[label.end() :] if label else ""
    return rest if rest and (_begins(rest) or _unquoted(rest) or _unwrapped(rest)) else None


def _unwrapped(text: str) -> str | None:
    found = _WRAPPED.fullmatch(text)
    inner = (
        next((part.strip() for name, part in found.groupdict().items() if part and name in _INNER), "") if found else ""
    )
    return inner if inner and _begins(inner) else None


def _closed(text: str) -> str:
    """The text without the end of a code fence that did not begin."""
    return _OPEN_END.sub("", text) if _START.match(text) and text.count("`") % 2 else text


def _outside(text: str, change: Callable[[str], str]) -> str:
    """The text with this change everywhere but in strings, names in backticks and comments."""
    return _PARTS.sub(lambda part: part["fixed"] or change(part[0]), text)


def _unslashed(text: str) -> str | None:
    """The text without backslashes before its line breaks and quotation marks, if it is a query then."""
    plain = text.replace("\\n", "\n").replace('\\"', '"').replace("\\'", "'")
    return plain if _is_query(plain) else None


def _spaced(text: str) -> str:
    return _outside(text, lambda part: _NOTHING.sub("", _SPACES.sub(" ", part))).strip()


def _unescaped(text: str) -> str:
    return _outside(text, lambda part: _ENTITY.sub(lambda entity: html.unescape(entity[0]), part))


def _dashed(text: str) -> str:
    return _outside(text, lambda part: _DASHES.sub("-", part))


def _straight(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        return f"'{found[1]}'" if found[1] is not None else f'"{found[2]}"'

    return _outside(text, lambda part: _CURLY.sub(plain, part))


def _without_words_behind(text: str) -> str | None:
    at = _split_at(text) if _START.match(text) else None
    return None if at is None else text[:at].rstrip()


def _without_words_before(text: str) -> str | None:
    """The text from the first line that begins as a query, if its words before that are no query."""
    line = None if _START.match(text) else _LINE.search(text)
    if not line:
        return None
    first = line[0].strip(" \t-*")
    if first[:1] in ("U", "C", "W", "R") and _MATCH.search(text, 0, line.start()):  # only the end of the query is there
        return None
    return text[line.start() if first else line.end() :].strip()


_RULES: Sequence[tuple[str, Callable[[str], str | None]]] = (
    ("the query was taken out of JSON", _json),
    ("the query was taken out of a code fence", _fenced),
    ("quotation marks around the query were left out", _unquoted),
    ("what stands around the query was left out", _unwrapped),
    ("the end of a code fence was left out", _closed),
    ("the label before the query was left out", _unlabelled),
    ("backslashes before line breaks and quotation marks were left out", _unslashed),
    ("spaces of other kinds were read as spaces", _spaced),
    ("characters of a web page, such as &gt;, were read as what they stand for", _unescaped),
    ("other quotation marks were read as plain ones", _straight),
    ("other dashes were read as minus signs", _dashed),
    ("words before the query were left out", _without_words_before),
    ("words behind the query were left out", _without_words_behind),
)
