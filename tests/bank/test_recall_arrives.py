"""What a recall gives where nothing was set: the nearest lesson, little beside it, and word of what it holds back."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from banks import a_bank

from mulligan.core.codec import from_json, to_json
from mulligan.core.records import HeldBack, Recall

TALKS = Path(__file__).parents[2] / "studies" / "retrieval" / "data" / "young"
PAIRS = [line.split(" | ") for line in (TALKS / "languages.txt").read_text("utf-8").splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


async def test_the_first_lesson_is_found_by_a_query_that_shares_a_stem(file: Path) -> None:
    async with a_bank(file, embedder="none") as bank:
        lesson = await bank.add("Retry", "When an HTTP call times out, retry it with backoff, three times at most.")
        assert [one.id for one in (await bank.recall("my http call timed out, what to do")).lessons] == [lesson.id]
        silent = await bank.recall("which wine goes with grilled salmon")
        assert (silent.lessons, silent.filtered) == ((), 1)


async def test_a_query_whose_every_word_many_lessons_hold_is_answered(file: Path) -> None:
    async with a_bank(file, embedder="none") as bank:
        for n in range(30):
            await bank.add(f"Filler {n}", f"General best practices of programming, {n}.")
        assert (await bank.recall("General programming best practices")).lessons
        assert not (await bank.recall("General anatomy of the salmon in best red wine")).lessons


@pytest.mark.parametrize("lessons", [5, 20])
async def test_a_long_task_finds_its_lesson_and_no_other_for_its_length(file: Path, lessons: int) -> None:
    """The last four talks have 400 words and share a few of them with each lesson."""
    *_, first, second, third, fourth = (TALKS.parent / "conversations" / "talks.txt").read_text("utf-8").split("\n= ")
    near = "The HTTP call to the supplier timed out again. How many times do we retry a call, and after what pause?"
    async with a_bank(file, embedder="none") as bank:
        for text in (TALKS / "lessons.txt").read_text("utf-8").split("\n= ")[:lessons]:
            said = dict(line.split(": ", 1) for line in text.splitlines()[1:] if line)
            await bank.add(said["title"], said["content"])
        silent = await bank.recall("\n".join((first, second, third, fourth)))
        assert (silent.lessons, silent.filtered) == ((), lessons)
        found = await bank.recall(f"{first}\n{near}")
        assert [one.title for one in found.lessons] == ["Retry timeouts with backoff"]


@pytest.mark.parametrize(("language", "title", "content", "query"), PAIRS)
async def test_a_pair_that_shares_a_word_is_found_in_any_language(
    file: Path, language: str, title: str, content: str, query: str
) -> None:
    async with a_bank(file, embedder="none") as bank:
        for _, other, text, _ in PAIRS:
            await bank.add(other, text)
        assert (await bank.recall(query, threshold=0)).lessons[0].title == title
        assert (await bank.recall(query)).lessons[0].title == title, language


async def test_what_is_held_back_is_kept_and_said(file: Path) -> None:
    async with a_bank(file, embedder="none") as bank:
        near = await bank.add("Retry slow calls", "Retry an HTTP call that times out, with a growing pause.")
        far = await bank.add("Page through", "An HTTP listing gives a cursor; follow it to the end.")
        await bank.add("Sort ties", "Add the name to the key.")
        recall = await bank.recall("http call times out, retry with a pause")
        assert [one.id for one in recall.lessons] == [near.id]
        assert recall.filtered == 2
        assert recall.held is not None
        assert (recall.held.id, recall.held.title) == (far.id, "Page through")
        assert 0 < recall.held.score < recall.lessons[0].score  # pyright: ignore[reportOperatorIssue]
        every = await bank.recall("http call times out, retry with a pause", threshold=0)
        assert (len(every.lessons), every.filtered, every.held) == (3, 0, None)
        assert (await bank.recall("salmon")).held is not None


def test_a_recall_of_an_older_record_reads_as_before() -> None:
    recall = Recall("r1", filtered=2, held=HeldBack("a", "A", 0.5))
    told = to_json(recall)
    assert from_json(Recall, told) == recall
    del told["held"]
    assert from_json(Recall, told) == Recall("r1", filtered=2)


async def test_lessons_that_an_older_version_stored_are_found(file: Path) -> None:
    """Their terms were cut otherwise; they are made anew from the text when the bank is read."""
    async with a_bank(file, embedder="none") as bank:
        await bank.add("Retry", "Retry timeouts.")
    with closing(sqlite3.connect(file)) as db, db:
        (blob,) = db.execute("select terms from lessons").fetchone()
        db.execute("update lessons set terms = ?", ((1).to_bytes(4, "little") + blob[4:5] + b"\1\2\3\4\1",))
    async with a_bank(file, embedder="none") as bank:
        assert (await bank.recall("a timeout")).lessons
        assert not await bank.verify()
