"""Reports the progress of an episode: not at all, as lines for people, or as JSON lines for programs."""

from __future__ import annotations

import json
from typing import Protocol

from mulligan.cli import trace, words
from mulligan.cli.errors import NOT_SOLVED, UNFINISHED, exit_status, message_of, run_status
from mulligan.cli.terminal import emit, say
from mulligan.core.codec import to_json
from mulligan.core.episode import Event
from mulligan.core.limits import Limits
from mulligan.core.records import Episode, Json
from mulligan.text.secrets import mask_json


class Progress(Protocol):
    """Reports progress. Called in this order: `began` for each episode, `saw` for each event, `ended` once."""

    def began(self, episode: Episode, limits: Limits) -> None: ...
    def saw(self, episode: Episode, event: Event) -> None: ...
    def did(self, key: str, request: Json, result: Json, recorded: bool) -> None:
        """A step was done, or found in the record. Called only for a trace."""
        ...

    def notice(self, sentence: str) -> None:
        """Show a message about the episode, such as where its result was delivered."""
        ...

    def interrupting(self) -> None:
        """The user asked the work to stop, which may take a moment."""
        ...

    def ended(self, episode: Episode, limits: Limits) -> None:
        """Show how the episode ended, and print the best attempt on stdout."""
        ...

    def unrecorded(self, episode: Episode) -> None:
        """The record was lost meanwhile: print the best attempt so far. Called before `failed`."""
        ...

    def failed(self, error: Exception) -> None:
        """The episode ended with an error, which is printed after this call."""
        ...


class Quiet:
    """Prints the result, and on stderr only why it was not finished or judged."""

    def began(self, episode: Episode, limits: Limits) -> None: ...
    def saw(self, episode: Episode, event: Event) -> None: ...
    def did(self, key: str, request: Json, result: Json, recorded: bool) -> None:
        for line in trace.lines(key, request, result, recorded):
            say(line)

    def notice(self, sentence: str) -> None: ...
    def interrupting(self) -> None: ...

    def ended(self, episode: Episode, limits: Limits) -> None:
        _say_trouble(episode, limits)
        print_result(episode)

    def unrecorded(self, episode: Episode) -> None:
        print_result(episode)

    def failed(self, error: Exception) -> None: ...


class Lines(Quiet):
    """Prints a line for each event that a terminal would keep; the current step is not one."""

    def began(self, episode: Episode, limits: Limits) -> None:
        self._limits = limits
        say(words.heading(episode, limits))

    def saw(self, episode: Episode, event: Event) -> None:
        if entry := words.entry(episode, event, self._limits):
            say(entry.line)

    def notice(self, sentence: str) -> None:
        say(sentence)

    def interrupting(self) -> None:
        say("Interrupting. Interrupt again to stop immediately.")

    def ended(self, episode: Episode, limits: Limits) -> None:
        for line in words.closing(episode, limits):
            say(line)
        print_result(episode)


class JsonLines:
    """Prints one JSON object a line: "started", each recorded event, notices, and last "result" or "error"."""

    def __init__(self) -> None:
        self._last: Episode | None = None

    def began(self, episode: Episode, limits: Limits) -> None:
        self._put("started", episode, {"limits": to_json(limits), "models": dict(episode.head.models)})

    def saw(self, episode: Episode, event: Event) -> None:
        self._last = episode
        fields = to_json(event)
        self._put(fields.pop("event"), episode, {**fields, "used": to_json(episode.usage)})

    def did(self, key: str, request: Json, result: Json, recorded: bool) -> None:
        step = {"key": key, "request": request, "result": result, "recorded": recorded}
        emit(json.dumps({"event": "step", **mask_json(step)}))

    def notice(self, sentence: str) -> None:
        emit(json.dumps({"event": "notice", "text": sentence}))

    def interrupting(self) -> None: ...

    def ended(self, episode: Episode, limits: Limits) -> None:
        _say_trouble(episode, limits)
        self._result(episode, run_status(episode, self._last or episode))

    def unrecorded(self, episode: Episode) -> None:
        self._result(episode, UNFINISHED)

    def failed(self, error: Exception) -> None:
        emit(json.dumps({"event": "error", "message": message_of(error), "exit_status": exit_status(error)}))

    def _result(self, episode: Episode, status: int) -> None:
        self._put("result", episode, {**outcome(episode), "exit_status": status})

    def _put(self, name: str, episode: Episode, what: dict[str, Json]) -> None:
        emit(json.dumps({"event": name, "run": episode.run, "episode": episode.id, **what}))


def outcome(episode: Episode) -> dict[str, Json]:
    """The result as JSON; missing values are null."""
    best = episode.best
    feedback = best.feedback if best else None
    return {
        "solved": episode.solved,
        "stop": episode.stop and to_json(episode.stop),
        "exit_status": exit_status(episode),
        "output": best.attempt.output if best else None,
        "trial": best.number if best else None,
        "passed": feedback.passed if feedback else None,
        "score": feedback.score if feedback else None,
        "trials": len(episode.trials),
        "used": to_json(episode.usage),
        "seconds": episode.seconds,
        "remarks": words.remarks(episode),
    }


def _say_trouble(episode: Episode, limits: Limits) -> None:
    if exit_status(episode) > NOT_SOLVED:
        for line in words.closing(episode, limits):
            say(line)


def print_result(episode: Episode) -> None:
    best = episode.best
    if best and best.attempt.output:
        emit(best.attempt.output)


def first(*, quiet: bool, as_json: bool) -> Progress:
    """The progress to use until the episode is known."""
    return JsonLines() if as_json else Quiet() if quiet else Lines()
