"""What is written for the user and what ships: it reads without a problem, and nothing is ever overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.agentfile.reading import read_agent
from mulligan.agentfile.scaffold import KINDS, add, builtin_agents, check_name, init, kebab
from mulligan.core.errors import InvalidInput, UnknownName

AGENTS = [kind for kind in KINDS if kind != "skill"]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("kind", AGENTS)
def test_every_scaffold_reads_without_a_problem(tmp_path: Path, kind: str) -> None:
    files = add(kind, "my-agent", tmp_path)
    agent, problems = read_agent(tmp_path / "agents" / "my-agent", [], strict=True)
    assert problems == []
    assert agent
    assert (agent.name, agent.pattern, set(files)) == ("my-agent", kind, {s.path for s in agent.sources})
    assert "{{" not in "".join(file.read_text() for file in files)


def test_a_skill_can_be_used_by_an_agent(tmp_path: Path) -> None:
    add("skill", "my-skill", tmp_path)
    (file, *_) = add("react", "my-agent", tmp_path)
    file.write_text(file.read_text().replace("# call:\n#   uses: [NAME]", "call:\n  uses: [my-skill]"))
    agent, problems = read_agent(file.parent, [tmp_path / "skills"], strict=True)
    assert problems == []
    assert agent
    assert agent.skills["my-skill"].tools == ("list_files", "read_file")


@pytest.mark.parametrize("name", ["answerer", "code-improver", "writer"])
def test_every_agent_that_ships_reads_without_a_problem(name: str) -> None:
    folder = builtin_agents()[name]
    agent, problems = read_agent(folder, [], strict=True)
    assert problems == []
    assert agent
    assert (agent.name, agent.pattern) == (folder.name, "reflexion")
    assert agent.reflect
    assert {agent.act.pattern, agent.reflect.pattern} == {"oneshot"}


def test_nothing_that_is_there_is_overwritten(tmp_path: Path) -> None:
    add("oneshot", "a", tmp_path)
    (tmp_path / "agents" / "file").write_text("x")
    (tmp_path / "agents" / "link").symlink_to(tmp_path / "nowhere")
    before = tree(tmp_path)
    for name in ("a", "file", "link"):
        with pytest.raises(InvalidInput, match=r"already exists\. Nothing was changed"):
            add("reflexion", name, tmp_path)
    assert tree(tmp_path) == before
    assert sorted(path.name for path in (tmp_path / "agents").iterdir()) == ["a", "file", "link"]


def test_a_folder_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "agents").write_text("no folder")
    with pytest.raises(InvalidInput, match="cannot be written"):
        add("oneshot", "a", tmp_path)
    assert tree(tmp_path) == {"agents": b"no folder"}


def test_an_unknown_kind_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'reflexion'"):
        add("reflection", "a", tmp_path)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("My Agent", "my-agent"),
        ("codeImprover", "code-improver"),
        ("HTTPServer_2", "http-server-2"),
        ("-a--b-", "a-b"),
        ("Zoë", "zoe"),
        ("../x", "x"),
        ("a" * 65, "a" * 64),
        ("é" * 70, "e" * 64),
        ("日本", ""),
        ("", ""),
    ],
)
def test_a_name_that_cannot_be_one_is_refused_with_what_was_meant(tmp_path: Path, name: str, meant: str) -> None:
    with pytest.raises(InvalidInput) as bad:
        add("oneshot", name, tmp_path)
    assert kebab(name) == meant
    assert str(bad.value).endswith(f" Write {meant}." if meant else f"not {name!r}.")
    assert tree(tmp_path) == {}


@given(st.text())
def test_what_is_suggested_is_a_name(text: str) -> None:
    if kebab(text):
        check_name("agent", kebab(text))


def test_init_writes_a_project(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "my-project"
    written = init(folder, "my-project")
    assert {str(file.relative_to(folder)) for file in written} == set(tree(folder))
    assert set(tree(folder)) == {".env.example", ".gitignore", "agents/.gitkeep", "mulligan.toml"}
    assert tree(folder)[".gitignore"] == b".env\n.mulligan/\n"
    assert b'name = "my-project"' in tree(folder)["mulligan.toml"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b".env\n.mulligan/\n"),
        (b"\xff\n*.log", b"\xff\n*.log\n.env\n.mulligan/\n"),
        (b"*.log\r\n/.env\r\n", b"*.log\r\n/.env\r\n.mulligan/\n"),
        (b".mulligan\n.env\n", b".mulligan\n.env\n"),
    ],
)
def test_init_adds_to_a_gitignore_what_it_lacks_and_keeps_the_rest(tmp_path: Path, before: bytes, after: bytes) -> None:
    (tmp_path / ".gitignore").write_bytes(before)
    (tmp_path / ".env.example").write_bytes(b"mine")
    (tmp_path / "agents").mkdir()
    written = [file.name for file in init(tmp_path, "x")]
    assert written == ([".gitignore"] if before != after else []) + ["mulligan.toml"]
    assert tree(tmp_path)[".gitignore"] == after
    assert tree(tmp_path)[".env.example"] == b"mine"


def test_init_changes_nothing_where_a_project_is_or_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "mulligan.toml").write_text("mine")
    with pytest.raises(InvalidInput, match=r"already exists\. Nothing was changed"):
        init(tmp_path, "x")
    assert tree(tmp_path) == {"mulligan.toml": b"mine"}
    (tmp_path / "mulligan.toml").unlink()
    (tmp_path / ".gitignore").write_text("mine")
    (tmp_path / "agents").symlink_to(tmp_path / "nowhere")
    (tmp_path / ".env.example").symlink_to(tmp_path / "nowhere" / "x")
    before = sorted(tmp_path.iterdir())
    init(tmp_path, "x")  # links that lead nowhere are there, too
    assert sorted(tmp_path.iterdir()) == [*before, tmp_path / "mulligan.toml"]


def test_init_puts_back_what_it_had_written_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitignore").write_text("mine")
    opened = Path.open

    def full(self: Path, mode: str = "r", *rest: object, **more: object) -> object:
        if (self.name, mode) == ("mulligan.toml", "xb"):
            raise OSError(28, "No space left on device")
        return opened(self, mode, *rest, **more)  # pyright: ignore

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(InvalidInput, match=r"mulligan.toml cannot be written: No space left"):
        init(tmp_path, "x")
    monkeypatch.undo()
    assert tree(tmp_path) == {".gitignore": b"mine"}
    assert [path.name for path in tmp_path.iterdir()] == [".gitignore"]
