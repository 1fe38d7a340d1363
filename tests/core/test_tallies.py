"""The arithmetic of what an entry is worth, on worlds where the truth is known: the small version of studies/worth."""

from __future__ import annotations

from random import Random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.worth import BETS, HORIZON, LEVEL, Tally, is_withheld


def played(rate: float, effect: float, share: float, outcomes: int, seed: int) -> tuple[Tally, int | None]:
    """The tally after so many outcomes, and after how many it was found to do harm."""
    random, tally, found = Random(seed), Tally(), None
    for n in range(outcomes):
        withheld = random.random() < share
        success = random.random() < rate + (0.0 if withheld else effect)
        tally = tally.with_draw(success, withheld=withheld, share=share)
        if found is None and tally.harmful:
            found = n + 1
    return tally, found


def test_nothing_is_said_before_both_sides_were_seen() -> None:
    shown = Tally().with_draw(True, withheld=False, share=0.1)
    assert (Tally().uplift, shown.uplift, shown.harmful, str(shown)) == (None, None, False, "not measured")
    both = shown.with_draw(False, withheld=True, share=0.1)
    assert both.uplift is not None
    assert both.uplift.low < 0 < both.uplift.mean < both.uplift.high
    assert 0.5 < both.uplift.positive < 1
    assert str(both).endswith("shown 1, withheld 1 time")


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(("rate", "effect"), [(0.5, 0.0), (0.3, 0.3), (0.8, -0.3), (0.9, 0.05)])
def test_intervals_hold_the_truth_at_about_their_rate(rate: float, effect: float) -> None:
    held = list[bool]()
    for seed in range(150):
        tally, _ = played(rate, effect, 0.2, 250, seed)
        assert tally.uplift is not None
        held.append(tally.uplift.low <= effect <= tally.uplift.high)
    assert 0.89 <= mean(held) <= 0.99  # 95 % but for the luck of 150 runs


@pytest.mark.slow
def test_harm_is_found_and_its_absence_is_not() -> None:
    harmful = [played(0.6, -0.4, 0.2, 200, seed)[1] for seed in range(60)]
    assert mean(one is not None for one in harmful) >= 0.8
    harmless = [played(0.6, effect, 0.2, 400, seed)[1] for seed in range(60) for effect in (0.0, 0.2)]
    assert mean(one is not None for one in harmless) <= LEVEL


@pytest.mark.parametrize("seed", range(5))
def test_what_turns_harmful_later_is_found_too(seed: int) -> None:
    random, tally, n = Random(seed), Tally(), 0
    while n < 1200 and not tally.harmful:
        withheld = random.random() < 0.2
        effect = 0.0 if withheld else 0.3 if n < 400 else -0.5
        tally = tally.with_draw(random.random() < 0.5 + effect, withheld=withheld, share=0.2)
        n += 1
    assert 400 < n < 700


@given(st.floats(0.01, 0.5), st.lists(st.tuples(st.booleans(), st.booleans()), max_size=80))
def test_without_harm_the_expected_evidence_never_grows_but_by_what_is_put_in(
    share: float, before: list[tuple[bool, bool]]
) -> None:
    """The rule of the test holds for any past: that is why it may be looked at after each outcome."""
    tally = Tally()
    for success, withheld in before:
        tally = tally.with_draw(success, withheld=withheld, share=share)
    now: list[float] = list(tally.evidence) or [0.0 for _ in BETS]
    put_in = 0.5 if not before else 0.5 / HORIZON
    for rate in (0.0, 0.3, 1.0):  # the same whether it is shown or not
        expected: list[float] = [0.0 for _ in BETS]
        for withheld, of_draw in ((True, share), (False, 1 - share)):
            for success, of_outcome in ((True, rate), (False, 1 - rate)):
                after = tally.with_draw(success, withheld=withheld, share=share).evidence
                assert all(stake >= 0 for stake in after)
                expected = [sum_ + of_draw * of_outcome * stake for sum_, stake in zip(expected, after, strict=True)]
        for stake, then in zip(now, expected, strict=True):
            assert then <= (stake + put_in) * (1 + 1e-9)


def test_draws_keep_to_their_share_and_to_no_other_entry() -> None:
    drawn = [(is_withheld(f"r{n}", "a", 0.1), is_withheld(f"r{n}", "b", 0.1)) for n in range(20_000)]
    assert 0.09 < mean(a for a, _ in drawn) < 0.11
    assert 0.007 < mean(a and b for a, b in drawn) < 0.013
    assert not any(is_withheld(f"r{n}", "a", 0.0) for n in range(100))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60), st.sampled_from([None, 2.0, 100.0]))
def test_an_interval_stays_inside_what_a_difference_can_be(
    draws: list[tuple[bool, bool]], halflife: float | None
) -> None:
    tally = Tally()
    for success, withheld in draws:
        tally = tally.with_draw(success, withheld=withheld, share=0.3, halflife=halflife)
    if (uplift := tally.uplift) is not None:
        assert -1 <= uplift.low <= uplift.mean <= uplift.high <= 1


def test_few_outcomes_on_both_sides_say_little_and_nothing_impossible() -> None:
    tally = Tally()
    for success, withheld in ((True, False), (False, True), (True, False)):
        tally = tally.with_draw(success, withheld=withheld, share=0.5)
    assert tally.uplift is not None
    assert -1 <= tally.uplift.low < 0 < tally.uplift.high <= 1
    assert "(-1." not in str(tally)
    assert "to +1." not in str(tally).replace("to +1.00", "")
