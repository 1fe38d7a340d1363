"""Takes a query out of what a model wrote around it: thoughts, a code fence, JSON, a label, quotation marks, sentences.

A query that can be read as it is stays as it is.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any, cast

from mulligan.graphs._guard import BEGINNINGS, CHARACTERS, ELSEWHERE, WRITING, Refused, tokens
from mulligan.pages import answer_of

LONGEST = 5 * CHARACTERS
"""The characters of the longest text in which a query is sought."""
TAKEN_OUT = "what stands around the query was left out"
_STARTS = "|".join(sorted(BEGINNINGS | WRITING | ELSEWHERE - {"CYPHER", "SELECT"}))
_START = re.compile(rf"\s*(?://[^\n]*\n\s*|/\*.*?\*/\s*)*+(?:{_STARTS}|{_STARTS.lower()})\b(?!\s*:)", re.DOTALL)
_FENCE = re.compile(r"(?<!`)`{3}[ \t]*(?:\w+[ \t]*\n|\n)?(.*?)`{3}", re.DOTALL)
_LABEL = re.compile(
    r"\s*[*#]*\s*(?:(?:open)?cypher|(?:\w+[ \t]+){0,5}query|answer)[ \t]*(?:\*\*)?(?::|\n)(?:\*\*)?", re.I
)
_FIXED = re.compile(
    r"'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|`[^`]*+(?:`|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL
)
"""Strings, names in backticks and comments, in which nothing is looked for."""
_FOREIGN = re.compile(r"</?\w+>|<\||\[/?[A-Z]+\]|&(?:lt|gt|amp|quot|#\w+);|`{3}")
"""Tags, and characters of a web page."""
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
_NAMES = ("query", "cypher", "cypher_query", "statement", "revised_query", "answer")
_LINE = re.compile(r"^[ \t]*(?:[-*][ \t]+)?(?=(?:OPTIONAL\s+)?MATCH\s*\()|(?<=: )(?=MATCH\s*\()", re.MULTILINE)
_WORDS_BEHIND = re.compile(r"\n[ \t]*\n\s*(?=[*#-]|[A-Z][a-z']+,? [a-z])|\n(?=(?:This|It|The) [a-z]+ [a-z])")


def bare_query(text: str) -> str:
    """The query in the text of a model; "" for thoughts alone. A text without a query is itself, without thoughts."""
    query = text if _is_query(text) else answer_of(text)
    if len(query) > LONGEST or _is_query(query):
        return query
    found = query
    for _ in range(3):  # a label before JSON in a code fence
        found = _taken_out(found)
        if _is_query(found):
            return found
    return query


def _is_query(text: str) -> bool:
    """Whether a text begins as a query and consists of tokens, with no sentences behind it."""
    plain = _FIXED.sub("''", text)
    if not _START.match(text) or _FOREIGN.search(plain) or _WORDS_BEHIND.search(plain):
        return False
    try:
        tokens(text)
    except Refused:
        return False
    return True


def _taken_out(text: str) -> str:
    """The text without the outermost thing that stands around its query."""
    if blocks := [block for block in _FENCE.findall(text) if block.strip()]:
        return blocks[-1].strip()
    bare = text.strip().strip("*") if text.count("```") != 1 else text.replace("```", "").strip()
    if inner := _in_json(bare):
        return inner
    if len(bare) > 2 and bare[-1] == _QUOTES.get(bare[0]):
        return bare.strip(bare[0] + bare[-1]).strip()
    if label := _LABEL.match(bare):
        return bare[label.end() :].strip()
    if not _START.match(bare) and (line := _LINE.search(bare)):
        return bare[line.end() :]
    if behind := _WORDS_BEHIND.search(bare):
        return bare[: behind.start()]
    return html.unescape(bare)


def _in_json(text: str) -> str:
    try:
        value: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return ""
    listed = cast(list[Any], value) if isinstance(value, list) else [value]
    value = listed[0] if len(listed) == 1 else None
    if isinstance(value, dict):
        named = cast(dict[str, Any], value)
        value = next((named[name] for name in _NAMES if name in named), "")
    return value.strip() if isinstance(value, str) else ""
