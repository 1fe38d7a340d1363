"""Backups of a store in a file: copied while it is in use, and restored without what was erased since.

A file records the ids of everything that is erased (purged lessons, removed runs). No backup contains this file, and
no restore replaces it. A database is backed up and restored with its own tools; `erase_again` then erases as `restore`
does.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mulligan.app.config import Config
from mulligan.core.errors import InvalidInput, NotFound, StoreError
from mulligan.core.home import home
from mulligan.core.lesson_history import Archive
from mulligan.core.lesson_store import LessonStore
from mulligan.core.operations import actor
from mulligan.core.protocols import Store
from mulligan.core.trusted import note_store
from mulligan.recording.leases import leased
from mulligan.store import file_of, open_store, parse_address


@dataclass(frozen=True)
class Erasure:
    """What was erased at a time.

    Attributes:
        at: seconds since the epoch.
        by: who erased it; "" if unknown.
        agent_id: whose lessons; None: no lessons were erased.
        lessons: the ids; None: everything of the agent.
        episodes: the ids of the episodes that were removed.
    """

    at: float
    by: str = ""
    agent_id: str | None = None
    lessons: tuple[str, ...] | None = ()
    episodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restored:
    """What a restore did. replaced: where the previous store is now; None: there was none."""

    lessons: int
    episodes: int
    replaced: Path | None


def erasures_file(address: str | Path) -> Path | None:
    """The file in which this machine records what it erases: beside the store's file, or in `MULLIGAN_HOME` for a
    database. None for a store in memory, which has no backups."""
    if file := file_of(address):
        return file.with_name(f"{file.name}.erased.jsonl")
    if parse_address(address)[0] == "memory":
        return None
    parts = urlsplit(str(address))
    where = parts.netloc.rpartition("@")[2] or "".join(parse_qs(parts.query).get("host", ["local"]))
    return home() / f"{re.sub(r'[^A-Za-z0-9.]+', '-', where + parts.path).strip('-')}.erased.jsonl"


@contextmanager
def noted_erasure(
    notes: Path | None,
    *,
    agent_id: str | None = None,
    lessons: Sequence[str] | None = (),
    episodes: Sequence[str] = (),
) -> Generator[None]:
    """Records what the block erases, so that no backup restores it.

    The record is written before the block, or, if the disk is full, after it, because erasing frees space.

    Args:
        notes: see `erasures_file`; None: there is nothing to note.

    Raises:
        StoreError: The note cannot be written. The message says whether the block ran.
    """
    ids = None if lessons is None else tuple(lessons)
    line = json.dumps(asdict(Erasure(round(time.time(), 3), actor(), agent_id, ids, tuple(episodes))))
    full = False
    if notes is not None:
        try:
            _append(notes, line)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            if not full:
                raise StoreError(f"Nothing was erased: {notes} cannot be written ({error.strerror}).") from error
    yield
    if full and notes is not None:
        try:
            _append(notes, line)
        except OSError as error:
            raise StoreError(
                f"The erasure was not recorded, so an earlier backup would restore the data: {notes} cannot be "
                f"written ({error.strerror}). Free some disk space and add this line to the file: {line}"
            ) from error


def _append(notes: Path, line: str) -> None:
    """Adds the whole line or nothing. Raises `OSError`."""
    notes.parent.mkdir(parents=True, exist_ok=True)
    to = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        data, before = f"{line}\n".encode(), os.fstat(to).st_size
        if (written := os.write(to, data)) < len(data):  # only a part was written
            if os.fstat(to).st_size == before + written:
                os.ftruncate(to, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(to)
    finally:
        os.close(to)


def noted_erasures(notes: Path) -> Sequence[Erasure]:
    """The erasures in this file, oldest first; none if it does not exist. Raises `StoreError` for an unreadable
    line."""
    erasures: list[Erasure] = []
    for n, line in enumerate(notes.read_text(encoding="utf-8").splitlines() if notes.is_file() else (), 1):
        try:
            fields: dict[str, Any] = json.loads(line)
            ids: list[str] | None = fields["lessons"]
            fields |= {"lessons": None if ids is None else tuple(ids), "episodes": tuple(fields["episodes"])}
            erasures.append(Erasure(**fields))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StoreError(f"{notes}:{n} is not a record of an erasure: fix or remove the line ({error}).") from error
    return erasures


def purged_ids(notes: Path | None, agent_id: str | None) -> frozenset[str]:
    """The ids of single lessons that were purged from the bank of this agent. Raises `StoreError`."""
    erasures = noted_erasures(notes) if notes and agent_id is not None else ()
    return frozenset(id for erasure in erasures if erasure.agent_id == agent_id for id in erasure.lessons or ())


def emptied_at(notes: Path | None, agent_id: str | None) -> float:
    """When the whole bank of this agent was last purged; 0 if never. Raises `StoreError`."""
    erasures = noted_erasures(notes) if notes and agent_id is not None else ()
    return max((one.at for one in erasures if one.agent_id == agent_id and one.lessons is None), default=0.0)


def copy_file(file: str | Path, to: Path) -> None:
    """Copies a store that may be in use to a new, self-contained file. Raises `StoreError`."""
    to.touch(0o600)
    address = f"{Path(file).absolute().as_uri()}?mode=rw"  # never creates a file
    try:
        # not mode=ro: such a connection leaves the write-ahead log behind, as if somebody had the store open
        with closing(sqlite3.connect(address, uri=True)) as source, closing(sqlite3.connect(to)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
            if (result := target.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(result)
    except sqlite3.Error as error:
        to.unlink()
        raise StoreError(f"The store {file} cannot be copied: {error}.") from error


def back_up(config: Config, to: Path) -> None:
    """Copies the configured store to a new file, while servers and commands use it.

    Raises:
        InvalidInput: there is no store, it is in no file, or the new file exists.
        StoreError: it cannot be copied; the new file is removed.
    """
    file = _store_file(config)
    if not file.is_file():
        raise InvalidInput(f"There is no store at {file} yet, so there is nothing to back up.")
    if to.exists():
        raise InvalidInput(f"{to} already exists: specify a new file, such as one with the date in its name.")
    if not to.parent.is_dir():
        raise InvalidInput(f"The folder {to.parent} does not exist: create it first.")
    copy_file(file, to)


async def restore(config: Config, backup: Path, *, replace: bool = False) -> Restored:
    """Replaces the configured store with a backup, without what was erased since. An older format is migrated. The
    backup itself is not changed.

    Args:
        config: names the store.
        backup: a file that `back_up` made.
        replace: whether a store that exists may be replaced; it is renamed and stays.

    Raises:
        InvalidInput: there is no such backup, the store is in no file or exists, or somebody has it open.
        StoreError: the backup cannot be read; the store is as it was.
    """
    file = _store_file(config)
    new = _copy_back_up(file, backup, replace)
    try:
        async with open_store(new) as store:
            lessons, episodes = await _erase(store, _all_erasures(config, ()))
    except StoreError:
        os.unlink(new)
        raise
    return Restored(lessons, episodes, _replace_store(file, new))


async def erase_again(config: Config, notes: Sequence[Path] = ()) -> tuple[int, int]:
    """Erases what was erased before, after a restore of the configured store's database has brought it back.

    Args:
        config: names the store, for a role that serves all agents.
        notes: files of other machines that erased something, besides the one of this machine.

    Returns:
        How many lessons and episodes were back.

    Raises:
        InvalidInput: a file of notes does not exist, or there is none at all.
        StoreError: a note cannot be read, or the store cannot be reached; what was not erased yet stays.
    """
    for file in notes:
        if not file.is_file():
            raise InvalidInput(f"There is no file {file}.")
    own = erasures_file(config.store)
    if not notes and not (own and own.is_file()):
        raise InvalidInput(
            f"Nothing was erased on this machine: there is no {own}. Specify the files from other machines."
        )
    erased = _all_erasures(config, notes)
    async with open_store(config.store) as store:
        return await _erase(store, erased)


def _all_erasures(config: Config, others: Sequence[Path]) -> list[Erasure]:
    """The erasures of this machine and of others from the configured store, oldest first."""
    own = erasures_file(config.store)
    erased = [one for file in (*([own] if own else ()), *others) for one in noted_erasures(file)]
    return sorted(erased, key=lambda one: one.at)


def _copy_back_up(file: Path, backup: Path, replace: bool) -> Path:
    """Copies the backup to a file beside the store, and returns the file."""
    if not backup.is_file():
        raise InvalidInput(f"There is no file {backup}.")
    if file.exists() and not replace:
        raise InvalidInput(
            f"A store already exists at {file}. Use --replace to rename it and restore the backup in its place."
        )
    if file.with_name(f"{file.name}-wal").exists():
        raise InvalidInput(
            f"The store {file} is open in another process, or was open in a process that died. Stop all servers "
            "and commands first. If none is running, `mulligan memory stats` closes it cleanly."
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.restoring")
    new.unlink(missing_ok=True)
    copy_file(backup, new)
    return new


def _replace_store(file: Path, new: Path) -> Path | None:
    """Moves the new store into place. Returns where the previous one is now, if there was one."""
    replaced = None
    if file.exists():
        replaced = file.with_name(f"{file.name}.replaced-{time.strftime('%Y%m%dT%H%M%S')}-{secrets.token_hex(2)}")
        os.replace(file, replaced)
    os.replace(new, file)
    note_store(file)
    return replaced


def _store_file(config: Config) -> Path:
    file = file_of(config.store)
    if file is None:
        raise InvalidInput(
            f"The store {str(config.store).partition(':')[0]}:… is not a file. Back it up with its database's "
            "tools, such as pg_dump. After a restore, run `mulligan store erase-again`."
        )
    return file


async def _erase(store: Store, erased: Iterable[Erasure]) -> tuple[int, int]:
    """Erases again. Returns how many lessons and episodes there were."""
    lessons = episodes = 0
    lesson_store: LessonStore = store.memory.lessons
    for erasure in erased:
        for id in erasure.episodes:
            with suppress(NotFound):
                async with leased(store, id) as lease:
                    await store.remove(lease)
                    episodes += 1
        if erasure.agent_id is None:
            continue
        if erasure.lessons is None:
            for archive in await lesson_store.archive(erasure.agent_id):
                lessons += await lesson_store.purge(erasure.agent_id, _lessons_until(archive, erasure.at))
        elif ids := [lesson.id for lesson in await lesson_store.there(erasure.agent_id, erasure.lessons)]:
            lessons += await lesson_store.purge(erasure.agent_id, ids)
    return lessons, episodes


def _lessons_until(archive: Archive, at: float) -> list[str] | None:
    """The ids of an agent's lessons from before a time; None if everything of the agent is from before it."""
    others = (*(one.at for one in archive.receipts), *(one.at for one in archive.accounts))
    older = [lesson.id for lesson in archive.lessons if lesson.created <= at]
    newer = len(older) < len(archive.lessons) or any(when > at for when in others)
    return older if newer else None
