"""Describes episodes, events and outcomes, each in one line. It prints nothing itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Any

from mulligan.app.workspaces import has_judge, unjudged
from mulligan.bank.recall.prompt_text import held_back
from mulligan.cli.terminal import clean
from mulligan.core.agreement import MIN_PAIRS, Agreement
from mulligan.core.episode import (
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
from mulligan.core.records import RESUMABLE, Episode, Trial
from mulligan.core.scaling import scale_of
from mulligan.recording.drivers import led_by_graph
from mulligan.text.figures import used
from mulligan.text.lessons import condensed_by
from mulligan.text.plain import count as count
from mulligan.text.plain import one_line, with_tries
from mulligan.text.states import DOING, state_of, verdict

REASON = 2000
"""The number of characters of a reason that are shown, with a note where the rest is. Lessons are shown whole."""
CHANGES = 60
"""The number of lines of a diff that are shown."""


def role(episode: Episode, name: str) -> str:
    """Returns the name of a role's plug-in; if that is a file, the file name alone."""
    spec: Any = episode.head.settings.get(name) or {}
    return str(spec.get("name", "")).rpartition("/")[2]


def heading(episode: Episode, limits: Limits) -> str:
    """Returns the line that is printed when an episode starts or resumes."""
    models = dict.fromkeys(episode.head.models.values())
    by = ", ".join(models) or role(episode, "actor") or "unknown"
    judge = role(episode, "evaluator")
    judged = judge and (f"judged by {judge}" if has_judge(episode) else "no judge")
    parts = [episode.agent, by, judged, f"at most {_most(episode, limits)}"]
    return f"run {episode.run}{_restart(episode)}: {', '.join(part for part in parts if part)}"


def _most(episode: Episode, limits: Limits) -> str:
    """Returns the limit as the user set it, in tries or in steps of a graph."""
    steps = episode.head.settings.get("max_steps") if led_by_graph(episode) else None
    if steps is None:
        return count(limits.trials, "try")
    revisions = f" and {count(steps - 1, 'revision')}" if steps > 1 else ""
    return f"{count(steps, 'step')} (a draft{revisions})"


def doing(episode: Episode, limits: Limits) -> str:
    """Returns the step that is due now, or ""."""
    move = due(episode, limits)
    if not isinstance(move, Move):
        return ""
    if move.kind == "recall":
        return DOING["recall"]
    if move.kind == "evaluate" and not has_judge(episode):
        return ""
    parent = "" if move.parent in (None, move.trial - 1) else f" to do better than try {move.parent}"
    return f"try {move.trial} of {limits.trials}: {DOING[move.kind]}{parent}"


@dataclass(frozen=True)
class Entry:
    """An event to show: a state of `STATES`, a description, and the event's text, such as a lesson.

    more: further text, which a terminal shows on lines of its own.
    """

    state: str
    head: str
    text: str = ""
    more: str = ""

    @property
    def line(self) -> str:
        """The entry as one line, for a pipe."""
        return f"{self.head}{': ' if self.text else ''}{one_line(self.text)}{self.more}"


def reason(text: str, run: str) -> str:
    """Returns a reason, or its first `REASON` characters with a note where the rest is."""
    rest = len(text) - REASON
    return text if rest <= 0 else f"{text[:REASON]} ({rest:,} more characters: mulligan runs show {run} --full)"


def entry(episode: Episode, event: Event, limits: Limits) -> Entry | None:
    """Returns the entry of an event, or None for events that are not shown. episode: its state after the event."""
    number = event.trial if isinstance(event, Reflected) else len(episode.trials)
    at = f"try {number} of {limits.trials}"
    match event:
        case Recalled(recall):
            text, held = f"{count(len(recall.lessons), 'lesson')} recalled", held_back(recall)
            held = f"; {held} (mulligan memory search … --threshold 0 shows it)" if held else ""
            return Entry("recalled", f"{text}{held}{f' ({one_line(recall.note)})' if recall.note else ''}")
        case Evaluated(_, feedback):
            if not has_judge(episode):
                return None
            why = "" if feedback.passed else reason(feedback.text.strip(), episode.run)
            return Entry(state_of(feedback.passed), f"{at}: {verdict(feedback)[1]}", why)
        case Reflected(_, reflection):
            if reflection is None:
                return Entry("note", f"{at}: the reflector gave up")
            learned = Entry("lesson", f"{at}: lesson", reflection.text) if reflection.text else None
            if reflection.withheld:
                learned = Entry("note", f"{at}: lesson not shown", reflection.withheld)
            learned = learned or Entry("note", f"{at}: no lesson")
            more = ""
            if reflection.condensed:
                more += f"; {condensed_by(reflection.condensed)}: {one_line(reflection.condensed.text)}"
            if notes := one_line("; ".join(reflection.notes)):
                more += f" (note: {notes})"
            return replace(learned, more=more)
        case Resumed() | Forked():
            return Entry("note", f"resuming after {count(len(episode.trials), 'try')}")
        case Acted() | Stopped() | Revised() | Rated():
            return None


def changes(episode: Episode) -> list[str]:
    """Returns the lines of a diff from the first attempt to the last one; none if there is only one attempt.

    Attempts in a workspace are not compared, since the result is a diff itself.
    """
    if len(episode.trials) < 2 or any(trial.attempt.artifacts for trial in episode.trials):
        return []
    first, last = episode.trials[0], episode.trials[-1]
    one, other = (clean(trial.attempt.output).strip().splitlines() for trial in (first, last))
    diff = list(unified_diff(one, other, f"try {first.number}", f"try {last.number}", lineterm="", n=2))
    if len(diff) > CHANGES:
        rest = f"({count(len(diff) - CHANGES, 'more line')}: mulligan runs show {episode.run} --full)"
        return [*diff[:CHANGES], rest]
    return diff


def agreement_text(scores: str, agreement: Agreement | None, n: int) -> str:
    """Returns a sentence on how well two scores agree. scores: their names. n: the number of things with both."""
    if agreement is None:
        return f"{scores}: {n} of each, too few to tell whether they agree (at least {MIN_PAIRS} are needed)."
    correlation, share = agreement.correlation, agreement.share
    ranks = "unknown, because one of the two scores never varies" if correlation is None else f"{correlation:+.2f}"
    same = "" if share is None else f"; both prefer the same one of a pair in {share:.0%} of cases"
    return f"{scores}: rank correlation {ranks}{same} (n = {agreement.n})."


def closing(episode: Episode, limits: Limits, printed: str = "best attempt", trial: Trial | None = None) -> list[str]:
    """Returns lines that say how the episode ended, which attempt is printed, and how to show or resume the run.

    printed: what is printed of `trial`. None: the best one.
    """
    stop = episode.stop
    reason = stop.reason if stop else "interrupted"
    resume = f"Resume it with: {_resume(episode)}"
    if reason == "interrupted":
        return [f"Interrupted. {resume}"]
    if reason == "over_budget":
        resume = f"Resume it with a higher limit (--max-tokens, --max-cost, --max-seconds): {_resume(episode)}"
    kept = resume if reason in RESUMABLE else f"recorded: mulligan runs show {episode.run}"
    return [
        f"{_headline(episode, limits, printed, trial or episode.best)} ({used(episode.usage, episode.seconds)})",
        *remarks(episode),
        kept,
    ]


def broken_off(last: Episode) -> list[str]:
    """Returns lines for a run whose last restart was interrupted, after an earlier one had the best attempt."""
    stop = last.stop
    why = one_line(reason(with_tries(stop.detail or stop.reason), last.run)) if stop else "interrupted"
    return [f"The run is not finished{_restart(last)}: {why}", f"Resume it with: {_resume(last)}"]


def _resume(episode: Episode) -> str:
    return f"mulligan runs resume {episode.run}"


def _headline(episode: Episode, limits: Limits, printed: str, trial: Trial | None) -> str:
    best, stop = episode.best, episode.stop
    restart = _restart(episode)
    if best and unjudged(episode):
        return "done, without a judge"
    if best and episode.solved:
        return f"solved on try {best.number} of {limits.trials}{restart}"
    detail = one_line(reason(with_tries(stop.detail or stop.reason), episode.run)) if stop else ""
    ends = {
        "error": "stopped by an error",
        "over_budget": "stopped over budget",
        "unsure": "unsure",
        "absent": "not in the graph",
    }
    otherwise = "not solved" if episode.judged else "could not be judged"
    text = f"{ends.get(stop.reason if stop else '', otherwise)}{restart}: {detail}"
    if best is None or trial is None:
        return text
    feedback = trial.feedback
    score = "" if feedback is None or feedback.score is None else f", score {feedback.score:.2f}"
    return f"{text}; printing the {printed}, try {trial.number}{score}"


def remarks(episode: Episode) -> list[str]:
    """Returns remarks on the verdict: why there is none, the evaluator's notes, and whether a model judged itself."""
    best, models = episode.best, episode.head.models
    feedback = best.feedback if best else None
    lines: list[str] = []
    if feedback:
        if feedback.passed is None and not unjudged(episode) and not _unconfirmed(episode):
            lines.append(f"no verdict: {one_line(reason(feedback.text, episode.run))}")
        lines += [f"note: {one_line(note)}" for note in feedback.notes]
    if role(episode, "evaluator") == "model_judge" and models.get("evaluator") == models.get("actor"):
        lines.append("note: the model judged itself; tests (--tests FILE) or a check (--check COMMAND) are stronger")
    return lines


def _unconfirmed(episode: Episode) -> bool:
    """Whether the stop reason already says why there is no verdict."""
    return episode.stop is not None and episode.stop.reason == "unconfirmed"


def _restart(episode: Episode) -> str:
    """Returns which restart this is, or "" if there is only one."""
    scale = scale_of(episode.head.settings.get("scale"))
    if scale and scale.siblings > 1:
        return f" (trajectory {episode.id.rpartition('.')[2]} of {scale.k})"
    restarts = int(episode.head.settings.get("restarts") or 1)
    return f" (restart {episode.id.rpartition('.')[2]} of {restarts})" if restarts > 1 else ""
