"""Must show: a form in headless Chromium, a wrong button, feedback with screenshots, a reflection, and the second trial."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from form_story import FIRST, LESSON, SECOND, answer, describe, served, story
from inline_snapshot import snapshot
from pydantic_ai.messages import BinaryContent, ModelRequest, UserPromptPart

from mulligan.core.records import Episode, Image
from mulligan.models.scripted import ScriptedModel
from mulligan.models.wire import messages_of
from mulligan.store import open_store
from mulligan.text.evidence import TaskFeedback
from mulligan.text.images import format_of, sha256_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="needs playwright: pip install playwright"),
]


async def told(tmp_path: Path, model: ScriptedModel, vision: ScriptedModel | None = None) -> Episode:
    with served() as url:
        return await story(tmp_path / "m.db", url, model, vision)


def parts(model: ScriptedModel, number: int) -> list[object]:
    """What goes out with this question, as pydantic-ai takes it."""
    (request,) = [each for each in messages_of(model.questions[number]) if isinstance(each, ModelRequest)][-1:]
    (prompt,) = [part for part in request.parts if isinstance(part, UserPromptPart)][-1:]
    return [prompt.content] if isinstance(prompt.content, str) else list(prompt.content)


async def test_a_model_that_sees_is_sent_the_screens(tmp_path: Path) -> None:
    model = ScriptedModel(answer)
    episode = await told(tmp_path, model)
    assert episode.stop is not None
    assert (episode.solved, episode.stop.detail, len(episode.trials)) == (True, "trial 2 passed", 2)
    assert [[step.action for step in trial.attempt.steps[1:]] for trial in episode.trials] == [FIRST, SECOND]
    first, second = episode.trials
    assert (first.lesson, second.reflection) == (LESSON, None)
    said = TaskFeedback.from_feedback(first.feedback)
    assert said is not None
    assert (said.success, said.error_type, said.actual_state) == (False, "wrong_element", "Your draft was saved.")
    assert isinstance(said.before, Image)
    assert isinstance(said.after, Image)
    assert said.before != said.after
    assert str(format_of(said.before.data)) == "PNG, 320 x 240 pixels"
    assert second.feedback is not None
    assert second.feedback.text.startswith("The task succeeded.\n")

    acting, reflecting = parts(model, 2), parts(model, len(FIRST))
    assert [type(part) for part in acting] == [str, BinaryContent]  # the newest screen
    assert [type(part) for part in reflecting] == [str, BinaryContent, BinaryContent]
    sent = [part.data for part in reflecting if isinstance(part, BinaryContent)]
    assert sent == [said.before.data, said.after.data]
    assert {part.media_type for part in reflecting if isinstance(part, BinaryContent)} == {"image/png"}
    assert str(reflecting[0]).endswith("Images, in this order: 2 of this trial, the newest last.")


async def test_a_model_that_cannot_see_is_sent_words_each_image_described_once(tmp_path: Path) -> None:
    model, vision = ScriptedModel(answer, sees=False), ScriptedModel(describe, "vision")
    episode = await told(tmp_path, model, vision)
    assert episode.solved
    assert not any(message.images for question in model.questions for message in question.messages)
    seen = [sha256_of(question.messages[-1].images[0]) for question in vision.questions]
    assert len(seen) == len(set(seen))
    last = model.questions[len(FIRST)].messages[-1].text
    assert last.count("in the words of a model that saw it:\n```\nA page, with a form or a line of text.\n```") == 2
    async with open_store(tmp_path / "m.db") as store:
        keys = [row.key for row in await store.steps(episode.id) if "/model.vision#" in row.key]
    assert len(keys) == len(seen)


async def test_without_a_vision_model_it_is_told_that_there_was_an_image(tmp_path: Path) -> None:
    model = ScriptedModel(answer, sees=False)
    assert (await told(tmp_path, model)).solved
    *_, before, after = model.questions[len(FIRST)].messages[-1].text.split("\n\n")
    assert before.startswith("Image 1 of 2 (PNG, 320 x 240 pixels, ")
    assert after.partition("): ")[2] == snapshot(
        "You cannot be sent images, and no other model has described this one."
    )


def test_killed_in_its_middle_it_asks_nothing_again(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store, log = tmp_path / "m.db", tmp_path / "calls"

    def run(die_at: int) -> int:
        command = [sys.executable, str(Path(__file__).with_name("form_story.py"))]
        return subprocess.run(
            [*command, str(store), str(log), str(die_at), str(port)], timeout=120, check=False
        ).returncode

    questions = len(FIRST) + 1 + len(SECOND)
    for die_at in (4, len(FIRST) + 1, len(FIRST) + 5):  # in the first trial, while reflecting, in the second trial
        assert run(die_at) == -signal.SIGKILL
    assert run(0) == 0
    assert log.read_text().split() == [str(n) for n in range(1, questions + 1)]

    async def kept() -> Episode:
        async with open_store(store) as at:
            (episode,) = await at.list()
            return episode

    episode = asyncio.run(kept())
    assert episode.solved
    assert [len(trial.attempt.steps) for trial in episode.trials] == [6, 6]
