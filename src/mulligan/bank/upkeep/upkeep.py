"""Background upkeep: embed, link and merge stored lessons. Each job is queued work; nothing here drops a lesson."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from mulligan.bank.learn.keeping import Keeper, new_lesson
from mulligan.bank.ports import CountingModel, Ports
from mulligan.bank.recall.index import Index, Indexes
from mulligan.core.errors import BadAnswer
from mulligan.core.lessons import Link
from mulligan.core.protocols import Learned
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.queued import Claim, Queued
from mulligan.core.records import Json, Lesson, Origin

BATCH = 64
MERGING = Sampling(0.7)
NEAREST = 10
"""Lessons that are considered for a merge with a new one."""


class Upkeep:
    def __init__(self, ports: Ports, indexes: Indexes, keeper: Keeper) -> None:
        self._ports, self._indexes, self._keeper = ports, indexes, keeper
        self._lessons, self._queue = ports.memory.lessons, ports.memory.queue

    async def embed(self, work: Queued, claim: Claim) -> None:
        """Makes the vectors of all lessons of the agent that have none of this embedder."""
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
        """Links new lessons with their near-duplicates, and queues a merge where enough lessons are alike."""
        index = await self._indexes.of(work.agent_id)
        links: list[Link] = []
        groups: list[list[str]] = []
        for lesson in await self._keeper.present(work.agent_id, work.payload["lessons"]):
            near, group = await self._alike(index, lesson, work.agent_id)
            links += near
            groups += [group] if group else []
        await self._lessons.link(work.agent_id, links, claim=claim, result={"links": len(links)})
        for group in groups:
            key = "merge:" + ",".join(sorted(group))
            await self._queue.enqueue("merge", work.agent_id, {"lessons": group}, key=key)

    async def _alike(self, index: Index, lesson: Lesson, agent_id: str) -> tuple[list[Link], list[str]]:
        """The links to its near-duplicates, and the ids of the lessons to merge with it, its own included.

        Facts are never merged: a rule that is made of facts loses the values that they are kept for.
        """
        embedder = self._ports.vectors.id
        found = index.nearest(lesson.id, NEAREST)
        if found is None or embedder is None:
            return [], []
        candidates, similarities = found
        scores = {id: float(score) for id, score in zip(candidates.ids, similarities, strict=True) if id != lesson.id}
        near = [candidates.ids[row] for row in self._ports.deduplication.near(lesson, candidates, similarities)]
        links = [Link(lesson.id, id, scores[id], embedder) for id in near if id != lesson.id]
        if not self._ports.settings.auto_merge or lesson.nature == "fact":
            return links, []
        others = sorted(scores, key=lambda id: -scores[id])[:NEAREST]
        alike = [one for one in await self._keeper.present(agent_id, others) if one.nature == "strategy"]
        group = self._ports.merging.group(lesson, [(other, scores[other.id]) for other in alike])
        needs_model = bool(group) and self._ports.merging.ask(group) is not None
        return links, [] if needs_model and self._ports.model is None else [one.id for one in group]

    async def merge(self, work: Queued, claim: Claim) -> Learned:
        """Merges the lessons of this work, unless one of them is not active any more."""
        lessons = await self._keeper.present(work.agent_id, work.payload["lessons"])
        if len(lessons) < len(work.payload["lessons"]):
            why = "one of these lessons is not active any more"
            await self._queue.finish(claim, {"nothing_because": why})
            return Learned(nothing_because=why, work=work.id)
        question = self._ports.merging.ask(lessons)
        if question is None:
            return await self.merged(lessons, None, claim, work.agent_id)
        model = CountingModel(self._ports.model)
        answer = await self._answer(lessons, question, model)
        return await self.merged(lessons, answer, claim, work.agent_id, by=model.model.id, usage=asdict(model.usage))

    async def _answer(self, lessons: Sequence[Lesson], question: Question, model: CountingModel) -> Json:
        """The model's answer; an answer that cannot be used is asked for once more, with the error."""
        answer = (await model.ask(question, MERGING)).content
        try:
            self._ports.merging.take(lessons, answer)
        except BadAnswer as error:
            again = Message("user", f"Your last answer cannot be used: {error} Answer again, as asked.")
            question = replace(question, messages=(*question.messages, again))
            return (await model.ask(question, MERGING)).content
        return answer

    async def merged(
        self,
        lessons: Sequence[Lesson],
        answer: Json,
        claim: Claim,
        agent_id: str,
        *,
        by: str = "",
        usage: Mapping[str, Json] | None = None,
    ) -> Learned:
        """Keeps the lesson that this answer makes of these. Raises `BadAnswer` for an answer that makes none."""
        draft = self._ports.merging.take(lessons, answer)
        origin = Origin("merged", parents=tuple(lesson.id for lesson in lessons), by=by)
        lesson = replace(new_lesson(draft, agent_id), origin=origin, **_common(lessons))
        (entry,) = await self._keeper.entries([lesson])
        held = [lesson.id] if entry.lesson.state == "quarantined" else []
        result = {"lessons": [lesson.id], "quarantined": held, "usage": dict(usage or {})}
        await self._lessons.merge(agent_id, entry, origin.parents, claim=claim, result=result)
        return Learned((lesson.id,), quarantined=tuple(held), work=claim.id)


def _common(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """The fields that a merged lesson takes from all of these: facts of one project give a fact of that project."""
    projects = {lesson.project for lesson in lessons}
    if len(projects) > 1 or any(lesson.nature != "fact" for lesson in lessons):
        return {}
    confirmed = all(lesson.confirmed for lesson in lessons)
    return {"nature": "fact", "project": projects.pop(), "confirmed": confirmed}
