"""Formats lessons for the terminal. Writes nothing itself; cleans text that did not come from the user."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from mulligan.app.teaching import restore_command
from mulligan.bank.exchange.audit import Decided
from mulligan.bank.exchange.lesson_page import LessonPage
from mulligan.bank.recall.notebook import entry_text
from mulligan.bank.recall.prompt_text import held_back, mark
from mulligan.cli.terminal import clean, columns, drawn, on_terminal, one_line
from mulligan.cli.words import agreement_text, count
from mulligan.core.agreement import agreement, latest
from mulligan.core.codec import to_json
from mulligan.core.lesson_history import Link, Receipt, Version, Worth
from mulligan.core.lessons import fields_with
from mulligan.core.protocols import Learned
from mulligan.core.questions import Question
from mulligan.core.records import Json, Lesson, Recall
from mulligan.core.work_queue import Queued
from mulligan.core.worth import Tally
from mulligan.text.figures import when

SHORT = 8
"""The characters of an id in a table; every command takes the beginning of an id."""


def bank_name(agent_id: str) -> str:
    """A bank in a table or a sentence; the unnamed agent's is the default one."""
    return one_line(agent_id, 400) or "default"  # whole: it is what --bank takes


def lesson_rows(lessons: Sequence[Lesson], *, banks: bool) -> str:
    """A line for each lesson. banks: with a column for its bank. What some have in brief has a column, too.

    A terminal has banks by their titles, and states only where a lesson is not active.
    """
    some = dict.fromkeys(name for lesson in lessons for name in LessonPage(lesson).brief)
    states = not on_terminal() or any(LessonPage(lesson).state != "active" for lesson in lessons)
    of_some = (*(("bank",) if banks else ()), *(("state",) if states else ()), "nature", *some)
    headings = ("id", *of_some, "learned from", "uses", "created", "title")
    name_of = LessonPage.bank_title if on_terminal() else bank_name
    rows = [
        (
            lesson.id[:SHORT],
            *((name_of(lesson.agent_id),) if banks else ()),
            *((LessonPage(lesson).state,) if states else ()),
            lesson.nature if lesson.confirmed else f"{lesson.nature}?",
            *(one_line(LessonPage(lesson).brief.get(name, "-"), 30) for name in some),
            lesson.outcome,
            str(lesson.uses),
            when(lesson.created)[:10],
            one_line(lesson.title, 70),
        )
        for lesson in lessons
    ]
    return columns([headings, *rows], shorten=(1,) if banks else ())


def notebook_page(entries: Sequence[Lesson], project: str) -> str:
    """The notebook of a project, with the ids of its entries."""
    head = f"The notebook of {project or 'the unnamed project'}: {count(len(entries), 'fact')}"
    pages = [clean(f"{entry.id[:SHORT]} {entry_text(entry)}") for entry in entries]
    return "\n".join([head, *pages])


def found(recall: Recall, project: str = "", *, of: str = "") -> str:
    """The lessons of a recall in full, best first. project: the current one. of: the bank that is named with each."""
    texts = "\n\n".join(_found(n, lesson, project, of) for n, lesson in enumerate(recall.lessons, 1))
    return drawn([texts], [(r"\d+\. ", "bold")])


def _found(n: int, lesson: Lesson, project: str, of: str) -> str:
    score = "" if lesson.score is None else f"{lesson.score:.2f}  "
    kind = f"from a {lesson.outcome}" if lesson.nature == "strategy" else mark(lesson, project)
    about = ", ".join([kind, *(one_line(text, 30) for text in LessonPage(lesson).brief.values()), lesson.id[:SHORT]])
    bank = f", bank {of}" if of else ""
    head = f"{n}. {score}{one_line(lesson.title, 100)}  ({about}{bank})"
    return "\n".join([head, *("   " + line for text in _texts(lesson) for line in text.splitlines())])


def _texts(lesson: Lesson) -> list[str]:
    """The description and the content, without one that is empty or only repeats the title."""
    texts = (clean(text).strip() for text in (lesson.description, lesson.content))
    return [text for text in texts if text not in ("", clean(lesson.title).strip())]


def about(recall: Recall) -> list[str]:
    """Remarks on a recall: what was held back and how to see it, or that it compared words only."""
    held = held_back(recall)
    lines: list[str] = []
    if held:
        begin = "" if recall.lessons else "Nothing is relevant enough: "
        lines.append(one_line(f"{begin}{held}. See it with --threshold 0.", 300))
    elif not recall.lessons:
        lines.append("No lessons were found.")
    return [*lines, *([f"Found {recall.note}."] if recall.note else [])]


def receipt_story(receipt: Receipt, lessons: Sequence[Lesson]) -> str:
    """A recall with its lessons and outcomes. lessons: those that still exist."""
    known = {lesson.id: one_line(lesson.title, 80) for lesson in lessons}
    given = [f"  {score:.2f}  {id[:SHORT]}  {known.get(id, '')}".rstrip() for id, score in receipt.lessons.items()]
    away = [f"  {score:.2f}  {id[:SHORT]}  {known.get(id, '')}".rstrip() for id, score in receipt.withheld.items()]
    came = [f"  {outcome.work or 'reported'}  {_SUCCESS[outcome.success]}" for outcome in receipt.outcomes]
    filtered = f" ({receipt.filtered} held back)" if receipt.filtered else ""
    return drawn(
        [
            f"{receipt.id}  {when(receipt.at)}",
            f"For:  {one_line(receipt.query, 400)}",
            f"Returned{filtered}:" if given else f"Returned nothing{filtered}.",
            *given,
            *(["Withheld to measure their worth:", *away] if away else []),
            "Outcomes, by the job that learned from them:" if came else "The task's outcome is unknown.",
            *came,
        ]
    )


_SUCCESS = {True: "the task succeeded", False: "the task failed", None: "not known yet"}


def recalls_json(query: str, recalls: Sequence[Recall]) -> Json:
    """The recall that has lessons, else the first, as JSON; of several that have some, their lessons best first."""
    found = [recall for recall in recalls if recall.lessons] or recalls[:1]
    if len(found) == 1:
        return _recall_json(query, found[0])
    lessons = sorted((one for recall in found for one in recall.lessons), key=lambda one: -(one.score or 0.0))
    texts = "\n\n".join(recall.formatted_prompt for recall in found)
    one = replace(found[0], lessons=tuple(lessons), filtered=sum(r.filtered for r in found), formatted_prompt=texts)
    return {**_recall_json(query, one), "recalls": [recall.id for recall in found]}


def _recall_json(query: str, recall: Recall) -> dict[str, Json]:
    return {
        "status": "success" if recall.lessons else "no_memories",
        "recall": recall.id,
        "query": query,
        "threshold": recall.threshold,
        "filtered": recall.filtered,
        "held": None if recall.held is None else to_json(recall.held),
        "note": recall.note,
        "lessons": [to_json(lesson) for lesson in recall.lessons],
        "formatted_prompt": recall.formatted_prompt,
    }


def story(lesson: Lesson, lineage: Mapping[str, Sequence[Lesson]], near: Sequence[tuple[Link, Lesson]]) -> str:
    """A whole lesson: its fields, its text, what it was merged from or into, and similar lessons."""
    known = "\n".join(f"{name + ':':<15}{one_line(text, 400)}" for name, text in LessonPage(lesson).facts(when).items())
    blocks = [one_line(lesson.title, 200), known]
    blocks += _texts(lesson)
    for title, lessons in lineage.items():
        if lessons:
            blocks.append("\n".join([f"{title}:", *(f"  {_named(one)}" for one in lessons)]))
    if near:
        lines = [f"  {link.similarity:.2f}  {_named(other)}" for link, other in near]
        blocks.append("\n".join(["Near-duplicates:", *lines]))
    return drawn(["\n\n".join(blocks)], [(r"[a-z ]{1,14}: ", "dim"), (r"[A-Z][a-z ]+:$", "bold")])


def _named(lesson: Lesson) -> str:
    return f"{lesson.id[:SHORT]}  {lesson.state}, from a {lesson.outcome}: {one_line(lesson.title, 80)}"


def history_rows(versions: Sequence[Version], outcomes: Mapping[str, bool]) -> str:
    """The changes of a lesson, oldest first. outcomes: whether the tasks of recalls succeeded, by the recall's id."""
    rows: list[tuple[str, str, str]] = []
    before: dict[str, Any] = {}
    for version in versions:
        now: dict[str, Any] = {} if version.lesson is None else to_json(version.lesson)
        changes = _changes(before, now) if version.lesson is not None and before else ""
        detail = _detail(version, outcomes)
        rows.append((when(version.at), version.word, one_line("; ".join(filter(None, (changes, detail))), 160)))
        before = now or before
    return columns([("when", "change", "what"), *rows])


_ENDS = {True: "succeeded", False: "failed", None: "outcome unknown"}


def _detail(version: Version, outcomes: Mapping[str, bool]) -> str:
    if version.recall:
        relevance = f", relevance {version.score}" if version.score else ""
        return f"recall {version.recall}{relevance}: {_ENDS[outcomes.get(version.recall)]}"
    if version.details:
        return "; ".join(f"{name}: {_shown(value)}" for name, value in version.details.items())
    return "" if version.detail in (None, {}, []) else json.dumps(version.detail, ensure_ascii=False)


def audit_rows(several: Sequence[Decided], *, banks: bool) -> str:
    """A line for each change. banks: with a column for the lesson's bank."""
    headings = ("when", "by", "change", *(("bank",) if banks else ()), "lesson", "title", "why")
    rows = [
        (
            when(one.at),
            one_line(one.by, 24) or "-",
            one.change,
            *((bank_name(one.agent_id),) if banks else ()),
            one.lesson[:SHORT],
            one_line(one.title, 50),
            one_line(one.why, 60) or "-",
        )
        for one in several
    ]
    return columns([headings, *rows])


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    counted = fields_with("counted")
    changed = [key for key in now if key not in counted and now[key] != before.get(key)]
    return "; ".join(f"{key}: {_shown(before.get(key))} -> {_shown(now[key])}" for key in changed)


def _shown(value: Json) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 60) or "-"


def work_rows(several: Sequence[Queued]) -> str:
    """A line for each piece of pending work."""
    headings = ("work", "kind", "status", "attempts", "since", "agent", "error")
    rows = [
        (
            *(work.id, work.kind, work.status, str(work.attempts), when(work.created)),
            *(one_line(work.agent_id, 24) or "-", one_line(work.remark, 100)),
        )
        for work in several
    ]
    return columns([headings, *rows])


def learned_lines(learned: Learned, agent_id: str | None) -> list[str]:
    """The result of learning, in sentences."""
    parts = (
        (learned.lessons, "new"),
        (learned.folded, "already known"),
        (learned.quarantined, "quarantined: mulligan memory list --quarantined"),
        (learned.retired, f"retired, so not recalled. To bring back: {restore_command(agent_id, learned)}"),
    )
    lines = [f"{count(len(ids), 'lesson')} {what}" for ids, what in parts if ids]
    if learned.nothing_because:
        lines.append(f"Nothing to learn: {clean(learned.nothing_because)}")
    return [*lines, *([f"Failed: {clean(learned.failed)}"] if learned.failed else [])]


def question_json(work: str | None, question: Question) -> Json:
    """A question as JSON: its messages, and the JSON schema of the answer."""
    messages = [{"role": message.role, "text": message.text} for message in question.messages]
    return {"work": work, "messages": messages, "schema": question.schema}


def stats_rows(counts: Mapping[str, Json], agents: Sequence[str], *, here: Sequence[str] = ()) -> str:
    """A line of numbers for each bank. here: those that are marked."""
    headings = ("bank", "active", "quarantined", "retired", "superseded", "links", "recalls", "bytes")
    rows = ((agent, _stats(agent, counts[agent])) for agent in agents)
    return columns([headings, *((f"{name} *" if agent in here else name, *of) for agent, (name, *of) in rows)])


def _stats(agent: str, of: Mapping[str, Any]) -> tuple[str, ...]:
    lessons: Mapping[str, int] = of.get("lessons", {})
    states = (f"{lessons.get(state, 0):,}" for state in ("active", "quarantined", "retired", "superseded"))
    size = sum(int(n) for n in of.get("bytes", {}).values())
    return (bank_name(agent), *states, f"{of.get('links', 0):,}", f"{of.get('recalls', 0):,}", f"{size:,}")


def stats_json(counts: Mapping[str, Json], worth: Sequence[Worth]) -> Json:
    """The figures of each agent, with what its bank and each of its lessons have been worth."""
    of_agent: dict[str, dict[str, Any]] = {agent: {**cast(dict[str, Any], of)} for agent, of in counts.items()}
    for one in worth:
        figures = {**cast(dict[str, Any], to_json(one.tally)), "uplift": None}
        if one.tally.uplift:
            figures["uplift"] = to_json(one.tally.uplift)
        mine = of_agent.setdefault(one.agent_id, {})
        if one.id:
            mine.setdefault("lessons_worth", []).append({"id": one.id, "state": one.state, **figures})
        else:
            mine["worth"] = figures
    return of_agent


def agreements(lessons: Sequence[Lesson], worth: Sequence[Worth]) -> list[str]:
    """How far people's scores of lessons agree with their confidence, and with their measured effect."""
    rated = [(lesson, rating.score) for lesson in lessons for rating in latest(lesson.ratings)]
    effects = {(one.agent_id, one.id): one.tally.uplift.mean for one in worth if one.id and one.tally.uplift}
    measured = [(score, effects[at]) for lesson, score in rated if (at := (lesson.agent_id, lesson.id)) in effects]
    believed = [(score, lesson.confidence) for lesson, score in rated]
    named = {"confidence": believed, "measured effect": measured}
    return [
        agreement_text(f"People's scores of lessons and their {what}", agreement(pairs), len(pairs))
        for what, pairs in named.items()
        if pairs
    ]


def worth_story(worth: Sequence[Worth], lessons: Sequence[Lesson]) -> str:
    """What each bank has been worth, then each measured lesson, those that do harm first."""
    titles = {(lesson.agent_id, lesson.id): lesson.title for lesson in lessons}
    lines: list[str] = []
    for one in worth:
        if not one.id:
            whose = f"{one_line(one.agent_id, 40)}: " if one.agent_id else ""
            lines.append(f"{whose}{count(one.tally.known, 'recall')} with a known outcome, {_rate(one.tally)}.")
            if one.tally.uplift:
                lines.append(f"  Whole bank: {one.tally}.")
    of_lessons = [one for one in worth if one.id]
    measured = sorted(
        (one for one in of_lessons if one.tally.uplift),
        key=lambda one: one.tally.uplift.mean if one.tally.uplift else 0.0,
    )
    heads = ("id", "uplift", "95 %", "shown", "withheld", "state", "title")
    rows = [_worth(one, titles.get((one.agent_id, one.id), "")) for one in measured]
    if rows:
        lines += ["", columns([heads, *rows])]
    if left := len(of_lessons) - len(measured):
        lines.append(f"Not measured: {count(left, 'lesson')} with a known outcome.")
    return drawn(lines)


def not_measured(worth: Sequence[Worth], *, share: float) -> str:
    """What is missing for a measured worth; "" where it is there. share: of recalls whose lessons are withheld."""
    if worth and all(one.tally.uplift for one in worth):
        return ""
    if share > 0:
        return (
            f"A lesson's worth is known once the lesson has been shown and withheld often enough. With withhold = "
            f"{share:g} in [memory], this takes more recalls with known outcomes."
        )
    return "To measure what lessons are worth, withhold them occasionally: set withhold = 0.1 in [memory]."


def _worth(one: Worth, title: str) -> tuple[str, ...]:
    tally, uplift = one.tally, one.tally.uplift
    assert uplift is not None
    counts = (str(tally.known - tally.withheld.count), str(tally.withheld.count))
    state = f"{one.state}{', did harm' if tally.harmful else ''}"
    interval = f"{uplift.low:+.2f} to {uplift.high:+.2f}"
    return one.id[:SHORT], f"{uplift.mean:+.2f}", interval, *counts, state, one_line(title, 60)


def _rate(tally: Tally) -> str:
    return f"{tally.solved / tally.known:.0%} of them successful" if tally.known else "so the success rate is unknown"
