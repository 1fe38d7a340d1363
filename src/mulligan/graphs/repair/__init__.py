"""Repairs common faults in the queries of small models, before a database is asked: design/102.

Each rule knows one fault that some engine of ours does not read as it is meant: operators and clauses of SQL, forms of
EXISTS, a label in place of a variable, a text in the wrong case. It writes the form that all engines read the same, and
says so. A fault that cannot be repaired is said in a sentence instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mulligan.graphs._guard import Refused
from mulligan.graphs.protocol import GraphSchema
from mulligan.graphs.repair import clauses, conditions, names, subqueries
from mulligan.graphs.repair._text import QueryTokens, Repair
from mulligan.graphs.schema_check import Checked, check_query

LONGEST = 1500
"""The characters of the longest query that is repaired."""
TIMES = 20
"""How often one rule may change a query."""
RULES: Sequence[Callable[[QueryTokens, GraphSchema], Repair | None]] = (
    clauses.select,
    names.labels,
    subqueries.matches,
    subqueries.exists,
    subqueries.counts,
    conditions.operators,
    conditions.braces,
    conditions.negation,
    conditions.lists,
    conditions.like,
    conditions.ranges,
    clauses.conditions,
    clauses.grouping,
    clauses.order,
    clauses.returns,
    subqueries.optional,
    names.owners,
    subqueries.scopes,
    subqueries.contradictions,
    names.reserved,
    names.texts,
    conditions.cases,
    conditions.values,
)
"""In this order: later rules read what earlier ones have written."""


def repair_query(query: str, schema: GraphSchema) -> Checked:
    """Return the query with the faults repaired that the rules know. A query that is very long or cannot be read is
    returned as it is."""
    changes: list[str] = []
    if len(query) > LONGEST:
        return Checked(query)
    try:
        read = QueryTokens(query)
        for rule in RULES:
            for _ in range(TIMES):
                found = rule(read, schema)
                if found is None:
                    break
                query = read.changed(found.edits)
                changes.append(found.said)
                read = QueryTokens(query)
        faults = tuple(dict.fromkeys(_faults(read)))
    except Refused:  # the guard says why
        return Checked(query, tuple(changes))
    return Checked(query, tuple(dict.fromkeys(changes)), faults)


def mended_query(query: str, schema: GraphSchema) -> Checked:
    """Repair a query and compare it with the schema: see `repair_query` and `check_query`."""
    repaired = repair_query(query, schema)
    checked = repaired if repaired.faults else check_query(repaired.query, schema)
    if checked.faults:
        return Checked(repaired.query, repaired.changes, checked.faults)
    again = repair_query(checked.query, schema) if checked.changes else checked  # the names are right now
    changes = (*repaired.changes, *checked.changes, *again.changes)
    return Checked(again.query, tuple(dict.fromkeys(changes)), again.faults)


def _faults(query: QueryTokens) -> Iterator[str]:
    """What no rule can repair, a sentence each."""
    if query.has("SELECT"):
        yield "This is SQL. Write a query of the form MATCH … WHERE … RETURN …."
    for n in query.words("MINUS", "EXCEPT"):
        if query.word(n + 1) == "MATCH":
            yield f"There is no {query.text(n)} in Cypher: use WHERE NOT EXISTS {{ MATCH … }}."
    if any(query.word(n + 2) == "MATCH" and query.sign(n + 1) == "(" for n in query.words("IN")):
        yield "A query cannot stand behind IN: use WHERE EXISTS { MATCH … }, or NOT EXISTS { MATCH … }."
    for n in query.words("WHERE", "HAVING"):
        end = query.clause_end(n)
        for m in range(n, end):
            is_call = query.word(m) in clauses.AGGREGATES and query.sign(m + 1) == "("
            if is_call and query.clause_of(m) == n:
                yield (
                    f"{query.text(m)}() cannot stand in {query.word(n)}: first WITH a, count(b) AS n, then WHERE n > 1."
                    " To find what has none, use WHERE NOT EXISTS { MATCH … }."
                )
        yield from _nulls(query, n, end)
    if clauses.lacks_return(query):
        yield "The query has no RETURN: end it with RETURN and what the question asks for."


def _nulls(query: QueryTokens, where: int, end: int) -> Iterator[str]:
    """A variable that MATCH has found is never null."""
    clause = query.clause_of(where - 1)
    if clause is None or query.word(clause) != "MATCH" or query.word(clause - 1) == "OPTIONAL":
        return
    found = query.variables(clause, where)
    for n in range(where, end):
        is_null = query.word(n) == "IS" and query.word(n + 1) == "NULL"
        if is_null and query.text(n - 1) in found and query.sign(n - 2) != ".":
            yield (
                f"{query.text(n - 1)} is never null, as MATCH finds only what is there. To find what lacks a "
                "relationship, use WHERE NOT EXISTS { MATCH (a)-[:TYPE]->(:Label) }."
            )
