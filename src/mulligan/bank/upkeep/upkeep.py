"""What is done with lessons behind their keeping: vectors, links between near-duplicates, merging those that are alike.

Each is queued work, done by whatever process comes to it. Nothing here drops a lesson.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from mulligan.bank.learn.entries import entry_of, fingerprint
from mulligan.bank.ports import Counting, Ports
from mulligan.bank.recall.index import Index, Indexes
from mulligan.core.errors import BadAnswer
from mulligan.core.lessons import Entry, Link
from mulligan.core.protocols import Learned
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.queued import Claim, Queued
from mulligan.core.records import Json, Lesson, LessonState, Origin

BATCH = 64
MERGING = Sampling(0.7)
ALIKE = 10
"""Lessons that are looked at for merging with a new one (spec A.5)."""


class Tending:
    def __init__(self, ports: Ports, indexes: Indexes) -> None:
        self._ports, self._indexes = ports, indexes
        self._lessons, self._queue = ports.memory.lessons, ports.memory.queue

    async def after(self, agent_id: str, ids: Sequence[str]) -> None:
        """Queues what new lessons need. Without an embedder nothing can be said to be alike."""
        if ids and self._ports.vectors.embedder is not None and not self._ports.settings.paper:
            await self._queue.enqueue("link", agent_id, {"lessons": list(ids)})

    async def embed(self, work: Queued, claim: Claim) -> None:
        """Vectors for all lessons of the agent that have none of this embedder."""
        done, vectors = 0, self._ports.vectors
        while vectors.id and (lessons := await self._lessons.unembedded(work.agent_id, vectors.id, BATCH)):
            made = await vectors.parts(lessons)
            if made is None:
                await self._queue.fail(claim, vectors.why_not, retry_in=None)
                return
            by_id = {lesson.id: parts for lesson, parts in zip(lessons, made, strict=True)}
            await self._lessons.set_vectors(work.agent_id, vectors.id, by_id)
            done += len(lessons)
        await self._queue.finish(claim, {"embedded": done})

    async def link(self, work: Queued, claim: Claim) -> None:
        """Links the new lessons with those that nearly say the same, and queues a merge where enough are alike."""
        index = await self._indexes.of(work.agent_id)
        links: list[Link] = []
        groups: list[list[str]] = []
        for lesson in await self.there(work.agent_id, work.payload["lessons"]):
            near, group = await self._alike(index, lesson, work.agent_id)
            links += near
            groups += [group] if group else []
        await self._lessons.link(work.agent_id, links, claim=claim, result={"links": len(links)})
        for group in groups:
            await self._queue.enqueue(
                "merge", work.agent_id, {"lessons": group}, key="merge:" + ",".join(sorted(group))
            )

    async def _alike(self, index: Index, lesson: Lesson, agent_id: str) -> tuple[list[Link], list[str]]:
        """Its near-duplicates as links, and the ids of those that it could be merged with, itself included."""
        vectors = self._ports.vectors
        found = index.nearest(lesson.id, ALIKE)
        if found is None or vectors.id is None:
            return [], []
        candidates, similarities = found
        near = self._ports.deduplication.near(lesson, candidates, similarities)
        ids = candidates.ids
        links = [
            Link(lesson.id, ids[row], float(similarities[row]), vectors.id) for row in near if ids[row] != lesson.id
        ]
        hosted = self._ports.model is not None
        if not self._ports.settings.auto_merge:
            return links, []
        rows = sorted(range(len(ids)), key=lambda row: -float(similarities[row]))
        others = [row for row in rows if ids[row] != lesson.id][:ALIKE]
        if lesson.nature == "fact":  # a rule that is made of facts has lost what they are kept for
            return links, []
        there = await self.there(agent_id, [ids[row] for row in others])
        alike = [one for one in there if one.nature == "strategy"]
        scores = {ids[row]: float(similarities[row]) for row in others}
        group = self._ports.merging.group(lesson, [(other, scores[other.id]) for other in alike])
        thinks = bool(group) and self._ports.merging.ask(group) is not None
        return links, [] if thinks and not hosted else [one.id for one in group]

    async def merge(self, work: Queued, claim: Claim) -> Learned:
        """Merges these, unless one of them is no longer active."""
        lessons = await self.there(work.agent_id, work.payload["lessons"])
        if len(lessons) < len(work.payload["lessons"]):
            why = "one of these lessons is not active any more"
            await self._queue.finish(claim, {"nothing_because": why})
            return Learned(nothing_because=why, work=work.id)
        question = self._ports.merging.ask(lessons)
        answer: Json = None
        by, usage = "", {}
        if question is not None:
            model = Counting(self._ports.model)
            answer = await self._thought(lessons, question, model)
            by, usage = model.model.id, asdict(model.usage)
        return await self.merged(lessons, answer, claim, work.agent_id, by=by, usage=usage)

    async def _thought(self, lessons: Sequence[Lesson], question: Question, model: Counting) -> Json:
        """The model's answer, asked once more with the error where it cannot be used."""
        answer = (await model.ask(question, MERGING)).content
        try:
            self._ports.merging.take(lessons, answer)
        except BadAnswer as error:
            again = Message("user", f"Your last answer cannot be used: {error} Answer again, as asked.")
            question = replace(question, messages=(*question.messages, again))
            return (await model.ask(question, MERGING)).content
        return answer

    async def merged(
        self, lessons: Sequence[Lesson], answer: Json, claim: Claim, agent_id: str, *, by: str = "", usage: Json = None
    ) -> Learned:
        """Keeps the lesson that was made of these. Raises `BadAnswer` for an answer that makes none."""
        from mulligan.bank.learn.learning import fresh

        draft = self._ports.merging.take(lessons, answer)
        origin = Origin("merged", parents=tuple(lesson.id for lesson in lessons), by=by)
        lesson = fresh(replace(draft, origin=origin, **_shared(lessons)), agent_id)
        (entry,) = await self.entries([lesson])
        held = [lesson.id] if entry.lesson.state == "quarantined" else []
        result = {"lessons": [lesson.id], "quarantined": held, "usage": usage}
        await self._lessons.merge(agent_id, entry, origin.parents, claim=claim, result=result)
        return Learned((lesson.id,), quarantined=tuple(held), work=claim.id)

    async def entries(self, lessons: Sequence[Lesson], *, named: str = "", by_a_person: bool = False) -> list[Entry]:
        """The lessons as they are kept, with vectors where they could be had. What a person wrote is flagged and not
        held back, and so are the commands in `named`, the text of the task and its check."""
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

    async def unlike(self, agent_id: str, entries: Sequence[Entry]) -> tuple[Sequence[Entry], list[str]]:
        """With near_duplicates = "skip", those that no active lesson nearly says, and the ids of those that do."""
        if self._ports.settings.near_duplicates != "skip":
            return entries, []
        import numpy as np

        index = await self._indexes.of(agent_id)
        kept: list[Entry] = []
        skipped: list[str] = []
        for entry in entries:
            if entry.lesson.nature == "fact":  # two facts may differ in the one value that matters
                kept.append(entry)
                continue
            vector = entry.vectors.get("lesson")
            among = index.candidates("", None if vector is None else np.frombuffer(vector, np.float32))
            cosines = among.semantic()
            near = () if cosines is None else self._ports.deduplication.near(entry.lesson, among, cosines)
            if near and not await self._folds(entry, agent_id, [among.ids[row] for row in near]):
                skipped.append(among.ids[near[0]])
            else:
                kept.append(entry)
        return kept, skipped

    async def _folds(self, entry: Entry, agent_id: str, near: Sequence[str]) -> bool:
        """Whether one of these is its equal, letter by letter, and so will count it when it is kept."""
        folds = self._ports.settings.fold
        return folds and any(fingerprint(one) == entry.fingerprint for one in await self.there(agent_id, near))

    async def there(
        self, agent_id: str, ids: Sequence[str], states: Sequence[LessonState] = ("active",)
    ) -> list[Lesson]:
        """Those of these that are there and in one of these states; in any, where none is named."""
        found = await self._lessons.there(agent_id, ids)
        return [lesson for lesson in found if not states or lesson.state in states]


def _shared(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """What a lesson that is made of these keeps of them: facts of one project are a fact of that project."""
    projects = {lesson.project for lesson in lessons}
    if len(projects) > 1 or any(lesson.nature != "fact" for lesson in lessons):
        return {}
    confirmed = all(lesson.confirmed for lesson in lessons)
    return {"nature": "fact", "project": projects.pop(), "confirmed": confirmed}
