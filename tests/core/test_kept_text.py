"""What a record keeps of a very long text: head and tail, and in its place what is missing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mulligan import Episode, Feedback, ScriptedModel, Step, solve
from mulligan.core.codec import from_json, to_json
from mulligan.core.records import TEXT_KEPT, kept_text


def test_up_to_the_limit_nothing_is_changed() -> None:
    text = "x" * TEXT_KEPT
    assert Feedback(False, text).text == text
    assert Step(text, text, text) == Step(observation=text, thought=text, action=text)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.text(min_size=1, max_size=20), st.integers(1, 3))
def test_what_is_longer_keeps_head_tail_length_and_hash(piece: str, times: int) -> None:
    text = piece * (times * TEXT_KEPT // len(piece) + 1)
    kept = kept_text(text)
    assert len(kept) <= TEXT_KEPT
    assert kept.startswith(text[:400_000])
    assert kept.endswith(text[-400_000:])
    assert f"of {len(text):,} characters are not kept" in kept
    assert hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() in kept
    assert kept_text(kept) == kept


def test_a_record_that_is_read_again_is_the_same() -> None:
    feedback = Feedback(False, "y" * (TEXT_KEPT + 1))
    assert from_json(Feedback, to_json(feedback)) == feedback
    assert len(feedback.text) <= TEXT_KEPT
    assert len(Step(observation="z" * 3 * TEXT_KEPT).observation) <= TEXT_KEPT


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


class Verbose:
    """An evaluator that says 20 million characters."""

    expects = "text"

    async def evaluate(self, episode: Episode) -> Feedback:
        return Feedback(False, "first " + "x" * 20_000_000 + " last", source="verbose")


@pytest.mark.slow
async def test_a_store_does_not_grow_by_what_an_evaluator_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    model = ScriptedModel(lambda question, sampling: "word")
    episode = await solve("say a word", model=model, evaluator=Verbose(), strategy="last_attempt", trials=2)  # pyright: ignore
    assert [len(trial.feedback.text) <= TEXT_KEPT for trial in episode.trials if trial.feedback] == [True, True]
    assert size(tmp_path) < 6_000_000
