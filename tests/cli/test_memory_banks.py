"""Which banks the commands of `memory` read and change where none was named: in a project, those of hooks, too."""

import asyncio
import json
from pathlib import Path

import pytest
from commands import Mulligan

from mulligan.app.sessions import project_bank
from mulligan.hooks.journal import Journal
from mulligan.hooks.project import PREFIX, USER, project_id
from mulligan.sessions.events import Notice


@pytest.fixture(params=["one store", "two stores"])
def here(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which hooks have learned; its own settings may keep its bank in another store than that of hooks."""
    (project := tmp_path / "shop").mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    if request.param == "two stores":
        monkeypatch.delenv("MULLIGAN_HOME")
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
        monkeypatch.setenv("HOME", str(tmp_path))
        (project / "mulligan.toml").write_text('[memory]\nembedder = "none"\n')
    return project


def learn(bank: str, title: str, content: str) -> str:
    async def add() -> str:
        async with project_bank(bank, embedder="none") as opened:
            return (await opened.add(title=title, content=content)).id

    return asyncio.run(add())


@pytest.fixture
def ids(here: Path) -> dict[str, str]:
    """Lessons of the project's bank, of the user's, and of another project's."""
    with Journal() as journal:
        journal.seen(Notice("claude", "start", "s1", str(here)), project_id(str(here)))
    return {
        "project": learn(project_id(str(here)), "Start the database", "Start the database with `make db` first."),
        "user": learn(USER, "Database ports", "The database listens on port 5433."),
        "other": learn(f"{PREFIX}other", "Another database", "The other database is a file."),
    }


def test_what_hooks_have_learned_is_listed_with_its_bank(mulligan: Mulligan, here: Path, ids: dict[str, str]) -> None:
    own = mulligan("memory", "add", "--title", "Mine", "--content", "By hand.").out.strip()
    rows = mulligan("memory", "list").out
    assert project_id(str(here)) in rows
    assert USER in rows
    listed = {one["id"]: one["agent_id"] for one in json.loads(mulligan("memory", "list", "--json").out)}
    assert listed == {own: "", ids["project"]: project_id(str(here)), ids["user"]: USER}
    assert len(json.loads(mulligan("memory", "list", "--limit", "1", "--json").out)) == 1
    assert [one["id"] for one in json.loads(mulligan("memory", "list", "--bank", USER, "--json").out)] == [ids["user"]]
    assert [one["id"] for one in json.loads(mulligan("memory", "list", "--bank", "", "--json").out)] == [own]
    every = json.loads(mulligan("memory", "list", "--all-banks", "--json").out)
    assert {one["id"] for one in every} == {own, *ids.values()}


def test_what_hooks_have_learned_is_found_with_its_bank(mulligan: Mulligan, here: Path, ids: dict[str, str]) -> None:
    found = mulligan("memory", "search", "start the database", "--threshold", "0").out
    assert "`make db`" in found
    assert f"bank {project_id(str(here))})" in found
    assert "is a file" not in found, "of another project"
    read = json.loads(mulligan("memory", "search", "database", "--threshold", "0", "--json").out)
    assert {one["id"] for one in read["lessons"]} == {ids["project"], ids["user"]}
    assert len(read["recalls"]) == 2


@pytest.mark.slow
def test_an_id_is_found_by_every_command(mulligan: Mulligan, ids: dict[str, str]) -> None:
    for id in ids.values():
        assert id in mulligan("memory", "show", id[:8]).out
        assert "added" in mulligan("memory", "history", id).out
        assert mulligan("memory", "retire", id).out == f"{id}\n"
        assert mulligan("memory", "retire", "--undo", id).status == 0
        assert mulligan("memory", "edit", id, "--title", "New").status == 0
        assert mulligan("memory", "undo", id).status == 0
        assert mulligan("memory", "pin", id).status == mulligan("memory", "pin", "--undo", id).status == 0
        assert mulligan("memory", "rate", id, "0.5").status == 0
    recalls = json.loads(mulligan("memory", "search", "database", "--threshold", "0", "--json").out)["recalls"]
    for recall in recalls:
        assert mulligan("memory", "show", recall).status == 0
        assert mulligan("memory", "outcome", recall, "success").status == 0
    assert mulligan("memory", "purge", ids["other"], "--yes").err.endswith("1 lesson removed\n")
    gone = mulligan("memory", "show", ids["other"])
    assert (gone.status, gone.out) == (2, "")
    assert "There is no lesson" in gone.err


def test_a_named_bank_is_the_only_one(mulligan: Mulligan, ids: dict[str, str]) -> None:
    for command in ("show", "history", "retire"):
        assert mulligan("memory", command, ids["project"], "--bank", USER).status == 2
        assert mulligan("memory", command, ids["project"], "--bank", "").status == 2


def test_banks_are_listed_with_those_that_count_here(mulligan: Mulligan, here: Path, ids: dict[str, str]) -> None:
    banks = json.loads(mulligan("memory", "stats", "--all-banks", "--json").out)
    assert {name for name, of in banks.items() if of["here"]} == {project_id(str(here)), USER}
    assert banks[f"{PREFIX}other"]["lessons"]["active"] == 1
    rows = mulligan("memory", "stats", "--all-banks").out.splitlines()
    names = sorted([f"{PREFIX}other", f"{project_id(str(here))} *", f"{USER} *"])
    assert [row.partition("  ")[0] for row in rows] == ["bank", *names]


def test_stats_and_audit_count_the_project(mulligan: Mulligan, here: Path, ids: dict[str, str]) -> None:
    assert set(json.loads(mulligan("memory", "stats", "--json").out)) == {"", project_id(str(here)), USER}
    mulligan("memory", "retire", ids["project"], "--why", "old")
    assert "old" in mulligan("memory", "history").out
