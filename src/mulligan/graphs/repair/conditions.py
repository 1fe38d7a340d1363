"""Conditions: operators of other languages, comparisons in braces, and texts and numbers that never match."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mulligan.graphs.protocol import GraphSchema, is_number, spelled
from mulligan.graphs.repair._text import COMPARES, QueryTokens, Repair

_NEGATED = ("IN", "CONTAINS", "STARTS", "ENDS", "LIKE", "ILIKE", "BETWEEN")
_TESTS = ("CONTAINS", "STARTS", "ENDS", "IN", "NOT")
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def operators(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`!=`, `==`, `&&`, `a->b` without a relationship, `IS TRUE`, `IS 'text'`, `DISTINCT(`."""
    for n in range(len(query) - 1):
        double = query.sign(n) + query.sign(n + 1) if query.is_tight(n) else ""
        instead = {"!=": "<>", "==": "=", "&&": " AND "}.get(double)
        if instead:
            return query.swap(n, n + 1, instead, f"{double} was written {instead.strip()}")
        if double == "->" and query.sign(n - 1) == ")" and query.sign(n + 2) == "(":
            return Repair([query.put(n, "-")], "-> was written -->")
        if query.word(n) == "IS":
            negated = query.word(n + 1) == "NOT"
            value = n + 1 + negated
            if query.word(value) in ("TRUE", "FALSE") or query.kind(value) in ("string", "number"):
                sign = "<>" if negated else "="
                return query.swap(n, value - 1, sign, f"IS was written {sign}")
        if query.word(n) == "DISTINCT" and query.sign(n + 1) == "(" and query.is_tight(n):
            return Repair([(query.end(n), query.end(n), " ")], "a space was put behind DISTINCT")
    return None


def negation(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`x NOT IN list`: the NOT stands before the value."""
    for n in query.words("NOT"):
        value = query.value_before(n) if query.word(n + 1) in _NEGATED else None
        if value is not None:
            edits = [query.put(value, "NOT "), (query.start(n), query.start(n + 1), "")]
            return Repair(edits, f"NOT {query.word(n + 1)} was written with NOT before the value")
    return None


def lists(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`IN ('a', 'b')`, and `= ['a', 'b']` of a property that is no list."""
    for n in query.words("IN"):
        closed = query.other(n + 1)
        if query.sign(n + 1) == "(" and closed and query.kind(n + 2) in ("string", "number"):
            edits = [(query.start(n + 1), query.end(n + 1), "["), (query.start(closed), query.end(closed), "]")]
            return Repair(edits, "the list after IN was put in square brackets")
    for n in query.signs("="):
        kind = _type_before(query, schema, n)
        if query.sign(n + 1) == "[" and kind and not _is_list(kind):
            return query.swap(n, n, "IN", "= with a list was written IN")
    return None


def like(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`LIKE '%a%'` of SQL."""
    for n in query.words("LIKE", "ILIKE"):
        value = query.value_before(n)
        if value is None or query.kind(n + 1) != "string":
            continue
        text, left = query.text(n + 1), query.span(value, n)
        if query.word(n) == "ILIKE":
            text, left = text.lower(), f"lower({left})"
        test = _like(text)
        if test is not None:
            word, text = test
            test_text = f"{left} {word} {query.literal(n + 1, text)}"
            return query.swap(value, n + 1, test_text, f"{query.word(n)} was written {word}")
    return None


def _like(text: str) -> tuple[str, str] | None:
    """The test of Cypher for a pattern of SQL; None for one that needs escapes."""
    inner = text.strip("%")
    if "%" not in inner and "_" not in inner:
        sides = text.startswith("%"), text.endswith("%")
        words = {(True, True): "CONTAINS", (True, False): "ENDS WITH", (False, True): "STARTS WITH"}
        return words.get(sides, "="), inner
    if re.search(r"[\\^\[\]]", text):
        return None
    return "=~", re.sub(r"[.*+?(){}|$]", r"[\g<0>]", text).replace("%", ".*").replace("_", ".")


def ranges(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`x BETWEEN a AND b`, `a < x < b`, and 1,000."""
    for n in query.words("BETWEEN"):
        value, between = query.value_before(n), query.value_after(n + 1)
        end = query.value_after(between + 1) if between and query.word(between) == "AND" else None
        if value is not None and between and end:
            left, low, high = query.span(value, n), query.span(n + 1, between), query.span(between + 1, end)
            instead = f"({left} >= {low} AND {left} <= {high})"
            return query.swap(value, end - 1, instead, "BETWEEN was written with >= and <=")
    for n in query.signs("<", ">"):
        after = _after_sign(query, n)
        end = query.value_after(after)
        begins = query.value_before(n) is not None and query.sign(n - 1) != ")" and _is_asked(query, n)
        if begins and end and query.sign(end) == query.sign(n) and query.value_after(_after_sign(query, end)):
            again = f" AND {query.span(after, end)}"
            return Repair([(query.end(end - 1), query.end(end - 1), again)], "a < x < b was written with AND")
    for n in range(1, len(query) - 2):
        is_thousands = query.sign(n + 1) == "," and query.is_tight(n) and query.is_tight(n + 1)
        numbers = query.kind(n) == query.kind(n + 2) == "number" and len(query.text(n + 2)) == 3
        if is_thousands and numbers and query.sign(n - 1) in COMPARES and _is_asked(query, n):
            return query.swap(n + 1, n + 1, "", "the comma in a number was left out")
    return None


def _after_sign(query: QueryTokens, n: int) -> int:
    """The token after < or >, which may have an = behind it."""
    return n + 1 + (query.sign(n + 1) == "=" and query.is_tight(n))


def _is_asked(query: QueryTokens, n: int) -> bool:
    """Whether a token stands in a condition, and not in the braces or square brackets of one."""
    clause, around = query.clause_of(n), query.around(n)
    return (
        clause is not None
        and query.word(clause) == "WHERE"
        and (around is None or query.sign(around) == "(" or around < clause)
    )


def braces(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`{name = 'a'}`, `{'name': 'a'}`; and `{year > 1900}` and `{name: ['a', 'b']}`, which go into WHERE."""
    for part in query.parts:
        for first, after, cut in query.entries(part):
            sign = query.sign(first + 1)
            if sign == "=":
                return query.swap(first + 1, first + 1, ":", "= in braces was written :")
            if query.kind(first) == "string" and sign == ":":
                return query.swap(first, first, spelled(query.text(first)), "a key lost its quotes")
            test = first + 1 + (sign == ":")
            kind = type_of(schema, part.kinds, query.text(first))
            is_list = query.sign(test) == "[" and bool(kind) and not _is_list(kind)
            is_test = query.sign(test) in ("<", ">") or query.word(test) in _TESTS or is_list
            clause = query.clause_of(part.open)
            if query.is_name(first) and is_test and clause is not None and query.word(clause) == "MATCH":
                name, edits = query.named(part)
                test_text = f"{'IN ' if is_list else ''}{query.span(test, after)}"
                condition = f"{name}.{query.span(first, first + 1)} {test_text}"
                edits = [*edits, cut, query.condition(clause, condition)]
                return Repair(edits, "a comparison in braces was moved to WHERE")
    return None


def cases(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`lower(x) = 'Abc'` never holds."""
    for n in query.words("LOWER", "TOLOWER", "UPPER", "TOUPPER"):
        closed = query.other(n + 1) if query.sign(n + 1) == "(" else None
        if closed is None:
            continue
        first = closed + 1
        while query.sign(first) in ("=", "<", ">", "[") or query.word(first) in ("WITH", *_TESTS):
            first += 1
        while query.kind(first) == "string" and first > closed + 1:
            text = query.text(first)
            same = text.lower() if "LOWER" in query.word(n) else text.upper()
            if same != text and "\\" not in text:
                said = f"the text compared with {query.text(n)}() was written {same}"
                return query.swap(first, first, query.literal(first, same), said)
            first += 1 + (query.sign(first + 1) == ",")
    return None


def values(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """A number in quotes beside a property that is a number, and the reverse."""
    for n in query.signs("=", "<", ">", ":"):
        kind, value = _type_before(query, schema, n).upper(), n + 1
        text, is_text = query.text(value), query.kind(value) == "string"
        instead = ""
        if is_text and is_number(kind) and _PLAIN_NUMBER.fullmatch(text):
            instead = text
        elif is_text and kind in ("BOOL", "BOOLEAN") and text.lower() in ("true", "false"):
            instead = text.lower()
        elif query.kind(value) == "number" and kind == "STRING":
            instead = f"'{text}'"
        if instead:
            said = f"{query.span(value, value + 1)} was written {instead}, as its property is"
            return query.swap(value, value, instead, said)
    return None


def _type_before(query: QueryTokens, schema: GraphSchema, n: int) -> str:
    """The type of the property before a comparison or a colon at a token, as the schema has it; "" if unknown."""
    while query.sign(n - 1) in ("<", ">"):
        n -= 1
    if not query.is_name(n - 1):
        return ""
    if query.sign(n) == ":":
        braces = query.around(n)
        inside = query.around(braces) if braces is not None and query.sign(braces) == "{" else None
        kinds = [part.kinds for part in query.parts if part.open == inside]
    else:
        owner = query.text(n - 3) if query.sign(n - 2) == "." and query.sign(n - 4) != "." else ""
        kinds = [part.kinds for part in query.parts if owner and part.variable == owner and part.kinds]
    return type_of(schema, [name for names in kinds for name in names], query.text(n - 1))


def type_of(schema: GraphSchema, kinds: Sequence[str], name: str) -> str:
    """The type of a property of these kinds; "" if it is unknown or not the same in all."""
    types = {each.properties.get(name, "") for each in (*schema.nodes, *schema.edges) if each.label in kinds}
    return next(iter(types)) if len(types) == 1 else ""


def _is_list(kind: str) -> bool:
    return "[" in kind or "LIST" in kind.upper()
