"""Checks from the text of a query that it only reads, and locates errors in it.

There are two checks. Words that write (or reach files, the network, other databases or settings) are refused wherever a
clause can begin; they count as names only where no grammar allows a clause, such as after a dot or a colon. After a
value, a name or a closing bracket only the words of reading clauses and operators are allowed, so that an unknown
clause of some dialect is refused too. Names in backticks, strings and comments contain no words. design/014 says why
this is not a grammar.

The supported dialects (Neo4j, Memgraph, ArcadeDB, Ladybug) agree on the tokens and on little else: they differ in what
ends a comment, what counts as white space, and whether \\uXXXX is decoded before anything is parsed. Text that they
could read differently is refused.
"""

from __future__ import annotations

import bisect
import difflib
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mulligan.plugins import QueryError

Kind = Literal["word", "quoted", "number", "string", "parameter", "sign"]

SIGNS = frozenset("()[]{},;:.+-*/%^=<>|&!?~")
_SPACE = frozenset(" \t\r\n")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[oO][0-7]+|[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9]+)?")
_ESCAPE = re.compile(r"(\\+)u+([0-9a-fA-F]{4})|(\\+)U([0-9a-fA-F]{8})")
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_PLAIN = re.compile(r"[A-Za-z0-9_]+")
DECODINGS = 4
"""How many times a decoded text is decoded again, as long as it changes."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token. text: without the backticks of a name and the $ of a parameter. at: its offset in the query."""

    kind: Kind
    text: str
    at: int


class Refused(Exception):
    """A query that does something other than reading, or could: databases may read it in two ways."""

    def __init__(self, message: str, at: int, kind: Literal["refused", "syntax", "large"] = "refused") -> None:
        super().__init__(message)
        self.at = at
        self.kind: Literal["refused", "syntax", "large"] = kind


def tokens(text: str) -> list[Token]:
    """Return the tokens of a query. Raises `Refused`."""
    found: list[Token] = []
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char in _SPACE:
            at += 1
        elif char == "/" and text[at + 1 : at + 2] in ("/", "*"):
            at = _after_comment(text, at)
        elif char in SIGNS:
            double = text[at : at + 2] if text[at : at + 2] in ("..", "::") else char
            found.append(Token("sign", double, at))
            at += len(double)
        else:
            token, at = _token(text, at)
            found.append(token)
    return found


def decoded(text: str) -> Iterator[tuple[str, list[int]]]:
    """Yield the text as databases see it that decode \\uXXXX first, each with the original offset of each character."""
    seen = {text}
    for every in (True, False):
        now, origins = text, list(range(len(text) + 1))
        for _ in range(DECODINGS):
            now, origins = _decode(now, origins, every)
            if now in seen:
                break
            seen.add(now)
            yield now, origins


def _decode(text: str, origins: list[int], every: bool) -> tuple[str, list[int]]:
    """Decode once. every: also where the backslash is itself escaped, which some databases ignore."""
    parts: list[str] = []
    where: list[int] = []
    done = 0
    for found in _ESCAPE.finditer(text):
        slashes, digits = (found[1], found[2]) if found[1] else (found[3], found[4])
        if (len(slashes) % 2 == 0 and not every) or int(digits, 16) > 0x10FFFF:
            continue
        start = found.start() + len(slashes) - 1
        parts += [text[done:start], chr(int(digits, 16))]
        where += [*origins[done:start], origins[start]]
        done = found.end()
    return "".join([*parts, text[done:]]), [*where, *origins[done:]]


def _token(text: str, at: int) -> tuple[Token, int]:
    """Return a token that is no sign, and the offset after it."""
    char = text[at]
    if char == "$":
        return _parameter(text, at)
    if char in "'\"":
        after = _after_string(text, at)
        return Token("string", text[at + 1 : after - 1], at), after
    if char == "`":
        after = _after_quoted(text, at)
        return Token("quoted", text[at + 1 : after - 1].replace("``", "`"), at), after
    if "0" <= char <= "9":
        after = _after_number(text, at)
        return Token("number", text[at:after], at), after
    if char == "_" or char.isalpha():
        after = _after_word(text, at)
        return Token("word", text[at:after], at), after
    raise Refused(f"{_named(char)} is not allowed here", at)


def _after_comment(text: str, at: int) -> int:
    if text[at + 1] == "*":
        close = text.find("*/", at + 2)
        if close < 0:
            raise Refused("this comment is not closed", at, "syntax")
        if "/*" in text[at + 2 : close + 1] or text[at + 2] == "/":
            raise Refused("this comment has another /* or */ in it", at)
        _printable(text, at, close)
        return close + 2
    close = text.find("\n", at)
    close = len(text) if close < 0 else close
    line = text[at:close]
    odd = next((n for n, char in enumerate(line) if char in "\r\x0b\x0c\x85\u2028\u2029"), None)
    if odd is not None and not (line[odd] == "\r" and at + odd + 1 == close < len(text)):
        raise Refused(f"{_named(line[odd])} ends this comment only in some databases", at + odd)
    _printable(text, at, close)
    return close


def _after_string(text: str, at: int) -> int:
    quote, here = text[at], at + 1
    while here < len(text):
        if text[here] == "\\":
            here += 2
        elif text[here] == quote:
            _printable(text, at, here)
            return here + 1
        else:
            here += 1
    raise Refused("this string is not closed", at, "syntax")


def _after_quoted(text: str, at: int) -> int:
    here = at + 1
    while (close := text.find("`", here)) >= 0:
        if text[close + 1 : close + 2] != "`":
            _printable(text, at, close)
            return close + 1
        here = close + 2
    raise Refused("this name in backticks is not closed", at, "syntax")


def _parameter(text: str, at: int) -> tuple[Token, int]:
    following = text[at + 1 : at + 2]
    if following == "`":
        after = _after_quoted(text, at + 1)
        return Token("parameter", text[at + 2 : after - 1].replace("``", "`"), at), after
    if not (following == "_" or following.isalnum()):
        raise Refused("a parameter is a $ followed by a name", at, "syntax")
    after = _after_word(text, at + 1)
    return Token("parameter", text[at + 1 : after], at), after


def _after_number(text: str, at: int) -> int:
    found = _NUMBER.match(text, at)
    after = found.end() if found else at + 1
    following = text[after : after + 1]
    if following and (following in "_$" or following.isalnum()):
        raise Refused("this number runs into a word: put a space between them", at)
    return after


def _after_word(text: str, at: int) -> int:
    plain = _PLAIN.match(text, at)
    here = plain.end() if plain else at
    while here < len(text) and (
        text[here] == "_" or text[here].isalnum() or unicodedata.category(text[here])[0] == "M"
    ):
        here += 1
    if text[here : here + 1] == "$":
        raise Refused("a $ inside a name: put the name in backticks", here)
    return here


def _printable(text: str, start: int, end: int) -> None:
    """Refuse control characters, which databases treat differently, and lone surrogates."""
    if odd := _ODD.search(text, start, end):
        raise Refused(f"{_named(odd[0])} is not allowed in a query", odd.start())


def _named(char: str) -> str:
    name = unicodedata.name(char, "").lower()
    shown = f" {char!r}" if char.isascii() and char.isprintable() else ""
    return f"the character{shown} U+{ord(char):04X}{f' ({name})' if name and not shown else ''}"


_WORDS = {
    kind: frozenset(words.split())
    for kind, words in tomllib.loads(Path(__file__).with_name("guard_words.toml").read_text(encoding="utf-8")).items()
}
BEGINNINGS, WRITING, ELSEWHERE, LINKS = (_WORDS[kind] for kind in ("beginnings", "writing", "elsewhere", "links"))
LEADING, VALUES = LINKS | _WORDS["leading"], _WORDS["values"]
PROCEDURES, NAMESPACED, OUTSIDE = (_WORDS[kind] for kind in ("procedures", "namespaced", "outside"))
OUTSIDE_BEGIN, OUTSIDE_END = (tuple(_WORDS[kind]) for kind in ("outside_begin", "outside_end"))

CHARACTERS, DEPTH = 20_000, 30
"""The greatest length of a query and depth of its brackets. Databases crash only far beyond both."""

_PROPERTY = re.compile(r"Cannot find property (\S+) for ([^\s.]+)")
_OTHERS = (
    ("label", re.compile(r"Table (\S+) does not exist")),
    ("function", re.compile(r"[Ff]unction:? '?([A-Za-z_][\w.]*)'? does not exist")),
    ("function", re.compile(r"Unknown function '([^']+)'")),
    ("variable", re.compile(r"Variable '?([^\s']+)'? (?:is )?not (?:in scope|defined)")),
)
_OPEN, _CLOSED = "([{", ")]}"
_Expected = Literal["value", "link", "either"]


def read_only(query: str, parameters: Collection[str] = (), procedures: Collection[str] = ()) -> str:
    """Return the query without a final semicolon if it only reads. Positions in it stay the same.

    procedures: Further procedures and functions that only read, in lower case.

    Raises:
        QueryError: With the word and its position. kind: refused (it does something other than reading, or could),
            syntax, large, or unknown (a parameter without a value).
    """
    if len(query) > CHARACTERS:
        raise QueryError(f"The query has {len(query):,} characters; the limit is {CHARACTERS:,}.", "large")
    procedures = PROCEDURES.union(procedures)
    found = _checked(query, None, procedures)
    for text, origins in decoded(query):
        _checked(text, (query, origins), procedures)
    for token in found:
        if token.kind == "parameter" and token.text not in parameters:
            names = f" Available: {', '.join(sorted(parameters))}." if parameters else " None were given."
            raise _error(query, f"There is no parameter ${token.text}.{names}", token.at, "unknown")
    last = found[-1]
    return query if last.text != ";" or last.kind != "sign" else query[: last.at] + " " + query[last.at + 1 :]


def place(query: str, at: int) -> tuple[int, int]:
    """Return the line and column of an offset, counted from 1."""
    starts = [0, *(n + 1 for n, char in enumerate(query) if char == "\n")]
    line = bisect.bisect_right(starts, at)
    return line, at - starts[line - 1] + 1


def _checked(text: str, source: tuple[str, list[int]] | None, procedures: Collection[str]) -> list[Token]:
    """Return the tokens of a text that only reads.

    Args:
        source: For a decoded text, the original query and the offset there of each character of `text`.
    """
    try:
        found = tokens(text)
        _Check(found, len(text), procedures).run()
    except Refused as error:
        message, at, kind = str(error), error.at, error.kind
    else:
        return found
    message = (message[0].upper() + message[1:]).removesuffix("?") + ("?" if message.endswith("?") else ".")
    if source is None:
        raise _error(text, message, at, kind) from None
    message = f"Some databases decode \\uXXXX before they parse a query. For them: {message}"
    raise _error(source[0], message, source[1][at], "refused") from None


def _error(query: str, message: str, at: int, kind: Literal["syntax", "unknown", "refused", "large"]) -> QueryError:
    line, column = place(query, at)
    return QueryError(f"{message} (line {line}, column {column})", kind, line, column)


class _Check:
    """The check of one query. "either" as the expected token means that two grammars differ."""

    def __init__(self, found: Sequence[Token], end: int, procedures: Collection[str]) -> None:
        self._tokens = found
        self._procedures = procedures
        self._end = end
        self._labels: set[int] = set()

    def run(self) -> None:
        """Raises `Refused`."""
        self._begins(0, "the query")
        self._nested()
        self._statement()
        self._words()
        self._functions()

    def _sign(self, n: int) -> str:
        """Return the sign at an index; "" for any other token or none."""
        if not 0 <= n < len(self._tokens) or self._tokens[n].kind != "sign":
            return ""
        return self._tokens[n].text

    def _word(self, n: int) -> str:
        if not 0 <= n < len(self._tokens) or self._tokens[n].kind != "word":
            return ""
        return self._tokens[n].text.upper()

    def _named(self, n: int) -> bool:
        return 0 <= n < len(self._tokens) and self._tokens[n].kind in ("word", "quoted")

    def _begins(self, n: int, what: str) -> None:
        """Refuse a query or subquery that does not begin with a reading clause."""
        word = self._word(n)
        if word in BEGINNINGS:
            return
        if n >= len(self._tokens):
            raise Refused(f"{what} is empty", self._end, "syntax")
        token = self._tokens[n]
        if word in WRITING or word in ELSEWHERE:
            raise Refused(f"{word} does something other than reading the graph, and only reading is allowed", token.at)
        meant = _meant(word, BEGINNINGS)
        shown = token.text if token.kind in ("word", "sign") else repr(token.text)
        known = ", ".join(sorted(BEGINNINGS))
        raise Refused(f"{what} must begin with {known}, not with {shown}{meant}", token.at, "syntax")

    def _nested(self) -> None:
        depth = 0
        for n, token in enumerate(self._tokens):
            sign = self._sign(n)
            depth += (sign in _OPEN) - (sign in _CLOSED) if sign else 0
            if depth > DEPTH:
                raise Refused(f"brackets are nested more than {DEPTH} levels deep", token.at, "large")
            if depth < 0:
                raise Refused(f"this {sign} closes nothing", token.at, "syntax")
        if depth:
            raise Refused(f"{depth} open bracket{'s are' if depth > 1 else ' is'} not closed", self._end, "syntax")

    def _statement(self) -> None:
        for n, token in enumerate(self._tokens[:-1]):
            if self._sign(n) == ";":
                raise Refused("only one statement is allowed: there is text after this semicolon", token.at)

    def _words(self) -> None:
        expected: _Expected = "value"
        alias = -1
        n = 0
        while n < len(self._tokens):
            token = self._tokens[n]
            if token.kind == "sign":
                expected = "link" if token.text in _CLOSED else "either" if token.text == "*" else "value"
            elif token.kind != "word" or self._is_name(n) or alias == n:
                expected = "link"
            else:
                word = self._keyword(n, expected)
                if word == "AS" and expected == "link":
                    alias = n + 1
                if word == "UNION":
                    self._begins(n + (2 if self._word(n + 1) in ("ALL", "DISTINCT") else 1), "the query after UNION")
                if word == "CALL":
                    n = self._call(n)
                expected = self._after(word, expected)
            n += 1

    def _keyword(self, n: int, expected: _Expected) -> str:
        """Return the word at an index where a keyword can stand. Raises `Refused` for one that does not read."""
        token, word = self._tokens[n], self._word(n)
        plain = word if token.text.isascii() else _bare(token.text)
        if plain in WRITING and not self._stands_alone(n):
            like = "" if plain == word else f", which can be read as {plain},"
            raise Refused(
                f"{token.text}{like} does something other than reading, and only reading is allowed; "
                f"put a name with that spelling in backticks: `{token.text}`",
                token.at,
            )
        if expected == "link" and word not in LINKS:
            meant = _meant(word, LINKS)
            kind = "refused" if word in ELSEWHERE else "syntax"
            why = "a clause that reads, an operator or a comma was expected"
            raise Refused(f"{token.text} is not allowed here: {why}{meant}", token.at, kind)
        return word

    def _after(self, word: str, expected: _Expected) -> _Expected:
        if word in VALUES:
            return "link"
        if word in ("ASC", "ASCENDING", "DESC", "DESCENDING", "CALL"):
            return "either"
        if expected == "link":
            return "value"
        return "either" if word in LEADING or word in BEGINNINGS else "link"

    def _is_name(self, n: int) -> bool:
        """Whether a word stands where every grammar has a name: a label, a property, a key of a map."""
        before, after = self._sign(n - 1), self._sign(n + 1)
        if (
            before == ":"
            or (before in ("|", "&") and n - 2 in self._labels)
            or (before == "!" and self._negated(n - 1))
        ):
            self._labels.add(n)
            return True
        if before == "." and (self._owns(n - 2) or self._sign(n - 2) in ("{", ",")):
            return True
        return after == ":" and before in ("{", ",", "(", "[")

    def _negated(self, n: int) -> bool:
        """Whether the ! at an index is part of a label expression."""
        return self._sign(n - 1) == ":" or (self._sign(n - 1) in ("|", "&") and n - 2 in self._labels)

    def _owns(self, n: int) -> bool:
        """Whether the token at an index can have properties. A number cannot: in `1.SET` the dot may be its own."""
        sign = self._sign(n)
        return sign in (")", "]", "}") if sign else n >= 0 and self._tokens[n].kind != "number"

    def _stands_alone(self, n: int) -> bool:
        """Whether a word that writes is a variable here: nothing that a clause could act on follows it."""
        before, after = self._sign(n - 1), self._sign(n + 1)
        if after == "." and self._named(n + 2):
            return True
        return before in ("(", "[", ",") and after in (")", "]", ",")

    def _call(self, n: int) -> int:
        """Return the index of the call's last token. Raises `Refused` for a procedure that is not known to read."""
        if self._sign(n + 1) == "{":
            self._begins(n + 2, "a subquery")
            return n + 1
        if self._sign(n + 1) == "(":
            close = self._closing(n + 1)
            if self._sign(close + 1) == "{":
                self._begins(close + 2, "a subquery")
                return close + 1
        last = n + 1
        while self._named(last) and self._sign(last + 1) == "." and self._named(last + 2):
            last += 2
        if not self._named(last):
            raise Refused("CALL must be followed by a procedure or by a subquery in braces", self._at(n + 1), "syntax")
        name = ".".join(token.text for token in self._tokens[n + 1 : last + 1 : 2])
        if name.lower() not in self._procedures or self._sign(last + 1) == "=":
            known = ", ".join(sorted(self._procedures))
            raise Refused(f"CALL {name} is not known to be read-only. Known procedures: {known}", self._at(n + 1))
        return last

    def _closing(self, n: int) -> int:
        depth = 0
        for here in range(n, len(self._tokens)):
            sign = self._sign(here)
            depth += (sign in _OPEN) - (sign in _CLOSED) if sign else 0
            if not depth:
                return here
        return len(self._tokens)

    def _functions(self) -> None:
        for n in range(1, len(self._tokens)):
            if self._sign(n) == "(" and self._named(n - 1) and n - 1 not in self._labels:
                self._function(n - 1)

    def _function(self, last: int) -> None:
        first = last
        while self._sign(first - 1) == "." and self._named(first - 2):
            first -= 2
        name = ".".join(token.text for token in self._tokens[first : last + 1 : 2])
        low, at = name.lower(), self._tokens[first].at
        if first != last:
            if low not in NAMESPACED and low not in self._procedures:
                raise Refused(f"the function {name} is not known to be read-only", at)
        elif low in OUTSIDE or low.startswith(OUTSIDE_BEGIN) or low.endswith(OUTSIDE_END):
            raise Refused(f"the function {name} reaches outside the graph or changes something", at)

    def _at(self, n: int) -> int:
        return self._tokens[n].at if n < len(self._tokens) else self._end


def _meant(word: str, among: Collection[str]) -> str:
    near = difflib.get_close_matches(word, sorted(among), n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


def _bare(word: str) -> str:
    """Return the word in upper case without accents and look-alike characters."""
    flat = unicodedata.normalize("NFKD", word).casefold().replace("ı", "i")
    return "".join(char for char in unicodedata.normalize("NFKD", flat) if char.isalnum() or char == "_").upper()


# --- the position of what a database's error names ----------------------------------------------------------------


def locate_error(error: QueryError, query: str) -> QueryError:
    """Return the error with line and column if the query contains what it names; otherwise unchanged."""
    if error.line is not None or error.kind in ("slow", "large"):
        return error
    try:
        at = _offset(str(error), tokens(query))
    except Refused:
        at = None
    if at is None:
        return error
    line, column = place(query, at)
    return QueryError(f"{error} (line {line}, column {column})", error.kind, line, column)


def _offset(message: str, found: Sequence[Token]) -> int | None:
    if named := _PROPERTY.search(message):
        name, owner = named[1].lower(), named[2].lower()
        for n, token in enumerate(found[2:], 2):
            if token.text.lower() == name and found[n - 1].text == "." and found[n - 2].text.lower() == owner:
                return token.at
        return _first(found, name, before=(".", "{", ","))
    for kind, pattern in _OTHERS:
        if named := pattern.search(message):
            name = named[1].lower()
            if kind == "label":
                return _first(found, name, before=(":", "|", "&", "!"))
            if kind == "function":
                return _first(found, name.rsplit(".")[-1], after="(")
            return _first(found, name, no_before=(".", ":"))
    return None


def _first(
    found: Sequence[Token], name: str, *, before: Sequence[str] = (), no_before: Sequence[str] = (), after: str = ""
) -> int | None:
    for n, token in enumerate(found):
        left = found[n - 1].text if n else ""
        right = found[n + 1].text if n + 1 < len(found) else ""
        if token.kind not in ("word", "quoted") or token.text.lower() != name:
            continue
        if (not before or left in before) and left not in no_before and (not after or right == after):
            return token.at
    return None
