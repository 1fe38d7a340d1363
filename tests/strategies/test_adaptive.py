"""A strategy of one's own that learns, examples/thompson_strategy.py: its arms, what it learns, and that a resume
chooses the same."""

import json
import random
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan import ScriptedModel
from mulligan.app.plugins import find
from mulligan.cli.main import cli
from mulligan.core.arms import MOST_MEMORY, ArmRow, counted, memory, seen
from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.protocols import Model, Store
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.rates import interval
from mulligan.core.records import Attempt, Choice, Episode, Feedback, Finding, Head, Outcome, Task, Trial
from mulligan.store import open_store
from mulligan.text.evidence import evidence_of

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "thompson_strategy.py")
Adaptive = find("strategies", EXAMPLE)
example = sys.modules[Adaptive.__module__]

CHECKED = Feedback(False, "no", evidence=evidence_of([Finding("assert f(1) == 2", got="1")]))
SURE = {"evidence": [900.0, 100.0]}
"""What makes `evidence` the arm that is drawn."""


def an_episode(*feedback: Feedback, seed: int = 0, outputs: str = "abcdefgh", arms: Sequence[str] = ()) -> Episode:
    choices = [None, *map(Choice, arms)]
    trials = tuple(
        Trial(n + 1, Attempt(outputs[n], choice=choices[n] if n < len(choices) else None), one)
        for n, one in enumerate(feedback)
    )
    return Episode("e", Task("p"), head=Head(seed=seed), trials=trials)


def arm_of(strategy: Any, episode: Episode) -> str:
    choice = strategy.decide(episode).choice
    assert choice is not None
    return choice.arm


@each_row(
    ("attempt", "feedback", "signal"),
    [
        (Attempt("x"), CHECKED, "checks"),
        (Attempt("x"), Feedback(False, "too long"), "text"),
        (Attempt("x"), Feedback(False), "no text"),
        (Attempt("x", outcome=Outcome(halted="too many steps")), CHECKED, "halted"),
        (Attempt("x"), Feedback(None, "no judge"), "unjudged"),
        (Attempt("x"), None, "unjudged"),
    ],
)
def test_the_feedback_decides_which_arms_there_are(attempt: Attempt, feedback: Feedback | None, signal: str) -> None:
    assert example.signal_of(Trial(1, attempt, feedback)) == signal
    episode = Episode("e", Task("p"), trials=(Trial(1, attempt, feedback),))
    choice = Adaptive().decide(episode).choice
    assert choice is not None
    assert (choice.signal, set(choice.odds)) == (signal, set(example.FIT[signal]))
    assert sum(choice.odds.values()) == pytest.approx(1)
    assert from_json(Choice, to_json(choice)) == choice


def test_nothing_is_chosen_before_the_first_trial() -> None:
    assert Adaptive().decide(an_episode()).choice is None


def test_an_empty_store_draws_the_arm_of_the_default_three_times_in_four() -> None:
    arms = [arm_of(Adaptive(), an_episode(CHECKED, seed=seed)) for seed in range(60)]
    assert 0.65 < arms.count("evidence_and_lesson") / len(arms) < 0.85
    assert len(set(arms)) > 2


def test_tasks_of_one_seed_are_drawn_for_apart_and_so_is_a_task_that_comes_again() -> None:
    episode = an_episode(CHECKED)
    others = [replace(episode, task=Task(f"task {n}")) for n in range(40)]
    assert len({arm_of(Adaptive(), one) for one in others}) > 1
    again = [Adaptive(seen={"resample": [n / 1000, 0.0]}) for n in range(40)]
    assert len({arm_of(one, episode) for one in again}) > 1


def test_what_was_seen_decides_and_a_lesson_is_asked_for_only_where_it_is_shown() -> None:
    episode = an_episode(CHECKED)
    decision = Adaptive(seen=SURE).decide(episode)
    assert (decision.choice and decision.choice.arm, decision.reflect, decision.temperature) == (
        "evidence",
        False,
        None,
    )
    assert Adaptive(seen=SURE).past(episode).evidence
    resampled = Adaptive(seen={"resample": [900.0, 100.0]}, warm=1.2)
    assert (resampled.decide(episode).temperature, resampled.past(episode).evidence) == (1.2, ())
    assert Adaptive(seen={"all": [900.0, 100.0]}).decide(episode).reflect


def test_the_arm_that_repeated_an_attempt_is_left_out_and_failures_of_the_episode_count() -> None:
    repeated = an_episode(CHECKED, CHECKED, outputs="aa", arms=["evidence"])
    assert arm_of(Adaptive(seen=SURE), repeated) != "evidence"
    fresh, failed = an_episode(CHECKED, CHECKED), an_episode(CHECKED, CHECKED, arms=["evidence_and_lesson"])
    odds_of = [
        strategy.choice.odds["evidence_and_lesson"]
        for strategy in map(Adaptive().decide, (fresh, failed))
        if strategy.choice
    ]
    assert odds_of[1] < odds_of[0]


def test_the_same_episode_gives_the_same_choice_with_and_without_its_lesson() -> None:
    for seed in range(20):
        before = an_episode(CHECKED, seed=seed)
        (trial,) = before.trials
        after = replace(before, trials=(replace(trial, reflection=mulligan.Reflection("Say it.")),))
        assert Adaptive().decide(before) == Adaptive().decide(after)


@pytest.mark.parametrize(
    "settings", [{"warm": 3.0}, {"seen": {"x": [1, 1]}}, {"seen": {"all": [-1, 1]}}, {"window": 0}]
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Adaptive(**settings)  # pyright: ignore[reportArgumentType]


# --- what is counted ----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_counts_are_never_negative_and_fading_is_bounded(trials: list[tuple[str, bool]]) -> None:
    rows: Sequence[ArmRow] = ()
    for arm, passed in trials:
        before = {row.arm: row for row in rows}
        rows = counted(rows, ArmRow("m", "", arm), passed)
        for row in rows:
            assert min(row.won, row.lost, row.tried, row.passed) >= 0
            assert row.won <= row.passed
            assert row.lost <= row.tried - row.passed
            old = before.get(row.arm, ArmRow("m", "", row.arm))
            assert row.won + row.lost >= (old.won + old.lost) * (1 - 1 / 30) - 1e-9
    assert sum(row.tried for row in rows) == len(trials)
    assert sum(row.won + row.lost for row in rows) <= memory(len(trials)) + 1e-9


def test_memory_grows_with_the_root_to_its_bound() -> None:
    assert (memory(0), memory(100), memory(10**9)) == (30, 150, MOST_MEMORY)


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_an_interval_holds_its_share(won: float, lost: float) -> None:
    low, high = interval(won, lost)
    assert 0 <= low <= high <= 1
    if won + lost:
        assert low - 1e-9 <= won / (won + lost) <= high + 1e-9


def test_other_kinds_count_as_a_few_trials() -> None:
    rows = (ArmRow("m", "", "a", won=80.0, lost=20.0), ArmRow("m", "k", "a", won=30.0, lost=10.0))
    assert seen(rows, "") == {"a": (80.0, 20.0)}
    won, lost = seen(rows, "K")["a"]
    assert (won, lost) == (pytest.approx(30 + 10 * 50 / 60, abs=1e-5), pytest.approx(10 + 10 * 10 / 60, abs=1e-5))
    assert seen(rows, "new")["a"] == (pytest.approx(8), pytest.approx(2))


# --- in episodes --------------------------------------------------------------------------------------------------------


async def solved(store: Store, model: Model, trials: int = 4, kind: str = "") -> Episode:
    judge = "contains:water"
    return await mulligan.solve(
        "Name a drink.",
        evaluator=judge,
        strategy=EXAMPLE,
        model=model,
        trials=trials,
        seed=1,
        kind=kind,
        store=store,
    )


async def test_an_episode_records_its_choice_and_the_next_begins_with_what_was_seen() -> None:
    async with open_store("memory:") as store:
        first = await solved(store, ScriptedModel(["tea", "Say 'water', not tea.", "water"]), kind="Drinks")
        second = await solved(store, ScriptedModel(["water"]), kind="drinks")
        (row,) = [row for row in await store.arms() if row.kind]
    choice = first.trials[1].attempt.choice
    assert choice is not None
    assert (choice.arm, choice.signal, row.tried, row.passed) == ("evidence_and_lesson", "text", 1, 1)
    assert first.head.settings["strategy"]["settings"]["seen"] == {}
    assert second.head.settings["strategy"]["settings"]["seen"] == {choice.arm: [1.0, 0.0]}


class Failing:
    """A model whose call of this number fails; the others are answered in order."""

    name = id = "failing"

    def __init__(self, answers: Sequence[str], at: int) -> None:
        self._answers, self._at, self._calls = list(answers), at, 0

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        self._calls += 1
        if self._calls == self._at:
            raise ModelError("the line is cut")
        return Answer(self._answers.pop(0), self.id)


@pytest.mark.parametrize("at", [2, 3, 4])
async def test_a_resumed_episode_goes_the_same_way_and_is_counted_once(at: int) -> None:
    answers = ["tea", "Say juice, not tea.", "milk of drink", "It was milk: name another drink.", *"abcdef"]
    async with open_store("memory:") as whole, open_store("memory:") as cut:
        there = await solved(whole, Failing(answers, 0), 3)
        model = Failing(answers, at)
        stopped = await solved(cut, model, 3)
        assert stopped.stop is not None
        assert stopped.stop.reason == "error"
        assert await cut.arms() == ()
        # What another episode teaches meanwhile changes nothing in this one.
        await solved(cut, Failing(["tea", *["Say coffee, not tea.", "coffee"] * 4], 0), 3)
        taught = {row: row.tried for row in await cut.arms()}
        again = await mulligan.resume(stopped.id, model=model, store=cut)
        assert [trial.attempt for trial in again.trials] == [trial.attempt for trial in there.trials]
        assert there.stop is not None
        assert there.stop.reason == "exhausted"
        assert sum(row.tried for row in await cut.arms()) == sum(taught.values()) + 2
        assert sum(row.tried for row in await whole.arms()) == 2


def test_stats_show_what_was_learned_and_forget_forgets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    script = tmp_path / "s.json"
    script.write_text(json.dumps(["tea", "Say 'water', not tea.", "water"]))

    def run(*words: str) -> str:
        return CliRunner().invoke(cli, [*words], catch_exceptions=False).output

    assert "No counts yet" in run("strategies", "stats")
    task = ["solve", "drink", "--kind", "Drinks", "--evaluator", "contains:water", "--strategy", EXAMPLE, "-q"]
    run(*task, "--model", f"scripted:{script}")
    (over_all, of_kind) = json.loads(run("strategies", "stats", "--json"))
    assert (over_all["kind"], of_kind["kind"], of_kind["passed"], of_kind["share"]) == ("", "drinks", 1, 1.0)
    assert "evidence_and_lesson" in run("strategies", "stats")
    assert "Chosen after text: evidence_and_lesson (odds:" in run(
        "runs", "show", json.loads(run("runs", "list", "--json"))[0]["run"]
    )
    assert "1 arm would be reset" in run("strategies", "forget", "--kind", "drinks")
    run("strategies", "forget", "--yes")
    assert json.loads(run("strategies", "stats", "--json")) == []


def test_a_run_of_the_strategy_that_was_built_in_is_shown_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    (tmp_path / "s.json").write_text(json.dumps(["tea", "Say 'water', not tea.", "coffee"]))

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, [*words, "--model", "scripted:s.json"] if words[0] == "solve" else [*words])

    judged = ["solve", "drink", "--evaluator", "contains:water", "--trials", "2", "-q", "--strategy"]
    run(*judged, EXAMPLE)
    with closing(sqlite3.connect(tmp_path / "mulligan.db")) as db, db:  # as an older version recorded it
        for table, column in (("episodes", "record"), ("events", "event")):
            sql = f"UPDATE {table} SET {column} = replace({column}, ?, '\"adaptive\"')"
            assert db.execute(sql, (json.dumps(EXAMPLE),)).rowcount
    (listed,) = json.loads(run("runs", "list", "--json").output)
    for shown in (run("runs", "show", listed["run"]), run("runs", "export", listed["run"])):
        assert shown.exit_code == 0
        assert "evidence" in shown.output
    for refused in (run(*judged, "adaptive"), run("runs", "resume", listed["run"], "--fork", "--trials", "3")):
        said = f"{refused.exception} {refused.output}"
        assert "'adaptive'. It was removed:" in said
        assert "examples/thompson_strategy.py" in said


def test_odds_are_those_of_the_draw() -> None:
    assert example.odds({"a": (1000.0, 1.0), "b": (1.0, 1000.0)}, random.Random(0)) == {"a": 1.0, "b": 0.0}
