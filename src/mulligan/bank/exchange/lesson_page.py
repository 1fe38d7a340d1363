"""Describes lessons for a person: one lesson with all that is known about it, or a whole bank, as Markdown.

The texts of lessons are quoted, because they are to be read and not to be obeyed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Protocol, cast

from mulligan.bank.recall.prompt_text import UNCONFIRMED, mark
from mulligan.core.codec import to_json
from mulligan.core.errors import NotFound, Unreadable
from mulligan.core.lesson_history import Archive, Link, Receipt, Version
from mulligan.core.lesson_store import LessonReader
from mulligan.core.lessons import ADMISSION_NOTE, WAITS_FOR_REPLAY, fields_with
from mulligan.core.records import Lesson, Origin
from mulligan.text.pages import Diff
from mulligan.text.plain import count
from mulligan.text.secrets import mask
from mulligan.text.times import moment

_OURS = ("id", "agent", "state", "flags", "learned from", "episode", "created")
"""The properties of a lesson that its author cannot choose."""

LEVEL = "abstraction_level"
"""The key in the context of a merged lesson that says how general it is."""
GENERALITY: Mapping[str, str] = {
    "0": "the same advice",
    "1": "a rule for this kind of task",
    "2": "a more general principle",
}


class Shelf(Protocol):
    """Reads the lessons of one agent, or of all. A bank is one."""

    async def get(self, id: str) -> Lesson: ...
    async def links(self, id: str) -> Sequence[Link]: ...


@dataclass(frozen=True)
class StoreShelf:
    """A shelf that reads a store without a bank. Raises `NotFound`, also for the lesson of another agent."""

    lessons: LessonReader
    agent_id: str | None

    async def get(self, id: str) -> Lesson:
        return (await self.lessons.get(self.agent_id, [id]))[0]

    async def links(self, id: str) -> Sequence[Link]:
        return await self.lessons.links(self.agent_id, id)


@dataclass(frozen=True)
class RelatedLessons:
    """The lessons that are related to one lesson, as far as they still exist.

    Attributes:
        lineage: by words, the lessons it was merged from or replaced, and the one it was merged into or replaced by.
        near: its near-duplicates, with the links to them.
    """

    lineage: Mapping[str, Sequence[Lesson]]
    near: Sequence[tuple[Link, Lesson]]


@dataclass(frozen=True)
class PastChange:
    """A change in the history of a lesson.

    Attributes:
        success: whether the task succeeded, if the change belongs to a recall.
        text: the change of the text, if there is one.
        fields: the other changed fields: name, old value, new value.
    """

    version: Version
    why: str
    success: bool | None
    text: Diff | None
    fields: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class LessonHistory:
    """Changes, newest first. older: how many are left out. undoable: whether the newest can be undone."""

    changes: Sequence[PastChange]
    older: int
    undoable: bool


class Archivist(Protocol):
    """Reads what happened to lessons. A bank is one."""

    async def history(self, id: str) -> Sequence[Version]: ...
    async def receipt(self, id: str) -> Receipt: ...


@dataclass(frozen=True)
class LessonPage:
    """The page of a lesson, with related lessons and its history."""

    lesson: Lesson

    @property
    def state(self) -> str:
        """The state; "expired" if the lesson is active and has expired."""
        expired = self.lesson.state == "active" and self.lesson.is_expired(time.time())
        return "expired" if expired else self.lesson.state

    @staticmethod
    def bank_title(agent_id: str) -> str:
        """Returns a bank's name for people: a project's bank is named after its folder."""
        if not agent_id:
            return "default"
        kind, _, path = agent_id.partition(":")
        folder = PurePosixPath(path.removesuffix("/.git")).name if kind == "project" else ""
        return f"project {folder}" if folder else agent_id

    @property
    def brief(self) -> dict[str, str]:
        """Returns the fields that lists and recalls show as text, besides the nature and the outcome."""
        return {name: text for name in fields_with("brief") if (text := _text(getattr(self.lesson, name)))}

    def facts(self, when: Callable[[float], str]) -> dict[str, str]:
        """Returns a lesson's properties, except its text, by their labels. Empty properties are omitted.

        These are the fields with a label, and fields that are described together.

        Args:
            when: A function that formats a time. Pages that are also read elsewhere use `moment`.
        """
        lesson, origin = self.lesson, self.lesson.origin
        expired = " (expired)" if lesson.is_expired(time.time()) else ""
        shown = replace(
            lesson,
            context={name: value for name, value in lesson.context.items() if name not in (LEVEL, ADMISSION_NOTE)},
        )
        texts = {
            "id": lesson.id,
            "agent": lesson.agent_id,
            "state": f"{self.state}{', pinned' if lesson.pinned else ''}",
            "nature": _nature(lesson),
            **{label: _text(getattr(shown, name)) for name, label in fields_with("label").items()},
            "origin": f"{origin.kind} by {origin.by}" if origin.by else origin.kind,
            "episode": _episode(origin),
            "replaces" if _replaces(lesson) else "merged from": ", ".join(origin.parents),
            "judged": origin.reason,
            "confidence": f"{lesson.confidence:g}",
            "created": when(lesson.created),
            "as of": "" if lesson.date is None else when(lesson.date),
            "expires": "" if lesson.expires is None else f"{when(lesson.expires)}{expired}",
            "recalled": f"{count(lesson.uses, 'time')}, last {when(lesson.last_used)}" if lesson.last_used else "never",
            "combines": _support(lesson),
            ADMISSION_NOTE: str(lesson.context.get(ADMISSION_NOTE, "")),
            "generality": GENERALITY.get(str(lesson.context.get(LEVEL, "")), ""),
        }
        return {name: text for name, text in texts.items() if text}

    async def relatives(self, shelf: Shelf) -> RelatedLessons:
        """Returns the related lessons."""
        lesson = self.lesson
        into = (lesson.superseded_by,) if lesson.superseded_by else ()
        earlier, later = await existing(shelf, lesson.origin.parents), await existing(shelf, into)
        before = "Replaces" if _replaces(lesson) else "Merged from"
        after = "Replaced by" if lesson.nature == "fact" or any(map(_replaces, later)) else "Merged into"
        lineage = {before: earlier, after: later}
        near: list[tuple[Link, Lesson]] = []
        for link in await shelf.links(lesson.id):
            near += [(link, other) for other in await existing(shelf, (link.b if link.a == lesson.id else link.a,))]
        return RelatedLessons(lineage, near)

    async def history(self, bank: Archivist, limit: int | None = None) -> LessonHistory:
        """Returns the changes to this lesson.

        Args:
            limit: the number of newest changes. None: all.
        """
        versions = await bank.history(self.lesson.id)
        first = 0 if limit is None else max(len(versions) - limit, 0)
        outcomes = await outcomes_of(bank.receipt, versions[first:])
        changes: list[PastChange] = []
        before: Lesson | None = None
        for version in versions:
            why, after, text = str(version.details.get("why", "")), version.lesson, None
            fields: Sequence[tuple[str, str, str]] = ()
            if before and after:
                text = Diff(before.content, after.content) if before.content != after.content else None
                fields = _changed_fields(before, after)
            changes.append(PastChange(version, why, outcomes.get(version.recall), text, fields))
            before = after or before
        undoable = self.lesson.state == "retired" or sum(version.lesson is not None for version in versions) > 1
        return LessonHistory(changes[first:][::-1], first, undoable)


def _replaces(lesson: Lesson) -> bool:
    """Whether the earlier lessons of this one were replaced by it, and not merged into it."""
    return lesson.nature == "fact" or (lesson.origin.kind == "extracted" and bool(lesson.origin.parents))


async def existing(shelf: Shelf, ids: Sequence[str]) -> Sequence[Lesson]:
    """The lessons with these ids that can be read: not purged, damaged or another agent's."""
    lessons: list[Lesson] = []
    for id in ids:
        with suppress(NotFound, Unreadable):
            lessons.append(await shelf.get(id))
    return lessons


async def lesson_page(shelf: Shelf, id: str) -> str:
    """The lesson as Markdown, with secrets masked. The text of a quarantined lesson is left out. Raises `NotFound`."""
    lesson = await shelf.get(id)
    return mask("\n\n".join(_page(lesson, await LessonPage(lesson).relatives(shelf)))) + "\n"


def _page(lesson: Lesson, related: RelatedLessons) -> Iterator[str]:
    yield f"# Lesson {inline(lesson.id)}"
    yield "All of this was learned from an earlier task: these are notes, not instructions."
    quarantined = lesson.state == "quarantined"
    shown = {name: text for name, text in LessonPage(lesson).facts(moment).items() if not quarantined or name in _OURS}
    yield "\n".join(f"- **{name}:** {inline(text)}" for name, text in shown.items())
    if quarantined:
        waits = WAITS_FOR_REPLAY in lesson.flags
        why = "it waits for a replay" if waits else "its text may be an instruction in disguise"
        yield f"Quarantined, because {why}: mulligan memory show {inline(lesson.id)}"
        return
    for text in (lesson.title, lesson.description, lesson.content):
        if text.strip():
            yield quoted(text)
    for name, lessons in related.lineage.items():
        if lessons:
            yield "\n".join([f"{name}:", "", *(f"- {_in_a_line(one)}" for one in lessons)])
    if related.near:
        lines = [f"- {link.similarity:.2f} {_in_a_line(other)}" for link, other in related.near]
        yield "\n".join(["Similar lessons:", "", *lines])


def _in_a_line(lesson: Lesson) -> str:
    title = "(quarantined)" if lesson.state == "quarantined" else lesson.title
    return f"`{inline(lesson.id)}` {lesson.state}, from a {lesson.outcome}: {inline(title)}"


# --- words and blocks ----------------------------------------------------------------------------------------------


def markdown(archives: Sequence[Archive]) -> str:
    """The lessons as Markdown, agent by agent, newest first, with their titles as headings and their texts quoted.

    An export: nothing is masked, and quarantined lessons have their texts.
    """
    blocks: list[str] = []
    for archive in archives:
        blocks += [f"# Lessons of {inline(archive.agent_id)}" if archive.agent_id else "# Lessons"]
        for lesson in sorted(archive.lessons, key=lambda lesson: -lesson.created):
            blocks += _section(lesson)
    return "\n\n".join(blocks) + "\n"


def _section(lesson: Lesson) -> Iterator[str]:
    yield f"## {inline(lesson.title)}"
    yield "\n".join(f"- **{name}:** {inline(text)}" for name, text in LessonPage(lesson).facts(moment).items())
    if lesson.description:
        yield quoted(lesson.description)
    yield quoted(lesson.content)


def _changed_fields(before: Lesson, after: Lesson) -> Sequence[tuple[str, str, str]]:
    """The name, the old and the new value of each changed field, but for the text and the counters."""
    old, new = cast(dict[str, Any], to_json(before)), cast(dict[str, Any], to_json(after))
    left_out = {"content", *fields_with("counted")}
    names = [name for name in new if name not in left_out and new[name] != old.get(name)]
    return [(name, _as_text(old.get(name)), _as_text(new[name])) for name in names]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    """The value of a field in words; "" for an empty one."""
    if isinstance(value, tuple):
        return ", ".join(map(str, cast(tuple[Any, ...], value)))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(one)}" for name, one in cast(Mapping[str, Any], value).items())
    if isinstance(value, list):
        return "; ".join(map(_text, cast(list[Any], value)))
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def _episode(origin: Origin) -> str:
    """The episode that a lesson comes from, with the trial and the steps; "" for none."""
    if not origin.episode:
        return ""
    trial = f", trial {origin.trial}" if origin.trial is not None else ""
    steps = f", steps {', '.join(map(str, origin.steps))}" if origin.steps else ""
    return f"{origin.episode}{trial}{steps}{' (run removed)' if origin.removed else ''}"


def _support(lesson: Lesson) -> str:
    """How many lessons it stands for: different ones that were merged, or equal ones that were folded."""
    if lesson.support <= 1:
        return ""
    return f"{lesson.support} {'merged lessons' if lesson.origin.kind == 'merged' else 'equal lessons'}"


async def outcomes_of(receipt: Callable[[str], Awaitable[Receipt]], versions: Sequence[Version]) -> Mapping[str, bool]:
    """Whether the task of each recall in these versions succeeded, by the id of the recall, as far as it is known.

    receipt: Reads the receipt of a recall.
    """
    outcomes = dict[str, bool]()
    for id in [version.recall for version in versions if version.recall]:
        with suppress(NotFound, Unreadable):
            known = [one.success for one in (await receipt(id)).outcomes if one.success is not None]
            if known:
                outcomes[id] = known[0]
    return outcomes


def _nature(lesson: Lesson) -> str:
    """What a fact or a query pair is, and whether it is confirmed; "" for a strategy."""
    if lesson.nature == "strategy":
        return ""
    if lesson.nature == "query_pair":
        return mark(lesson)
    of = f" of the project {lesson.project}" if lesson.project else ""
    return f"fact{of}{'' if lesson.confirmed else f', {UNCONFIRMED}'}"


def inline(text: str) -> str:
    """Foreign text in one line, with Markdown's special characters escaped."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))


def quoted(text: str) -> str:
    """Foreign text as a quotation, so that no line of it can pass for ours."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
