"""Episodes with the layered and the contrastive reflector, from the first trial to the record; killed in any call."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import mortal_reflector
import pytest
from mortal_reflector import LAYERS, LESSON, LIKE, TASK, attempted, model

import mulligan
from mulligan.app.config import load
from mulligan.core.records import Episode
from mulligan.reflectors.contrastive import PLAIN
from mulligan.store import open_store


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


async def recorded(episode: Episode) -> Episode:
    async with open_store(load().store) as store:
        return await store.load(episode.id)


@pytest.mark.parametrize("calls", [1, 3])
async def test_a_layered_episode(tmp_path: Path, calls: int) -> None:
    asked = model(tmp_path / "log")
    episode = await attempted("layered", calls, asked)
    assert episode.solved
    (reflection, _) = (trial.reflection for trial in (await recorded(episode)).trials)
    assert reflection is not None
    assert reflection.layers == LAYERS
    shown = next(q.messages[-1].text for q in asked.questions if "On habits:" in q.messages[-1].text)
    assert f"On single actions:\n- {LAYERS['tactical']}" in shown


async def test_a_contrastive_episode_takes_the_nearest_solved_one_of_the_bank(tmp_path: Path) -> None:
    first = await attempted("contrastive", 1, model(tmp_path / "log"))
    far = await attempted("contrastive", 1, model(tmp_path / "log"), "Translate the letter of the mayor.")
    second = await attempted("contrastive", 1, asked := model(tmp_path / "log"), LIKE)
    assert [notes_of(episode)[0] for episode in (first, far)] == [PLAIN, PLAIN]
    assert notes_of(second) == (f"contrasted with trial 2 of episode {first.id}, a similar task",)
    compared = next(q.messages[-1].text for q in asked.questions if "that succeeded" in q.messages[-1].text)
    assert f"another task:\n```\n{TASK}\n```" in compared
    assert second.trials[0].lesson == LESSON
    assert await recorded(second) == second


def notes_of(episode: Episode) -> tuple[str, ...]:
    reflection = episode.trials[0].reflection
    return reflection.notes if reflection else ()


@pytest.mark.slow
@pytest.mark.parametrize(("reflector", "calls"), [("layered", 1), ("layered", 3), ("contrastive", 1)])
async def test_killed_in_any_call_it_is_resumed_and_no_finished_call_is_made_again(
    tmp_path: Path, reflector: str, calls: int
) -> None:
    if reflector == "contrastive":
        await attempted(reflector, calls, model(tmp_path / "before"), LIKE)
    number, log = 0, tmp_path / "log"
    while True:
        number, log = number + 1, tmp_path / f"log{number + 1}"
        command = [sys.executable, mortal_reflector.__file__, str(log), reflector, str(calls), str(number)]
        ended = await asyncio.to_thread(subprocess.run, command, timeout=60, capture_output=True, check=False)
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        async with open_store(load().store) as store:
            (episode, *_) = await store.list(limit=1)
        if episode.stop is None:
            episode = await mulligan.resume(episode.id, model=model(log))
            assert episode.solved
            lines = log.read_text().splitlines()
            assert lines[number - 1] == lines[number], "the call that was cut off is made again"
            whole = [*lines[:number], *lines[number + 1 :]]
            assert len(whole) == len(set(whole))
            assert episode.trials[0].reflection is not None
            assert episode.trials[0].reflection.layers == (LAYERS if reflector == "layered" else {})
    assert number > 3
