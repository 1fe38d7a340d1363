"""Names: labels in place of variables, properties on the wrong side, and words that need quotes or backticks."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.graphs.protocol import GraphSchema, quoted, spelled
from mulligan.graphs.repair._text import Part, QueryTokens, Repair

RESERVED = frozenset(
    """
    where with order unwind union group end desc asc in not all any exists on default table column primary case when
    then else and or xor as by is null true false distinct having select
    """.upper().split()
)
"""Words that Ladybug reads as its own behind a dot. In backticks they are names in all engines."""
_NO_TEXT = RESERVED | {"MATCH", "RETURN", "COUNT", "LIMIT"}


def labels(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`(a.Author)`, `(Author a)`, `(a:'Author')`; and `(Author)` and `[WROTE]`, which match everything."""
    nodes, types = {node.label for node in schema.nodes}, {edge.label for edge in schema.edges}
    for n in query.signs("("):
        if not query.is_name(n + 1) or not (query.word(n - 1) == "MATCH" or query.sign(n - 1) in (",", "-", ">", "(")):
            continue
        if query.sign(n + 2) == "." and query.text(n + 3) in nodes and query.sign(n + 4) in (")", "{"):
            return query.swap(n + 2, n + 2, ":", f"({query.span(n + 1, n + 4)}) was written with a colon")
        if query.text(n + 1) in nodes and query.is_name(n + 2) and query.sign(n + 3) in (")", "{"):
            both = f"{query.span(n + 2, n + 3)}:{query.span(n + 1, n + 2)}"
            return query.swap(n + 1, n + 2, both, f"a node was written {both}")
    for n in query.signs(":"):
        opened = query.around(n)
        inside = opened is not None and query.sign(opened) in ("(", "[")
        if inside and query.kind(n + 1) == "string" and query.text(n + 1) in nodes | types:
            said = f"{query.span(n + 1, n + 2)} lost its quotes"
            return query.swap(n + 1, n + 1, spelled(query.text(n + 1)), said)
    labelled = {part.variable for part in query.parts if part.kinds}
    for part in query.parts:
        known = types if part.is_edge else nodes
        if part.variable in known and not part.kinds and part.variable not in labelled:
            name = query.span(part.open + 1, part.open + 2)
            what = "type" if part.is_edge else "label"
            edit = query.end(part.open + 1), query.end(part.open + 1), f":{name}"
            return Repair([edit], f"{name} was written with a colon, as a {what}")
    return None


def owners(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """A property that belongs to the one other part of the pattern; and `Author.name`, where Author is a label."""
    kinds = {each.label: each for each in (*schema.nodes, *schema.edges)}

    def having(key: str, parts: Sequence[Part]) -> Part | None:
        """The one part that has this property."""
        found = [part for part in parts if any(key in kinds[name].properties for name in part.kinds if name in kinds)]
        return found[0] if len({part.variable or str(part.open) for part in found}) == 1 else None

    def lacks(key: str, parts: Sequence[Part]) -> bool:
        """Whether it is known that none of these parts has the property."""
        own = [kinds.get(name) for part in parts for name in part.kinds]
        known = [kind for kind in own if kind is not None and kind.properties and key not in kind.properties]
        return schema.exact and bool(own) and len(known) == len(own)

    for part in query.parts:
        clause = query.clause_of(part.open)
        for first, after, cut in query.entries(part) if clause is not None and query.word(clause) == "MATCH" else ():
            key = query.text(first)
            other = having(key, [each for each in query.parts if each != part]) if lacks(key, [part]) else None
            if clause is not None and other is not None and query.sign(first + 1) == ":":
                name, edits = query.named(other)
                condition = f"{name}.{query.span(first, first + 1)} = {query.span(first + 2, after)}"
                edits = [*edits, cut, query.condition(clause, condition)]
                return Repair(edits, f"{key} was moved to {name}, whose property it is")
    for n in query.signs("."):
        owner, key = query.text(n - 1), query.text(n + 1)
        if not (query.is_name(n - 1) and query.is_name(n + 1)) or query.sign(n - 2) == "." or query.sign(n + 2) == "(":
            continue
        own = [part for part in query.parts if part.variable == owner]
        if own:
            other = having(key, [part for part in query.parts if part not in own]) if lacks(key, own) else None
        else:
            other = having(key, [part for part in query.parts if owner in part.kinds])
        if other is not None:
            name, edits = query.named(other)
            edit = (query.start(n - 1), query.end(n - 1), name)
            return Repair([*edits, edit], f"{owner}.{key} was written {name}.{key}, whose property it is")
    return None


def reserved(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """A property with the name of a keyword."""
    for n in range(1, len(query)):
        is_key = query.sign(n - 1) in ("{", ",") and query.sign(n + 1) == ":"
        is_property = query.sign(n - 1) == "." and query.is_name(n - 2)
        if (
            query.kind(n) == "word"
            and query.sign(n + 1) != "("
            and (is_property or is_key)
            and query.text(n).upper() in RESERVED
        ):
            return query.swap(n, n, quoted(query.text(n)), f"the property {query.text(n)} was put in backticks")
    return None


def texts(query: QueryTokens, schema: GraphSchema) -> Repair | None:
    """`a.name = Ann`, a text without quotes; and `a['name']`."""
    known = {part.variable for part in query.parts}
    known |= {query.text(n + 1) for n in query.words("AS")} | {query.text(n - 1) for n in query.words("IN")}
    for n in query.signs("="):
        is_compared = query.is_name(n - 1) and query.sign(n - 2) == "." and query.is_name(n + 1)
        ends = query.sign(n + 2) not in (".", "(", "[", "{", "-", "+", "*", "/") and query.kind(n + 2) != "string"
        name = query.text(n + 1)
        if is_compared and ends and name not in known and query.word(n + 1) not in _NO_TEXT and "'" not in name:
            return query.swap(n + 1, n + 1, f"'{name}'", f"the text {name} was put in quotes")
    for n in query.signs("["):
        is_key = query.kind(n + 1) == "string" and query.sign(n + 2) == "]"
        if is_key and query.text(n - 1) in known and query.text(n - 1) and query.sign(n - 2) != ".":
            return query.swap(
                n, n + 2, f".{spelled(query.text(n + 1))}", f"['{query.text(n + 1)}'] was written with a dot"
            )
    return None
