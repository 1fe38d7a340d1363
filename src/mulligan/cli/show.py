"""Formats one episode for the terminal: its attempts, verdicts and lessons."""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.app.run_context import RunContext
from mulligan.app.story import state, state_words
from mulligan.cli.terminal import clean, drawn, one_line
from mulligan.cli.words import decided, folded, parent_note, rating, role, tries, verdict
from mulligan.core.records import Attempt, Check, Episode, Lesson, Trial
from mulligan.recording.drivers import driver, led_by_client, led_by_function, led_by_goal, led_by_graph
from mulligan.text.figures import used
from mulligan.text.formatting import check_text, kind_text, layers_text
from mulligan.text.lessons import condensed_by
from mulligan.text.reflections import after_lesson, quality_words
from mulligan.text.truncate import truncate_text

TOKENS = 400
"""The most tokens of one text, taken from its beginning and end, unless --full is given."""
STYLES = (
    (r"Episode \S+: solved", "green"),
    (r"Episode \S+: (not solved|error|stuck|gave)", "red"),
    (r"Try \d+.*?: passed", "green"),
    (r"Try \d+.*?: failed", "red"),
    (r"Try \d+.*?: no verdict", "magenta"),
    (r"(Episode|Task$|Learned|Recalled)", "bold"),
    (r"  (lesson)", "cyan"),
    (r"(  \S|\d+ tr(y|ies), |model: |actor )", "dim"),
)
"""How lines look on a terminal. The texts of a run stand further to the right, and have no style."""


def story(episode: Episode, context: RunContext, *, full: bool = False) -> str:
    return drawn(_lines(episode, context, None if full else TOKENS), STYLES)


def _lines(episode: Episode, context: RunContext, tokens: int | None) -> Iterator[str]:
    detail = f": {_line(episode.stop.detail, 300, tokens)}" if episode.stop and episode.stop.detail else ""
    yield f"Episode {episode.id}: {state_words(state(episode, context.running))}{detail}"
    yield f"{tries(len(episode.trials))}, {used(episode.usage, episode.seconds)}"
    if models := dict.fromkeys(episode.head.models.values()):
        yield f"model: {_line(', '.join(models), 300, tokens)}"
    roles = ((name, role(episode, name)) for name in ("actor", "evaluator", "strategy", "reflector", "foresight"))
    if led_by_client(episode):
        yield f"led by a client, {tries(int(episode.head.settings['trials']))} planned"
    elif led_by_goal(episode):
        settings = episode.head.settings
        who = (
            "an agent that was started"
            if settings["coding_agent"] == "run"
            else f"a session of {settings['coding_agent']}"
        )
        yield _line(f"{who} towards a goal in {settings['folder']}", 300, tokens)
        if role(episode, "evaluator") == "model_judge":
            yield "judged by a model, the weakest judge: nothing was run"
    elif led_by_function(episode):
        settings = episode.head.settings
        yield _line(f"a call of {settings['function']}, judged by {settings['judge']}", 300, tokens)
    elif led_by_graph(episode):
        yield _line(driver(episode), 300, tokens)
    else:
        judge = {"evaluator": "judge"}
        yield ", ".join(f"{judge.get(name, name)} {_line(plugin, 80, tokens)}" for name, plugin in roles if plugin)
    if episode.forked_from:
        yield f"forked from {episode.forked_from}"
    if kind := kind_text(episode.task):
        yield f"kind of task: {_line(kind, 300, tokens)}"
    yield "\nTask"
    yield _block(episode.task.prompt, tokens)
    yield from _memory(episode, context, tokens)
    for given in episode.ratings:
        yield rating(given)
    for trial in episode.trials:
        yield from _trial(trial, tokens)
        if quality := trial.reflection and trial.reflection.quality:
            after = after_lesson(episode, trial.number)
            yield f"  {quality_words(quality)}{f'; the next try: {after}' if after else ''}"
            yield from (f"  missing: {_line(one, 300, tokens)}" for one in quality.missing)


def _memory(episode: Episode, context: RunContext, tokens: int | None) -> Iterator[str]:
    """What the run taught, and what it was shown of earlier lessons."""
    yield "\nLearned from this run"
    yield from (_lesson(lesson, tokens) for lesson in context.lessons)
    if not context.lessons:
        yield f"    {_line(context.no_lessons_because, 300, tokens)}"
    if episode.recall:
        yield "\nRecalled for this run"
        yield from (_lesson(lesson, tokens) for lesson in episode.recall.lessons)
        yield from (f"{_lesson(lesson, tokens)} (withheld by draw)" for lesson in context.withheld_lessons)
        if not episode.recall.lessons and not context.withheld_lessons:
            yield "    none"
        if episode.recall.note:
            yield f"  found {_line(episode.recall.note, 300, tokens)}"


def _lesson(lesson: Lesson, tokens: int | None) -> str:
    return f"    {lesson.id[:8]}  {_line(lesson.title, 120, tokens)}"


def _trial(trial: Trial, tokens: int | None) -> Iterator[str]:
    spent = used(trial.usage)
    yield f"\nTry {trial.number}{parent_note(trial)}: {verdict(trial.feedback)}{f' ({spent})' if spent else ''}"
    yield from _attempt(trial.attempt, tokens)
    if trial.feedback:
        if trial.feedback.text.strip():
            yield f"  feedback of {_line(trial.feedback.source or 'the evaluator', 80, tokens)}"
            yield _block(trial.feedback.text, tokens)
        for note in trial.feedback.notes:
            yield f"  note: {_line(note, 300, tokens)}"
    if trial.reflection:
        withheld = trial.reflection.withheld
        yield f"  lesson, not shown: {_line(withheld, 300, tokens)}" if withheld else "  lesson"
        yield _block(layers_text(trial.reflection.layers) or trial.reflection.text or "(none)", tokens)
        if condensed := trial.reflection.condensed:
            yield f"  {_line(condensed_by(condensed), 300, tokens)}"
            yield _block(condensed.text, tokens)
        for edit in trial.reflection.edits:
            yield f"  {_line(decided(edit), 300, tokens)}"
        for note in trial.reflection.notes:
            yield f"  note: {_line(note, 300, tokens)}"


def _attempt(attempt: Attempt, tokens: int | None) -> Iterator[str]:
    for number, step in enumerate(attempt.steps, 1):
        for name in ("thought", "check", "action", "observation"):
            if isinstance(part := getattr(step, name), Check):
                yield f"  check {number} ({', '.join(_of_check(part, tokens))})"
                yield _block(check_text(part) or "Not critical.", tokens)
            elif part:
                yield f"  {name} {number}"
                yield _block(part, tokens)
    if choice := attempt.choice:
        odds = ", ".join(f"{_line(arm, 40, tokens)} {share:.0%}" for arm, share in choice.odds.items())
        yield f"  chosen after {_line(choice.signal, 40, tokens)}: {_line(choice.arm, 40, tokens)} (odds: {odds})"
    yield "  attempt"
    yield _block(attempt.output or "(empty)", tokens)
    for artifact in attempt.artifacts:
        yield f"  {artifact.kind} {_line(artifact.ref, 120, tokens)}"


def _of_check(check: Check, tokens: int | None) -> Iterator[str]:
    """What the text of a check does not say: why it was made, which lessons it was shown, and what it cost."""
    yield _line(check.because, 80, tokens)
    if check.lessons:
        yield f"shown {_line(', '.join(check.lessons), 200, tokens)}"
    yield from filter(None, [used(check.usage)])
    yield from (_line(note, 200, tokens) for note in check.notes)


def _line(text: str, width: int, tokens: int | None) -> str:
    """The text in one line; of at most this width, if texts are cut."""
    return folded(text) if tokens is None else one_line(text, width)


def _block(text: str, tokens: int | None) -> str:
    shown = clean(text).strip("\n")
    shown = shown if tokens is None else truncate_text(shown, tokens)
    return "\n".join(f"    {line}".rstrip() for line in shown.splitlines())
