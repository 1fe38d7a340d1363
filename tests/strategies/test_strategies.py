"""What each strategy shows of the past, over any episode: the windows, the order, and nothing it should not show."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Attempt, Episode, Feedback, Recall, Reflection, Task, Trial
from mulligan.strategies.evidence_and_reflexion import EvidenceAndReflexion
from mulligan.strategies.last_attempt import LastAttempt
from mulligan.strategies.last_attempt_and_reflexion import LastAttemptAndReflexion
from mulligan.strategies.none import Resampling
from mulligan.strategies.reflexion import Reflexion


def failed(number: int, lesson: str | None) -> Trial:
    reflection = None if lesson is None else Reflection(lesson)
    return Trial(number, Attempt(f"attempt {number}"), Feedback(False, "wrong"), reflection)


episodes = st.lists(st.none() | st.text(min_size=1), max_size=12).map(
    lambda lessons: Episode(
        "e.1", Task("t"), recall=Recall("r"), trials=tuple(failed(n, text) for n, text in enumerate(lessons, 1))
    )
)


@given(episodes)
def test_resampling_shows_nothing_of_the_past(episode: Episode) -> None:
    past = Resampling().past(episode)
    assert (past.last, past.reflections, past.recall) == (None, (), episode.recall)
    assert not Resampling.reflects


@given(episodes)
def test_last_attempt_shows_the_newest_trial_and_wants_no_reflections(episode: Episode) -> None:
    past = LastAttempt().past(episode)
    assert past.last == (episode.trials[-1] if episode.trials else None)
    assert past.reflections == ()
    assert not LastAttempt.reflects


@given(episodes, st.none() | st.integers(1, 6))
def test_the_window_keeps_the_newest_oldest_first(episode: Episode, window: int | None) -> None:
    lessons = [t.reflection for t in episode.trials if t.reflection]
    expected = tuple(lessons if window is None else lessons[-window:])
    alone, both = Reflexion(window=window).past(episode), LastAttemptAndReflexion(window=window).past(episode)
    assert alone.reflections == both.reflections == expected
    assert alone.last is None
    assert both.last == (episode.trials[-1] if episode.trials else None)


def test_the_default_window_is_three() -> None:
    trials = tuple(failed(n, f"lesson {n}") for n in range(1, 6))
    past = Reflexion().past(Episode("e.1", Task("t"), trials=trials))
    assert [r.text for r in past.reflections] == ["lesson 3", "lesson 4", "lesson 5"]


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        Reflexion(window=0).past(Episode("e.1", Task("t"), trials=(failed(1, "x"),)))


def test_a_withheld_reflection_is_not_shown_and_no_older_one_instead() -> None:
    kept = [failed(n, f"lesson {n}") for n in range(1, 6)]
    kept[3] = replace(kept[3], reflection=Reflection("lesson 4", withheld="It copies a worked example."))
    episode = Episode("e.1", Task("t"), trials=tuple(kept))
    for strategy in (Reflexion(), LastAttemptAndReflexion()):
        assert [r.text for r in strategy.past(episode).reflections] == ["lesson 3", "lesson 5"]
    assert episode.reflections[3].text == "lesson 4", "the record keeps it"


def test_where_the_newest_lesson_is_withheld_the_evidence_stands_alone() -> None:
    kept = (failed(1, "lesson 1"), replace(failed(2, None), reflection=Reflection("copy", withheld="It copies.")))
    past = EvidenceAndReflexion().past(Episode("e.1", Task("t"), trials=kept))
    assert past.reflections == ()
    assert past.evidence
