"""What of the past a reader is shown where nobody chose it: the nearest lessons, or the facts of its project whole."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wire_client import Wire, running

import mulligan
from mulligan.core.records import Episode

SETTINGS = '[memory]\nembedder = "none"\nlearn_share = 0\n'
FACTS = ("apple", "birch", "cedar", "daphne", "elder")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, a repository of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "mulligan.toml").write_text(SETTINGS)
    (folder / ".gitignore").write_text("*\n")
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *command], cwd=folder, check=True, timeout=60)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(autouse=True)
async def bank(project: Path) -> None:
    """Five facts of this project, in the bank `mine`; the task is near to none of them."""
    async with mulligan.Bank.open("mine") as opened:
        for name in FACTS:
            await opened.add(f"Code of {name}", f"The code of {name} is {name.upper()}.", nature="fact")


@pytest.fixture
def provider() -> Iterator[Wire]:
    with running() as wire:
        yield wire


async def asked(**given: Any) -> Episode:
    return await mulligan.solve("Write down the answer.", trials=1, bank="mine", **given)


def shown(episode: Episode) -> list[str]:
    assert episode.recall is not None
    return [name for name in FACTS if name.upper() in episode.recall.formatted_prompt]


@pytest.mark.slow
async def test_a_model_of_a_provider_is_shown_all_facts_of_the_project(
    provider: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    provider.plays({"answer": "42"})
    assert shown(await asked(model="openai:gpt-4o-mini", evaluator="exact_match:42")) == [*FACTS]


@pytest.mark.slow
async def test_a_command_line_agent_is_shown_all_facts_of_the_project(project: Path) -> None:
    episode = await asked(actor="command:touch done", check="test -e done", workspace=str(project))
    assert (episode.solved, shown(episode)) == (True, [*FACTS])


async def test_a_small_model_is_shown_the_nearest_lessons_alone(project: Path) -> None:
    (project / "script.json").write_text(json.dumps(["42"]))
    assert shown(await asked(model="scripted:script.json", evaluator="exact_match:42")) == []


async def test_what_somebody_chose_holds_for_every_reader(project: Path) -> None:
    (project / "script.json").write_text(json.dumps(["42", "42"]))
    given: dict[str, Any] = {"model": "scripted:script.json", "evaluator": "exact_match:42"}
    assert shown(await asked(**given, settings={"memory": {"forms": ["notebook"]}})) == [*FACTS]
    (project / "mulligan.toml").write_text(f'{SETTINGS}forms = ["notebook"]\n')
    assert shown(await asked(**given)) == [*FACTS]
