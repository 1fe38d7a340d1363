"""A reflection earns its place by plain rules: no copy of an example, no repetition, something of its own trial."""

from pathlib import Path

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan.core.prompts import Prompt
from mulligan.text.likeness import words_of
from mulligan.text.reflections import fault

REFLECTORS = Path(mulligan.__file__).parent / "reflectors"
DOMAINS = ("code", "text", "environment")
EXAMPLE = (
    "For 'see you ' the program returned '' where 'you' was expected: it splits at single spaces, so the trailing space "
    'leaves an empty string behind. The next attempt must split at any run of white space and return "" when no word is '
    "left."
)
TRIAL = (
    "Write a function month(date) that returns the month of a date such as 05|2024, or 0 if there is none.",
    "def month(date):\n    return int(date.split('-')[0])",
    "Tests failed:\nassert month('05|2024') == 5  # month('05|2024') raised ValueError",
)


def examples(domain: str) -> list[str]:
    text = (REFLECTORS / f"verbal.{domain}.examples.md").read_text(encoding="utf-8")
    return [text for _, text in Prompt.parse(domain, text).parts]


@pytest.mark.parametrize(
    "copy",
    [
        EXAMPLE,
        EXAMPLE.upper(),
        EXAMPLE.replace("'see you '", "'05|2024'").replace("word", "digit").replace("white space", "digits"),
        "For '05|2024' the program returned '2024' where '05' was expected: it splits at the '|' character, so the "
        "trailing space leaves an empty string behind. The next attempt must split at '|' and return \"\" when no digit "
        "is left.",
        f"month raises ValueError for '05|2024'. {EXAMPLE.partition(': ')[2]}",
    ],
    ids=["word for word", "shouted", "other values", "as a small model did", "behind a sentence of its own"],
)
def test_a_copy_of_an_example_with_small_changes_is_one(copy: str) -> None:
    assert fault(copy, trial=TRIAL, examples=[EXAMPLE]).startswith("It copies a worked example")


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_lessons_of_our_own_examples_are_recognized(domain: str) -> None:
    shown = examples(domain)
    assert "copies" in fault(shown[-1], trial=TRIAL, examples=shown)


@pytest.mark.parametrize(
    "lesson",
    [
        "For '05|2024' the program raised ValueError where 5 was expected: it splits at '-'. The next attempt must split "
        "at '|' and return 0 when there is no month.",
        "month splits the date at a hyphen; the test has a bar between month and year. Split there instead.",
        "The separator is '|', not '-'.",
        "ValueError: the whole date goes into int.",
    ],
)
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_lesson_in_the_form_of_an_example_is_none(lesson: str, domain: str) -> None:
    assert fault(lesson, trial=TRIAL, examples=[EXAMPLE, *examples(domain)]) == ""


def test_what_the_trial_says_itself_is_no_copy_even_where_an_example_says_it_too() -> None:
    assert fault(EXAMPLE, trial=[EXAMPLE], examples=[EXAMPLE]) == ""


def test_the_same_lesson_again_is_a_repetition_whatever_its_marks_and_case() -> None:
    lesson = "month splits '05|2024' at a hyphen, and there is none in it. Split at the bar and take the first part."
    assert "repeats" in fault(lesson, trial=TRIAL, earlier=["Another one.", lesson.upper().replace(",", " –")])
    longer = lesson.replace("take the first part", "take the first part of it")
    assert "repeats" in fault(longer, trial=TRIAL, earlier=[lesson])


def test_a_lesson_that_goes_on_from_an_earlier_one_is_no_repetition() -> None:
    first = "month splits '05|2024' at a hyphen, and there is none in it. Split at the bar."
    then = "month splits at the bar now, but '|2024' has no month before it: return 0 there, as the task says."
    assert fault(then, trial=TRIAL, earlier=[first]) == ""


@each_row(
    "lesson",
    [
        "The program is wrong. The next attempt must handle all edge cases and return the correct value.",
        "Make sure to read the task carefully and to test the function with more examples.",
        "You're right. I'll make sure to provide a more accurate answer.",
        "Here's a possible solution:",
        "The plate has to be rinsed before it goes onto the shelf.",
        "999",
        "1. Read the task.\n5. Be careful.",
        "...",
    ],
)
def test_a_lesson_that_would_fit_any_trial_is_not_grounded(lesson: str) -> None:
    assert "too general" in fault(lesson, trial=TRIAL)


@pytest.mark.parametrize(
    "lesson",
    [
        "The answer to '05|2024' is 5.",
        "Do not call int.split there.",
        "It never ends at 5. Mind that.",
        "Die Zahl 2024 gehört nicht dazu.",
        "05|2024だ",
    ],
)
def test_one_value_or_name_of_the_trial_is_enough(lesson: str) -> None:
    assert fault(lesson, trial=TRIAL) == ""


def test_a_script_without_spaces_is_compared_by_pairs_of_characters() -> None:
    trial = ["写一个函数，返回日期中的月份。", "没有月份时应返回零。"]
    assert fault("下次遇到没有月份的文本要先检查。", trial=trial) == ""
    assert "too general" in fault("请再仔细一点。", trial=trial)


def test_where_the_trial_has_nothing_to_be_named_nothing_needs_to_be() -> None:
    assert fault("Say right.", trial=["say it", "wrong", ""]) == ""


def test_a_value_inside_another_is_not_shared() -> None:
    assert "too general" in fault("Return 202 instead.", trial=TRIAL)


@pytest.mark.light_cases(2)
@pytest.mark.parametrize("much", ["_", "x", "1,", "'", "a_", "3. ", "词"])
def test_a_huge_trial_is_read_in_time_that_grows_with_its_length(much: str) -> None:
    huge = much * 200_000
    for lesson in ("Look twice.", huge[:20_000]):
        assert isinstance(fault(lesson, trial=[huge], examples=[EXAMPLE], earlier=[EXAMPLE]), str)


texts = st.text(max_size=200)


@given(texts, st.lists(texts, max_size=3), st.lists(texts, max_size=2), st.lists(texts, max_size=2))
def test_any_texts_get_a_sentence_or_nothing(
    lesson: str, trial: list[str], shown: list[str], earlier: list[str]
) -> None:
    said = fault(lesson, trial=trial, examples=shown, earlier=earlier)
    assert said == "" or said.endswith(".")


@given(st.lists(st.from_regex(r"[a-z]{9,12}", fullmatch=True), min_size=6, max_size=30, unique=True))
def test_a_lesson_of_the_words_of_its_trial_is_shown_until_it_comes_again(words: list[str]) -> None:
    lesson = " ".join(words)
    assert fault(lesson, trial=[lesson[::-1], words[0]], examples=[EXAMPLE]) == ""
    assert "repeats" in fault(lesson, trial=[lesson], earlier=[lesson])
    assert "copies" in fault(lesson, trial=[words[0]], examples=[lesson])


def test_words_of_ascii_are_those_of_any_text() -> None:
    text = "".join(map(chr, range(128))) + " It's x_1, A-B: 3.5%"
    assert words_of(text) == words_of(f"{text} é")[:-1]
