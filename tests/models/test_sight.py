"""What a model that cannot see is sent instead of images, and what that costs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import mulligan
from mulligan.app.trusting import trust
from mulligan.core.errors import InvalidInput, OverBudget
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter, scope
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Attempt, Episode, Feedback, Image, Step, Task, Trial
from mulligan.models.gate import Gate, estimate
from mulligan.models.scripted import ScriptedModel
from mulligan.models.sight import Describer
from mulligan.recording.journal import StoredJournal
from mulligan.recording.ledger import Ledger
from mulligan.store import open_store
from mulligan.text.images import with_images

ONE, TWO = Image("image/png", b"one"), Image("image/png", b"two")
ASKED = Question((Message("system", "Be brief."), Message("user", "What now?", (ONE, TWO))))
GIF = Image(
    "image/gif", b"GIF89a\x01\x00\x01\x00\x00\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)


async def drive(store: Any, blind: ScriptedModel, vision: ScriptedModel, move: str, limits: Limits = Limits()) -> Meter:
    """One drive of the episode, in which this move asks the blind model."""
    meter = Meter()
    async with Ledger(store).hold("e") as entry:
        journal = StoredJournal(entry)
        options: dict[str, Any] = {"journal": journal, "meter": meter, "limits": limits}
        describer = Describer(Gate(vision, role="vision", **options), journal, meter)
        with scope("trial.1", move):
            await Gate(blind, role="actor", describer=describer, **options).ask(ASKED, Sampling())
    return meter


async def test_each_image_is_described_once_and_counted_once_whoever_asks_and_resumes() -> None:
    async with open_store("memory:") as store:
        await store.create(Episode("e", Task("p")))
        blind, vision = ScriptedModel(["a", "b"], sees=False), ScriptedModel(["a red page", "a blue page"], "v")
        first = await drive(store, blind, vision, "act")
        assert blind.questions[0].messages[-1].text == snapshot("""\
What now?

Image 1 of 2 (image/png, 1 kB), in the words of a model that saw it:
```
a red page
```

Image 2 of 2 (image/png, 1 kB), in the words of a model that saw it:
```
a blue page
```\
""")
        assert not any(message.images for message in blind.questions[0].messages)
        assert vision.questions[0] == snapshot(
            Question(
                messages=(
                    Message(
                        role="system",
                        text="You look at images for a model that cannot see them. State what can be seen, and guess nothing.",
                    ),
                    Message(
                        role="user",
                        text="Describe this image for somebody who has to work with it and cannot see it. Begin with what it shows as a whole. Then give every text in it word for word, and every control with its label, its place and its state.",
                        images=(Image(media_type="image/png", data=b"one"),),
                    ),
                )
            )
        )
        assert first.usage.calls == 3
        again = await drive(store, blind, vision, "act")  # the move was cut short: its calls are counted again
        assert again.usage == first.usage
        later = await drive(store, blind, vision, "reflect")
        assert later.usage.calls == 1
        assert (len(blind.questions), len(vision.questions)) == (2, 2)


async def test_the_budget_holds_for_descriptions() -> None:
    async with open_store("memory:") as store:
        await store.create(Episode("e", Task("p")))
        blind, vision = ScriptedModel(["a"], sees=False), ScriptedModel(["page"] * 2, "v")
        with pytest.raises(OverBudget, match="the next question alone takes about 1"):
            await drive(store, blind, vision, "act", Limits(tokens=1000))
        assert (blind.questions, vision.questions) == ([], [])


def test_a_task_whose_image_cannot_be_conveyed_is_refused_before_any_call() -> None:
    blind, vision = ScriptedModel(["a"], sees=False), ScriptedModel(["a red page"], "vision")
    task, options = Task("What is it?", images=(GIF,)), {"evaluator": "contains:a", "trials": 1}
    with pytest.raises(InvalidInput, match=r"the actor \(scripted\) cannot read images.*vision_model="):
        asyncio.run(mulligan.solve(task, model=blind, store=open_store("memory:"), **options))  # pyright: ignore[reportArgumentType]
    assert blind.questions == []
    with pytest.raises(InvalidInput, match="The vision model scripted cannot read images"):
        asyncio.run(mulligan.solve(task, model=vision, vision_model=blind, **options))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="not in any of the formats PNG, JPEG, WebP, GIF"):
        asyncio.run(mulligan.solve(replace(task, images=(ONE,)), model=vision, **options))  # pyright: ignore[reportArgumentType]


def test_the_role_vision_describes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seen.json").write_text('["a red page"]')
    (tmp_path / "mulligan.toml").write_text('[models]\nvision = "scripted:seen.json"\n')
    trust(tmp_path)
    monkeypatch.chdir(tmp_path)
    blind = ScriptedModel(["a"], "blind", sees=False)
    task = Task("What is it?", images=(GIF,))
    episode = mulligan.solve_sync(task, model=blind, evaluator="contains:a", trials=1)
    assert episode.solved
    assert "a red page" in blind.questions[0].messages[-1].text
    assert set(episode.head.models) == {"actor", "vision", "reflector"}
    assert episode.usage.calls == 2


IMAGES = st.lists(st.binary(min_size=1, max_size=3).map(lambda data: Image("image/png", data)), max_size=6).map(tuple)


@given(IMAGES, IMAGES, IMAGES, st.integers(0, 5))
def test_no_question_holds_more_images_than_are_allowed(
    of_task: tuple[Image, ...], seen: tuple[Image, ...], judged: tuple[Image, ...], most: int
) -> None:
    trial = Trial(1, Attempt("x", (Step(images=seen),)), Feedback(False, "no", images=judged))
    episode = Episode("e", Task("p", images=of_task), trials=(trial,))
    *_, last = with_images((Message("user", "Why?"),), episode, most)
    there = {*of_task, *(judged or seen[-2:])}
    assert len(last.images) == len(set(last.images)) == min(most, len(there))
    assert set(last.images) <= there
    left = len(there) - len(last.images)
    assert (f"{left} more" in last.text) == (left > 0)
    assert estimate(Question((last,))) == estimate(Question((replace(last, images=()),))) + 1000 * len(last.images)
