"""Describes episodes, events and outcomes in one line each. Writes nothing itself."""

from __future__ import annotations

from typing import Any

from mulligan.app.workspaces import has_judge, unjudged
from mulligan.bank.recall.prompt_text import held_back
from mulligan.cli.terminal import one_line
from mulligan.core.agreement import LEAST, Agreement
from mulligan.core.episode import (
    RESUMABLE,
    Acted,
    Evaluated,
    Event,
    Forked,
    Move,
    Rated,
    Recalled,
    Reflected,
    Resumed,
    Revised,
    Stopped,
    due,
)
from mulligan.core.limits import Limits
from mulligan.core.records import Edit, Episode, Feedback, Rating, Trial, Usage
from mulligan.core.scaling import scale_of
from mulligan.recording.drivers import led_by_graph
from mulligan.text.lessons import condensed_by
from mulligan.text.plain import count as count

DOING = {"recall": "recalling lessons", "act": "trying", "evaluate": "judging", "reflect": "reflecting"}
WIDTH = 120
"""The most characters of a feedback or lesson in a line of progress."""


def dollars(cost: float | None) -> str:
    """The cost in US dollars, or "cost unknown"; an unknown cost is never shown as zero."""
    return "cost unknown" if cost is None else f"${cost:.4f}"


def used(usage: Usage) -> str:
    return f"{usage.tokens:,} tokens, {dollars(usage.cost)}"


def verdict(feedback: Feedback | None) -> str:
    if feedback is None:
        return "not judged yet"
    text = {True: "passed", False: "failed", None: "no verdict"}[feedback.passed]
    return text if feedback.score is None else f"{text}, score {feedback.score:.2f}"


def parent_note(trial: Trial) -> str:
    """Names the parent of a trial in a search; empty if that is the trial before it."""
    return "" if trial.parent in (None, trial.number - 1) else f" (grown from trial {trial.parent})"


def role(episode: Episode, name: str) -> str:
    """The name of the plug-in in this role; of a user's file, its file name."""
    spec: Any = episode.head.settings.get(name) or {}
    return str(spec.get("name", "")).rpartition("/")[2]


def heading(episode: Episode, limits: Limits) -> str:
    """The line that is printed when an episode starts or resumes."""
    models = dict.fromkeys(episode.head.models.values())
    by = ", ".join(models) or role(episode, "actor") or "unknown"
    judge = role(episode, "evaluator")
    judged = judge and (f"judged by {judge}" if has_judge(episode) else "nobody judges")
    parts = [episode.agent, by, judged, f"at most {_most(episode, limits)}"]
    return f"run {episode.run}{_restart(episode)}: {', '.join(part for part in parts if part)}"


def _most(episode: Episode, limits: Limits) -> str:
    """The limit as the user set it: in trials, or in steps of a graph."""
    steps = episode.head.settings.get("max_steps") if led_by_graph(episode) else None
    if steps is None:
        return count(limits.trials, "trial")
    revisions = f" and {count(steps - 1, 'revision')}" if steps > 1 else ""
    return f"{count(steps, 'step')} (a draft{revisions})"


def doing(episode: Episode, limits: Limits) -> str:
    """The step that is due now; empty if none is."""
    move = due(episode, limits)
    if not isinstance(move, Move):
        return ""
    if move.kind == "recall":
        return DOING["recall"]
    if move.kind == "evaluate" and not has_judge(episode):
        return ""
    parent = "" if move.parent in (None, move.trial - 1) else f" to do better than trial {move.parent}"
    return f"trial {move.trial} of {limits.trials}: {DOING[move.kind]}{parent}"


def event_line(episode: Episode, event: Event, limits: Limits) -> str:
    """The event in one line; empty for events that need none. episode: after the event."""
    number = event.trial if isinstance(event, Reflected) else len(episode.trials)
    at = f"trial {number} of {limits.trials}"
    match event:
        case Recalled(recall):
            text, held = f"{count(len(recall.lessons), 'lesson')} recalled", held_back(recall)
            return one_line(f"{text}; {held} (mulligan memory search … --threshold 0 shows it)", 300) if held else text
        case Evaluated(_, feedback):
            if not has_judge(episode):
                return ""
            why = "" if feedback.passed else one_line(feedback.text, WIDTH)
            return f"{at}: {verdict(feedback)}{': ' if why else ''}{why}"
        case Reflected(_, reflection):
            if reflection is None:
                return f"{at}: the reflector gave up"
            notes = "; ".join(reflection.notes)
            learned = f"lesson: {one_line(reflection.text, WIDTH)}" if reflection.text else "no lesson"
            if reflection.withheld:
                learned = f"lesson withheld: {one_line(reflection.withheld, WIDTH)}"
            if reflection.condensed:
                learned += f"; {condensed_by(reflection.condensed)}: {one_line(reflection.condensed.text, WIDTH)}"
            return f"{at}: {learned}{f' (note: {one_line(notes, WIDTH)})' if notes else ''}"
        case Resumed() | Forked():
            return f"resuming after {count(len(episode.trials), 'trial')}"
        case Acted() | Stopped() | Revised() | Rated():
            return ""


def rating(given: Rating) -> str:
    """A person's score in a line."""
    what = f"lesson of trial {given.trial}" if given.trial else "result"
    said = f": {one_line(given.comment, WIDTH)}" if given.comment else ""
    return f"{what} rated {given.score:g}{f' by {one_line(given.by, 40)}' if given.by else ''}{said}"


def decided(edit: Edit) -> str:
    """What a person decided about a lesson, in a line."""
    before = (
        f"; before: {one_line(edit.before, WIDTH)}" if edit.decision in ("edited", "written") and edit.before else ""
    )
    return f"{edit.decision} by {one_line(edit.by, 40) or 'a person'}{before}"


def agreed(what: str, found: Agreement | None, n: int) -> str:
    """How far two scores agree, in a sentence. what: names both. n: how many things have both."""
    if found is None:
        return f"{what}: {n} of each, too few to say whether they agree (at least {LEAST})."
    ranks = "unknown, as one is the same for all" if found.correlation is None else f"{found.correlation:+.2f}"
    same = "" if found.share is None else f"; of two, both put the same one first in {found.share:.0%}"
    return f"{what}: rank correlation {ranks}{same} (n = {found.n})."


def closing(episode: Episode, limits: Limits, printed: str = "") -> list[str]:
    """How the episode ended, which attempt is printed, and where it is recorded or how to resume it.

    printed: names what is printed, where that is not the best attempt.
    """
    stop = episode.stop
    reason = stop.reason if stop else "interrupted"
    resume = f"Resume it with: {_resume(episode)}"
    if reason == "interrupted":
        return [f"Interrupted. {resume}"]
    if reason == "over_budget":
        resume = f"Resume it with a higher limit (--max-tokens, --max-cost, --max-seconds): {_resume(episode)}"
    kept = resume if reason in RESUMABLE else f"recorded: mulligan runs show {episode.run}"
    totals = f"{used(episode.usage)}, {episode.seconds:.1f} s"
    return [f"{_headline(episode, limits, printed)} ({totals})", *remarks(episode), kept]


def broken_off(last: Episode) -> list[str]:
    """Lines for a run whose last restart was interrupted, where an earlier one has the best attempt."""
    stop = last.stop
    why = one_line(stop.detail or stop.reason, 400) if stop else "interrupted"
    return [f"The run is not finished{_restart(last)}: {why}", f"Resume it with: {_resume(last)}"]


def _resume(episode: Episode) -> str:
    return f"mulligan runs resume {episode.run}"


def _headline(episode: Episode, limits: Limits, printed: str) -> str:
    best, stop = episode.best, episode.stop
    restart = _restart(episode)
    if best and unjudged(episode):
        return "done, without a judge"
    if best and episode.solved:
        return f"solved at trial {best.number} of {limits.trials}{restart}"
    detail = one_line(stop.detail or stop.reason, 400) if stop else ""
    ends = {
        "error": "stopped by an error",
        "over_budget": "stopped over budget",
        "unsure": "unsure",
        "absent": "not in the graph",
    }
    otherwise = "not solved" if episode.judged else "could not be judged"
    text = f"{ends.get(stop.reason if stop else '', otherwise)}{restart}: {detail}"
    return f"{text}; printing {printed or f'the best attempt, {which(best)}'}" if best else text


def which(trial: Trial) -> str:
    feedback = trial.feedback
    score = "" if feedback is None or feedback.score is None else f", score {feedback.score:.2f}"
    return f"trial {trial.number}{score}"


def remarks(episode: Episode) -> list[str]:
    """Remarks on the verdict: that there is none, the evaluator's notes, or that a model judged itself."""
    best, models = episode.best, episode.head.models
    feedback = best.feedback if best else None
    lines: list[str] = []
    if feedback:
        if feedback.passed is None and not unjudged(episode) and not _unconfirmed(episode):
            lines.append(f"no verdict: {one_line(feedback.text, 300)}")
        lines += [f"note: {one_line(note, 300)}" for note in feedback.notes]
    if role(episode, "evaluator") == "model_judge" and models.get("evaluator") == models.get("actor"):
        lines.append("note: the model judged itself; tests (--tests FILE) or a check (--check COMMAND) are stronger")
    return lines


def _unconfirmed(episode: Episode) -> bool:
    """Whether the stop reason already says why there is no verdict."""
    return episode.stop is not None and episode.stop.reason == "unconfirmed"


def _restart(episode: Episode) -> str:
    """Which restart this is; empty if there is only one."""
    scale = scale_of(episode.head.settings.get("scale"))
    if scale and scale.siblings > 1:
        return f" (trajectory {episode.id.rpartition('.')[2]} of {scale.k})"
    restarts = int(episode.head.settings.get("restarts") or 1)
    return f" (restart {episode.id.rpartition('.')[2]} of {restarts})" if restarts > 1 else ""
