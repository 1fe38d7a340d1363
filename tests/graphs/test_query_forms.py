"""The forms of query that a question is shown: made of its own graph, they run and give what the question asks for."""

from typing import Any

import pytest

from mulligan.graphs.protocol import Graph, GraphSchema
from mulligan.graphs.query_forms import forms_of
from mulligan.graphs.question_checks import Asked
from mulligan.graphs.values import link_values


async def asked(library: Graph, question: str) -> Asked:
    schema = await library.schema()
    return Asked(question, schema, await link_values(library, schema, question, seconds=60))


@pytest.mark.parametrize(
    ("question", "kind", "right"),
    [
        ("Which authors wrote no books?", "What lacks it", ["Nobody"]),
        ("Which members have never borrowed Emma?", "What lacks it", ["Bob", "Cleo"]),
        ("How many authors wrote no books?", "What lacks it", [1]),
        ("Which authors are not of England?", "What is otherwise", ["Herbert", "Joyce", "Nobody", "Thoreau"]),
        ("Which books have a rating over 4.4?", "A comparison", ["Dune", "Emma"]),
        ("Which books are of a year between 1,850 and 1,950?", "A comparison", ["Ulysses", "Walden"]),
        ("Which members are older than 28?", "A comparison", ["Ann", "Bob"]),
        ("Which members borrowed a book for at most 7 days?", "A comparison", ["Ann", "Bob"]),
        ("Which members borrowed more than 1 book?", "A number of others", ["Ann"]),
        ("Which book has the highest rating?", "The first of an order", ["Dune"]),
        ("Which book has the lowest rating?", "The first of an order", ["Ulysses"]),
        ("Which member borrowed the most books?", "The first by a number of others", [2, "Ann"]),
    ],
)
async def test_a_form_gives_what_the_question_asks_for(
    ladybug_library: Graph, question: str, kind: str, right: list[Any]
) -> None:
    forms = dict(form.split(": ", 1) for form in forms_of(await asked(ladybug_library, question)))
    rows = (await ladybug_library.run(forms[kind])).rows
    assert sorted({value for row in rows for value in row.values()}, key=str) == right, forms


@pytest.mark.parametrize("question", ["Which books did Austen write?", "Is there anything without a name?", "1,900?"])
async def test_a_question_of_no_such_kind_is_shown_none(ladybug_library: Graph, question: str) -> None:
    assert forms_of(await asked(ladybug_library, question)) == []
    assert forms_of(Asked(question, GraphSchema())) == []
