"""Learn from a transcript: recognise its format, make an episode of its turns, and let the bank learn from it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mulligan.app.memory import open_bank
from mulligan.app.plugins import build, names, parse_spec, short_name
from mulligan.bank.bank import Bank
from mulligan.bank.exchange.importing import file_text
from mulligan.bank.learn.facts import facts_of
from mulligan.bank.learn.trajectory import episode_of
from mulligan.core.codec import json_text
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Learned, Model, TranscriptFormat, Turn
from mulligan.core.records import Episode, Finding, Json
from mulligan.text.evidence import evidence_of
from mulligan.text.json_lines import parsed

_ROLE = "transcripts"


@dataclass(frozen=True)
class Transcript:
    """What was read. name: what errors call it. format: how it was read."""

    name: str
    format: str
    turns: tuple[Turn, ...]

    def episode(self, *, task: str | None = None, success: bool | None = None) -> Episode:
        """One trial of the task: what was said and done after it was put. A system turn is not part of it.

        Args:
            task: what the task was, if not what the user asked first.
            success: whether it was done. None: unknown.

        Raises:
            InvalidInput: there is no task, or nothing was done.
        """
        turns = [turn for turn in self.turns if turn.role != "system" and (turn.text.strip() or turn.tool)]
        if task is None:
            asked = next((n for n, turn in enumerate(turns) if turn.role == "user"), None)
            if asked is None:
                raise InvalidInput(f"{self.name}: no user says what the task is. Say it with --task (task=).")
            task = turns.pop(asked).text
        if not any(turn.role == "assistant" for turn in turns):
            raise InvalidInput(f"{self.name}: no assistant says or does anything, so there is nothing to learn from.")
        steps: list[Json] = [
            {"step": n, "role": turn.role, "content": turn.text, "metadata": {"tool_name": turn.tool or None}}
            for n, turn in enumerate(turns, 1)
        ]
        return _with_evidence(episode_of(steps, task, success), turns)


def _with_evidence(episode: Episode, turns: Sequence[Turn]) -> Episode:
    """What tools gave back, newest first, as what the verdict rests on: facts are drawn by rule from the checks that
    failed in it. Without a verdict there is none."""
    (trial,) = episode.trials
    if trial.feedback is None:
        return episode
    findings = [Finding(where=turn.tool, got=turn.text) for turn in reversed(turns) if turn.role == "tool"]
    judged = replace(trial.feedback, evidence=evidence_of(findings))
    return replace(episode, trials=(replace(trial, feedback=judged),))


def read_transcript(text: str, name: str, format: str | None = None) -> Transcript:
    """The text as turns, in the format that it is recognised as, or in the one named: `openai`, `./mine.py`.

    Raises `InvalidInput` for a text that is in no known format or does not hold to its own, and `UnknownName`.
    """
    if not text.strip():
        raise InvalidInput(f"{name} is empty.")
    chosen = format or _recognised(text, name)
    turns = tuple(_reader(chosen).read(text, name))
    if not turns:
        raise InvalidInput(f"{name}: there is no turn in it.")
    return Transcript(name, short_name(chosen), turns)


def _recognised(text: str, name: str) -> str:
    known = names(_ROLE)
    found = [one for one in known if _reader(one).recognises(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"{name} may be {' or '.join(found)}: name the format with --format (format=).")
    if text.lstrip()[:1] in ("{", "[") and not _is_json(text.strip().partition("\n")[0]):  # not JSON Lines
        parsed(name, text)  # where it is broken, this says where
    raise InvalidInput(
        f"{name} is in no format that is known: {', '.join(known)}. Plain text begins each turn with User:, "
        "Assistant: or Tool:. --format NAME (format=) reads it in one of them and says where it does not fit."
    )


def _is_json(text: str) -> bool:
    try:
        parsed("", text)
    except InvalidInput:
        return False
    return True


def _reader(name: str) -> TranscriptFormat:
    return build(_ROLE, parse_spec(_ROLE, name), {})


async def learn(
    source: str | os.PathLike[str] | Sequence[Mapping[str, Any]] | Mapping[str, Any],
    *,
    success: bool | None = None,
    task: str | None = None,
    format: str | None = None,
    bank: Bank | str = "",
    model: str | Model | None = None,
    recall: str | None = None,
) -> Learned:
    """Learns lessons from a transcript: what `mulligan learn` does.

    Args:
        source: the path of a file, or messages as OpenAI's or Anthropic's API takes them: a list, or an object with
            `messages`.
        success: whether the task was done. None lets the model judge.
        task: what the task was. None: what the user asked first.
        format: `openai`, `anthropic`, `plain`, `./mine.py`. None: it is recognised.
        bank: a bank, or the agent whose bank is opened.
        model: judges and extracts, if the bank is opened here. None: the one of [memory] or MULLIGAN_MODEL.
        recall: the id of the recall that gave the session lessons; it gets the outcome.

    Raises:
        InvalidInput: before any model is asked, if the transcript cannot be read or, without a model, holds no failed
            check to draw a fact from.
        NotFound: the recall is of another bank.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        transcript = read_transcript(file_text(path), str(path), format)
    else:
        messages = dict(source) if isinstance(source, Mapping) else list(source)
        transcript = read_transcript(json_text(messages), "the messages", format)
    episode = transcript.episode(task=task, success=success)
    if isinstance(bank, Bank):
        return await learn_from(bank, episode, recall)
    async with open_bank(bank, model=model) as opened:
        return await learn_from(opened, episode, recall)


async def learn_from(bank: Bank, episode: Episode, recall: str | None = None) -> Learned:
    """Learns from an episode that was given lessons by this recall.

    Raises `NotFound` for a recall of another bank; `InvalidInput`, before anything is kept, for a bank without a model
    where no fact can be drawn by rule.
    """
    if not bank.thinks and (bank.paper or not facts_of(episode, bank.project)):
        raise InvalidInput(
            "No model was named. Name it with --model (model=), MULLIGAN_MODEL, or as model in [memory] of "
            "mulligan.toml. Without one, only facts are learned: from failed asserts in what tools gave back, and only "
            "with --outcome (success=)."
        )
    return await bank.learn(replace(episode, recall=await bank.recalled(recall)) if recall else episode)
