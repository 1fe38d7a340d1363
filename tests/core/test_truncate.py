"""Truncation: fits when it can, never loses a thought or an action, never raises, says what it cut."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.records import Outcome, Step
from mulligan.text.truncate import Count, estimate, truncate, truncate_text

NOTE = re.compile(r"\[… [\d,]+ of [\d,]+ tokens cut …\]")
texts = st.text(max_size=40) | st.tuples(st.text(max_size=20), st.integers(0, 60)).map(lambda pair: pair[0] * pair[1])
steps = st.lists(st.builds(Step, thought=texts, action=texts, observation=texts), max_size=6)
budgets = st.integers(-5, 400)


def words(text: str) -> int:
    return len(text.split())


def taken(steps: tuple[Step, ...]) -> int:
    return sum(estimate(s.thought) + estimate(s.action) + estimate(s.observation) for s in steps)


@given(steps, budgets, st.sampled_from([estimate, words, len]))
def test_thoughts_actions_and_places_are_kept(steps: list[Step], tokens: int, count: Count) -> None:
    after = truncate(steps, tokens, count)
    assert [(s.thought, s.action) for s in after] == [(s.thought, s.action) for s in steps]
    assert after == truncate(steps, tokens, count), "deterministic"
    for old, new in zip(steps, after, strict=True):
        if new.observation != old.observation:
            note = NOTE.search(new.observation)
            assert note, "a cut is always said"
            head, tail = new.observation[: note.start()], new.observation[note.end() :]
            assert old.observation.startswith(head.removesuffix("\n"))
            assert old.observation.endswith(tail.removeprefix("\n"))
            assert count(new.observation) <= count(old.observation)


@given(steps, budgets)
def test_it_fits_or_nothing_more_could_be_cut(steps: list[Step], tokens: int) -> None:
    after = truncate(steps, tokens)
    if taken(after) > tokens:
        for step in after:
            whole = NOTE.fullmatch(step.observation)
            size = estimate(step.observation)
            assert whole or size <= estimate(f"[… {size:,} of {size:,} tokens cut …]")


@given(steps)
def test_what_fits_is_left_alone(steps: list[Step]) -> None:
    assert truncate(steps, taken(tuple(steps))) == tuple(steps)


@given(steps, budgets)
def test_the_longest_are_cut_first(steps: list[Step], tokens: int) -> None:
    """No observation is cut to less than one that stays whole, but for the note itself."""
    after = truncate(steps, tokens)
    cut = [(estimate(o.observation), estimate(a.observation)) for o, a in zip(steps, after, strict=True) if o != a]
    whole = [estimate(o.observation) for o, a in zip(steps, after, strict=True) if o == a]
    assert all(size >= other for size, _ in cut for other in whole if other > 12)


def test_the_longest_is_levelled_and_says_so() -> None:
    long = " ".join(f"line{n}" for n in range(600))
    before = [Step("look", "open log", long), Step("read", "open note", "short note"), Step(observation="fine")]
    after = truncate(before, 100)
    assert [s.observation for s in after[1:]] == ["short note", "fine"]
    head, note, tail = after[0].observation.split("\n")
    assert head.startswith("line0 line1 ")
    assert tail.endswith(" line599")
    cut, of = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+", note))
    assert of == estimate(long)
    assert cut == of - estimate(head) - estimate(tail)
    assert 90 <= taken(after) <= 100


def test_equal_observations_are_distinguished_by_position() -> None:
    same = Step("t", "look", "the same long page " * 40)
    other = Step("t", "look", "small")
    after = truncate([same, other, same], 120)
    assert after[0] == after[2] != same
    assert after[1] == other
    assert taken(after) <= 120


def test_nothing_more_to_cut_is_no_error() -> None:
    before = [Step("a long thought " * 50, "go", "page " * 100), Step("x " * 50, "act", "page " * 100)]
    after = truncate(before, 10)
    assert all(NOTE.fullmatch(step.observation) for step in after)
    assert truncate((), 0) == ()


def test_outcomes_stay_with_their_steps() -> None:
    before = Step("t", "a", "page " * 100, Outcome(reward=0.5, done=True))
    assert truncate([before], 30)[0].outcome == before.outcome


@given(texts, budgets)
def test_text_fits_or_is_only_the_note(text: str, tokens: int) -> None:
    after = truncate_text(text, tokens)
    assert estimate(after) <= max(tokens, estimate(f"[… {estimate(text):,} of {estimate(text):,} tokens cut …]"))
    assert after == text or NOTE.search(after)


def test_text_keeps_head_and_tail() -> None:
    after = truncate_text("first " + "middle " * 500 + "last", 40)
    assert after.startswith("first middle")
    assert after.endswith("middle last")
    assert 30 <= estimate(after) <= 40


def test_a_large_text_is_cut_quickly_by_any_counter() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text.split())

    after = truncate_text("word " * 200_000, 100, count)
    assert words(after) <= 100
    assert sum(counted) < 3_000_000, "once whole, then only as much as is kept"


def test_the_estimate() -> None:
    assert estimate("") == 0
    assert estimate("The quick brown fox jumps over the lazy dog.") == 10
    assert estimate("反馈信号设计") == 6
    assert estimate("日本語とEnglish") == 5
    assert 7 <= estimate("def add(a, b):\n    return a + b") <= 16
