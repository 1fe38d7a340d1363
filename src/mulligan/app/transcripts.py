"""Learns from transcripts: recognises the format, makes an episode of the turns, and lets the bank learn from it."""

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
"""Characters of the task that are kept if a session is too long for a trajectory."""
_GAP = "\n[…]\n"
"""Stands for what is left out in the middle of a text."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


@dataclass(frozen=True)
class Transcript:
    """A transcript as turns.

    Attributes:
        name: what errors call it.
        format: the format in which it was read.
        id: the id of the session, if the text contains it.
    """

    name: str
    format: str
    turns: tuple[Turn, ...]
    id: str = ""

    @property
    def session(self) -> str:
        """The id of the session: the one in the text, else the one in the name of its file, else a digest."""
        if self.id:
            return self.id
        stem = Path(self.name).stem
        if self.format == "codex" and (found := _UUID.search(stem)):
            return found[0]
        if Path(self.name).suffix in (".jsonl", ".json"):
            return stem
        return digest([turn.text for turn in self.turns])[:16]

    def found(self) -> Sequence[Found]:
        """What failed in the session and was overcome, and how the user corrected the agent.

        Of a coding agent's tools only the shell counts: errors of the others say nothing about the project.
        """
        found = find(State(self.format, self.session), happened(self.turns))[1]
        return found if self.format in NAMES else [*found, *overcome(self.format, self.session, self.turns)]

    def episode(self, *, task: str | None = None, success: bool | None = None, why: str = "") -> Episode:
        """One trial of the task: all that was said and done, except the task itself and system turns.

        A session that is too long is shortened: its first and last turns are kept, and both ends of long texts.

        Args:
            task: what the task was, if not what the user asked first.
            success: whether it was done. None: unknown.
            why: the judge's reason.

        Raises:
            InvalidInput: there is no task, or nothing was done.
        """
        turns = [turn for turn in self.turns if turn.role != "system" and (turn.text.strip() or turn.tool)]
        if task is None:
            request = next((n for n, turn in enumerate(turns) if turn.role == "user"), None)
            if request is None:
                raise InvalidInput(f"{self.name}: no user message states the task. Pass it with task=.")
            task = turns.pop(request).text
        if not any(turn.role == "assistant" for turn in turns):
            raise InvalidInput(
                f"{self.name}: the assistant wrote no text and called no tool, so there is nothing to learn."
            )
        task, turns = _shorten(task, turns)
        steps: list[Json] = [
            {"step": n, "role": turn.role, "content": turn.text, "metadata": {"tool_name": turn.tool or None}}
            for n, turn in enumerate(turns, 1)
        ]
        episode = _with_evidence(episode_of(steps, task, success), turns)
        return _with_reason(episode, why) if why and success is not None else episode


def transcript_of(name: str, episodes: Sequence[Episode]) -> Transcript:
    """The steps of these episodes of one task as turns, in order. A line of calls becomes calls of the agent; after any
    other line, the observation becomes a message of the user."""
    turns: list[Turn] = []
    for n, step in enumerate(step for one in episodes for trial in one.trials for step in trial.attempt.steps):
        calls = None if step.refused else calls_in(step.action, call_parts)
        if calls is None:
            turns += [Turn("assistant", step.action)] if step.action else []
            turns += [Turn("user", step.observation)] if step.observation else []
            continue
        results = step.observation.splitlines()
        if len(results) != len(calls):  # a result has several lines
            results = [*[""] * (len(calls) - 1), step.observation]
        for number, ((tool, arguments), result) in enumerate(zip(calls, results, strict=True)):
            turns += [
                Turn("assistant", json_text(arguments), tool, f"{n}.{number}"),
                Turn("tool", result, tool, f"{n}.{number}"),
            ]
    return Transcript(name, "mulligan", tuple(turns), episodes[0].id)


def _shorten(task: str, turns: list[Turn]) -> tuple[str, list[Turn]]:
    """The task and the turns, within the limits of a trajectory."""
    if len(turns) > STEPS:
        turns = [*turns[: STEPS // 4], *turns[-(STEPS - STEPS // 4) :]]
    if len(task) + sum(len(turn.text) for turn in turns) <= CHARACTERS:
        return task, turns
    task = _both_ends(task, _TASK)
    most = (CHARACTERS - len(task)) // len(turns)
    return task, [turn._replace(text=_both_ends(turn.text, most)) for turn in turns]


def _both_ends(text: str, most: int) -> str:
    """The text, or its beginning and its end, in at most so many characters."""
    half = (most - len(_GAP)) // 2
    return text if len(text) <= most else f"{text[:half]}{_GAP}{text[-half:]}"


def _with_evidence(episode: Episode, turns: Sequence[Turn]) -> Episode:
    """The episode with the results of tools, newest first, as evidence for its verdict, if it has one. Rules learn
    facts from the failed checks in it."""
    (trial,) = episode.trials
    if trial.feedback is None:
        return episode
    findings = [Finding(where=turn.tool, got=turn.text) for turn in reversed(turns) if turn.role == "tool"]
    judged = replace(trial.feedback, evidence=evidence_of(findings))
    return replace(episode, trials=(replace(trial, feedback=judged),))


def _with_reason(episode: Episode, why: str) -> Episode:
    """The episode with the judge's reason before the results of tools."""
    (trial,) = episode.trials
    feedback = trial.feedback
    assert feedback is not None
    findings = [Finding(got=why, passed=bool(feedback.passed)), *findings_of(feedback)]
    judged = replace(feedback, text=why, evidence=evidence_of(findings, said="" if feedback.passed else why))
    return replace(episode, trials=(replace(trial, feedback=judged),))


def read_transcript(text: str, name: str, format: str | None = None) -> Transcript:
    """The text as turns, read in the named format (`openai`, `./mine.py`), or else in the one that is recognised.

    Raises `InvalidInput` for a text that is in no known format or violates its format, and `UnknownName`.
    """
    if not text.strip():
        raise InvalidInput(f"{name} is empty.")
    chosen = format or _recognise(text, name)
    turns = tuple(_reader(chosen).read(text, name))
    if not turns:
        raise InvalidInput(f"{name} contains no turns.")
    short = short_name(chosen)
    return Transcript(name, short, turns, agent(short).session(sample(text)) if short in NAMES else "")


_CONVERSATION_KEYS = ("messages", "conversation", "contents", "history")
"""The keys for the conversation in files that have an object with one on each line."""


def read_transcripts(text: str, name: str, format: str | None = None) -> list[Transcript]:
    """The transcripts in a text: one for each line if the first of several lines is a conversation, else one. Raises as
    `read_transcript` does, also for a later line that is no conversation."""
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    first = record_in(lines[0][1] if len(lines) > 1 else "")
    if "role" in first or not any(isinstance(first.get(key), list) for key in _CONVERSATION_KEYS):
        return [read_transcript(text, name, format)]
    return [read_transcript(line, f"{name}:{n}", format) for n, line in lines]


def read_messages(messages: Sequence[Any] | Mapping[str, Any], format: str | None = None) -> Transcript:
    """Messages as turns: those of an API, or objects of LangChain, pydantic-ai and providers' SDKs.

    Raises `InvalidInput`, which gives the number of the message, and `UnknownName`.
    """
    if not messages:
        raise InvalidInput("There are no messages to learn from.")
    if isinstance(messages, Mapping):
        return read_transcript(json_text(dict(messages)), "the messages", format)
    listed = [_as_json(message, n) for n, message in enumerate(messages, 1)]
    return read_transcript(json_text(listed), "the messages", format)


def _as_json(message: Any, number: int) -> Json:
    """A message as JSON."""
    if isinstance(message, Mapping):
        return dict(cast("Mapping[str, Any]", message))
    if hasattr(message, "model_dump"):
        return message.model_dump(mode="json", exclude_none=True)
    if is_dataclass(message) and not isinstance(message, type):
        from pydantic import TypeAdapter

        return TypeAdapter(cast(Any, message).__class__).dump_python(message, mode="json")
    raise InvalidInput(
        f"message {number} is of type {type(message).__name__}: it must be a JSON object, or a message from LangChain, "
        "pydantic-ai or a provider's SDK."
    )


def _recognise(text: str, name: str) -> str:
    known = names(_ROLE)
    formats = [format for format in known if _reader(format).recognises(text)]
    if len(formats) == 1:
        return formats[0]
    if formats:
        raise InvalidInput(f"{name} may be in the format {' or '.join(formats)}: specify which with format=.")
    if text.lstrip()[:1] in ("{", "[") and not _is_json(text.strip().partition("\n")[0]):  # not JSON Lines
        parsed(name, text)  # raises an error that says where it is broken
    raise InvalidInput(
        f"{name} is in an unknown format; known formats: {', '.join(known)}. In plain text, each turn begins with "
        "User:, Assistant: or Tool:. Use format=NAME to try one format and see where the file does not match it."
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
    """Learns lessons from a transcript, like the command `mulligan learn`.

    Args:
        source: the path of a file, messages in an API's format (a list, or an object that contains one), or LangChain,
            pydantic-ai or provider SDK objects.
        success: whether the agent completed the task. None: the model judges.
        task: the task. None: the user's first message.
        format: `openai`, `anthropic`, `google`, `plain`, … or `./mine.py`. None: the format is detected.
        bank: a bank, or the agent whose bank is opened.
        model: the model that judges and extracts, if the bank is opened here. None: the model in [memory] or
            MULLIGAN_MODEL.
        recall: the id of the recall whose lessons the session used. The outcome is added to its receipt.

    Raises:
        InvalidInput: the transcript cannot be read or, without a model, contains nothing from which to learn a fact.
            This is raised before any model is asked.
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
    """Whether the bank has a model that may find something in the episode, or rules find something."""
    return bank.thinks or (not bank.paper and bool(facts_of(episode, bank.project)))


async def learn_from(
    bank: Bank, episode: Episode, recall: str | None = None, found: Sequence[Found] = (), needed: int = NEEDED
) -> Learned:
    """Learns from an episode.

    Args:
        recall: the id of the recall that gave it lessons.
        found: what rules found in it. A bank of the preset "paper" stores none of it.
        needed: in how many sessions something must be found before it is confirmed.

    Raises:
        NotFound: the recall belongs to another bank.
        InvalidInput: before anything is stored, if rules find nothing and the bank has no model.
    """
    if not found or bank.paper:
        return await _learn_episode(bank, episode, recall)
    facts = await keep(bank, found, needed)
    ids = (*facts.new, *facts.known)
    if has_something_to_learn(bank, episode):
        try:
            learned = await _learn_episode(bank, episode, recall)
        except MulliganError as error:
            error.facts = (*ids, *error.facts)
            raise
        return replace(learned, facts=(*ids, *learned.facts))
    if recall and (success := success_of([episode])) is not None:
        await bank.outcome_of(recall, success)
    return Learned(facts=ids)


async def _learn_episode(bank: Bank, episode: Episode, recall: str | None) -> Learned:
    """What a model, and rules about checks, learn from an episode. Raises as `learn_from` does."""
    if not has_something_to_learn(bank, episode):
        raise InvalidInput(
            "No model was specified. Set one with model=, MULLIGAN_MODEL, or model under [memory] in mulligan.toml. "
            "Without a model, only facts are learned: from failed commands that were later fixed and, with "
            "success=, from failed asserts in tool output."
        )
    return await bank.learn(replace(episode, recall=await bank.recalled(recall)) if recall else episode)


async def lessons_about(bank: Bank, query: str, top_k: int) -> list[Lesson]:
    """Returns the lessons for an agent that asks during its work, without counting a use.

    Lessons about an error in the query come first, and then those of a recall."""
    facts = await bank.list(Selection(nature="fact", tag=TAG, limit=None))
    about_error = [lesson for lesson in facts if lesson.context.get("refusal") and has_reason(lesson, query)]
    about_error.sort(key=lambda lesson: not lesson.confirmed)
    recalled = (await bank.recall(query, top_k=top_k, counted=False)).lessons if len(about_error) < top_k else ()
    return list({lesson.id: lesson for lesson in (*about_error, *recalled)}.values())[:top_k]
