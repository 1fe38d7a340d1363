"""The quality of a reflection: its parts, how faults relate to them, and who gets one in the record."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import mulligan
from mulligan import ScriptedModel
from mulligan.app.client_led import ClientLed, ClientStep
from mulligan.app.prompts import FilePrompts
from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.records import Attempt, Episode, Feedback, Head, Quality, Reflection, Task, Trial
from mulligan.plugins import fault, quality_of
from mulligan.reflectors.verbal import Verbal
from mulligan.store.sqlite import SqliteStore
from mulligan.text.reflections import after_lesson, rated

TRIAL = (
    "Write a function month(date) that returns the month of a date such as 05|2024, or 0 if there is none.",
    "def month(date):\n    return int(date.split('-')[0])",
    "Tests failed:\nassert month('05|2024') == 5  # month('05|2024') raised ValueError",
)
GOOD = "month('05|2024') raised ValueError because the date is split at a hyphen. Split it at the bar instead."


@pytest.mark.parametrize(
    ("lesson", "low"),
    [
        (GOOD, set[str]()),
        ("The program failed because it is wrong. Next time check all edge cases of the date.", {"specific"}),
        ("month('05|2024'), ValueError, hyphen, bar of the date.", {"causal", "actionable"}),
        ("month('05|2024') raised ValueError since the date has a bar.", {"actionable"}),
        ("Split '05|2024' of the date at the bar.", {"causal"}),
    ],
    ids=["good", "generic", "a list of things", "no advice", "no reason"],
)
def test_each_part_says_what_is_missing(lesson: str, low: set[str]) -> None:
    quality = quality_of(lesson, trial=TRIAL)
    assert {name for name, value in quality.parts.items() if value < 0.5} == low
    assert len(quality.missing) == len(low)


def test_a_repetition_in_other_words_is_hardly_new_and_another_value_makes_it_so() -> None:
    again = "Split it at the bar. month('05|2024') raised ValueError since the date is split at a hyphen."
    assert quality_of(again, trial=TRIAL, earlier=[GOOD]).parts["new"] < 0.2
    other = "month('|2024') returns 5 where 0 is due, because nothing stands before the bar: return 0 then."
    assert quality_of(other, trial=TRIAL, earlier=[GOOD]).parts["new"] > 0.5


@pytest.mark.parametrize(
    ("answers", "told"),
    [(["the Danube"], 0.0), (["Rhine"], 1.0), (["yes"], 1.0), (["05|2024"], 1.0), (["No.", "Danube"], 0.0)],
    ids=["given away", "another", "a common word", "the trial says it itself", "one of several"],
)
def test_an_answer_that_only_the_oracle_knows_is_a_leak(answers: list[str], told: float) -> None:
    lesson = "The date 05|2024 is wrong: yes, answer with the Danube."
    assert quality_of(lesson, trial=TRIAL, answers=answers).parts["no_leak"] == told


def test_what_cannot_be_known_is_left_out() -> None:
    assert set(quality_of("Bitte genauer.", trial=["sag es"]).parts) == {"specific"}
    assert "specific" not in quality_of("Say right.", trial=["say it", "wrong"]).parts


texts = st.text(max_size=120)


@given(texts, st.lists(texts, max_size=3), st.lists(texts, max_size=2), st.lists(texts, max_size=2), st.lists(texts))
def test_any_texts_get_a_score_and_what_is_a_fault_scores_nothing(
    lesson: str, trial: list[str], shown: list[str], earlier: list[str], answers: list[str]
) -> None:
    quality = quality_of(lesson, trial=trial, earlier=earlier, examples=shown, answers=answers)
    assert 0 <= quality.score <= 1
    assert all(0 <= value <= 1 for value in quality.parts.values())
    assert from_json(Quality, to_json(quality)) == quality
    if fault(lesson, trial=trial, examples=[one for one in shown if one], earlier=earlier):
        assert quality.score == 0


@each_row("much", ["_", "x", "1,", "'", "a_", "3. ", "词", ": a", "and add "])
def test_a_huge_trial_is_scored_in_time_that_grows_with_its_length(much: str) -> None:
    huge = much * 20_000
    for lesson in ("Look twice.", huge[:4_000]):
        assert 0 <= quality_of(lesson, trial=[huge], examples=[GOOD], earlier=[GOOD], answers=["x"]).score <= 1


# --- asked for once more --------------------------------------------------------------------------------------------


EPISODE = Episode(
    "e.1", Task(TRIAL[0]), trials=(Trial(1, Attempt(TRIAL[1]), Feedback(False, TRIAL[2], source="tests")),)
)
LOW = (
    "The whole approach is not good enough, and I have to think about it more before the month is out. I should begin "
    "again, and take care of all of the cases that there are."
)


def reflector(*answers: str, **settings: Any) -> tuple[Verbal, ScriptedModel]:
    model = ScriptedModel(list(answers))
    return Verbal(model=model, prompts=FilePrompts(), output="code", **settings), model


async def test_a_lesson_of_low_quality_is_asked_for_once_more_with_what_is_missing() -> None:
    verbal, model = reflector(LOW, GOOD)
    reflection = await verbal.reflect(EPISODE)
    assert reflection is not None
    assert (reflection.text, reflection.notes, reflection.withheld) == (GOOD, (), "")
    assert model.questions[1].messages[-1].text == snapshot(
        """\
That answer cannot be used: It names too little of this trial: steps, values or places of the task, attempt or feedback. \
Answer again, as asked.\
"""
    )


async def test_one_that_stays_low_is_shown_and_marked() -> None:
    verbal, _ = reflector(LOW, LOW.replace("approach", "thing"))
    reflection = await verbal.reflect(EPISODE)
    assert reflection is not None
    assert reflection.withheld == ""
    assert reflection.notes[0].startswith("quality 0.")
    assert "below 0.25, asked for twice: It names too little" in reflection.notes[0]


async def test_a_second_one_that_is_worse_does_not_replace_the_first() -> None:
    verbal, _ = reflector(LOW, "Try harder.")
    reflection = await verbal.reflect(EPISODE)
    assert reflection is not None
    assert (reflection.text, reflection.withheld) == (LOW, "")


async def test_with_zero_only_faults_are_asked_for_once_more() -> None:
    verbal, model = reflector(LOW, quality=0.0)
    await verbal.reflect(EPISODE)
    assert len(model.questions) == 1


@pytest.mark.parametrize("quality", [-0.1, 1.5, float("nan")])
def test_a_threshold_that_no_score_can_have_is_refused(quality: float) -> None:
    with pytest.raises(InvalidInput, match="from 0"):
        reflector(quality=quality)


async def test_a_model_may_judge_as_well() -> None:
    verbal, model = reflector(GOOD, '{"score": 3, "missing": "It forgets the 0."}', judge=True)
    reflection = await verbal.reflect(EPISODE)
    assert reflection is not None
    assert reflection.quality is not None
    assert reflection.quality.parts["judged"] == 0.3
    assert reflection.quality.score < quality_of(GOOD, trial=TRIAL).score
    assert "It forgets the 0." in reflection.quality.missing
    assert GOOD in model.questions[1].messages[-1].text


# --- in the record --------------------------------------------------------------------------------------------------


LAST_LINE = """\
from mulligan.plugins import Reflection


class LastLine:
    async def reflect(self, episode):
        return Reflection(episode.trials[-1].feedback.text)
"""


@pytest.mark.parametrize("name", ["feedback", "./last_line.py"])
async def test_a_reflection_of_any_reflector_is_recorded_with_its_quality(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "last_line.py").write_text(LAST_LINE)
    episode = await mulligan.solve(
        "Name a drink.",
        evaluator="contains:water",
        reflector=name,
        strategy="reflexion",
        model=ScriptedModel(["tea", "water"]),
    )
    assert episode.reflections[0].quality is not None
    assert episode.reflections[0].quality.parts["specific"] == 1.0


async def test_a_reflection_that_a_client_hands_in_has_one_too(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "mulligan.db") as store:
        led = ClientLed(store)
        taken = await led.begin(ClientStep("act", 1, 3, prompt="Name a prime above 8."))
        id, text = taken.episode.id, "9 is no prime because 3 divides it: try 11."
        await led.take(id, ClientStep("evaluate", 1, 3, output="9"))
        await led.take(id, ClientStep("reflect", 1, 3, output="9", score="no", reflection=text))
        kept = (await store.load(id)).reflections[0].quality
    assert kept is not None
    assert kept == quality_of(text, trial=["Name a prime above 8.", "9", "no"])


async def test_cut_off_between_the_two_questions_no_answer_is_asked_for_again(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"evaluator": "contains:water", "strategy": "reflexion"}
    async with SqliteStore(tmp_path / "mulligan.db") as store:
        dying = ScriptedModel(["tea", LOW, ModelError("it is gone")])
        first = await mulligan.solve("Name a drink for the month.", model=dying, store=store, **asked)
        assert first.stop is not None
        assert (first.stop.reason, len(dying.questions)) == ("error", 3)
        living = ScriptedModel(["The answer tea holds no water: name water.", "water"])
        episode = await mulligan.resume(first.id, model=living, store=store)
        assert episode.solved
        assert LOW in living.questions[0].messages[-2].text
        steps = [step.key for step in await store.steps(first.id) if "/reflect/" in step.key]
    assert steps == ["trial.1/reflect/model.reflector#1", "trial.1/reflect/model.reflector#2"]
    assert episode.reflections[0].quality is not None


def test_a_leak_is_seen_by_the_record_alone() -> None:
    role = {"name": "exact_match", "settings": {"answers": ["Danube", "the Danube"], "oracle": True}}
    episode = replace(EPISODE, head=Head(settings={"evaluator": role}))
    given = Reflection("month('05|2024') is wrong because the Danube is due: answer so.")
    kept = rated(given, episode, 1).quality
    assert kept is not None
    assert (kept.score, kept.parts["no_leak"]) == (0.0, 0.0)
    open_answer = {"name": "exact_match", "settings": {"answer": "Danube"}}
    free = rated(given, replace(EPISODE, head=Head(settings={"evaluator": open_answer})), 1).quality
    assert free is not None
    assert "no_leak" not in free.parts


def test_an_empty_reflection_has_no_quality_and_a_given_one_stays() -> None:
    assert rated(Reflection(""), EPISODE, 1).quality is None
    given = Reflection(GOOD, quality=Quality(0.3, {"judged": 0.3}))
    assert rated(given, EPISODE, 1).quality == given.quality


@each_row(
    ("before", "after", "told"),
    [
        (Feedback(False, score=0.2), Feedback(True), "passed"),
        (Feedback(False, score=0.2), Feedback(False, score=0.5), "better"),
        (Feedback(False, score=0.2), Feedback(False, score=0.2), "no better"),
        (Feedback(False), Feedback(False, score=0.2), "no better"),
        (Feedback(False), Feedback(None, "no verdict"), None),
        (Feedback(False), None, None),
    ],
)
def test_what_the_next_trial_did(before: Feedback, after: Feedback | None, told: str | None) -> None:
    trials = (Trial(1, Attempt("a"), before, Reflection(GOOD)), Trial(2, Attempt("b"), after, parent=1))
    assert after_lesson(Episode("e.1", Task("t"), trials=trials), 1) == told
    assert after_lesson(Episode("e.1", Task("t"), trials=trials[:1]), 1) is None


def test_in_a_tree_the_next_trial_is_one_that_grew_from_it() -> None:
    verdicts = (False, False, True, False)
    parents = (None, 1, 1, 2)
    trials = tuple(
        Trial(n, Attempt(str(n)), Feedback(passed), parent=parent)
        for n, (passed, parent) in enumerate(zip(verdicts, parents, strict=True), 1)
    )
    episode = Episode("e.1", Task("t"), trials=trials)
    assert [after_lesson(episode, n) for n in range(1, 5)] == ["no better", "no better", None, None]
