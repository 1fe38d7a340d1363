"""Episodes as pages that a person reads: the task, then try by try what was done, judged and learned.

`story` makes the blocks, for the terminal, Markdown, a file of HTML and the studio alike. How foreign text and secrets
are kept harmless is the pages' (`text.pages`, `text.web_pages`). design/134 says why there is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from mulligan.app.recipe import Recipe
from mulligan.app.run_context import Call, RunContext, calls_of, run_context, table_of
from mulligan.app.workspaces import stop_reason, unjudged
from mulligan.core.episode import Move, due
from mulligan.core.limits import Limits
from mulligan.core.protocols import Brief, Store
from mulligan.core.records import (
    RESUMABLE,
    Check,
    Episode,
    Feedback,
    Image,
    Lesson,
    Outcome,
    Rating,
    Reflection,
    Trial,
)
from mulligan.core.records import Step as TakenStep
from mulligan.recording.drivers import (
    asked_by_name,
    driver,
    led_by_client,
    led_by_function,
    led_by_goal,
    led_by_graph,
    may_wait,
    sentence_in,
)
from mulligan.store.export import each_readable
from mulligan.text.evidence import findings_of
from mulligan.text.figures import dollars, used
from mulligan.text.formatting import check_text, kind_text, layers_text
from mulligan.text.images import format_of
from mulligan.text.lessons import condensed_by
from mulligan.text.pages import (
    Bar,
    Block,
    Checks,
    Diff,
    Facts,
    Fence,
    Fold,
    Heading,
    Jumps,
    Line,
    Picture,
    Quote,
    Section,
    as_markdown,
    inline,
    leaves,
)
from mulligan.text.pages import markdown as page
from mulligan.text.plain import count, one_line, with_tries
from mulligan.text.reflections import after_lesson, quality_words
from mulligan.text.states import DOING, verdict
from mulligan.text.web_pages import html

_HASHES = re.compile(r"^index [0-9a-f]+\.\.[0-9a-f]+.*\n", re.MULTILINE)
"""Lines of a diff that mean nothing to a reader."""
MAX_PASSED = 12
"""Passed checks are folded if there are more."""
ROLES = ("actor", "evaluator", "strategy", "reflector", "foresight")


async def markdown(store: Store, episodes: Sequence[str]) -> str:
    """The story of these episodes. Raises `NotFound`."""
    return page([one for episode in await _readable(store, episodes) for one in await without_steps(store, episode)])


async def web_page(store: Store, episodes: Sequence[str]) -> str:
    """The story of these episodes as one HTML file without scripts and external files. Raises `NotFound`."""
    readable = await _readable(store, episodes)
    title = f"Run {readable[0].run}" if readable else "No run"
    return html(title, [block for episode in readable for block in story(episode, await run_context(store, episode))])


async def _readable(store: Store, episodes: Sequence[str]) -> Sequence[Episode]:
    return [episode for _, episode in await each_readable(episodes, store.load)]


async def without_steps(store: Store, episode: Episode) -> list[Block]:
    """The story without prompts and the steps of the journal."""
    return list(story(episode, replace(await run_context(store, episode), calls={}, prompts={})))


def beginning(episode: Episode, most: int) -> str:
    """The story of the record alone, cut after about `most` characters, with a note on how much was cut."""
    blocks: list[str] = []
    total = 0
    for block in leaves(story(episode)):
        if total < most:
            blocks.append(as_markdown(block, most - total))
        total += len(block.text if isinstance(block, Fence | Quote) else as_markdown(block))
    if total > most:
        full_text = f"mulligan runs export {inline(episode.id)} --format md"
        blocks.append(f"*Truncated after {most:,} of {total:,} characters. Full text: {full_text}*")
    return "\n\n".join(blocks) + "\n"


# --- the page of an episode -----------------------------------------------------------------------------------------


def story(
    episode: Episode,
    context: RunContext = RunContext(),
    level: int = 1,
    after: Callable[[Trial], Sequence[Block]] = lambda _: (),
) -> Iterator[Block]:
    """The blocks of one episode, its heading of this level. after: gives blocks to add after each try."""
    yield from header(episode, context, level)
    yield from body(episode, context, level + 1, after)


def header(episode: Episode, context: RunContext, level: int = 1) -> Iterator[Block]:
    """How it ended, in one row; for an error its reason, and the command that continues it."""
    state = run_state(episode, context.running)
    yield Heading(level, one_line(episode.task.prompt, 140) or "(no text)")
    models = dict.fromkeys(episode.head.models.values())
    yield Bar(
        state.mark,
        state.word,
        {
            "Tries": str(len(episode.trials)),
            "Judge": _judge(episode),
            "Model": ", ".join(models),
            "Time": f"{episode.seconds:.1f} s",
            "Tokens": f"{episode.usage.tokens:,}" if episode.usage.tokens else "",
            "Cost": dollars(episode.usage).removeprefix("cost "),
            "Run": episode.id,
        },
    )
    if state.name.startswith("paused") or state.name == "cut off":
        detail = state.detail if episode.stop else "The process ended before the run was finished."
        yield Section(
            "stopped",
            [
                Line(detail, strong="Why it stopped:"),
                Line("To resume the run:"),
                Fence(f"mulligan runs resume {episode.run}"),
            ],
            card=True,
        )
    elif episode.stop and episode.stop.detail and not episode.solved:
        yield Line(state.detail)
    if len(episode.trials) > 1 and level == 1:
        yield Jumps(
            "Tries",
            [
                Line(strong=f"Try {trial.number}", href=f"#trial-{trial.number}", mark=mark, word=word)
                for trial in episode.trials
                for mark, word in [verdict(trial.feedback)]
            ],
        )


def _in_words(detail: str) -> str:
    """The detail of a stop, with the words that people read for those of the record."""
    return with_tries(one_line(detail, 600))


def _judge(episode: Episode) -> str:
    settings: Mapping[str, Any] = episode.head.settings
    if led_by_function(episode):
        return str(settings.get("judge", ""))
    feedbacks = (trial.feedback for trial in episode.trials)
    sources = dict.fromkeys(feedback.source for feedback in feedbacks if feedback and feedback.source)
    return str(table_of(settings.get("evaluator")).get("name", "")) or ", ".join(sources)


def body(
    episode: Episode,
    context: RunContext,
    level: int = 2,
    after: Callable[[Trial], Sequence[Block]] = lambda _: (),
) -> Iterator[Block]:
    """What it learned and recalled, its task, its tries one by one, its answer and its ratings."""
    yield from memory(episode, context, level)
    of = _Context(episode, context, {id(image): n for n, image in enumerate(images_of(episode), 1)})
    yield Section("task", [Heading(level, "Task"), Fence(episode.task.prompt), *_task(of)])
    for trial in episode.trials:
        yield Section(f"trial-{trial.number}", [*_trial(trial, level, of), *after(trial)], card=True)
    number = len(episode.trials) + 1
    own = context.calls.get(number, ())
    if own:
        mark, word = ("running", "in progress") if context.running else ("note", "not finished")
        inside = [Heading(level, f"Try {number}", mark, word), *_shown_prompt(context, number), *_journal(episode, own)]
        yield Section(f"trial-{number}", inside, card=True)
    if asked_by_name(episode) and (sentence := sentence_in(context.steps)):
        yield Section("answer", [Heading(level, "Answer"), Fence(sentence)])
    if episode.ratings:
        lines = [Line(rating_text(rating)) for rating in episode.ratings]
        yield Section("ratings", [Heading(level, "Ratings"), *lines])


def memory(episode: Episode, context: RunContext, level: int) -> Iterator[Block]:
    """What the run taught, and what it was shown of earlier lessons."""
    learned = [block for lesson in context.lessons for block in _lesson(lesson)]
    if not learned and context.no_lessons_because:
        learned.append(Line(context.no_lessons_because))
    if learned:
        yield Section("learned", [Heading(level, "Learned from this run"), *learned], card=True)
    recall = episode.recall
    if recall is None:
        return
    blocks: list[Block] = [Heading(level, "Recalled for this run")]
    for lesson in recall.lessons:
        blocks += _lesson(lesson, "" if lesson.score is None else f"relevance {lesson.score:.2f}")
    for lesson in context.withheld_lessons:
        score = context.receipt.withheld.get(lesson.id) if context.receipt else None
        relevance = "" if score is None else f", relevance {score:.2f}"
        blocks.append(
            Line(
                f"withheld at random to measure its worth{relevance}",
                strong=one_line(lesson.title, 100),
                href=f"/bank/lessons/{lesson.id}",
                mark="note",
                word="withheld",
            )
        )
    if not recall.lessons and not context.withheld_lessons:
        blocks.append(Line("No lessons matched the task." if recall.filtered else "The bank had no lessons."))
    if recall.filtered:
        least = f" of {recall.threshold:.2f}" if recall.threshold else ""
        worth_withheld = recall.held and recall.threshold and recall.held.score >= recall.threshold
        nearest = (
            f". The most relevant is {one_line(recall.held.title, 80)!r} ({recall.held.score:.2f})"
            if recall.held
            else ""
        )
        blocks.append(
            Line(
                f"Held back: {count(recall.filtered, 'lesson')} {'not worth the tokens, or ' if worth_withheld else ''}"
                f"below the relevance threshold{least}{nearest}.",
                small=True,
            )
        )
    if recall.note:
        blocks.append(Line(f"Found {recall.note}.", small=True))
    if context.receipt:
        blocks.append(Line("", strong="Recall receipt", href=f"/bank/recalls/{recall.id}", small=True))
    yield Section("recall", [*blocks, *_journal(episode, context.calls.get(0, ()))], card=True)


def _lesson(lesson: Lesson, note: str = "") -> Iterator[Block]:
    notes = ", ".join(
        filter(
            None,
            (
                lesson.id[:8],
                lesson.nature.replace("_", " "),
                f"from a {lesson.outcome}",
                note,
                "" if lesson.state == "active" else lesson.state,
            ),
        )
    )
    yield Line(notes, strong=one_line(lesson.title, 120) or lesson.id, href=f"/bank/lessons/{lesson.id}")
    if lesson.content.strip() != lesson.title.strip():
        yield Quote(lesson.content)


def _task(of: _Context) -> Iterator[Block]:
    yield from _pictures(of.episode.task.images, of)
    if of.episode.task.inputs:
        yield Fold("Inputs", list(formatted(dict(of.episode.task.inputs))))
    yield Fold("Run details", [Facts(run_facts(of.episode))])


def doing(episode: Episode, context: RunContext) -> str:
    """What is being done now, in words; "" if the episode is not running."""
    if not context.running:
        return ""
    limits = Limits(**cast(dict[str, Any], Recipe.completed(episode.head.settings)["limits"]))
    move = due(episode, limits)
    if not isinstance(move, Move):
        return "ending"
    unfinished = (call.name.partition("#")[0] for call in reversed(calls_of(context.steps)) if not call.done)
    current_call = next(unfinished, "")
    where = f"try {move.trial} of {limits.trials}: " if move.trial else ""
    return f"{where}{DOING[move.kind]}{f' ({current_call})' if current_call else ''}"


def run_facts(episode: Episode) -> Mapping[str, str]:
    """The roles, models and settings of an episode, by their names in words."""
    settings: Mapping[str, Any] = episode.head.settings
    models = dict[str, list[str]]()
    for role, model in episode.head.models.items():
        models.setdefault(model, []).append(role)
    driven = {
        "Controlled by": _leader(episode),
        "Function": str(settings.get("function", "")) if led_by_function(episode) else "",
        "Graph": driver(episode) if led_by_graph(episode) else "",
    }
    names = {"evaluator": "Judge"}
    roles = {names.get(role, role.capitalize()): str(table_of(settings.get(role)).get("name", "")) for role in ROLES}
    return {
        "Model": "; ".join(f"{model} ({', '.join(roles)})" for model, roles in models.items()),
        **driven,
        **({} if any(driven.values()) else roles),
        "Agent": episode.agent,
        "Kind of task": kind_text(episode.task),
        "Forked from": episode.forked_from or "",
        "Seed": str(episode.head.seed),
        **episode.head.versions,
    }


def _leader(episode: Episode) -> str:
    """Who drives the episode, if it is an MCP client or a goal; else ""."""
    settings: Mapping[str, Any] = episode.head.settings
    if led_by_client(episode):
        return f"an MCP client, {count(int(settings['trials']), 'try')} planned"
    if not led_by_goal(episode):
        return ""
    agent = settings["coding_agent"]
    who = "an agent started for" if agent == "run" else f"a session of {agent} with"
    return f"{who} a goal in {settings['folder']}"


def images_of(episode: Episode) -> Sequence[Image]:
    """All images of the episode: of the task, of steps, of feedback."""
    return [
        *episode.task.images,
        *(one for trial in episode.trials for step in trial.attempt.steps for one in step.images),
        *(one for trial in episode.trials if trial.feedback for one in trial.feedback.images),
    ]


# --- steps of the journal -------------------------------------------------------------------------------------------


def _journal(episode: Episode, calls: Sequence[Call]) -> Iterator[Block]:
    if not calls:
        return
    lines = [
        Line(
            "in progress" if not call.done else f"{call.model}, {used(call.usage)}" if call.usage else "",
            strong=f"{call.number}. {call.move}: {one_line(call.name, 80)}",
            href=f"/runs/{episode.id}/steps/{call.number}",
        )
        for call in calls
    ]
    yield Fold(f"Journal ({count(len(calls), 'step')})", lines)


def _shown_prompt(context: RunContext, trial: int) -> Iterator[Block]:
    if messages := context.prompts.get(trial):
        inside = [block for role, text in messages for block in (Line(strong=role), Fence(text))]
        yield Fold(f"What the model was shown ({count(len(messages), 'message')})", inside)


def formatted(value: Any) -> Iterator[Block]:
    """JSON for people: short values as facts, long texts as they are, and inner objects one by one."""
    if isinstance(value, str):
        yield Fence(value)
        return
    table = table_of(value)
    short = {name: _short(part) for name, part in table.items() if _short(part)}
    if short:
        yield Facts(short)
    for name, part in table.items():
        if name in short or part in (None, "", [], {}):
            continue
        items = cast(list[Any], part) if isinstance(part, list) else [part]
        is_plain_list = isinstance(part, list) and not all(map(table_of, items))
        for number, item in enumerate([part] if is_plain_list else items, 1):
            yield Line(strong=f"{name} {number}" if len(items) > 1 and not is_plain_list else name)
            yield from formatted(item)
    if not table and value not in ({}, None):
        yield Fence(json.dumps(value, ensure_ascii=False, indent=2))


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) or abs(value) >= 1e6 else f"{value:g}"
    if table := table_of(value):
        parts = {name: _short(part) for name, part in table.items() if part not in (None, "", [], {})}
        line = ", ".join(f"{name} {part}" for name, part in parts.items())
        return line if all(parts.values()) and len(line) < 200 else ""
    return value if isinstance(value, str) and len(value) < 100 and "\n" not in value else ""


# --- the story ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Context:
    """The episode that a try belongs to. numbers: the numbers of its images, by the `id()` of the image."""

    episode: Episode
    context: RunContext
    numbers: Mapping[int, int]


def _trial(trial: Trial, level: int, of: _Context) -> Iterator[Block]:
    mark, word = verdict(trial.feedback)
    yield Heading(level, f"Try {trial.number}", mark, word)
    if trial.parent not in (None, trial.number - 1):
        yield Line("", strong=f"based on try {trial.parent}", href=f"#trial-{trial.parent}")
    if spent := used(trial.usage):
        yield Line(f"Used: {spent}", small=True)
    yield from _shown_prompt(of.context, trial.number)
    yield from _attempt(trial, level + 1, of)
    if trial.feedback:
        yield from _feedback(trial.feedback, level + 1, of)
    if trial.reflection:
        yield from _reflection(trial.reflection, level + 1, after_lesson(of.episode, trial.number))
    yield from _journal(of.episode, of.context.calls.get(trial.number, ()))


def _attempt(trial: Trial, level: int, of: _Context) -> Iterator[Block]:
    attempt = trial.attempt
    if choice := attempt.choice:
        odds = ", ".join(f"{arm} {100 * share:.0f} %" for arm, share in choice.odds.items())
        yield Line(f"Chosen after {choice.signal}: {choice.arm} (odds: {odds})", small=True)
    if attempt.steps:
        inside = [block for n, step in enumerate(attempt.steps, 1) for block in _step(n, step, of)]
        yield Fold(f"What it did ({count(len(attempt.steps), 'step')})", inside, open=len(attempt.steps) <= 4)
    parent = of.episode.trials[trial.parent - 1] if trial.parent else None
    if parent is None:
        yield Heading(level, "Attempt")
        yield Fence(attempt.output or "(empty)")
    else:
        yield Heading(level, f"Changed since try {trial.parent}")
        if parent.attempt.output == attempt.output:
            yield Line("No changes.")
        else:
            yield Diff(*(_HASHES.sub("", one.output) for one in (parent.attempt, attempt)))
        yield Fold("Full attempt", [Fence(attempt.output or "(empty)")])
    if attempt.outcome:
        yield Line(f"The environment reports{_outcome(attempt.outcome)}")
    for artifact in attempt.artifacts:
        yield Line(f"Saved as: {artifact.kind} {artifact.ref}", small=True)


def _step(number: int, step: TakenStep, of: _Context) -> Iterator[Block]:
    yield Line(_outcome(step.outcome).removeprefix(": "), strong=f"Step {number}")
    if step.check:
        yield from _check(step.check)
    if step.thought:
        yield Line("Thought:", small=True)
        yield Fence(step.thought)
    if step.action:
        yield Line("Action:", small=True)
        yield from formatted_text(step.action)
    if step.observation:
        yield Line("Observation:", small=True)
        yield from formatted_text(step.observation)
    yield from _pictures(step.images, of)


def formatted_text(text: str) -> Iterator[Block]:
    """A JSON object for people (see `formatted`), or other text as it is."""
    if text.lstrip().startswith("{"):
        with suppress(ValueError):
            yield from formatted(json.loads(text))
            return
    yield Fence(text)


def _pictures(images: Sequence[Image], of: _Context) -> Iterator[Block]:
    for image in images:
        number = of.numbers[id(image)]
        path = f"/runs/{of.episode.id}/images/{number}"
        yield Picture(f"Image {number} of the run", path, format_of(image.data).media_type, image.data)


def _check(check: Check) -> Iterator[Block]:
    shown = f", shown the lessons {', '.join(check.lessons)}" if check.lessons else ""
    spent = used(check.usage)
    yield Line(f"Check before the action ({check.because}{shown}){f', used: {spent}' if spent else ''}")
    yield Fence(check_text(check) or "Not critical.")
    for note in check.notes:
        yield Line(f"Note: {note}", small=True)


def _feedback(feedback: Feedback, level: int, of: _Context) -> Iterator[Block]:
    mark, word = verdict(feedback)
    yield Heading(level, f"Feedback{f' from {feedback.source}' if feedback.source else ''}", mark, word)
    findings = [finding for finding in findings_of(feedback) if finding.asked or finding.where]
    if findings:
        passed = [finding for finding in findings if finding.passed]
        folded = len(passed) > MAX_PASSED
        yield Checks([*(finding for finding in findings if not finding.passed), *(() if folded else passed)])
        if folded:
            yield Fold(f"{count(len(passed), 'check')} passed", [Checks(passed)])
        if feedback.text:
            yield Fold("Feedback as shown to the next try", [Fence(feedback.text)])
    elif feedback.text:
        yield Fence(feedback.text)
    yield from _pictures(feedback.images, of)
    for note in feedback.notes:
        yield Line(f"Note: {note}", small=True)


def _reflection(reflection: Reflection, level: int, effect: str | None) -> Iterator[Block]:
    yield Heading(level, "Lesson for the next try")
    if reflection.withheld:
        yield Line(reflection.withheld, mark="note", word="not shown to later tries")
    yield Quote(layers_text(reflection.layers) or reflection.text or "No lesson.")
    if condensed := reflection.condensed:
        yield Fold(condensed_by(condensed), [Quote(condensed.text)])
    for edit in reflection.edits:
        yield Line(f"{edit.decision}{f' by {edit.by}' if edit.by else ''}", strong="A person's decision:")
        if edit.before:
            yield Fold("Before", [Quote(edit.before)])
    for note in reflection.notes:
        yield Line(f"Note: {note}", small=True)
    if quality := reflection.quality:
        then = f"; the next try: {effect}" if effect else ""
        yield Line(" ".join([f"{quality_words(quality).capitalize()}{then}.", *quality.missing]), small=True)


# --- words ----------------------------------------------------------------------------------------------------------


def rating_text(rating: Rating) -> str:
    """A person's score in a line."""
    of = f"The lesson of try {rating.trial}" if rating.trial else "The result"
    by = f" by {rating.by}" if rating.by else ""
    return f"{of} was rated {rating.score:g}{by}{f': {rating.comment}' if rating.comment else ''}"


_MARKS: Mapping[str, str] = {
    "running": "running",
    "open": "note",
    "solved": "passed",
    "done": "unjudged",
    "unconfirmed": "unjudged",
    "paused: error": "error",
    "cut off": "paused",
}


class RunState(NamedTuple):
    """The state of an episode.

    Attributes:
        name: "done" (it ended without a judge), "paused: REASON" or "cut off" (its process was killed; it can be
            resumed), "open" (it waits for a client or a person), "running", or its stop reason.
        mark: the name of its symbol in `text.states`.
        word: the name for people.
        detail: a sentence that explains why it stopped; "" if the reason is unknown.
    """

    name: str
    mark: str
    word: str
    detail: str


def run_state(episode: Episode | Brief, running: bool) -> RunState:
    """Returns the state of an episode.

    Args:
        running: whether a process is driving it.
    """
    name = _state_name(episode, running)
    mark = _MARKS.get(name, "failed" if episode.judged else "unjudged")
    if name.startswith("paused") and name not in _MARKS:
        mark = "paused"
    detail = _in_words(episode.stop.detail) if isinstance(episode, Episode) and episode.stop else ""
    word = name if name != "exhausted" else "not solved" if episode.judged else "could not be judged"
    return RunState(name, mark, word, detail)


def _state_name(episode: Episode | Brief, running: bool) -> str:
    reason = stop_reason(episode)
    if reason is None:
        waits = "open" if led_by_client(episode) or led_by_goal(episode) or may_wait(episode) else "cut off"
        return "running" if running else waits
    if unjudged(episode):
        return "done"
    return f"paused: {reason.replace('_', ' ')}" if reason in RESUMABLE else reason.replace("_", " ")


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
