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

    Every method may raise `InvalidInput`, `NotFound` (also for the lesson of another agent) and `StoreError`. Methods
    that ask a model may also raise `ModelError` and `BadAnswer`.
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
        """Whether the bank has a model. Without one, `learn` hands out questions."""
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
        """Recalls what helps with this task: entries of the notebook, lessons, or accounts of earlier episodes.

        Lessons are in order of relevance; if none is relevant enough, there are none. Facts of the current project come
        first, followed by at most one strategy, unless the best strategy is clearly more relevant. Lessons for the
        task's kind rank higher, and up to `HABITS` metacognitive lessons come last. Nothing is downloaded.

        Args:
            task: The task, or its text.
            top_k: The maximum number of lessons; with the strategy `cosine`, of experiences.
            threshold: A relevance from 0 to 1, or `strict`, `standard` or `lenient`. 0 recalls as many as fit.
            as_of: Seconds since the epoch. Recalls what was known then, by words alone.
            counted: False leaves the bank unchanged: it counts no use, stores no receipt and starts no pending work.
            all_projects: Whether facts of other projects are recalled too.
            forms: One or more of `notebook`, `lessons` and `history`. None takes those of the settings.
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
        """The ids of solved episodes of this project whose task shares the most words with this one, nearest first.

        Only episodes whose account the bank keeps, and that are relevant by the preset `standard`.
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
        """Learns lessons from an episode, or by contrast from several episodes of one task.

        Learning twice from the same episodes gives the first result again. Without a model, or with `borrow`,
        `Learned.question` holds the question to answer, and `commit(learned.work, answer)` takes the answer. If an
        episode names a recall, the receipt of that recall gets the outcome of the task.

        Args:
            episodes: One episode, or several of one task.
            success: Whether the task succeeded. By default the evaluators' verdicts count, or else a judge's.
            background: Whether the work is only stored, and done later by any process.
            borrow: Whether the question is handed out even if the bank has a model.
        """
        if success not in (True, False, None):
            raise InvalidInput(f"success must be True, False or None, not {success!r}.")
        learned = await self._learning.learn(_as_list(episodes), success, background=background, borrow=borrow)
        await self._learning.try_waiting()
        self.wake()
        return learned

    async def resume(self, work: str, *, background: bool = False, borrow: bool = False) -> Learned:
        """The outcome of work that `learn` accepted. If there is none yet, does what `learn` does for its episodes."""
        learned = await self._learning.resume(await self._extraction(work), background, borrow)
        self.wake()
        return learned

    async def outcome(self, work: str) -> Learned:
        """The outcome so far of work that `learn` accepted, without doing any of it.

        If a question is still open, `failed` says what was wrong with the last answer.
        """
        learned = await self._learning.outcome(await self._extraction(work))
        if learned.pending:
            self.wake()
        return learned

    async def accepted(self, episodes: Sequence[Episode] | Episode) -> str | None:
        """The id of the work that learns from these episodes, unless there is none or it has failed."""
        return await self._queue.find(self._ports.writes, "extract", key_of(_as_list(episodes)))

    async def recalled(self, id: str) -> Recall:
        """The recall with this receipt. Lessons that no longer exist are left out.

        Raises `NotFound` if there is none, or if it is another agent's.
        """
        receipt = await self._lessons.receipt(self.agent_id, id)
        if (receipt.agent_id or "") != self._ports.writes:
            raise no_recall(id)
        lessons = await self._writer.present(self._ports.writes, list(receipt.lessons), ())
        scored = tuple(replace(lesson, score=receipt.lessons[lesson.id]) for lesson in lessons)
        return Recall(receipt.id, scored, receipt.filtered)

    async def outcome_of(self, id: str, success: bool) -> bool:
        """Records how the task of a recall ended, for a task that nothing is learned from.

        Only the first outcome of a recall counts, including one that learning recorded. Returns that outcome. Raises
        `NotFound` if there is no such recall, or if it is another agent's.
        """
        if not isinstance(success, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"success must be True or False, not {success!r}.")
        return await self._lessons.outcome_of(self._ports.writes, id, success)

    async def retired_for_harm(self) -> Sequence[str]:
        """Notes on lessons that were retired because they did harm. Each is returned once."""
        return await self._recaller.retired_for_harm()

    async def worth(self, *, of: Sequence[str] | None = None) -> Sequence[Worth]:
        """The counts of the whole bank and of each lesson, or only of the lessons with these ids: see `core.worth`."""
        return await self._lessons.worth(self.agent_id, of=of)

    async def balance(self, days: float = DAYS) -> Balance:
        """What this bank cost and saved over so many days."""
        return await balance(self._ports, days)

    async def relevances(self, limit: int = 1000) -> Sequence[tuple[float, bool]]:
        """The relevance of each lesson that the newest recalls showed, and whether its task succeeded."""
        return await self._lessons.relevances(self.agent_id, limit)

    @as_operation("learn", "lessons", "pending")
    async def commit(self, work: str, answer: Json) -> Learned:
        """Takes the answer to a question that was handed out.

        Raises `BadAnswer` if it cannot be used. The question then stays open.
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
        """The question of this work. Raises `InvalidInput` if the work is not waiting for an answer."""
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
        """Stores a lesson and returns it. If an equal lesson exists, returns that one with its support raised.

        Args:
            title: The title, a few words. A fact replaces an older fact with the same title.
            content: The text of the lesson.
            origin: Where the lesson comes from.
            by_a_person: Whether a person wrote it. Such a lesson is recalled even if it is flagged.
            fold: False stores the lesson even if an equal one exists.
            details: Fields of `LessonDetails`. By default they are those of `Lesson`, and a fact belongs to the current
                project.
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
        """Changes only these fields of a lesson. Its history keeps the earlier text.

        Args:
            id: The lesson's id.
            change: Returns further fields from the lesson as it is at the time of writing, for example to add a tag. If
                it raises an error, nothing is changed.
            read: The lesson that the new values were chosen for. If somebody else has changed one of these fields since
                then, this raises `LessonChanged`.
            fields: The new values by name.
        """
        fields = checked_fields(fields)

        def edited(now: Lesson) -> Lesson:
            if read is not None:
                changes.ensure_current(read, now, fields)
            return replace(now, **fields, **(checked_fields(change(now)) if change else {}))

        return await self._changed(id, "edited", edited)

    async def receive(self, lesson: Lesson, before: Lesson | None = None) -> Lesson:
        """Stores a lesson from outside, in quarantine: as a new lesson, or as a new version of the one with its id.

        before: the version that was read. Raises `LessonChanged` if the lesson has changed since.
        """
        return await self._writer.receive(self._ports.writes, lesson, before)

    async def withdraw(self, id: str, why: str) -> Lesson:
        """Retires a lesson that its author has withdrawn, even if it is quarantined."""
        return await self._changed(id, "retired", changes.withdrawn, why)

    async def announce(self, change: str) -> int:
        """Marks the facts of the current project as to be checked because of this change. Returns how many.

        A fact loses the mark once it is seen to hold again. The input "change" of a task is announced automatically.
        """
        why = f"{CHANGE_MARK}{one_line(mask(change), 200)}"
        which = Selection(nature="fact", project=self._ports.project, limit=None)
        facts = [fact for fact in await self._lessons.list(self._ports.writes, which) if fact.to_check != why]
        for fact in facts:
            await self._writer.doubt(fact, why)
        return len(facts)

    async def notebook(self, as_of: float | None = None) -> Sequence[Lesson]:
        """The active facts of the current project, newest first; as_of: those of then, in seconds since the epoch."""
        if as_of is None:
            which = Selection(nature="fact", project=self._ports.project, limit=None, expired=False)
            facts = await self._lessons.list(self.agent_id, which)
        else:
            then = [one for one in await self._lessons.as_of(self.agent_id, moment(as_of)) if not one.is_expired(as_of)]
            facts = [one for one in then if one.nature == "fact" and one.project == self._ports.project]
        return tuple(sorted(mark_contradictions(facts), key=lambda fact: -fact.time))

    async def undo(self, id: str) -> Lesson:
        """Undoes the last change of a lesson, and returns the lesson.

        A replaced fact or a merged lesson becomes active again, a retired lesson is restored, and an edited, marked or
        confirmed one is as before. Raises `InvalidInput` if there is nothing to undo.
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
        """Stops recalling a lesson; `restore` brings it back."""
        return await self._changed(id, "retired", changes.retired, why)

    async def restore(self, id: str) -> Lesson:
        return await self._changed(id, "restored", changes.restored)

    async def release(self, id: str) -> Lesson:
        """Ends the quarantine of a lesson that a person has read and found harmless."""
        released = await self._changed(id, "released", changes.released)
        await self._writer.queue_links(self._ports.writes, [released.id])
        return released

    async def pin(self, id: str, pinned: bool = True) -> Lesson:
        """Pins a lesson, or unpins it. A pinned lesson is never withheld, and never retired for harm."""
        return await self._changed(id, "edited", lambda now: replace(now, pinned=pinned))

    async def rate(self, id: str, score: float, *, by: str = "", comment: str = "") -> Lesson:
        """Adds a person's score of a lesson, from 0 to 1, to its ratings. 0.5 or more confirms a query pair.

        Raises `InvalidInput` for a score outside this range.
        """
        rating = Rating.given(score, by, round(time.time(), 3), mask(comment))
        return await self._changed(id, "edited", lambda now: changes.rated(now, rating), "rated")

    async def related(self, *, similarity: float = 0.6, least: int = 3) -> Sequence[Sequence[Lesson]]:
        """Groups of related strategies, candidates for `merge`, which turns a group into one rule.

        Args:
            similarity: The minimum cosine of any two lessons in a group.
            least: The minimum number of lessons in a group.

        Raises:
            InvalidInput: A setting is out of range, or no vectors can be computed.
        """
        if not 0 < similarity <= 1 or least < 2:
            raise InvalidInput(
                "Related lessons: similarity must be above 0 and at most 1, and a group must have 2 lessons or more."
            )
        if self._ports.vectors.embedder is None:
            raise InvalidInput(
                f"Finding related lessons needs vectors, which could not be computed: {self._ports.vectors.why_not}."
            )
        return await self._upkeep.related(self._ports.writes, similarity, least)

    async def merge(self, ids: Sequence[str], *, answer: Json = None) -> Learned:
        """Merges several lessons into one, which supersedes them. `unmerge` brings them back.

        answer: The merged lesson. By default the merging strategy or a model writes it. Without a model, the result has
        the `question` to answer, and the `work` to commit the answer to.
        """
        lessons = [await self._changeable(id) for id in dict.fromkeys(ids)]
        if len(lessons) < 2:
            raise InvalidInput("A merge needs two lessons or more: name their ids.")
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
        """Retires a merged lesson, or a fact that replaced others, and restores the lessons before it.

        Returns the ids of the restored lessons.
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
        """The lesson with this id, or whose id begins with it."""
        full_id = await self._lessons.resolve(self.agent_id, id)
        return (await self._lessons.get(self.agent_id, [full_id]))[0]

    async def list(self, which: Selection = Selection()) -> Sequence[Lesson]:
        return await self._lessons.list(self.agent_id, which)

    async def changes(self, since: int) -> Delta:
        """The changes of this bank since this tip, and the new tip: see `LessonStore.delta`."""
        return await self._lessons.delta(self.agent_id, None, since)

    async def history(self, id: str) -> Sequence[Version]:
        return await self._lessons.history(self.agent_id, await self._lessons.resolve(self.agent_id, id))

    async def decided(self) -> Sequence[Decided]:
        """All changes that a person or a caller decided on, oldest first."""
        return decided(await self._lessons.archive(self.agent_id))

    async def links(self, id: str) -> Sequence[Link]:
        return await self._lessons.links(self.agent_id, (await self.get(id)).id)

    async def as_of(self, at: float) -> Sequence[Lesson]:
        return await self._lessons.as_of(self.agent_id, moment(at))

    async def receipt(self, id: str) -> Receipt:
        return await self._lessons.receipt(self.agent_id, id)

    async def stats(self) -> Mapping[str, Json]:
        return await self._lessons.counts(self.agent_id)

    # --- upkeep -------------------------------------------------------------------------------------------------

    async def reembed(self, on_embedded: OnEmbedded | None = None) -> int:
        """Computes the missing vectors of the current embedder. Returns how many jobs were done."""
        if self._ports.vectors.embedder is None:
            raise InvalidInput(f"No vectors could be computed: {self._ports.vectors.why_not}.")
        await self._queue.enqueue("embed", self._ports.writes, {})
        self._upkeep.on_embedded = on_embedded
        try:
            return await self.work()
        finally:
            self._upkeep.on_embedded = None

    async def purge(self, ids: Sequence[str] | None) -> int:
        """Deletes lessons with their history; None: all lessons of this agent. Returns how many."""
        writes = self._ports.writes
        full_ids = None if ids is None else [await self._lessons.resolve(writes, id) for id in ids]
        with operation("clear" if full_ids is None else "purge", facts={"bank": writes}) as done:
            if full_ids is not None and len(full_ids) == 1:
                done.facts["lesson"] = full_ids[0]
            done.facts["lessons"] = removed = await self._lessons.purge(writes, full_ids)
        return removed

    async def redact(self, id: str, change: Callable[[Mapping[str, Json]], Mapping[str, Json]]) -> bool:
        """Changes the context of a lesson in its whole history, to remove private data. This cannot be undone."""
        writes, full_id = self._ports.writes, await self._lessons.resolve(self._ports.writes, id)
        with operation("change", facts={"bank": writes, "lesson": full_id, "change": "redacted"}):
            return await self._lessons.redact(writes, full_id, change)

    async def verify(self, *, mend: bool = False) -> Sequence[Fault]:
        """Finds the faults of the store, and with `mend` repairs those that can be repaired."""
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
        """Does pending jobs of any process until none is due or the time is up. Returns how many.

        ask: Whether to also do what waits for a learning budget: questions about episodes, and replays.
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
        return tuple(one for one in await self._queue.pending(self.agent_id, kind=kind) if one.kind != QUOTA)

    def wake(self) -> None:
        """Starts to do pending jobs in the background of this process."""
        self._worker.wake()

    async def close(self, seconds: float = 5.0) -> None:
        """Closes the bank. Does pending jobs for at most this long; the others stay in the store."""
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
