"""The bank: recalls, learns, changes and looks after the lessons of one agent.

`app.memory` opens a bank. It reaches the store, the models and the embedder through `Ports` alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Self, Unpack

from mulligan.bank import changes
from mulligan.bank.exchange.audit import Decided, decided
from mulligan.bank.learn.admission import CHANGE_MARK, REPLAY, LessonAdmission
from mulligan.bank.learn.facts import mark_contradictions
from mulligan.bank.learn.groups import Groups, question_work
from mulligan.bank.learn.learning import Learning, key_of
from mulligan.bank.learn.validation import checked_fields
from mulligan.bank.learn.writing import LessonWriter
from mulligan.bank.ports import LEASE, Ports, checked_forms, checked_threshold, moment, whole_number
from mulligan.bank.recall.candidates import PRESETS
from mulligan.bank.recall.index import Indexes
from mulligan.bank.recall.query_pairs import QueryPairs
from mulligan.bank.recall.recaller import Recaller, RecallRequest
from mulligan.bank.upkeep.balance import DAYS, Balance, balance
from mulligan.bank.upkeep.upkeep import OnEmbedded, Upkeep, Worker
from mulligan.core.errors import InvalidInput, LessonChanged, NotFound, StoreError, no_recall
from mulligan.core.lesson_history import Delta, Fault, Link, Receipt, Version, Worth
from mulligan.core.lessons import LessonDetails, Selection
from mulligan.core.operations import as_operation, detail_of, operation
from mulligan.core.protocols import Learned
from mulligan.core.questions import Question
from mulligan.core.records import Episode, Json, Lesson, Origin, Rating, Recall, Task
from mulligan.core.work_queue import QUOTA, Claim, Queued
from mulligan.text.formatting import task_text
from mulligan.text.plain import one_line
from mulligan.text.secrets import mask


class Bank:
    """The lessons of one agent. Close it after use, or use it as an async context manager.

    Every method can raise `InvalidInput`, `NotFound` (also for another agent's lesson) and `StoreError`. Methods that
    ask a model can also raise `ModelError` and `BadAnswer`.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._lessons, self._queue = ports.memory.lessons, ports.memory.queue
        self._indexes = Indexes(self._lessons, ports.vectors.id, queries=ports.retrieval.queries)
        self._recaller = Recaller(ports, self._indexes)
        self._writer = LessonWriter(ports, self._indexes)
        admission = LessonAdmission(ports, self._writer, self._indexes)
        self._learning = Learning(ports, self._writer, admission)
        self.pairs = QueryPairs(ports, self._indexes, self._writer)
        self.groups = Groups(ports, self.learn, self.resume)
        self._upkeep = upkeep = Upkeep(ports, self._indexes, self._writer)
        self._worker = Worker(
            ports,
            {
                "facts": self._learning.keep_facts,
                "extract": self._learning.extract,
                "batch": self._learning.extract_batch,
                "merge": upkeep.merge,
                "embed": upkeep.embed,
                "link": upkeep.link,
                REPLAY: admission.replay,
            },
        )

    @property
    def agent_id(self) -> str | None:
        return self._ports.agent_id

    @property
    def strategy(self) -> str:
        """The name of the retrieval strategy, such as "fused"."""
        return self._ports.strategy

    @property
    def thinks(self) -> bool:
        """Whether the bank has a model. Without one, `learn` returns questions."""
        return self._ports.model is not None

    @property
    def project(self) -> str:
        """The current project, whose facts are recalled; "" if unknown."""
        return self._ports.project

    @property
    def paper(self) -> bool:
        """Whether the bank works as in the ReasoningBank paper."""
        return self._ports.settings.paper

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- recall -------------------------------------------------------------------------------------------------

    @as_operation("recall", "lessons", "filtered", content="query", records="lessons")
    async def recall(
        self,
        task: Task | str,
        *,
        top_k: int | None = None,
        threshold: float | str | None = None,
        as_of: float | None = None,
        counted: bool = True,
        all_projects: bool = False,
        forms: Sequence[str] | str | None = None,
        kind: str | None = None,
    ) -> Recall:
        """Recalls what helps with a task: notebook entries, lessons, or accounts of earlier episodes.

        The lessons that are relevant enough are returned in order of relevance. The current project's facts come
        first, followed by at most one strategy, unless the best strategy is clearly more relevant. Lessons for the
        task's kind rank higher, and up to `HABITS` metacognitive lessons come last. Nothing is downloaded.

        Args:
            task: The task, or its text.
            top_k: The maximum number of lessons or, with the strategy `cosine`, of experiences.
            threshold: The minimum relevance, from 0 to 1, or `strict`, `standard` or `lenient`. 0: no minimum.
            as_of: A time in seconds since the epoch. Recalls what was known then, by words alone.
            counted: False leaves the bank unchanged: no use is counted, no receipt stored and no pending job started.
            all_projects: Whether to recall other projects' facts, too.
            forms: One or more of `notebook`, `lessons` and `history`. None: those in the settings.
            kind: Recalls only lessons for this kind of task.
        """
        task = task if isinstance(task, Task) else Task(task)
        if not (query := mask(task_text(task))):
            raise InvalidInput("The query is empty: describe the task.")
        settings = self._ports.settings
        request = RecallRequest(
            task,
            query,
            forms=settings.forms if forms is None else checked_forms(forms),
            top_k=settings.top_k if top_k is None else whole_number("top_k", top_k),
            threshold=settings.threshold if threshold is None else checked_threshold(threshold),
            as_of=None if as_of is None else moment(as_of),
            counted=counted,
            all_projects=all_projects,
            kind=kind,
            priced=as_of is None and threshold is None,  # a threshold is the caller's own limit
        )
        warning = await self._announced_by(task) if counted and as_of is None else ""
        if counted:
            self._worker.wake(once=True)  # for work that another process accepted and left
        return await self._recaller.recall(request, warning)

    async def solved_like(self, task: Task, most: int = 5) -> Sequence[str]:
        """The ids of this project's solved episodes whose tasks share the most words with this one, nearest first.

        Only episodes that have an account in the bank, and are relevant by the preset `standard`, are returned.
        """
        accounts = await self._recaller.solved_like(task, most, PRESETS["standard"])
        return [account.id for account in accounts]

    async def _announced_by(self, task: Task | str) -> str:
        """Announces the change in the task's inputs, if there is one. Returns why that failed, or ""."""
        change = task.inputs.get("change") if isinstance(task, Task) else None
        if not isinstance(change, str) or not change.strip():
            return ""
        try:
            await self.announce(change)
        except StoreError as error:  # a store that cannot be written can still be read
            return f"the change could not be marked: {str(error).rstrip('.')}"
        return ""

    # --- learning -----------------------------------------------------------------------------------------------

    @as_operation("learn", "lessons", "pending")
    async def learn(
        self,
        episodes: Sequence[Episode] | Episode,
        *,
        success: bool | None = None,
        background: bool = False,
        borrow: bool = False,
    ) -> Learned:
        """Learns lessons from an episode, or by comparing several episodes of one task.

        Learning again from the same episodes returns the first result. Without a model, or with `borrow`,
        `Learned.question` is a question to answer, and `commit(learned.work, answer)` accepts the answer. If an
        episode has a recall, the outcome of the task is added to the recall's receipt.

        Args:
            episodes: One episode, or several of one task.
            success: Whether the task succeeded. By default, the evaluators' verdict counts, or else a judge's.
            background: Whether to only store the work, for any process to do later.
            borrow: Whether to return the question even if the bank has a model.
        """
        if success not in (True, False, None):
            raise InvalidInput(f"success must be True, False or None, not {success!r}.")
        learned = await self._learning.learn(_as_list(episodes), success, background=background, borrow=borrow)
        await self._learning.try_waiting()
        self.wake()
        return learned

    async def resume(self, work: str, *, background: bool = False, borrow: bool = False) -> Learned:
        """Returns the outcome of work that `learn` accepted. If there is no outcome yet, does the work."""
        learned = await self._learning.resume(await self._extraction(work), background, borrow)
        self.wake()
        return learned

    async def outcome(self, work: str) -> Learned:
        """Returns the outcome so far of work that `learn` accepted, without doing any of it.

        If a question is still open, `failed` explains what was wrong with the last answer.
        """
        learned = await self._learning.outcome(await self._extraction(work))
        if learned.pending:
            self.wake()
        return learned

    async def accepted(self, episodes: Sequence[Episode] | Episode) -> str | None:
        """Returns the id of the work that learns from these episodes; None if there is none or it has failed."""
        return await self._queue.find(self._ports.writes, "extract", key_of(_as_list(episodes)))

    async def recalled(self, id: str) -> Recall:
        """Returns the recall with this receipt, without lessons that no longer exist.

        Raises:
            NotFound: there is no such recall, or it belongs to another agent.
        """
        receipt = await self._lessons.receipt(self.agent_id, id)
        if (receipt.agent_id or "") != self._ports.writes:
            raise no_recall(id)
        lessons = await self._writer.present(self._ports.writes, list(receipt.lessons), ())
        scored = tuple(replace(lesson, score=receipt.lessons[lesson.id]) for lesson in lessons)
        return Recall(receipt.id, scored, receipt.filtered)

    async def outcome_of(self, id: str, success: bool) -> bool:
        """Records the outcome of a recall's task, for tasks that nothing is learned from.

        Returns:
            The recall's first outcome, which is the one that counts, even if learning recorded it.

        Raises:
            NotFound: there is no such recall, or it belongs to another agent.
        """
        if not isinstance(success, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"success must be True or False, not {success!r}.")
        return await self._lessons.outcome_of(self._ports.writes, id, success)

    async def retired_for_harm(self) -> Sequence[str]:
        """Returns notes on lessons that were retired because they did harm. Each note is returned once."""
        return await self._recaller.retired_for_harm()

    async def worth(self, *, of: Sequence[str] | None = None) -> Sequence[Worth]:
        """Returns the counts for the bank and each lesson, or only for these lessons: see `core.worth`."""
        return await self._lessons.worth(self.agent_id, of=of)

    async def balance(self, days: float = DAYS) -> Balance:
        """Returns what this bank cost and saved in the last `days` days."""
        return await balance(self._ports, days)

    async def relevances(self, limit: int = 1000) -> Sequence[tuple[float, bool]]:
        """Returns the relevance of each lesson in the newest recalls, and whether the task succeeded."""
        return await self._lessons.relevances(self.agent_id, limit)

    @as_operation("learn", "lessons", "pending")
    async def commit(self, work: str, answer: Json) -> Learned:
        """Accepts the answer to a question that `learn` or `merge` returned.

        Raises:
            BadAnswer: the answer cannot be used. The question remains open.
        """
        question_work(await self._queue.look(self._ports.writes, work))
        taken, claim = await self._taken(work)
        try:
            if taken.kind != "merge":
                learned = await self._learning.commit(taken, claim, answer)
                self.wake()
                return learned
            lessons = await self._lessons.get(self._ports.writes, taken.payload["lessons"])
            return await self._upkeep.merged(lessons, answer, claim, taken.agent_id)
        except (Exception, asyncio.CancelledError) as error:
            await self._ports.given_back(claim, error)
            raise

    async def question(self, work: str) -> Question:
        """Returns the question of this work.

        Raises:
            InvalidInput: the work is not waiting for an answer.
        """
        queued = question_work(await self._queue.look(self._ports.writes, work))
        if queued.status != "waiting":
            raise InvalidInput(f"Job {work} is not waiting for an answer: it is {queued.status}.")
        if queued.kind != "merge":
            return await self._learning.question(queued)
        lessons = await self._lessons.get(self._ports.writes, queued.payload["lessons"])
        question = self._ports.merging.ask(lessons)
        if question is None:
            raise InvalidInput(f"Job {work} does not need an answer: commit it with null.")
        return question

    # --- by hand ------------------------------------------------------------------------------------------------

    async def add(
        self,
        title: str,
        content: str,
        *,
        origin: Origin = Origin(),
        by_a_person: bool = False,
        fold: bool = True,
        state: Literal["active", "quarantined"] = "active",
        **details: Unpack[LessonDetails],
    ) -> Lesson:
        """Stores a lesson and returns it. If an equal lesson exists, raises its support and returns it instead.

        Args:
            title: A title of a few words. A fact replaces an older fact with the same title.
            content: The lesson's text.
            origin: The lesson's origin.
            by_a_person: Whether a person wrote the lesson. Such a lesson is recalled even if it is flagged.
            fold: False stores the lesson even if an equal one exists.
            details: Fields of `LessonDetails`. The defaults are those of `Lesson`, except that a fact belongs to the
                current project.
        """
        facts = {"project": self._ports.project} if details.get("nature") == "fact" else {}
        values = {"title": title, "content": content, "outcome": "success", **facts}
        optional = ("project", "context")  # None means the default
        values |= {name: value for name, value in details.items() if value is not None or name not in optional}
        fields: dict[str, Any] = checked_fields(values)
        lesson = self._writer.new_lesson(Lesson("", **fields, origin=origin, state=state), self._ports.writes)
        lesson = replace(lesson, experience=lesson.id, expires=fields.get("expires", lesson.expires))
        learned = await self._writer.add(self._ports.writes, [lesson], by_a_person=by_a_person, fold=fold)
        return await self.get((*learned.lessons, *learned.folded)[0])

    async def edit(
        self,
        id: str,
        change: Callable[[Lesson], Mapping[str, Any]] | None = None,
        /,
        *,
        read: Lesson | None = None,
        **fields: Any,
    ) -> Lesson:
        """Changes only these fields of a lesson. The history keeps the earlier text.

        Args:
            id: The lesson's id.
            change: Takes the current lesson, and returns further fields to change, such as an added tag. If it raises
                an exception, nothing is changed.
            read: The lesson for which the new values were chosen.
            fields: The new values by name.

        Raises:
            LessonChanged: one of the fields has changed since the lesson was `read`.
        """
        fields = checked_fields(fields)

        def edited(now: Lesson) -> Lesson:
            if read is not None:
                changes.ensure_current(read, now, fields)
            return replace(now, **fields, **(checked_fields(change(now)) if change else {}))

        return await self._changed(id, "edited", edited)

    async def receive(self, lesson: Lesson, before: Lesson | None = None) -> Lesson:
        """Stores an external lesson in quarantine, as a new lesson or as a new version of the lesson with its id.

        Args:
            lesson: The lesson.
            before: The version that was read.

        Raises:
            LessonChanged: the lesson has changed since it was read.
        """
        return await self._writer.receive(self._ports.writes, lesson, before)

    async def withdraw(self, id: str, why: str) -> Lesson:
        """Retires a lesson that its author withdrew, even if it is quarantined."""
        return await self._changed(id, "retired", changes.withdrawn, why)

    async def announce(self, change: str) -> int:
        """Marks the current project's facts as to be checked because of this change. Returns the number of facts.

        A fact loses the mark once it is confirmed again. A task's input "change" is announced automatically.
        """
        why = f"{CHANGE_MARK}{one_line(mask(change), 200)}"
        which = Selection(nature="fact", project=self._ports.project, limit=None)
        facts = [fact for fact in await self._lessons.list(self._ports.writes, which) if fact.to_check != why]
        for fact in facts:
            await self._writer.doubt(fact, why)
        return len(facts)

    async def notebook(self, as_of: float | None = None) -> Sequence[Lesson]:
        """Returns the current project's active facts, newest first.

        Args:
            as_of: a past time, in seconds since the epoch.
        """
        if as_of is None:
            which = Selection(nature="fact", project=self._ports.project, limit=None, expired=False)
            facts = await self._lessons.list(self.agent_id, which)
        else:
            then = [one for one in await self._lessons.as_of(self.agent_id, moment(as_of)) if not one.is_expired(as_of)]
            facts = [one for one in then if one.nature == "fact" and one.project == self._ports.project]
        return tuple(sorted(mark_contradictions(facts), key=lambda fact: -fact.time))

    async def undo(self, id: str) -> Lesson:
        """Undoes the last change to a lesson, and returns the lesson.

        A replaced fact or a merged lesson becomes active again, a retired lesson is restored, and an edited, marked or
        confirmed lesson returns to its earlier version.

        Raises:
            InvalidInput: there is nothing to undo.
        """
        lesson = await self._changeable(id)
        if lesson.state == "superseded" and lesson.superseded_by:
            await self.unmerge(lesson.superseded_by)
            return await self.get(lesson.id)
        if lesson.state == "retired":
            return await self.restore(lesson.id)
        versions = [one for one in await self._lessons.history(self._ports.writes, lesson.id) if one.lesson is not None]
        if len(versions) < 2 or versions[-1].change not in ("edited", "confirmed", "doubted"):
            raise InvalidInput(f"Lesson {lesson.id} was last {versions[-1].change}: there is nothing to undo.")
        before = versions[-2].lesson
        assert before is not None
        (entry,) = await self._writer.entries([before])
        writes, undone = self._ports.writes, detail_of("undone")
        with operation("change", facts={"bank": writes, "lesson": lesson.id, "change": "undone"}):
            await self._lessons.change(
                writes, entry.lesson, "edited", entry=entry, detail=undone, before=versions[-1].lesson
            )
        return await self.get(lesson.id)

    async def retire(self, id: str, why: str = "") -> Lesson:
        """Stops recalling a lesson. `restore` reverses this."""
        return await self._changed(id, "retired", changes.retired, why)

    async def restore(self, id: str) -> Lesson:
        """Makes a retired lesson active again."""
        return await self._changed(id, "restored", changes.restored)

    async def release(self, id: str) -> Lesson:
        """Releases a lesson from quarantine, after a person has found it harmless."""
        released = await self._changed(id, "released", changes.released)
        await self._writer.queue_links(self._ports.writes, [released.id])
        return released

    async def pin(self, id: str, pinned: bool = True) -> Lesson:
        """Pins or unpins a lesson. A pinned lesson is never withheld, and never retired for harm."""
        return await self._changed(id, "edited", lambda now: replace(now, pinned=pinned))

    async def rate(self, id: str, score: float, *, by: str = "", comment: str = "") -> Lesson:
        """Adds a person's score, from 0 to 1, to a lesson's ratings. A score of at least 0.5 confirms a query pair.

        Raises:
            InvalidInput: the score is out of range.
        """
        rating = Rating.given(score, by, round(time.time(), 3), mask(comment))
        return await self._changed(id, "edited", lambda now: changes.rated(now, rating), "rated")

    async def related(self, *, similarity: float = 0.6, least: int = 3) -> Sequence[Sequence[Lesson]]:
        """Returns groups of related strategies, each of which `merge` can combine into one rule.

        Args:
            similarity: The minimum cosine of any two lessons in a group.
            least: The minimum number of lessons in a group.

        Raises:
            InvalidInput: A setting is out of range, or no vectors can be computed.
        """
        if not 0 < similarity <= 1 or least < 2:
            raise InvalidInput(
                "For related lessons, similarity must be greater than 0 and at most 1, and a group must have at "
                "least 2 lessons."
            )
        if self._ports.vectors.embedder is None:
            raise InvalidInput(
                f"Finding related lessons needs vectors, which could not be computed: {self._ports.vectors.why_not}."
            )
        return await self._upkeep.related(self._ports.writes, similarity, least)

    async def merge(self, ids: Sequence[str], *, answer: Json = None) -> Learned:
        """Merges several lessons into one, which supersedes them. `unmerge` reverses this.

        Args:
            ids: The ids of at least two active lessons.
            answer: The merged lesson. By default, the merging strategy or a model writes it. Without a model, the
                result contains a `question` to answer, and the `work` to `commit` the answer for.
        """
        lessons = [await self._changeable(id) for id in dict.fromkeys(ids)]
        if len(lessons) < 2:
            raise InvalidInput("A merge needs at least two lessons: specify their ids.")
        for lesson in lessons:
            if lesson.state != "active":
                raise InvalidInput(f"Lesson {lesson.id} is {lesson.state}: only active lessons can be merged.")
            if lesson.nature == "query_pair":
                raise InvalidInput(f"Lesson {lesson.id} is a query pair, and query pairs are never merged.")
        writes, question = self._ports.writes, self._ports.merging.ask(lessons)
        payload: Json = {"lessons": [lesson.id for lesson in lessons], "by_hand": True}
        pending = await self._queue.pending(writes)
        same = next((job.id for job in pending if (job.status, job.payload) == ("waiting", payload)), None)
        work = same or await self._queue.enqueue("merge", writes, payload, waiting=True)
        if question is not None and answer is None and self._ports.model is None:
            return Learned(work=work, question=question)
        if question is None or answer is not None:
            return await self.commit(work, answer)
        taken, claim = await self._taken(work)
        try:
            return await self._ports.held(claim, lambda: self._upkeep.merge(taken, claim))
        except (Exception, asyncio.CancelledError) as error:
            with suppress(StoreError):  # the claim was lost or settled, or the store is what failed
                await self._queue.fail(claim, str(error) or "it was stopped", retry_in=None)
            raise

    async def unmerge(self, id: str) -> Sequence[str]:
        """Retires a merged lesson, or a fact that replaced others, and restores the earlier lessons.

        Returns:
            The ids of the restored lessons.
        """
        lesson = await self._changeable(id)
        if lesson.origin.kind != "merged" and not (lesson.nature == "fact" and lesson.origin.parents):
            raise InvalidInput(f"Lesson {lesson.id} was not merged from others.")
        with operation("change", facts={"bank": self._ports.writes, "lesson": lesson.id, "change": "unmerged"}):
            parents = await self._lessons.unmerge(self._ports.writes, lesson.id)
        if self._ports.vectors.embedder is not None:
            await self._queue.enqueue("embed", self._ports.writes, {}, key=f"unmerged:{lesson.id}")
            self.wake()
        return parents

    # --- looking ------------------------------------------------------------------------------------------------

    async def get(self, id: str) -> Lesson:
        """Returns the lesson with this id or prefix of an id."""
        full_id = await self._lessons.resolve(self.agent_id, id)
        return (await self._lessons.get(self.agent_id, [full_id]))[0]

    async def list(self, which: Selection = Selection()) -> Sequence[Lesson]:
        """Returns the selected lessons."""
        return await self._lessons.list(self.agent_id, which)

    async def changes(self, since: int) -> Delta:
        """Returns the changes to this bank since this tip, and the new tip: see `LessonStore.delta`."""
        return await self._lessons.delta(self.agent_id, None, since)

    async def history(self, id: str) -> Sequence[Version]:
        """Returns the versions of a lesson."""
        return await self._lessons.history(self.agent_id, await self._lessons.resolve(self.agent_id, id))

    async def decided(self) -> Sequence[Decided]:
        """Returns all changes that a person or a caller decided, oldest first."""
        return decided(await self._lessons.archive(self.agent_id))

    async def links(self, id: str) -> Sequence[Link]:
        """Returns the links from and to a lesson."""
        return await self._lessons.links(self.agent_id, (await self.get(id)).id)

    async def as_of(self, at: float) -> Sequence[Lesson]:
        """Returns the lessons as they were at this time, in seconds since the epoch."""
        return await self._lessons.as_of(self.agent_id, moment(at))

    async def receipt(self, id: str) -> Receipt:
        """Returns the receipt of a recall."""
        return await self._lessons.receipt(self.agent_id, id)

    async def stats(self) -> Mapping[str, Json]:
        """Returns counts of the bank's contents."""
        return await self._lessons.counts(self.agent_id)

    # --- upkeep -------------------------------------------------------------------------------------------------

    async def reembed(self, on_embedded: OnEmbedded | None = None) -> int:
        """Computes the current embedder's missing vectors. Returns the number of jobs done."""
        if self._ports.vectors.embedder is None:
            raise InvalidInput(f"No vectors could be computed: {self._ports.vectors.why_not}.")
        await self._queue.enqueue("embed", self._ports.writes, {})
        self._upkeep.on_embedded = on_embedded
        try:
            return await self.work()
        finally:
            self._upkeep.on_embedded = None

    async def purge(self, ids: Sequence[str] | None) -> int:
        """Deletes lessons and their history, and returns their number. None deletes all of this agent's lessons."""
        writes = self._ports.writes
        full_ids = None if ids is None else [await self._lessons.resolve(writes, id) for id in ids]
        with operation("clear" if full_ids is None else "purge", facts={"bank": writes}) as done:
            if full_ids is not None and len(full_ids) == 1:
                done.facts["lesson"] = full_ids[0]
            done.facts["lessons"] = removed = await self._lessons.purge(writes, full_ids)
        return removed

    async def redact(self, id: str, change: Callable[[Mapping[str, Json]], Mapping[str, Json]]) -> bool:
        """Changes a lesson's context in its entire history, to remove private data. This cannot be undone."""
        writes, full_id = self._ports.writes, await self._lessons.resolve(self._ports.writes, id)
        with operation("change", facts={"bank": writes, "lesson": full_id, "change": "redacted"}):
            return await self._lessons.redact(writes, full_id, change)

    async def verify(self, *, mend: bool = False) -> Sequence[Fault]:
        """Finds faults in the store. With `mend`, repairs those that can be repaired."""
        faults = list(await self._lessons.verify(mend=mend))
        for agent_id, id in await self._indexes.unsearchable(self._ports.vectors.id):
            if mend:
                (lesson,) = await self._lessons.get(agent_id, [id])
                (entry,) = await self._writer.entries([replace(lesson, embedder=None)])
                why = {"why": "verify"}
                with suppress(LessonChanged):  # the change has written new search data
                    await self._lessons.change(agent_id, lesson, "edited", entry=entry, detail=why, before=lesson)
            faults.append(Fault(f"Lesson {id} has lost its search data.", mend, id))
        return faults

    async def work(self, seconds: float | None = None, *, ask: bool = False) -> int:
        """Does pending jobs, from any process, until none is due or the time is up. Returns the number of jobs.

        Args:
            seconds: The time limit. None: no limit.
            ask: Whether to also do jobs that wait for a learning budget: questions about episodes, and replays.
        """
        until = None if seconds is None else time.monotonic() + seconds
        if ask and self.thinks:
            await self._learning.ask_about_several(by_hand=True)
        done = await self._worker.work(seconds)
        if ask:
            await self._learning.try_waiting(by_hand=True)
            done += await self._worker.work(until and until - time.monotonic())
        return done

    async def pending(self, kind: str | None = None) -> Sequence[Queued]:
        """Returns the pending jobs."""
        return tuple(one for one in await self._queue.pending(self.agent_id, kind=kind) if one.kind != QUOTA)

    def wake(self) -> None:
        """Starts doing pending jobs in the background of this process."""
        self._worker.wake()

    async def close(self, seconds: float = 5.0) -> None:
        """Closes the bank, after doing pending jobs for up to this many seconds. Other jobs stay in the store."""
        await self._worker.leave(seconds)
        await self._ports.memory.close()

    async def _taken(self, work: str) -> tuple[Queued, Claim]:
        return await self._ports.claimed(self._queue.take(self._ports.writes, work, self._ports.owner, LEASE))

    async def _extraction(self, work: str) -> Queued:
        queued = await self._queue.look(self._ports.writes, work)
        if queued.kind != "extract":
            raise NotFound(f"This bank has no pending job {work!r} that learns from an episode.")
        return queued

    async def _changeable(self, id: str) -> Lesson:
        """The lesson with this id, if it is one that this bank may change."""
        full_id = await self._lessons.resolve(self._ports.writes, id)
        return (await self._lessons.get(self._ports.writes, [full_id]))[0]

    async def _changed(self, id: str, change: Any, changed: Callable[[Lesson], Lesson], why: str = "") -> Lesson:
        """See `LessonWriter.change`."""
        writes = self._ports.writes
        full_id = await self._lessons.resolve(writes, id)
        return await self._writer.change(writes, full_id, change, changed, detail=detail_of(why))


def _as_list(episodes: Sequence[Episode] | Episode) -> Sequence[Episode]:
    return [episodes] if isinstance(episodes, Episode) else list(episodes)
