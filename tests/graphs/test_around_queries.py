"""What stands around a right query, or in place of some of its characters, is left out; a valid query stays as it is."""

import html
import json

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.graphs.bare_query import LONGEST, bare_query

QUERY = "MATCH (b:Book {title: 'Emma'})<-[:WROTE]-(a:Author)\nWHERE a.name <> ''\nRETURN a.name AS name"


@each_row(
    "text",
    [
        f"```cypher\n{QUERY}\n```",
        f"Here's what finds it:\n```\n{QUERY}\n```\nIt isn't slow.",
        f"```cypher\nMATCH (b) RETURN b\n```\nBetter:\n```cypher\n{QUERY}\n```",
        f"```{QUERY}```",
        f"cypher\n{QUERY}",
        f"**Cypher query:**\n{QUERY}",
        f"Query: {QUERY}",
        f"{QUERY}<|im_end|>",
        f"{QUERY}</s>",
        f"{QUERY}<|eot_id|>\n",
        f"MATCH (b) DETACH DELETE b\n</think>\n{QUERY}",
        f"<thinking>DROP</thinking>```\n{QUERY}\n```<end_of_turn>",
        f"`{QUERY}`",
        f'"{QUERY}"',
        f"\u201c{QUERY}\u201d",
        f"\ufeff{QUERY}",
        QUERY.replace("<-", "&lt;-").replace("<>", "&lt;&gt;"),
        html.escape(QUERY),
        json.dumps({"query": QUERY}),
        json.dumps([{"cypher": QUERY, "reason": "It finds her."}]),
        f"```json\n{json.dumps({'query': QUERY})}\n```",
        json.dumps(QUERY),
        f"Use this query:\n\n{QUERY}",
        f"{QUERY}\n\nThis query finds the author.",
        f"{QUERY}\nThis query finds the author.",
        f"{QUERY}\n\n**Explanation:**\n- MATCH finds the book.",
        f"{QUERY}\n\n---\nNote: it is fast.",
        f"{QUERY}\n```",
        f"{QUERY}[/INST]",
        f"The query is: {QUERY}",
        f"Sure, here you go: {QUERY}",
        f"Cypher: `{QUERY}`",
        f"- {QUERY}",
        f"**{QUERY}**",
        f"~~~cypher\n{QUERY}\n~~~",
        f"Sure! {QUERY}",
        f"1. {QUERY}",
        f"> {QUERY}",
        f"neo4j$ {QUERY}",
        f"{QUERY}\n\n1. The query matches the book.",
        f"{QUERY}\nExplanation: It finds the author.",
        json.dumps({"Query": QUERY}),
        f"```json\n{{'query': \"{QUERY}\",}}\n```",
        f'{{query: "{QUERY}"}}',
        json.dumps(QUERY)[1:-1],
        json.dumps({"query": QUERY.replace("'Emma'", "\u2018Emma\u2019")}),
        QUERY.replace("'Emma'", "\u2018Emma\u2019"),
        QUERY.replace(" ", "\u00a0"),
        QUERY.replace("WHERE ", "WHERE\u202f"),
        QUERY.replace("RETURN", "\u200bRETURN"),
        QUERY.replace("]-(a", "]\u2013(a"),
        QUERY.replace("]-(a", "]\u2212(a"),
        f"<cypher>\n{QUERY}\n</cypher>",
        f"[CYPHER]{QUERY}[/CYPHER]",
        f"({QUERY})",
        f"\u00ab{QUERY}\u00bb",
        f"'''{QUERY}'''",
        f'query = """{QUERY}"""',
        f"$${QUERY}$$",
    ],
)
def test_the_query_is_taken_out(text: str) -> None:
    assert bare_query(text) == QUERY


@pytest.mark.parametrize("text", [f'session.run("{QUERY}")', f"one that says {QUERY}"])
def test_the_last_line_of_a_query_is_not_taken_for_the_query(text: str) -> None:
    assert bare_query(text) == text


@pytest.mark.parametrize("comment", ["/* up to </think> */ ", "// [/THINK]\n"])
def test_a_comment_about_thoughts_stays(comment: str) -> None:
    assert bare_query(comment + QUERY) == comment + QUERY
    assert bare_query(f"MATCH (b) DELETE b\n</think>{QUERY}") == QUERY


def test_what_is_in_a_string_stays_where_characters_around_it_become_plain() -> None:
    written = "MATCH (b)\u00a0WHERE b.t IN [\u201ca \u2014 b\u201d, 'c\u00a0&amp; \u2013 d'] RETURN b.t"
    assert bare_query(written) == "MATCH (b) WHERE b.t IN [\"a \u2014 b\", 'c\u00a0&amp; \u2013 d'] RETURN b.t"


def test_words_behind_a_semicolon_are_left_out_and_a_second_statement_is_not() -> None:
    assert bare_query(f"{QUERY}; It finds the author.") == f"{QUERY};"
    two = f"{QUERY}; MATCH (b) DETACH DELETE b"
    assert bare_query(two) == two  # the guard refuses it, and has to see it


STRINGS = st.text(st.characters(exclude_characters="'\\", exclude_categories=["Cs", "Cc"])) | st.sampled_from(
    [
        "-&gt;",
        "\u00a0",
        "```cypher",
        "cypher\n",
        "</think>",
        "<think>a",
        "; It is. ",
        '{"query": 1}',
        "\u201cx\u201d",
        "a\n\nThis is it",
    ]
)


@given(
    STRINGS,
    st.sampled_from(["", ";", "\n", " \n", "; // It is.", " // It's; so"]),
    st.sampled_from(["", "// about </think>\n", "\n ", "// it's\n", '/* "a */ ']),
)
def test_a_valid_query_is_itself(value: str, end: str, begin: str) -> None:
    query = f"{begin}MATCH (b:Book)\n\nWHERE b.title = '{value}' AND b.n > 1\n\nRETURN b.title, `a\u00a0b`{end}"
    found = bare_query(query)
    assert found == query


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    found = bare_query(text)
    assert bare_query(found) == found


@pytest.mark.parametrize("text", ["I cannot say.", "MATCH (b RETURN b", "SELECT * FROM books", "", "Use it; call me."])
def test_a_text_without_a_query_is_itself(text: str) -> None:
    assert bare_query(text) == text


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    "unit", ["'\\", "`", "```x ", "&gt;", "MATCH ", "MATCH;", '"', "a ", "/*", "{", "cypher:", "\n\n", "\u2018"]
)
def test_the_longest_text_is_read(unit: str) -> None:
    for begin in ("", "MATCH "):
        text = begin + unit * (LONGEST // len(unit) - 1)
        assert len(bare_query(text)) <= len(text)
