"""Admission by replay: try a lesson that a model drew on the episode that taught it, before it is recalled.

With `admission = "replay"`, such a lesson is quarantined, and a job runs the first try of the recorded episode again,
with the lesson and without it (design/164). If the episode cannot be run again, the lesson is kept and says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, cast

from mulligan.bank.learn.costs import DRAWS
from mulligan.bank.learn.writing import LessonWriter
from mulligan.bank.ports import ACCOUNTS, Ports
from mulligan.bank.recall.candidates import PRESETS
from mulligan.bank.recall.index import Indexes
from mulligan.bank.recall.prompt_text import formatted_prompt
from mulligan.core.codec import digest
from mulligan.core.errors import NotFound
from mulligan.core.lesson_history import Change
from mulligan.core.lessons import ADMISSION_NOTE, REFUSED_BY_REPLAY, WAITS_FOR_REPLAY, Selection
from mulligan.core.operations import detail_of
from mulligan.core.records import Episode, Json, Lesson, Recall, Usage, same_kind
from mulligan.core.work_queue import Claim, Queued
from mulligan.text.formatting import task_text
from mulligan.text.secrets import mask

REPLAY = "replay"
"""The value of the setting `admission`, and the kind of job that tries the lessons of one episode."""
UNPAID = "lessons to be tried; learn_share does not cover that yet (to try them now: mulligan memory work)"
"""Why a replay waits."""
FLAGGED_TEXT = "its text was flagged"
PAIRS = 3
"""How many times a lesson is tried: each time with it and without it, with the same seed."""
SURE = 2
"""How many of these pairs must be better with the lesson; none may be worse."""
OTHERS = 2
"""Maximum number of passed episodes on which the lesson is tried, too."""
CHANGE_MARK = "announced: "
"""The beginning of the mark of a fact that an announced change may have made wrong."""

Value: TypeAlias = tuple[bool, float]
"""Whether a first try passed, and its score (0.0 if it has none). The larger value is the better one."""


def value_of(episode: Episode) -> Value:
    """The value of the first try of an episode; the lowest value if it was not judged."""
    feedback = episode.trials[0].feedback if episode.trials else None
    return (False, 0.0) if feedback is None else (bool(feedback.passed), feedback.score or 0.0)


def _is_best(episode: Episode) -> bool:
    """Whether the recorded first try cannot be improved."""
    feedback = episode.trials[0].feedback
    return feedback is not None and bool(feedback.passed) and (feedback.score is None or feedback.score >= 1)


@dataclass
class Draws:
    """The repeated first tries of one job, by episode, lessons and number. None is run twice.

    Attributes:
        keep: stores the results after each draw.
        results: the results so far, as `keep` stored them.
    """

    ports: Ports
    keep: Callable[[Json], Awaitable[None]]
    results: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def usage(self) -> Usage:
        return sum((Usage(**one["usage"]) for one in self.results.values()), Usage())

    async def value(self, episode: Episode, lessons: Sequence[Lesson], number: int) -> Value:
        """The value of a first try that is shown these lessons, followed by the lessons that were recalled then."""
        key = digest([episode.id, sorted(one.id for one in lessons), number])[:16]
        if key not in self.results:
            assert self.ports.replays is not None
            shown = (*map(_without_flag, lessons), *(episode.recall.lessons if episode.recall else ()))
            settings = self.ports.settings
            text = formatted_prompt(shown, settings.tokens + settings.notebook_tokens, self.ports.project)
            again = await self.ports.replays.draw(episode, Recall("", shown, formatted_prompt=text), number)
            self.results[key] = {"value": [*value_of(again)], "usage": asdict(again.usage)}
            await self.keep(self.results)
        passed, score = self.results[key]["value"]
        return passed, score

    async def better(self, episode: Episode, ours: Sequence[Lesson], theirs: Sequence[Lesson]) -> bool:
        """Whether our lessons make the first try better than theirs in `SURE` of `PAIRS` pairs, and worse in none.

        It stops as soon as this is decided.
        """
        better = 0
        for number in range(PAIRS):
            if better + PAIRS - number < SURE:
                return False
            one, other = await self.value(episode, ours, number), await self.value(episode, theirs, number)
            if one < other:
                return False
            better += one > other
        return better >= SURE

    async def breaks(self, episode: Episode, lessons: Sequence[Lesson]) -> bool:
        """Whether these lessons make the first try of a passed episode worse in `SURE` of `PAIRS` pairs."""
        worse = 0
        for number in range(PAIRS):
            if worse + PAIRS - number < SURE:
                return False
            value = await self.value(episode, lessons, number)
            worse += value < value_of(episode) and value < await self.value(episode, (), number)
        return worse >= SURE


class LessonAdmission:
    """Tries lessons before they are recalled.

    Args:
        ports: Of the bank.
        writer: Its writer.
        indexes: Its indexes.
    """

    def __init__(self, ports: Ports, writer: LessonWriter, indexes: Indexes) -> None:
        self._ports, self._writer, self._indexes = ports, writer, indexes
        self._queue = ports.memory.queue

    async def candidates(self, agent_id: str, lessons: Sequence[Lesson]) -> Sequence[Lesson]:
        """The lessons as they are to be stored: those that can be tried wait, and the others say why they are not
        tried.

        Queues the jobs that try them. They wait until `due` finds tokens for them.
        """
        if self._ports.settings.admission != REPLAY:
            return lessons
        kept: dict[str, Lesson] = {}
        for id in dict.fromkeys(lesson.origin.episode for lesson in lessons):
            taught = [lesson for lesson in lessons if lesson.origin.episode == id]
            episode, why = await self._runnable(id)
            if episode is None:
                kept |= {one.id: _noted(one, f"not tried: {why}") for one in taught}
                continue
            waiting = [replace(one, state="quarantined", flags=(*one.flags, WAITS_FOR_REPLAY)) for one in taught]
            kept |= {one.id: one for one in waiting}
            ids: list[Json] = [one.id for one in waiting]
            draws = PAIRS * (len(ids) + 1) + SURE * OTHERS
            tokens = draws * episode.trials[0].usage.tokens
            payload: Json = {"episode": id, "lessons": ids, "tokens": tokens, "why": UNPAID}
            await self._queue.enqueue(REPLAY, agent_id, payload, key=digest(ids), waiting=True)
        return [kept[lesson.id] for lesson in lessons]

    async def due(self, budget: Callable[[], Awaitable[float]] | None) -> None:
        """Queues the waiting replays, oldest first, as far as the budget goes. budget: None sets no limit."""
        works = await self._queue.pending(self._ports.writes, kind=REPLAY)
        waiting = [one for one in works if one.status == "waiting"]
        if not waiting or self._ports.replays is None:
            return
        left = float("inf") if budget is None else await budget()
        left -= sum(one.payload["tokens"] for one in works if one.status in ("queued", "running"))
        for work in waiting:
            left -= work.payload["tokens"]
            if left < 0:
                return
            await self._queue.turn(work.agent_id, work.id, waiting=False)

    async def replay(self, work: Queued, claim: Claim) -> None:
        """Tries the lessons of this job, admits or refuses those that still wait, and settles the job."""
        payload = cast(dict[str, Any], work.payload)

        async def keep(results: Json) -> None:
            await self._queue.keep(claim, {**payload, DRAWS: results})

        draws = Draws(self._ports, keep, dict(payload.get(DRAWS, {})))
        lessons = await self._writer.present(work.agent_id, payload["lessons"], ())
        episode, why = await self._runnable(payload["episode"])
        admitted: Sequence[Lesson] = lessons
        notes: Mapping[str, str] = {one.id: f"not tried: {why or FLAGGED_TEXT}" for one in lessons}
        if episode is not None:
            harmless = [one for one in lessons if not _without_flag(one).flags]
            admitted, results = await self._tried(draws, episode, harmless)
            notes = {**notes, **results}
        ids: dict[str, list[Json]] = {"released": [], "retired": [], "edited": []}
        for lesson in filter(is_waiting, lessons):
            note, is_admitted = notes[lesson.id], lesson in admitted
            change: Change = "released" if is_admitted else "retired"
            if _without_flag(lesson).flags:
                change = "edited"
            settle = partial(_settled, note=note, is_admitted=is_admitted)
            await self._writer.change(work.agent_id, lesson.id, change, settle, detail=detail_of(note))
            ids[change].append(lesson.id)
        await self._writer.queue_links(work.agent_id, [str(id) for id in ids["released"]])
        await self._queue.finish(claim, {**ids, "draws": len(draws.results), "usage": asdict(draws.usage)})

    async def _runnable(self, id: str) -> tuple[Episode | None, str]:
        """The recorded episode, if it can be run again; or else why it cannot."""
        if self._ports.replays is None:
            return None, "no run can be repeated here"
        try:
            episode = await self._ports.replays.episode(id)
        except NotFound:
            return None, "the record of its run is not there"
        why = self._ports.replays.why_not(episode)
        first = episode.trials[0].feedback if episode.trials else None
        if not why and (first is None or first.passed is None):
            why = "its first try was not judged"
        return (None, why) if why else (episode, "")

    async def _tried(
        self, draws: Draws, episode: Episode, lessons: Sequence[Lesson]
    ) -> tuple[Sequence[Lesson], Mapping[str, str]]:
        """The lessons that are admitted, and a note for each lesson.

        If the first try of the episode that taught them was right, they are tried on a similar episode that failed.
        """
        failed, passed = await self._witnesses(episode)
        if failed is None:
            return [], {one.id: "refused: no similar first try had failed, so none can be better" for one in lessons}
        helpful = await self._helpful(draws, failed, lessons)
        well, ill = (f"the first try of {failed.id} was {word} with it" for word in ("better", "not better"))
        notes = {one.id: f"refused: {ill}" for one in lessons}
        for other in passed if helpful else ():
            if broken := [one for one in helpful if await draws.breaks(other, [one])]:
                notes |= {one.id: f"refused: the first try of {other.id} was worse with it" for one in broken}
                helpful = [one for one in helpful if one not in broken]
        return helpful, {**notes, **{one.id: f"admitted: {well}" for one in helpful}}

    async def _helpful(self, draws: Draws, episode: Episode, lessons: Sequence[Lesson]) -> list[Lesson]:
        """The lessons with which the first try is better.

        Lessons are added one by one if they help. The others are then tried together, because some only help together;
        those that are not needed for that are dropped.
        """
        helpful: list[Lesson] = []
        for lesson in lessons:
            if await draws.better(episode, [*helpful, lesson], helpful):
                helpful.append(lesson)
        left = [one for one in lessons if one not in helpful]
        if len(left) < 2 or not await draws.better(episode, [*helpful, *left], helpful):
            return helpful
        for lesson in tuple(left):
            without = [one for one in left if one is not lesson]
            if not await draws.better(episode, [*helpful, *left], [*helpful, *without]):
                left = without
        return [*helpful, *left]

    async def _witnesses(self, episode: Episode) -> tuple[Episode | None, Sequence[Episode]]:
        """An episode whose first try failed (this one or the most similar), and similar episodes that passed.

        Similar episodes are of the same kind, or have similar words if this one has no kind. Those that passed must
        have begun after the last change was announced.
        """
        accounts = await self._ports.memory.lessons.accounts(self._ports.writes, self._ports.project, ACCOUNTS)
        every = [replace(one, success=True) for one in accounts if one.id != episode.id]
        task, least = episode.task, 0.0 if episode.task.kind else PRESETS["standard"]
        near = self._indexes.solved_like(every, mask(task_text(task)), ACCOUNTS, least)
        failed, passed = (None, [episode]) if _is_best(episode) else (episode, list[Episode]())
        since = await self._announced_at()
        for account in near:
            if failed and len(passed) >= OTHERS:
                break
            other, _ = await self._runnable(account.id)
            if other is None or (task.kind and not same_kind(other.task.kind, task.kind)):
                continue
            if failed is None and not _is_best(other):
                failed = other
            elif value_of(other)[0] and other.started >= since and len(passed) < OTHERS:
                passed.append(other)
        return failed, passed

    async def _announced_at(self) -> float:
        """When the change was announced that facts of the project are still marked for; 0.0 if none are."""
        reader, writes = self._ports.memory.lessons, self._ports.writes
        facts = await reader.list(writes, Selection(nature="fact", project=self._ports.project, limit=None))
        marked = next((one for one in facts if one.to_check.startswith(CHANGE_MARK)), None)
        versions = await reader.history(writes, marked.id) if marked else ()
        return max((one.at for one in versions if one.change == "doubted"), default=0.0)


def is_waiting(lesson: Lesson) -> bool:
    """Whether a lesson still has to be tried."""
    return lesson.state == "quarantined" and WAITS_FOR_REPLAY in lesson.flags


def _noted(lesson: Lesson, note: str) -> Lesson:
    return replace(lesson, context={**lesson.context, ADMISSION_NOTE: note})


def _without_flag(lesson: Lesson) -> Lesson:
    return replace(lesson, flags=tuple(flag for flag in lesson.flags if flag != WAITS_FOR_REPLAY))


def _settled(lesson: Lesson, *, note: str, is_admitted: bool) -> Lesson:
    """The lesson after its replay. If its text was flagged, too, it stays quarantined."""
    if not is_waiting(lesson):
        return lesson
    after = _without_flag(_noted(lesson, note))
    if after.flags:
        return after
    return (
        replace(after, state="active") if is_admitted else replace(after, state="retired", flags=(REFUSED_BY_REPLAY,))
    )
