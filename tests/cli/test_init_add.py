"""`mulligan init` and `mulligan add`: what they write, where, and what they say comes next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def empty(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = here / "Some Folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_init_here_takes_the_folder_s_name(mulligan: Run, empty: Path) -> None:
    ended = mulligan("init")
    assert ended.status == 0
    assert ended.out.split() == [".gitignore", "agents/.gitkeep", ".env.example", "mulligan.toml"]
    offer, next_step = ended.err.splitlines()
    assert offer.startswith("Optional: lessons in different words are often missed without")
    assert offer.endswith("mulligan models pull minilm-l6-v2")
    assert next_step == "Next: mulligan add reflexion my-agent"
    assert 'name = "some-folder"' in (empty / "mulligan.toml").read_text()
    again = mulligan("init")
    assert (again.status, again.out) == (2, "")
    assert "already exists. Nothing was changed" in again.err


def test_init_makes_the_folder(mulligan: Run, empty: Path) -> None:
    ended = mulligan("init", "my-project")
    assert ended.status == 0
    assert ended.err.endswith("\nNext: cd my-project && mulligan add reflexion my-agent\n")
    assert 'name = "my-project"' in (empty / "my-project" / "mulligan.toml").read_text()
    bad = mulligan("init", "MyProject")
    assert (bad.status, bad.out) == (2, "")
    assert "Write my-project." in bad.err
    assert not (empty / "MyProject").exists()


def test_add_goes_into_the_project(mulligan: Run, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mulligan("init")
    (empty / "deep").mkdir()
    monkeypatch.chdir(empty / "deep")
    ended = mulligan("add", "reflexion", "my-agent")
    assert ended.status == 0
    assert ended.out.split() == [f"../agents/my-agent/{file}.md" for file in ("AGENT", "act", "reflect")]
    assert ended.err == 'Next: mulligan run my-agent "Write a haiku about autumn."\n'
    skill = mulligan("add", "skill", "my-skill")
    assert skill.out == "../skills/my-skill/SKILL.md\n"
    assert "`call: {uses: [my-skill]}`" in skill.err


def test_add_without_a_project_goes_here_and_says_so(mulligan: Run, empty: Path) -> None:
    ended = mulligan("add", "oneshot", "my-agent")
    assert (ended.status, ended.out) == (0, "agents/my-agent/AGENT.md\n")
    assert "There is no mulligan.toml here or above" in ended.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("reflection", "a"), "Did you mean 'reflexion'?"),
        (("react", "My_Agent"), "Write my-agent."),
        (("react",), "Missing argument"),
        (("react", "taken"), "already exists"),
    ],
)
def test_what_cannot_be_added_ends_with_2(mulligan: Run, empty: Path, arguments: tuple[str, ...], says: str) -> None:
    (empty / "agents" / "taken").mkdir(parents=True)
    ended = mulligan("add", *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert says in ended.err
    assert [path.name for path in empty.rglob("*")] == ["agents", "taken"]
