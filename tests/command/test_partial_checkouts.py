"""Workspaces of sparse checkouts, and of repositories with filters whose program is missing."""

from pathlib import Path

import pytest
from command_project import files, git, image, project, write

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Artifact, Attempt, Episode, Task, Trial
from mulligan.workspace._git import missing_filters
from mulligan.workspace.git_workspace import GitWorkspace, Mode

EPISODE = Episode("e1", Task("x"), run="r1")
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 12\n"


def large(folder: Path) -> Path:
    project(folder)
    for name in ("app/one.py", "docs/page.md", "huge/data.txt"):
        write(folder, name, f"{name}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "large")
    return folder


def sparse(tmp_path: Path, kind: str) -> Path:
    folder = large(tmp_path / "user")
    if kind == "linked":
        git(folder, "worktree", "add", "-q", str(tmp_path / "linked"))
        folder = tmp_path / "linked"
    patterns = ["--no-cone", "/*", "!/docs/", "!/huge/"] if kind == "patterns" else ["--cone", "app"]
    git(folder, "sparse-checkout", "set", *(["--sparse-index"] if kind == "index" else []), *patterns)
    return folder


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("kind", ["cone", "patterns", "index", "linked"])
async def test_a_sparse_checkout_stays_sparse_and_its_states_hold_the_rest(tmp_path: Path, kind: str) -> None:
    folder = sparse(tmp_path, kind)
    write(folder, "app/mine.py", "uncommitted\n")
    before = image(tmp_path)
    workspace = GitWorkspace(folder=str(folder), data=str(tmp_path.parent / f"{tmp_path.name}-data"))
    place = await workspace.open(EPISODE)
    assert files(place.folder) == files(folder)
    assert "huge/data.txt" not in files(place.folder)
    assert git(Path(place.folder), "status", "--porcelain") == ""
    write(place.folder, "app/one.py", "changed\n")
    write(place.folder, "huge/new.txt", "new\n")
    write(place.folder, "docs/page.md", "changed\n")
    state, notes = await place.save(1, place.start)
    assert notes == ()
    tracked = git(folder, "ls-tree", "-r", "--name-only", state).split()
    assert {"huge/data.txt", "huge/new.txt", "docs/page.md", "app/mine.py"} <= set(tracked)
    changed = git(folder, "diff", "--name-only", place.start, state).split()
    assert changed == ["app/one.py", "docs/page.md", "huge/new.txt"]
    await workspace.close(EPISODE)
    made = Trial(1, Attempt("", artifacts=(Artifact("git", state, place.folder),)))
    later = Episode("e1", Task("x"), run="r1", trials=(made,))
    again = await workspace.open(later)
    there = files(again.folder)
    assert (there["huge/new.txt"], there["docs/page.md"], "huge/data.txt" in there) == (b"new\n", b"changed\n", False)
    async with workspace.aside(later, state) as beside:
        assert files(beside.folder) == there
    await again.reset(again.start)
    assert files(again.folder) == files(folder)
    await workspace.close(later)
    assert files(folder)["app/mine.py"] == b"uncommitted\n"
    assert {name: what for name, what in image(tmp_path).items() if not name.startswith("user/.git")} == {
        name: what for name, what in before.items() if not name.startswith("user/.git")
    }


@pytest.mark.slow
async def test_working_in_place_leaves_a_sparse_checkout_sparse(tmp_path: Path) -> None:
    folder = sparse(tmp_path, "cone")
    before = files(folder)
    workspace = GitWorkspace(folder=str(folder), mode="in_place", data=str(tmp_path / "data"))
    place = await workspace.open(EPISODE)
    write(folder, "app/one.py", "changed\n")
    await place.reset(place.start)
    await workspace.close(EPISODE)
    assert files(folder) == before
    assert git(folder, "status", "--porcelain") == ""


def filtered(folder: Path, name: str, program: str) -> Path:
    """A repository with two stored files of this filter, whose program is not there."""
    project(folder)
    write(folder, "big.bin", POINTER)
    write(folder, "other.bin", POINTER)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "files")
    write(folder, ".gitattributes", f"*.bin filter={name} -text\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "attributes")
    for key, value in {"clean": "clean -- %f", "smudge": "smudge -- %f"}.items():
        git(folder, "config", f"filter.{name}.{key}", f"{program} {value}")
    git(folder, "config", f"filter.{name}.required", "true")
    return folder


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("mode", ["worktree", "copy", "in_place"])
@pytest.mark.parametrize(("name", "program"), [("lfs", "no-git-lfs"), ("git-crypt", "/no/such/git-crypt")])
async def test_files_of_a_filter_that_is_missing_stay_as_they_are_stored(
    tmp_path: Path, name: str, program: str, mode: Mode
) -> None:
    folder = filtered(tmp_path / "user", name, program)
    assert missing_filters(str(folder)) == (name,)
    workspace = GitWorkspace(folder=str(folder), mode=mode, data=str(tmp_path / "data"))
    place = await workspace.open(EPISODE)
    assert files(place.folder)["big.bin"] == POINTER.encode()
    write(place.folder, "calc.py", "changed\n")
    write(place.folder, "big.bin", "what the filter would have hidden\n")
    state, notes = await place.save(1, place.start)
    if mode != "copy":
        assert notes == (f"big.bin was not kept: the program of git's filter {name} is missing",)
        assert git(folder, "diff", "--name-only", place.start, state) == "calc.py\n"
    await place.reset(place.start)
    assert files(place.folder)["big.bin"] == POINTER.encode()
    await workspace.close(EPISODE)


async def test_changed_files_of_a_missing_filter_are_refused_with_its_name(tmp_path: Path) -> None:
    folder = filtered(tmp_path / "user", "git-crypt", "no-git-crypt")
    write(folder, "big.bin", "readable\n")
    workspace = GitWorkspace(folder=str(folder), data=str(tmp_path / "data"))
    with pytest.raises(InvalidInput, match=r"filter 'git-crypt', whose program is missing: big.bin.*use mode copy"):
        await workspace.open(EPISODE)


def test_filters_that_can_run_are_left_alone(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    for name, command in {
        "cat": "cat",
        "shell": "f() { cat; }; f",
        "variable": "A=1 cat",
        "builtin": "test -n x",
        "quoted": '"cat" -u',
    }.items():
        git(folder, "config", f"filter.{name}.clean", command)
        git(folder, "config", f"filter.{name}.required", "true")
    git(folder, "config", "filter.optional.clean", "no-such-program")  # git does without it
    assert missing_filters(str(folder)) == ()
    git(folder, "config", "filter.git-crypt.clean", '"git-crypt-that-is-missing" clean')
    git(folder, "config", "filter.git-crypt.required", "true")
    assert missing_filters(str(folder)) == ("git-crypt",)
