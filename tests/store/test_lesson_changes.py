"""Changes that meet: each keeps what others changed, in every kind of store and by every way to edit."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lesson_kit import ADDRESSES, E1, E2, KINDS, entry, vectors

from mulligan import Bank
from mulligan.app.memory import open_bank
from mulligan.core.errors import InvalidInput, LessonChanged
from mulligan.core.lesson_store import LessonStore
from mulligan.core.records import Lesson
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.store import open_store


@pytest.fixture(params=KINDS)
async def both(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Bank, Bank]]:
    """Two handles on one bank."""
    banks = [
        open_bank("a", store=open_store(ADDRESSES[request.param](tmp_path)).memory, embedder=HashEmbedder())
        for _ in range(2)
    ]
    yield banks[0], banks[1]
    for bank in banks:
        await bank.close()


async def test_a_lesson_that_another_changed_is_not_written(store: LessonStore) -> None:
    await store.add("a", [entry("1")])
    (read,) = await store.get("a", ["1"])
    await store.change("a", replace(read, description="theirs"), "edited", before=read)
    with pytest.raises(LessonChanged, match="changed in the meantime"):
        await store.change("a", replace(read, content="mine"), "edited", before=read)
    (now,) = await store.get("a", ["1"])
    assert (now.description, now.content) == ("theirs", read.content)
    assert [version.change for version in await store.history("a", "1")] == ["added", "edited"]


async def test_what_the_store_counts_is_no_change(store: LessonStore) -> None:
    await store.add("a", [entry("1", "same")])
    (read,) = await store.get("a", ["1"])
    await store.add("a", [entry("2", "same")])
    await store.set_vectors("a", E2, {"1": vectors("1")})
    await store.change("a", replace(read, content="mine"), "edited", before=read)
    (now,) = await store.get("a", ["1"])
    assert (now.content, now.support) == ("mine", 2)


async def test_lessons_that_changed_while_they_were_merged_are_not_superseded(store: LessonStore) -> None:
    await store.add("a", [entry("1"), entry("2")])
    read = await store.get("a", ["1", "2"])
    await store.change("a", replace(read[1], content="the newer value"), "edited")
    with pytest.raises(LessonChanged):
        await store.merge("a", entry("3"), ["1", "2"], before=read)
    assert [one.state for one in await store.get("a", ["1", "2"])] == ["active", "active"]


async def test_vectors_of_a_text_that_changed_meanwhile_are_not_kept(store: LessonStore) -> None:
    await store.add("a", [entry("1", embedder=None), entry("2", embedder=None)])
    read = await store.unembedded("a", E1, 10)
    await store.change("a", replace(read[0], content="new"), "edited", entry=entry("1", "new", embedder=None))
    await store.set_vectors("a", E1, {one.id: vectors(one.id) for one in read}, before=read)
    assert [one.id for one in await store.unembedded("a", E1, 10)] == ["1"]


async def test_a_change_that_is_not_of_the_text_keeps_the_vectors(store: LessonStore) -> None:
    await store.add("a", [entry("1")])
    (read,) = await store.get("a", ["1"])
    same = replace(entry("1"), lesson=replace(read, kind="new kind"), terms=b"terms new kind", vectors={})
    await store.change("a", same.lesson, "edited", entry=same)
    (row,) = (await store.delta("a", E1)).rows
    assert (row.terms, row.vector, row.kind) == (b"terms new kind", vectors("1")["lesson"], "new kind")


@pytest.mark.parametrize(
    ("method", "given", "field", "value"),
    [
        ("edit", {"description": "new description"}, "description", "new description"),
        ("edit", {"tags": ["t"]}, "tags", ("t",)),
        ("edit", {"outcome": "failure"}, "outcome", "failure"),
        ("pin", {}, "pinned", True),
        ("retire", {}, "state", "retired"),
    ],
)
async def test_two_changes_at_once_both_stay(
    both: tuple[Bank, Bank], method: str, given: dict[str, Any], field: str, value: Any
) -> None:
    for n in range(3):
        lesson = await both[0].add(f"Lesson {n}", f"Content {n}", description="old")
        await asyncio.gather(both[0].edit(lesson.id, content=f"new {n}"), getattr(both[1], method)(lesson.id, **given))
        now = await both[0].get(lesson.id)
        assert (now.content, getattr(now, field)) == (f"new {n}", value)


async def test_ratings_and_tags_that_are_added_at_once_are_all_there(both: tuple[Bank, Bank]) -> None:
    lesson = await both[0].add("Lesson", "Content")

    def with_tag(tag: str) -> Callable[[Lesson], dict[str, Any]]:
        return lambda now: {"tags": [*now.tags, tag]}

    await asyncio.gather(
        *(bank.rate(lesson.id, n / 4, by=f"{n}") for n, bank in enumerate(both)),
        *(bank.edit(lesson.id, with_tag(f"tag {n}")) for n, bank in enumerate(both)),
    )
    now = await both[0].get(lesson.id)
    assert {rating.by for rating in now.ratings} == {"0", "1"}
    assert set(now.tags) == {"tag 0", "tag 1"}


async def test_of_two_that_retire_one_is_told_so_and_restoring_twice_is_refused(both: tuple[Bank, Bank]) -> None:
    lesson = await both[0].add("Lesson", "Content")
    for change in (Bank.retire, Bank.restore):
        done = await asyncio.gather(*(change(bank, lesson.id) for bank in both), return_exceptions=True)
        assert [isinstance(one, InvalidInput) for one in done].count(True) == 1


async def test_a_form_that_somebody_had_open_undoes_no_other_change(both: tuple[Bank, Bank]) -> None:
    read = await both[0].add("Lesson", "Content", description="old")
    await both[1].edit(read.id, content="theirs")
    with pytest.raises(LessonChanged, match=f"changed the content of lesson {read.id} since you started editing"):
        await both[0].edit(read.id, read=read, content="mine", description="mine")
    assert (await both[0].get(read.id)).description == "old"
    await both[0].edit(read.id, read=read, description="mine")
    now: Lesson = await both[0].get(read.id)
    assert (now.content, now.description) == ("theirs", "mine")
    await both[0].edit(read.id, read=read, content="theirs")  # the same: nothing is undone


async def test_an_edit_that_changes_nothing_leaves_no_line_in_the_history(both: tuple[Bank, Bank]) -> None:
    lesson = await both[0].add("Lesson", "Content")
    assert await both[0].edit(lesson.id, content="Content") == await both[0].get(lesson.id)
    assert [version.change for version in await both[0].history(lesson.id)] == ["added"]
