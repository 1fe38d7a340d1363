"""The reference's file of results: read whatever its age, written as it is there."""

from __future__ import annotations

import json

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.bench.alfworld import _env_results as env_results
from mulligan.bench.alfworld._env_results import EnvResult
from mulligan.core.errors import InvalidInput

RESULTS = st.lists(
    st.builds(EnvResult, st.text(min_size=1), st.lists(st.text()).map(tuple), st.booleans(), st.booleans()),
    unique_by=lambda each: each.name,
)


@given(RESULTS)
def test_what_is_written_is_read(results: list[EnvResult]) -> None:
    assert env_results.read(env_results.rendered(results), "here") == results


@given(
    st.text() | st.recursive(st.none() | st.booleans() | st.text(), st.lists).filter(lambda v: v != []).map(json.dumps)
)
def test_anything_else_is_reported(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"file\.json"):
        env_results.read(text, "file.json")


def test_published_files_have_no_skip() -> None:
    text = '[{"name": "env_0", "memory": [" Try the desk."], "is_success": false}]'
    assert env_results.read(text, "here") == [EnvResult("env_0", (" Try the desk.",))]


@each_row(
    ("text", "said"),
    [
        ("{}", "list of environments"),
        ("[1]", "entry 1 must be an object"),
        ('[{"memory": []}]', "entry 1 has no name"),
        ('[{"name": "env_0", "memory": "a"}]', "memory must be"),
        ('[{"name": "env_0", "skip": 1}]', "true or false"),
        ('[{"name": "a"}, {"name": "a"}]', "'a' twice"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        env_results.read(text, "here")
