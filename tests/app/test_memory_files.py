"""Banks as files: our export comes back as it was, foreign ones become lessons, broken ones are refused whole."""

from __future__ import annotations

import asyncio
import json
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mulligan.app.config import Config
from mulligan.app.memory import export, import_file
from mulligan.bank.exchange.importing import archives_from_json, archives_to_json, prepared, read_bank_file
from mulligan.core.errors import InvalidInput
from mulligan.core.lesson_history import Account, Archive, Link, Receipt, TaskOutcome, Version, Worth
from mulligan.core.records import Lesson, Origin
from mulligan.core.worth import Tally

WORDS = Config(values={"memory": {"embedder": "none"}})
"""Without an embedder: lessons are found by their words."""

texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")), max_size=30)
said = texts.filter(lambda text: bool(text.strip()))
times = st.floats(1.0, 4e9).map(lambda at: round(at, 3))
jsons = st.recursive(st.none() | st.booleans() | st.integers(-(2**40), 2**40) | texts, st.lists, max_leaves=4)


@st.composite
def lessons(draw: st.DrawFn, agent: str, id: str) -> Lesson:
    state: Any = draw(st.sampled_from(["active", "retired", "superseded", "quarantined"]))
    nature: Any = draw(st.sampled_from(["strategy", "fact"]))
    outcome: Any = draw(st.sampled_from(["success", "failure"]))
    uses = draw(st.integers(0, 9))
    return Lesson(
        id,
        draw(said),
        draw(said),
        outcome,
        description=draw(texts),
        agent_id=agent,
        query=draw(texts),
        experience=draw(texts),
        origin=Origin("extracted", draw(texts), draw(st.none() | st.integers(1, 9)), (1, 2), (), draw(texts)),
        confidence=draw(st.floats(0, 1)),
        created=draw(times),
        last_used=draw(times) if uses else None,
        uses=uses,
        support=draw(st.integers(1, 5)),
        tags=tuple(draw(st.lists(said, max_size=2))),
        kind=draw(texts),
        context=draw(st.dictionaries(texts, jsons, max_size=2)),
        state=state,
        superseded_by="elsewhere" if state == "superseded" else None,
        nature=nature,
        project=draw(texts),
        confirmed=draw(st.booleans()),
        to_check=draw(texts),
        rests_on=tuple(draw(st.lists(texts, max_size=2))),
        pinned=draw(st.booleans()),
    )


tallies = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=6).map(
    lambda outcomes: reduce(
        lambda tally, one: tally.with_outcome(one[0]).with_draw(one[0], withheld=one[1], share=0.3), outcomes, Tally()
    )
)


@st.composite
def archives(draw: st.DrawFn, agent: str) -> Archive:
    """As a bank would hold it: its texts have been through the screening."""
    count = draw(st.integers(0, 4))
    drawn = [draw(lessons(agent, f"{agent}{n}")) for n in range(count)]
    archive, _ = prepared(Archive(agent, tuple(drawn)), quarantine=False)
    history = {
        lesson.id: (
            Version(draw(times), "added", replace(lesson, title=lesson.title[:1] + "x", state="active")),
            Version(draw(times), "used", None, {"receipt": "r"}),
            Version(draw(times), "edited", lesson, draw(jsons)),
        )
        for lesson in archive.lessons
    }
    links = (Link(f"{agent}0", f"{agent}1", 0.91, "e"),) if count > 1 else ()
    outcomes = tuple(TaskOutcome("", success) for success in draw(st.lists(st.booleans(), max_size=1)))
    receipt = Receipt(f"r{agent}", agent, draw(times), draw(texts), {f"{agent}0": 0.5}, 2, outcomes)
    receipt = replace(receipt, withheld={f"{agent}1": 0.4}, drawn={f"{agent}0": 0.3, f"{agent}1": 0.3})
    accounts = [
        Account(f"e{n}", draw(texts), at, draw(texts), draw(st.none() | st.booleans()))
        for n, at in enumerate(sorted(draw(st.lists(times, max_size=3, unique=True))))
    ]
    worth = [Worth(agent, one.id, one.state, draw(tallies), draw(times)) for one in archive.lessons[:2]]
    worth = [Worth(agent, "", "", draw(tallies)), *worth] if worth else []
    receipts = (receipt,) if count else ()
    return Archive(agent, archive.lessons, history, links, receipts, tuple(accounts), tuple(worth))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the bank of a test is; nothing is there yet."""
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "mulligan.db"


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(a=archives("a"), b=archives(""), data=st.data())
def test_an_export_comes_back_as_it_was(tmp_path: Path, a: Archive, b: Archive, data: Any) -> None:
    several = [archive for archive in (b, a) if archive.lessons or archive.accounts]
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MULLIGAN_HOME", folder)
        file = Path(folder, "bank.json")
        file.write_text(json.dumps(archives_to_json(several)), encoding="utf-8")
        assert list(read_bank_file(file).archives) == several

        taken = asyncio.run(import_file(file, config=WORDS))
        assert (len(taken.lessons), taken.known) == (sum(len(one.lessons) for one in several), 0)
        again = asyncio.run(export(None, config=WORDS))
        assert archives_from_json(again) == tuple(several)

        assert asyncio.run(import_file(file, config=WORDS)).lessons == ()  # a second time changes nothing
        assert asyncio.run(export(None, config=WORDS)) == again
        if several:
            one = data.draw(st.sampled_from(several))
            assert archives_from_json(asyncio.run(export(one.agent_id, config=WORDS))) == (one,)


LESSON: dict[str, Any] = {"id": "l1", "title": "T", "content": "C", "outcome": "success"}


def export_of(**changes: Any) -> dict[str, Any]:
    return {"mulligan": "0.1.0", "schema": 1, "agents": [{"agent_id": "", "lessons": [LESSON], **changes}]}


BROKEN: list[tuple[str, str]] = [
    ("", "is empty"),
    ("{", ":1: this is not JSON"),
    ('{\n "agents": [\n', ":3: this is not JSON: Expecting value (column 1). The file seems to be cut off."),
    ('{"a": NaN}', "NaN is not a JSON number"),
    ('{"a": 1e999}', "1e999 is not a JSON number"),
    ("[" * 100_000, "cannot be read"),
    ("[]", "not a lesson file in a known format"),
    ('{"embeddings": {}}', "specify the memories.json next to it"),
    ('{"episodes": []}', "an export of runs, not of lessons"),
    ('{"agents": []}', "schema: the record version is missing"),
    ('{"agents": [], "schema": 99}', "Upgrade Mulligan"),
    ('{"agents": [{"lessons": 1}], "schema": 1}', "agents.0.lessons: must be a list"),
    (json.dumps(export_of(lessons=[{**LESSON, "title": 3}])), "agents.0.lessons.0.title: must be a string, not int 3"),
    (json.dumps(export_of(lessons=[{**LESSON, "title": " "}])), "agents.0.lessons.0: a lesson needs a title"),
    (
        json.dumps(export_of(lessons=[{**LESSON, "confidence": 2}])),
        "agents.0.lessons.0: confidence must be from 0 to 1",
    ),
    (
        json.dumps(export_of(lessons=[{**LESSON, "agent_id": "b"}])),
        "agents.0.lessons.0: it belongs to another agent, 'b'",
    ),
    (json.dumps(export_of(lessons=[LESSON, LESSON])), "agents.0.lessons.1: the id l1 appears twice"),
    (json.dumps(export_of(lessons=[{**LESSON, "id": ""}])), "agents.0.lessons.0: it has no id"),
    (json.dumps(export_of(lessons=[{"id": "x"}])), "agents.0.lessons.0.title: is missing"),
    (json.dumps(export_of(history={"x": []})), "agents.0.history.x: this lesson is not in the file"),
    (
        json.dumps(export_of(history={"l1": [{"at": 1, "change": "added", "lesson": {**LESSON, "id": "l2"}}]})),
        "agents.0.history.l1.0: it is about another lesson",
    ),
    (
        json.dumps(export_of(links=[{"a": "l1", "b": "l2", "similarity": 1, "embedder": "e"}])),
        "agents.0.links.0: it links to a lesson that is not in the file",
    ),
    (
        json.dumps(export_of(receipts=[{"id": "r", "agent_id": "b", "at": 1, "query": "q"}])),
        "agents.0.receipts.0: it belongs to another agent",
    ),
    (
        json.dumps(export_of(accounts=[{"id": "e", "project": "p", "at": 1, "text": "t"}] * 2)),
        "agents.0.accounts.1: the account of the episode e appears twice",
    ),
    (
        json.dumps(export_of(worth=[{"agent_id": "", "id": "l2", "state": "active", "tally": {}}])),
        "agents.0.worth.0: it belongs to a lesson that is not in the file",
    ),
    (json.dumps({**export_of(), "agents": export_of()["agents"] * 2}), "agents.1.agent_id: '' appears twice"),
    ('{"memories": 1}', "memories must be a list, not 1"),
    ('{"memories": [1]}', "memories.0 must be an object, not 1"),
    ('{"memories": [{}]}', "memories.0.memory_id is missing"),
    ('{"memories": [{"memory_id": "m", "title": 1}]}', "memories.0.title must be a string, not 1"),
    (
        '{"memories": [{"memory_id": "m", "title": "t", "content": "c", "timestamp": "soon"}]}',
        "memories.0.timestamp: 'soon' is not a time",
    ),
    ('{"memories": [{"memory_id": "m", "title": "t", "content": "c", "success": "yes"}]}', "must be true or false"),
    ('{"type": "entity", "name": "a"}\n{"type": "entity"', ":2: this is not JSON"),
    (
        '{"type": "entity", "name": "a"}\n\n{"type": "thing"}',
        ':3: "type" must be "entity" or "relation", not \'thing\'',
    ),
    ('{"type": "entity", "name": "a", "observations": [1]}', ":1.observations.0 must be a string"),
    ('{"type": "relation", "from": "a"}', ":1.relationType is missing"),
]


@pytest.mark.parametrize(("text", "says"), BROKEN)
def test_a_broken_file_is_refused_whole_and_says_where(tmp_path: Path, home: Path, text: str, says: str) -> None:
    file = tmp_path / "bank.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        asyncio.run(import_file(file, config=WORDS))
    assert says in str(refused.value)
    assert str(refused.value).startswith(str(file))
    assert not home.exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=60), jsons.map(lambda value: json.dumps({"memories": value}).encode())))
def test_no_file_brings_it_down(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "any").write_bytes(content)
    with suppress(InvalidInput):
        assert read_bank_file(tmp_path / "any").format


def test_a_lesson_that_its_history_does_not_end_with_is_as_the_file_says(tmp_path: Path) -> None:
    """Somebody has edited the file by hand: the lesson counts, and its history says that there is another step."""
    version = {"at": 5.0, "change": "added", "lesson": {**LESSON, "title": "Before"}}
    file = tmp_path / "bank.json"
    file.write_text(json.dumps(export_of(history={"l1": [version]})), encoding="utf-8")
    asyncio.run(import_file(file, config=WORDS))
    (archive,) = archives_from_json(asyncio.run(export(config=WORDS)))
    assert [lesson.title for lesson in archive.lessons] == ["T"]
    assert [one.lesson and one.lesson.title for one in archive.history["l1"]] == ["Before", "T"]
