"""Formats one episode for the terminal: its attempts, verdicts and lessons."""

from __future__ import annotations

from collections.abc import Iterator

from mulligan.app.story import state
from mulligan.cli.terminal import clean, one_line
from mulligan.cli.words import count, decided, parent_note, rating, role, used, verdict
from mulligan.core.records import Attempt, Check, Episode, Trial
from mulligan.recording.drivers import driver, led_by_client, led_by_function, led_by_graph
from mulligan.text.formatting import check_text, layers_text
from mulligan.text.lessons import condensed_by
from mulligan.text.reflections import after_lesson, quality_words
from mulligan.text.truncate import truncate_text

TOKENS = 400
"""The most tokens of one text, taken from its beginning and end, unless --full is given."""


def story(episode: Episode, running: bool, *, full: bool = False) -> str:
    return "\n".join(_lines(episode, running, None if full else TOKENS))


def _lines(episode: Episode, running: bool, tokens: int | None) -> Iterator[str]:
    detail = f": {one_line(episode.stop.detail, 300)}" if episode.stop and episode.stop.detail else ""
    yield f"Episode {episode.id}: {state(episode, running)}{detail}"
    yield f"{count(len(episode.trials), 'trial')}, {used(episode.usage)}, {episode.seconds:.1f} s"
    if models := dict.fromkeys(episode.head.models.values()):
        yield f"model: {one_line(', '.join(models), 300)}"
    roles = ((name, role(episode, name)) for name in ("actor", "evaluator", "strategy", "reflector", "foresight"))
    if led_by_client(episode):
        yield f"led by a client, {count(int(episode.head.settings['trials']), 'trial')} planned"
    elif led_by_function(episode):
        settings = episode.head.settings
        yield one_line(f"a call of {settings['function']}, judged by {settings['judge']}", 300)
    elif led_by_graph(episode):
        yield one_line(driver(episode), 300)
    else:
        yield ", ".join(f"{name} {one_line(plugin, 80)}" for name, plugin in roles if plugin)
    if episode.forked_from:
        yield f"forked from {episode.forked_from}"
    yield "\nTask"
    yield _block(episode.task.prompt, tokens)
    if episode.recall:
        yield f"\nRecalled lessons: {', '.join(lesson.title for lesson in episode.recall.lessons) or 'none'}"
    for given in episode.ratings:
        yield rating(given)
    for trial in episode.trials:
        yield from _trial(trial, tokens)
        if quality := trial.reflection and trial.reflection.quality:
            after = after_lesson(episode, trial.number)
            yield f"  {quality_words(quality)}{f'; the next trial: {after}' if after else ''}"
            yield from (f"  missing: {one_line(one, 300)}" for one in quality.missing)


def _trial(trial: Trial, tokens: int | None) -> Iterator[str]:
    yield f"\nTrial {trial.number}{parent_note(trial)}: {verdict(trial.feedback)} ({used(trial.usage)})"
    yield from _attempt(trial.attempt, tokens)
    if trial.feedback:
        if trial.feedback.text.strip():
            yield f"  feedback of {one_line(trial.feedback.source or 'the evaluator', 80)}"
            yield _block(trial.feedback.text, tokens)
        for note in trial.feedback.notes:
            yield f"  note: {one_line(note, 300)}"
    if trial.reflection:
        withheld = trial.reflection.withheld
        yield f"  lesson, withheld: {one_line(withheld, 300)}" if withheld else "  lesson"
        yield _block(layers_text(trial.reflection.layers) or trial.reflection.text or "(none)", tokens)
        if condensed := trial.reflection.condensed:
            yield f"  {one_line(condensed_by(condensed), 300)}"
            yield _block(condensed.text, tokens)
        for edit in trial.reflection.edits:
            yield f"  {one_line(decided(edit), 300)}"
        for note in trial.reflection.notes:
            yield f"  note: {one_line(note, 300)}"


def _attempt(attempt: Attempt, tokens: int | None) -> Iterator[str]:
    for number, step in enumerate(attempt.steps, 1):
        for name in ("thought", "check", "action", "observation"):
            if isinstance(part := getattr(step, name), Check):
                yield f"  check {number} ({', '.join(_of_check(part))})"
                yield _block(check_text(part) or "Not critical.", tokens)
            elif part:
                yield f"  {name} {number}"
                yield _block(part, tokens)
    if choice := attempt.choice:
        odds = ", ".join(f"{one_line(arm, 40)} {share:.0%}" for arm, share in choice.odds.items())
        yield f"  chosen after {one_line(choice.signal, 40)}: {one_line(choice.arm, 40)} (odds: {odds})"
    yield "  attempt"
    yield _block(attempt.output or "(empty)", tokens)
    for artifact in attempt.artifacts:
        yield f"  {artifact.kind} {one_line(artifact.ref, 120)}"


def _of_check(check: Check) -> Iterator[str]:
    """What the text of a check does not say: why it was made, which lessons it was shown, and what it cost."""
    yield one_line(check.because, 80)
    if check.lessons:
        yield f"shown {one_line(', '.join(check.lessons), 200)}"
    yield used(check.usage)
    yield from (one_line(note, 200) for note in check.notes)


def _block(text: str, tokens: int | None) -> str:
    shown = clean(text).strip("\n")
    shown = shown if tokens is None else truncate_text(shown, tokens)
    return "\n".join(f"    {line}".rstrip() for line in shown.splitlines())
