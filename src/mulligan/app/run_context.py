"""What the journal, the bank and the queue know about an episode, besides its own record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from mulligan.core.errors import NotFound, Unreadable
from mulligan.core.lesson_history import Receipt
from mulligan.core.protocols import StepRow, Store
from mulligan.core.records import Episode, Lesson, Usage
from mulligan.core.work_queue import Queued

LEARNING: Mapping[str, str] = {
    "queued": "Not yet. To learn now: mulligan memory work",
    "running": "Learning now.",
    "waiting": "The bank has a question for you. To see it: mulligan memory pending",
}
"""Messages about unfinished work of the bank, by its status."""


@dataclass(frozen=True)
class RunContext:
    """What a page shows besides the record of the episode itself.

    Attributes:
        steps: the steps of its journal.
        running: whether it is driven now.
        lessons: the lessons that the bank learned from it.
        no_lessons_because: why there are none (yet), in a sentence.
        receipt: the receipt of its recall.
        withheld_lessons: the lessons that the recall withheld at random.
        calls: the steps by the number of the try; 0: steps that belong to none.
        prompts: the roles and texts of the first question to the actor, by the number of the try.
    """

    steps: Sequence[StepRow] = ()
    running: bool = False
    lessons: Sequence[Lesson] = ()
    no_lessons_because: str = ""
    receipt: Receipt | None = None
    withheld_lessons: Sequence[Lesson] = ()
    calls: Mapping[int, Sequence[Call]] = field(default_factory=dict[int, "Sequence[Call]"])
    prompts: Mapping[int, Sequence[tuple[str, str]]] = field(default_factory=dict[int, Sequence[tuple[str, str]]])


async def run_context(store: Store, episode: Episode, *, only: str | None = None) -> RunContext:
    """What the journal, the bank and the queue know about an episode. only: the bank that may be read; None: any."""
    steps = await store.steps(episode.id)
    running = episode.stop is None and await store.holder(episode.id) is not None
    context = RunContext(steps, running, calls=_by_trial(steps), prompts=_prompts(steps))
    agent, receipt = str(episode.head.settings.get("bank") or episode.agent), None
    if only not in (None, agent):
        return replace(context, no_lessons_because="Its bank is not available here.")
    if episode.recall is not None:
        with suppress(NotFound, Unreadable):
            receipt = await store.memory.lessons.receipt(agent, episode.recall.id)
    withheld = await store.memory.lessons.there(agent, list(receipt.withheld)) if receipt else ()
    work = await _learning(store, agent, episode, receipt)
    ids = [str(id) for job in work for id in _ids(job.result)]
    lessons = await store.memory.lessons.there(agent, list(dict.fromkeys(ids)))
    why = "" if lessons else _why_nothing(episode, work)
    return replace(context, lessons=lessons, no_lessons_because=why, receipt=receipt, withheld_lessons=withheld)


async def _learning(store: Store, agent: str, episode: Episode, receipt: Receipt | None) -> Sequence[Queued]:
    """The work of the bank that learns from this episode, alone or together with others of its task."""
    from mulligan.bank.learn.learning import key_of  # loads the bank

    queue, ids = store.memory.queue, list[str]()
    for kind in ("facts", "extract"):
        ids += [id] if (id := await queue.find(agent, kind, key_of([episode]))) else []
    ids += [outcome.work for outcome in receipt.outcomes if outcome.work] if receipt else []
    work: list[Queued] = []
    for id in dict.fromkeys(ids):
        with suppress(NotFound, Unreadable):
            work.append(await queue.look(agent, id))
    return work


def _ids(result: Any) -> Sequence[Any]:
    table = table_of(result)
    return [id for name in ("lessons", "folded", "skipped") for id in cast(list[Any], table.get(name) or [])]


def _why_nothing(episode: Episode, work: Sequence[Queued]) -> str:
    for job in work:
        if job.status in LEARNING:
            return LEARNING[job.status]
        if job.status == "failed":
            return f"Learning failed: {job.error}"
    reasons = [str(table_of(job.result).get("nothing_because") or "") for job in work]
    if work:
        return next(filter(None, reasons), "Nothing: the bank found nothing new in it.")
    if episode.head.settings.get("learns"):
        return "Nothing." if episode.over else "Nothing yet."
    return "Nothing: the run had no bank. To learn from a run: mulligan solve --memory"


def table_of(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def messages_of(request: Any) -> Sequence[tuple[str, str]]:
    """The roles and texts of the messages in a journaled question to a model; empty for other requests."""
    listed = table_of(request).get("messages")
    messages = map(table_of, cast(list[Any], listed) if isinstance(listed, list) else [])
    return [(str(message.get("role", "")), str(message.get("text", ""))) for message in messages]


def _prompts(steps: Sequence[StepRow]) -> Mapping[int, Sequence[tuple[str, str]]]:
    """The roles and texts of the first question to the actor, by the number of the try."""
    prompts = dict[int, Sequence[tuple[str, str]]]()
    for call, row in zip(calls_of(steps), steps, strict=True):
        if call.move == "act" and call.name.startswith("model.") and call.trial not in prompts:
            prompts[call.trial] = messages_of(row.request)
    return {trial: messages for trial, messages in prompts.items() if messages}


# --- steps of the journal -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A step of the journal: a model call, a tool call, or another effect.

    Attributes:
        number: its number in the episode, from 1.
        move: the move that it belongs to, such as "act".
        name: what was called, such as "model.actor#1".
        model: the model that answered a model call.
        usage: the usage of a finished model call.
    """

    number: int
    trial: int
    move: str
    name: str
    done: bool
    model: str
    usage: Usage | None


def calls_of(steps: Sequence[StepRow]) -> Sequence[Call]:
    return [_call(number, row) for number, row in enumerate(steps, 1)]


def _by_trial(steps: Sequence[StepRow]) -> Mapping[int, Sequence[Call]]:
    calls_by_trial = dict[int, list[Call]]()
    for call in calls_of(steps):
        calls_by_trial.setdefault(call.trial, []).append(call)
    return calls_by_trial


def _call(number: int, row: StepRow) -> Call:
    path, _, name = row.key.rpartition("/")
    trial, _, move = path.partition("/")
    digits = trial.removeprefix("trial.")
    answer = table_of(row.result) if "model." in name else {}
    usage = table_of(answer.get("usage"))
    return Call(
        number=number,
        trial=int(digits) if digits.isdecimal() else 0,
        move=move or path,
        name=name,
        done=row.done,
        model=str(answer.get("model", "")),
        usage=Usage(**usage) if usage else None,
    )
