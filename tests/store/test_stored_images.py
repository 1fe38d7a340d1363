"""Images beside the record: their bytes once, whoever shows them, and gone with the last episode that does."""

import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.codec import to_json
from mulligan.core.episode import Acted, Forked
from mulligan.core.errors import Unreadable
from mulligan.core.records import Attempt, Episode, Head, Image, Plan, Step, Task
from mulligan.store import open_store
from mulligan.store.export import export
from mulligan.store.sqlite.images import packed, unpacked
from mulligan.store.sqlite.store import SqliteStore

SCREEN, OTHER = Image("image/png", bytes(range(256)) * 400), Image("image/gif", b"other")
SHOWN = Attempt("x", (Step(images=(SCREEN, OTHER)), Step(images=(SCREEN,))))


def rows(file: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as db, db:
        return db.execute(statement).fetchall()


async def begun(store: SqliteStore, id: str) -> None:
    """An episode that shows the screen in its task, a step of the journal, and an event."""
    await store.create(Episode(id, Task("p", images=(SCREEN,))))
    lease = await store.acquire(id, "me", 60)
    await store.begin_step(lease, "model.actor#1", {"images": [to_json(SCREEN)]}, "h")
    await store.finish_step(lease, "model.actor#1", {"seen": to_json(OTHER)})
    await store.append(lease, 0, Acted(1, SHOWN))
    await store.release(lease)


async def test_the_bytes_are_kept_once_and_all_reads_give_them(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    for id in ("a", "b"):
        await begun(store, id)
    episode = await store.load("a")
    assert (episode.task.images, episode.trials[0].attempt) == ((SCREEN,), SHOWN)
    assert await store.events("b") == (Acted(1, SHOWN),)
    (step,) = await store.steps("a")
    assert (step.request, step.result) == ({"images": [to_json(SCREEN)]}, {"seen": to_json(OTHER)})
    assert [brief.prompt for brief in await store.briefs()] == ["p", "p"]
    assert json.dumps(await export(store, ["a"])).count(str(to_json(SCREEN)["data"])) == 7  # an export is whole
    assert await store.memory.lessons.verify() == []
    await store.close()
    assert len(rows(tmp_path / "m.db", "SELECT * FROM images")) == 2
    assert (tmp_path / "m.db").stat().st_size < 700_000


async def test_an_image_goes_with_the_last_episode_that_shows_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    await begun(store, "a")
    fork = await store.copy("a", "b", "r", Head(), {}, Forked(Plan()))
    assert fork.trials[0].attempt == SHOWN
    await store.remove(await store.acquire("a", "me", 60))
    assert (await store.load("b")).trials[0].attempt == SHOWN
    await store.create(Episode("c", Task("p", images=(OTHER,))))
    await store.remove(await store.acquire("b", "me", 60))
    assert (await store.load("c")).task.images == (OTHER,)
    await store.close()
    assert rows(tmp_path / "m.db", "SELECT content FROM images") == [(OTHER.data,)]


async def test_a_record_of_an_older_version_holds_its_images(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    await store.create(Episode("a", Task("p", images=(OTHER,))))
    whole = json.dumps(to_json(Episode("a", Task("p", images=(SCREEN,)))), separators=(",", ":"))
    rows(tmp_path / "m.db", f"UPDATE episodes SET record = '{whole}'")
    assert (await store.load("a")).task.images == (SCREEN,)
    await store.close()


@pytest.mark.parametrize("damage", ["DELETE FROM images", "UPDATE images SET content = x'00'", "DROP TABLE images"])
async def test_an_episode_whose_image_is_gone_says_so_and_hides_no_other(tmp_path: Path, damage: str) -> None:
    store = SqliteStore(tmp_path / "m.db")
    await store.create(Episode("plain", Task("p")))
    await begun(store, "a")
    rows(tmp_path / "m.db", damage)
    with pytest.raises(Unreadable, match=r"Episode a cannot be read: its image \w+ is (gone|damaged)"):
        await store.load("a")
    assert [episode.id for episode in await store.list()] == ["plain"]
    lessons = store.memory.lessons
    assert await lessons.verify()
    assert all(fault.mended for fault in await lessons.verify(mend=True))
    assert await lessons.verify() == []
    assert [episode.id for episode in await store.list()] == ["plain"]
    await store.close()


async def test_a_store_in_memory_keeps_images_too() -> None:
    async with open_store("memory:") as store:
        await store.create(Episode("a", Task("p", images=(SCREEN,))))
        assert (await store.load("a")).task.images == (SCREEN,)


DATA = st.one_of(st.text(), st.binary().map(lambda data: base64.b64encode(data).decode()))
JSON = st.recursive(
    st.one_of(st.none(), st.integers(), DATA),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["media_type", "data", "sha256", "json", "x"]), inner, max_size=3),
        st.fixed_dictionaries({"media_type": st.text(), "data": inner}),
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_comes_back_as_it_was(value: object) -> None:
    """Also what looks like an image, or like the way in which one is stored."""
    text, found = packed(json.dumps(value, separators=(",", ":")))
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE images (sha256 TEXT, content BLOB)")
        db.executemany("INSERT INTO images VALUES (?, ?)", found.items())
        assert json.loads(unpacked(db, "it", text)) == value
