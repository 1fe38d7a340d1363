"""Episodes as Markdown that a person reads: the task, then trial by trial what was tried, judged and learned.

Over any `Store`. Text from models and tasks stands in fences that it cannot close. Secrets are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mulligan.core.protocols import Store
from mulligan.core.records import Attempt, Episode, Feedback, Outcome, Trial, Usage
from mulligan.core.secrets import mask

_MARGIN = 20_000
"""Characters behind a cut that are looked through for secrets, so that none is shown by its first half."""


LEADERS = {"client": "a client", "langgraph": "a LangGraph graph"}
"""Who drives an episode, where it is not we."""


@dataclass(frozen=True)
class _Fence:
    """Foreign text, to be shown in a fence."""

    text: str


async def markdown(store: Store, episodes: Sequence[str]) -> str:
    """The story of these episodes. Raises `NotFound`."""
    blocks = [_shown(block) for id in episodes for block in _episode(await store.load(id))]
    return "\n\n".join(blocks) + "\n"


def beginning(episode: Episode, most: int) -> str:
    """The story of about `most` characters, for one who may not be handed any length; a note says what was cut."""
    blocks: list[str] = []
    total = 0
    for block in _episode(episode):
        if total < most:
            blocks.append(_shown(block, most - total))
        total += len(block.text if isinstance(block, _Fence) else block)
    if total > most:
        all_of_it = f"mulligan runs export {_inline(episode.id)} --format md"
        blocks.append(f"*Cut after {most:,} of {total:,} characters. All of it: {all_of_it}*")
    return "\n\n".join(blocks) + "\n"


def _episode(episode: Episode) -> Iterator[str | _Fence]:
    yield f"# Episode {_inline(episode.id)}"
    facts = {
        "Run": episode.run,
        "Agent": episode.agent,
        "Led by": LEADERS.get(str(episode.head.settings.get("led_by")), ""),
        "Forked from": episode.forked_from or "",
        **{f"Model ({role})": model for role, model in episode.head.models.items()},
        "Ended": _ended(episode),
        "Used": f"{_used(episode.usage)}, {episode.seconds:.1f} s",
    }
    yield "\n".join(f"- **{name}:** {_inline(said)}" for name, said in facts.items() if said)
    yield "## Task"
    yield _Fence(episode.task.prompt)
    if episode.recall:
        yield "## Recalled from the bank"
        for lesson in episode.recall.lessons:
            yield f"**{_inline(lesson.title)}** (from a {lesson.outcome})"
            yield _Fence(lesson.content)
    for trial in episode.trials:
        yield from _trial(trial)


def _trial(trial: Trial) -> Iterator[str | _Fence]:
    grown = "" if trial.parent in (None, trial.number - 1) else f", grown from trial {trial.parent}"
    yield f"## Trial {trial.number}{grown}"
    yield f"Used: {_used(trial.usage)}"
    yield from _attempt(trial.attempt)
    if trial.feedback:
        yield from _feedback(trial.feedback)
    if trial.reflection:
        yield "### Reflection"
        yield _Fence(trial.reflection.text)


def _attempt(attempt: Attempt) -> Iterator[str | _Fence]:
    yield "### Attempt"
    for number, step in enumerate(attempt.steps, 1):
        yield f"Step {number}{_outcome(step.outcome)}"
        for name in ("thought", "action", "observation"):
            if text := getattr(step, name):
                yield f"{name.capitalize()}:"
                yield _Fence(text)
    if attempt.steps:
        yield "Output:"
    yield _Fence(attempt.output)
    if attempt.outcome:
        yield f"The environment says{_outcome(attempt.outcome)}"
    for artifact in attempt.artifacts:
        yield f"Made: {_inline(artifact.kind)} {_inline(artifact.ref)}"


def _feedback(feedback: Feedback) -> Iterator[str | _Fence]:
    verdict = {True: "passed", False: "failed", None: "could not be judged"}[feedback.passed]
    score = "" if feedback.score is None else f", score {feedback.score:g}"
    source = f" by {_inline(feedback.source)}" if feedback.source else ""
    yield f"### Feedback: {verdict}{score}{source}"
    if feedback.text:
        yield _Fence(feedback.text)
    for note in feedback.notes:
        yield f"Note: {_inline(note)}"


def _ended(episode: Episode) -> str:
    if not episode.stop:
        return "not yet"
    detail = f": {episode.stop.detail}" if episode.stop.detail else ""
    return f"{episode.stop.reason}{detail}"


def _used(usage: Usage) -> str:
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    calls = "1 call" if usage.calls == 1 else f"{usage.calls} calls"
    return f"{calls}, {usage.input_tokens} + {usage.output_tokens} tokens, {cost}"


def _outcome(outcome: Outcome | None) -> str:
    if not outcome:
        return ""
    parts = [
        "" if outcome.reward is None else f"reward {outcome.reward:g}",
        "done" if outcome.done else "",
        f"halted: {_inline(outcome.halted)}" if outcome.halted else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f": {said}" if said else ""


def _shown(block: str | _Fence, room: int | None = None) -> str:
    """A fence longer than any run of backticks in the text, so that nothing in it can end it; `room` characters of it
    at most."""
    if isinstance(block, str):
        return block
    text = mask(block.text if room is None else block.text[: room + _MARGIN])[:room]
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip(chr(10))}\n{fence}"


def _inline(text: str) -> str:
    """One line, with what Markdown or HTML would act on escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", " ".join(mask(text).split()))
