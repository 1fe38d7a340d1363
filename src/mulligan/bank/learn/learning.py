"""Learn from episodes: rules draw facts, a judge decides where no evaluator did, and a model extracts lessons.

Work is stored before a model is asked. Without a model the question is handed out, and `commit` takes the answer.
Lessons are screened and embedded before they are stored. Duplicates are folded; near-duplicates are skipped or linked.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, cast

from mulligan.bank.learn.admission import REPLAY, LessonAdmission
from mulligan.bank.learn.costs import ANSWERS, TASK, cost_of, task_cost
from mulligan.bank.learn.extraction import EpisodeJudge, EpisodeVerdict, Extracted, Extractor
from mulligan.bank.learn.facts import (
    actions_of,
    checks_of,
    claim_of,
    claims,
    contradicts,
    facts_of,
    is_objected_to,
    passed_checks,
    quotes_checks,
    success_of,
    upheld,
    working_actions,
)
from mulligan.bank.learn.operations import Notekeeper
from mulligan.bank.learn.screening import screened
from mulligan.bank.learn.trajectory import pair_of, render
from mulligan.bank.learn.writing import LessonWriter, is_task_of
from mulligan.bank.ports import ACCOUNTS, LEASE, NO_MODEL, Ports
from mulligan.bank.recall.choosing import PAGE
from mulligan.bank.recall.notebook import entry_text
from mulligan.bank.recall.prompt_text import fitting
from mulligan.core.codec import digest, from_json, to_json
from mulligan.core.errors import BadAnswer, InvalidInput, LeaseLost, MulliganError, NotFound, StoreError
from mulligan.core.lesson_history import Account
from mulligan.core.lessons import Selection
from mulligan.core.operations import asked
from mulligan.core.protocols import Learned, Model
from mulligan.core.questions import Answer, Question, Sampling, Thinker, think
from mulligan.core.records import Episode, Json, Lesson, Usage
from mulligan.core.work_queue import Claim, Queue, Queued
from mulligan.models.gate import asked_twice
from mulligan.text.formatting import task_text
from mulligan.text.secrets import Masks, each_text
from mulligan.text.truncate import estimate

FAILED_WORKFLOW = "workflows are extracted only from successes"
MAX_UNMASKED_JOBS = 100
"""Jobs waiting for a judge whose unmasked episodes are held in memory."""

BY_RULE = "only rules learn here (learn_share is 0)"
NO_REASON = "rules already learned from it, or there is nothing to learn"
LATER = "a model is asked later, about several tasks together (to ask now: mulligan memory work -m MODEL)"
"""Why no model is asked now."""

MIN_BATCH, MAX_BATCH = 4, 8
"""Episodes in one question if learning has a budget. If a person asks, there is no minimum."""
MAX_WAITING = 1000
"""Jobs looked at that wait for such a question; the oldest come first."""
TASK_TOKENS = 25_000
"""The tokens assumed for a task whose agent counts none: `MIN_BATCH` such tasks pay for one question."""
QUESTION_TOKENS = 1500
"""Approximate tokens of such a question and its answer, without the episodes."""
LEARNING_DAYS = 30
"""The budget for learning is a share of the tokens of this many days."""

NOT_SHOWN = 'forms is only "history", which shows no lessons: to extract lessons, add "lessons" or "notebook"'

JUDGING, EXTRACTING = Sampling(0.0, 1024), Sampling(1.0, 2048)
"""With the temperatures of the ReasoningBank paper."""


def _confirmed(fact: Lesson) -> Lesson:
    unchanged = fact.state != "active" or (fact.confirmed and not fact.to_check)
    return fact if unchanged else replace(fact, confirmed=True, outcome="success", to_check="")


def _retired(lesson: Lesson) -> Lesson:
    return replace(lesson, state="retired") if lesson.state == "active" else lesson


def key_of(episodes: Sequence[Episode]) -> str:
    """The key of the work that learns from these episodes, so that the same episodes are learned from once."""
    return digest([[episode.id, len(episode.trials)] for episode in episodes])


def _after_verdict(work: str) -> str:
    """The key of the extraction that follows once this work has a verdict."""
    return f"{work}:judged"


class Learning:
    """Learns from the episodes of one agent: see `Bank.learn`."""

    def __init__(self, ports: Ports, writer: LessonWriter, admission: LessonAdmission) -> None:
        self._ports, self._writer, self._admission = ports, writer, admission
        self._queue = ports.memory.queue
        # Unmasked episodes by the work that waits for a verdict: a judge needs the secrets in the task. Never stored.
        self._for_judge: dict[str, tuple[Json, Masks]] = {}

    async def learn(
        self, episodes: Sequence[Episode], success: bool | None, *, background: bool, borrow: bool = False
    ) -> Learned:
        """Learns from these episodes of one task, unless they were learned from before."""
        if not episodes or not any(trial.attempt for episode in episodes for trial in episode.trials):
            raise InvalidInput("There is nothing to learn from: no attempt was made.")
        if len({episode.task.prompt for episode in episodes}) > 1:
            raise InvalidInput(
                "Mulligan cannot learn from episodes of different tasks together: learn from them separately."
            )
        masks = Masks()
        # The recalled lessons are in the bank already: the work keeps only their ids.
        masked = masks.json([to_json(replace(episode, recall=None)) for episode in episodes])
        recalls = [episode.recall for episode in episodes if episode.recall]
        recalled: list[Json] = [lesson.id for recall in recalls for lesson in recall.lessons]
        success = success_of(episodes) if success is None else success
        payload: dict[str, Json] = {"episodes": masked, "success": success, "reason": "", "recalled": recalled}
        key = key_of(episodes)
        masked_episodes = [from_json(Episode, episode) for episode in masked]
        await self._keep_accounts(masked_episodes, success)
        facts = await self._learn_facts(masked_episodes, key)
        if len(episodes) > 1:
            await self._record_outcomes(episodes)
        nothing = self._draws_nothing(success) if borrow else self._asks_nothing(success)
        # Several episodes of one task are run to be compared, so they never wait for a batch.
        if self._has_budget and len(episodes) == 1 and not (nothing or borrow):
            nothing = "" if self._needs_model(masked_episodes, success, facts) else NO_REASON
            payload["later"] = not nothing
        payload |= {TASK: task_cost(episodes, success), "nothing": nothing}
        later = bool(payload.get("later"))
        now = bool(nothing) or not (later or borrow or background or self._ports.model is None)
        work, claim = await self._ports.claimed(
            self._queue.begin(
                "extract",
                self._ports.writes,
                payload,
                key=key,
                owner=self._ports.owner if now else None,
                seconds=LEASE,
                waiting=now or later or borrow or self._ports.model is None,
                follows=[recall.id for recall in recalls],
            )
        )
        if success is None and (claim or work.status in ("queued", "waiting")):
            unmasked = masks.unmask_json(masked, task_text(episodes[0].task))
            if unmasked != masked:
                self._for_judge[work.id] = unmasked, masks
            for oldest in list(self._for_judge)[:-MAX_UNMASKED_JOBS]:
                del self._for_judge[oldest]
        if claim is not None:
            try:
                return replace(await self._extract_now(work, claim), facts=facts)
            except MulliganError as error:
                error.facts = facts
                raise
        latest = await self._latest(work)
        if later and latest.status == "waiting" and self._ports.model is not None:
            await self.ask_about_several()
            return Learned(success=success, nothing_because=LATER, work=work.id, facts=facts)
        if latest.status == "failed":  # the extraction after a verdict: try it again
            waiting = borrow or self._ports.model is None or not background
            again = await self._queue.enqueue(
                "extract", latest.agent_id, latest.payload, key=_after_verdict(work.id), waiting=waiting
            )
            latest = await self._queue.look(latest.agent_id, again)
        known = masked_episodes if latest.payload and latest.payload.get("episodes") == masked else None
        return replace(await self.resume(latest, background, borrow, known), facts=facts)

    async def _record_outcomes(self, episodes: Sequence[Episode]) -> None:
        """Gives the recall of each episode the outcome of that episode."""
        for episode in episodes:
            if episode.recall and episode.judged:
                with suppress(NotFound):
                    await self._ports.memory.lessons.outcome_of(
                        self._ports.writes, episode.recall.id, bool(episode.solved)
                    )

    async def _keep_accounts(self, episodes: Sequence[Episode], success: bool | None) -> None:
        """Stores the accounts of these episodes, which the form `history` shows."""
        if self._ports.settings.paper:
            return
        project, now = self._ports.project, round(time.time(), 3)
        tokens = self._ports.settings.account_tokens
        accounts = [
            Account(
                episode.id,
                project,
                now,
                "\n\n".join(render([episode], tokens)),
                episode.solved if episode.judged else success,
            )
            for episode in episodes
        ]
        await self._ports.memory.lessons.keep_accounts(self._ports.writes, accounts, ACCOUNTS)

    # --- facts ------------------------------------------------------------------------------------------------------

    async def _learn_facts(self, episodes: Sequence[Episode], key: str) -> tuple[str, ...]:
        """Stores the facts that the checks of these episodes reveal, and returns their ids.

        A known fact is confirmed if its check passed or its action worked, superseded if a passed check contradicts it,
        and marked as to be checked if its action was refused. If this process dies meanwhile, another one finishes the
        work. If another process is doing it already, no ids are returned.
        """
        if self._ports.settings.paper or self._ports.settings.extraction == "workflows":
            return ()
        writes, project = self._ports.writes, self._ports.project
        passed = passed_checks(episodes)
        actions = {action: how for episode in episodes for action, how in actions_of(episode).items()}
        claims_by_check = {check: dict([claim_of(check)]) for check in passed}
        about = {*actions, *passed, *(subject for check in claims_by_check.values() for subject in check)}
        known = await self._writer.facts(writes, project, about=about) if about else ()
        confirmed, doubted = list[Json](), list[Json]()
        for fact in known:
            holds = upheld(fact, passed, actions)
            if holds and (fact.to_check or not fact.confirmed):
                confirmed.append(fact.id)
            elif holds is False and not fact.to_check:
                doubted.append(fact.id)
        known_claims = [claims(fact) for fact in known]
        contradicting = [
            check for check, new in claims_by_check.items() if any(contradicts(new, old) for old in known_claims)
        ]
        working = {action for fact in known for action in working_actions(fact)}
        # Of facts that contradict each other, the last one counts.
        stated = {asked: value for fact in known if checks_of(fact) for asked, value in claims(fact).items()}

        def is_known(fact: Lesson) -> bool:
            new = claims(fact)
            if new.keys() <= working and working_actions(fact):
                return True
            return bool(new) and new.items() <= stated.items() and not quotes_checks(fact)

        drafts = list[Lesson]()
        for fact in (fact for episode in episodes for fact in facts_of(episode, project, contradicting)):
            if not is_known(fact):
                drafts.append(fact)
                continue
            query, checks = screened(fact)[0].query, claims(fact).keys()
            for other, other_claims in zip(known, known_claims, strict=True):
                if checks & other_claims.keys() and not is_task_of(other, query):
                    await self._writer.remember_task(writes, other.id, query)
        if not drafts and not confirmed and not doubted:
            return ()
        payload: Json = {"facts": [to_json(fact) for fact in drafts], "confirmed": confirmed, "doubted": doubted}
        work, claim = await self._ports.claimed(
            self._queue.begin("facts", writes, payload, key=key, owner=self._ports.owner, seconds=LEASE)
        )
        if claim is not None:
            try:
                return await self._ports.held(claim, lambda: self.keep_facts(work, claim))
            except (Exception, asyncio.CancelledError) as error:
                await self._queue.fail(claim, str(error) or "it was stopped", retry_in=0.0)
                raise
        result: dict[str, Any] = work.result or {}
        ids = (*result.get("lessons", ()), *result.get("folded", ()), *result.get("confirmed", ()))
        return tuple(fact.id for fact in await self._writer.present(writes, list(dict.fromkeys(ids)), ()))

    async def keep_facts(self, work: Queued, claim: Claim) -> tuple[str, ...]:
        """Stores the facts of accepted work, settles the work, and returns the ids of its facts."""
        experience = secrets.token_hex(8)
        drafts = [from_json(Lesson, one) for one in work.payload["facts"]]
        facts = [self._writer.new_lesson(draft, work.agent_id, experience) for draft in drafts]
        confirmed = await self._writer.present(work.agent_id, work.payload["confirmed"])
        for fact in confirmed:
            await self._writer.change(work.agent_id, fact.id, "confirmed", _confirmed)
        for fact in await self._writer.present(work.agent_id, work.payload.get("doubted", ())):
            await self._writer.doubt(fact, "its action has been refused since then")
        learned = await self._writer.add(work.agent_id, facts, claim, {"confirmed": work.payload["confirmed"]})
        return tuple(dict.fromkeys((*learned.lessons, *learned.folded, *(fact.id for fact in confirmed))))

    # --- accepted work ----------------------------------------------------------------------------------------------

    async def resume(
        self, work: Queued, background: bool, borrow: bool, episodes: Sequence[Episode] | None = None
    ) -> Learned:
        """The outcome of accepted work. Work without one is done now or in the background, or asks its question.

        episodes: the episodes in its payload, if they are decoded already.
        """
        work = await self._latest(work)
        if work.status in ("done", "failed"):
            return await self._outcome(work)
        pending = Learned(success=work.payload["success"], work=work.id, pending=True)
        if work.status == "running":
            return pending
        try:
            if borrow or self._ports.model is None:
                if work.status == "queued":
                    await self._queue.turn(work.agent_id, work.id, waiting=True)
                return await self._asking(work, episodes)
            if background and work.status == "waiting":
                await self._queue.turn(work.agent_id, work.id, waiting=False)
            if background or work.status == "queued":
                return pending
            taken, claim = await self._ports.claimed(self._queue.take(work.agent_id, work.id, self._ports.owner, LEASE))
        except LeaseLost:  # another process is doing it
            return pending
        return await self._extract_now(taken, claim)

    async def outcome(self, work: Queued) -> Learned:
        """The outcome of accepted work, so far."""
        work = await self._latest(work)
        if work.status == "waiting":
            return replace(await self._asking(work), failed=work.error)
        if work.status in ("queued", "running"):
            return Learned(success=work.payload["success"], work=work.id, pending=True)
        return await self._outcome(work)

    async def _latest(self, work: Queued) -> Queued:
        """The work itself, or the extraction that followed its verdict."""
        while work.status == "done" and work.result and (following := work.result.get("next")):
            newer = await self._queue.find(work.agent_id, "extract", _after_verdict(work.id))
            work = await self._queue.look(work.agent_id, newer or following)
        return work

    async def _outcome(self, work: Queued) -> Learned:
        """The outcome of work that is done or has failed, without lessons that have been removed since."""
        if work.status != "done":
            return Learned(success=work.payload["success"], work=work.id, failed=work.error or "no reason was given")
        result: dict[str, Any] = work.result or {}
        new = [one.id for one in await self._writer.present(work.agent_id, result.get("lessons", ()), ())]
        folded = (*result.get("folded", ()), *result.get("skipped", ()))
        known = [one.id for one in await self._writer.present(work.agent_id, folded, ())]
        return await self._writer.report(work.agent_id, new, known, result, work.id)

    async def _asking(self, work: Queued, episodes: Sequence[Episode] | None = None) -> Learned:
        payload, question = work.payload, await self.question(work, episodes)
        return Learned(success=payload["success"], reason=payload["reason"], work=work.id, question=question)

    # --- thinking ---------------------------------------------------------------------------------------------------

    async def _extract_now(self, work: Queued, claim: Claim) -> Learned:
        """As `extract`. If that fails, the work waits for another try or for an answer."""
        try:
            return await self._ports.held(claim, lambda: self.extract(work, claim))
        except (Exception, asyncio.CancelledError) as error:
            await self._ports.given_back(claim, error)
            raise

    async def extract(self, work: Queued, claim: Claim) -> Learned:
        """Extracts lessons with the bank's model, after a verdict if there is none yet, and settles the work."""
        payload = dict(work.payload)
        if nothing := payload.get("nothing") or self._asks_nothing(payload["success"]):
            return await self._keep(work.agent_id, Extracted((), nothing), payload, claim)
        if self._ports.model is None:
            raise InvalidInput(NO_MODEL)
        model = KeptAnswers(self._ports.model, self._queue, claim, payload)
        episodes = [from_json(Episode, episode) for episode in payload["episodes"]]
        try:
            if payload["success"] is None:
                verdict = await think(self._judge(), model, self._episodes_for_judge(work), JUDGING)
                payload |= {"success": verdict.success, "reason": self._masked_reason(work, verdict)}
            if nothing := self._draws_nothing(payload["success"]):
                extracted = Extracted((), nothing)
            else:
                extracted = await think(await self._extractor(payload, work.agent_id), model, episodes, EXTRACTING)
        except BadAnswer as error:
            failed = f"{model.model.id} gave no lessons that can be used: {error}"
            await self._queue.fail(claim, failed, retry_in=None)
            return Learned(success=payload["success"], work=work.id, failed=failed)
        return await self._keep(work.agent_id, extracted, payload, claim, by=model.model.id, usage=model.usage)

    async def commit(self, work: Queued, claim: Claim, answer: Json) -> Learned:
        """Takes the answer to the question of this work. Raises `BadAnswer`; the caller then gives the work back."""
        payload = dict(work.payload)
        episodes = [from_json(Episode, episode) for episode in payload["episodes"]]
        if payload["success"] is not None:
            extracted = (await self._extractor(payload, work.agent_id)).take(episodes, answer)
            return await self._keep(work.agent_id, extracted, payload, claim)
        verdict = self._judge().take(episodes, answer)
        reason = self._masked_reason(work, verdict)
        payload |= {"success": verdict.success, "reason": reason}
        if nothing := self._draws_nothing(verdict.success):
            return await self._keep(work.agent_id, Extracted((), nothing), payload, claim)
        payload.pop(ANSWERS, None)  # the bank's model gave them to the question that is answered here
        following = await self._queue.enqueue(
            "extract", work.agent_id, payload, key=_after_verdict(work.id), waiting=True
        )
        await self._queue.finish(claim, {"next": following, "success": verdict.success, "reason": reason})
        question = (await self._extractor(payload, work.agent_id)).ask(episodes)
        return Learned(success=verdict.success, reason=reason, work=following, question=question)

    # --- several episodes, within a budget --------------------------------------------------------------------------

    @property
    def _has_budget(self) -> bool:
        return self._ports.settings.learn_share < 1

    def _needs_model(self, episodes: Sequence[Episode], success: bool | None, facts: Sequence[str]) -> bool:
        """Whether a model may learn something that rules cannot.

        That is why an attempt failed and a later one passed, what a person objected to, and, if the bank shows
        strategies, what a success did right.
        """
        if facts:
            return False
        strategies = "notebook" in self._ports.settings.forms
        return any(pair_of(one) or is_objected_to(one) for one in episodes) or (success is not False and strategies)

    async def ask_about_several(self, *, by_hand: bool = False) -> None:
        """Queues questions about up to `MAX_BATCH` waiting episodes each, as far as the budget goes.

        by_hand: a person asks, so there is no budget and no minimum number of episodes.
        """
        writes, least = self._ports.writes, 1 if by_hand else MIN_BATCH
        asked = {id for batch in await self._queue.pending(writes, kind="batch") for id in batch.payload["works"]}
        waiting = await self._queue.pending(writes, MAX_WAITING, kind="extract")
        waiting = [work for work in waiting if work.payload.get("later") and work.id not in asked]
        if len(waiting) < least:
            return
        left = float("inf") if by_hand else await self._budget()
        while len(waiting) >= least:
            batch, waiting = waiting[:MAX_BATCH], waiting[MAX_BATCH:]
            texts = render(_episodes(batch), self._ports.settings.trajectory_tokens)
            left -= estimate("".join(texts)) + QUESTION_TOKENS
            if left < 0:
                return
            ids: list[Json] = [work.id for work in batch]
            await self._queue.enqueue("batch", writes, {"works": ids}, key=digest(ids))

    async def _budget(self) -> float:
        """The number of tokens that may still be used to learn."""
        since = time.time() - LEARNING_DAYS * 24 * 3600
        costs = [cost_of(work) for work in await self._queue.accepted_since(self._ports.writes, since)]
        share = self._ports.settings.learn_share
        tasks = sum(cost.task if cost.counted else max(cost.task, TASK_TOKENS) for cost in costs)
        return share * tasks - sum(cost.learning for cost in costs)

    async def extract_batch(self, work: Queued, claim: Claim) -> Learned:
        """Asks the bank's model one question about several episodes, and settles their work with it."""
        if self._ports.model is None:
            raise InvalidInput(NO_MODEL)
        ids = set(work.payload["works"])
        waiting = await self._queue.pending(work.agent_id, MAX_WAITING, kind="extract")
        works = [one for one in waiting if one.id in ids]
        model = KeptAnswers(self._ports.model, self._queue, claim, work.payload)
        if not works:
            await self._queue.finish(claim, {})
            return Learned(work=work.id)
        solved, episodes = any(one.payload["success"] for one in works), _episodes(works)
        prompts, tokens = self._ports.prompts, self._ports.settings.trajectory_tokens
        extractor = Extractor(prompts, success=solved, several=True, tokens=tokens, project=self._ports.project)
        try:
            extracted = await think(extractor, model, episodes, EXTRACTING)
        except BadAnswer as error:
            extracted = Extracted((), f"{model.model.id} gave no lessons that can be used: {error}")
        for one in works:
            with suppress(LeaseLost, StoreError):  # somebody answered it meanwhile
                _, own_claim = await self._queue.take(work.agent_id, one.id, self._ports.owner, LEASE)
                result = {name: one.payload.get(name) for name in ("success", "reason", TASK)}
                await self._queue.finish(own_claim, {**result, "batch": work.id})
        payload = {"success": solved, "reason": "", "episodes": [to_json(one) for one in episodes]}
        return await self._keep(work.agent_id, extracted, payload, claim, by=model.model.id, usage=model.usage)

    def _draws_nothing(self, success: bool | None) -> str:
        """Why no lesson may be drawn from episodes with this outcome; "" if lessons may be drawn."""
        return FAILED_WORKFLOW if self._ports.settings.extraction == "workflows" and success is False else ""

    def _asks_nothing(self, success: bool | None) -> str:
        """Why no model is asked about episodes with this outcome; "" if one is. Answers of callers are kept anyway."""
        settings = self._ports.settings
        by_rule = BY_RULE if settings.learn_share == 0 else ""
        return by_rule or self._draws_nothing(success) or (NOT_SHOWN if settings.forms == ("history",) else "")

    async def question(self, work: Queued, episodes: Sequence[Episode] | None = None) -> Question:
        """The question of this work: for a verdict if there is none yet, else for lessons.

        episodes: as for `resume`.
        """
        if work.payload["success"] is None:
            return self._judge().ask(self._episodes_for_judge(work))
        extractor = await self._extractor(work.payload, work.agent_id)
        return extractor.ask(episodes or [from_json(Episode, one) for one in work.payload["episodes"]])

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
        experience, reason = secrets.token_hex(8), str(payload["reason"])
        for entry in await self._writer.present(agent_id, list(extracted.removed)):
            why = {"why": extracted.removed[entry.id]}
            await self._writer.change(agent_id, entry.id, "retired", _retired, detail=why)
        lessons = [
            replace(
                self._writer.new_lesson(draft, agent_id, experience),
                origin=replace(draft.origin, by=by, reason=(draft.origin.reason or reason)[:500]),
            )
            for draft in extracted.lessons
        ]
        result: dict[str, Json] = {
            "success": payload["success"],
            "reason": reason,
            "nothing_because": extracted.nothing_because,
            "usage": asdict(usage),
            "by": by,
            **({TASK: payload[TASK]} if TASK in payload else {}),
        }
        lessons = await self._admission.candidates(agent_id, lessons)
        learned = await self._writer.add(agent_id, lessons, claim, result, named=_task_texts(payload["episodes"]))
        await self.try_waiting()
        return learned

    async def try_waiting(self, *, by_hand: bool = False) -> None:
        """Queues the replays of waiting lessons, as far as the budget goes. by_hand: without a budget."""
        if by_hand or self._ports.settings.admission == REPLAY:
            await self._admission.due(self._budget if self._has_budget and not by_hand else None)

    def _episodes_for_judge(self, work: Queued) -> list[Episode]:
        """The episodes, unmasked where the task itself holds the secret. Another process has only the masked ones."""
        episodes, _ = self._for_judge.get(work.id, (work.payload["episodes"], None))
        return [from_json(Episode, episode) for episode in cast(list[Json], episodes)]

    def _masked_reason(self, work: Queued, verdict: EpisodeVerdict) -> str:
        """The judge's reason, masked as the episodes are."""
        _, masks = self._for_judge.pop(work.id, (None, Masks()))
        return masks.text(verdict.reason)

    def _judge(self) -> EpisodeJudge:
        settings = self._ports.settings
        return EpisodeJudge(self._ports.prompts, tokens=settings.trajectory_tokens, paper=settings.paper)

    async def _extractor(self, payload: Mapping[str, Any], agent_id: str) -> Thinker[Extracted]:
        """The thinker that draws lessons from these episodes: the notekeeper if the bank shows a notebook."""
        settings = self._ports.settings
        several = len(payload["episodes"]) > 1
        workflows = settings.extraction == "workflows"
        if "notebook" in settings.forms and not several and not workflows:
            return Notekeeper(
                self._ports.prompts,
                await self._page(agent_id, payload.get("recalled", ())),
                success=payload["success"],
                reason=str(payload["reason"]),
                tokens=settings.trajectory_tokens,
                project=self._ports.project,
                strategies="lessons" in settings.forms,
            )
        return Extractor(
            self._ports.prompts,
            success=bool(payload["success"]),
            reason=str(payload["reason"]),
            contrast=several,
            tokens=settings.trajectory_tokens,
            paper=settings.paper,
            workflows=workflows,
            project=self._ports.project,
        )

    async def _page(self, agent_id: str, recalled: Sequence[str]) -> Sequence[Lesson]:
        """The entries that the notekeeper sees: the recalled facts, then the newest ones, as many as fit."""
        which = Selection(nature="fact", project=self._ports.project, limit=PAGE)
        newest = await self._ports.memory.lessons.list(agent_id, which)
        shown = [one for one in await self._writer.present(agent_id, recalled) if one.nature == "fact"]
        entries = {entry.id: entry for entry in (*shown, *newest)}
        return fitting(list(entries.values()), entry_text, self._ports.settings.notebook_tokens)


class KeptAnswers:
    """A model whose answers are stored with the work they belong to, so that none is paid for twice.

    Work that is repeated after a crash takes the stored answers in order, even if its questions have changed since.
    """

    def __init__(self, model: Model, queue: Queue, claim: Claim, payload: Mapping[str, Any]) -> None:
        self.model, self.usage = model, Usage()
        self._queue, self._claim, self._payload = queue, claim, dict(payload)
        self._answers: list[Json] = list(payload.get(ANSWERS, ()))
        self._taken = 0

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        if self._taken == len(self._answers):
            answer = await asked_twice(lambda one: asked(self.model, one, sampling, "extractor"), question)
            self._answers.append(to_json(answer))
            await self._queue.keep(self._claim, {**self._payload, ANSWERS: self._answers})
        self._taken += 1
        answer = from_json(Answer, self._answers[self._taken - 1])
        self.usage += answer.usage
        return answer


def _episodes(works: Sequence[Queued]) -> list[Episode]:
    return [from_json(Episode, episode) for work in works for episode in work.payload["episodes"]]


def _task_texts(episodes: Json) -> str:
    """The texts of the tasks of these episodes and of the settings of their checks."""
    texts: dict[str, str] = {}
    for episode in cast(list[dict[str, Any]], episodes):
        task_and_settings = [episode["task"], cast(dict[str, Any], episode.get("head") or {}).get("settings")]
        each_text(task_and_settings, lambda text, _: texts.setdefault(text, text))
    return "\n".join(texts)
