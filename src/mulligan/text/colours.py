"""Splits code into pieces to colour: comments, strings, numbers and keywords of common languages, and diff lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_CHARACTERS = 40_000
"""Longer texts are not coloured."""

_CODE = re.compile(
    r"^\s*(?:def |class |async def |import \w|from [\w.]+ import |@\w+|function\b|const |let |export "
    r"|SELECT |INSERT |CREATE |#include|#!/|package |func |fn |pub |use \w+::|public |assert )",
    re.MULTILINE,
)
_DIFF = re.compile(r"diff --git |--- .*\n\+\+\+ ")
_DIFF_LINES = re.compile(r"(?P<header>(?:diff|index|---|\+\+\+|@@) ?.*)|(?P<added>\+.*)|(?P<removed>-.*)")
_FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_WORDS = (
    "and|as|assert|async|await|break|case|catch|class|const|continue|def|del|elif|else|except|export|extends|False|false|"
    "finally|fn|for|from|func|function|global|if|impl|import|in|interface|is|lambda|let|match|mod|mut|new|None|nonlocal|"
    "not|null|or|package|pass|private|pub|public|raise|return|self|static|struct|switch|this|throw|True|true|try|type|"
    "use|var|void|while|with|yield|SELECT|FROM|WHERE|INSERT|INTO|UPDATE|SET|DELETE|CREATE|TABLE|JOIN|ON|GROUP|BY|ORDER|"
    "LIMIT|AND|OR|NOT|NULL|AS"
)
_PIECES = re.compile(
    r"(?P<comment>(?<!\S)#[^\n]*|(?<![:\w])//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\\n])*`)"
    r"|(?P<number>(?<![\w.])\d[\d_.]*\b)"
    rf"|(?P<word>\b(?:{_WORDS})\b)",
    re.DOTALL,
)


def coloured(text: str) -> Iterator[tuple[str, str]]:
    """Yields the text in pieces, each with its kind: "comment", "string", "number", "word", or "" for anything else.

    Text that does not look like code is one piece; in text with code fences, only the code is split. The lines of a
    diff are "header", "added", "removed" or "".
    """
    if len(text) > MAX_CHARACTERS:
        yield text, ""
        return
    if _DIFF.match(text):
        for line in text.splitlines(keepends=True):
            match = _DIFF_LINES.match(line)
            yield line, (match.lastgroup or "" if match else "")
        return
    at = 0
    for fenced in _FENCED.finditer(text):
        yield text[at : fenced.start(1)], ""
        yield from _pieces(fenced[1])
        at = fenced.end(1)
    yield from [(text[at:], "")] if at else _pieces(text)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    if not _CODE.search(text):
        yield text, ""
        return
    at = 0
    for piece in _PIECES.finditer(text):
        if piece.start() > at:
            yield text[at : piece.start()], ""
        yield piece[0], piece.lastgroup or ""
        at = piece.end()
    if at < len(text):
        yield text[at:], ""
