"""Lessons that use every field: what was stored and shown before there was one table of fields is so after. See old/README.md."""

import gzip
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from old_lessons import archives, faces, put, rows_of

from mulligan.bank.exchange.importing import archives_from_json, archives_to_json, prepared
from mulligan.core.lessons import Memory
from mulligan.core.records import Lesson
from mulligan.store import open_store

OLD = Path(__file__).parent / "old"
COMMIT = "3ce9306"


def of_then(name: str) -> Any:
    return json.loads((OLD / f"{COMMIT}.{name}.json").read_text(encoding="utf-8"))


async def exported(memory: Memory) -> Any:
    return {**archives_to_json(await memory.lessons.archive(None)), "mulligan": of_then("lessons")["mulligan"]}


def test_the_lessons_use_every_field() -> None:
    lessons = [lesson for archive in archives() for lesson in archive.lessons]
    plain = Lesson("", "", "", "success")
    stored = {field.name for field in fields(Lesson)} - {"score", "embedder", "flags"}
    assert stored == {name for name in stored if any(getattr(one, name) != getattr(plain, name) for one in lessons)}


async def test_a_store_of_then_is_read_and_exported_as_then(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(gzip.decompress((OLD / f"{COMMIT}.db.gz").read_bytes()))
    memory = open_store(f"sqlite:///{path}").memory
    assert json.dumps(await exported(memory)) == json.dumps(of_then("lessons"))
    await memory.close()


async def test_the_same_rows_are_written_as_then(tmp_path: Path) -> None:
    memory = open_store(f"sqlite:///{tmp_path}/m.db").memory
    await put(memory, archives())
    await memory.close()
    assert rows_of(tmp_path / "m.db") == of_then("rows")


async def test_every_store_takes_an_export_of_then_and_gives_it_back(memory: Memory) -> None:
    several = archives_from_json(of_then("lessons"))
    await memory.lessons.restore([prepared(one, quarantine=True) for one in several])
    assert json.dumps(await exported(memory)) == json.dumps(of_then("lessons"))


async def test_every_face_says_of_them_what_it_said_then(memory: Memory) -> None:
    await put(memory, archives())
    said, then = json.loads(json.dumps(await faces(memory))), of_then("faces")
    for pages in (said, then):  # their lines may stand in another order
        for name in ("pages", "stories"):
            pages[name] = {id: sorted(page.splitlines()) for id, page in pages[name].items()}
        pages["markdown"].sort()
    assert {name: said[name] for name in then} == then
