"""The guard: what only reads goes through, what writes does not, in whatever disguise, and the place is said."""

import contextlib
import json
from pathlib import Path

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from sample_graphs import hostile

from mulligan.core.errors import QueryError
from mulligan.graphs._guard import CHARACTERS, DEPTH, read_only

HERE = Path(__file__).parent
HARMLESS = [json.loads(line) for line in (HERE / "harmless.txt").read_text().splitlines() if line.startswith('"')]
REFUSED = [query for fate, query in hostile(HERE / "hostile.txt") if fate == "refused"]
GIVEN = ("x", "n", "set", "names", "CREATE")


def test_what_only_reads_goes_through() -> None:
    assert len(HARMLESS) > 20
    changed = [query for query in HARMLESS if read_only(query, GIVEN).replace(";", " ") != query.replace(";", " ")]
    assert changed == []


def test_what_does_not_is_refused() -> None:
    assert len(REFUSED) > 20
    assert [query for query in REFUSED if not refused_with_a_place(query)] == []


def refused_with_a_place(query: str) -> bool:
    try:
        read_only(query, GIVEN)
    except QueryError as error:
        return error.kind in ("refused", "syntax") and error.line is not None and error.column is not None
    return False


@each_row(
    ("query", "message"),
    [
        (
            "MATCH (n)\n  DETACH DELETE n",
            r"^DETACH does something other than reading.*`DETACH`\. \(line 2, column 3\)$",
        ),
        ("CREATE (n)", r"^CREATE does something other than reading the graph, and only reading is allowed\. \(line 1"),
        ("MATCH (n) RETRN n", r"^RETRN is not allowed here.*did you mean RETURN\? \(line 1, column 11\)$"),
        ("MTCH (n) RETURN n", r"^The query must begin with CALL, MATCH, .*not with MTCH; did you mean MATCH\?"),
        ("```cypher\nMATCH (n) RETURN n", r"^This name in backticks is not closed\. \(line 1, column 1\)$"),
        ("RETURN 1; RETURN 2", r"^Only one statement is allowed.*\(line 1, column 9\)$"),
        ("RETURN (1", r"^1 open bracket is not closed\. \(line 1, column 10\)$"),
        ("RETURN 1)", r"^This \) closes nothing\. \(line 1, column 9\)$"),
        (
            "CALL apoc.load.json('x')",
            r"^CALL apoc\.load\.json is not known to be read-only\. Known procedures: .*db\.labels",
        ),
        (
            "RETURN apoc.text.join(['a'], '')",
            r"^The function apoc\.text\.join is not known to be read-only\. \(line 1, col",
        ),
        (
            "RETURN '\\u0027' + 1",
            r"^Some databases decode \\uXXXX before they parse a query\. For them: .*\(line 1, c",
        ),
        ("RETURN\u00a01", r"^The character U\+00A0 \(no-break space\) is not allowed here\. \(line 1, column 7\)$"),
        ("RETURN 'a", r"^This string is not closed\. \(line 1, column 8\)$"),
        ("  ", r"^The query is empty\. \(line 1, column 3\)$"),
    ],
)
def test_the_reason_names_the_word_and_the_place(query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        read_only(query)


def test_what_is_too_long_or_too_deep_is_large() -> None:
    for query in ("RETURN " + "1+" * CHARACTERS + "1", "RETURN " + "(" * (DEPTH + 1) + "1" + ")" * (DEPTH + 1)):
        with pytest.raises(QueryError) as caught:
            read_only(query)
        assert caught.value.kind == "large"


def test_a_semicolon_at_the_end_is_taken_away_and_nothing_moves() -> None:
    assert read_only("RETURN ';' AS x; // done") == "RETURN ';' AS x  // done"
    assert read_only("RETURN 1") == "RETURN 1"


WRITES = ["CREATE", "MERGE", "SET", "DELETE", "DETACH", "REMOVE", "DROP", "INSERT", "FOREACH", "LOAD", "USE", "COPY"]
words = st.sampled_from([*WRITES, "name", "n1", "größe", "_x", "Gene", "return", "match"])
texts = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["Cc", "Cs"]), max_size=12)


@st.composite
def cased(draw: st.DrawFn, word: str) -> str:
    """The word in any mixture of upper and lower case."""
    return "".join(draw(st.sampled_from([char.lower(), char.upper()])) for char in word)


@st.composite
def gaps(draw: st.DrawFn) -> str:
    """What stands between two words: at least one space, and comments that say anything on one line."""
    said = draw(texts).replace("*/", "").replace("/*", "").strip("*/").replace("\\", "")
    odd = any(char in said for char in "\x85\u2028\u2029")
    comment = draw(st.sampled_from(["", "" if odd else f"// {said} CREATE (n)\n", f"/* {said} DELETE n */ "]))
    return draw(st.sampled_from([" ", "\n", "\t", "\r\n", "  "])) + comment


@st.composite
def strings(draw: st.DrawFn) -> str:
    quote = draw(st.sampled_from(["'", '"']))
    text = draw(texts).replace("\\", "\\\\").replace(quote, "\\" + quote)
    return f"{quote}{text} SET n.x = 1{quote}"


@st.composite
def values(draw: st.DrawFn) -> str:
    """An expression that reads, with words that write where they are names."""
    word, text = draw(words), draw(strings())
    return draw(
        st.sampled_from(
            [
                f"n.{word}",
                f"n . {word}",
                text,
                f"`{word}`",
                "$x",
                f"{{{word}: {text}, other: [1, 2.5, NULL]}}",
                f"n:{word}|{draw(words)}",
                f"count({draw(strings())})",
                f"[y IN [1, 2] WHERE y > 1 | n.{word}]",
                f"CASE WHEN n.{word} IS NOT NULL THEN {text} ELSE 1e5 END",
                f"EXISTS {{ MATCH (n)-[:{word}]->(m) WHERE m.{word} = {text} }}",
                "1 .. 2".replace(" .. ", " + "),
            ]
        )
    )


@st.composite
def clauses(draw: st.DrawFn) -> list[str]:
    """The clauses of a query that reads, the last a RETURN."""
    label, value, alias = draw(words), draw(values()), draw(words)
    first = [f"MATCH (n:{label} {{{draw(words)}: {value}}})", "MATCH (n)", "OPTIONAL MATCH (n)", "UNWIND [1] AS n"]
    middle = [
        f"WITH n, {value} AS {alias}",
        f"WHERE {value} = {draw(values())}",
        f"MATCH (n)-[:{label}*1..3]->(m:{draw(words)})",
        "WITH n ORDER BY n.name DESC SKIP 1 LIMIT 5",
        "WITH *",
        "CALL { MATCH (k) RETURN k LIMIT 1 }",
        "CALL db.labels() YIELD label",
    ]
    return [
        draw(st.sampled_from(first)),
        *draw(st.lists(st.sampled_from(middle), max_size=3)),
        f"RETURN {value} AS {alias}",
    ]


@st.composite
def writes(draw: st.DrawFn) -> str:
    """A clause that writes, in any case, with anything between its words."""
    parts = draw(
        st.sampled_from(
            [
                ("CREATE", "(h:Hacked)"),
                ("MERGE", "(h:Hacked", "{x: 1})"),
                ("SET", "n.x = 1"),
                ("SET", "n:Hacked"),
                ("SET", "n += {x: 1}"),
                ("DELETE", "n"),
                ("DETACH", "DELETE", "n"),
                ("REMOVE", "n.x"),
                ("FOREACH", "(i IN [1] |", "SET", "n.x = 1)"),
                ("INSERT", "(:Hacked)"),
                ("LOAD", "CSV", "FROM 'x' AS line"),
                ("CALL", "db.createLabel('Hacked')"),
                ("CALL", "{", "CREATE", "(h:Hacked) }"),
                ("UNION", "CREATE", "(h:Hacked)"),
            ]
        )
    )
    return "".join(draw(cased(part) if part.isupper() else st.just(part)) + draw(gaps()) for part in parts)


@given(st.data(), clauses())
def test_harmless_pieces_go_through_together(data: st.DataObject, pieces: list[str]) -> None:
    query = "".join(piece + data.draw(gaps()) for piece in pieces)
    assert read_only(query, ("x",)) == query


@given(st.data(), clauses(), writes())
def test_a_write_among_them_is_refused_wherever_it_stands(data: st.DataObject, pieces: list[str], write: str) -> None:
    at = data.draw(st.integers(0, len(pieces)))
    query = "".join(piece + data.draw(gaps()) for piece in (*pieces[:at], write, *pieces[at:]))
    with pytest.raises(QueryError) as caught:
        read_only(query, ("x",))
    assert caught.value.kind == "refused" or at == 0  # a query that begins with UNION is none
    start = len("".join(query.partition(write)[0]))
    line, column = query[:start].count("\n") + 1, start - (query[:start].rfind("\n") + 1) + 1
    assert caught.value.line is not None
    assert caught.value.column is not None
    assert (caught.value.line, caught.value.column) >= (line, column)


@given(st.text(max_size=60))
def test_any_text_is_let_through_or_refused_by_a_query_error(text: str) -> None:
    with contextlib.suppress(QueryError):
        assert read_only(text).strip()


def test_a_procedure_that_the_project_names_is_believed_and_no_other() -> None:
    named, other = (
        "CALL apoc.meta.schema() YIELD value RETURN value",
        "CALL apoc.cypher.runWrite('x') YIELD value RETURN value",
    )
    assert read_only(named, (), ["apoc.meta.schema"]) == named
    assert read_only("RETURN apoc.meta.schema() AS x", (), ["apoc.meta.schema"])
    for query in (named, other):
        with pytest.raises(QueryError, match="not known to be read-only"):
            read_only(query)
    with pytest.raises(QueryError, match=r"apoc\.meta\.schema, catalog_version"):
        read_only(other, (), ["apoc.meta.schema"])
