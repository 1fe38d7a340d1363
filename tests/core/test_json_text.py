"""JSON that is changed as text: what was there stays as it was written."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.text.json_text import add, loads, remove

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "model": VALUES,
        "hooks": st.dictionaries(st.sampled_from(["Stop", "Start", "Ünd"]), st.lists(VALUES, max_size=3), max_size=3),
        "zuletzt": VALUES,
    },
)
INDENTS: st.SearchStrategy[Any] = st.sampled_from([None, 1, 2, 4, "\t"])


@given(SETTINGS, INDENTS, st.booleans(), VALUES, st.sampled_from(["\n", "\r\n"]))
def test_what_is_added_is_there_and_what_is_removed_is_gone(
    settings: Any, indent: Any, ascii: bool, value: Any, end: str
) -> None:
    text = json.dumps(settings, indent=indent, ensure_ascii=ascii).replace("\n", end) + end
    longer = add(text, ["hooks", "Stop"], value)
    expected = json.loads(text)
    expected.setdefault("hooks", {}).setdefault("Stop", []).append(value)
    assert json.loads(longer) == expected
    if end == "\r\n":
        assert "\n" not in longer.replace("\r\n", ""), "lines end as those around"
    place = len(expected["hooks"]["Stop"]) - 1
    shorter = remove(longer, ["hooks", "Stop", place])
    del expected["hooks"]["Stop"][place]
    assert json.loads(shorter) == expected
    if place:
        assert shorter == text, "what was added to a list leaves nothing behind"


def test_the_text_around_stays_as_it_was_written() -> None:
    text = '{ "a" :1,\n\t"hooks": {\n\t\t"Stop":[ {"b" : [1,2]} ],\n\t\t"End": [\n\t\t\t3\n\t\t]\n\t}\n}'
    text = add(add(text, ["hooks", "Stop"], {"c": []}), ["hooks", "End"], {"d": 4})
    assert text == (
        '{ "a" :1,\n\t"hooks": {\n\t\t"Stop":[ {"b" : [1,2]}, {"c": []} ],\n'
        '\t\t"End": [\n\t\t\t3,\n\t\t\t{\n\t\t\t\t"d": 4\n\t\t\t}\n\t\t]\n\t}\n}'
    )


@pytest.mark.parametrize("place", [0, 1, 2])
def test_each_member_of_a_list_can_go(place: int) -> None:
    kept = [value for value in (1, 2, 3) if value != place + 1]
    assert json.loads(remove('{"a": [1,\n 2, 3 ]}', ["a", place])) == {"a": kept}


def test_of_two_members_of_one_name_the_last_counts_as_for_any_reader() -> None:
    assert json.loads(add('{"a": [1], "a": [2]}', ["a"], 3)) == {"a": [2, 3]}


COMMENTS = st.sampled_from(["", "// a, {note}\n", '/* a " note */', " \n\t"])


@st.composite
def commented(draw: st.DrawFn) -> tuple[str, Any]:
    """Settings with comments between any two tokens and commas behind last members, and what they mean."""

    def written(value: Any) -> str:
        gap = lambda: draw(COMMENTS)  # noqa: E731
        if not isinstance(value, list | dict) or not value:
            return f"{gap()}{json.dumps(value)}{gap()}"
        parts = (
            [f"{gap()}{json.dumps(key)}{gap()}:{written(one)}" for key, one in cast(dict[str, Any], value).items()]
            if isinstance(value, dict)
            else [written(one) for one in cast(list[Any], value)]
        )
        ends = "{}" if isinstance(value, dict) else "[]"
        return f"{gap()}{ends[0]}{','.join(parts)}{draw(st.sampled_from(['', ',']))}{gap()}{ends[1]}{gap()}"

    value = draw(SETTINGS)
    return draw(st.sampled_from(["", "\ufeff"])) + written(value), value


def notes(text: str) -> int:
    return text.count("{note}") + text.count('" note */')


@given(commented(), VALUES)
def test_comments_stay_where_something_is_added_and_removed(both: tuple[str, Any], value: Any) -> None:
    text, settings = both
    assert loads(text) == settings
    longer = add(text, ["hooks", "Stop"], value)
    expected = json.loads(json.dumps(settings))
    expected.setdefault("hooks", {}).setdefault("Stop", []).append(value)
    assert loads(longer) == expected
    assert notes(longer) >= notes(text)
    place = len(expected["hooks"]["Stop"]) - 1
    shorter = remove(longer, ["hooks", "Stop", place])
    expected["hooks"]["Stop"].pop()
    assert loads(shorter) == expected
    assert notes(shorter) >= notes(text)


def test_a_comment_stays_with_its_line() -> None:
    text = '{\n  // mine\n  "a": 1, // one\n  "hooks": {\n    "Stop": [\n      {"x": 1}, // first\n    ],\n  },\n}\n'
    longer = add(text, ["hooks", "Stop"], {"c": 1})
    assert '{"x": 1}, // first\n      {\n        "c": 1\n      },\n    ],' in longer
    assert remove(longer, ["hooks", "Stop", 1]) == text
