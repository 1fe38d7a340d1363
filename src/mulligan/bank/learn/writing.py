"""Write lessons into the store: screen, embed and fold them, and supersede the facts that they replace."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from mulligan.bank.learn.facts import claims, contradicts, keys, names_in, shows_more
from mulligan.bank.learn.screening import addition_of, fingerprint, flags_of
from mulligan.bank.ports import Ports
from mulligan.bank.recall.index import Indexes
from mulligan.bank.recall.terms import embedding_text, search_text, terms_of
from mulligan.core.errors import LessonChanged, StoreError
from mulligan.core.lesson_history import Addition, Change
from mulligan.core.lessons import MAX_OTHER_QUERIES, Selection, lesson_fields, without_counts
from mulligan.core.operations import detail_of, operation
from mulligan.core.protocols import Learned
from mulligan.core.records import Json, Lesson, LessonState, Origin
from mulligan.core.work_queue import Claim

MAX_CONFLICTS = 100
"""How often a change of a lesson is tried again because others change it at the same time."""


class LessonWriter:
    """Writes the lessons of a bank, whether they come from learning, from merging or from a person."""

    def __init__(self, ports: Ports, indexes: Indexes) -> None:
        self._ports, self._indexes = ports, indexes
        self._lessons = ports.memory.lessons

    def new_lesson(self, draft: Lesson, agent_id: str, experience: str = "") -> Lesson:
        """The draft with an id, its agent, its time, and the time when it expires."""
        now = round(time.time(), 3)
        expires = self._ports.settings.expiry(draft) if draft.expires is None else draft.expires
        id = secrets.token_hex(8)
        return replace(draft, id=id, agent_id=agent_id, created=now, experience=experience, expires=expires)

    async def present(
        self, agent_id: str, ids: Sequence[str], states: Sequence[LessonState] = ("active",)
    ) -> list[Lesson]:
        """The lessons with these ids that exist and have one of these states. No states: any state."""
        lessons = await self._lessons.there(agent_id, ids) if ids else ()
        return [lesson for lesson in lessons if not states or lesson.state in states]

    async def facts(self, agent_id: str, project: str, **found_by: Iterable[str]) -> Sequence[Lesson]:
        """The active facts of a project with at least one of these keys. found_by: see `facts.keys`."""
        which = Selection(nature="fact", project=project, keys=keys(agent_id, project, **found_by), limit=None)
        return await self._lessons.list(agent_id, which) if which.keys else ()

    async def entries(
        self, lessons: Sequence[Lesson], *, named: str = "", by_a_person: bool = False, embed: bool = True
    ) -> list[Addition]:
        """The lessons in the form that the store takes, with vectors if the embedder answers.

        Args:
            lessons: Lessons with ids.
            named: The text of the task and its check. Commands in it do not quarantine a lesson.
            by_a_person: Whether a person wrote the lessons. Then flags do not quarantine them.
            embed: Whether vectors are computed. Otherwise existing ones stay.
        """
        quarantine = self._ports.settings.quarantine and not by_a_person
        entries = [addition_of(lesson, quarantine=quarantine, named=named) for lesson in lessons]
        return await self._embedded(entries) if embed else entries

    async def _embedded(self, entries: Sequence[Addition], known: Container[str] = ()) -> list[Addition]:
        """The entries with vectors, if the embedder answers. known: fingerprints of lessons that have vectors."""
        new = [entry for entry in entries if entry.fingerprint not in known]
        parts = await self._ports.vectors.parts([entry.lesson for entry in new]) if new else None
        if parts is None:
            return list(entries)
        vectors = {entry.lesson.id: vectors for entry, vectors in zip(new, parts, strict=True)}
        embedder = self._ports.vectors.id
        return [
            replace(entry, lesson=replace(entry.lesson, embedder=embedder), vectors=vectors[entry.lesson.id])
            if entry.lesson.id in vectors
            else entry
            for entry in entries
        ]

    async def add(
        self,
        agent_id: str,
        lessons: Sequence[Lesson],
        claim: Claim | None = None,
        result: Mapping[str, Json] | None = None,
        *,
        named: str = "",
        by_a_person: bool = False,
        fold: bool = True,
    ) -> Learned:
        """Stores new lessons, folds exact duplicates, and queues the search for near-duplicates.

        Args:
            lessons: Lessons with ids.
            claim: The work that is settled in the same transaction, if any.
            result: The result of that work, to which the ids of the lessons are added.
            named: See `entries`.
            by_a_person: See `entries`.
            fold: False stores duplicates too, whatever the settings say.
        """
        entries = await self.entries(lessons, named=named, by_a_person=by_a_person, embed=False)
        entries, twins = await self._replacing(agent_id, entries)
        entries = await self._embedded(entries, twins if fold and self._ports.settings.fold else ())
        skipped: Sequence[str] = ()
        if fold and self._ports.settings.near_duplicates == "skip":
            entries, skipped = await self._without_near_duplicates(agent_id, entries)
        quarantined = [entry.lesson.id for entry in entries if entry.lesson.state == "quarantined"]
        ids: list[Json] = [entry.lesson.id for entry in entries]
        result = {**(result or {}), "lessons": ids, "skipped": [*skipped], "quarantined": [*quarantined]}
        fold = fold and self._ports.settings.fold
        facts, content = {"bank": agent_id, "lessons": len(entries)}, {"records": [entry.lesson for entry in entries]}
        with operation("keep" if fold else "create", facts=facts, content=content) as keeping:
            kept = await self._lessons.add(agent_id, entries, fold=fold, claim=claim, result=result)
            new = [one.id for one in kept if not one.folded]
            held = len(set(new).intersection(quarantined))
            if len(kept) == 1:
                keeping.facts["lesson"] = kept[0].id
            keeping.facts |= {"new": len(new) - held, "quarantined": held, "known": len(kept) - len(new) + len(skipped)}
        for entry, one in zip(entries, kept, strict=True):
            if one.folded and entry.lesson.state == "active":
                await self.remember_task(agent_id, one.id, entry.lesson.query)
        if self._ports.vectors.id and any(one.lesson.id in new and one.fingerprint in twins for one in entries):
            # Its twin has been retired since, or an earlier version stored it with another fingerprint.
            await self._ports.memory.queue.enqueue("embed", agent_id, {})
        await self.queue_links(agent_id, [id for id in new if id not in quarantined])
        known = [*(one.id for one in kept if one.folded), *skipped]
        return await self.report(agent_id, new, known, result, claim.id if claim else None)

    async def queue_links(self, agent_id: str, ids: Sequence[str]) -> None:
        """Queues the search for near-duplicates of these lessons, if there is an embedder."""
        if ids and self._ports.vectors.embedder is not None and not self._ports.settings.paper:
            await self._ports.memory.queue.enqueue("link", agent_id, {"lessons": list(ids)})

    async def report(
        self, agent_id: str, new: Sequence[str], known: Sequence[str], result: Mapping[str, Any], work: str | None
    ) -> Learned:
        """The result of learning. Known lessons that are no longer recalled are listed as quarantined or retired."""
        known = [id for id in dict.fromkeys(known) if id not in new]
        held = set(new).intersection(result.get("quarantined", ()))
        retired: list[str] = []
        for lesson in await self.present(agent_id, known, ()):
            while lesson.superseded_by:
                (lesson,) = await self.present(agent_id, [lesson.superseded_by], ()) or [
                    replace(lesson, superseded_by=None)
                ]
            if lesson.state == "quarantined":
                held.add(lesson.id)
            elif lesson.state == "retired":
                retired.append(lesson.id)
        return Learned(
            tuple(new),
            tuple(known),
            tuple(id for id in (*new, *known) if id in held),
            tuple(dict.fromkeys(retired)),
            result.get("success"),
            str(result.get("reason", "")),
            str(result.get("nothing_because", "")),
            work=work,
            by=str(result.get("by", "")),
        )

    async def change(
        self,
        agent_id: str,
        id: str,
        change: Change,
        changed: Callable[[Lesson], Lesson],
        *,
        detail: Json = None,
        by_a_person: bool = False,
    ) -> Lesson:
        """Changes a lesson and returns the result. Changes that others make at the same time are kept.

        Args:
            change: The name of the change in the lesson's history.
            changed: Returns the changed lesson, given the current one. It is called again if the lesson changes before
                the result is written. If it returns the lesson unchanged, nothing is written.
            detail: Details for the history.
            by_a_person: See `entries`.
        """
        with operation("change", facts={"bank": agent_id, "lesson": id, "change": change}) as changing:
            for _ in range(MAX_CONFLICTS):
                (before,) = await self._lessons.get(agent_id, [id])
                after, entry = changed(before), None
                if after == before:
                    return before
                if not _same_entry(before, after):
                    same = embedding_text(after) == embedding_text(before) and after.query == before.query
                    embed = not same or not before.embedder
                    (entry,) = await self.entries([after], by_a_person=by_a_person, embed=embed)
                    after = entry.lesson
                with suppress(LessonChanged):
                    await self._lessons.change(agent_id, after, change, entry=entry, detail=detail, before=before)
                    changing.content["records"] = [lesson] = await self._lessons.get(agent_id, [id])
                    return lesson
            raise LessonChanged(f"Other processes keep changing lesson {id}. Try again.")

    async def receive(self, agent_id: str, lesson: Lesson, before: Lesson | None) -> Lesson:
        """See `Bank.receive`."""
        if before is None:
            new = replace(self.new_lesson(lesson, agent_id, lesson.id), id=lesson.id, expires=lesson.expires)
            new = replace(new, state="quarantined", origin=Origin("imported"))
            await self._lessons.add(agent_id, await self.entries([new]), fold=False)
            return (await self._lessons.get(agent_id, [lesson.id]))[0]
        fields = {name: getattr(lesson, name) for name in lesson_fields()}

        def received(now: Lesson) -> Lesson:
            if without_counts(now) != without_counts(before):
                raise LessonChanged(f"Lesson {now.id} was changed in the meantime. Try again.")
            return replace(now, **fields, state="quarantined")

        return await self.change(agent_id, lesson.id, "quarantined", received)

    async def doubt(self, fact: Lesson, why: str) -> None:
        """Marks an active fact as to be checked."""

        def doubted(now: Lesson) -> Lesson:
            return replace(now, to_check=why) if now.state == "active" else now

        await self.change(fact.agent_id, fact.id, "doubted", doubted, detail=detail_of(why))

    async def remember_task(self, agent_id: str, id: str, query: str) -> None:
        """Makes an active lesson found by the words of this task, too, unless the task earns flags.

        query: the task of its twin, as screened.
        """
        if not query.strip() or flags_of(query):
            return

        def remembered(now: Lesson) -> Lesson:
            is_full = len(now.other_queries) >= MAX_OTHER_QUERIES
            if is_full or now.state != "active" or now.nature == "query_pair" or is_task_of(now, query):
                return now
            return replace(now, other_queries=(*now.other_queries, query))

        # The lesson was screened when it was added, so that its flags must not quarantine it now.
        detail: Json = {"also found by": query}
        with suppress(StoreError):  # it was purged or superseded meanwhile
            await self.change(agent_id, id, "folded", remembered, detail=detail, by_a_person=True)

    async def _replacing(self, agent_id: str, entries: Sequence[Addition]) -> tuple[list[Addition], set[str]]:
        """The entries with the facts that they replace as parents, and the fingerprints of active facts equal to one.

        A fact replaces known facts that are not newer, if it contradicts them or adds a passing attempt to them, and is
        found by the words of their tasks, too. Other facts that depend on a replaced one, by its id or by a name that
        is gone, are marked as to be checked.
        """
        entries, twins = list(entries), set[str]()
        for n, entry in enumerate(entries):
            fact = entry.lesson
            if fact.nature == "fact" and not fact.origin.parents:
                new = claims(fact)
                known = await self.facts(agent_id, fact.project, about=new)
                twins.update({entry.fingerprint}.intersection(map(fingerprint, known)))
                known = [one for one in known if one.time <= fact.time]
                old = [one for one in known if contradicts(new, claims(one)) or shows_more(fact, one)]
                parents = tuple(dict.fromkeys(one.id for one in old))
                others = other_queries(old, fact.query)
                fact = replace(fact, origin=replace(fact.origin, parents=parents), other_queries=others)
                entries[n] = replace(entry, lesson=fact, terms=terms_of(search_text(fact)))
        for fact in (one.lesson for one in entries if one.lesson.state == "active"):
            replaced = await self.present(agent_id, fact.origin.parents) if fact.nature == "fact" else []
            if not replaced:
                continue
            gone = names_in(*replaced) - names_in(fact)
            for other in await self.facts(agent_id, fact.project, names=gone, bases=fact.origin.parents):
                rests = set(other.rests_on).intersection(fact.origin.parents) or names_in(other) & gone
                if rests and other.id not in fact.origin.parents:
                    await self.doubt(other, f"it depends on {replaced[0].id[:8]}, which was replaced")
        return entries, twins

    async def _without_near_duplicates(
        self, agent_id: str, entries: Sequence[Addition]
    ) -> tuple[Sequence[Addition], Sequence[str]]:
        """The entries without near-duplicates of active lessons, and the ids of the lessons that these repeat.

        Only strategies are left out, because two facts may differ in the one value that matters. Exact duplicates stay,
        to be folded. The lessons that they repeat are also found by their tasks.
        """
        index = await self._indexes.of(agent_id)
        kept: list[Addition] = []
        skipped: list[str] = []
        for entry in entries:
            vector = entry.vectors.get("lesson")
            candidates = index.candidates("", None if vector is None else np.frombuffer(vector, np.float32))
            cosines = candidates.semantic() if entry.lesson.nature == "strategy" else None
            near = () if cosines is None else self._ports.deduplication.near(entry.lesson, candidates, cosines)
            lessons = await self.present(agent_id, [candidates.ids[row] for row in near])
            folds = self._ports.settings.fold and any(fingerprint(one) == entry.fingerprint for one in lessons)
            if near and not folds:
                skipped.append(candidates.ids[near[0]])
                await self.remember_task(agent_id, skipped[-1], entry.lesson.query)
            else:
                kept.append(entry)
        return kept, skipped


def other_queries(lessons: Iterable[Lesson], query: str) -> tuple[str, ...]:
    """The tasks of these lessons besides `query`, as the `other_queries` of the lesson that replaces them."""
    tasks = dict.fromkeys(task for lesson in lessons for task in (lesson.query, *lesson.other_queries))
    return tuple(task for task in tasks if task.strip() and task != query)[:MAX_OTHER_QUERIES]


def is_task_of(lesson: Lesson, query: str) -> bool:
    """Whether the lesson is found by the words of this task already."""
    return query.split() in [task.split() for task in (lesson.query, *lesson.other_queries)]


def _same_entry(before: Lesson, after: Lesson) -> bool:
    """Whether the text of the lesson, and all that it is found by, is unchanged."""
    outcome = after.outcome if before.nature == "fact" else before.outcome
    free = {
        name: getattr(after, name)
        for name in ("state", "pinned", "ratings", "confirmed", "confidence", "to_check", "date", "expires")
    }
    return replace(before, outcome=outcome, **free) == after
