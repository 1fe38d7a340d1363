"""Recall the past for a task: find what helps, choose what fits into the prompt, and keep a receipt."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mulligan.bank.learn.facts import has_reason, mark_contradictions
from mulligan.bank.learn.trajectory import account_text
from mulligan.bank.ports import ACCOUNTS, Form, Ports
from mulligan.bank.recall.choosing import Chosen, choose, draws
from mulligan.bank.recall.index import Indexes
from mulligan.bank.recall.notebook import Shown
from mulligan.bank.recall.price import worth_showing
from mulligan.bank.recall.prompt_text import fact_text, fitting
from mulligan.core.errors import StoreError
from mulligan.core.lesson_history import Account, Receipt
from mulligan.core.records import HeldBack, Lesson, Recall, Task
from mulligan.text.formatting import task_text
from mulligan.text.secrets import mask
from mulligan.text.truncate import estimate


@dataclass(frozen=True)
class RecallRequest:
    """The checked arguments of `Bank.recall`, with the settings of the bank in place of those left out.

    Attributes:
        query: the text of the task, with secrets masked.
        priced: whether lessons that are not worth their tokens are held back.
    """

    task: Task
    query: str
    forms: Sequence[Form]
    top_k: int
    threshold: float | str | None
    as_of: float | None
    counted: bool
    all_projects: bool
    kind: str | None
    priced: bool


class Recaller:
    """Recalls the lessons of one agent."""

    def __init__(self, ports: Ports, indexes: Indexes) -> None:
        self._ports, self._indexes = ports, indexes
        self._lessons = ports.memory.lessons

    async def recall(self, request: RecallRequest, warning: str) -> Recall:
        """See `Bank.recall`. warning: a note for the recall, such as that a change could not be marked; "" for none."""
        settings, project = self._ports.settings, self._ports.project
        chosen, by_id, notes = await self._matches(request)
        chosen, entries, others = await self._affordable(request, chosen, by_id)
        candidates = await self._accounts(request) if "history" in request.forms else ()
        accounts = fitting(candidates, account_text, settings.history_tokens)
        id, now = f"r{secrets.token_hex(6)}", round(time.time(), 3)
        withhold = settings.withhold if request.counted and request.as_of is None else 0.0
        own = [one for one in (*entries, *others) if one.agent_id == self._ports.writes and not one.pinned]
        drawn, withheld = draws(id, own, withhold)
        more_entries = 0 if settings.reader else len(chosen.noted.keys() & by_id.keys()) - len(entries)
        more_accounts = len(candidates) - len(accounts)

        everything = Shown(entries, more_entries, others, accounts, more_accounts, settings.tokens, project)
        shown = everything.without(withheld)
        text = shown.text()
        scores = {one.id: one.score or 0.0 for one in (*shown.entries, *shown.lessons)}
        receipt = Receipt(
            id, self._ports.agent_id, now, request.query, scores, chosen.filtered, (), withheld, drawn, estimate(text)
        )
        try:
            if request.counted:
                await self._lessons.recalled(receipt)
                notes += [warning, *_withheld_note(len(withheld)), *await self.retired_for_harm()]
        except StoreError as error:  # a store that cannot be written can still be read
            notes += [warning, f"without a receipt: {str(error).rstrip('.')}"]
            id, shown = "", everything.without(())
            text = shown.text()
        held = next((HeldBack(id, by_id[id].title, score) for id, score in chosen.held.items() if id in by_id), None)
        return Recall(
            id,
            (*shown.entries, *shown.lessons),
            chosen.filtered,
            text,
            chosen.threshold,
            "; ".join(filter(None, notes)),
            held if chosen.filtered else None,
            tuple(account.id for account in accounts),
            shown.retry_text(request.task),
        )

    async def _matches(self, request: RecallRequest) -> tuple[Chosen, Mapping[str, Lesson], list[str]]:
        """The choice among the lessons of now, or of the request's moment; the chosen by id; notes for the recall."""
        agent_id, query, as_of = self._ports.agent_id, request.query, request.as_of
        notes: list[str] = []
        then: Mapping[str, Lesson] = {}
        if as_of is None:
            index = await self._indexes.of(agent_id)
            vectors = await self._ports.vectors.of([query]) if index.embedded else None
            vector = None if vectors is None else vectors[0]
            if vectors is None and index.n:
                notes = [f"by keyword only: {self._why_lexical(index.embedded)}"]
        else:
            lessons = await self._lessons.as_of(agent_id, as_of)
            then = {lesson.id: lesson for lesson in lessons if not lesson.is_expired(as_of)}
            index, vector, notes = self._indexes.once(tuple(then.values())), None, ["as of then, by keyword only"]
        layers = not self._ports.settings.paper
        while True:
            now = time.time() if as_of is None else as_of
            rankings = index.by_nature(
                query, vector, now, self._ports.project, request.all_projects, kind=request.kind, layers=layers
            )
            chosen = choose(self._ports, rankings, request.top_k, request.threshold, request.forms, request.task.kind)
            ids = list(dict.fromkeys([*chosen.noted, *chosen.scores, *chosen.held]))
            if as_of is not None:
                lessons = [then[id] for id in ids]
                break
            lessons = await self._lessons.there(agent_id, ids) if ids else ()
            if len(lessons) == len(ids):
                break
            # Some were purged meanwhile or cannot be read: choose again without them.
            index.leave_out(set(ids).difference(lesson.id for lesson in lessons))
        by_id = {lesson.id: lesson for lesson in mark_contradictions(lessons) if has_reason(lesson, query)}
        return chosen, by_id, notes

    def _why_lexical(self, embedded: bool) -> str:
        vectors = self._ports.vectors
        return vectors.why_not or ("the embedder did not answer" if embedded else "no lesson has a vector yet")

    async def _affordable(
        self, request: RecallRequest, chosen: Chosen, by_id: Mapping[str, Lesson]
    ) -> tuple[Chosen, Sequence[Lesson], Sequence[Lesson]]:
        """The choice, the facts for the notebook that fit into it, and the other lessons, each with its relevance.

        In a request that is priced, lessons that are not worth their tokens count as held back.
        """
        settings = self._ports.settings
        entries = [replace(by_id[id], score=score) for id, score in chosen.noted.items() if id in by_id]
        others = [replace(by_id[id], score=score) for id, score in chosen.scores.items() if id in by_id]
        text_of = partial(fact_text, project=self._ports.project)
        if settings.reader and by_id and request.priced:
            measured = await self._lessons.worth(self._ports.agent_id, of=list(by_id))
            tallies = {worth.id: worth.tally for worth in measured}
            worthy = partial(worth_showing, text=text_of, reader=settings.reader, task=request.task, tallies=tallies)
            entries, others = worthy(entries), worthy(others)
        entries = fitting(entries, text_of, settings.notebook_tokens)
        noted = {entry.id for entry in entries}
        affordable = noted.union(lesson.id for lesson in others)
        dear = {id: score for id, score in chosen.scores.items() if id in by_id and id not in affordable}
        return chosen.holding_back(dear), entries, [lesson for lesson in others if lesson.id not in noted]

    async def _accounts(self, request: RecallRequest) -> Sequence[Account]:
        """The accounts that the history may show: the newest, or the solved ones of similar tasks."""
        if self._ports.settings.history == "nearest":
            return await self.solved_like(request.task, request.top_k, as_of=request.as_of)
        return await self._kept_accounts(request.as_of)

    async def solved_like(
        self, task: Task, most: int, least: float = 0.0, as_of: float | None = None
    ) -> Sequence[Account]:
        """The accounts of at most so many solved episodes whose tasks are at least this relevant, nearest first."""
        return self._indexes.solved_like(await self._kept_accounts(as_of), mask(task_text(task)), most, least)

    async def _kept_accounts(self, as_of: float | None) -> Sequence[Account]:
        accounts = await self._lessons.accounts(self._ports.agent_id, self._ports.project, ACCOUNTS)
        return [account for account in accounts if as_of is None or account.at <= as_of]

    async def retired_for_harm(self) -> Sequence[str]:
        """See `Bank.retired_for_harm`."""
        reasons = await self._lessons.retired_for_harm(self._ports.writes)
        return [
            f"without lesson {id[:8]}, which was retired ({why}; restore brings it back)" for id, why in reasons.items()
        ]


def _withheld_note(count: int) -> Sequence[str]:
    if not count:
        return ()
    entries, whose = ("entry", "its") if count == 1 else ("entries", "their")
    return [f"without {count} {entries}, withheld to measure {whose} worth"]
