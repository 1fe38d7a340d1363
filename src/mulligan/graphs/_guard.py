"""Whether a query only reads, decided from its text alone: what is not known to read is refused.

Two fences. Words that write (or reach files, the network, other databases, settings) are refused wherever a clause
could begin; they count as names only where no grammar lets a clause begin, such as behind a dot or a colon. And behind
a value, a name or a closed bracket only the words of reading clauses and operators are let through, so that a clause
of some dialect which nobody thought of is not let through either. Names in backticks, texts and comments hold no
words. Why no grammar: design/014.
"""

from __future__ import annotations

import bisect
import difflib
import unicodedata
from collections.abc import Collection, Sequence
from typing import Literal

from mulligan.core.errors import QueryError, QueryTrouble
from mulligan.graphs._tokens import Token, Unreadable, decoded, tokens
from mulligan.graphs._words import (
    BEGINNINGS,
    ELSEWHERE,
    LEADING,
    LINKS,
    NAMESPACED,
    OUTSIDE,
    OUTSIDE_BEGIN,
    OUTSIDE_END,
    PROCEDURES,
    VALUES,
    WRITING,
)

CHARACTERS, DEPTH = 20_000, 30
"""How long a query may be, and how deep its brackets may be nested: databases fall over far beyond both."""

_OPEN, _CLOSED = "([{", ")]}"
_Expected = Literal["value", "link", "either"]


class Refused(Exception):
    def __init__(self, message: str, at: int, kind: Literal["refused", "syntax", "large"] = "refused") -> None:
        super().__init__(message)
        self.at = at
        self.kind: Literal["refused", "syntax", "large"] = kind


def reading(query: str, parameters: Collection[str] = ()) -> str:
    """The query, which only reads, without a semicolon at its end; nothing in it moves, so that places stay right.

    Raises `QueryError`, which says the word and the place: refused (it does something other than reading, or could),
    syntax, large, unknown (a parameter that was not given).
    """
    if len(query) > CHARACTERS:
        raise QueryError(f"The query is {len(query):,} characters long; at most {CHARACTERS:,} are taken.", "large")
    found = _checked(query, None)
    for text, origins in decoded(query):
        _checked(text, (query, origins))
    for token in found:
        if token.kind == "parameter" and token.text not in parameters:
            there = f" There is: {', '.join(sorted(parameters))}." if parameters else " None were given."
            raise _error(query, f"No parameter is called ${token.text}.{there}", token.at, "unknown")
    last = found[-1]
    return query if last.text != ";" or last.kind != "sign" else query[: last.at] + " " + query[last.at + 1 :]


def place(query: str, at: int) -> tuple[int, int]:
    """The line and column of an offset, from 1."""
    starts = [0, *(n + 1 for n, char in enumerate(query) if char == "\n")]
    line = bisect.bisect_right(starts, at)
    return line, at - starts[line - 1] + 1


def _checked(text: str, source: tuple[str, list[int]] | None) -> list[Token]:
    """source: the query as it was given and where each character of `text` stands in it, where `text` is a decoding."""
    try:
        found = tokens(text)
        _Check(found, len(text)).run()
    except Unreadable as error:
        message, at, kind = str(error), error.at, "refused" if error.ambiguous else "syntax"
    except Refused as error:
        message, at, kind = str(error), error.at, error.kind
    else:
        return found
    message = (message[0].upper() + message[1:]).removesuffix("?") + ("?" if message.endswith("?") else ".")
    if source is None:
        raise _error(text, message, at, kind) from None
    message = f"Some databases decode \\uXXXX before they read a query. What they read: {message}"
    raise _error(source[0], message, source[1][at], "refused") from None


def _error(query: str, message: str, at: int, kind: QueryTrouble) -> QueryError:
    line, column = place(query, at)
    return QueryError(f"{message} (line {line}, column {column})", kind, line, column)


class _Check:
    """One reading of a query. `_expected`: what may stand at the token at hand; `either` where two grammars differ."""

    def __init__(self, found: Sequence[Token], end: int) -> None:
        self._tokens = found
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
        """The sign at a place, "" for anything else or nothing."""
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
        """Refuses a query, or one inside of it, that begins with anything but a clause that reads."""
        word = self._word(n)
        if word in BEGINNINGS:
            return
        if n >= len(self._tokens):
            raise Refused(f"{what} is empty", self._end, "syntax")
        token = self._tokens[n]
        if word in WRITING or word in ELSEWHERE:
            raise Refused(f"{word} does something other than asking the graph, which is only read here", token.at)
        near = difflib.get_close_matches(word, sorted(BEGINNINGS), n=1, cutoff=0.7)
        meant = f"; did you mean {near[0]}?" if near else ""
        shown = token.text if token.kind in ("word", "sign") else repr(token.text)
        known = ", ".join(sorted(BEGINNINGS))
        raise Refused(f"{what} begins with {known}, not with {shown}{meant}", token.at, "syntax")

    def _nested(self) -> None:
        depth = 0
        for n, token in enumerate(self._tokens):
            sign = self._sign(n)
            depth += (sign in _OPEN) - (sign in _CLOSED) if sign else 0
            if depth > DEPTH:
                raise Refused(f"brackets are nested deeper than {DEPTH}", token.at, "large")
            if depth < 0:
                raise Refused(f"this {sign} closes nothing", token.at, "syntax")
        if depth:
            raise Refused(f"{depth} open bracket{'s are' if depth > 1 else ' is'} not closed", self._end, "syntax")

    def _statement(self) -> None:
        for n, token in enumerate(self._tokens[:-1]):
            if self._sign(n) == ";":
                raise Refused("one statement at a time: there is more behind this semicolon", token.at)

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
                word = self._judged(n, expected)
                if word == "AS" and expected == "link":
                    alias = n + 1
                if word == "UNION":
                    self._begins(n + (2 if self._word(n + 1) in ("ALL", "DISTINCT") else 1), "what is behind UNION")
                if word == "CALL":
                    n = self._call(n)
                expected = self._after(word, expected)
            n += 1

    def _judged(self, n: int, expected: _Expected) -> str:
        """The word at a place where one can be a keyword. Raises `Refused` where it is one that reads nothing."""
        token, word = self._tokens[n], self._word(n)
        plain = word if token.text.isascii() else _bare(token.text)
        if plain in WRITING and not self._stands_alone(n):
            like = "" if plain == word else f", which can be read as {plain},"
            raise Refused(
                f"{token.text}{like} does something other than reading, and this graph is only read; "
                f"a name of that spelling goes in backticks: `{token.text}`",
                token.at,
            )
        if expected == "link" and word not in LINKS:
            near = difflib.get_close_matches(word, sorted(LINKS), n=1, cutoff=0.7)
            meant = f"; did you mean {near[0]}?" if near else ""
            kind = "refused" if word in ELSEWHERE else "syntax"
            why = "a clause that reads, an operator or a comma was expected"
            raise Refused(f"{token.text} cannot stand here: {why}{meant}", token.at, kind)
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
        """Whether a word stands where no grammar has anything but a name: a label, a property, a key of a map."""
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
        """Whether the ! at a place stands in an expression of labels."""
        return self._sign(n - 1) == ":" or (self._sign(n - 1) in ("|", "&") and n - 2 in self._labels)

    def _owns(self, n: int) -> bool:
        """Whether what stands there can have properties. A number cannot: in `1.SET` the dot may be the number's."""
        sign = self._sign(n)
        return sign in (")", "]", "}") if sign else n >= 0 and self._tokens[n].kind != "number"

    def _stands_alone(self, n: int) -> bool:
        """Whether a word that writes is a variable here: nothing that a clause could work on stands behind it."""
        before, after = self._sign(n - 1), self._sign(n + 1)
        if after == "." and self._named(n + 2):
            return True
        return before in ("(", "[", ",") and after in (")", "]", ",")

    def _call(self, n: int) -> int:
        """The last token of what is called. Raises `Refused` for a procedure that is not known to read."""
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
            raise Refused("a procedure or a subquery in braces is expected behind CALL", self._at(n + 1), "syntax")
        name = ".".join(token.text for token in self._tokens[n + 1 : last + 1 : 2])
        if name.lower() not in PROCEDURES or self._sign(last + 1) == "=":
            known = ", ".join(sorted(PROCEDURES))
            raise Refused(f"CALL {name} is not known to read only. Known are: {known}", self._at(n + 1))
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
            if low not in NAMESPACED and low not in PROCEDURES:
                raise Refused(f"the function {name} is not known to read only", at)
        elif low in OUTSIDE or low.startswith(OUTSIDE_BEGIN) or low.endswith(OUTSIDE_END):
            raise Refused(f"the function {name} reaches outside of the graph, or changes something", at)

    def _at(self, n: int) -> int:
        return self._tokens[n].at if n < len(self._tokens) else self._end


def _bare(word: str) -> str:
    """The word as a reader takes it who minds neither marks nor look-alikes: upper case, letters only."""
    flat = unicodedata.normalize("NFKD", word).casefold().replace("ı", "i")
    return "".join(char for char in unicodedata.normalize("NFKD", flat) if char.isalnum() or char == "_").upper()
