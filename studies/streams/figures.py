"""The figures of a study over streams: `python studies/streams/figures.py STORE=STREAM STORE=STREAM`.

STORE is the address of a store, STREAM the id of a stream in it, or several of the same tasks, joined by commas: their
arms are compared as if they were of one stream. It asks no model. README.md says what is tested;
another study names its own differences with --first and --beside.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from mulligan.bench.report.statistics import Estimate, clustered, holm
from mulligan.bench.report.stream import Row, StreamReport, finished_within, read_stream, spent_tokens
from mulligan.store import open_store
from mulligan.text.pages import Block, Line, Table, markdown

FIRST = "default:none"
"""The one test that decides: the score of the first arm less that of the second."""
BESIDE = ("history:none", "lessons:none", "notebook:none", "notebook:history")
"""Corrected by Holm's method for their number."""
MARGIN = 0.05


@dataclass(frozen=True)
class Task:
    """One task of a stream in all arms.

    Attributes:
        stream: its id.
        kind: named with the benchmark, as benchmarks share none.
        turn: 1 for the first of its kind in the stream.
    """

    stream: str
    kind: str
    turn: int
    rows: dict[str, Row]

    def score(self, arm: str) -> float:
        """A task that ended with an error counts as 0."""
        return self.rows[arm].score or 0.0


def cluster(task: Task, number: int, by: str) -> str:
    """What the task stands in: its kind, its kind in its own stream, or itself."""
    return {"kind": task.kind, "stream": f"{task.stream} {task.kind}", "task": str(number)}[by]


def tasks_of(stream: str, benchmark: str, rows: Sequence[Row], span: Sequence[int]) -> list[Task]:
    """The tasks up to the last position that all arms have reached. span: the first and the last position to read."""
    arms = {row.arm for row in rows}
    reached = min(max(row.position for row in rows if row.arm == arm) for arm in arms)
    found, turns = list[Task](), Counter[str]()
    for position in range(1, reached + 1):
        if at := [row for row in rows if row.position == position]:
            kind = f"{benchmark} {at[0].family}"
            turns[kind] += 1
            if not span[0] <= position <= span[1]:
                continue
            found.append(Task(stream, kind, turns[kind], {row.arm: row for row in at}))
    return found


def joined(reports: Sequence[StreamReport]) -> list[Row]:
    """The rows of streams of the same tasks. An arm that several of them have is read from the first."""
    settings = {json.dumps(report.choice.base.settings, sort_keys=True) for report in reports}
    if len(settings) > 1 or len({report.model for report in reports}) > 1:
        raise SystemExit("These streams differ in their tasks or their model.")
    rows, known = list[Row](), set[str]()
    for report in reports:
        rows += [row for row in report.rows if row.arm not in known]
        known |= {row.arm for row in report.rows}
    return rows


def difference(tasks: Sequence[Task], arm: str, reference: str, by: str) -> Estimate:
    clusters = [cluster(task, n, by) for n, task in enumerate(tasks)]
    return clustered([task.score(arm) - task.score(reference) for task in tasks], clusters)


def tests(tasks: Sequence[Task], pairs: Sequence[tuple[str, str]], by: str) -> Table:
    found = [difference(tasks, *pair, by) for pair in pairs]
    corrected = holm([one.p if one.p is not None else 1.0 for one in found[1:]])
    cells = list[list[str]]()
    for (arm, reference), one, holms in zip(pairs, found, ["", *(f"{p:.3g}" for p in corrected)], strict=True):
        interval = "" if one.low is None else f"{one.low:+.3f} to {one.high:+.3f}"
        p, shown = (("" if value is None else f"{value:.3g}") for value in (one.p, one.detectable))
        cells.append([f"{arm} - {reference}", f"{one.value:+.3f}", interval, p, holms, shown])
    return Table(["difference in score", "mean", "95 % interval", "p", "p (Holm)", "could show"], cells)


def at_equal_tokens(tasks: Sequence[Task], pairs: Sequence[tuple[str, str]], by: str) -> Table:
    """The same differences where in each stream both arms have as many tokens as the one that needs fewer: a task that
    an arm has not finished within them scores 0."""
    cells = list[list[str]]()
    clusters = [cluster(task, n, by) for n, task in enumerate(tasks)]
    for pair in pairs:
        scores = dict[str, list[float]]()
        for arm in pair:
            scores[arm] = []
            for stream in dict.fromkeys(task.stream for task in tasks):
                its = [task for task in tasks if task.stream == stream]
                rows = {name: [task.rows[name] for task in its] for name in pair}
                order = rows[arm][0].order
                finished = finished_within(rows[arm], {order: min(spent_tokens(some, order) for some in rows.values())})
                scores[arm] += [task.score(arm) if (order, task.rows[arm].case) in finished else 0.0 for task in its]
        one = clustered([ours - theirs for ours, theirs in zip(*scores.values(), strict=True)], clusters)
        interval = "" if one.low is None else f"{one.low:+.3f} to {one.high:+.3f}"
        cells.append([" - ".join(pair), f"{one.value:+.3f}", interval, "" if one.p is None else f"{one.p:.3g}"])
    return Table(["difference at equal tokens", "mean", "95 % interval", "p"], cells)


def arms(tasks: Sequence[Task]) -> Table:
    without = fmean(task.score("none") for task in tasks)
    cells = list[list[str]]()
    for arm in tasks[0].rows:
        rows, score = [task.rows[arm] for task in tasks], fmean(task.score(arm) for task in tasks)
        gain = "" if arm == "none" or without == 1 else f"{(score - without) / (1 - without):+.3f}"
        of_memory = fmean(row.memory_tokens_in + row.memory_tokens_out for row in rows)
        right = sum(row.success or False for row in rows)
        some = sum(task.score(arm) > 0 for task in tasks)
        recalled, errors = fmean(row.recalled_tokens for row in rows), sum(row.status == "error" for row in rows)
        tokens = fmean(row.tokens for row in rows)
        cells.append(
            [
                arm,
                f"{score:.3f}",
                gain,
                str(right),
                str(some),
                f"{tokens:,.0f}",
                f"{of_memory:,.0f}",
                f"{recalled:,.0f}",
                str(errors),
            ]
        )
    heads = ["arm", "score", "gain", "solved", "with points", "tokens", "of memory", "recalled", "errors"]
    return Table(heads, cells)


def parts(tasks: Sequence[Task], name: str, of: Callable[[Task], str]) -> Table:
    """The mean score of each arm in each part of the tasks."""
    cells = list[list[str]]()
    for part in sorted({of(task) for task in tasks}):
        those = [task for task in tasks if of(task) == part]
        cells.append([part, str(len(those)), *(f"{fmean(t.score(arm) for t in those):.3f}" for arm in tasks[0].rows)])
    return Table([name, "tasks", *tasks[0].rows], cells)


def shown(tasks: Sequence[Task], pairs: Sequence[tuple[str, str]], by: str) -> Table:
    """Each arm against its reference, in the tasks where it recalled something and in those where it recalled nothing.
    equal: the tasks with the same score, tokens and tries in both arms."""
    cells = list[list[str]]()
    for arm, reference in pairs:
        for something in (False, True):
            those = [task for task in tasks if (task.rows[arm].recalled > 0) == something]
            if not those:
                continue
            one = difference(those, arm, reference, by)
            sides = [[(t.score(a), t.rows[a].tokens, t.rows[a].trials) for t in those] for a in (reference, arm)]
            equal = sum(theirs == ours for theirs, ours in zip(*sides, strict=True))
            means = [
                f"{fmean(side[n] for side in values):{form}}"
                for n, form in ((0, ".3f"), (1, ",.0f"))
                for values in sides
            ]
            interval = "" if one.low is None else f"{one.low:+.3f} to {one.high:+.3f}"
            what = f"{arm}: {'something' if something else 'nothing'} shown"
            cells.append([what, str(len(those)), *means, f"{one.value:+.3f}", interval, str(equal)])
    heads = ["tasks of", "tasks", "score of the reference", "score", "its tokens", "tokens"]
    return Table([*heads, "difference", "95 % interval", "equal"], cells)


async def figures(
    addresses: Sequence[str], pairs: Sequence[tuple[str, str]], by: str, chosen: Sequence[str], span: Sequence[int]
) -> list[Block]:
    """chosen: the arms to read; empty: all. span: the first and the last position of a task to read."""
    blocks, all_tasks = list[Block](), list[Task]()
    for one in addresses:
        address, _, stream = one.rpartition("=")
        async with open_store(address) as store:
            reports = [await read_stream(store, id) for id in stream.split(",")]
        report = reports[0]
        name = report.choice.base.benchmark
        tasks = tasks_of(stream, name, [row for row in joined(reports) if not chosen or row.arm in chosen], span)
        all_tasks += tasks
        blocks += [Line(f"{name} {stream}: {len(tasks)} tasks in all arms, {report.model}"), arms(tasks)]
    clusters = len({cluster(task, n, by) for n, task in enumerate(all_tasks)})
    both = Line(f"All: {len(all_tasks)} tasks in {clusters} clusters by {by}; margin {MARGIN}.")
    by_turn = parts(all_tasks, "turn of its kind", lambda task: str(task.turn))
    by_kind = parts(all_tasks, "kind", lambda task: task.kind)
    compared = (tests(all_tasks, pairs, by), at_equal_tokens(all_tasks, pairs, by))
    return [*blocks, both, arms(all_tasks), *compared, shown(all_tasks, pairs, by), by_turn, by_kind]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Prints the arms of streams, and the differences between them.")
    parser.add_argument("streams", nargs="+", metavar="STORE=STREAM")
    parser.add_argument("--first", default=FIRST, metavar="ARM:ARM", help="the difference that decides")
    parser.add_argument("--beside", nargs="*", default=BESIDE, metavar="ARM:ARM", help="others, corrected by Holm")
    parser.add_argument("--arms", default="", metavar="A,B,…", help="read these arms alone")
    parser.add_argument(
        "--by",
        default="kind",
        choices=["kind", "stream", "task"],
        help="what standard errors are clustered by: kind of task, kind in its own stream, or single task",
    )
    parser.add_argument(
        "--from", dest="first_task", type=int, default=1, metavar="N", help="read tasks from this position"
    )
    parser.add_argument("--to", dest="last_task", type=int, default=sys.maxsize, metavar="N", help="up to this one")
    given = parser.parse_args()
    span = (given.first_task, given.last_task)
    named = [(arm, reference) for arm, _, reference in (pair.partition(":") for pair in (given.first, *given.beside))]
    chosen = [arm for arm in given.arms.split(",") if arm]
    print(markdown(asyncio.run(figures(given.streams, named, given.by, chosen, span))))
