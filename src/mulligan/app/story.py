"""Episodes as pages that a person reads: the task, then trial by trial what was tried, judged and learned.

Over any `Store`. How foreign text and secrets are kept harmless is the pages' (`core.pages`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mulligan.app.workspaces import stop_reason, unjudged
from mulligan.core.episode import RESUMABLE
from mulligan.core.protocols import Brief, Store
from mulligan.core.records import Attempt, Check, Episode, Feedback, Outcome, Trial, Usage
from mulligan.recording.drivers import asked_by_name, led_by_client, led_by_goal, may_wait, sentence_in
from mulligan.store.export import each_readable
from mulligan.text.formatting import check_text, kind_text, layers_text
from mulligan.text.lessons import condensed_by
from mulligan.text.pages import Block, Facts, Fence, Heading, Line, as_markdown, html, inline
from mulligan.text.pages import markdown as page
from mulligan.text.reflections import quality_words

LEADERS = {"client": "a client", "langgraph": "a LangGraph graph", "goal": "a coding agent under a goal"}
"""Names of those who drive an episode, other than Mulligan's own loop."""


async def markdown(store: Store, episodes: Sequence[str]) -> str:
    """The story of these episodes. Raises `NotFound`."""
    return page([block for episode in await _readable(store, episodes) for block in await _whole(store, episode)])


async def web_page(store: Store, episodes: Sequence[str]) -> str:
    """The same as one file of HTML, which runs and loads nothing. Raises `NotFound`."""
    found = await _readable(store, episodes)
    title = f"Run {found[0].run}" if found else "No run"
    return html(title, [block for episode in found for block in await _whole(store, episode)])


async def _readable(store: Store, episodes: Sequence[str]) -> Sequence[Episode]:
    return [episode for _, episode in await each_readable(episodes, store.load)]


async def _whole(store: Store, episode: Episode) -> Sequence[Block]:
    """The story, with what only the journal has: the answer to a question to a graph in a sentence."""
    sentence = sentence_in(await store.steps(episode.id)) if asked_by_name(episode) else ""
    return [*story(episode), *([Heading(2, "Answer"), Fence(sentence)] if sentence else [])]


def beginning(episode: Episode, most: int) -> str:
    """The story, cut after about `most` characters; a note says how much was cut."""
    blocks: list[str] = []
    total = 0
    for block in story(episode):
        if total < most:
            blocks.append(as_markdown(block, most - total))
        total += len(block.text if isinstance(block, Fence) else as_markdown(block))
    if total > most:
        all_of_it = f"mulligan runs export {inline(episode.id)} --format md"
        blocks.append(f"*Cut after {most:,} of {total:,} characters. All of it: {all_of_it}*")
    return "\n\n".join(blocks) + "\n"


def story(
    episode: Episode, level: int = 1, after: Callable[[Trial], Sequence[Block]] = lambda _: (), *, task: bool = True
) -> Iterator[Block]:
    """The blocks of one episode, its heading of this level.

    Args:
        after: Gives blocks to add after each trial.
        task: Whether to show the task and what was recalled.
    """
    yield Heading(level, f"Episode {episode.id}")
    yield Facts(
        {
            "Run": episode.run,
            "Agent": episode.agent,
            "Kind of task": kind_text(episode.task),
            "Led by": LEADERS.get(str(episode.head.settings.get("led_by")), ""),
            "Forked from": episode.forked_from or "",
            **{f"Model ({role})": model for role, model in episode.head.models.items()},
            "Ended": _ended(episode),
            "Used": f"{used(episode.usage)}, {episode.seconds:.1f} s",
        }
    )
    for rating in episode.ratings:
        of = f"The lesson of trial {rating.trial}" if rating.trial else "The result"
        yield Line(
            f"{of} was rated {rating.score:g}{f' by {rating.by}' if rating.by else ''} {rating.comment}".rstrip()
        )
    if task:
        yield Heading(level + 1, "Task")
        yield Fence(episode.task.prompt)
    if task and episode.recall:
        yield Heading(level + 1, "Recalled from the bank")
        for lesson in episode.recall.lessons:
            yield Line(f"(from a {lesson.outcome})", strong=lesson.title)
            yield Fence(lesson.content)
        if episode.recall.note:
            yield Line(f"Found {episode.recall.note}.")
    for trial in episode.trials:
        yield from _trial(trial, level + 1)
        yield from after(trial)


def _trial(trial: Trial, level: int) -> Iterator[Block]:
    grown = "" if trial.parent in (None, trial.number - 1) else f", grown from trial {trial.parent}"
    yield Heading(level, f"Trial {trial.number}{grown}")
    yield Line(f"Used: {used(trial.usage)}")
    yield from _attempt(trial.attempt, level + 1)
    if trial.feedback:
        yield from _feedback(trial.feedback, level + 1)
    if trial.reflection:
        yield Heading(level + 1, "Reflection")
        if trial.reflection.withheld:
            yield Line(f"Withheld from the trials after it: {trial.reflection.withheld}")
        yield Fence(layers_text(trial.reflection.layers) or trial.reflection.text)
        if condensed := trial.reflection.condensed:
            yield Line(f"{condensed_by(condensed)}:")
            yield Fence(condensed.text)
        for edit in trial.reflection.edits:
            yield Line(f"A person's decision: {edit.decision}{f' by {edit.by}' if edit.by else ''}")
            if edit.decision in ("edited", "written") and edit.before:
                yield Fence(edit.before)
        for note in trial.reflection.notes:
            yield Line(f"Note: {note}")
        if quality := trial.reflection.quality:
            yield Line(" ".join([f"{quality_words(quality).capitalize()}.", *quality.missing]))


def _attempt(attempt: Attempt, level: int) -> Iterator[Block]:
    yield Heading(level, "Attempt")
    for number, step in enumerate(attempt.steps, 1):
        yield Line(f"Step {number}{_outcome(step.outcome)}")
        if step.check:
            yield from _check(step.check)
        for name in ("thought", "action", "observation"):
            if text := getattr(step, name):
                yield Line(f"{name.capitalize()}:")
                yield Fence(text)
    if attempt.steps:
        yield Line("Output:")
    yield Fence(attempt.output)
    if attempt.outcome:
        yield Line(f"The environment says{_outcome(attempt.outcome)}")
    for artifact in attempt.artifacts:
        yield Line(f"Made: {artifact.kind} {artifact.ref}")


def _check(check: Check) -> Iterator[Block]:
    shown = f", shown the lessons {', '.join(check.lessons)}" if check.lessons else ""
    yield Line(f"Check before the action ({check.because}{shown}), used: {used(check.usage)}")
    yield Fence(check_text(check) or "Not critical.")
    for note in check.notes:
        yield Line(f"Note: {note}")


def _feedback(feedback: Feedback, level: int) -> Iterator[Block]:
    verdict = {True: "passed", False: "failed", None: "could not be judged"}[feedback.passed]
    score = "" if feedback.score is None else f", score {feedback.score:g}"
    source = f" by {feedback.source}" if feedback.source else ""
    yield Heading(level, f"Feedback: {verdict}{score}{source}")
    if feedback.text:
        yield Fence(feedback.text)
    for note in feedback.notes:
        yield Line(f"Note: {note}")


def _ended(episode: Episode) -> str:
    if not episode.stop:
        return "not yet"
    detail = f": {episode.stop.detail}" if episode.stop.detail else ""
    return f"{episode.stop.reason}{detail}"


def state(episode: Episode | Brief, running: bool) -> str:
    """The state of an episode, in a word or two.

    "done": ended without a judge. "paused: REASON" and "cut off" (its process was killed): it can be resumed. "open":
    it waits for a client or for a person. Otherwise "running", or the reason of its stop.
    """
    reason = stop_reason(episode)
    if reason is None:
        waits = "open" if led_by_client(episode) or led_by_goal(episode) or may_wait(episode) else "cut off"
        return "running" if running else waits
    if unjudged(episode):
        return "done"
    return f"paused: {reason.replace('_', ' ')}" if reason in RESUMABLE else reason.replace("_", " ")


def used(usage: Usage) -> str:
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    calls = "1 call" if usage.calls == 1 else f"{usage.calls} calls"
    return f"{calls}, {usage.input_tokens} + {usage.output_tokens} tokens, {cost}"


def _outcome(outcome: Outcome | None) -> str:
    if not outcome:
        return ""
    parts = [
        "" if outcome.reward is None else f"reward {outcome.reward:g}",
        "done" if outcome.done else "",
        f"halted: {outcome.halted}" if outcome.halted else "",
    ]
    text = ", ".join(part for part in parts if part)
    return f": {text}" if text else ""
