"""Background upkeep: embed, link and merge stored lessons. Each job is queued work; nothing here drops a lesson."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from mulligan.bank.learn.admission import REPLAY
from mulligan.bank.learn.writing import LessonWriter, other_queries
from mulligan.bank.ports import LEASE, NO_MODEL, Ports
from mulligan.bank.recall.index import Index, Indexes
from mulligan.core.errors import BadAnswer, InvalidInput, LeaseLost, MulliganError, StoreError
from mulligan.core.lesson_history import Link
from mulligan.core.lessons import Selection
from mulligan.core.operations import acting_as, asked, operation
from mulligan.core.optional import AskingMerging, with_defaults
from mulligan.core.protocols import Learned
from mulligan.core.questions import Message
from mulligan.core.records import Json, Lesson, Origin
from mulligan.core.work_queue import Claim, Queued
from mulligan.text.secrets import mask

BATCH = 64
"""Lessons that are embedded at once."""
RELATED = 50
"""How many neighbours of each lesson are compared, to find groups of related lessons."""
NEAREST = 10
"""How many neighbours of a new lesson are considered for a merge with it."""
RETRY = 30.0
"""Seconds until a job is tried again; doubled after each further failure."""
MIN_PAUSE, MAX_PAUSE = 0.05, 20.0
"""Seconds between two looks at jobs that are not due yet."""

OnEmbedded = Callable[[int, int], None]
"""Called while vectors are computed: how many lessons are done, and how many had no vector at the beginning."""
EVERYTHING = 1 << 30
"""A limit that no bank reaches."""

STOPPED = "the process was stopped"
log = logging.getLogger("mulligan")


class Upkeep:
    """Looks after the stored lessons of an agent. Jobs of the queue call `embed`, `link` and `merge`."""

    def __init__(self, ports: Ports, indexes: Indexes, writer: LessonWriter) -> None:
        self._ports, self._indexes, self._writer = ports, indexes, writer
        self._lessons, self._queue = ports.memory.lessons, ports.memory.queue
        self.on_embedded: OnEmbedded | None = None

    async def embed(self, work: Queued, claim: Claim) -> None:
        """Computes the vectors of all lessons of the agent that have none of the current embedder."""
        done, total, vectors = 0, 0, self._ports.vectors
        if self.on_embedded and vectors.id:
            total = len(await self._lessons.unembedded(work.agent_id, vectors.id, EVERYTHING))
            self.on_embedded(0, total)
        while vectors.id and (lessons := await self._lessons.unembedded(work.agent_id, vectors.id, BATCH)):
            parts_of = await vectors.parts(lessons)
            if parts_of is None:
                await self._queue.fail(claim, vectors.why_not, retry_in=None)
                return
            by_id = {lesson.id: parts for lesson, parts in zip(lessons, parts_of, strict=True)}
            await self._lessons.set_vectors(work.agent_id, vectors.id, by_id, before=lessons)
            done += len(lessons)
            if self.on_embedded:
                self.on_embedded(done, max(done, total))
        await self._queue.finish(claim, {"embedded": done})

    async def link(self, work: Queued, claim: Claim) -> None:
        """Links new lessons with their near-duplicates, and queues a merge where enough lessons are alike."""
        index = await self._indexes.of(work.agent_id)
        links: list[Link] = []
        groups: list[list[str]] = []
        for lesson in await self._writer.present(work.agent_id, work.payload["lessons"]):
            near, group = await self._neighbours(index, lesson, work.agent_id)
            links += near
            groups += [group] if group else []
        await self._lessons.link(work.agent_id, links, claim=claim, result={"links": len(links)})
        for group in groups:
            key = "merge:" + ",".join(sorted(group))
            await self._queue.enqueue("merge", work.agent_id, {"lessons": group}, key=key)

    async def _neighbours(self, index: Index, lesson: Lesson, agent_id: str) -> tuple[list[Link], list[str]]:
        """The links of a lesson to its near-duplicates, and the ids of the lessons to merge, including its own.

        Facts are never merged, because a rule made of facts loses the values that they are for. Query pairs are neither
        linked nor merged.
        """
        embedder = self._ports.vectors.id
        nearest = None if lesson.nature == "query_pair" else index.nearest(lesson.id, NEAREST)
        if nearest is None or embedder is None:
            return [], []
        candidates, similarities = nearest
        scores = {id: float(score) for id, score in zip(candidates.ids, similarities, strict=True) if id != lesson.id}
        near = [candidates.ids[row] for row in self._ports.deduplication.near(lesson, candidates, similarities)]
        links = [Link(lesson.id, id, scores[id], embedder) for id in near if id != lesson.id]
        if not self._ports.settings.auto_merge or lesson.nature != "strategy":
            return links, []
        others = sorted(scores, key=lambda id: -scores[id])[:NEAREST]
        strategies = [one for one in await self._writer.present(agent_id, others) if one.nature == "strategy"]
        group = self._ports.merging.group(lesson, [(other, scores[other.id]) for other in strategies])
        needs_model = bool(group) and self._ports.merging.ask(group) is not None
        return links, [] if needs_model and self._ports.model is None else [one.id for one in group]

    async def related(self, agent_id: str, similarity: float, least: int) -> list[tuple[Lesson, ...]]:
        """Groups of active strategies that may follow from one rule, the largest first. No lesson is in two groups.

        Any two lessons of a group are at least this similar, and have the same outcome and kind of task.
        """
        index = await self._indexes.of(agent_id)
        lessons = await self._lessons.list(agent_id, Selection(nature="strategy", limit=None))
        near: dict[str, dict[str, float]] = {}
        for lesson in lessons:
            if nearest := index.nearest(lesson.id, RELATED):
                ranking, cosines = nearest
                scores = zip(ranking.ids, cosines, strict=True)
                near[lesson.id] = {id: float(score) for id, score in scores if score >= similarity}
        by_id = {lesson.id: lesson for lesson in lessons}
        groups: list[tuple[Lesson, ...]] = []
        grouped: set[str] = set()
        for first in sorted(lessons, key=lambda one: (one.created, one.id)):
            if first.id in grouped:
                continue
            group = [first]
            for id in sorted(near.get(first.id, {}), key=lambda id: -near[first.id][id]):
                other = by_id.get(id)
                if other is None or id in grouped or (other.outcome, other.kind) != (first.outcome, first.kind):
                    continue
                if all(id in near.get(one.id, {}) or one.id in near.get(id, {}) for one in group):
                    group.append(other)
            if len(group) >= least:
                groups.append(tuple(group))
                grouped.update(one.id for one in group)
        return sorted(groups, key=len, reverse=True)

    async def merge(self, work: Queued, claim: Claim) -> Learned:
        """Merges the lessons of this work, unless one of them is no longer active."""
        lessons = await self._writer.present(work.agent_id, work.payload["lessons"])
        if len(lessons) < len(work.payload["lessons"]):
            why = "one of these lessons is no longer active"
            await self._queue.finish(claim, {"nothing_because": why})
            return Learned(nothing_because=why, work=work.id)
        question = self._ports.merging.ask(lessons)
        if question is None:
            return await self.merged(lessons, None, claim, work.agent_id)
        model = self._ports.model
        if model is None:
            raise InvalidInput(NO_MODEL)
        sampling = with_defaults(self._ports.merging, AskingMerging).sampling
        answer = await asked(model, question, sampling, "merging")
        usage = answer.usage
        try:
            self._ports.merging.take(lessons, answer.content)
        except BadAnswer as error:  # ask once more
            again = Message("user", f"Your last answer cannot be used: {error} Answer again, as asked.")
            answer = await asked(model, replace(question, messages=(*question.messages, again)), sampling, "merging")
            usage += answer.usage
        return await self.merged(lessons, answer.content, claim, work.agent_id, by=model.id, usage=asdict(usage))

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
        """Stores the merged lesson in this answer. Raises `BadAnswer` if the answer cannot be used."""
        draft = self._ports.merging.take(lessons, answer)
        origin = Origin("merged", parents=tuple(lesson.id for lesson in lessons), by=by)
        tasks = other_queries(lessons, draft.query)
        lesson = replace(
            self._writer.new_lesson(draft, agent_id), origin=origin, other_queries=tasks, **_common(lessons)
        )
        (entry,) = await self._writer.entries([lesson])
        quarantined = [lesson.id] if entry.lesson.state == "quarantined" else []
        result = {"lessons": [lesson.id], "quarantined": quarantined, "usage": dict(usage or {})}
        facts, content = {"bank": agent_id, "lesson": lesson.id, "lessons": 1}, {"records": [lesson]}
        with operation("keep", facts=facts, content=content):
            await self._lessons.merge(agent_id, entry, origin.parents, claim=claim, result=result, before=lessons)
        return Learned((lesson.id,), quarantined=tuple(quarantined), work=claim.id)


def _common(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """The fields that a merged lesson shares with all of these lessons.

    Facts of one project give a fact of that project, and lessons of one layer a lesson of that layer. The merged lesson
    expires with the last of them.
    """
    projects, layers = {lesson.project for lesson in lessons}, {lesson.layer for lesson in lessons}
    ends = [lesson.expires for lesson in lessons if lesson.expires is not None]
    common: dict[str, Any] = {
        "layer": layers.pop() if len(layers) == 1 else "",
        "expires": max(ends) if len(ends) == len(lessons) else None,
    }
    if len(projects) > 1 or any(lesson.nature != "fact" for lesson in lessons):
        return common
    confirmed = all(lesson.confirmed for lesson in lessons)
    return {**common, "nature": "fact", "project": projects.pop(), "confirmed": confirmed}


class Worker:
    """Does the jobs of the queue, whichever process accepted them. jobs: the function for each kind of job."""

    def __init__(self, ports: Ports, jobs: Mapping[str, Callable[[Queued, Claim], Awaitable[object]]]) -> None:
        self._ports, self._jobs = ports, jobs
        self._queue = ports.memory.queue
        self._background: asyncio.Task[None] | None = None
        self._bell, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._leaving = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of jobs that can be done here. Some need a model, some an embedder, one needs recorded runs."""
        unavailable = (
            *((REPLAY,) if self._ports.replays is None else ()),
            *(("extract", "batch") if self._ports.model is None else ()),
            *(("embed", "link") if self._ports.vectors.embedder is None else ()),
        )
        return tuple(kind for kind in self._jobs if kind not in unavailable)

    async def work(self, seconds: float | None = None) -> int:
        """Works until no job is due or the time is up, and returns how many jobs were done.

        A job that has begun is finished, and jobs that are done in the background are waited for.
        """
        until = None if seconds is None else time.monotonic() + seconds
        done = await self._work(until)
        while await self._background_finished(until):
            done += await self._work(until)
        return done

    async def _work(self, until: float | None = None) -> int:
        done = 0
        while until is None or time.monotonic() < until:
            claimed = await self._queue.claim(self._ports.owner, LEASE, self.kinds)
            if claimed is None:
                break
            await self._do(*claimed)
            done += 1
        return done

    async def _background_finished(self, until: float | None) -> bool:
        """Waits for jobs that are done in the background. Returns False if there are none, or the time was up."""
        loop = self._background and self._background.get_loop()
        if self._idle.is_set() or loop is not asyncio.get_running_loop():
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(None if until is None else until - time.monotonic()):
                await self._idle.wait()
        return self._idle.is_set()

    def wake(self, *, once: bool = False) -> None:
        """Starts to work in the background, unless it does already. once: only if it never has."""
        if once and self._background is not None:
            return
        if self._background is None or self._background.get_loop() is asyncio.get_running_loop():
            self._bell.set()
        elif self._background.get_loop().is_running():  # the bank is used from several event loops
            self._background.get_loop().call_soon_threadsafe(self._bell.set)
        if self._background is None or self._background.done():
            self._bell, self._idle, self._leaving = asyncio.Event(), asyncio.Event(), False
            self._idle.set()
            self._background = asyncio.create_task(self._attend())

    async def leave(self, seconds: float) -> None:
        """Does the jobs that are due, for at most this long, and stops."""
        if self._background is None:
            return
        loop = self._background.get_loop()
        if loop is not asyncio.get_running_loop():  # the bank is used from several event loops
            if loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.leave(seconds), loop))
            return
        self._leaving = True
        self._bell.set()
        await asyncio.wait([self._background], timeout=seconds)
        self._background.cancel()
        await asyncio.gather(self._background, return_exceptions=True)

    async def _attend(self) -> None:
        """Works until no job is left: tries failed jobs again when they are due, and takes over those of dead
        processes.

        A `wake` during the last look is noticed. If the store fails, it is asked again later.
        """
        while True:
            self._bell.clear()
            self._idle.clear()
            try:
                await self._work()
                due = await self._queue.due(self.kinds)
            except StoreError as error:
                log.warning("pending jobs are paused: %s", error)
                due = time.time() + MAX_PAUSE
            finally:
                self._idle.set()
            if self._leaving or (due is None and not self._bell.is_set()):
                return
            with suppress(TimeoutError):  # not wait_for: in Python 3.11 it loses a cancellation as the bell rings
                async with asyncio.timeout(min(max((due or 0.0) - time.time(), MIN_PAUSE), MAX_PAUSE)):
                    await self._bell.wait()

    async def _do(self, work: Queued, claim: Claim) -> None:
        """Does a job. If it fails, it is tried again later, or has failed for good after the last attempt."""
        try:
            with operation("upkeep", work.kind, {"agent": work.agent_id}), acting_as("upkeep"):
                await self._ports.held(claim, lambda: self._jobs[work.kind](work, claim))
        except LeaseLost:
            log.warning("job %s was taken over by another process", work.id)
        except asyncio.CancelledError:
            with suppress(StoreError):  # it was settled already; the cancellation counts
                await self._queue.fail(claim, STOPPED, retry_in=0.0)
            raise
        except Exception as error:
            last = work.attempts >= self._ports.settings.attempts and work.error != STOPPED
            message = mask(str(error) if isinstance(error, MulliganError) else f"{type(error).__name__}: {error}")
            log.warning("job %s (%s) failed: %s", work.id, work.kind, message)
            await self._queue.fail(claim, message, retry_in=None if last else RETRY * 2 ** (work.attempts - 1))
