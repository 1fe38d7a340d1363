"""JSON with a fault that has one reading is read; what has several, or was cut, is not; valid JSON stays as it is."""

import json
from typing import Any

import pytest
from each_row import each_row
from hypothesis import assume, given
from hypothesis import strategies as st

from mulligan.models import near_json
from mulligan.models.json_answers import UNQUOTED, UNWRAPPED, parse, read, read_object
from mulligan.models.tool_answers import read_call

OBJECT = {"type": "object"}
VERDICT = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["passed", "why"],
    "additionalProperties": False,
}
TEXTS = st.text() | st.sampled_from(["True", "a, }", "// no", "{'a': None}", "</think>", "\\d", "\u201cx\u201d"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.integers(0, 3), st.booleans())
def test_valid_json_is_not_repaired(value: Any, indent: int, is_ascii: bool) -> None:
    text = json.dumps(value, indent=indent or None, ensure_ascii=is_ascii)
    found = read(text)
    assert found.is_whole
    assert found.repairs == ()
    assert parse(text) == json.loads(text.encode("utf-8", "replace"))


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3))
def test_a_python_dict_is_read_as_python_reads_it(value: dict[str, Any]) -> None:
    assume("\\x" not in repr(value) or '"' not in repr(value))  # in double quotes it is JSON, which has no such escape
    assert parse(repr(value), OBJECT) == json.loads(json.dumps(value))


@each_row(
    ("text", "value", "repairs"),
    [
        ('{"passed": true,}', {"passed": True}, [near_json.COMMA]),
        ('{"a": [1, 2,],}', {"a": [1, 2]}, [near_json.COMMA]),
        ("{'passed': False, 'why': None}", {"passed": False, "why": None}, [near_json.QUOTES, near_json.WORDS]),
        (r'{"why": "use \d+ in C:\data"}', {"why": r"use \d+ in C:\data"}, [near_json.ESCAPES]),
        (r'{"why": "it isn\'t \"so\""}', {"why": 'it isn\'t "so"'}, [near_json.ESCAPES]),
        (r"{'why': 'it isn\'t', 'x': '\u00e9\ud83d\ude00'}", {"why": "it isn't", "x": "é😀"}, [near_json.QUOTES]),
        ('{"a": 1, // one\n "b": 2 /* two */}', {"a": 1, "b": 2}, [near_json.COMMENTS]),
        ("{passed: true}", {"passed": True}, [near_json.KEYS]),
        ('{\u201cwhy\u201d: \u201csay "hi"\u201d}', {"why": 'say "hi"'}, [near_json.QUOTES]),
        ('{\u00a0"a":\u00a01}', {"a": 1}, [near_json.SPACES]),
        ('[{"passed": true}]', {"passed": True}, [UNWRAPPED]),
        ('"{\\"passed\\": true}"', {"passed": True}, [UNQUOTED]),
        ("Here:\n```json\n{'a': 1,}\n```\nDone.", {"a": 1}, [near_json.QUOTES, near_json.COMMA]),
        ('{"a": TRUE, "b": NULL}', {"a": True, "b": None}, [near_json.WORDS]),
        ('{\\"a\\": \\"say \\\\\\"no\\\\\\"\\"}', {"a": 'say "no"'}, [UNQUOTED]),
        ('```json\n{\n  \\"a\\": 1}\n```', {"a": 1}, [UNQUOTED]),
        ('json\n{"a": 1}', {"a": 1}, []),
        ('\ufeff{"a": 1}', {"a": 1}, []),
        ('{{"a": 1}}', {"a": 1}, []),
    ],
)
def test_what_has_one_reading_is_read_and_said(text: str, value: Any, repairs: list[str]) -> None:
    found = read(text, OBJECT)
    assert found.value == value
    assert list(found.repairs) == repairs


@each_row(
    "text",
    [
        '{"a": 1,, "b": 2}',
        '{"a": 1 "b": 2}',
        '{"a": "x" "y"}',
        '{"a": 1',
        '{"a": "half a te',
        "{'a': 'don't'}",
        '{"a": NaN}',
        '{"a": undefined}',
        '{"a": 007}',
        "{x}",
        "{,}",
        r"{'a': 'C:\a'}",
        '{"a": {"a": 1}, "b": "half a te',
        '{"a": 1e999,}',
        '[{"a": 1}, {"a": 2}]',
    ],
)
def test_what_has_several_readings_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not valid JSON"):
        read(text, {**OBJECT, "required": ["a"]}) if "[" not in text else read(text, OBJECT)


DRAFT = '{"passed": true, "why": "It is long, and all seems to be in order here."}'


@each_row(
    "text",
    [
        f'{DRAFT}\n</think>\n{{"passed": false, "why": "no"}}',
        f'<thinking>{DRAFT}</thinking>{{"passed": false, "why": "no"}}',
        f'Draft: {DRAFT}\nRather: {{"passed": false, "why": "no"}}',
        f'```json\n{DRAFT}\n```\nRather:\n```json\n{{"passed": false, "why": "no"}}\n```',
        '{"passed": false, "why": "no"}\nOne that passes would be {"passed": true}.',
        '{"passed": false, "why": "no"} {"passed": "true", "why": "x"}',
        "{'passed': False, 'why': 'no'} See {note: 1} and [1].",
    ],
)
def test_the_last_value_that_fits_the_schema_counts(text: str) -> None:
    assert parse(text, VERDICT) == {"passed": False, "why": "no"}


def test_without_a_value_that_fits_the_one_with_the_most_keys_counts() -> None:
    assert parse('{"passed": false} as {"x": 1}', VERDICT) == {"passed": False}


@pytest.mark.light_cases(3)
@pytest.mark.parametrize(
    "unit", ["{", "[", "\\", '{"a":', "{'a':", '"', '{"\\', "{a:[", "// ", "```", "``` ", "[1,", "{'"]
)
def test_a_megabyte_is_refused_as_well(unit: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        parse(unit * (1_000_000 // len(unit)), {**OBJECT, "required": ["a"]})


@given(st.dictionaries(TEXTS, VALUES, max_size=3), st.text())
def test_an_object_is_read_alone_or_not_at_all(value: dict[str, Any], around: str) -> None:
    text = json.dumps(value)
    assert read_object(f" {text}\n") == (json.loads(text.encode("utf-8", "replace")), (), True)
    assume(around.strip())
    with pytest.raises(ValueError, match=r"char|JSON|data"):
        read_object(f"{text} x{around}")


@pytest.mark.parametrize(
    ("text", "arguments", "repairs"),
    [
        ('{"tool": "look", "arguments": "{\'at\': 1}"}', {"at": 1}, [near_json.QUOTES]),
        ('{"tool": "look", "arguments": {"at": 1,},}', {"at": 1}, [near_json.COMMA]),
        ('{"tool": "look", "arguments": "{\'at\': "}', "{'at': ", []),
    ],
)
def test_the_arguments_of_a_call_in_words_are_repaired_too(text: str, arguments: Any, repairs: list[str]) -> None:
    call, reading = read_call(text)
    assert (call.arguments, list(reading.repairs)) == (arguments, repairs)
