"""Keep lessons: screened, embedded, duplicates folded, near-duplicates skipped or left to be linked."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mulligan.bank.learn.facts import checks_of, claims, contradicts, subject_of, subject_of_check
from mulligan.bank.learn.screening import entry_of, fingerprint
from mulligan.bank.ports import Ports
from mulligan.bank.recall.index import Indexes
from mulligan.core.lessons import Claim, Entry, Selection
from mulligan.core.protocols import Learned
from mulligan.core.records import Json, Lesson, LessonState


def new_lesson(draft: Lesson, agent_id: str, experience: str = "") -> Lesson:
    """The draft with an id, its agent and the time."""
    now = round(time.time(), 3)
    return replace(draft, id=secrets.token_hex(8), agent_id=agent_id, created=now, experience=experience)


class Keeper:
    """Writes the lessons of a bank, for whoever makes them: learning, merging, or a person."""

    def __init__(self, ports: Ports, indexes: Indexes) -> None:
        self._ports, self._indexes = ports, indexes
        self._lessons = ports.memory.lessons

    async def present(
        self, agent_id: str, ids: Sequence[str], states: Sequence[LessonState] = ("active",)
    ) -> list[Lesson]:
        """Those of these lessons that exist and are in one of these states; in any state where none is named."""
        found = await self._lessons.there(agent_id, ids)
        return [lesson for lesson in found if not states or lesson.state in states]

    async def facts_about(self, agent_id: str, project: str, subject: str) -> Sequence[Lesson]:
        """The active facts of a project about a subject."""
        which = Selection(nature="fact", project=project, subject=subject, limit=None)
        return await self._lessons.list(agent_id, which)

    async def entries(self, lessons: Sequence[Lesson], *, named: str = "", by_a_person: bool = False) -> list[Entry]:
        """The lessons as the store takes them, with vectors if the embedder answers.

        Args:
            lessons: Lessons with ids.
            named: The text of the task and its check; commands that stand in it hold no lesson back.
            by_a_person: A person wrote them, so flags hold none of them back.
        """
        quarantine = self._ports.settings.quarantine and not by_a_person
        entries = [entry_of(lesson, quarantine=quarantine, named=named) for lesson in lessons]
        parts = await self._ports.vectors.parts([entry.lesson for entry in entries])
        if parts is None:
            return entries
        embedder = self._ports.vectors.id
        return [
            replace(entry, lesson=replace(entry.lesson, embedder=embedder), vectors=vectors)
            for entry, vectors in zip(entries, parts, strict=True)
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
    ) -> Learned:
        """Keeps new lessons, folds exact duplicates, and queues the search for near-duplicates.

        Args:
            agent_id: Whose lessons they become.
            lessons: Lessons with ids.
            claim: The work that this settles, in the same transaction; None where there is none.
            result: What the work keeps of itself; the ids of the lessons are added to it.
            named: See `entries`.
            by_a_person: See `entries`.
        """
        entries = await self.entries(lessons, named=named, by_a_person=by_a_person)
        entries = [await self._superseding(agent_id, entry) for entry in entries]
        entries, skipped = await self._without_near_duplicates(agent_id, entries)
        quarantined = [entry.lesson.id for entry in entries if entry.lesson.state == "quarantined"]
        ids: list[Json] = [entry.lesson.id for entry in entries]
        result = {**(result or {}), "lessons": ids, "skipped": [*skipped], "quarantined": [*quarantined]}
        kept = await self._lessons.add(agent_id, entries, fold=self._ports.settings.fold, claim=claim, result=result)
        new = [one.id for one in kept if not one.folded]
        await self.queue_links(agent_id, [id for id in new if id not in quarantined])
        known = [*(one.id for one in kept if one.folded), *skipped]
        return await self.report(agent_id, new, known, result, claim.id if claim else None)

    async def queue_links(self, agent_id: str, ids: Sequence[str]) -> None:
        """Queues the search for lessons that nearly say what these say; it needs an embedder."""
        if ids and self._ports.vectors.embedder is not None and not self._ports.settings.paper:
            await self._ports.memory.queue.enqueue("link", agent_id, {"lessons": list(ids)})

    async def report(
        self, agent_id: str, new: Sequence[str], known: Sequence[str], result: Mapping[str, Any], work: str | None
    ) -> Learned:
        """What was learned. Known lessons that are not recalled any more are named as held back or retired."""
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

    async def _superseding(self, agent_id: str, entry: Entry) -> Entry:
        """The entry; a fact names as its parents the known facts that it contradicts, which it supersedes."""
        fact = entry.lesson
        if fact.nature != "fact" or fact.origin.parents:
            return entry
        new = claims(fact)
        subjects = {subject_of(fact), *map(subject_of_check, checks_of(fact))}
        known = [one for subject in subjects for one in await self.facts_about(agent_id, fact.project, subject)]
        old = tuple(dict.fromkeys(one.id for one in known if contradicts(new, claims(one))))
        return replace(entry, lesson=replace(fact, origin=replace(fact.origin, parents=old))) if old else entry

    async def _without_near_duplicates(
        self, agent_id: str, entries: Sequence[Entry]
    ) -> tuple[Sequence[Entry], Sequence[str]]:
        """With near_duplicates = "skip", the entries that no active lesson nearly says, and the ids of those lessons.

        Facts are never skipped: two may differ in the one value that matters. Exact duplicates are left to be folded.
        """
        if self._ports.settings.near_duplicates != "skip":
            return entries, ()
        import numpy as np

        index = await self._indexes.of(agent_id)
        kept: list[Entry] = []
        skipped: list[str] = []
        for entry in entries:
            vector = entry.vectors.get("lesson")
            among = index.candidates("", None if vector is None else np.frombuffer(vector, np.float32))
            cosines = None if entry.lesson.nature == "fact" else among.semantic()
            near = () if cosines is None else self._ports.deduplication.near(entry.lesson, among, cosines)
            lessons = await self.present(agent_id, [among.ids[row] for row in near])
            folds = self._ports.settings.fold and any(fingerprint(one) == entry.fingerprint for one in lessons)
            if near and not folds:
                skipped.append(among.ids[near[0]])
            else:
                kept.append(entry)
        return kept, skipped
