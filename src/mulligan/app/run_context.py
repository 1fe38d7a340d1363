"""What the journal, the bank and the queue have of an episode, besides its own record."""

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
"""What is said of work of the bank that is not done, by its status."""


@dataclass(frozen=True)
class RunContext:
    """What a page has that the record of the episode itself does not.

    Attributes:
        steps: of its journal.
        running: whether somebody drives it now.
        lessons: what the bank learned from it; no_lessons_because: why there are none (yet), in a sentence.
        receipt: of its recall; withheld_lessons: those that its draw withheld.
        calls: the steps by the number of the try; 0: of none.
        prompts: who says what in the first question to the actor, by the number of the try.
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
    """What the journal, the bank and the queue have of an episode. only: the bank that may be read; None: any."""
    steps = await store.steps(episode.id)
    running = episode.stop is None and await store.holder(episode.id) is not None
    known = RunContext(steps, running, calls=_by_trial(steps), prompts=_prompts(steps))
    agent, receipt = str(episode.head.settings.get("bank") or episode.agent), None
    if only not in (None, agent):
        return replace(known, no_lessons_because="Its bank is not available here.")
    if episode.recall is not None:
        with suppress(NotFound, Unreadable):
            receipt = await store.memory.lessons.receipt(agent, episode.recall.id)
    withheld = await store.memory.lessons.there(agent, list(receipt.withheld)) if receipt else ()
    work = await _learning(store, agent, episode, receipt)
    ids = [str(id) for one in work for id in _ids(one.result)]
    lessons = await store.memory.lessons.there(agent, list(dict.fromkeys(ids)))
    why = "" if lessons else _why_nothing(episode, work)
    return replace(known, lessons=lessons, no_lessons_because=why, receipt=receipt, withheld_lessons=withheld)


async def _learning(store: Store, agent: str, episode: Episode, receipt: Receipt | None) -> Sequence[Queued]:
    """The work of the bank that learns from an episode, alone or with others of its task."""
    from mulligan.bank.learn.learning import key_of  # loads the bank

    queue, found = store.memory.queue, list[str]()
    for kind in ("facts", "extract"):
        found += [id] if (id := await queue.find(agent, kind, key_of([episode]))) else []
    found += [one.work for one in receipt.outcomes if one.work] if receipt else []
    work: list[Queued] = []
    for id in dict.fromkeys(found):
        with suppress(NotFound, Unreadable):
            work.append(await queue.look(agent, id))
    return work


def _ids(result: Any) -> Sequence[Any]:
    table = table_of(result)
    return [id for name in ("lessons", "folded", "skipped") for id in cast(list[Any], table.get(name) or [])]


def _why_nothing(episode: Episode, work: Sequence[Queued]) -> str:
    for one in work:
        if one.status in LEARNING:
            return LEARNING[one.status]
        if one.status == "failed":
            return f"Learning failed: {one.error}"
    reasons = [str(table_of(one.result).get("nothing_because") or "") for one in work]
    if work:
        return next(filter(None, reasons), "Nothing: the bank found nothing new in it.")
    if episode.head.settings.get("learns"):
        return "Nothing." if episode.over else "Nothing yet."
    return "Nothing: the run had no bank. To learn from a run: mulligan solve --memory"


def table_of(value: Any) -> dict[str, Any]:
    """The value if it is an object of JSON, else an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def messages_of(request: Any) -> Sequence[tuple[str, str]]:
    """Who says what in a question to a model, as the journal has it; empty for other requests."""
    found = table_of(request).get("messages")
    messages = map(table_of, cast(list[Any], found) if isinstance(found, list) else [])
    return [(str(one.get("role", "")), str(one.get("text", ""))) for one in messages]


def _prompts(steps: Sequence[StepRow]) -> Mapping[int, Sequence[tuple[str, str]]]:
    """Who says what in the first question to the actor, by the number of the try."""
    found = dict[int, Sequence[tuple[str, str]]]()
    for call, row in zip(calls_of(steps), steps, strict=True):
        if call.move == "act" and call.name.startswith("model.") and call.trial not in found:
            found[call.trial] = messages_of(row.request)
    return {trial: messages for trial, messages in found.items() if messages}


# --- steps of the journal -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A step of the journal: a model call, a tool call, or another effect.

    Attributes:
        number: among the steps of the episode, from 1.
        name: what was called, such as "model.actor#1"; `move` is what it was called for, such as "act".
        model: the one that answered a model call.
        usage: of a model call that is done.
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
    found = dict[int, list[Call]]()
    for call in calls_of(steps):
        found.setdefault(call.trial, []).append(call)
    return found


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
