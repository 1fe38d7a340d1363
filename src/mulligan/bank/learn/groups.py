"""Groups of trajectories of one task that a client runs itself: it opens a group, submits trajectories and closes it.

Closing chooses the best trajectory and learns from all of them by contrast. A group is stored as a waiting job of the
queue, so it belongs to one agent and outlives the process that opened it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from mulligan.bank.learn.admission import REPLAY
from mulligan.bank.learn.comparison import COMPARING, Comparison
from mulligan.bank.learn.costs import ANSWERS
from mulligan.bank.learn.learning import KeptAnswers, key_of
from mulligan.bank.ports import LEASE, Ports
from mulligan.core.codec import digest, from_json, json_text, to_json
from mulligan.core.errors import BadAnswer, InvalidInput, LeaseLost, ModelError, NotFound, StoreError
from mulligan.core.protocols import Learned
from mulligan.core.questions import Question, think
from mulligan.core.records import Episode, Json, Task
from mulligan.core.scaling import MAX_K, tied
from mulligan.core.work_queue import Claim, Queued
from mulligan.text.thoughts import output_of
from mulligan.text.times import moment
from mulligan.text.truncate import truncate_text

GROUP = "group"
"""The kind of job that a group is stored as."""
LIFETIME = 7 * 24 * 3600.0
"""Seconds for which a group stays open after the last submission."""
MOST_OPEN = 50
"""Maximum number of open groups of an agent."""
CHARACTERS = 4_000_000
"""Maximum characters of all trajectories in a group."""
MAX_WAIT = 5.0
"""Seconds that a call waits for another call on the same group."""
OUTPUT_TOKENS = 2000
"""Maximum tokens of the best trajectory's output in the result."""

T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """An open group.

    Attributes:
        trajectories: how many trajectories it has.
        expires: when it expires, in seconds since the epoch.
        number: the number of the submitted trajectory, from 1.
        known: whether that trajectory had been submitted before.
    """

    id: str
    trajectories: int
    expires: float
    number: int | None = None
    known: bool = False


@dataclass(frozen=True)
class Closed:
    """The result of closing a group.

    Attributes:
        trajectories: how many trajectories it had.
        best: the number of the best one, from 1. None: answer `question` first, by closing the group again with `best`.
        alike: the numbers of the trajectories with equally good outcomes, including the best.
        success, score: the outcome of the best one, as far as it is known.
        output: the output of the best one, shortened.
        learned: what was learned.
        failed: the error of the bank's model, if it was asked to choose or to learn and failed; else "".
    """

    id: str
    trajectories: int
    best: int | None = None
    alike: tuple[int, ...] = ()
    success: bool | None = None
    score: float | None = None
    output: str = ""
    learned: Learned | None = None
    question: Question | None = None
    failed: str = ""


class Groups:
    """The groups of one bank.

    Args:
        ports: of the bank.
        learn: `Bank.learn`.
        resume: `Bank.resume`.
    """

    def __init__(
        self,
        ports: Ports,
        learn: Callable[..., Awaitable[Learned]],
        resume: Callable[..., Awaitable[Learned]],
    ) -> None:
        self._ports, self._learn, self._resume = ports, learn, resume
        self._queue = ports.memory.queue

    async def open(self, task: Task, *, seconds: float = LIFETIME) -> Group:
        """Opens a group for trajectories of this task. seconds: how long it stays open after the last submission.

        Raises `InvalidInput` if the task is empty or too many groups are open.
        """
        if not task.prompt.strip():
            raise InvalidInput("The task is empty: describe what the trajectories should achieve.")
        if len(task.prompt) > CHARACTERS:
            raise InvalidInput(f"The task has {len(task.prompt):,} characters; at most {CHARACTERS:,} are accepted.")
        writes, open_groups = self._ports.writes, 0
        for work in await self._queue.pending(writes, MOST_OPEN, kind=GROUP):
            open_groups += not await self._expire(work)
        if open_groups >= MOST_OPEN:
            raise InvalidInput(f"{MOST_OPEN} groups are open: close some first. `mulligan memory pending` lists them.")
        payload: Json = {
            "task": to_json(task),
            "project": self._ports.project,
            "seconds": seconds,
            "expires": time.time() + seconds,
            "keys": [],
            "episodes": [],
        }
        id = await self._queue.enqueue(GROUP, writes, payload, waiting=True)
        return Group(id, 0, payload["expires"])

    async def submit(self, id: str, episode: Episode) -> Group:
        """Adds a trajectory of the group's task. A known one only gets its outcome, if it had none.

        Args:
            id: The id of the group.
            episode: The trajectory as the only trial, with its outcome as the trial's feedback. The id and the task of
                the episode are ignored.

        Raises:
            NotFound: the bank has no such group in this project.
            InvalidInput: the group is closed or has expired, has no room, or knows the trajectory with another outcome.
            LeaseLost: another call holds the group.
        """
        if len(episode.trials) != 1:
            raise InvalidInput(
                f"A trajectory must be an episode of one trial, but this one has {len(episode.trials)} trials."
            )
        key = digest(to_json(episode.trials[0].attempt))

        async def add(work: Queued, claim: Claim) -> Group:
            payload = dict(work.payload)
            keys, episodes = list(payload["keys"]), list(payload["episodes"])
            known = key in keys
            if known:
                number = keys.index(key) + 1
                episodes[number - 1] = _with_outcome(from_json(Episode, episodes[number - 1]), episode, number)
            else:
                number = len(keys) + 1
                named = replace(episode, id=f"{id}.{number}", run=id, task=from_json(Task, payload["task"]))
                episodes.append(to_json(named))
                keys.append(key)
                _check_room(episodes)
            payload |= {"keys": keys, "episodes": episodes, "expires": time.time() + payload["seconds"]}
            payload.pop(ANSWERS, None)  # to a comparison of other trajectories
            await self._queue.keep(claim, payload)
            await self._queue.waits(claim)
            return Group(id, len(keys), payload["expires"], number, known)

        work = await self._look(id)
        if work.status != "done":
            work, group = await self._holding(id, add)
            if group is not None:
                return group
        result = work.result
        if key not in result.get("keys", ()):
            raise InvalidInput(f"The group {id!r} is closed and accepts no more trajectories: open a new one.")
        return Group(id, len(result["keys"]), result["expires"], result["keys"].index(key) + 1, True)

    async def close(self, id: str, *, best: int | None = None) -> Closed:
        """Chooses the best trajectory and learns from all by contrast. Closing a closed group gives the same result.

        The best trajectory has the best outcome. Among equal outcomes the bank's model chooses. If there is no model,
        or it fails, the result holds a question.

        Args:
            id: The id of the group.
            best: The answer to that question: the number of a trajectory. It may be given without being asked.

        Raises:
            BadAnswer: `best` is not one of the trajectories with the best outcome. The group stays open.
            NotFound, InvalidInput, LeaseLost: as for `submit`.
        """
        work = await self._look(id)
        if work.status != "done":
            work, closed = await self._holding(id, lambda work, claim: self._close(work, claim, best))
            if closed is not None:
                return closed
        result: dict[str, Any] = work.result
        fields = {name: result[name] for name in ("best", "success", "score", "output")}
        learned, failed = await self._lessons(lambda: self._resume(result["work"], background=self._background), None)
        return Closed(id, len(result["keys"]), alike=tuple(result["alike"]), learned=learned, failed=failed, **fields)

    async def _close(self, work: Queued, claim: Claim, named: int | None) -> Closed:
        payload = dict(work.payload)
        episodes = [from_json(Episode, one) for one in payload["episodes"]]
        if not episodes:
            raise InvalidInput(f"The group {work.id!r} has no trajectory yet: submit one, then close it.")
        alike = [place + 1 for place in tied(episodes)]
        if "best" not in payload:
            best, question, failed = await self._choose(work, claim, episodes, alike, named)
            if best is None:
                await self._queue.keep(claim, {name: value for name, value in payload.items() if name != ANSWERS})
                await self._queue.waits(claim, failed)
                return Closed(work.id, len(episodes), alike=tuple(alike), question=question, failed=failed)
            payload["best"] = best
            await self._queue.keep(claim, payload)  # so that closing it again after a crash does not compare again
        chosen = episodes[payload["best"] - 1].trials[-1]
        learned, failed = await self._lessons(lambda: self._learn(episodes, background=self._background), episodes)
        result: dict[str, Json] = {
            "project": payload["project"],
            "expires": payload["expires"],
            "keys": payload["keys"],
            "alike": alike,
            "best": payload["best"],
            "success": chosen.feedback.passed if chosen.feedback else None,
            "score": chosen.feedback.score if chosen.feedback else None,
            "output": truncate_text(output_of(chosen.attempt), OUTPUT_TOKENS),
            "work": learned.work,
        }
        await self._queue.finish(claim, result)
        fields = {name: result[name] for name in ("best", "success", "score", "output")}
        return Closed(work.id, len(episodes), alike=tuple(alike), learned=learned, failed=failed, **fields)

    async def _choose(
        self, work: Queued, claim: Claim, episodes: Sequence[Episode], alike: Sequence[int], named: int | None
    ) -> tuple[int | None, Question | None, str]:
        """The number of the best trajectory; or the open question, and why the model could not answer it."""
        comparison = Comparison(self._ports.prompts, numbers=alike)
        shown = [episodes[number - 1] for number in alike]
        if named is not None:
            return alike[comparison.take(shown, {"best": named})], None, ""
        if len(alike) == 1:
            return alike[0], None, ""
        if self._ports.model is None:
            return None, comparison.ask(shown), ""
        model = KeptAnswers(self._ports.model, self._queue, claim, work.payload)
        try:
            return alike[await think(comparison, model, shown, COMPARING)], None, ""
        except (BadAnswer, ModelError) as error:
            return None, comparison.ask(shown), str(error)

    @property
    def _background(self) -> bool:
        return self._ports.model is not None and not self._ports.settings.paper

    async def _lessons(
        self, learn: Callable[[], Awaitable[Learned]], episodes: Sequence[Episode] | None
    ) -> tuple[Learned, str]:
        """What was learned; if the model failed, the work that waits for another try, and why.

        episodes: Those that are learned from; None if the group was closed before.
        """
        try:
            return await learn(), ""
        except (BadAnswer, ModelError) as error:
            key = key_of(episodes) if episodes else ""
            if (work := await self._queue.find(self._ports.writes, "extract", key)) is None:
                raise
            return Learned(work=work, pending=True), str(error)

    # --- the job that a group is stored as --------------------------------------------------------------------------

    async def _look(self, id: str) -> Queued:
        """The group's job. Raises `NotFound`, also for another agent or project, and `InvalidInput` if it expired."""
        try:
            work = await self._queue.look(self._ports.writes, id)
            fields = work.payload if work.status != "done" else work.result
            if work.kind != GROUP or fields["project"] != self._ports.project:
                raise NotFound("It is not a group in this project.")
        except NotFound:
            raise NotFound(
                f"There is no group {id[:80]!r} here: pass the id that opening it returned, as the same agent and in "
                "the same project."
            ) from None
        if await self._expire(work):
            raise InvalidInput(
                f"The group {id!r} expired at {moment(fields['expires'])}: its trajectories were discarded. Open a "
                "new group."
            )
        return work

    async def _expire(self, work: Queued) -> bool:
        """Removes the trajectories of a group that has expired. Returns whether it has."""
        if work.status == "done":
            return "keys" not in work.result
        if work.payload["expires"] > time.time():
            return False
        try:
            _, claim = await self._ports.claimed(
                self._queue.take(self._ports.writes, work.id, self._ports.owner, LEASE)
            )
        except StoreError:  # another call holds it, and will notice
            return False
        kept = {name: work.payload[name] for name in ("project", "expires")}
        await self._queue.finish(claim, kept)
        return True

    async def _holding(self, id: str, do: Callable[[Queued, Claim], Awaitable[T]]) -> tuple[Queued, T | None]:
        """Runs `do` while no other call holds the group. Returns its job and the result; None if it has been closed."""
        until = time.monotonic() + MAX_WAIT
        while True:
            try:
                taking = self._queue.take(self._ports.writes, id, self._ports.owner, LEASE)
                work, claim = await self._ports.claimed(taking)
                break
            except StoreError as error:
                if (done := await self._look(id)).status == "done":
                    return done, None
                if not isinstance(error, LeaseLost) or time.monotonic() > until:
                    raise
            await asyncio.sleep(0.02)
        try:
            return work, await self._ports.held(claim, lambda: do(work, claim))
        except (Exception, asyncio.CancelledError) as error:
            await self._ports.given_back(claim, error)
            raise


def _with_outcome(known: Episode, again: Episode, number: int) -> Json:
    """The known trajectory with the outcome that was submitted now. Raises `InvalidInput` if it had another one."""
    (before,), (now,) = known.trials, again.trials
    if now.feedback is None or now.feedback == before.feedback:
        return to_json(known)
    if before.feedback is not None:
        raise InvalidInput(
            f"This is trajectory {number}, which was already submitted with a different outcome. The first outcome "
            "counts: omit success_signal and score, or repeat them."
        )
    return to_json(replace(known, trials=(replace(before, feedback=now.feedback),), stop=again.stop))


def _check_room(episodes: Sequence[Mapping[str, Json]]) -> None:
    if len(episodes) > MAX_K:
        raise InvalidInput(f"The group has {MAX_K} trajectories, which is the maximum: close it.")
    size = len(json_text(list(episodes)))
    if size > CHARACTERS:
        raise InvalidInput(
            f"The group's trajectories would have {size:,} characters; at most {CHARACTERS:,} are accepted in "
            "total. Shorten this one, or omit steps."
        )


def question_work(work: Queued) -> Queued:
    """The job itself. Raises `InvalidInput` for a group of trajectories or a replay, which ask no question."""
    if work.kind == REPLAY:
        raise InvalidInput(
            f"Job {work.id} tests lessons on a recorded run and needs no answer. To run it: mulligan memory work"
        )
    if work.kind == GROUP:
        raise InvalidInput(
            f"Job {work.id} is a group of trajectories: close it with the tool memory_group, or `Bank.groups.close`."
        )
    return work
