"""Records survive JSON, migration and a real store; what does not fit is refused with its place."""

import asyncio
import json
import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from each_row import each_row
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mulligan.core.codec import SCHEMA, from_json, json_text, migrate, record_text, to_json
from mulligan.core.episode import (
    Acted,
    Evaluated,
    Event,
    Move,
    Rated,
    Recalled,
    Reflected,
    Revised,
    Stopped,
    advance,
    due,
)
from mulligan.core.errors import InvalidInput
from mulligan.core.limits import Limits
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import (
    Attempt,
    Case,
    Episode,
    Feedback,
    Image,
    Json,
    Outcome,
    Past,
    Reflection,
    Stop,
    Task,
    Trial,
    Usage,
)
from mulligan.store.sqlite import SqliteStore

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
TEXT = st.text(max_size=12)
NUMBER = st.floats(-1e9, 1e9)
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    str: TEXT,
    bool: st.booleans(),
    int: st.integers(),
    float: NUMBER,
    bytes: st.binary(max_size=8),
    NoneType: st.none(),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Arbitrary values of a field's type."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return st.builds(hint, **{f.name: values(hints[f.name]) for f in fields(hint)})  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, args))
    if origin is tuple:
        return st.lists(values(args[0]), max_size=2).map(tuple)
    assert issubclass(origin, Mapping)
    return st.dictionaries(TEXT, values(args[1]), max_size=2)


@st.composite
def lives(draw: st.DrawFn) -> tuple[Episode, list[Event]]:
    """An episode as it begins, and events that it can take."""
    episode: Episode = draw(values(Episode))
    episode = begun = replace(episode, id="e", trials=(), recall=None, stop=None, seconds=0.0, lost=Usage())
    happened: list[Event] = []
    for _ in range(draw(st.integers(0, 7))):
        if episode.trials and draw(st.booleans()):
            number = episode.trials[-1].number
            remark: Event = draw(values(Rated) | values(Revised))
            if isinstance(remark, Rated):
                remark = replace(remark, rating=replace(remark.rating, trial=number))
            else:
                remark = replace(remark, trial=number)
            happened.append(remark)
            episode = advance(episode, remark)
        move = due(episode, Limits(trials=99, identical=None))
        if not isinstance(move, Move):
            break
        kind = {"recall": Recalled, "act": Acted, "evaluate": Evaluated, "reflect": Reflected}[move.kind]
        event: Event = draw(values(kind) | values(Stopped).filter(lambda stopped: stopped.stop.reason != "solved"))
        if not isinstance(event, Recalled | Stopped):
            event = replace(event, trial=move.trial)
        if isinstance(event, Acted) and episode.plan.expansion is not None:
            event = replace(event, parent=move.parent)
        happened.append(event)
        episode = advance(episode, event)
    return begun, happened


WHOLE = [Episode, Question, Answer, Sampling, Past, Case]


@each_row("cls", WHOLE)
def test_a_record_survives_writing_and_reading(cls: type) -> None:
    @settings(suppress_health_check=SLOW)
    @given(values(cls))
    def survives(record: Any) -> None:
        assert from_json(cls, json.loads(record_text(record))) == record

    survives()


@settings(suppress_health_check=SLOW)
@given(values(Event))
def test_an_event_survives_writing_and_reading(event: Event) -> None:
    written = json.loads(record_text(event))
    assert written["event"] == type(event).__name__.lower()
    assert from_json(Event, written) == event


@pytest.mark.slow
@settings(suppress_health_check=SLOW)
@given(lives())
def test_an_episode_survives_a_real_store_and_is_the_fold_of_its_events(life: tuple[Episode, list[Event]]) -> None:
    begun, happened = life
    expected = begun
    for event in happened:
        expected = advance(expected, event)

    async def play(file: Path) -> None:
        store = SqliteStore(file)
        await store.create(begun)
        lease = await store.acquire("e", "me", 60)
        for seq, event in enumerate(happened):
            await store.append(lease, seq, event)
        await store.close()
        again = SqliteStore(file)
        assert await again.load("e") == expected
        assert list(await again.events("e")) == happened
        await again.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder) / "m.db"))


@pytest.mark.slow
@settings(suppress_health_check=SLOW)
@given(values(Episode))
def test_migration_of_what_this_version_wrote_changes_nothing(episode: Episode) -> None:
    written = to_json(episode)
    assert migrate("Episode", written, SCHEMA) == written
    assert from_json(Episode, migrate("Episode", json.loads(json_text(written)), SCHEMA)) == episode


def test_migrations_run_in_order_from_the_version_that_wrote() -> None:
    def two(kind: str, data: Json) -> Json:
        return {**data, "kind": kind, "order": [2]}

    def three(kind: str, data: Json) -> Json:
        return {**data, "order": [*data.get("order", []), 3]}

    assert migrate("Episode", {"id": "a"}, 1, (two, three)) == {"id": "a", "kind": "Episode", "order": [2, 3]}
    assert migrate("Episode", {"id": "a"}, 2, (two, three)) == {"id": "a", "order": [3]}
    assert migrate("Episode", {"id": "a"}, 3, (two, three)) == {"id": "a"}


@pytest.mark.parametrize("schema", [0, SCHEMA + 1])
def test_another_versions_record_is_refused(schema: int) -> None:
    with pytest.raises(InvalidInput, match=f"record version {schema};.*Upgrade Mulligan"):
        from_json(Episode, {"id": "a"}, schema)


def test_missing_keys_take_defaults_and_unknown_keys_are_passed_over() -> None:
    written = {"id": "a", "task": {"prompt": "p"}, "from_the_future": 1}
    assert from_json(Episode, written) == Episode("a", Task("p"))


def test_defaults_are_written_so_that_old_records_keep_their_meaning() -> None:
    assert to_json(Feedback(None)) == {
        "passed": None,
        "text": "",
        "score": None,
        "source": "",
        "notes": [],
        "usage": {"input_tokens": 0, "output_tokens": 0, "calls": 0, "cost": 0.0},
        "evidence": None,
        "images": [],
    }


def test_bytes_are_base64_and_events_carry_their_name() -> None:
    assert to_json(Image("image/png", b"\x00\xff")) == {"media_type": "image/png", "data": "AP8="}
    assert to_json(Reflected(2, None)) == {"event": "reflected", "trial": 2, "reflection": None, "seconds": 0.0}


def test_a_lone_surrogate_and_a_nul_survive() -> None:
    reflection = Reflection("a\udcffb\x00c")
    text = record_text(reflection)
    assert text.isascii()
    assert from_json(Reflection, json.loads(text)) == reflection


@each_row(
    ("record", "said"),
    [
        (Outcome(float("nan")), r"Outcome\.reward: nan is not a JSON number; use None for an unknown value"),
        (Outcome(float("inf")), r"Outcome\.reward: inf"),
        (Feedback(1), r"Feedback\.passed: must be true or false, not int 1"),  # pyright: ignore[reportArgumentType]
        (Task("p", {"a": [1, {"b": (2,)}]}), r"Task\.inputs\.a\.1\.b: a tuple is not JSON; make it a list"),
        (Task("p", {"a": float("nan")}), r"Task\.inputs\.a: nan"),
        (Task("p", {"a": {1: 2}}), r"Task\.inputs\.a\.1: must be a string as a key, not int 1"),
        (Task("p", {"a": {"s": {1}}}), r"Task\.inputs\.a\.s: a set is not JSON"),
        (Stop("tired"), r"Stop\.reason: must be one of 'solved', .*, not str 'tired'"),  # pyright: ignore[reportArgumentType]
        (Reflection(None), r"Reflection\.text: must be a string, not NoneType None"),  # pyright: ignore[reportArgumentType]
        (Acted(1, Attempt("x", steps=["s"])), r"Acted\.attempt\.steps: must be a tuple"),  # pyright: ignore[reportArgumentType]
        (Trial(True, Attempt("x")), r"Trial\.number: must be an integer, not bool True"),
        (Outcome(10**400), r"Outcome\.reward: the number is too large"),
    ],
)
def test_what_has_no_place_in_a_record_is_refused_where_it_stands(record: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        to_json(record)


@each_row(
    ("data", "said"),
    [
        ({"event": "acted", "trial": 1}, r"Event\.attempt: is missing"),
        ({"event": "danced"}, r'Event: "event" must be one of acted, .*, not \'danced\''),
        ([], r'Event: "event" must be one of'),
        (
            {"event": "acted", "trial": 1, "attempt": {"output": 3}},
            r"Event\.attempt\.output: must be a string, not int 3",
        ),
        ({"event": "acted", "trial": 1, "attempt": {"output": "", "steps": {}}}, r"steps: must be a list"),
        ({"event": "acted", "trial": 1, "attempt": []}, r"Event\.attempt: must be an object \(Attempt\)"),
    ],
)
def test_what_is_not_an_event_is_refused_where_it_stands(data: Json, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        from_json(Event, data)


def test_broken_base64_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"Image\.data: is not base64"):
        from_json(Image, {"media_type": "image/png", "data": "%%"})


def test_text_of_a_json_value_is_strict_and_canonical() -> None:
    assert json_text({"b": [1, 2.5, None], "a": "é"}, canonical=True) == '{"a":"\\u00e9","b":[1,2.5,null]}'
    assert json_text({"b": 1, "a": 2}) == '{"b":1,"a":2}'
    with pytest.raises(InvalidInput, match=r"value\.a\.0: a bytes is not JSON"):
        json_text({"a": [b"x"]})


def test_endless_nesting_is_refused() -> None:
    nested: list[Json] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(InvalidInput, match="nested too deeply"):
        json_text(nested)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        to_json(Question((), schema=nested))


def test_a_field_without_a_json_form_is_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError, match="cannot be represented as JSON"):
        to_json(object())
