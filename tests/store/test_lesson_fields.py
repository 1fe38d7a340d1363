"""Lessons that use every field: what was stored and shown before there was one table of fields is so after. See old/README.md."""

import gzip
import json
import re
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from old_lessons import archives, faces, put, rows_of

from mulligan.bank.exchange.importing import archives_from_json, archives_to_json, prepared
from mulligan.core.lesson_store import Memory
from mulligan.core.records import Lesson
from mulligan.store import open_store

OLD = Path(__file__).parent / "old"
COMMIT = "3ce9306"
REWORDED = {
    "notes to weigh, not": "these are notes, not",
    "Quarantined, as its": "Quarantined, because its",
    "When it is of use.": "When it is useful.",
    "stands for:": "combines:",
    "Nearly says the same:": "Similar lessons:",
    "Of a fact: where": "For a fact: where",
    "Of a fact: whether an attempt has passed by it": "For a fact: whether a passing attempt confirmed it",
}


def of_then(name: str) -> Any:
    return json.loads((OLD / f"{COMMIT}.{name}.json").read_text(encoding="utf-8"))


def without_new_fields(now: Any, then: Any) -> Any:
    """What `now` says of what `then` knows, in the order of `now`."""
    if type(now) is not type(then) or not isinstance(now, dict | list):
        return now
    if isinstance(then, list):
        pairs = zip_longest(cast(list[Any], now), cast(list[Any], then))
        return [without_new_fields(one, other) for one, other in pairs]
    old, new = cast(dict[str, Any], then), cast(dict[str, Any], now)
    return {name: without_new_fields(value, old[name]) for name, value in new.items() if name in old}


async def check_export(memory: Memory) -> None:
    then, now = of_then("lessons"), archives_to_json(await memory.lessons.archive(None))
    assert json.dumps(without_new_fields({**now, "mulligan": then["mulligan"]}, then)) == json.dumps(then)


def test_the_lessons_use_every_field() -> None:
    lessons = [lesson for archive in archives() for lesson in archive.lessons]
    plain = Lesson("", "", "", "success")
    stored = {*of_then("faces")["json"][0]} - {"score", "embedder", "flags"}
    assert stored == {name for name in stored if any(getattr(one, name) != getattr(plain, name) for one in lessons)}


async def test_a_store_of_then_is_read_and_exported_as_then(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(gzip.decompress((OLD / f"{COMMIT}.db.gz").read_bytes()))
    memory = open_store(f"sqlite:///{path}").memory
    await check_export(memory)
    await memory.close()


async def test_the_same_rows_are_written_as_then(tmp_path: Path) -> None:
    memory = open_store(f"sqlite:///{tmp_path}/m.db").memory
    await put(memory, archives())
    await memory.close()
    now, then = rows_of(tmp_path / "m.db"), of_then("rows")
    for tables in (now, then):
        for row in (*tables["log"], *tables["receipts"]):
            row["record"] = row["record"] and json.loads(row["record"])
    assert json.dumps(without_new_fields(now, then)) == json.dumps(then)


async def test_every_store_takes_an_export_of_then_and_gives_it_back(memory: Memory) -> None:
    several = archives_from_json(of_then("lessons"))
    await memory.lessons.restore([prepared(one, quarantine=True) for one in several])
    await check_export(memory)


def without_times(lines: list[str]) -> list[str]:
    """A terminal shows times as the clock of its machine does; then it showed them in UTC."""
    return [" ".join(re.sub(r"\d{4}(-\d\d){2} \d\d(:\d\d)+( UTC)?", "TIME", line).split()) for line in lines]


def without_context(lines: list[str]) -> list[str]:
    return sorted(line for line in lines if not line.lstrip("- *").startswith("context:"))


async def test_every_face_says_of_them_what_it_said_then(memory: Memory) -> None:
    await put(memory, archives())
    kept = json.dumps(of_then("faces"))
    for old, new in REWORDED.items():
        assert old in kept
        kept = kept.replace(old, new)
    then = json.loads(kept)
    del then["history"]  # had the details of changes as JSON
    said = without_new_fields(json.loads(json.dumps(await faces(memory))), then)
    for pages in (said, then):  # their lines may stand in another order; the context was JSON for people, too
        for name in ("pages", "stories"):
            pages[name] = {id: without_context(page.splitlines()) for id, page in pages[name].items()}
        pages["stories"] = {id: without_times(lines) for id, lines in pages["stories"].items()}
        pages["markdown"] = without_context(pages["markdown"])
    assert said == then
