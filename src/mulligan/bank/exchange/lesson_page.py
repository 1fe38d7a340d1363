"""Lessons for a person to read: all that is known of one, as a page, and a whole bank as Markdown.

What a lesson says stands in quotes: it is to be read, not obeyed.
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
from mulligan.core.errors import NotFound, Unreadable
from mulligan.core.lesson_history import Archive, Link, Receipt, Version
from mulligan.core.lesson_store import LessonReader
from mulligan.core.lessons import ADMISSION_NOTE, WAITS_FOR_REPLAY, fields_with
from mulligan.core.records import Lesson
from mulligan.text.plain import count
from mulligan.text.secrets import mask
from mulligan.text.times import moment

_OURS = ("id", "agent", "state", "flags", "learned from", "episode", "created")
"""Facts that are no words of whoever the lesson is from."""


LEVEL = "abstraction_level"
"""What the context of a merged lesson calls how general it is."""
GENERALITY: Mapping[str, str] = {
    "0": "the same advice",
    "1": "a rule for this kind of task",
    "2": "a principle beyond it",
}


class Shelf(Protocol):
    """The lessons of one agent, or of all: a bank is one."""

    async def get(self, id: str) -> Lesson: ...
    async def links(self, id: str) -> Sequence[Link]: ...


@dataclass(frozen=True)
class BankShelf:
    """A shelf that needs no bank. Raises `NotFound`, for another agent's lesson too."""

    lessons: LessonReader
    agent_id: str | None

    async def get(self, id: str) -> Lesson:
        return (await self.lessons.get(self.agent_id, [id]))[0]

    async def links(self, id: str) -> Sequence[Link]:
        return await self.lessons.links(self.agent_id, id)


@dataclass(frozen=True)
class RelatedLessons:
    """lineage: what it was merged from and into (of a fact: whose place it took, and what took its), as far as they are
    still there. near: its near-duplicates."""

    lineage: Mapping[str, Sequence[Lesson]]
    near: Sequence[tuple[Link, Lesson]]


async def around(shelf: Shelf, lesson: Lesson) -> RelatedLessons:
    into = (lesson.superseded_by,) if lesson.superseded_by else ()
    fact = lesson.nature == "fact"
    before, after = ("In place of", "Replaced by") if fact else ("Merged from", "Merged into")
    lineage = {before: await existing(shelf, lesson.origin.parents), after: await existing(shelf, into)}
    near: list[tuple[Link, Lesson]] = []
    for link in await shelf.links(lesson.id):
        near += [(link, other) for other in await existing(shelf, (link.b if link.a == lesson.id else link.a,))]
    return RelatedLessons(lineage, near)


async def existing(shelf: Shelf, ids: Sequence[str]) -> Sequence[Lesson]:
    found: list[Lesson] = []
    for id in ids:
        with suppress(NotFound, Unreadable):  # purged, of another agent, or damaged
            found.append(await shelf.get(id))
    return found


async def lesson_page(shelf: Shelf, id: str) -> str:
    """The lesson as Markdown, secrets masked. What is quarantined is withheld. Raises `NotFound`."""
    lesson = await shelf.get(id)
    return mask("\n\n".join(_page(lesson, await around(shelf, lesson)))) + "\n"


def _page(lesson: Lesson, its: RelatedLessons) -> Iterator[str]:
    yield f"# Lesson {inline(lesson.id)}"
    yield "All of this was learned from an earlier task: these are notes, not instructions."
    held = lesson.state == "quarantined"
    known = {name: text for name, text in facts(lesson, moment).items() if not held or name in _OURS}
    yield "\n".join(f"- **{name}:** {inline(text)}" for name, text in known.items())
    if held:
        why = (
            "it waits for a replay"
            if WAITS_FOR_REPLAY in lesson.flags
            else "its text may be an instruction in disguise"
        )
        yield f"Quarantined, because {why}: mulligan memory show {inline(lesson.id)}"
        return
    for text in (lesson.title, lesson.description, lesson.content):
        if text.strip():
            yield quoted(text)
    for name, lessons in its.lineage.items():
        if lessons:
            yield "\n".join([f"{name}:", "", *(f"- {_named(one)}" for one in lessons)])
    if its.near:
        lines = [f"- {link.similarity:.2f} {_named(other)}" for link, other in its.near]
        yield "\n".join(["Nearly says the same:", "", *lines])


def _named(lesson: Lesson) -> str:
    title = "(quarantined)" if lesson.state == "quarantined" else lesson.title
    return f"`{inline(lesson.id)}` {lesson.state}, from a {lesson.outcome}: {inline(title)}"


# --- words and blocks ----------------------------------------------------------------------------------------------


def markdown(archives: Sequence[Archive]) -> str:
    """The lessons for a person to read, agent by agent, newest first; their texts stand in quotes."""
    blocks: list[str] = []
    for archive in archives:
        blocks += [f"# Lessons of {inline(archive.agent_id)}" if archive.agent_id else "# Lessons"]
        for lesson in sorted(archive.lessons, key=lambda lesson: -lesson.created):
            blocks += _story(lesson)
    return "\n\n".join(blocks) + "\n"


def _story(lesson: Lesson) -> Iterator[str]:
    yield f"## {inline(lesson.title)}"
    yield "\n".join(f"- **{name}:** {inline(text)}" for name, text in facts(lesson, moment).items())
    if lesson.description:
        yield quoted(lesson.description)
    yield quoted(lesson.content)


def facts(lesson: Lesson, when: Callable[[float], str]) -> dict[str, str]:
    """The properties of a lesson besides its text, by their names in words; empty ones are left out.

    Those that are worded together stand here; all others are the fields with a label.

    Args:
        when: Puts a time into words: `moment` for pages that are read elsewhere too.
    """
    origin, steps = lesson.origin, ", ".join(map(str, lesson.origin.steps))
    trial = f", trial {origin.trial}" if origin.trial is not None else ""
    gone = " (run removed)" if origin.removed else ""
    shown = replace(
        lesson, context={name: value for name, value in lesson.context.items() if name not in (LEVEL, ADMISSION_NOTE)}
    )
    texts = {
        "id": lesson.id,
        "agent": lesson.agent_id,
        "state": f"{state_word(lesson)}{', pinned' if lesson.pinned else ''}",
        "nature": _nature(lesson),
        **{label: _text(getattr(shown, name)) for name, label in fields_with("label").items()},
        "origin": f"{origin.kind}{f' by {origin.by}' if origin.by else ''}",
        "episode": f"{origin.episode}{trial}{f', steps {steps}' if steps else ''}{gone}" if origin.episode else "",
        "merged from" if origin.kind != "extracted" else "in place of": ", ".join(origin.parents),
        "judged": origin.reason,
        "confidence": f"{lesson.confidence:g}",
        "created": when(lesson.created),
        "as of": "" if lesson.date is None else when(lesson.date),
        "expires": ""
        if lesson.expires is None
        else when(lesson.expires) + (" (expired)" if lesson.is_expired(time.time()) else ""),
        "recalled": f"{count(lesson.uses, 'time')}, last {when(lesson.last_used)}" if lesson.last_used else "never",
        "stands for": _support(lesson),
        ADMISSION_NOTE: str(lesson.context.get(ADMISSION_NOTE, "")),
        "how general": GENERALITY.get(str(lesson.context.get(LEVEL, "")), ""),
    }
    return {name: text for name, text in texts.items() if text}


def state_word(lesson: Lesson) -> str:
    """The state of a lesson, or that it has expired."""
    return "expired" if lesson.state == "active" and lesson.is_expired(time.time()) else lesson.state


def brief(lesson: Lesson) -> dict[str, str]:
    """What lists and recalls say of a lesson beside its nature and outcome, by the names of the fields."""
    return {name: text for name in fields_with("brief") if (text := _text(getattr(lesson, name)))}


def _text(value: Any) -> str:
    """The value of a field in words; "" for an empty one."""
    if isinstance(value, tuple):
        return ", ".join(map(str, cast(tuple[Any, ...], value)))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(one)}" for name, one in cast(Mapping[str, Any], value).items())
    if isinstance(value, list):
        return "; ".join(map(_text, cast(list[Any], value)))
    return json.dumps(value) if value is not None and not isinstance(value, str) else value or ""


def _support(lesson: Lesson) -> str:
    """How many lessons it stands for: those that were merged into it differ, those that were folded into it do not."""
    if lesson.support <= 1:
        return ""
    return f"{lesson.support} {'lessons, merged into one' if lesson.origin.kind == 'merged' else 'equal lessons'}"


async def outcomes_of(receipt: Callable[[str], Awaitable[Receipt]], versions: Sequence[Version]) -> Mapping[str, bool]:
    """Whether the tasks succeeded that these versions' recalls were for, by the recall, as far as that is known.

    receipt: reads the receipt of a recall.
    """
    known = dict[str, bool]()
    for id in filter(None, (one.recall for one in versions)):
        with suppress(NotFound, Unreadable):
            found = [one.success for one in (await receipt(id)).outcomes if one.success is not None]
            known |= {id: found[0]} if found else {}
    return known


def bank_title(agent_id: str) -> str:
    """The name of a bank as people read it: a project's by its folder."""
    if not agent_id:
        return "default"
    kind, _, path = agent_id.partition(":")
    folder = PurePosixPath(path.removesuffix("/.git")).name if kind == "project" else ""
    return f"project {folder}" if folder else agent_id


def _nature(lesson: Lesson) -> str:
    """What a fact or a query pair is, and whether it is sure; nothing for a strategy."""
    if lesson.nature == "strategy":
        return ""
    if lesson.nature == "query_pair":
        return mark(lesson)
    of = f" of the project {lesson.project}" if lesson.project else ""
    return f"fact{of}{'' if lesson.confirmed else f', {UNCONFIRMED}'}"


def inline(text: str) -> str:
    """Foreign text in one line, with what Markdown would act on escaped."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", " ".join(text.split()))


def quoted(text: str) -> str:
    """Foreign text as a quotation, so that no line of it passes for ours."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
