"""The bank: a handle on the lessons of one agent. It recalls, learns and looks after them, and overwrites nothing.

`app.memory` opens one; everything here speaks to ports.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, Unpack

from mulligan.bank import changes
from mulligan.bank.exchange.audit import Decided, decided
from mulligan.bank.learn.admission import CHANGE_MARK, REPLAY, LessonAdmission
from mulligan.bank.learn.facts import has_reason, mark_contradictions
from mulligan.bank.learn.groups import Groups, question_work
from mulligan.bank.learn.learning import Learning, key_of
from mulligan.bank.learn.trajectory import account_text
from mulligan.bank.learn.validation import checked_fields
from mulligan.bank.learn.writing import LessonWriter
from mulligan.bank.ports import ACCOUNTS, LEASE, Ports, checked_forms, checked_threshold, moment, whole_number
from mulligan.bank.recall.candidates import PRESETS
from mulligan.bank.recall.choosing import Chosen, choose, draws
from mulligan.bank.recall.index import Indexes
from mulligan.bank.recall.notebook import Shown
from mulligan.bank.recall.price import worth_showing
from mulligan.bank.recall.prompt_text import fact_text, fitting
from mulligan.bank.recall.query_pairs import QueryPairs
from mulligan.bank.upkeep.balance import DAYS, Balance, balance
from mulligan.bank.upkeep.upkeep import OnEmbedded, Upkeep, Worker
from mulligan.core.errors import InvalidInput, LessonChanged, NotFound, StoreError
from mulligan.core.lesson import LessonDetails, Selection
from mulligan.core.lessons import Account, Delta, Fault, Link, Receipt, Version, Worth
from mulligan.core.operations import as_operation, detail_of, operation
from mulligan.core.protocols import Learned
from mulligan.core.questions import Question
from mulligan.core.records import Episode, HeldBack, Json, Lesson, Origin, Rating, Recall, Task
from mulligan.core.work_queue import QUOTA, Claim, Queued
from mulligan.text.formatting import task_text
from mulligan.text.plain import one_line
from mulligan.text.secrets import mask
from mulligan.text.truncate import estimate


class Bank:
    """Raises `InvalidInput`, `NotFound` (also for another agent's lesson), `StoreError`; what thinks, `ModelError` and
    `BadAnswer`. To be closed, or used as an async context manager."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._lessons, self._queue = ports.memory.lessons, ports.memory.queue
        self._indexes = Indexes(self._lessons, ports.vectors.id, queries=ports.retrieval.queries)
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
        """What of the past helps with this task: entries of the notebook, lessons, or accounts of earlier episodes.

        Lessons come best first, each with its relevance; none where none is good enough. A fact of the current project
        comes first, with at most one strategy beside it, if that is more relevant. Lessons of the task's kind are
        raised, and up to `HABITS` metacognitive ones come last. Nothing is downloaded.

        Args:
            task: The task, or its text.
            top_k: Lessons at most; with the strategy cosine, experiences.
            threshold: Relevance from 0 to 1, or strict, standard, lenient. 0: all that there is room for.
            as_of: Seconds since the epoch: recalls what was known then, by words alone.
            counted: False leaves the bank as it is: counts no use, keeps no receipt, starts no queued work.
            all_projects: Whether facts of other projects are recalled, too.
            forms: `notebook`, `lessons`, `history`, or several; None: those of the settings.
            kind: Only lessons for this kind of task.
        """
        task = task if isinstance(task, Task) else Task(task)
        if not (query := mask(task_text(task))):
            raise InvalidInput("The query is empty: describe the task.")
        settings = self._ports.settings
        shown = settings.forms if forms is None else checked_forms(forms)
        most = settings.top_k if top_k is None else whole_number("top_k", top_k)
        checked_threshold(threshold)
        as_of = None if as_of is None else moment(as_of)
        wanted = settings.threshold if threshold is None else threshold
        unmarked = await self._announced_by(task) if counted and as_of is None else ""
        if counted:
            self._worker.wake(once=True)  # what another process accepted and left
        then: Mapping[str, Lesson] | None = None
        if as_of is None:
            index = await self._indexes.of(self.agent_id)
            made = await self._ports.vectors.of([query]) if index.embedded else None
            notes = [] if made is not None or not index.n else [f"by words alone: {self._why_lexical(index.embedded)}"]
            vector = None if made is None else made[0]
        else:
            known_then = await self._lessons.as_of(self.agent_id, as_of)
            then = {lesson.id: lesson for lesson in known_then if not lesson.is_expired(as_of)}
            index = self._indexes.once(tuple(then.values()))
            vector, notes = None, ["as of then, by words alone"]
        while True:
            now = time.time() if as_of is None else as_of
            where, apart = (self._ports.project, all_projects), not self.paper
            among = index.by_nature(query, vector, now, *where, kind=kind, layers=apart)
            chosen = choose(self._ports, among, most, wanted, shown, task.kind)
            wanted_ids = list(dict.fromkeys([*chosen.noted, *chosen.scores, *chosen.held]))
            if then is not None:
                lessons = [then[id] for id in wanted_ids]
                break
            lessons = await self._lessons.there(self.agent_id, wanted_ids) if wanted_ids else ()
            if len(lessons) == len(wanted_ids):
                break
            index.leave_out(set(wanted_ids).difference(lesson.id for lesson in lessons))
        known = {lesson.id: lesson for lesson in mark_contradictions(lessons) if has_reason(lesson, query)}
        priced = as_of is None and threshold is None  # who names a threshold has named the price
        chosen, entries, found = await self._priced(chosen, known, task if priced else None)
        kept = await self._accounts(task, as_of, most) if "history" in shown else ()
        accounts = fitting(kept, account_text, settings.history_tokens)
        id, now = f"r{secrets.token_hex(6)}", round(time.time(), 3)
        mine = [one for one in (*entries, *found) if one.agent_id == self._ports.writes and not one.pinned]
        drawn, withheld = draws(id, mine, settings.withhold if counted and as_of is None else 0.0)
        unnoted = 0 if settings.reader else len(chosen.noted.keys() & known.keys()) - len(entries)
        untold, project = len(kept) - len(accounts), self._ports.project

        everything = Shown(entries, unnoted, found, accounts, untold, settings.tokens, project)
        shows = everything.without(withheld)
        text = shows.text()
        given = {one.id: one.score or 0.0 for one in (*shows.entries, *shows.lessons)}
        receipt = Receipt(id, self.agent_id, now, query, given, chosen.filtered, (), withheld, drawn, estimate(text))
        try:
            if counted:
                await self._lessons.recalled(receipt)
                notes += (unmarked, *await self._recorded_notes(len(withheld)))
        except StoreError as error:  # as for a change that could not be marked
            notes += (unmarked, f"without a receipt: {str(error).rstrip('.')}")
            id, shows = "", everything.without(())
            text = shows.text()
        nearest = next((HeldBack(id, known[id].title, score) for id, score in chosen.held.items() if id in known), None)
        return Recall(
            id,
            (*shows.entries, *shows.lessons),
            chosen.filtered,
            text,
            chosen.threshold,
            "; ".join(filter(None, notes)),
            nearest if chosen.filtered else None,
            tuple(account.id for account in accounts),
            shows.retry_text(task),
        )

    async def _priced(
        self, chosen: Chosen, known: Mapping[str, Lesson], task: Task | None
    ) -> tuple[Chosen, Sequence[Lesson], Sequence[Lesson]]:
        """The chosen facts for the notebook that fit into it, and the other chosen lessons, each with its relevance and
        worth its price. Those that are not count as held back. task: None where nothing has a price."""
        settings = self._ports.settings
        entries = [replace(known[id], score=score) for id, score in chosen.noted.items() if id in known]
        found = [replace(known[id], score=score) for id, score in chosen.scores.items() if id in known]
        worded = partial(fact_text, project=self._ports.project)
        if settings.reader and known and task:
            measured = {one.id: one.tally for one in await self.worth(of=list(known))}
            price = partial(worth_showing, text=worded, reader=settings.reader, task=task, tallies=measured)
            entries, found = price(entries), price(found)
        entries = fitting(entries, worded, settings.notebook_tokens)
        noted = {entry.id for entry in entries}
        shown = noted.union(one.id for one in found)
        dear = {id: score for id, score in chosen.scores.items() if id in known and id not in shown}
        found = [one for one in found if one.id not in noted]
        return chosen.holding_back(dear), entries, found

    async def solved_like(self, task: Task, most: int = 5) -> Sequence[str]:
        """The ids of solved episodes of this project that the bank has an account of, where the words of their task fit
        this one: the nearest first."""
        kept = await self._lessons.accounts(self.agent_id, self._ports.project, ACCOUNTS)
        return [one.id for one in self._indexes.solved_like(kept, mask(task_text(task)), most, PRESETS["standard"])]

    async def _accounts(self, task: Task, as_of: float | None, most: int) -> Sequence[Account]:
        kept = await self._lessons.accounts(self.agent_id, self._ports.project, ACCOUNTS)
        kept = [account for account in kept if as_of is None or account.at <= as_of]
        if self._ports.settings.history == "newest":
            return kept
        return self._indexes.solved_like(kept, mask(task_text(task)), most)

    async def _announced_by(self, task: Task | str) -> str:
        """Announces the change that a task names in its inputs, if it names one; returns why that failed, or ""."""
        change = task.inputs.get("change") if isinstance(task, Task) else None
        if not isinstance(change, str) or not change.strip():
            return ""
        try:
            await self.announce(change)
        except StoreError as error:  # a disk that is full, or may not be written, keeps nobody from reading
            return f"the change could not be marked: {str(error).rstrip('.')}"
        return ""

    async def _recorded_notes(self, withheld: int) -> Sequence[str]:
        """What a recorded recall notes: how many entries it withheld, and which lessons were retired for harm."""
        count = f"{withheld} {'entry' if withheld == 1 else 'entries'}"
        kept = [f"without {count}, withheld to measure {'its' if withheld == 1 else 'their'} worth"]
        return [*(kept if withheld else ()), *await self.retired_for_harm()]

    def _why_lexical(self, embedded: bool) -> str:
        vectors = self._ports.vectors
        return vectors.why_not or ("the embedder did not answer" if embedded else "no lesson has a vector yet")

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
        """Lessons from an episode, or from the contrast of several of one task. The same are learned from once.

        Without a model, or with `borrow`, `Learned.question` is what to think about, and `commit(learned.work, answer)`
        takes the answer. The receipt of a recall that an episode names gets the outcome of its task.

        Args:
            episodes: One episode, or several of one task.
            success: Whether the task succeeded, in place of what evaluators said; if nobody said, a judge decides.
            background: Accept the work on disk, and leave it to whichever process comes to it.
            borrow: Hand out the question even if the bank has a model.
        """
        if success not in (True, False, None):
            raise InvalidInput(f"success must be True, False or None, not {success!r}.")
        several = [episodes] if isinstance(episodes, Episode) else list(episodes)
        learned = await self._learning.learn(several, success, background=background, borrow=borrow)
        await self._learning.try_waiting()
        self.wake()
        return learned

    async def resume(self, work: str, *, background: bool = False, borrow: bool = False) -> Learned:
        """The outcome of what `learn` accepted; if there is none yet, what `learn` returns for the same episodes."""
        learned = await self._learning.resume(await self._extraction(work), background, borrow)
        self.wake()
        return learned

    async def outcome(self, work: str) -> Learned:
        """The outcome so far of what `learn` accepted. With a question, `failed` says what was wrong with the last
        answer, if there was one."""
        learned = await self._learning.outcome(await self._extraction(work))
        if learned.pending:
            self.wake()
        return learned

    async def accepted(self, episodes: Sequence[Episode] | Episode) -> str | None:
        """The work that learns from these, if it was accepted and has not failed."""
        several = [episodes] if isinstance(episodes, Episode) else list(episodes)
        return await self._queue.find(self._ports.writes, "extract", key_of(several))

    async def recalled(self, id: str) -> Recall:
        """The recall of this receipt, for an episode that is learned from; lessons that are gone are left out.

        Raises `NotFound` for another agent's, as for none.
        """
        receipt = await self._lessons.receipt(self.agent_id, id)
        if (receipt.agent_id or "") != self._ports.writes:
            raise NotFound(f"There is no recall {id!r} in this bank.")
        lessons = await self._writer.present(self._ports.writes, list(receipt.lessons), ())
        scored = tuple(replace(lesson, score=receipt.lessons[lesson.id]) for lesson in lessons)
        return Recall(receipt.id, scored, receipt.filtered)

    async def outcome_of(self, id: str, success: bool) -> bool:
        """Tells how the task of the recall `id` ended, where nothing is learned from it.

        The first outcome of a recall counts, whether it was told here or learned from; it is returned. Raises
        `NotFound` for another agent's recall, as for none.
        """
        if not isinstance(success, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(f"success must be True or False, not {success!r}.")
        return await self._lessons.outcome_of(self._ports.writes, id, success)

    async def retired_for_harm(self) -> Sequence[str]:
        """Sentences about lessons that were retired for the harm that they did; each is given once."""
        gone = await self._lessons.retired_for_harm(self._ports.writes)
        return [
            f"without lesson {id[:8]}, which was retired ({why}; restore brings it back)" for id, why in gone.items()
        ]

    async def worth(self, *, of: Sequence[str] | None = None) -> Sequence[Worth]:
        """What is counted of the whole bank and of each of its lessons, or of these: see `core.worth`."""
        return await self._lessons.worth(self.agent_id, of=of)

    async def balance(self, days: float = DAYS) -> Balance:
        """What this bank cost and saved over so many days."""
        return await balance(self._ports, days)

    async def relevances(self, limit: int = 1000) -> Sequence[tuple[float, bool]]:
        """How relevant each lesson was that the newest recalls showed, and whether that task succeeded."""
        return await self._lessons.relevances(self.agent_id, limit)

    @as_operation("learn", "lessons", "pending")
    async def commit(self, work: str, answer: Json) -> Learned:
        """Takes the answer to a question that was handed out. Raises `BadAnswer`; the question then stays open."""
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
        """The question of this work. Raises `InvalidInput` for work that does not wait for an answer."""
        queued = question_work(await self._queue.look(self._ports.writes, work))
        if queued.status != "waiting":
            raise InvalidInput(f"Job {work} is not waiting for an answer: it is {queued.status}.")
        if queued.kind != "merge":
            return await self._learning.question(queued)
        lessons = await self._lessons.get(self._ports.writes, queued.payload["lessons"])
        question = self._ports.merging.ask(lessons)
        if question is None:
            raise InvalidInput(f"Job {work} needs no answer: commit it with null.")
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
        """Stores a lesson, and returns it; where one says the same, that one with its support raised.

        Args:
            title: The title, a few words. A fact of the same title takes the place of an older one.
            content: The text of the lesson.
            origin: Where it comes from.
            by_a_person: Whether a person wrote it, so that it is recalled even if it is flagged.
            fold: Whether one that says the same stands for it; False stores it as a lesson of its own.
            details: Fields of `LessonDetails`. Those left out have the defaults of `Lesson`; a fact is of the current
                project.
        """
        facts = {"project": self._ports.project} if details.get("nature") == "fact" else {}
        given = {"title": title, "content": content, "outcome": "success", **facts}
        optional = ("project", "context")  # which may be None
        given |= {name: value for name, value in details.items() if value is not None or name not in optional}
        fields: dict[str, Any] = checked_fields(given)
        lesson = self._writer.new_lesson(Lesson("", **fields, origin=origin, state=state), self._ports.writes)
        lesson = replace(lesson, experience=lesson.id, expires=fields.get("expires", lesson.expires))
        learned = await self._writer.add(self._ports.writes, [lesson], by_a_person=by_a_person, fold=fold)
        return await self.get((*learned.lessons, *learned.folded)[0])

    async def edit(
        self, id: str, change: Callable[[Lesson], Mapping[str, Any]] | None = None, /, **fields: Any
    ) -> Lesson:
        """Changes fields of a lesson, and no others; its history keeps the text of before.

        change: gives fields by the lesson as it is when they are written, such as a tag beside the ones that it has;
        what it raises leaves the lesson as it is.
        """
        fields = checked_fields(fields)

        def edited(now: Lesson) -> Lesson:
            return replace(now, **fields, **(checked_fields(change(now)) if change else {}))

        return await self._changed(id, "edited", edited)

    async def receive(self, lesson: Lesson, before: Lesson | None = None) -> Lesson:
        """Stores what a stranger sent, in quarantine: as a new lesson, or as what the lesson of this id says now.

        before: the lesson as it was read. Raises `LessonChanged` where it is another by now.
        """
        return await self._writer.receive(self._ports.writes, lesson, before)

    async def withdraw(self, id: str, why: str) -> Lesson:
        """Retires a lesson that its author has withdrawn, even if it is in quarantine."""
        return await self._changed(id, "retired", changes.withdrawn, why)

    async def announce(self, change: str) -> int:
        """Marks the facts of the current project as to be checked, because of this change; how many.

        A fact that is seen to hold again loses the mark. A task that has an input "change" announces it by itself.
        """
        why = f"{CHANGE_MARK}{one_line(mask(change), 200)}"
        which = Selection(nature="fact", project=self._ports.project, limit=None)
        facts = [fact for fact in await self._lessons.list(self._ports.writes, which) if fact.to_check != why]
        for fact in facts:
            await self._writer.doubt(fact, why)
        return len(facts)

    async def notebook(self, as_of: float | None = None) -> Sequence[Lesson]:
        """The facts of the current project that are recalled, newest first; as_of: those of then (seconds since the
        epoch)."""
        if as_of is None:
            which = Selection(nature="fact", project=self._ports.project, limit=None, expired=False)
            facts = await self._lessons.list(self.agent_id, which)
        else:
            then = [one for one in await self._lessons.as_of(self.agent_id, moment(as_of)) if not one.is_expired(as_of)]
            facts = [one for one in then if one.nature == "fact" and one.project == self._ports.project]
        return tuple(sorted(mark_contradictions(facts), key=lambda fact: -fact.time))

    async def undo(self, id: str) -> Lesson:
        """Takes back the last change of a lesson that its history can take back; the lesson after it.

        A replaced fact and merged lessons come back; a retired one is restored; an edited one has its old text, and one
        that was marked or confirmed is as before. Raises `InvalidInput` where there is nothing to take back.
        """
        lesson = await self._own(id)
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
        """Ends the quarantine of a lesson that somebody has read and found harmless."""
        released = await self._changed(id, "released", changes.released)
        await self._writer.queue_links(self._ports.writes, [released.id])
        return released

    async def pin(self, id: str, pinned: bool = True) -> Lesson:
        """Whether a lesson is shown in any case: it is never withheld, and not retired for what it does."""
        return await self._changed(id, "edited", lambda now: replace(now, pinned=pinned))

    async def rate(self, id: str, score: float, *, by: str = "", comment: str = "") -> Lesson:
        """Keeps a person's score of a lesson, 0 to 1, beside those that were given before; 0.5 or more confirms a query
        pair.

        Raises `InvalidInput` for another score.
        """
        rating = Rating.given(score, by, round(time.time(), 3), mask(comment))
        return await self._changed(id, "edited", lambda now: changes.rated(now, rating), "rated")

    async def related(self, *, similarity: float = 0.6, least: int = 3) -> Sequence[Sequence[Lesson]]:
        """Groups of strategies that are related and not yet one: candidates for `merge`, which makes a rule of each.

        Each two of a group have at least this cosine, and it has at least so many. Raises `InvalidInput` for settings
        that find nothing or everything, and where lessons have no vectors.
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
        """One lesson of several; the originals are superseded, and `unmerge` brings them back.

        With an answer, that is the merged lesson; else the strategy makes it, or a model; without one `question` and
        `work` say what to think about and where to commit it.
        """
        lessons = [await self._own(id) for id in dict.fromkeys(ids)]
        if len(lessons) < 2:
            raise InvalidInput("A merge needs two lessons or more: name their ids.")
        for lesson in lessons:
            if lesson.state != "active":
                raise InvalidInput(f"Lesson {lesson.id} is {lesson.state}: only active lessons are merged.")
            if lesson.nature == "query_pair":
                raise InvalidInput(f"Lesson {lesson.id} is a query pair, and query pairs are never merged.")
        writes, names = self._ports.writes, [lesson.id for lesson in lessons]
        question = self._ports.merging.ask(lessons)
        payload: Json = {"lessons": names, "by_hand": True}
        asked = [
            one.id for one in await self._queue.pending(writes) if (one.status, one.payload) == ("waiting", payload)
        ]
        work = asked[0] if asked else await self._queue.enqueue("merge", writes, payload, waiting=True)
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
        """The ids of the lessons that it was merged from, or whose place this fact took; they are as they were before,
        and it is retired itself."""
        lesson = await self._own(id)
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
        """By its id, or the beginning of one."""
        whole = await self._lessons.resolve(self.agent_id, id)
        return (await self._lessons.get(self.agent_id, [whole]))[0]

    async def list(self, which: Selection = Selection()) -> Sequence[Lesson]:
        return await self._lessons.list(self.agent_id, which)

    async def changes(self, since: int) -> Delta:
        """What changed in this bank after this tip, and the tip now: see `LessonStore.delta`."""
        return await self._lessons.delta(self.agent_id, None, since)

    async def history(self, id: str) -> Sequence[Version]:
        return await self._lessons.history(self.agent_id, await self._lessons.resolve(self.agent_id, id))

    async def decided(self) -> Sequence[Decided]:
        """Who changed what: all changes that somebody decided on, oldest first."""
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
        """Makes the missing vectors of the current embedder; how many pieces of work were done."""
        if self._ports.vectors.embedder is None:
            raise InvalidInput(f"No vectors could be computed: {self._ports.vectors.why_not}.")
        await self._queue.enqueue("embed", self._ports.writes, {})
        self._upkeep.on_embedded = on_embedded
        try:
            return await self.work()
        finally:
            self._upkeep.on_embedded = None

    async def purge(self, ids: Sequence[str] | None) -> int:
        """Removes lessons for good, with their history; None: all of this agent. How many."""
        writes = self._ports.writes
        whole = None if ids is None else [await self._lessons.resolve(writes, id) for id in ids]
        with operation("clear" if whole is None else "purge", facts={"bank": writes}) as done:
            if whole is not None and len(whole) == 1:
                done.facts["lesson"] = whole[0]
            done.facts["lessons"] = removed = await self._lessons.purge(writes, whole)
        return removed

    async def redact(self, id: str, change: Callable[[Mapping[str, Json]], Mapping[str, Json]]) -> bool:
        """Changes the context of a lesson in all of its history: for what is not to be kept. This cannot be undone."""
        writes, whole = self._ports.writes, await self._lessons.resolve(self._ports.writes, id)
        with operation("change", facts={"bank": writes, "lesson": whole, "change": "redacted"}):
            return await self._lessons.redact(writes, whole, change)

    async def verify(self, *, mend: bool = False) -> Sequence[Fault]:
        """Finds what is wrong with the store, and with `mend` repairs what can be repaired."""
        found = list(await self._lessons.verify(mend=mend))
        for agent_id, id in await self._indexes.unsearchable(self._ports.vectors.id):
            if mend:
                (lesson,) = await self._lessons.get(agent_id, [id])
                (entry,) = await self._writer.entries([replace(lesson, embedder=None)])
                why = {"why": "verify"}
                with suppress(LessonChanged):  # who changed it made anew what it is found by
                    await self._lessons.change(agent_id, lesson, "edited", entry=entry, detail=why, before=lesson)
            found.append(Fault(f"Lesson {id} has lost its search data.", mend, id))
        return found

    async def work(self, seconds: float | None = None, *, ask: bool = False) -> int:
        """Does queued work of any process until none is due or the time is up; how many pieces.

        ask: Also what waits until learning has a budget: questions about episodes, and replays.
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
        """Starts to do queued work in the background of this process."""
        self._worker.wake()

    async def close(self, seconds: float = 5.0) -> None:
        """Closes the bank. Queued work is done for this long at most; the rest is on disk for the next process."""
        await self._worker.leave(seconds)
        await self._ports.memory.close()

    async def _taken(self, work: str) -> tuple[Queued, Claim]:
        return await self._ports.claimed(self._queue.take(self._ports.writes, work, self._ports.owner, LEASE))

    async def _extraction(self, work: str) -> Queued:
        queued = await self._queue.look(self._ports.writes, work)
        if queued.kind != "extract":
            raise NotFound(f"This bank has no pending job {work!r} that learns from an episode.")
        return queued

    async def _own(self, id: str) -> Lesson:
        """A lesson that this bank may change."""
        whole = await self._lessons.resolve(self._ports.writes, id)
        return (await self._lessons.get(self._ports.writes, [whole]))[0]

    async def _changed(self, id: str, change: Any, changed: Callable[[Lesson], Lesson], why: str = "") -> Lesson:
        """See `LessonWriter.change`."""
        writes = self._ports.writes
        whole = await self._lessons.resolve(writes, id)
        return await self._writer.change(writes, whole, change, changed, detail=detail_of(why))
