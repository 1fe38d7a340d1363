"""Checks from the text of a query that it only reads, and locates errors in it.

There are two checks. Words that write (or reach files, the network, other databases or settings) are refused wherever a
clause can begin; they count as names only where no grammar allows a clause, such as after a dot or a colon. After a
value, a name or a closing bracket only the words of reading clauses and operators are allowed, so that an unknown
clause of some dialect is refused too. Names in backticks, strings and comments contain no words. design/014 says why
this is not a grammar.
"""

from __future__ import annotations

import bisect
import difflib
import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Literal

from mulligan.core.errors import QueryError, QueryTrouble
from mulligan.graphs._tokens import Token, Unreadable, decoded, tokens

# --- the words of Cypher in its dialects, in upper case unless said otherwise ---------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BEGINNINGS = _words("MATCH OPTIONAL WITH UNWIND RETURN CALL")
"""The first word of a query that only reads."""

WRITING = _words(
    """CREATE MERGE SET DELETE DETACH NODETACH REMOVE DROP INSERT FOREACH LOAD USE COPY ALTER ATTACH INSTALL UNINSTALL
    EXPORT IMPORT UPSERT TRUNCATE GRANT REVOKE DENY TRANSACTIONS"""
)
"""Words that write or reach outside the graph wherever a clause can begin. A name with that spelling needs backticks,
unless it stands where only a name can."""

ELSEWHERE = _words(
    """ALTER ANALYZE BEGIN CHECKPOINT COMMENT COMMIT CYPHER DEALLOCATE DETACH DISABLE DRYRUN ENABLE EXECUTE EXPLAIN
    FORCE KILL PROFILE REALLOCATE RENAME ROLLBACK SELECT SHOW SHUTDOWN START STOP SYNC TERMINATE UPDATE VACUUM"""
)
"""Words that begin statements which do something other than query the graph."""

LINKS = _words(
    """ALL AND AS ASC ASCENDING BY CALL CASE CONTAINS DESC DESCENDING DISTINCT EDGES ELEMENT ELEMENTS ELSE END ENDS
    FILTER FROM GROUP GROUPS HINT IN INDEX IS JOIN LIMIT MATCH MULTI_JOIN NODES NORMALIZED NOT NULL NULLS OFFSET
    ON OPTIONAL OR ORDER PATH PATHS POINT RANGE RELATIONSHIP RELATIONSHIPS RETURN ROWS SCAN SEEK SKIP STARTS
    TEXT THEN TYPED UNION UNWIND USING WHEN WHERE WITH XOR YIELD ZONED"""
)
"""Words that may follow a value, a name or a closing bracket."""

LEADING = LINKS | _words("ALL ANY ACYCLIC COUNT EXISTS COLLECT NONE SHORTEST SINGLE TRAIL WALK")
"""Words that may be a keyword or a name where a value is expected."""

VALUES = _words("NULL TRUE FALSE END INF INFINITY NAN")
"""Keywords that are values or end one."""

PROCEDURES = _words(
    """db.labels db.relationshiptypes db.propertykeys db.schema.visualization db.schema.nodetypeproperties
    db.schema.reltypeproperties db.index.fulltext.querynodes db.index.fulltext.queryrelationships
    db.index.vector.querynodes db.index.vector.queryrelationships db.info db.ping dbms.components show_tables
    table_info show_connection show_indexes show_functions db_version catalog_version storage_version
    current_setting query_fts_index query_vector_index"""
)
"""Procedures and table functions that only read, in lower case."""

NAMESPACED = _words(
    """date.truncate date.realtime date.statement date.transaction datetime.truncate datetime.realtime
    datetime.statement datetime.transaction datetime.fromepoch datetime.fromepochmillis localdatetime.truncate
    localdatetime.realtime localdatetime.statement localdatetime.transaction time.truncate time.realtime
    time.statement time.transaction localtime.truncate localtime.realtime localtime.statement
    localtime.transaction duration.between duration.inmonths duration.indays duration.inseconds point.distance
    point.withinbbox vector.similarity.cosine vector.similarity.euclidean"""
)
"""Functions with a dot in their name that only compute, in lower case. Others with a dot may do anything."""

OUTSIDE_BEGIN = ("load_", "read_", "scan_", "copy_", "import_", "export_", "write_", "http_", "open_", "attach_")
OUTSIDE_END = ("_scan", "_load")
OUTSIDE = _words("nextval setval file url linenumber load getenv")
"""Functions that read files or the network, or change something: the beginnings and ends of their names, and names."""

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


class Refused(Exception):
    """A query that does something other than reading, or could."""

    def __init__(self, message: str, at: int, kind: Literal["refused", "syntax", "large"] = "refused") -> None:
        super().__init__(message)
        self.at = at
        self.kind: Literal["refused", "syntax", "large"] = kind


def read_only(query: str, parameters: Collection[str] = ()) -> str:
    """Return the query without a final semicolon if it only reads. Positions in it stay the same.

    Raises:
        QueryError: With the word and its position. kind: refused (it does something other than reading, or could),
            syntax, large, or unknown (a parameter without a value).
    """
    if len(query) > CHARACTERS:
        raise QueryError(f"The query has {len(query):,} characters; the limit is {CHARACTERS:,}.", "large")
    found = _checked(query, None)
    for text, origins in decoded(query):
        _checked(text, (query, origins))
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


def _checked(text: str, source: tuple[str, list[int]] | None) -> list[Token]:
    """Return the tokens of a text that only reads.

    Args:
        source: For a decoded text, the original query and the offset there of each character of `text`.
    """
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
    message = f"Some databases decode \\uXXXX before they parse a query. For them: {message}"
    raise _error(source[0], message, source[1][at], "refused") from None


def _error(query: str, message: str, at: int, kind: QueryTrouble) -> QueryError:
    line, column = place(query, at)
    return QueryError(f"{message} (line {line}, column {column})", kind, line, column)


class _Check:
    """The check of one query. "either" as the expected token means that two grammars differ."""

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
        near = difflib.get_close_matches(word, sorted(BEGINNINGS), n=1, cutoff=0.7)
        meant = f"; did you mean {near[0]}?" if near else ""
        shown = token.text if token.kind in ("word", "sign") else repr(token.text)
        known = ", ".join(sorted(BEGINNINGS))
        raise Refused(f"{what} must begin with {known}, not with {shown}{meant}", token.at, "syntax")

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
                raise Refused("only one statement is allowed: there is more after this semicolon", token.at)

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
        if name.lower() not in PROCEDURES or self._sign(last + 1) == "=":
            known = ", ".join(sorted(PROCEDURES))
            raise Refused(f"CALL {name} is not known to only read. Known procedures: {known}", self._at(n + 1))
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
                raise Refused(f"the function {name} is not known to only read", at)
        elif low in OUTSIDE or low.startswith(OUTSIDE_BEGIN) or low.endswith(OUTSIDE_END):
            raise Refused(f"the function {name} reaches outside the graph or changes something", at)

    def _at(self, n: int) -> int:
        return self._tokens[n].at if n < len(self._tokens) else self._end


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
    except Unreadable:
        return error
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
