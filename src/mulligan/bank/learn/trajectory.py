"""Render episodes as text with steps that a model can cite, and turn a client's plain trajectory into an episode.

Steps are named s1, s2, … and numbered through all trials and episodes. The only step of a trial without a trajectory is
its output.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, cast

from mulligan.bank.learn.transcripts._messages import format_of
from mulligan.core.codec import json_text
from mulligan.core.errors import InvalidInput
from mulligan.core.lesson_history import Account
from mulligan.core.records import Attempt, Episode, Feedback, Json, Step, Stop, Task, Trial
from mulligan.text.formatting import check_text, fenced, labelled, result_text, task_text
from mulligan.text.truncate import estimate, truncate, truncate_text

TOKENS = 8000
"""Maximum tokens of rendered episodes in a question. The task takes at most a fifth."""
_VERDICTS = {True: "passed", False: "failed", None: "not judged"}


@dataclass(frozen=True)
class StepPosition:
    """Where a step is: the index of its episode (from 0), the number of its trial, and its own number."""

    episode: int
    trial: int
    step: int


def step_positions(episodes: Sequence[Episode]) -> tuple[StepPosition, ...]:
    """The positions of s1, s2, … in these episodes."""
    return tuple(
        StepPosition(n, trial.number, step)
        for n, episode in enumerate(episodes)
        for trial in episode.trials
        for step in range(1, max(len(trial.attempt.steps), 1) + 1)
    )


def pair_of(episode: Episode) -> Episode | None:
    """The episode with only its first passed trial and the last failed one before it, without reflections.

    None if it did not fail first, or never passed.
    """
    verdicts = [trial.feedback.passed if trial.feedback else None for trial in episode.trials]
    if not episode.solved or True not in verdicts:
        return None
    passing = verdicts.index(True)
    failed = [trial for trial, passed in zip(episode.trials[:passing], verdicts, strict=False) if passed is False]
    if not failed:
        return None
    return replace(episode, trials=(replace(failed[-1], reflection=None), episode.trials[passing]))


def render(episodes: Sequence[Episode], tokens: int = TOKENS) -> tuple[str, str]:
    """Renders the task and the trajectories, fenced, within about this many tokens, for the slots of a prompt.

    Observations, outputs and feedback are shortened first, the longest ones most; then thoughts and actions. If that is
    not enough, steps in the middle are left out, with a note.
    """
    tasks = [task_text(episode.task) for episode in episodes]
    same = len(set(tasks)) == 1
    task = fenced(truncate_text(tasks[0], tokens // 5)) if same else "(each trajectory has its own)"
    left = tokens - estimate(task) if same else tokens
    each = [truncate_text(one, tokens // 10) for one in tasks] if not same else []
    pieces = [_pieces(trial) for episode in episodes for trial in episode.trials]
    text = ""
    for fit in (_levelled, partial(_levelled, hard=True), _without_middle):
        over = 0
        for _ in range(3):  # headings and indents take room, too: how much is known only afterwards
            text = _joined(episodes, fit(pieces, left - over), each)
            if (more := estimate(text) - left) <= 0:
                return task, text
            over += more
    return task, text


_LABELS = ("thought", "action", "observation")


@dataclass(frozen=True)
class _TrajectoryLine:
    """A labelled text of a trial.

    Attributes:
        step: the number of its step within the trial; 0 if it is about the whole trial.
        soft: whether it is shortened before others.
    """

    label: str
    text: str
    step: int = 0
    soft: bool = True


def _pieces(trial: Trial) -> tuple[_TrajectoryLine, ...]:
    attempt, feedback = trial.attempt, trial.feedback
    lines = [
        _TrajectoryLine(label, text, number, soft=label == "observation")
        for number, step in enumerate(attempt.steps, 1)
        for label, text in zip(_LABELS, _parts_of(step), strict=True)
        if text.strip()
    ]
    output = result_text(attempt) or "(empty)"
    if not attempt.steps:
        lines.append(_TrajectoryLine("output", output, 1))
    elif output.strip() not in (attempt.steps[-1].action.strip(), attempt.steps[-1].observation.strip()):
        lines.append(_TrajectoryLine("Output", output))
    if feedback and feedback.text.strip():
        lines.append(_TrajectoryLine("Feedback", feedback.text))
    if trial.lesson:
        lines.append(_TrajectoryLine("Reflection", trial.lesson))
    return tuple(lines)


def _parts_of(step: Step) -> tuple[str, str, str]:
    end = step.outcome
    halted = f"\n(halted: {end.halted})" if end and end.halted else ""
    check = f"Check before the action: {text}" if step.check and (text := check_text(step.check)) else ""
    return "\n".join(filter(None, (step.thought, check))), step.action, (step.observation + halted).strip()


_Trials: TypeAlias = "list[tuple[_TrajectoryLine, ...]]"
_HEAD = 6
"""Tokens of a line's label, roughly."""


def _levelled(trials: _Trials, tokens: int, *, hard: bool = False) -> _Trials:
    """The trials with long lines shortened. Lines that are not soft are only shortened with `hard`."""
    lines = [line for trial in trials for line in trial]
    steps = [Step(observation=line.text) if line.soft or hard else Step(action=line.text) for line in lines]
    cut = iter(truncate(steps, max(tokens - _HEAD * len(lines) - 20 * len(trials), 0)))
    return [
        tuple(replace(line, text=(step := next(cut)).observation or step.action) for line in trial) for trial in trials
    ]


def _without_middle(trials: _Trials, tokens: int) -> _Trials:
    """As many lines from both ends of all trials as fit, each shortened to a twentieth of the room."""
    numbered = [
        (n, replace(line, text=truncate_text(line.text, max(tokens, 0) // 20)))
        for n, trial in enumerate(trials)
        for line in trial
    ]
    sizes = [_HEAD + estimate(line.text) for _, line in numbered]
    left, low, high = tokens - 20 * len(trials), 0, len(numbered)
    while low < high:
        at = low if low <= len(numbered) - high else high - 1
        if (left := left - sizes[at]) < 0:
            break
        low, high = (low + 1, high) if at == low else (low, high - 1)
    kept = [*numbered[:low], *numbered[high:]]
    return [tuple(line for n, line in kept if n == number) for number in range(len(trials))]


def _joined(episodes: Sequence[Episode], trials: _Trials, tasks: Sequence[str]) -> str:
    """The lines with their headings and fences. tasks: the text of each episode's task, if they differ."""
    parts: list[str] = []
    rest, first = iter(trials), 1
    for number, episode in enumerate(episodes, 1):
        if len(episodes) > 1:
            ended = f" ({'succeeded' if episode.solved else 'failed'})" if episode.judged else ""
            parts.append(f"Trajectory {number}{ended}:")
        if tasks:
            parts.append(labelled("Its task", tasks[number - 1]))
        for trial in episode.trials:
            last = ", the last" if 1 < trial.number == len(episode.trials) else ""
            parts += _trial(trial, next(rest), first, last)
            first += max(len(trial.attempt.steps), 1)
    return "\n\n".join(part for part in parts if part)


def _trial(trial: Trial, lines: Sequence[_TrajectoryLine], first: int, last: str) -> list[str]:
    count = max(len(trial.attempt.steps), 1)
    missing = sorted(set(range(1, count + 1)) - {line.step for line in lines})
    shown = [f"s{first - 1 + line.step} {line.label}:{_quoted(line.text)}" for line in lines if line.step]
    body = [fenced("\n".join(shown))] if shown else []
    if missing and any(_parts_of(trial.attempt.steps[n - 1]) != ("", "", "") for n in missing if trial.attempt.steps):
        body.append(f"(Left out for want of room: {_ranges([first - 1 + n for n in missing])}.)")
    passed = trial.feedback.passed if trial.feedback else None
    verdict = {True: " (passed)", False: " (failed)", None: ""}[passed]
    body += [
        labelled(f"{line.label} of trial {trial.number}{verdict if line.label == 'Feedback' else ''}", line.text)
        for line in lines
        if not line.step
    ]
    return [f"Trial {trial.number}{verdict}{last}:", *body]


def _quoted(text: str) -> str:
    """The text after its label, or indented below it if it has several lines, so that no line looks like a step."""
    text = text.strip("\n")
    lines = text.splitlines()
    return f" {text}" if len(lines) < 2 else "".join(f"\n  {line}" for line in lines)


def _ranges(numbers: Sequence[int]) -> str:
    """3, 4, 5 and 9 as "s3 to s5, s9"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"s{run[0]}" if len(run) == 1 else f"s{run[0]} to s{run[-1]}" for run in runs)


ROLES = ("user", "assistant", "tool")
STEPS, CHARACTERS = 2000, 2_000_000
"""Maximum number of items in a plain trajectory, and of characters in these and the query."""


def episode_of(trajectory: Json, query: str, success_signal: bool | None = None) -> Episode:
    """Returns an episode with one trial from a plain trajectory: `[{"step", "role", "content", "metadata"?}, …]`.

    Each item becomes a step: an action if it is the assistant's, otherwise an observation. The assistant's last content
    is the output. The same input always results in the same episode, with the same id.

    query: The task. success_signal: The verdict on the trial, or None if it was not judged.

    Raises:
        InvalidInput: The trajectory or the query is empty or too large, or an item has the wrong shape.
    """
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("The query is empty: describe the task in it.")
    if success_signal is not None and not isinstance(success_signal, bool):
        raise InvalidInput(f"success_signal must be true, false or null, not {success_signal!r}.")
    if not isinstance(trajectory, list):
        raise InvalidInput(
            "The trajectory must be a list of at least one step, each an object with role and content, not "
            f"{type(trajectory).__name__}."
        )
    if not trajectory:
        raise InvalidInput("The trajectory is empty: it must have at least one step to learn from.")
    items = cast(list[Json], trajectory)
    if len(items) > STEPS:
        raise InvalidInput(f"The trajectory has {len(items):,} steps; at most {STEPS:,} are accepted. Omit some.")
    steps = tuple(_step(item, f"Step {number} of the trajectory") for number, item in enumerate(items, 1))
    size = len(query) + sum(len(item["content"]) for item in items)  # a step itself keeps less of a long text
    if size > CHARACTERS:
        raise InvalidInput(f"The trajectory has {size:,} characters; at most {CHARACTERS:,} are accepted. Shorten it.")
    output = next((item["content"] for item in reversed(items) if item["role"] == "assistant"), "")
    judged = None if success_signal is None else Feedback(success_signal, source="caller")
    named = hashlib.sha256(json_text([items, query, success_signal], canonical=True).encode()).hexdigest()
    return Episode(
        id=f"t{named[:16]}",
        task=Task(query),
        trials=(Trial(1, Attempt(output, steps), judged),),
        stop=Stop("solved" if success_signal else "exhausted", "handed in as a trajectory"),
    )


def are_steps(trajectory: Json) -> bool:
    """Whether `episode_of` should read this: it holds plain steps, or is in no known format of messages."""
    items = cast(list[Json], trajectory) if isinstance(trajectory, list) else []
    if items and all(isinstance(item, dict) and _is_plain(cast("dict[str, Json]", item)) for item in items):
        return True
    return not format_of(json_text(trajectory))


def _is_plain(item: Mapping[str, Json]) -> bool:
    known = "step" in item or item.keys() <= {"role", "content", "metadata"}  # a message may have calls of tools beside
    return known and item.get("role") in ROLES and isinstance(item.get("content"), str)


def _step(item: Json, where: str) -> Step:
    if not isinstance(item, dict):
        raise InvalidInput(f"{where} must be an object with role and content, not {type(item).__name__}.")
    table = cast(dict[str, Json], item)
    role, content, number = table.get("role"), table.get("content"), table.get("step", 0)
    metadata: Json = table.get("metadata")
    if role not in ROLES:
        problem = f"not {role!r}" if "role" in table else "but is missing"
        raise InvalidInput(f"{where}: role must be user, assistant or tool, {problem}.")
    if not isinstance(content, str):
        raise InvalidInput(f"{where}: content must be a string, not {type(content).__name__}.")
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise InvalidInput(f"{where}: step must be a number, not {number!r}.")
    if metadata is not None and not isinstance(metadata, dict):
        raise InvalidInput(f"{where}: metadata must be an object, not {type(metadata).__name__}.")
    named = cast(dict[str, Json], metadata or {})
    names = [str(named[key]) for key in ("tool_name", "action_type") if isinstance(named.get(key), str)]
    label = f"{' '.join(names)}: " if names else ""
    if role == "assistant":
        return Step(action=f"{label}{content}")
    return Step(observation=f"The user: {content}" if role == "user" else f"{label}{content}")


def account_text(account: Account) -> str:
    lines = [line for line in account.text.splitlines() if line.strip(" `")]
    return "\n".join((f"A task that {_VERDICTS[account.success]}:", *(f"> {line}".rstrip() for line in lines)))


def episode_text(episode: Episode, tokens: int = 600) -> str:
    """Returns an account of an episode in about this many tokens: whether it passed, the task, and what was done."""
    text = "\n\n".join(render([episode], tokens))
    return account_text(Account(episode.id, "", 0.0, text, episode.solved if episode.judged else None))
