"""The figures of a run: what is in a rate and what stands beside it, and two runs over the same cases."""

from dataclasses import replace

import pytest
from bench_reports import case, recorded
from hypothesis import given
from hypothesis import strategies as st

from mulligan.bench.report.figures import Recorded, compare, figures
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Usage


def test_solved_by_trial_leaves_out_what_is_not_known() -> None:
    found = figures(recorded(case(1), case(0, 0, 1), case(0, 0), case(None), case(0, status="error"), case(None, 1)))
    assert [(at.trial, at.solved.count, at.solved.n, at.unscored) for at in found.trials] == [
        (1, 1, 3, 2),
        (2, 2, 4, 1),
        (3, 3, 4, 1),
    ]
    assert found.statuses == {"solved": 3, "failed": 1, "unjudged": 1, "error": 1}
    assert not found.graded
    assert found.trials[0].mean is None


@given(st.lists(st.lists(st.sampled_from([0, 1, None]), min_size=1, max_size=5), max_size=12))
def test_counts_add_up_whatever_the_scores(rows: list[list[float | None]]) -> None:
    found = figures(recorded(*(case(*scores) for scores in rows)))
    assert found.ended == sum(found.statuses.values()) == len(rows)
    for at in found.trials:
        assert at.solved.n + at.unscored == len(rows)
        assert (at.solved.value is None) == (at.solved.n == 0)
    for verdicts in (found.at_first, found.at_end):
        told = verdicts.right_accepts + verdicts.false_accepts + verdicts.right_rejects + verdicts.false_rejects
        assert told + verdicts.no_verdict == len(rows)


def test_the_limit_of_the_run_counts_where_all_stopped_before() -> None:
    assert [at.solved.count for at in figures(recorded(case(1), case(1), trials=4)).trials] == [2, 2, 2, 2]


def test_a_run_without_an_end_has_no_rates() -> None:
    found = figures(recorded(total=10))
    assert (found.ended, found.cases) == (0, 10)
    assert [at.solved.value for at in found.trials] == [None]
    assert found.spent.tokens_per_solved is None
    assert found.shown.trial is None


def test_all_errors_are_no_rate_of_zero() -> None:
    found = figures(recorded(case(0, status="error"), case(status="error")))
    assert (found.trials[0].solved.value, found.trials[0].solved.n) == (None, 0)
    assert found.at_end.no_verdict == 0


def test_samples_give_the_unbiased_estimate() -> None:
    found = figures(recorded(case(1, more=[0, 0]), case(0, more=[0, 0]), case(None, more=[1, 1]), samples=3))
    assert [at.k for at in found.episodes] == [1, 2, 3]
    one, two, three = (at.estimate for at in found.episodes)
    assert one is not None
    assert two is not None
    assert three is not None
    assert (one.value, one.n) == (pytest.approx((1 / 3 + 0 + 1) / 3), 3)
    assert (two.value, two.n) == (pytest.approx((2 / 3 + 0 + 1) / 3), 3)
    assert (three.value, three.n) == (pytest.approx(1 / 2), 2)  # the third has two scored samples only
    every = [at.every and at.every.value for at in found.episodes]
    assert every == [pytest.approx(one.value), pytest.approx(1 / 3), 0]
    assert [(at.within.count, at.within.n) for at in found.episodes] == [(2, 3), (2, 3), (2, 3)]


def test_restarts_have_no_estimate_but_are_counted() -> None:
    found = figures(recorded(case(1), case(0, more=[1]), case(0, more=[0, 0]), restarts=3))
    assert [at.estimate for at in found.episodes] == [None, None, None]
    assert [at.within.count for at in found.episodes] == [1, 2, 2]
    assert [at.solved.count for at in found.trials] == [1]  # pass@1 is of the first episodes


def test_graded_scores_have_a_mean_and_count_as_solved_at_one() -> None:
    found = figures(recorded(case(0.5), case(0.25, 1), case(0)))
    assert found.graded
    first, last = found.trials
    assert first.mean is not None
    assert last.mean is not None
    assert (first.solved.count, first.mean.value) == (0, pytest.approx(0.25))
    assert (last.solved.count, last.mean.value) == (1, pytest.approx(0.5))


def test_the_loops_verdict_is_held_against_the_hidden_one() -> None:
    found = figures(recorded(case(1), case(0), case(1), case(0), case(1), passed=[True, True, False, False, None]))
    verdicts = found.at_end
    assert found.at_first == verdicts
    assert (verdicts.right_accepts, verdicts.false_accepts) == (1, 1)
    assert (verdicts.false_rejects, verdicts.right_rejects, verdicts.no_verdict) == (1, 1, 1)


def test_what_it_took_is_told_for_each_solved_case() -> None:
    spent = figures(recorded(case(0, 1), case(0))).spent
    assert spent.usage == Usage(100 + 50 + 200 + 100, 10 + 5 + 10 + 10, 4, 2.0)
    assert spent.by_role["reflector"] == Usage(50, 5, 1, 0.5)
    assert (spent.tokens_per_solved, spent.cost_per_solved, spent.seconds_per_solved) == (485, 2.0, 4.0)


def test_what_was_lost_is_distinguished_so_that_the_parts_are_the_whole() -> None:
    made = recorded(case(0, 1))
    (episode,) = made.episodes.values()
    lost = replace(episode, lost=Usage(7, 3, 1, 0.25))
    one = replace(made.results[0], usage=lost.usage)
    spent = figures(Recorded(made.run, [one], {lost.id: lost})).spent
    assert spent.by_role["lost"] == Usage(7, 3, 1, 0.25)
    assert sum(spent.by_role.values(), Usage()) == spent.usage


def test_an_unknown_cost_stays_unknown() -> None:
    spent = figures(recorded(case(1), cost=None)).spent
    assert (spent.usage.cost, spent.cost_per_solved) == (None, None)
    assert spent.tokens_per_solved == 110


def test_the_past_is_what_later_trials_are_shown_more() -> None:
    shown = figures(recorded(case(0, 0, 1), case(1))).shown
    assert (shown.strategy, shown.later_trials) == ("reflexion", 2)
    assert (shown.first, shown.later, shown.past) == (100, 250, 150)
    assert (shown.attempt, shown.reflection) == (10, 5)


def test_an_oracle_is_seen_in_the_feedback() -> None:
    assert figures(recorded(case(1), source="oracle")).oracle
    assert not figures(recorded(case(1))).oracle


# --- two runs -------------------------------------------------------------------------------------------------------


def test_two_runs_are_compared_over_the_cases_with_a_verdict_in_both() -> None:
    a = recorded(case(1), case(1), case(0), case(0), case(None), id="a", total=7)
    b = recorded(case(1), case(0), case(1), case(1), case(1), case(1), id="b", total=7)
    found = compare(a, b)
    cells = (found.counts.both, found.counts.only_a, found.counts.only_b, found.counts.neither)
    assert (cells, found.counts.n) == ((1, 1, 2, 0), 4)
    assert found.counts.difference == 0.25
    assert (found.left_out, found.alone_a, found.alone_b) == (1, 0, 1)


def test_errors_are_left_out_of_a_comparison() -> None:
    found = compare(recorded(case(1, status="error"), case(1), id="a"), recorded(case(1), case(1), id="b"))
    assert (found.counts.n, found.left_out) == (1, 1)


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (recorded(id="a", total=3), recorded(case(1), id="b"), "no case finished in both"),
        (recorded(case(1), id="a"), recorded(case(1), id="b", data="cd" * 32), "different data"),
        (recorded(case(None), id="a"), recorded(case(1), id="b"), "none has a verdict in both"),
    ],
)
def test_runs_that_have_nothing_in_common_are_refused(a: object, b: object, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        compare(a, b)  # pyright: ignore[reportArgumentType]


def test_a_file_that_has_changed_is_other_data_though_another_has_not() -> None:
    both = {"data tests.py": "ef" * 32}
    a, b = recorded(case(1), id="a"), recorded(case(1), id="b", data="cd" * 32)
    a, b = (replace(one, run=replace(one.run, rests_on={**one.run.rests_on, **both})) for one in (a, b))
    with pytest.raises(InvalidInput, match=r"different data \(toy.json\)"):
        compare(a, b)
