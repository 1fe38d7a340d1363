"""From episodes to lessons: judge where nobody has, extract, keep. Accepted work is on disk before anything is thought.

Hosted, a model of the bank thinks; borrowed, the question is handed out and the answer committed (DESIGN, section 2).
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, cast

from mulligan.bank.learn.extraction import Extracted, Extractor
from mulligan.bank.learn.facts import (
    checks_of,
    claim_of,
    claims,
    contradicts,
    facts_of,
    passed_checks,
    subject_of,
    subject_of_check,
)
from mulligan.bank.learn.judging import Judge, Verdict
from mulligan.bank.ports import LEASE, Counting, Ports
from mulligan.bank.upkeep.upkeep import Tending
from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import BadAnswer, InvalidInput, LeaseLost
from mulligan.core.formatting import task_text
from mulligan.core.journal import digest
from mulligan.core.lessons import Entry, Selection
from mulligan.core.protocols import Learned
from mulligan.core.questions import Question, Sampling, think
from mulligan.core.queued import Claim, Queued
from mulligan.core.records import Episode, Json, Lesson, Task, Usage
from mulligan.core.secrets import Masks, each_text

REMEMBERED = 100
"""Pieces of work for whose judge the values of the task are held in memory."""

JUDGING, EXTRACTING = Sampling(0.0, 1024), Sampling(1.0, 2048)
"""Temperatures of the paper."""


def fresh(draft: Lesson, agent_id: str) -> Lesson:
    """A lesson that is new: with an id, its agent and the time."""
    return replace(draft, id=secrets.token_hex(8), agent_id=agent_id, created=round(time.time(), 3))


def signal(episodes: Sequence[Episode]) -> bool | None:
    """Whether they succeeded, as far as their own evaluators said; None where nobody judged."""
    judged = [episode for episode in episodes if episode.judged]
    return any(episode.solved for episode in judged) if judged else None


def key_of(episodes: Sequence[Episode]) -> str:
    """The same for the same episodes."""
    return digest([[episode.id, len(episode.trials)] for episode in episodes])


@dataclass(frozen=True)
class _Shown:
    """Masked episodes as their judge may see them: with those values that stand in the task itself."""

    episodes: Json
    masks: Masks


def _named(episodes: Json) -> str:
    """What the tasks of these episodes and the settings of their checks say."""
    texts: list[str] = []

    def take(text: str, _: str) -> str:
        texts.append(text)
        return text

    for episode in cast(list[dict[str, Any]], episodes):
        each_text([episode["task"], cast(dict[str, Any], episode.get("head") or {}).get("settings")], take)
    return "\n".join(texts)


def _behind(work: str) -> str:
    """The key of the extraction that follows a verdict."""
    return f"{work}:judged"


class Learning:
    def __init__(self, ports: Ports, tending: Tending) -> None:
        self._ports, self._tending = ports, tending
        self._lessons, self._queue = ports.memory.lessons, ports.memory.queue
        self._shown: dict[str, _Shown] = {}  # by work that waits for a verdict; in this process alone, never stored

    async def learn(
        self, episodes: Sequence[Episode], success: bool | None, *, background: bool, borrow: bool = False
    ) -> Learned:
        """Lessons from these trajectories of one task. The same episodes are learned from once."""
        if not episodes or not any(trial.attempt for episode in episodes for trial in episode.trials):
            raise InvalidInput("There is nothing to learn from: no attempt was made.")
        if len({episode.task.prompt for episode in episodes}) > 1:
            raise InvalidInput("Several episodes are learned from at once when they are of one task: learn them apart.")
        success = signal(episodes) if success is None else success
        masks = Masks()
        masked = masks.json([to_json(episode) for episode in episodes])
        payload = {"episodes": masked, "success": success, "reason": ""}
        waiting = borrow or self._ports.model is None or not background
        facts = await self._by_rule([from_json(Episode, one) for one in masked], key_of(episodes))
        follows = [episode.recall.id for episode in episodes if episode.recall]
        id = await self._queue.enqueue(
            "extract", self._ports.writes, payload, key=key_of(episodes), waiting=waiting, follows=follows
        )
        work = await self._queue.look(self._ports.writes, id)
        if success is None and work.status in ("queued", "waiting"):
            self._remember(id, episodes[0].task, masked, masks)
        last = await self._latest(work)
        if last.status == "failed":  # behind a verdict: the extraction is tried anew
            again = await self._queue.enqueue("extract", last.agent_id, last.payload, key=_behind(id), waiting=waiting)
            last = await self._queue.look(last.agent_id, again)
        return replace(await self.resume(last, background, borrow), facts=facts)

    async def _by_rule(self, episodes: Sequence[Episode], key: str) -> tuple[str, ...]:
        """Keeps the facts that the checks of these episodes reveal; their ids.

        Known ones whose check has passed since are confirmed, and those of which a passed check says otherwise are
        replaced. It is queued work, so that it is done once, and by somebody else if this process dies.
        """
        if self._ports.settings.paper:
            return ()
        writes, project = self._ports.writes, self._ports.project
        passed = passed_checks(episodes)
        known = {subject: await self._about(writes, project, subject) for subject in set(map(subject_of_check, passed))}
        unsure = [fact for several in known.values() for fact in several if not fact.confirmed]
        confirmed = [fact.id for fact in unsure if passed.intersection(checks_of(fact))]
        said = {asked: dict([claim_of(asked)]) for asked in passed}
        otherwise = [
            asked
            for asked in passed
            if any(contradicts(said[asked], claims(one)) for one in known[subject_of_check(asked)])
        ]
        drafts = [fact for episode in episodes for fact in facts_of(episode, project, otherwise)]
        if not drafts and not confirmed:
            return ()
        payload = {"facts": [to_json(fact) for fact in drafts], "confirmed": confirmed}
        id = await self._queue.enqueue("facts", writes, payload, key=key)
        result = await self._kept(id)
        kept = dict.fromkeys((*result.get("lessons", ()), *result.get("folded", ()), *result.get("confirmed", ())))
        return await self._there(writes, list(kept))

    async def _kept(self, id: str) -> Mapping[str, Any]:
        """What came of work that keeps facts: done here, unless somebody else is at it, who is waited for."""
        until = time.monotonic() + LEASE
        while True:
            while (claimed := await self._queue.claim(self._ports.owner, LEASE, ("facts",))) is not None:
                work, claim = claimed
                try:
                    await self._ports.held(claim, partial(self.keep_facts, work, claim))
                except (Exception, asyncio.CancelledError) as error:
                    await self._queue.fail(claim, str(error) or "it was stopped", retry_in=0.0)
                    raise
            work = await self._queue.look(self._ports.writes, id)
            tried = work.status == "queued" and work.attempts > 0  # and is tried again later
            if tried or work.status in ("done", "failed") or time.monotonic() > until:
                return work.result or {}
            await asyncio.sleep(0.02)

    async def _about(self, agent_id: str, project: str, subject: str) -> Sequence[Lesson]:
        """The active facts of a project about a subject."""
        which = Selection(nature="fact", project=project, subject=subject, limit=None)
        return await self._lessons.list(agent_id, which)

    async def keep_facts(self, work: Queued, claim: Claim) -> None:
        """Does one piece of accepted work that keeps facts, and settles it."""
        experience = secrets.token_hex(8)
        drafts = [from_json(Lesson, one) for one in work.payload["facts"]]
        facts = [replace(fresh(draft, work.agent_id), experience=experience) for draft in drafts]
        for fact in await self._tending.there(work.agent_id, work.payload["confirmed"]):
            if not fact.confirmed:
                after = replace(fact, confirmed=True, outcome="success")
                await self._lessons.change(work.agent_id, after, "confirmed")
        entries = await self._tending.entries(facts)
        await self.add(work.agent_id, entries, claim, {"confirmed": work.payload["confirmed"]})

    def _remember(self, id: str, task: Task, masked: Json, masks: Masks) -> None:
        shown = masks.unmask_json(masked, task_text(task))
        if shown != masked:
            self._shown[id] = _Shown(shown, masks)
        for old in list(self._shown)[:-REMEMBERED]:
            del self._shown[old]

    async def resume(self, work: Queued, background: bool, borrow: bool) -> Learned:
        """What accepted work has come to; else it is done now, or in the background, or its question is handed out."""
        work = await self._latest(work)
        if work.status in ("done", "failed"):
            return await self.came_of(work)
        pending = Learned(success=work.payload["success"], work=work.id, pending=True)
        if work.status == "running":
            return pending
        try:
            if borrow or self._ports.model is None:
                if work.status == "queued":
                    await self._queue.turn(work.agent_id, work.id, waiting=True)
                return self._asked(work)
            if background and work.status == "waiting":
                await self._queue.turn(work.agent_id, work.id, waiting=False)
            if background or work.status == "queued":
                return pending
            taken, claim = await self._ports.taken(work.agent_id, work.id)
        except LeaseLost:  # somebody is at it
            return pending
        return await self._done_now(taken, claim)

    async def outcome(self, work: Queued) -> Learned:
        """What accepted work has come to."""
        work = await self._latest(work)
        if work.status == "waiting":
            return replace(self._asked(work), failed=work.error)
        if work.status in ("queued", "running"):
            return Learned(success=work.payload["success"], work=work.id, pending=True)
        return await self.came_of(work)

    async def _latest(self, work: Queued) -> Queued:
        """Behind a verdict comes the extraction."""
        while work.status == "done" and work.result and (then := work.result.get("next")):
            newer = await self._queue.find(work.agent_id, "extract", _behind(work.id))
            work = await self._queue.look(work.agent_id, newer or then)
        return work

    def _asked(self, work: Queued) -> Learned:
        payload = work.payload
        return Learned(success=payload["success"], reason=payload["reason"], work=work.id, question=self.question(work))

    async def _done_now(self, work: Queued, claim: Claim) -> Learned:
        try:
            return await self._ports.held(claim, lambda: self.extract(work, claim))
        except (Exception, asyncio.CancelledError) as error:
            await self._ports.given_back(claim, error)
            raise

    async def extract(self, work: Queued, claim: Claim) -> Learned:
        """Does one piece of accepted work with the bank's model, and settles it."""
        model, payload = Counting(self._ports.model), dict(work.payload)
        episodes = [from_json(Episode, episode) for episode in payload["episodes"]]
        try:
            if payload["success"] is None:
                verdict = await think(self._judge(), model, self._judged(work), JUDGING)
                payload |= {"success": verdict.success, "reason": self._reason(work, verdict)}
            extracted = await think(self._extractor(payload), model, episodes, EXTRACTING)
        except BadAnswer as error:
            failed = f"{model.model.id} gave no lessons that can be used: {error}"
            await self._queue.fail(claim, failed, retry_in=None)
            return Learned(success=payload["success"], work=work.id, failed=failed)
        return await self._keep(work.agent_id, extracted, payload, claim, by=model.model.id, usage=model.usage)

    async def commit(self, work: Queued, claim: Claim, answer: Json) -> Learned:
        """Takes the answer to the question that this work waits with. Raises `BadAnswer`; the caller gives it back."""
        payload = dict(work.payload)
        episodes = [from_json(Episode, episode) for episode in payload["episodes"]]
        if payload["success"] is not None:
            extracted = self._extractor(payload).take(episodes, answer)
            return await self._keep(work.agent_id, extracted, payload, claim)
        verdict = self._judge().take(episodes, answer)
        reason = self._reason(work, verdict)
        payload |= {"success": verdict.success, "reason": reason}
        then = await self._queue.enqueue("extract", work.agent_id, payload, key=_behind(work.id), waiting=True)
        await self._queue.finish(claim, {"next": then, "success": verdict.success, "reason": reason})
        question = self._extractor(payload).ask(episodes)
        return Learned(success=verdict.success, reason=reason, work=then, question=question)

    async def _keep(
        self,
        agent_id: str,
        extracted: Extracted,
        payload: Mapping[str, Any],
        claim: Claim,
        *,
        by: str = "",
        usage: Usage = Usage(),
    ) -> Learned:
        experience = secrets.token_hex(8)
        reason = str(payload["reason"])
        lessons = [
            replace(
                fresh(draft, agent_id), experience=experience, origin=replace(draft.origin, by=by, reason=reason[:500])
            )
            for draft in extracted.lessons
        ]
        result: dict[str, Json] = {
            "success": payload["success"],
            "reason": reason,
            "nothing_because": extracted.nothing_because,
            "usage": asdict(usage),
            "by": by,
        }
        entries = await self._tending.entries(lessons, named=_named(payload["episodes"]))
        return await self.add(agent_id, entries, claim, result)

    async def add(
        self, agent_id: str, entries: Sequence[Entry], claim: Claim | None, result: dict[str, Json]
    ) -> Learned:
        """Keeps the entries, folds exact duplicates, queues what new ones need."""
        entries, skipped = await self._tending.unlike(agent_id, [await self._newest(agent_id, one) for one in entries])
        result |= {
            "lessons": [entry.lesson.id for entry in entries],
            "skipped": skipped,
            "quarantined": [entry.lesson.id for entry in entries if entry.lesson.state == "quarantined"],
        }
        kept = await self._lessons.add(agent_id, entries, fold=self._ports.settings.fold, claim=claim, result=result)
        new = tuple(one.id for one in kept if not one.folded)
        await self._tending.after(agent_id, [id for id in new if id not in result["quarantined"]])
        known = dict.fromkeys((*(one.id for one in kept if one.folded), *skipped))
        folded = tuple(id for id in known if id not in new)
        return await self._learned(agent_id, new, folded, result, claim.id if claim else None)

    async def _newest(self, agent_id: str, entry: Entry) -> Entry:
        """The entry; a fact names as its parents those that say otherwise of the same, whose place it takes."""
        fact = entry.lesson
        if fact.nature != "fact" or fact.origin.parents:
            return entry
        said = claims(fact)
        about = {subject_of(fact), *map(subject_of_check, checks_of(fact))}
        known = [one for subject in about for one in await self._about(agent_id, fact.project, subject)]
        old = tuple(dict.fromkeys(one.id for one in known if contradicts(said, claims(one))))
        return replace(entry, lesson=replace(fact, origin=replace(fact.origin, parents=old))) if old else entry

    async def came_of(self, work: Queued) -> Learned:
        """What settled or failed work came to, as far as it is still there."""
        if work.status != "done":
            return Learned(success=work.payload["success"], work=work.id, failed=work.error or "nobody said why")
        result: dict[str, Any] = work.result or {}
        new = await self._there(work.agent_id, result.get("lessons", ()))
        folded = await self._there(work.agent_id, (*result.get("folded", ()), *result.get("skipped", ())))
        known = tuple(id for id in dict.fromkeys(folded) if id not in new)
        return await self._learned(work.agent_id, new, known, result, work.id)

    async def _learned(
        self,
        agent_id: str,
        new: tuple[str, ...],
        known: tuple[str, ...],
        result: Mapping[str, Any],
        work: str | None,
    ) -> Learned:
        """What was learned; `known` that is not recalled any more is named as such."""
        held = set(new).intersection(result.get("quarantined", ()))
        retired: list[str] = []
        for lesson in await self._tending.there(agent_id, known, ()):
            while lesson.superseded_by:
                (lesson,) = await self._tending.there(agent_id, [lesson.superseded_by], ()) or [
                    replace(lesson, superseded_by=None)
                ]
            if lesson.state == "quarantined":
                held.add(lesson.id)
            elif lesson.state == "retired":
                retired.append(lesson.id)
        return Learned(
            new,
            known,
            tuple(id for id in (*new, *known) if id in held),
            tuple(dict.fromkeys(retired)),
            result.get("success"),
            str(result.get("reason", "")),
            str(result.get("nothing_because", "")),
            work=work,
            by=str(result.get("by", "")),
        )

    async def _there(self, agent_id: str, ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(lesson.id for lesson in await self._tending.there(agent_id, ids, ()))

    def question(self, work: Queued) -> Question:
        """What this work asks: to judge, where nobody has, else to extract."""
        if work.payload["success"] is None:
            return self._judge().ask(self._judged(work))
        return self._extractor(work.payload).ask([from_json(Episode, one) for one in work.payload["episodes"]])

    def _judged(self, work: Queued) -> list[Episode]:
        """The episodes as their judge sees them. What was accepted by another process is masked in the task, too."""
        shown = self._shown.get(work.id)
        return [from_json(Episode, one) for one in (shown.episodes if shown else work.payload["episodes"])]

    def _reason(self, work: Queued, verdict: Verdict) -> str:
        """The judge's reason, masked as the episodes are."""
        shown = self._shown.pop(work.id, None)
        return (shown.masks if shown else Masks()).text(verdict.reason)

    def _judge(self) -> Judge:
        settings = self._ports.settings
        return Judge(self._ports.prompts, tokens=settings.trajectory_tokens, paper=settings.paper)

    def _extractor(self, payload: Mapping[str, Any]) -> Extractor:
        settings = self._ports.settings
        return Extractor(
            self._ports.prompts,
            success=bool(payload["success"]),
            reason=str(payload["reason"]),
            contrast=len(cast(list[Json], payload["episodes"])) > 1,
            tokens=settings.trajectory_tokens,
            paper=settings.paper,
            project=self._ports.project,
        )
