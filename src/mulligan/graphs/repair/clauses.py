"""Clauses: their order, and words of SQL in place of them."""

from __future__ import annotations

from mulligan.graphs._guard import WRITING
from mulligan.graphs.protocol import GraphSchema, spelled
from mulligan.graphs.repair._text import QueryTokens, Repair

_AFTER_RETURN = ("ORDER", "LIMIT", "SKIP")
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "COLLECT")


def conditions(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`MATCH (a), WHERE`, `AND WHERE`, a second WHERE, and WHERE behind RETURN."""
    for n in query.signs(","):
        if query.is_clause(n + 1):
            return query.swap(n, n, "", f"the comma before {query.word(n + 1)} was left out")
    for n in query.words("WHERE"):
        before = query.clause_of(n - 1)
        if query.word(n - 1) in ("AND", "OR", "WHERE"):
            return query.swap(n, n, "", "the second WHERE was left out")
        if before is None or query.around(before) != query.around(n):
            continue
        if query.word(before) == "WHERE":
            return query.swap(n, n, "AND", "the second WHERE was written AND")
        if query.word(before) == "RETURN" and not _is_alias(query, before, n):
            return _before_return(query, before, n)
    return None


def _is_alias(query: QueryTokens, first: int, where: int) -> bool:
    """Whether the condition behind RETURN is about a name that it gives, or about a number of rows."""
    names = {query.text(n + 1) for n in range(first, where) if query.word(n) == "AS"}
    rest = range(where, query.clause_end(where))
    return any(query.text(n) in names or query.word(n) in AGGREGATES for n in rest)


def _before_return(query: QueryTokens, returns: int, where: int) -> Repair:
    end = query.clause_end(where)
    condition = query.span(where + 1, end)
    cut = (query.start(where), query.end(end - 1), "")
    joined = f"AND ({condition}) " if query.is_in(returns - 1, "WHERE") else f"WHERE {condition} "
    return Repair([cut, query.put(returns, joined)], "WHERE was moved before RETURN")


def order(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """ORDER BY and LIMIT before RETURN; and DISTINCT with an order by what is not returned."""
    for n in query.words("RETURN"):
        first = next((m for m in query.words(*_AFTER_RETURN) if m < n and query.around(m) == query.around(n)), None)
        if first is not None and query.is_in(first - 1, "MATCH", "WHERE"):
            after = query.end(query.clause_end(n) - 1)
            edits = [(query.start(first), query.start(n), ""), (after, after, f" {query.span(first, n)}")]
            return Repair(edits, f"{query.word(first)} was moved behind RETURN")
        by = query.clause_end(n)
        is_hidden = query.sign(by + 3) == "." and query.span(by + 2, by + 5) not in query.span(n, by)
        is_single = any(query.word(m) == "LIMIT" and query.text(m + 1) == "1" for m in range(by, len(query)))
        if query.word(n + 1) == "DISTINCT" and query.word(by) == "ORDER" and is_hidden and is_single:
            return query.swap(n + 1, n + 1, "", "DISTINCT was left out before ORDER BY … LIMIT 1")
    return None


def grouping(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """GROUP BY, which RETURN and WITH do by themselves, and HAVING in place of WHERE."""
    for n in query.words("GROUP"):
        if query.word(n + 1) == "BY" and query.is_in(n - 1, "RETURN", "WITH"):
            return query.swap(n, query.clause_end(n) - 1, "", "GROUP BY was left out")
    for n in query.words("HAVING"):
        if query.is_in(n - 1, "WITH", "MATCH") and not _has_aggregate(query, n):
            return query.swap(n, n, "WHERE", "HAVING was written WHERE")
    return None


def _has_aggregate(query: QueryTokens, clause: int) -> bool:
    return any(
        query.word(n) in AGGREGATES and query.sign(n + 1) == "(" for n in range(clause, query.clause_end(clause))
    )


def select(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """SELECT in place of RETURN, before MATCH or behind it."""
    for n in query.words("SELECT"):
        end = query.clause_end(n)
        if n == 0 and query.word(end) == "MATCH":
            items = query.span(1, end)
            return Repair([(0, query.start(end), ""), query.ending(f" RETURN {items}")], "SELECT was written RETURN")
        if n and not query.has("RETURN", "FROM"):
            return query.swap(n, n, "RETURN", "SELECT was written RETURN")
    return None


def lacks_return(query: QueryTokens) -> bool:
    """Whether a query that only reads gives nothing back."""
    return query.word(0) in ("MATCH", "OPTIONAL") and not query.has("RETURN", "CALL", "SELECT", *WRITING)


def returns(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """A query without RETURN that has one named node alone."""
    if not lacks_return(query):
        return None
    nodes = {part.variable: part for part in query.parts if part.variable and not part.is_edge}
    if len(nodes) != 1:
        return None
    ((name, part),) = nodes.items()
    kinds = [node for node in schema.nodes if node.label in part.kinds]
    value = f"{spelled(name)}.name" if kinds and all("name" in node.properties for node in kinds) else spelled(name)
    return Repair([query.ending(f" RETURN DISTINCT {value}")], f"RETURN {value} was added")
