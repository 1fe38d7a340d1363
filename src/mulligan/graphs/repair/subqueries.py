"""Subqueries: what is there or not, in the one form that all engines read, `EXISTS { MATCH … }`."""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.graphs.protocol import GraphSchema
from mulligan.graphs.repair._text import QueryTokens, Repair

_LINKS = ("WHERE", "AND", "OR", "XOR", "NOT")
EXISTS = "EXISTS was written EXISTS { MATCH … }"


def exists(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`EXISTS((a)-->(b))`, `EXISTS (MATCH …)`, `EXISTS { (a)-->(b) }`, `exists(a.name)`, and RETURN inside of it."""
    for n in query.words("EXISTS"):
        closed = query.other(n + 1)
        if closed is None:
            continue
        found = query.pattern_at(n + 2)
        is_pattern = found is not None and (found[1] == closed or query.word(found[1]) == "WHERE")
        if query.sign(n + 1) == "{":
            returned = next((m for m in query.words("RETURN") if query.around(m) == n + 1), None)
            if is_pattern:
                return Repair([query.put(n + 2, "MATCH ")], EXISTS)
            if returned is not None and query.word(n + 2) == "MATCH":
                return query.swap(returned, closed - 1, "", "RETURN inside EXISTS was left out")
        elif query.word(n + 2) == "MATCH" or is_pattern:
            begin = " { " if query.word(n + 2) == "MATCH" else " { MATCH "
            end = query.end(closed - 1), query.end(closed), " }"
            return Repair([(query.end(n), query.start(n + 2), begin), end], EXISTS)
        elif query.value_after(n + 2) == closed and query.sign(n + 3) == ".":
            instead = f"({query.span(n + 2, closed)} IS NOT NULL)"
            return query.swap(n, closed, instead, "EXISTS was written IS NOT NULL")
    return None


def counts(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`size((a)-->(b))`, `count((a)-->(b))` in a condition, and `COUNT { (a)-->(b) }`."""
    for n in query.words("SIZE", "COUNT"):
        closed, found = query.other(n + 1), query.pattern_at(n + 2)
        if closed is None or found is None or found[1] != closed:
            continue
        if query.sign(n + 1) == "{" or query.word(n) == "SIZE" or query.is_in(n, "WHERE"):
            instead = f"COUNT {{ MATCH {query.span(n + 2, closed)} }}"
            return query.swap(n, closed, instead, f"{query.text(n)} was written COUNT {{ MATCH … }}")
    return None


def matches(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """MATCH in a condition, and a condition that begins with NOT instead of WHERE."""
    for n in query.words("NOT"):
        is_test = query.word(n + 1) in ("MATCH", "EXISTS") or query.pattern_at(n + 1)
        if query.sign(n - 1) == ")" and query.is_in(n, "MATCH") and is_test:
            return Repair([query.put(n, "WHERE ")], "WHERE was put before NOT")
    for n in query.words("MATCH"):
        found = query.pattern_at(n + 1)
        if query.word(n - 1) in _LINKS and found:
            end = found[1]
            if query.word(end) == "WHERE" and query.word(n - 1) == "NOT":
                end = query.clause_end(end)
            instead = f"EXISTS {{ {query.span(n, end)} }}"
            return query.swap(n, end - 1, instead, "MATCH in a condition was written EXISTS { MATCH … }")
    return None


def optional(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`OPTIONAL MATCH … WHERE b IS NULL` keeps everything: the condition belongs behind a WITH."""
    for n in query.words("OPTIONAL"):
        where = query.clause_end(n + 1)
        if query.word(n + 1) != "MATCH" or query.word(where) != "WHERE":
            continue
        new = query.variables(n, where) - query.variables(0, n)
        for m in range(where, query.clause_end(where)):
            is_null = query.word(m) == "IS" and query.word(m + 1) == "NULL"
            if is_null and query.text(m - 1) in new and query.sign(m - 2) != ".":
                return Repair([query.put(where, "WITH * ")], "WITH * was put before the WHERE of OPTIONAL MATCH")
    return None


def scopes(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`NOT (a)-->(b:B) AND b.x > 1`: what a pattern of a condition introduces is known inside of it alone."""
    for where in query.words("WHERE"):
        end = query.clause_end(where)
        outside = query.variables(0, where) | query.variables(end, len(query))
        terms = list(_terms(query, where, end))
        for term in terms:
            tested = term[0] + (query.word(term[0]) == "NOT")
            is_exists = query.word(tested) == "EXISTS" and query.sign(tested + 1) == "{"
            found = query.pattern_at(tested)
            if not (is_exists and query.word(tested + 2) == "MATCH") and not (found and found[1] == term[1]):
                continue
            new = query.variables(*term) - outside
            moved = [other for other in terms if other != term and _uses(query, other, new)]
            later = _uses(query, (end, len(query)), new)
            if later or (is_exists and not moved) or not new:
                continue
            return Repair([_moved(query, terms, term, moved, is_exists)], _said(query, term, moved))
    return None


def contradictions(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`MATCH (a)-->(:B) WHERE NOT EXISTS { MATCH (a)-->(:B) }` finds nothing: MATCH is to find `a` alone."""
    for n in query.words("NOT"):
        is_exists = query.word(n + 1) == "EXISTS" and query.word(n + 3) == "MATCH"
        lacked = query.pattern_at(n + 4 if is_exists else n + 1)
        if lacked is None or not query.is_in(n, "WHERE"):
            continue
        for pattern in query.patterns:
            first, end = pattern.nodes[0], pattern.nodes[-1].end
            is_same = first.variable and first.variable == lacked[0].nodes[0].variable and end < n and pattern.edges
            rest = query.variables(first.end, end) - {first.variable}
            used = _uses(query, (end, len(query)), rest - query.variables(n, query.clause_end(n)))
            if (
                is_same
                and not used
                and _shape(query, first.end, end) == _shape(query, lacked[0].nodes[0].end, lacked[1])
            ):
                said = f"{query.span(first.end, end)} was left out of MATCH, as the query looks for what lacks it"
                return query.swap(first.end, end - 1, "", said)
    return None


def _shape(query: QueryTokens, first: int, after: int) -> list[str]:
    """The tokens of a pattern without its variables."""
    variables = {part.open + 1 for part in query.parts if part.variable}
    return [query.text(n) for n in range(first, after) if n not in variables]


def _terms(query: QueryTokens, where: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a condition that AND joins, each by its first token and the one after it; with OR, none."""
    depth, first = query.around(where), where + 1
    inside = [n for n in range(where + 1, end) if query.around(n) == depth]
    if any(query.word(n) in ("OR", "XOR") for n in inside):
        return
    for n in (*(n for n in inside if query.word(n) == "AND"), end):
        if n > first:
            yield first, n
        first = n + 1


def _uses(query: QueryTokens, span: tuple[int, int], names: set[str]) -> bool:
    return any(
        query.text(n) in names and query.is_name(n) and query.sign(n - 1) not in (".", ":") for n in range(*span)
    )


def _moved(
    query: QueryTokens,
    terms: list[tuple[int, int]],
    term: tuple[int, int],
    moved: list[tuple[int, int]],
    is_exists: bool,
) -> tuple[int, int, str]:
    """The edit that writes all terms anew, with those that belong inside of the pattern's subquery."""
    first, after = term
    conditions = [query.span(*other) for other in moved]
    if is_exists:
        opened = first + 1 + (query.word(first) == "NOT")
        inner = query.span(opened + 1, after - 1)
        has_where = any(query.word(n) == "WHERE" and query.around(n) == opened for n in range(opened, after))
        joined = f"{inner} {'AND' if has_where else 'WHERE'} {' AND '.join(conditions)}"
    else:
        inner = query.span(first + (query.word(first) == "NOT"), after)
        joined = f"MATCH {inner}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
    negated = "NOT " if query.word(first) == "NOT" else ""
    whole = f"{negated}EXISTS {{ {joined} }}"
    kept = [whole if other == term else query.span(*other) for other in terms if other not in moved]
    return query.start(terms[0][0]), query.end(terms[-1][1] - 1), " AND ".join(kept)


def _said(query: QueryTokens, term: tuple[int, int], moved: list[tuple[int, int]]) -> str:
    what = ", ".join(query.span(*other) for other in moved)
    return f"{what} was moved into EXISTS" if moved else "a pattern in a condition was written EXISTS { MATCH … }"
