"""exact_match, contains and regex: verdicts on the text of an attempt, and what they refuse before it."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Evaluator
from mulligan.core.records import Attempt, Episode, Feedback, Outcome, Task, Trial
from mulligan.evaluators.contains import Contains
from mulligan.evaluators.exact_match import ExactMatch, normalise
from mulligan.evaluators.regex import Regex
from mulligan.sandbox.local import LocalSandbox


def attempt(output: str) -> Episode:
    """An episode whose newest attempt is this one; an older one said "old"."""
    return Episode("e.1", Task("t"), trials=(Trial(1, Attempt("old"), Feedback(False)), Trial(2, Attempt(output))))


async def passed(evaluator: Evaluator, output: str) -> bool | None:
    return (await evaluator.evaluate(attempt(output))).passed


# --- exact_match ------------------------------------------------------------------------------------------------

words = st.text(string.ascii_letters + string.digits + string.punctuation + " \n\té", max_size=30)


@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


async def test_no_answer_says_why_it_was_halted() -> None:
    halted = Attempt("", outcome=Outcome(halted="6 steps were used up"))
    said = await ExactMatch(answer="Erle").evaluate(Episode("e.1", Task("t"), trials=(Trial(1, halted),)))
    assert said.text == "There is no answer: 6 steps were used up."
    assert (await ExactMatch(answer="Erle").evaluate(attempt(""))).text == "There is no answer."


@given(words, st.sampled_from(string.punctuation), st.sampled_from(["a", "an", "the", "The", "AN"]))
def test_case_punctuation_articles_and_space_do_not_count(text: str, mark: str, article: str) -> None:
    plain = normalise(text)
    for same in (text.upper(), text.lower(), f"{mark}{text}{mark}", f"{article} {text}", f"{text}\n {article}"):
        assert normalise(same) == plain


@given(words)
def test_what_normalising_leaves(text: str) -> None:
    left = normalise(text)
    assert not set(left) & set(string.punctuation + string.ascii_uppercase + "\n\t")
    assert not set(left.split(" ")) & {"a", "an", "the"}
    assert "  " not in left


def test_the_order_of_the_rule() -> None:
    assert normalise("The Man-at-Arms, an  A.N. Other!") == "manatarms other", "punctuation goes before articles"
    assert normalise("«The» 中文") == "« » 中文", "only ASCII punctuation goes"


async def test_an_answer_is_matched() -> None:
    judge = ExactMatch(answer="The Eiffel Tower")
    assert await judge.evaluate(attempt(" eiffel tower.\n")) == Feedback(
        True, "The answer is right.", source="exact_match"
    )
    assert await passed(judge, "old") is False
    assert await passed(ExactMatch(answers=["Paris", "Paree"]), "PAREE!") is True


async def test_the_text_never_tells_the_answer() -> None:
    for oracle, source in ((False, "exact_match"), (True, "oracle")):
        judge = ExactMatch(answer="Zanzibar", oracle=oracle)
        for output in ("Paris", "", "a long way off, but not so long as one might have thought, is Zanzibar"):
            told = await judge.evaluate(attempt(output))
            assert told.passed is False
            assert told.source == source
            assert told.text
            assert "zanzibar" not in told.text.lower()


@pytest.mark.parametrize(
    "wrong", [{}, {"answer": "x", "answers": ["y"]}, {"answers": []}, {"answer": "The"}, {"answer": ""}]
)
def test_an_answer_that_cannot_work_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="answer"):
        ExactMatch(**wrong)  # pyright: ignore[reportArgumentType]


# --- contains ---------------------------------------------------------------------------------------------------


async def test_all_must_be_there_and_the_missing_are_named() -> None:
    told = await Contains(text=["alpha", "beta", "gamma"]).evaluate(attempt("beta and more"))
    assert told == Feedback(False, "Missing from the output: 'alpha', 'gamma'.", score=1 / 3, source="contains")
    assert (await Contains(text="alpha").evaluate(attempt("an alpha"))).passed is True


async def test_any_will_do() -> None:
    judge = Contains(text=["alpha", "beta"], match="any")
    assert (await judge.evaluate(attempt("beta"))).passed is True
    told = await judge.evaluate(attempt("old"))
    assert told == Feedback(False, "None of these is in the output: 'alpha', 'beta'.", score=0.0, source="contains")


async def test_case_counts_unless_told_otherwise() -> None:
    assert await passed(Contains(text="Straße"), "STRASSE") is False
    assert await passed(Contains(text="Straße", ignore_case=True), "STRASSE") is True


@pytest.mark.parametrize("wrong", [{"text": ""}, {"text": []}, {"text": ["a", ""]}, {"text": "a", "match": "none"}])
def test_contains_refuses_what_cannot_work(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="contains"):
        Contains(**wrong)  # pyright: ignore[reportArgumentType]


# --- regex ------------------------------------------------------------------------------------------------------


async def test_a_pattern_is_searched() -> None:
    judge = Regex(pattern=r"^\d{4}$", flags="m", sandbox=LocalSandbox())
    assert await judge.evaluate(attempt("in\n1984\n")) == Feedback(
        True, r"The output matches `^\d{4}$`.", source="regex"
    )
    assert await judge.evaluate(attempt("in 1984")) == Feedback(
        False, r"The output does not match `^\d{4}$`.", source="regex"
    )
    assert await passed(Regex(pattern="(?i)É 中", flags="", sandbox=LocalSandbox()), "é 中\ud800") is True


async def test_a_pattern_that_takes_for_ever_is_ended_and_the_verdict_unknown() -> None:
    judge = Regex(pattern=r"(a+)+$", sandbox=LocalSandbox(), seconds=0.5)
    told = await judge.evaluate(attempt("a" * 40 + "!"))
    assert told.passed is None
    assert "0.5 s" in told.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pattern": "(a"}, r"`\(a` cannot be used: missing \), unterminated subpattern at character 1"),
        ({"pattern": "a\nb**"}, "multiple repeat at line 2, column 3"),
        ({"pattern": "a", "flags": "iz"}, "flags must be letters from aimsx, not 'z'"),
        ({"pattern": "a", "seconds": 0}, "seconds must be greater than 0"),
    ],
)
def test_a_pattern_that_is_none_is_refused_with_its_place(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Regex(sandbox=LocalSandbox(), **settings)  # pyright: ignore[reportArgumentType]
