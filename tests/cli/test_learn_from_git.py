"""`mulligan learn --from-git`: sessions of strangers in a repository's refs; and a folder of transcripts at once."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agent_transcripts import in_format

from mulligan.app.sessions import project_bank
from mulligan.core.lessons import Selection
from mulligan.core.records import Lesson
from mulligan.hooks.project import project_id
from mulligan.hooks.recall import Reader
from mulligan.sessions.signature import keys

Run = Callable[..., Any]
MISSING = "ModuleNotFoundError: No module named 'yaml'"
FAILS = ("sh", "pytest tests", MISSING, 1)
STORY = (("user", "Build it."), FAILS, ("sh", "pip install pyyaml", "ok", 0), ("sh", "pytest tests", "1 passed", 0))
OTHER = (("user", "Go on."), ("agent", "I do."), ("sh", "make", "ok", 0), ("user", "No, use uv in this repository."))


@pytest.fixture
def repository(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(here / "data"))
    monkeypatch.setenv("HOME", str(here / "home"))
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)
    folder = here / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git(folder, "init", "-q")
    return folder


def git(folder: Path, *arguments: str, given: str = "", author: str = "Ada") -> str:
    who = {"NAME": author, "EMAIL": "a@example.org", "DATE": "2026-05-01T10:00:00Z"}
    environ = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    ran = subprocess.run(
        ["git", *arguments], cwd=folder, input=given, capture_output=True, text=True, check=True, timeout=60,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(folder.parent), **environ},
    )  # fmt: skip
    return ran.stdout.strip()


def stored(folder: Path, ref: str, files: Mapping[str, str], author: str = "Ada", parent: str = "") -> str:
    """A commit with these files beside those of its parent, in a ref."""
    index = {"GIT_INDEX_FILE": str(folder / ".git" / "made-up")}
    (folder / ".git" / "made-up").unlink(missing_ok=True)
    listed = git(folder, "ls-tree", "-r", parent) + "\n" if parent else ""
    for path, text in files.items():
        listed += f"100644 blob {git(folder, 'hash-object', '-w', '--stdin', given=text)}\t{path}\n"
    run = ["git", "update-index", "--add", "--index-info"]
    subprocess.run(
        run, cwd=folder, input=listed, text=True, check=True, timeout=60, env={"PATH": "/usr/bin:/bin", **index}
    )
    tree = subprocess.run(
        ["git", "write-tree"], cwd=folder, capture_output=True, text=True, check=True, timeout=60,
        env={"PATH": "/usr/bin:/bin", **index},
    ).stdout.strip()  # fmt: skip
    commit = git(folder, "commit-tree", tree, *(("-p", parent) if parent else ()), given="m", author=author)
    git(folder, "update-ref", ref, commit)
    return commit


def about(session: str, agent: str, at: str) -> str:
    return json.dumps({"session_id": session, "agent": agent, "created_at": at})


def both_forms(folder: Path) -> None:
    """A branch with two checkpoints of two people, one of a session that went on; and a ref for one checkpoint."""
    claude, gemini = in_format("claude", STORY, session="s1"), in_format("gemini", OTHER, session="s2")
    begun = "".join(claude.splitlines(keepends=True)[:3])
    first = {"ab/cdef012345/metadata.json": "{}", "ab/cdef012345/0/full.jsonl": begun}
    first["ab/cdef012345/0/metadata.json"] = about("s1", "Claude Code", "2026-05-01T10:00:00Z")
    branch = "refs/heads/entire/checkpoints/v1"
    parent = stored(folder, branch, first, "Ada")
    half = claude.find("\n", len(claude) // 2) + 1
    second = {"cd/ef01234567/0/full.jsonl.001": claude[:half], "cd/ef01234567/0/full.jsonl.002": claude[half:]}
    second["cd/ef01234567/0/metadata.json"] = about("s1", "Claude Code", "2026-05-02T10:00:00Z")
    stored(folder, branch, second, "Bea", parent)
    third = {"0/full.jsonl": gemini, "0/metadata.json": about("s2", "Gemini CLI", "2026-05-03T10:00:00Z")}
    stored(folder, "refs/entire/checkpoints/JV/01M3WE2VX9HQC3NVY9BWYCW6JV", third, "Cleo")


@pytest.fixture
def learn(mulligan: Run) -> Callable[..., str]:
    """Runs `mulligan learn` and gives all that it prints."""

    def run(*arguments: str, status: int = 0) -> str:
        ran = mulligan("learn", *arguments)
        assert ran.status == status, ran.err
        return ran.out + ran.err

    return run


def lessons(folder: Path) -> list[Lesson]:
    async def listed() -> list[Lesson]:
        async with project_bank(project_id(str(folder))) as bank:
            return [*await bank.list(Selection(("active", "quarantined"), tag="hook", limit=None))]

    return asyncio.run(listed())


def shown(folder: Path) -> list[str]:
    with closing(Reader(project_id(str(folder)))) as reader:
        return [one.id for one in (*reader.about(keys(MISSING)), *reader.rules([]))]


@pytest.mark.slow
def test_what_strangers_sessions_teach_waits_for_a_person(
    repository: Path, learn: Callable[..., str], mulligan: Run
) -> None:
    both_forms(repository)
    dry = learn("--from-git", "--dry-run")
    assert dry.index("claude s1 by Bea") < dry.index("gemini s2 by Cleo")
    assert lessons(repository) == []
    out = learn("--from-git")
    assert "2 sessions of 2 authors" in out
    kept = lessons(repository)
    assert {(one.state, one.confirmed, one.context["author"]) for one in kept} == {
        ("quarantined", False, "Bea"),
        ("quarantined", False, "Cleo"),
    }
    assert shown(repository) == []
    assert "0 candidates learned" in learn("--from-git")
    assert len(lessons(repository)) == 2


def test_a_person_keeps_one_and_it_is_shown(repository: Path, learn: Callable[..., str], mulligan: Run) -> None:
    both_forms(repository)
    learn("--from-git")
    (pair,) = [one for one in lessons(repository) if one.context.get("mends")]
    listed = mulligan("memory", "review").out
    assert pair.id in listed
    assert "Bea" in listed
    assert mulligan("memory", "review", "--keep", pair.id).status == 0
    assert pair.id in shown(repository)


@pytest.mark.slow
def test_a_person_drops_one(repository: Path, learn: Callable[..., str], mulligan: Run) -> None:
    both_forms(repository)
    learn("--from-git")
    (pair,) = [one for one in lessons(repository) if one.context.get("mends")]
    assert mulligan("memory", "review", "--drop", pair.id).status == 0
    assert pair.id not in [one.id for one in lessons(repository)]


@pytest.mark.slow
def test_strangers_and_own_sessions_confirm_nothing_of_each_other(
    repository: Path, learn: Callable[..., str], mulligan: Run
) -> None:
    both_forms(repository)
    own = repository.parent / "own.jsonl"
    own.write_text(in_format("claude", STORY, session="mine", folder=str(repository)))
    learn("--from-git")
    learn(str(own))
    learn("--from-git")
    pairs = [one for one in lessons(repository) if one.context.get("mends")]
    assert sorted((one.state, one.confirmed) for one in pairs) == [("active", False), ("quarantined", False)]


def test_a_repository_without_sessions_says_so(repository: Path, learn: Callable[..., str], mulligan: Run) -> None:
    assert "no refs entire/checkpoints" in learn("--from-git", status=2)
    broken = {"0/full.jsonl": "no records", "0/metadata.json": about("s9", "Claude Code", "")}
    stored(repository, "refs/entire/checkpoints/ab/0123456789ab", broken)
    assert "s9: " in learn("--from-git", status=3)


def test_options_of_a_file_do_not_go_with_it(repository: Path, learn: Callable[..., str], mulligan: Run) -> None:
    learn("--from-git", "--since", "3d", status=2)
    learn("--from-git", "x.jsonl", status=2)
    learn("--from-git", "--outcome", "success", status=2)


@pytest.mark.slow
def test_nothing_that_a_repository_configures_is_run(
    repository: Path, learn: Callable[..., str], mulligan: Run
) -> None:
    both_forms(repository)
    mark = repository.parent / "ran"
    for name in ("core.fsmonitor", "gpg.program", "core.pager", "diff.external", "core.sshCommand"):
        git(repository, "config", name, f"touch {mark}")
    git(repository, "config", "log.showSignature", "true")
    learn("--from-git")
    assert not mark.exists()


def test_a_folder_is_learned_from_at_once_oldest_first(
    repository: Path, learn: Callable[..., str], mulligan: Run
) -> None:
    folder = repository.parent / "logs"
    (folder / "deep").mkdir(parents=True)
    later = in_format("claude", STORY, session="later", folder=str(repository)).replace("2026-03-01", "2026-03-02")
    (folder / "a.jsonl").write_text(later)
    (folder / "deep" / "b.jsonl").write_text(in_format("claude", OTHER, session="first", folder=str(repository)))
    (folder / "notes.txt").write_text("User: x")
    out = learn(str(folder))
    assert out.index("b.jsonl") < out.index("a.jsonl")
    assert "notes.txt" not in out
    assert len(lessons(repository)) == 2
    (folder / "d.jsonl").write_text(in_format("claude", OTHER[:3], session="idle", folder=str(repository)))
    assert "nothing to learn by rules" in learn(str(folder))
    (folder / "c.json").write_text("{")
    (folder / "e.json").write_text('[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi."}]')
    said = learn(str(folder), status=3)
    assert "c.json" in said
    assert "Set one with --model" in said
    empty = repository.parent / "empty"
    empty.mkdir()
    assert "folder without transcripts" in learn(str(empty), status=2)
