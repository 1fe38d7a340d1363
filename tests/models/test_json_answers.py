import json
from typing import Any

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.models.json_answers import parse

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)
PROSE = st.text(st.characters(exclude_characters="{}[]`<>", exclude_categories=["Cs"]))
OBJECT = {"type": "object"}


@given(VALUES)
def test_whole_json_is_itself(value: Any) -> None:
    assert parse(json.dumps(value)) == value


@given(OBJECTS, PROSE, PROSE)
def test_an_object_is_found_in_prose(value: dict[str, Any], before: str, after: str) -> None:
    assert parse(f"{before} {json.dumps(value)} {after}", OBJECT) == value


@given(OBJECTS, PROSE, st.sampled_from(["json", "JSON", ""]), st.integers(0, 4))
def test_an_object_is_found_in_a_fence(value: dict[str, Any], before: str, tongue: str, indent: int) -> None:
    body = json.dumps(value, indent=indent).replace("`", "\\u0060")
    assert parse(f"{before}\n```{tongue}\n{body}\n```\nThat is all.", OBJECT) == value


@given(OBJECTS)
def test_thoughts_before_the_answer_do_not_count(value: dict[str, Any]) -> None:
    assert parse('<think>{"passed": false} or not?</think>' + json.dumps(value), OBJECT) == value


@given(st.text())
def test_any_text_gives_json_or_a_value_error(text: str) -> None:
    try:
        value = parse(text)
    except ValueError:
        return
    assert parse(json.dumps(value, allow_nan=False)) == value


@each_row(
    ("text", "schema", "value"),
    [
        ('I use sets like {x} and then {"a": 1}', OBJECT, {"a": 1}),
        ('{"a": 1} but rather {"a": 2, "b": [3]}', OBJECT, {"a": 2, "b": [3]}),
        ('[1, 2] and {"a": 1}', OBJECT, {"a": 1}),
        ('{"text": "two\nlines"}', OBJECT, {"text": "two\nlines"}),
        ("true", {"type": "boolean"}, True),
        ("7", {"type": "integer"}, 7),
        ('{"a": 1}', {"anyOf": []}, {"a": 1}),
    ],
)
def test_what_is_taken(text: str, schema: Any, value: Any) -> None:
    assert parse(text, schema) == value


@each_row(
    ("text", "schema", "why"),
    [
        ("  ", OBJECT, "the answer is empty"),
        ("<think>hm</think>", OBJECT, "the answer is empty"),
        ("I cannot say.", OBJECT, "not valid JSON: Expecting value"),
        ('{"a": 1,', OBJECT, "not valid JSON"),
        ('{"a": NaN}', OBJECT, "NaN is not a JSON value"),
        ("[1]", OBJECT, "not of the type 'object'"),
        ('{"list": [1]}', {"type": "array"}, "not of the type 'array'"),
        ("true", {"type": "integer"}, "not of the type 'integer'"),
        ("[" * 100_000, None, "nested too deeply"),
    ],
)
def test_what_is_refused(text: str, schema: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text, schema)
