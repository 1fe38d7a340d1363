"""Learn from a transcript: recognise its format, make an episode of its turns, and let the bank learn from it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

from mulligan.app.memory import open_bank
from mulligan.app.plugins import build, names, parse_spec, short_name
from mulligan.bank.bank import Bank
from mulligan.bank.exchange.records import file_text
from mulligan.bank.learn.facts import facts_of, has_reason, success_of
from mulligan.bank.learn.trajectory import CHARACTERS, STEPS, episode_of
from mulligan.core.codec import digest, json_text
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.lessons import Selection
from mulligan.core.protocols import Learned, Model, TranscriptFormat
from mulligan.core.records import Episode, Finding, Json, Lesson
from mulligan.core.turns import Turn
from mulligan.hooks.learning import NEEDED, keep
from mulligan.sessions.agents import NAMES, agent
from mulligan.sessions.calls import overcome
from mulligan.sessions.happenings import happened
from mulligan.sessions.pairs import TAG, Found, State, find
from mulligan.sessions.records import record_in, sample
from mulligan.text.call_lines import call_parts, calls_in
from mulligan.text.evidence import evidence_of, findings_of
from mulligan.text.json_lines import parsed

_ROLE = "transcripts"
_TASK = 100_000
"""Characters that are left for the task where a session is longer than a trajectory may be."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


@dataclass(frozen=True)
class Transcript:
    """What was read. name: what errors call it. format: how it was read. id: of the session, where the text has it."""

    name: str
    format: str
    turns: tuple[Turn, ...]
    id: str = ""

    @property
    def session(self) -> str:
        """What coding agents call the session: as it says itself, else by the name of its file; else a digest."""
        if self.id:
            return self.id
        stem = Path(self.name).stem
        if self.format == "codex" and (found := _UUID.search(stem)):
            return found[0]
        return (
            stem if Path(self.name).suffix in (".jsonl", ".json") else digest([turn.text for turn in self.turns])[:16]
        )

    def found(self) -> Sequence[Found]:
        """What failed in the session and was overcome, and how the user corrected the agent.

        Of a coding agent's tools only the shell counts: errors of others say nothing of the project.
        """
        found = find(State(self.format, self.session), happened(self.turns))[1]
        return found if self.format in NAMES else [*found, *overcome(self.format, self.session, self.turns)]

    def episode(self, *, task: str | None = None, success: bool | None = None, why: str = "") -> Episode:
        """One trial of the task: what was said and done after it was put. A system turn is not part of it.

        Args:
            task: what the task was, if not what the user asked first.
            success: whether it was done. None: unknown.
            why: what the judge said of that.

        Raises:
            InvalidInput: there is no task, or nothing was done.
        """
        turns = _shortened([turn for turn in self.turns if turn.role != "system" and (turn.text.strip() or turn.tool)])
        if task is None:
            asked = next((n for n, turn in enumerate(turns) if turn.role == "user"), None)
            if asked is None:
                raise InvalidInput(f"{self.name}: no user message gives the task. Give it with task=.")
            task = turns.pop(asked).text
        if not any(turn.role == "assistant" for turn in turns):
            raise InvalidInput(
                f"{self.name}: the assistant has no text and no tool call, so there is nothing to learn."
            )
        steps: list[Json] = [
            {"step": n, "role": turn.role, "content": turn.text, "metadata": {"tool_name": turn.tool or None}}
            for n, turn in enumerate(turns, 1)
        ]
        episode = _with_evidence(episode_of(steps, task, success), turns)
        return _with_reason(episode, why) if why and success is not None else episode


def transcript_of(name: str, episodes: Sequence[Episode]) -> Transcript:
    """The steps of these episodes of one task as turns, in their order. A line of calls is what the agent called; what
    an environment says after any other line is what a user says."""
    turns: list[Turn] = []
    for n, step in enumerate(step for one in episodes for trial in one.trials for step in trial.attempt.steps):
        calls = None if step.refused else calls_in(step.action, call_parts)
        if calls is None:
            turns += [Turn("assistant", step.action)] if step.action else []
            turns += [Turn("user", step.observation)] if step.observation else []
            continue
        results = step.observation.splitlines()
        if len(results) != len(calls):  # a result has lines of its own
            results = [*[""] * (len(calls) - 1), step.observation]
        for number, ((tool, arguments), result) in enumerate(zip(calls, results, strict=True)):
            turns += [
                Turn("assistant", json_text(arguments), tool, f"{n}.{number}"),
                Turn("tool", result, tool, f"{n}.{number}"),
            ]
    return Transcript(name, "mulligan", tuple(turns), episodes[0].id)


def _shortened(turns: list[Turn]) -> list[Turn]:
    """The turns within the limits of a trajectory: of too many, the first and the last; of long texts, both ends."""
    if len(turns) > STEPS:
        turns = [*turns[: STEPS // 4], *turns[-(STEPS - STEPS // 4) :]]
    if sum(len(turn.text) for turn in turns) <= CHARACTERS - _TASK:
        return turns
    half = (CHARACTERS - _TASK) // len(turns) // 2 - 10
    return [
        turn._replace(text=f"{turn.text[:half]}\n[…]\n{turn.text[-half:]}") if len(turn.text) > 2 * half + 10 else turn
        for turn in turns
    ]


def _with_evidence(episode: Episode, turns: Sequence[Turn]) -> Episode:
    """What tools gave back, newest first, as what the verdict rests on: facts are drawn by rules from the checks that
    failed in it. Without a verdict there is none."""
    (trial,) = episode.trials
    if trial.feedback is None:
        return episode
    findings = [Finding(where=turn.tool, got=turn.text) for turn in reversed(turns) if turn.role == "tool"]
    judged = replace(trial.feedback, evidence=evidence_of(findings))
    return replace(episode, trials=(replace(trial, feedback=judged),))


def _with_reason(episode: Episode, why: str) -> Episode:
    """The episode with the judge's words before what tools gave back."""
    (trial,) = episode.trials
    feedback = trial.feedback
    assert feedback is not None
    findings = [Finding(got=why, passed=bool(feedback.passed)), *findings_of(feedback)]
    judged = replace(feedback, text=why, evidence=evidence_of(findings, said="" if feedback.passed else why))
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
        raise InvalidInput(f"{name}: it has no turns.")
    short = short_name(chosen)
    return Transcript(name, short, turns, agent(short).session(sample(text)) if short in NAMES else "")


_CONVERSATIONS = ("messages", "conversation", "contents", "history")
"""Under what an object has a conversation, where each line of a file holds one."""


def read_transcripts(text: str, name: str, format: str | None = None) -> list[Transcript]:
    """The transcripts in a text: one, or where each line holds a conversation, one for each line. Raises as
    `read_transcript` does."""
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    first = record_in(lines[0][1] if len(lines) > 1 else "")
    if "role" in first or not any(isinstance(first.get(key), list) for key in _CONVERSATIONS):
        return [read_transcript(text, name, format)]
    return [read_transcript(line, f"{name}:{n}", format) for n, line in lines]


def read_messages(messages: Sequence[Any] | Mapping[str, Any], format: str | None = None) -> Transcript:
    """Messages as turns: those of an API, or the objects of LangChain, pydantic-ai and provider's SDKs.

    Raises `InvalidInput` that names the message by its number, and `UnknownName`.
    """
    if not messages:
        raise InvalidInput("There are no messages to learn from.")
    given = dict(messages) if isinstance(messages, Mapping) else [_plain(one, n) for n, one in enumerate(messages, 1)]
    return read_transcript(json_text(given), "the messages", format)


def _plain(message: Any, number: int) -> Json:
    """A message as JSON."""
    if isinstance(message, Mapping):
        return dict(cast("Mapping[str, Any]", message))
    if hasattr(message, "model_dump"):
        return message.model_dump(mode="json", exclude_none=True)
    if is_dataclass(message) and not isinstance(message, type):
        from pydantic import TypeAdapter

        return TypeAdapter(cast(Any, message).__class__).dump_python(message, mode="json")
    raise InvalidInput(
        f"message {number} is of type {type(message).__name__}: an object of JSON, or a message of LangChain, "
        "pydantic-ai or a provider's SDK is expected."
    )


def _recognised(text: str, name: str) -> str:
    known = names(_ROLE)
    found = [one for one in known if _reader(one).recognises(text)]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"{name} may be {' or '.join(found)}: name the format with format=.")
    if text.lstrip()[:1] in ("{", "[") and not _is_json(text.strip().partition("\n")[0]):  # not JSON Lines
        parsed(name, text)  # where it is broken, this says where
    raise InvalidInput(
        f"{name} is in an unknown format; known formats: {', '.join(known)}. Plain text begins each turn with User:, "
        "Assistant: or Tool:. format=NAME tries one of them and shows where the file does not fit."
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
    source: str | os.PathLike[str] | Sequence[Any] | Mapping[str, Any],
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
        source: the path of a file; or messages as an API takes them (a list, or an object that holds one), or the
            objects of LangChain, pydantic-ai or a provider's SDK.
        success: whether the task was done. None lets the model judge.
        task: what the task was. None: what the user asked first.
        format: `openai`, `anthropic`, `google`, `plain`, …, `./mine.py`. None: it is detected.
        bank: a bank, or the agent whose bank is opened.
        model: judges and extracts, if the bank is opened here. None: the one of [memory] or MULLIGAN_MODEL.
        recall: the id of the recall that gave the session lessons; it gets the outcome.

    Raises:
        InvalidInput: before any model is asked, if the transcript cannot be read or, without a model, contains
            nothing from which a fact can be learned.
        NotFound: the recall belongs to another bank.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        transcript = read_transcript(file_text(path), str(path), format)
    else:
        transcript = read_messages(source, format)
    episode = transcript.episode(task=task, success=success)
    found = transcript.found()
    if isinstance(bank, Bank):
        return await learn_from(bank, episode, recall, found)
    async with open_bank(bank, model=model) as opened:
        return await learn_from(opened, episode, recall, found)


def has_something_to_learn(bank: Bank, episode: Episode) -> bool:
    """Whether a model of the bank may find something in the episode, or rules do."""
    return bank.thinks or (not bank.paper and bool(facts_of(episode, bank.project)))


async def learn_from(
    bank: Bank, episode: Episode, recall: str | None = None, found: Sequence[Found] = (), needed: int = NEEDED
) -> Learned:
    """Learns from an episode that was given lessons by this recall. found: what was found in it by rules. needed: the
    sessions in which that has to be found until it is confirmed.

    Raises `NotFound` for a recall of another bank; `InvalidInput`, before anything is kept, for a bank without a model
    where nothing can be learned by rules.
    """
    if found and not bank.paper:
        kept = await keep(bank, found, needed)
        ids = (*kept.new, *kept.known)
        if bank.thinks or facts_of(episode, bank.project):
            try:
                learned = await learn_from(bank, episode, recall)
            except MulliganError as error:
                error.facts = (*ids, *error.facts)
                raise
            return replace(learned, facts=(*ids, *learned.facts))
        if recall and (success := success_of([episode])) is not None:
            await bank.outcome_of(recall, success)
        return Learned(facts=ids)
    if not has_something_to_learn(bank, episode):
        raise InvalidInput(
            "No model was named. Name it with model=, MULLIGAN_MODEL, or as model in [memory] of "
            "mulligan.toml. Without one, only facts are learned: from commands that failed and were overcome, and, "
            "with success=, from failed asserts in tool output."
        )
    return await bank.learn(replace(episode, recall=await bank.recalled(recall)) if recall else episode)


async def lessons_about(bank: Bank, query: str, top_k: int) -> list[Lesson]:
    """What a bank has for an agent that asks in the middle of its work: first what it knows of an error that the query
    holds, then what a recall gives. Nothing is counted."""
    facts = await bank.list(Selection(nature="fact", tag=TAG, limit=None))
    known = [one for one in facts if one.context.get("refusal") and has_reason(one, query)]
    known.sort(key=lambda one: not one.confirmed)
    recalled = (await bank.recall(query, top_k=top_k, counted=False)).lessons if len(known) < top_k else ()
    return list({one.id: one for one in (*known, *recalled)}.values())[:top_k]
