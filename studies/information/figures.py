"""What the episodes of a study are worth: hidden asserts, tables by arm, paired differences. It asks no model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from sets import Item

from mulligan.bench.report.statistics import mean
from mulligan.core.codec import digest
from mulligan.core.rates import paired
from mulligan.core.records import Attempt, Episode, Task, Trial, Usage
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.sandbox.local import LocalSandbox


class Hidden:
    """The verdict of the hidden asserts on an attempt. Each is judged once, and kept in a file of lines."""

    def __init__(self, file: Path) -> None:
        self._file, self._sandbox = file, LocalSandbox(level="auto")
        self._known: dict[str, bool] = {row["key"]: row["passed"] for row in lines(file)}

    async def passed(self, item: Item, trial: Trial) -> bool:
        key = digest([item.hidden, trial.attempt.output])
        if key not in self._known:
            judge = UnitTests(item.hidden, sandbox=self._sandbox)
            alone = Episode("hidden", Task(item.prompt), trials=(Trial(1, Attempt(trial.attempt.output)),))
            feedback = await judge.evaluate(alone)
            if feedback.passed is None:
                raise RuntimeError(f"{item.name}: the hidden asserts cannot judge: {feedback.text}")
            self._known[key] = feedback.passed
            add_line(self._file, {"key": key, "item": item.name, "passed": feedback.passed})
        return self._known[key]


def lines(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines; a last one that was cut off by a kill is left out."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return [json.loads(line) for line in text.split("\n")[:-1] if line.endswith("}")]


def add_line(file: Path, row: Mapping[str, Any]) -> None:
    """On a line of its own, also behind one that was cut off."""
    with file.open("ab+") as out:
        size = out.seek(0, 2)
        out.seek(max(0, size - 1))
        begin = "" if out.read(1) in (b"", b"\n") else "\n"
        out.write(f"{begin}{json.dumps(row)}\n".encode())


@dataclass(frozen=True)
class Outcome:
    """What one arm made of one task. solved, passed: by the hidden and by the visible asserts, had there been one, two
    or three trials. past: tokens that the prompt of each later trial had more than the first one's."""

    item: Item
    solved: Sequence[bool]
    passed: Sequence[bool]
    usage: Usage
    trials: int
    reflections: int
    past: Sequence[int]
    cpu: float
    erred: bool

    @property
    def visible_only(self) -> bool:
        return self.passed[-1] and not self.solved[-1]


async def outcome(item: Item, episode: Episode, hidden: Hidden, trials: int, cpu: float) -> Outcome:
    """Of an episode with a judged trial at least; one that ended by an error counts with what it has."""
    judged = [trial for trial in episode.trials if trial.feedback is not None]
    solved, passed = list[bool](), list[bool]()
    for number in range(1, trials + 1):
        best = replace(episode, trials=tuple(judged[:number]), stop=None).best
        assert best is not None
        assert best.feedback is not None
        solved.append(await hidden.passed(item, best))
        passed.append(best.feedback.passed is True)
    first = judged[0].attempt.usage.input_tokens
    past = [trial.attempt.usage.input_tokens - first for trial in judged[1:] if trial.attempt.usage.calls]
    erred = episode.stop is None or episode.stop.reason == "error"
    reflected = sum(trial.reflection is not None for trial in judged)
    return Outcome(item, solved, passed, episode.usage, len(judged), reflected, past, cpu, erred)


Arms = Mapping[str, Mapping[str, Outcome]]
"""By arm, the outcomes by the task's name."""


def table(arms: Arms, trials: int) -> str:
    heads = [f"by trial {number}" for number in range(1, trials + 1)]
    heads = ["tasks", "solved", "visible only", *heads, "tokens in", "tokens out", "calls", "past", "reflections"]
    rows = [f"| arm | {' | '.join(heads)} | CPU s | CPU s / trial | erred |", f"|---|{'--:|' * (len(heads) + 3)}"]
    for arm, outcomes in arms.items():
        mine = list(outcomes.values())
        if not mine:
            continue
        used = sum((one.usage for one in mine), Usage())
        solved = [sum(one.solved[number] for one in mine) for number in range(trials)]
        past = [tokens for one in mine for tokens in one.past]
        cpu, made = sum(one.cpu for one in mine), sum(one.trials for one in mine)
        cells = [len(mine), f"**{solved[-1]}**", sum(one.visible_only for one in mine), *solved]
        cells += [
            f"{used.input_tokens:,}",
            f"{used.output_tokens:,}",
            used.calls,
            f"{fmean(past):.0f}" if past else "–",
        ]
        cells += [
            sum(one.reflections for one in mine),
            f"{cpu:.0f}",
            f"{cpu / made:.1f}",
            sum(one.erred for one in mine),
        ]
        rows.append(f"| `{arm}` | {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def differences(arms: Arms, against: Sequence[str]) -> str:
    """Each arm less each of `against`, over the tasks that both have ended, solved by the hidden asserts."""
    rows = ["| arm | less | n | both | only this | only the other | difference | 95 % | McNemar p |"]
    rows.append("|---|---|" + "--:|" * 7)
    for other in against:
        for arm, mine in arms.items():
            shared = [name for name in mine if name in arms.get(other, {})]
            if arm != other and shared:
                pairs = [(arms[other][name], mine[name]) for name in shared]
                rows.append(f"| `{arm}` | `{other}` | {_difference(pairs)} |")
    return "\n".join(rows)


def _difference(pairs: Sequence[tuple[Outcome, Outcome]]) -> str:
    """The interval is a percentile bootstrap that draws whole groups of tasks, each with the mean of its tasks."""
    won = [(before.solved[-1], after.solved[-1]) for before, after in pairs]
    counts = paired(*(won.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False))))
    groups: dict[str, list[int]] = {}
    for (_, after), (a, b) in zip(pairs, won, strict=True):
        groups.setdefault(after.item.group, []).append(b - a)
    drawn = mean([fmean(group) for group in groups.values()])
    interval = "–" if drawn is None or drawn.low is None else f"{100 * drawn.low:+.1f} … {100 * (drawn.high or 0):+.1f}"
    cells = [counts.n, counts.both, counts.only_b, counts.only_a, f"{100 * counts.difference:+.1f}", interval]
    return " | ".join(map(str, [*cells, f"{counts.p:.4f}"]))


def by_task(arms: Arms, trials: int) -> str:
    """The trial by which each arm had solved each task, `v` where only the visible asserts passed in the end."""
    names = list(dict.fromkeys(name for outcomes in arms.values() for name in outcomes))
    rows = [f"| task | {' | '.join(f'`{arm}`' for arm in arms)} |", f"|---|{'--:|' * len(arms)}"]
    for name in names:
        cells = [_at(outcomes.get(name), trials) for outcomes in arms.values()]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _at(one: Outcome | None, trials: int) -> str:
    if one is None:
        return ""
    if one.solved[-1]:
        return str(1 + next(number for number in range(trials) if all(one.solved[number:])))
    return "v" if one.visible_only else "–"
