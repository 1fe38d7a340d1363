"""The journal of an episode: it reuses finished steps, reports changed requests, and runs no step twice.

Moves are events, and the effects inside a move are steps: design/001.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

from mulligan.core.codec import changes, digest, from_json, json_text, to_json
from mulligan.core.errors import JournalDiverged, JournalError, StepInFlight
from mulligan.core.loop import Meter, path, scope
from mulligan.core.protocols import Bank, Evaluator, Journal, Learned, StepRow
from mulligan.core.records import Episode, Feedback, Json, Recall, Task, Usage
from mulligan.recording.ledger import Entry, inform
from mulligan.text.images import checked_images

StepObserver: TypeAlias = Callable[[str, Json, Json, bool], None]
"""Called with each step once it is done: its key, request and result, and whether it was recorded before."""

AnswerLookup: TypeAlias = Callable[[str, str], Awaitable[tuple[Json, ...]]]
"""The result that another episode has recorded for a step of this name and request hash, or nothing."""

Diverge: TypeAlias = Callable[[Json], Awaitable[Entry]]
"""Returns the entry to continue in, given where and how the requests of a driver differ from the record."""


class StoredJournal:
    """The `Journal` of one drive of an episode. Keys are (path, n), with n counted within the path.

    An effect that raises an exception counts as not done. A failure after which the role can continue belongs in the
    result. The key of a nested step contains the outer step's key, so that counts stay the same when the outer step is
    reused.

    Args:
        entry: The entry in which steps are recorded. If it is None, call `enter` before the first step.
        fork: Whether to forget all later steps if a recorded request differs.
        diverge: Called if a recorded request differs. Returns the entry in which to continue, to which the steps so far
            are copied.
        observer: Called with each finished step. Its errors are logged.
        known: Called for each step that is not in the record. If it returns a result, the step is not done.
        lost: Called with the error when recording fails. Unless it raises, the episode continues without a record.
    """

    def __init__(
        self,
        entry: Entry | None = None,
        *,
        fork: bool = False,
        diverge: Diverge | None = None,
        observer: StepObserver | None = None,
        known: AnswerLookup | None = None,
        lost: Callable[[Exception], None] | None = None,
    ) -> None:
        self._fork, self._diverge = fork, diverge
        if entry is not None:
            self.enter(entry)
        self._observer, self._known = observer, known
        self._lost, self._is_lost = lost, False
        self._counts: Counter[str] = Counter()
        self._under_way: set[str] = set()
        self._taken: dict[str, tuple[Json, tuple[Json, ...]]] = {}
        """The requests, and the results if they are done, of the steps of this drive in order. Only kept for `diverge`,
        which may need them for another entry."""

    def enter(self, entry: Entry) -> None:
        """Record in this entry from now on."""
        self._entry = entry

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        """See `Journal.step`."""
        if self._lost is None:
            return await self._step(name, request, do, repeatable)
        if self._is_lost:
            return await do()
        results, errors = list[Json](), list[Exception]()

        async def once() -> Json:
            try:
                results.append(await do())
            except Exception as error:
                errors.append(error)
                raise
            return results[0]

        try:
            return await self._step(name, request, once, repeatable)
        except Exception as error:
            if error in errors:
                raise
            self._lost(error)
            self._is_lost = True
        return results[0] if results else await do()

    async def _step(self, name: str, request: Json, do: Callable[[], Awaitable[Json]], repeatable: bool) -> Json:
        where = path(name)
        if where in self._under_way:
            raise JournalError(
                f"Two simultaneous steps {where} would be numbered in random order, and mixed up when the run is "
                "resumed. Give each branch its own name with scope(name)."
            )
        number = self._counts[where] = self._counts[where] + 1
        key = f"{where}#{number}"
        self._under_way.add(where)
        try:
            row = await self._recorded(key, where, request) if key in self._entry.steps else None
            if row is not None and row.done:
                self._take(key, request, row.result)
                self._inform(key, request, row.result, True)
                return row.result
            if row is not None and not repeatable and not self._fork:
                raise StepInFlight(key)
            found = await self._known(name, digest(request)) if self._known else ()
            await self._entry.begin_step(key, request)
            self._take(key, request)
            try:
                with scope(f"{name}#{number}"):
                    result = found[0] if found else await do()
            except BaseException:
                self._taken.pop(key, None)
                raise
            await self._entry.finish_step(key, result)
            self._take(key, request, result)
            self._inform(key, request, result, bool(found))
            return result
        except JournalDiverged:
            self._counts[where] -= 1  # it was not taken
            raise
        finally:
            self._under_way.remove(where)

    async def _recorded(self, key: str, where: str, request: Json) -> StepRow | None:
        """The record of this step with this request, if it was begun before."""
        row = await self._entry.step(key)
        if row is None or row.request == request:
            return row
        if self._fork:
            self._entry.leave_behind(key)
            return None
        if self._diverge is not None:
            await self.move(await self._diverge({"step": where, "request": request}))
            row = await self._entry.step(key)
        if row is not None and row.request != request:
            raise JournalDiverged(changes(row.request, request), key)
        return row

    async def move(self, entry: Entry) -> None:
        """Continue in this entry, after copying this drive's steps to it."""
        for key, (request, result) in list(self._taken.items()):
            there = await entry.step(key)
            if result and there is not None and there.done:
                continue
            await entry.begin_step(key, request)
            if result:
                await entry.finish_step(key, result[0])
        self._entry = entry

    def _take(self, key: str, request: Json, *result: Json) -> None:
        if self._diverge is not None:
            self._taken[key] = (request, result)

    def _inform(self, key: str, request: Json, result: Json, recorded: bool) -> None:
        if self._observer:
            inform(self._observer, key, request, result, recorded)


class NoJournal:
    """A `Journal` that records nothing, for roles that are used outside an episode.

    It rejects what cannot be recorded, so that a role that works with it also works with a record.
    """

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        """Returns the result of `do()`, without recording it."""
        json_text(request)
        result = await do()
        json_text(result)
        return result


class JournaledEvaluator:
    """An evaluator whose verdicts are steps of the journal.

    `fingerprint` stands for everything else that a verdict depends on: the evaluator, its settings and its files.
    """

    def __init__(self, inner: Evaluator, journal: Journal, meter: Meter, fingerprint: Json) -> None:
        self.expects: Literal["text", "code", "workspace"] = inner.expects
        self._inner = inner
        self._journal = journal
        self._meter = meter
        self._fingerprint = fingerprint

    async def evaluate(self, episode: Episode) -> Feedback:
        ran = False

        async def judge() -> Json:
            nonlocal ran
            ran, before = True, self._meter.usage
            feedback = checked_images(await self._inner.evaluate(episode))
            return {"feedback": to_json(feedback), "usage": to_json(self._meter.usage - before)}

        attempt = episode.trials[-1].attempt
        judged = {"output": attempt.output, "artifacts": [artifact.ref for artifact in attempt.artifacts]}
        request = {"attempt": digest(judged), "evaluator": self._fingerprint}
        result = await self._journal.step("verdict", request, judge)
        if not ran:  # its model calls are inside the recorded verdict, so they are counted from there
            self._meter.add(from_json(Usage, result["usage"]))
        return from_json(Feedback, result["feedback"])


def asked_task(task: Task) -> dict[str, Json]:
    """The task in the request of a step, without the source of its kind, which does not change the answer."""
    return {key: value for key, value in to_json(task).items() if key != "kind_from"}


class JournaledBank:
    """A bank whose recalls are recorded in the journal."""

    def __init__(self, inner: Bank, journal: Journal) -> None:
        self._inner = inner
        self._journal = journal

    async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
        """Recalls lessons for a task, as a step of the journal."""

        async def look() -> Json:
            return to_json(await self._inner.recall(task, top_k=top_k))

        named = {key: value for key, value in asked_task(task).items() if key != "kind" or value}  # as before kinds
        request = {"task": named, "top_k": top_k}
        return from_json(Recall, await self._journal.step("lessons", request, look))

    async def learn(self, episodes: Sequence[Episode]) -> Learned:
        """Learns from episodes, without recording a step."""
        return await self._inner.learn(episodes)
