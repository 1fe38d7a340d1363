"""Lets the bank learn from finished episodes, and describes in a sentence what it learned.

An error here does not fail the episode, unless its record is lost.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace

from mulligan.app.workspaces import Notice
from mulligan.bank.learn.facts import success_of
from mulligan.core.errors import MulliganError, NotFound, RecordLost
from mulligan.core.optional import measuring
from mulligan.core.protocols import Bank, Learned
from mulligan.core.records import Episode
from mulligan.text.plain import count


async def tell_outcome(bank: Bank, episode: Episode, notice: Notice) -> None:
    """Tells the bank the outcome of an episode that it recalled for, if the bank does not learn from it."""
    success = success_of([episode])
    if not episode.recall or success is None or not episode.over:
        return
    try:
        await measuring(bank).outcome_of(episode.recall.id, success)
        await _notice_harm(bank, notice)
    except NotFound:  # the recall has no receipt
        pass
    except RecordLost:
        raise
    except MulliganError as error:
        notice(f"the outcome is not counted towards the worth of the recalled lessons: {error}")


async def _notice_harm(bank: Bank, notice: Notice) -> None:
    for sentence in await measuring(bank).retired_for_harm():
        notice(f"from now on {sentence}")


async def teach(bank: Bank, episode: Episode, notice: Notice, *, learns: bool = True) -> None:
    """Teaches the bank a finished episode, and reports the result.

    Nothing is learned twice. Nothing is learned from an episode whose answer could not be confirmed, or whose task has
    no answer.

    Args:
        learns: False only reports the outcome to the bank.
    """
    if not learns:
        await tell_outcome(bank, episode, notice)
        return
    if episode.stop is None or episode.stop.resumable or not episode.trials:
        return
    if episode.stop.reason in ("unconfirmed", "unsure", "absent"):
        notice("nothing was learned: it is unknown whether the answer is right")
        return
    await _learn(bank, [episode], notice)


async def teach_group(bank: Bank, episodes: Sequence[Episode], notice: Notice, *, contrast: bool) -> None:
    """Lets the bank learn from the trajectories of one task, once all are over.

    contrast: learn from all of them together, by their differences; else from each alone, in order.
    """
    unfinished = [episode for episode in episodes if not episode.over]
    if unfinished:
        which = f"{len(unfinished)} of {count(len(episodes), 'trajectory')} did not finish"
        notice(f"nothing was learned yet: {which}; resume the run to finish it")
        return
    if not contrast:
        for episode in episodes:
            await teach(bank, episode, notice)
        return
    tried = [episode for episode in episodes if episode.trials]
    judgeable = [episode for episode in tried if episode.stop and episode.stop.reason != "unconfirmed"]
    if not judgeable:
        notice("nothing was learned: it is unknown whether any of the answers is right")
        return
    await _learn(bank, judgeable, notice)


async def _learn(bank: Bank, episodes: Sequence[Episode], notice: Notice) -> None:
    try:
        notice(summary(await bank.learn(episodes), measuring(bank).agent_id))
        await _notice_harm(bank, notice)
    except RecordLost:  # the bank and the episode are in the same file
        raise
    except MulliganError as error:
        notice(failure(error))


def failure(error: MulliganError) -> str:
    """Describes an error of learning. Facts may have been learned by rules before a model was asked."""
    facts = _count(error.facts, "learned by rules", "fact")
    return f"{facts}; no strategy was learned: {error}" if facts else f"nothing was learned: {error}"


def summary(learned: Learned, agent_id: str | None, known: Collection[str] = ()) -> str:
    """Returns a description of what was learned, and how.

    Args:
        known: the ids of lessons that existed before.
    """
    facts = _count([id for id in learned.facts if id not in known], "learned by rules", "fact")
    old = _count([id for id in learned.facts if id in known], "already known", "fact")
    new = tuple(id for id in learned.lessons if id not in known)
    learned = replace(learned, lessons=new, folded=(*(set(learned.lessons) - {*new}), *learned.folded))
    return "; ".join(part for part in (facts, old, _learned_by_model(learned, agent_id)) if part)


def _learned_by_model(learned: Learned, agent_id: str | None) -> str:
    """Describes what was learned with a model."""
    if learned.failed:
        return f"{'no strategy' if learned.facts else 'nothing'} was learned: {learned.failed}"
    if learned.question is not None:
        return (
            "no model was named for the bank, so a question is waiting for an answer: "
            f"{memory_command(agent_id, 'pending', learned.work or '')}"
        )
    if learned.pending:
        return f"another process is already learning from it: job {learned.work}"
    parts = [
        _count(learned.lessons, f"learned by {learned.by}" if learned.by else "learned"),
        _count(learned.folded, "already known"),
        _count(learned.quarantined, f"quarantined ({memory_command(agent_id, 'list', '--quarantined')})"),
        _count(learned.retired, f"retired, so not recalled ({restore_command(agent_id, learned)})"),
    ]
    what = "no strategy" if learned.facts else "no lesson"
    nothing = learned.nothing_because and f"{what} was learned: {learned.nothing_because}"
    return ", ".join(part for part in parts if part) or nothing


def restore_command(agent_id: str | None, learned: Learned) -> str:
    """The command that restores retired lessons that were learned again."""
    return " && ".join(memory_command(agent_id, "retire", "--undo", id) for id in learned.retired)


def memory_command(agent_id: str | None, *words: str) -> str:
    """Returns a `mulligan memory` command for this agent's bank."""
    bank_option = ["--bank", agent_id] if agent_id else []
    return f"mulligan memory {shlex.join([*bank_option, *words])}"


def _count(ids: Sequence[str], what: str, thing: str = "lesson") -> str:
    if not ids:
        return ""
    return f"{count(len(ids), thing)} {what}: {', '.join(id[:8] for id in ids)}"
