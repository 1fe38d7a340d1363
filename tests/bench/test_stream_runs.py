"""Streams: several arms over the same cases in several orders, resumed where they were cut off."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from toy_streams import Learner, arm, tasks

from mulligan.app.config import load
from mulligan.bench.commands import bench
from mulligan.bench.harness.plan import in_phases
from mulligan.bench.harness.running import resume_benchmark
from mulligan.bench.harness.stream import StreamChoice, in_order, legs_of, read_arm, resume_stream, run_stream
from mulligan.bench.report.figures import read_run
from mulligan.bench.report.stream import (
    Row,
    StreamReport,
    as_csv,
    differences,
    learning_curves,
    read_stream,
    stream_page,
)
from mulligan.core.benchmarks import BenchRun
from mulligan.core.errors import InvalidInput, JournalDiverged, UnknownName
from mulligan.core.protocols import Store
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Case, Task
from mulligan.store import open_store
from mulligan.text.pages import plain

SUPPORT = Path(__file__).parent.parent / "support"
FAMILIES = ("ant", "bee", "cat")


@pytest.fixture
async def store() -> AsyncGenerator[Store]:
    async with open_store(load().store) as opened:
        yield opened


async def ran(store: Store, file: Path, model: Learner, *arms: str, **options: Any) -> BenchRun:
    options = {"trials": 1, "method": "resample", "orders": 2, **options}
    return await run_stream(str(file), arms=["none", *arms], model=model, store=store, **options)


def scores(report: StreamReport, arm: str, order: int = 1) -> list[float | None]:
    return [row.score for row in report.rows if (row.arm, row.order) == (arm, order)]


def nameless(report: StreamReport) -> list[Row]:
    """The rows without what is drawn anew in each stream."""
    return [replace(row, episode="") for row in report.rows]


# --- what it measures -----------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_memory_gains_what_it_lets_the_agent_solve(store: Store, tmp_path: Path) -> None:
    model = Learner()
    run = await ran(store, tasks(tmp_path, FAMILIES, 4), model, arm(tmp_path))
    report = await read_stream(store, run.id)
    assert scores(report, "none") == [0] * 12
    assert scores(report, "lessons") == [0, 0, 0] + [1] * 9  # each family's first case reveals its word
    none, lessons = report.arms
    assert none.gain is None
    assert lessons.gain is not None
    assert lessons.gain.value == lessons.score == 0.75
    assert none.memory_tokens == none.recalled == 0
    assert lessons.memory_tokens is not None
    assert lessons.memory_tokens > 100
    first = next(row for row in report.rows if row.arm == "lessons")
    assert (first.recalled, first.recalled_tokens, first.memory_calls, first.calls) == (0, 0, 1, 1)
    assert first.tokens_in > 0
    (difference,) = report.differences
    assert (difference.arm, difference.reference, difference.difference.value) == ("lessons", "none", 0.75)
    equal = difference.equal_tokens
    assert (equal.tokens, equal.reference_tokens) == (lessons.tokens, none.tokens)
    assert (equal.finished, equal.reference_finished) == (0, 1), "learning from one case takes more than all cases do"
    assert equal.difference.value == 0
    assert "At equal tokens" in plain(stream_page(report))


def row(arm: str, position: int, tokens: int, score: float | None, order: int = 1) -> Row:
    case = f"c{position}"
    plain: dict[str, Any] = {"reward": score, "success": None, "trials": 1, "steps": 1, "tokens_out": 0, "calls": 1}
    memory: dict[str, Any] = {"memory_tokens_in": tokens // 2, "memory_tokens_out": 0, "memory_calls": 0}
    others: dict[str, Any] = {"cost": None, "recalled": 0, "recalled_tokens": 0, "episode": ""}
    about: dict[str, Any] = {"family": case, "phase": 1, "seed": 0, "status": "failed"}
    spent = tokens - tokens // 2
    return Row(arm, order, position, case, score=score, tokens_in=spent, **about, **plain, **memory, **others)


def test_at_equal_tokens_what_was_not_finished_within_those_of_the_cheaper_arm_scores_nothing() -> None:
    """Order 1: 400 tokens for both, so the dearer arm finishes two cases of four. Order 2: 300, and it is cheaper."""
    rows = [row("none", n, 100, score) for n, score in enumerate((0.0, 1.0, 0.0, 1.0), 1)]
    rows += [row("matts", n, 200, 1.0) for n in range(1, 5)]
    rows += [row("none", n, 150, 0.5, order=2) for n in range(1, 5)]
    rows += [row("matts", n, 75, 0.25, order=2) for n in range(1, 5)]
    (found,) = differences(rows, ["none", "matts"])
    assert found.difference.value == pytest.approx((4 - 2 + 1 - 2) / 8)
    equal = found.equal_tokens
    assert (equal.tokens, equal.reference_tokens) == (137.5, 125)
    assert (equal.finished, equal.reference_finished) == (6 / 8, 6 / 8)
    assert equal.difference.value == pytest.approx(((1 + 1 - 0 - 1 - 0 - 1) + (4 * 0.25 - 2 * 0.5)) / 8)
    assert (equal.difference.n, equal.difference.clusters) == (8, 4)
    assert equal.p == equal.difference.p


def test_at_equal_tokens_only_cases_of_both_arms_count_and_an_error_takes_its_tokens() -> None:
    rows = [row("none", 1, 100, 1.0), row("none", 2, 100, 1.0), row("none", 3, 900, 1.0)]
    rows += [row("matts", 1, 150, None), row("matts", 2, 100, 1.0)]
    (found,) = differences(rows, ["none", "matts"])
    equal = found.equal_tokens
    assert (equal.tokens, equal.reference_tokens) == (125, 100)
    assert (equal.finished, equal.reference_finished) == (0.5, 1.0)
    assert (equal.difference.value, equal.difference.n) == (-1.0, 1)


class FirstAlone(Learner):
    """Solves the first case by itself, and the others once their prompt holds the word."""

    def _answer(self, question: Question, sampling: Sampling) -> Any:
        text = "\n".join(message.text for message in question.messages)
        schema: Mapping[str, Any] = question.schema or {}
        if "lessons" in schema.get("properties", {}):
            return super()._answer(question, sampling)
        self.asked.append(text)
        return "ant-old" if ("ant/1-1" not in text and "ant/1-2" not in text) or "ant-old" in text else "no idea"


@pytest.mark.slow
async def test_the_shipped_arms_show_trajectories_and_workflows_of_what_was_solved(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    monkeypatch.chdir(tmp_path)
    model = FirstAlone()
    run = await ran(store, tasks(tmp_path, ("ant",), 3), model, "trajectories", "workflows", orders=1)
    report = await read_stream(store, run.id)
    assert {arm.arm: scores(report, arm.arm) for arm in report.arms} == {
        "none": [1, 0, 0],
        "trajectories": [1, 1, 1],
        "workflows": [1, 1, 1],
    }
    none, trajectories, workflows = report.arms
    assert none.memory_tokens == trajectories.memory_tokens == 0, "no model is asked for what is shown as it was"
    assert workflows.memory_tokens
    induced = [text for text in model.asked if "write down the workflows" in text]
    assert len(induced) == 3


@pytest.mark.slow
async def test_equal_requests_are_paid_once_and_orders_are_repeats(store: Store, tmp_path: Path) -> None:
    model = Learner()
    run = await ran(store, tasks(tmp_path, FAMILIES, 2), model, arm(tmp_path), orders=3)
    assert len(set(model.asked)) == len(model.asked)
    bare = [text for text in model.asked if "The word is" not in text and "lessons" not in text]
    assert len(bare) == 6  # the first trials of the arm without memory, in whatever order
    report = await read_stream(store, run.id)
    solved = [row.case for row in report.rows if row.arm == "lessons" and row.success]
    assert [arm.every for arm in report.arms] == [0, sum(n == 3 for n in Counter(solved).values()) / 6]
    assert "pass^3" in plain(stream_page(report))


@pytest.mark.slow
async def test_after_a_change_an_arm_recovers_and_a_stale_bank_does_not(store: Store, tmp_path: Path) -> None:
    file = tasks(tmp_path, FAMILIES, 4, drifts=True)
    run = await ran(store, file, Learner(), arm(tmp_path), controls=("stale",), orders=1)
    report = await read_stream(store, run.id)
    assert scores(report, "lessons") == ([0, 0, 0] + [1] * 9) * 2
    assert scores(report, "lessons-stale") == [0, 0, 0] + [1] * 9 + [0] * 12
    found = {one.arm: (one.position, one.before, one.left, one.tasks) for one in report.recoveries}
    assert found["lessons"] == (13, 0.75, 12, 3)
    assert found["lessons-stale"] == (13, 0.75, 12, None)
    assert [row.phase for row in report.rows if row.arm == "none"] == [1] * 12 + [2] * 12
    assert "not in 12" in plain(stream_page(report))


@pytest.mark.slow
async def test_a_bank_of_unrelated_tasks_gains_nothing(store: Store, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = tasks(tmp_path / "other", ("dog", "elk"), 2)
    file = tasks(tmp_path, FAMILIES, 2)
    options: dict[str, Any] = {"controls": ("unrelated",), "unrelated": str(other)}
    run = await ran(store, file, Learner(), arm(tmp_path), **options)
    report = await read_stream(store, run.id)
    control = next(one for one in report.arms if one.arm == "lessons-unrelated")
    assert control.gain is not None
    assert (control.gain.value, control.memory_tokens) == (0, 0)
    assert control.recalled
    assert control.recalled > 1  # it was shown entries, and none of them helped


@pytest.mark.slow
async def test_the_report_says_what_it_could_not_show(store: Store, tmp_path: Path) -> None:
    run = await ran(store, tasks(tmp_path, ("ant",), 3), Learner(), arm(tmp_path), orders=1)
    text = plain(stream_page(await read_stream(store, run.id)))
    assert "lessons against none: no difference was shown. The stream could have shown one of" in text
    assert "--orders 5" in text
    assert "no result" in text.lower() or "learner" in text


@pytest.mark.slow
async def test_rows_and_curves(store: Store, tmp_path: Path) -> None:
    run = await ran(store, tasks(tmp_path, FAMILIES, 2, drifts=True), Learner(), arm(tmp_path))
    report = await read_stream(store, run.id)
    rows = list(csv.DictReader(io.StringIO(as_csv(report.rows))))
    assert len(rows) == 2 * 2 * 12
    assert (rows[0]["arm"], rows[0]["case"], rows[0]["family"], rows[0]["success"]) == (
        "none",
        "ant/1-0",
        "ant",
        "False",
    )
    assert {row["order"] for row in rows} == {"1", "2"}
    chart = learning_curves(report)
    assert [len(curve.points) for curve in chart.curves] == [12, 12]
    assert [place for place, _ in chart.marks] == [6.5]
    assert chart.svg(alone=True).startswith("<svg")
    json.dumps(report.to_json(), allow_nan=False)


# --- orders and arms ------------------------------------------------------------------------------------------------


def test_orders_mix_cases_within_their_phase_alone() -> None:
    announced = {5: {"change": "All is new."}}
    given = [Case(f"c{n}", Task("do it", announced.get(n, {})), None) for n in range(12)]
    cases = in_phases(given)
    assert [case.phase for case in cases] == [1] * 5 + [2] * 7
    assert in_order(cases, 0, 1) == cases
    seen = {tuple(case.id for case in in_order(cases, 7, order)) for order in range(2, 8)}
    assert len(seen) == 6
    for order in seen:
        assert set(order[:5]) == {f"c{n}" for n in range(5)}
        assert order[5] == "c5"
    assert [case.id for case in in_order(cases, 7, 2)] == [case.id for case in in_order(cases, 7, 2)]
    silent = in_phases([replace(case, task=Task("do it"), phase=1 + n // 6) for n, case in enumerate(given)])
    assert [case.phase for case in silent] == [1] * 6 + [2] * 6


def test_the_order_of_the_arms_is_drawn_from_the_seed(tmp_path: Path) -> None:
    from mulligan.bench.harness.plan import BenchOptions

    config = load()
    arms = tuple(read_arm(name, config) for name in ("none", "lessons", arm(tmp_path, "mine")))

    def order(seed: int) -> list[list[str]]:
        legs = legs_of("s1", StreamChoice(BenchOptions("x", seed=seed), arms, 8))
        return [[leg.arm.name for leg in legs[n : n + 3]] for n in range(0, 24, 3)]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert all(sorted(names) == ["lessons", "mine", "none"] for names in order(1))
    assert len(set(map(tuple, order(1)))) > 1


async def test_what_cannot_work_is_refused_before_a_model_is_asked(store: Store, tmp_path: Path) -> None:
    file, model = tasks(tmp_path, FAMILIES, 1), Learner()
    bad = tmp_path / "bad.toml"
    for text, wrong in (
        ("[memory]\ntop = 3\n", "top_k"),
        ("memory = 3\n", "must be a table"),
        ("colour = 1\n", "summary"),
        ("memory = \n", "bad.toml"),
    ):
        bad.write_text(text)
        with pytest.raises(InvalidInput, match=wrong):
            await ran(store, file, model, str(bad))
    with pytest.raises(UnknownName, match="lessons"):
        await ran(store, file, model, "lesson")
    with pytest.raises(InvalidInput, match="twice"):
        await ran(store, file, model, arm(tmp_path), "lessons")
    with pytest.raises(InvalidInput, match="add the arm 'none'"):
        await run_stream(str(file), arms=["lessons"], model=model, store=store)
    with pytest.raises(InvalidInput, match="needs a change"):
        await ran(store, file, model, arm(tmp_path), controls=("stale",))
    with pytest.raises(InvalidInput, match="needs other tasks"):
        await ran(store, file, model, arm(tmp_path), controls=("unrelated",))
    assert model.asked == []
    assert await store.benches.runs() == ()


# --- cut off and taken up -------------------------------------------------------------------------------------------


class Cut(BaseException):
    """As if the process were killed."""


class Mortal(Learner):
    """Dies at this attempt, before it has made it."""

    def __init__(self, dies: int) -> None:
        super().__init__()
        self.left = dies

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        if question.schema is None:
            self.left -= 1
            if self.left == -1:
                raise Cut
        return await super().ask(question, sampling)


@pytest.mark.slow
@pytest.mark.parametrize("dies", [0, 4, 9])
async def test_a_stream_that_was_cut_off_ends_as_one_that_was_not(store: Store, tmp_path: Path, dies: int) -> None:
    file, whole = tasks(tmp_path, FAMILIES, 2), Learner()
    expected = await read_stream(store, (await ran(store, file, whole, arm(tmp_path))).id)
    async with open_store(tmp_path / "other.db") as other:
        os.environ["MULLIGAN_STORE"] = str(tmp_path / "other.db")
        try:
            mortal = Mortal(dies)
            with pytest.raises(Cut):
                await ran(other, file, mortal, arm(tmp_path))
            (*_, first) = await other.benches.runs()
            await resume_stream(first.id, model=mortal, store=other)
            assert nameless(await read_stream(other, first.id)) == nameless(expected)
            assert Counter(mortal.asked) == Counter(whole.asked)
            again = len(mortal.asked)
            await resume_stream(first.id, model=mortal, store=other)
            assert len(mortal.asked) == again
        finally:
            del os.environ["MULLIGAN_STORE"]


async def test_a_stream_is_no_run(store: Store, tmp_path: Path) -> None:
    model = Learner()
    run = await ran(store, tasks(tmp_path, FAMILIES, 1), model, arm(tmp_path), orders=1)
    with pytest.raises(InvalidInput, match=f"bench stream --resume {run.id}"):
        await resume_benchmark(run.id, model=model, store=store)
    with pytest.raises(InvalidInput, match=f"bench stream --resume {run.id}"):
        await read_run(store, run.id)
    with pytest.raises(InvalidInput, match="is a single run, not a stream"):
        await resume_stream(f"{run.id}-none-1", model=model, store=store)


async def test_bench_report_prints_a_stream(store: Store, tmp_path: Path) -> None:
    run = await ran(store, tasks(tmp_path, FAMILIES, 1), Learner(), arm(tmp_path), orders=1)

    async def said(*arguments: str) -> str:
        result = await asyncio.to_thread(CliRunner().invoke, bench, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert f"mulligan bench report {run.id}" in await said("runs")
    assert "lessons" in await said("report", run.id)
    report = await read_stream(store, run.id)
    assert json.loads(await said("report", run.id, "--format", "json")) == report.to_json()


async def test_a_stream_over_other_cases_is_not_taken_up(store: Store, tmp_path: Path) -> None:
    file, model = tasks(tmp_path, FAMILIES, 2), Learner()
    run = await ran(store, file, model, arm(tmp_path), orders=1)
    file.write_text(file.read_text().replace("say the word", "say it"))
    with pytest.raises(JournalDiverged, match="the cases"):
        await resume_stream(run.id, model=model, store=store)


@pytest.mark.slow
def test_killed_at_random_moments_it_pays_for_nothing_twice(tmp_path: Path) -> None:
    """kill -9, again and again: the rows are those of a stream that nobody killed, and so are the questions, but for
    the one that was under way at each kill."""

    def start(name: str) -> subprocess.Popen[bytes]:
        home = tmp_path / name
        home.mkdir(exist_ok=True)
        command = [sys.executable, str(SUPPORT / "mortal_stream.py"), str(home)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "MULLIGAN_HOME": str(home)})

    def asked(name: str) -> Counter[str]:
        file = tmp_path / name / "asked.jsonl"
        return Counter(file.read_text().splitlines() if file.exists() else ())

    began = time.monotonic()
    whole, _ = start("whole").communicate(timeout=300)
    lasts = time.monotonic() - began
    chance, kills = random.Random(17), 0
    while True:
        process = start("killed")
        try:
            rows, _ = process.communicate(timeout=chance.uniform(0.3, 0.6) * lasts if kills < 8 else 300)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
            kills += 1
        else:
            break
    assert process.returncode == 0
    assert rows == whole
    assert kills >= 1
    twice = asked("killed") - asked("whole")
    assert twice.total() <= kills
    assert set(asked("killed")) == set(asked("whole"))
