"""Synchronises a bank with a folder of Markdown files, one for each lesson, for people who share lessons by git.

A lesson and its file are compared with the state of both at the last sync, which is kept in Mulligan's home. A change
on one side is copied to the other; a change on both sides is a conflict, and both stay as they are. Lessons that
arrive are quarantined, a deleted file retires its lesson, and links and subfolders are not read. No program is run.

The next sync completes one that was killed, because equal sides always agree, whatever they were before.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from difflib import unified_diff
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from mulligan.app.backup import purged_ids
from mulligan.app.lesson_file import file_text, left_out, lesson_in
from mulligan.app.memory import Bank
from mulligan.core.codec import digest
from mulligan.core.errors import InvalidInput, StoreError
from mulligan.core.home import home
from mulligan.core.lessons import Selection
from mulligan.core.records import Lesson, LessonState

MAX_BYTES = 1_000_000
"""The largest file that is read."""
PART = ".mulligan-sync.part"
"""The name of a file while it is written."""

NO_CONFLICT = "There is no conflict with such a lesson."

Side: TypeAlias = Literal["ours", "theirs"]
Outcome: TypeAlias = Literal["written", "removed", "received", "retired", "conflict", "left"]


@dataclass(frozen=True)
class SyncedLesson:
    """What a sync did with a lesson.

    Attributes:
        outcome: written, removed: the file was. received, retired: the lesson was. conflict: both changed, so nothing
            was done, and `why` has the difference. left: it cannot be used, and `why` says why not.
        file: its name in the folder.
    """

    outcome: Outcome
    file: str
    id: str = ""
    title: str = ""
    why: str = ""


@dataclass(frozen=True)
class _LessonFile:
    """A lesson's file. raw: the digest of its bytes. said: the digest of its content. lesson: None if it is
    unchanged."""

    name: str
    raw: str
    said: str
    lesson: Lesson | None = field(default=None, compare=False)


async def sync(
    bank: Bank, folder: Path, *, ours: Sequence[str] = (), theirs: Sequence[str] = ()
) -> Sequence[SyncedLesson]:
    """Copies changes of the bank to the folder, and changes of the folder to the bank.

    Args:
        bank: The bank of one agent.
        folder: Made if it does not exist.
        ours: Ids, or prefixes of ids, of lessons in conflict for which the bank's side counts.
        theirs: The same for the folder's side.

    Raises:
        InvalidInput: The folder cannot be used, or all files of the last sync are gone from it.
        StoreError: The store cannot be read or written.
    """
    folder = _made(folder)
    name = digest([str(bank.erasures), bank.agent_id, str(folder)])[:16]
    with _state(home() / "sync" / f"{name}.json", folder) as last:
        (folder / PART).unlink(missing_ok=True)
        current = _Sync(bank, folder, last, {**dict.fromkeys(ours, "ours"), **dict.fromkeys(theirs, "theirs")})
        await current.read()
        for id in current.ids:
            try:
                await current.one(id)
            except (StoreError, InvalidInput, OSError) as error:
                current.say("left", id, str(error))
        return [*current.changes, *(SyncedLesson("left", "", id, why=NO_CONFLICT) for id in current.sides)]


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder.resolve()
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be used as a folder of lessons: {error.strerror}.") from error


class _Sync:
    """One sync.

    Attributes:
        sides: which side of a conflict counts, by the id or its prefix; entries are removed when they are used.
        changes: what was done so far.
    """

    def __init__(self, bank: Bank, folder: Path, last: dict[str, _LessonFile], sides: dict[str, Side]) -> None:
        self._bank, self._folder, self._last, self.sides = bank, folder, last, sides
        self.changes: list[SyncedLesson] = []
        self._unusable: set[str] = set()

    async def read(self) -> None:
        lessons = await self._bank.list(Selection(get_args(LessonState), limit=None))
        self._lessons = {one.id: one for one in reversed(lessons) if one.nature != "query_pair"}
        self._purged = purged_ids(self._bank.erasures, self._bank.agent_id)
        self._files: dict[str, _LessonFile] = {}
        last_by_name = {one.name: (id, one) for id, one in self._last.items()}
        for name in sorted(os.listdir(self._folder), key=lambda name: (name not in last_by_name, name)):
            if name.endswith(".md") and not name.startswith("."):
                try:
                    self._read(name, *last_by_name.get(name, ("", None)))
                except (InvalidInput, OSError) as error:
                    self._unusable.add(name)
                    why = f"{name}: {error.strerror}" if isinstance(error, OSError) else str(error)
                    self.changes.append(SyncedLesson("left", name, why=why))
        lost = [one for id, one in self._last.items() if id not in self._files and one.name not in self._unusable]
        if len(lost) == len(self._last) > 1:
            raise InvalidInput(
                f"All {len(lost)} files from the last sync are missing from {self._folder}. Is another branch "
                "checked out? Nothing was changed. If you meant to remove them, retire them: mulligan memory "
                "retire ID"
            )

    def _read(self, name: str, id: str, last: _LessonFile | None) -> None:
        raw = _bytes(self._folder / name)
        if last and last.raw == (raw_digest := hashlib.sha256(raw).hexdigest()):
            file = last
        else:
            try:
                lesson = lesson_in(self._folder / name, raw.decode("utf-8-sig"))
            except UnicodeDecodeError as error:
                raise InvalidInput(f"{self._folder / name} is not UTF-8: save it as UTF-8.") from error
            if lesson is None and last:
                raise InvalidInput(f"{self._folder / name} has lost its front matter: restore it, or remove the file.")
            if lesson is None:
                return
            id, raw_digest = lesson.id, hashlib.sha256(raw).hexdigest()
            file = _LessonFile(name, raw_digest, digest(file_text(lesson)), lesson)
        if id in self._files:
            raise InvalidInput(
                f"{self._folder / name}: {self._files[id].name} has the same id: remove the id from one of them."
            )
        self._files[id] = file

    @property
    def ids(self) -> Sequence[str]:
        return list(dict.fromkeys([*self._lessons, *self._last, *self._files]))

    async def one(self, id: str) -> None:
        """Compares the two sides of a lesson with the last sync, and copies a change to the other side."""
        lesson, file, last = self._lessons.get(id), self._files.get(id), self._last.get(id)
        if last and last.name in self._unusable:
            return
        live = lesson is not None and lesson.state in ("active", "quarantined")
        ours = digest(file_text(lesson)) if lesson and live else None
        theirs = file.said if file else None
        before = last.said if last else None
        if lesson is None and id not in self._purged:
            ours = before = None  # the store was lost or is an older one: nobody removed the lesson
        if lesson is None and id in self._purged and file and last is None:
            self.say("left", id, f"{file.name}: the lesson was purged here, and is not restored.")
        elif lesson and not live and file and last is None and digest(file_text(lesson)) == file.said:
            self.say("left", id, f"{file.name}: the lesson is {lesson.state} here. Restore it, or remove the file.")
        elif ours == theirs:
            self._agree(id, file)
        elif theirs == before:
            self._to_folder(id, lesson if live else None, file)
        elif ours == before:
            await self._to_bank(id, lesson, file)
        elif prefix := next((one for one in self.sides if one and id.startswith(one)), None):
            if self.sides.pop(prefix) == "theirs":
                await self._to_bank(id, lesson, file)
            elif lesson and lesson.state == "quarantined":
                raise InvalidInput(f"Lesson {id} is quarantined here: release it first, then sync again.")
            else:
                self._to_folder(id, lesson if live else None, file)
        else:
            self.say("conflict", id, self._conflict(lesson if live else None, file))

    def say(self, outcome: Outcome, id: str, why: str = "") -> None:
        lesson = self._lessons.get(id) or (self._files[id].lesson if id in self._files else None)
        at = self._files.get(id) or self._last.get(id)
        self.changes.append(SyncedLesson(outcome, at.name if at else "", id, lesson.title if lesson else "", why))

    def _conflict(self, lesson: Lesson | None, file: _LessonFile | None) -> str:
        """Describes the two sides of a conflict."""
        if lesson is None or file is None:
            return (
                "The file was deleted, but the lesson was changed."
                if lesson
                else "The lesson was deleted, but the file was changed."
            )
        ours, theirs = file_text(lesson), _bytes(self._folder / file.name).decode(errors="replace")
        return "\n".join(unified_diff(ours.splitlines(), theirs.splitlines(), "bank", file.name, n=1, lineterm=""))

    def _agree(self, id: str, file: _LessonFile | None) -> None:
        if file:
            self._last[id] = file
        else:
            self._last.pop(id, None)

    def _to_folder(self, id: str, lesson: Lesson | None, file: _LessonFile | None) -> None:
        if lesson is not None and lesson.state == "quarantined":
            return
        if file and hashlib.sha256(_bytes(self._folder / file.name)).hexdigest() != file.raw:
            raise InvalidInput(f"{file.name} was changed during the sync. Sync again.")
        if lesson is None:
            if file:
                (self._folder / file.name).unlink()
            self.say("removed", id)
            self._agree(id, None)
            return
        text = file_text(lesson)
        name = file.name if file else self._new_name(lesson)
        if (read_back := lesson_in(self._folder / name, text)) is None or file_text(read_back) != text:
            raise InvalidInput(f"Lesson {id} has text that Markdown cannot represent: edit it, then sync again.")
        with open(os.open(self._folder / PART, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as part:
            part.write(text.encode())
        os.replace(self._folder / PART, self._folder / name)
        self._files[id] = _LessonFile(name, hashlib.sha256(text.encode()).hexdigest(), digest(text), lesson)
        self.say("written", id)
        self._agree(id, self._files[id])

    def _new_name(self, lesson: Lesson) -> str:
        words = re.sub(r"[^a-z0-9]+", "-", lesson.title.casefold())[:48].strip("-") or "lesson"
        short, whole = (f"{words}-{id}.md" for id in (lesson.id[:8], lesson.id))
        return whole if os.path.lexists(self._folder / short) else short

    async def _to_bank(self, id: str, lesson: Lesson | None, file: _LessonFile | None) -> None:
        if file is None:
            await self._bank.withdraw(id, f"its file was deleted from {self._folder}")
            self.say("retired", id)
        else:
            new = file.lesson or lesson_in(
                self._folder / file.name, _bytes(self._folder / file.name).decode("utf-8-sig")
            )
            assert new is not None
            await self._bank.receive(replace(new, **left_out(lesson)) if lesson else new, lesson)
            self.say("received", id)
        self._agree(id, file)


def _bytes(file: Path) -> bytes:
    """The content of a file. Raises `InvalidInput` for a link and for a large file, and `OSError`."""
    if not stat.S_ISREG(os.lstat(file).st_mode):
        raise InvalidInput(f"{file} is a link, or not a regular file, so it was skipped.")
    with open(os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InvalidInput(f"{file} is larger than {MAX_BYTES:,} bytes, so it was skipped.")
    return content


@contextmanager
def _state(path: Path, folder: Path) -> Generator[dict[str, _LessonFile]]:
    """The state of each lesson and its file at the last sync, by id. It is written when the block ends, even by an
    error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.with_suffix(".lock"), folder):
        files: dict[str, _LessonFile] = {}
        with suppress(FileNotFoundError):
            try:
                stored: Mapping[str, Mapping[str, str]] = json.loads(path.read_text(encoding="utf-8"))["lessons"]
                files = {id: _LessonFile(entry["name"], entry["raw"], entry["said"]) for id, entry in stored.items()}
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InvalidInput(
                    f"{path} is damaged ({error}). Remove it; the next sync compares everything again."
                ) from error
        try:
            yield files
        finally:
            lessons = {
                id: {name: value for name, value in asdict(entry).items() if name != "lesson"}
                for id, entry in files.items()
            }
            part = path.with_suffix(".part")
            part.write_text(json.dumps({"folder": str(folder), "lessons": lessons}, indent=1), encoding="utf-8")
            os.replace(part, path)


@contextmanager
def _locked(path: Path, folder: Path) -> Generator[None]:
    import fcntl  # not on Windows, where importing this module should still work

    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InvalidInput(f"Another process is synchronising {folder}: wait until it has finished.") from error
        yield
    finally:
        os.close(lock)
