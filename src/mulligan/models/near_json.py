"""Reads text that is nearly JSON, if it can be read in only one way, and lists its faults (design/119)."""

from __future__ import annotations

import re

from mulligan.core.records import Json

COMMA = "a comma at the end was left out"
QUOTES = "other quotation marks were read as double ones"
WORDS = "True, False and None were read as true, false and null"
ESCAPES = "backslashes that begin no escape were read as they stand"
COMMENTS = "comments were left out"
KEYS = "keys without quotation marks were read as text"
SPACES = "spaces of other kinds were read as spaces"

_SPACE = re.compile(r"[ \t\r\n]*")
_ODD_SPACE = re.compile(r"[\u00a0\u2000-\u200b\u2028\u2029\u202f\u3000\ufeff]+")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?(?![\w.])", re.ASCII)
_WORD = re.compile(r"[A-Za-z_$][\w$]{0,200}", re.ASCII)
_WORDS: dict[str, Json] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "TRUE": True,
    "FALSE": False,
    "NULL": None,
}
_QUOTES = {'"': '"', "'": "'", "\u201c": "\u201d", "\u201d": "\u201d", "\u201e": "\u201c"}
_PLAIN = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+"), "\u201d": re.compile("[^\u201d\\\\]+")}
_PLAIN["\u201c"] = re.compile("[^\u201c\\\\]+")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_PYTHON = re.compile(r"x[0-9a-fA-F]{2}|U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4}")
_LOW = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class NearJson:
    """Reads the object or list that begins at position `at`.

    It accepts a comma at the end, strings and words in Python's form, backslashes that do not begin an escape, comments
    and keys without quotation marks. It does not accept text that was cut off.

    Attributes:
        at: after reading, the position where the value ends, or where it cannot be read.
        repairs: the faults, each once.
    """

    def __init__(self, text: str, at: int, deepest: int) -> None:
        self._text, self.at, self._deepest = text, at, deepest
        self.repairs: list[str] = []
        self.is_too_deep = False

    def value(self, level: int = 0) -> Json:
        """Reads a value. Raises `ValueError` with the position."""
        char = self._text[self.at : self.at + 1]
        if char in ("{", "["):
            if level >= self._deepest:
                self.is_too_deep = True
                raise self._error("it is nested too deeply")
            self.at += 1
            return self._object(level + 1) if char == "{" else self._list(level + 1)
        if char in _QUOTES:
            return self._string()
        if number := _NUMBER.match(self._text, self.at):
            self.at = number.end()
            digits = number[0]
            return float(digits) if set(digits) & set(".eE") else int(digits)
        word = _WORD.match(self._text, self.at)
        if not word or word[0] not in _WORDS:
            raise self._error("Expecting value")
        if word[0][0].isupper():
            self._note_repair(WORDS)
        self.at = word.end()
        return _WORDS[word[0]]

    def _object(self, level: int) -> Json:
        table: dict[str, Json] = {}
        while not self._ends_here("}", table):
            if self._text[self.at : self.at + 1] in _QUOTES:
                key = self._string()
            elif word := _WORD.match(self._text, self.at):
                self._note_repair(KEYS)
                key, self.at = word[0], word.end()
            else:
                raise self._error("Expecting a key")
            self._skip_space()
            if self._text[self.at : self.at + 1] != ":":
                raise self._error("Expecting ':'")
            self.at += 1
            self._skip_space()
            table[key] = self.value(level)
        return table

    def _list(self, level: int) -> Json:
        values: list[Json] = []
        while not self._ends_here("]", values):
            values.append(self.value(level))
        return values

    def _ends_here(self, closing: str, before: object) -> bool:
        """Whether the object or list ends here; otherwise skips the comma before its next part."""
        self._skip_space()
        char = self._text[self.at : self.at + 1]
        if char == "," and before:
            self.at += 1
            self._skip_space()
            char = self._text[self.at : self.at + 1]
            if char == closing:
                self._note_repair(COMMA)
        elif before and char != closing:
            raise self._error("Expecting ',' delimiter")
        if char != closing:
            return False
        self.at += 1
        return True

    def _string(self) -> str:
        opening = self._text[self.at]
        closing = _QUOTES[opening]
        if opening != '"':
            self._note_repair(QUOTES)
        self.at += 1
        parts: list[str] = []
        while True:
            if plain := _PLAIN[closing].match(self._text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
            char = self._text[self.at : self.at + 1]
            if not char:
                raise self._error("Unterminated string")
            self.at += 1
            if char == closing:
                return "".join(parts)
            parts.append(self._escape(opening))

    def _escape(self, opening: str) -> str:
        """The character that an escape stands for. A backslash that does not begin an escape stands for itself."""
        char = self._text[self.at : self.at + 1]
        if char in _ESCAPES or (char == "'" and char):
            self.at += 1
            if char == "'" and opening == '"':
                self._note_repair(ESCAPES)
            return _ESCAPES.get(char, char)
        if char == "u" and (digits := _HEX.match(self._text, self.at + 1)):
            self.at = digits.end()
            code = int(digits[0], 16)
            if 0xD800 <= code < 0xDC00 and (low := _LOW.match(self._text, self.at)):
                self.at = low.end()
                code = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
            return chr(code)
        if opening != '"' and (python := _PYTHON.match(self._text, self.at)):
            self.at = python.end()
            return chr(int(python[0][1:], 16))
        is_python_escape = opening != '"' and (char in "xNUav" or char.isdigit())  # of another meaning than in JSON
        if is_python_escape or char in ("", "\n", "\r"):
            raise self._error("Invalid \\escape")
        self._note_repair(ESCAPES)
        return "\\"

    def _skip_space(self) -> None:
        while True:
            self.at = _SPACE.match(self._text, self.at).end()  # pyright: ignore[reportOptionalMemberAccess]
            if odd := _ODD_SPACE.match(self._text, self.at):
                self._note_repair(SPACES)
                self.at = odd.end()
            elif comment := _COMMENT.match(self._text, self.at):
                self._note_repair(COMMENTS)
                self.at = comment.end()
            else:
                return

    def _note_repair(self, what: str) -> None:
        if what not in self.repairs:
            self.repairs.append(what)

    def _error(self, what: str) -> ValueError:
        return ValueError(f"{what}: char {self.at}")
