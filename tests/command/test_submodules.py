"""Submodules in a worktree: the agent has their files, its changes are seen, and the user's repositories stay as they are."""

import os
import shutil
from pathlib import Path

import pytest
from command_project import files, git, image, project, write

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Artifact, Attempt, Episode, Feedback, Task, Trial
from mulligan.workspace.deliver import deliver
from mulligan.workspace.git_workspace import GitWorkspace
from mulligan.workspace.leftovers import leftovers

EPISODE = Episode("e1", Task("Change it"), run="r1")


def add(outer: Path, inner: Path, path: str) -> None:
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), path)
    git(outer, "commit", "-q", "-m", f"Add {path}")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a submodule `lib` that has one of its own, `deep`, and with `far`, which is no longer checked out."""
    top = tmp_path_factory.mktemp("submodules")
    deep, lib, outer = (project(top / name) for name in ("deep", "lib", "user"))
    (lib / ".gitignore").write_text("*.o\n")
    git(lib, "add", ".gitignore")
    add(lib, deep, "deep")
    add(outer, lib, "lib")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init", "--recursive")
    add(outer, deep, "far")
    git(outer, "submodule", "deinit", "-q", "-f", "far")
    for origin in (deep, lib):
        shutil.rmtree(origin)  # nothing can be fetched
    return outer


@pytest.fixture
def user(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "user", symlinks=True)
    git(tmp_path / "user", "status")  # the index has the times of the copies
    git(tmp_path / "user" / "lib", "status")
    return tmp_path / "user"


def workspace_of(folder: Path, tmp_path: Path) -> GitWorkspace:
    return GitWorkspace(folder=str(folder), data=str(tmp_path / "data"))


def solved(state: str) -> Episode:
    trial = Trial(1, Attempt("", artifacts=(Artifact("git", state),)), Feedback(passed=True))
    return Episode("e1", Task("Change it"), run="r1", trials=(trial,))


@pytest.mark.slow
async def test_the_folder_has_submodules_as_the_user_has_them(user: Path, tmp_path: Path) -> None:
    (user / "lib" / "calc.py").write_text("uncommitted\n")
    (user / "lib" / "new.py").write_text("untracked\n")
    (user / "lib" / "left.o").write_text("ignored\n")
    (user / "lib" / "deep" / "check.py").unlink()
    before = image(user)
    workspace = workspace_of(user, tmp_path)
    place = await workspace.open(EPISODE)
    assert files(place.folder) == {name: data for name, data in files(user).items() if name != "lib/left.o"}
    assert os.listdir(os.path.join(place.folder, "far")) == []
    assert git(Path(place.folder), "status", "--porcelain") == ""
    assert await place.strayed() == ()
    await workspace.close(EPISODE)
    assert image(user) == before
    await workspace.discard("e1")
    assert image(user) == before
    assert git(user, "worktree", "list").count("\n") == 1
    assert git(user, "for-each-ref", "refs/mulligan") == ""
    assert leftovers([str(tmp_path / "data")], [str(user / ".git")]) == {}


@pytest.mark.slow
async def test_changes_in_submodules_are_seen_kept_and_put_back(user: Path, tmp_path: Path) -> None:
    workspace = workspace_of(user, tmp_path)
    place = await workspace.open(EPISODE)
    write(place.folder, "lib/calc.py", "better\n")
    write(place.folder, "lib/deep/added.py", "new\n")
    write(place.folder, "far/lost.py", "new\n")
    git(Path(place.folder), "init", "-q", "far")
    git(
        Path(place.folder, "far"),
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "A commit that no repository of the user's has",
    )
    assert await place.changed() == ("far/", "lib/calc.py", "lib/deep/added.py")
    state, notes = await place.save(1, place.start)
    assert [note.partition(":")[0] for note in notes] == ["far/ was not kept"]
    assert "git submodule update --init" in notes[0]
    diff = await place.diff(state)
    assert "+++ b/lib/calc.py" in diff
    assert "+++ b/lib/deep/added.py" in diff
    await place.reset(place.start)
    assert files(place.folder) == files(user)
    async with workspace.aside(EPISODE, state) as other:
        assert files(other.folder)["lib/calc.py"] == b"better\n"
    await workspace.close(EPISODE)
    again = await workspace.open(EPISODE)
    await again.reset(state)
    assert files(again.folder)["lib/deep/added.py"] == b"new\n"
    await workspace.close(EPISODE)


@pytest.mark.slow
async def test_a_branch_has_commits_of_the_submodules_that_changed(user: Path, tmp_path: Path) -> None:
    (user / "far.txt").write_text("uncommitted\n")
    was = {path: git(user / path, "rev-parse", "HEAD") for path in ("", "lib", "lib/deep")}
    workspace = workspace_of(user, tmp_path)
    place = await workspace.open(EPISODE)
    write(place.folder, "calc.py", "better\n")
    write(place.folder, "lib/deep/calc.py", "best\n")
    state, _ = await place.save(1, place.start)
    await workspace.close(EPISODE)
    said = await deliver(workspace, solved(state))
    assert "have a branch too: mulligan/r1 in lib/deep, mulligan/r1 in lib." in said
    assert await deliver(workspace, solved(state)) == said.replace("r1-2", "r1")
    assert {path: git(user / path, "rev-parse", "HEAD") for path in was} == was
    assert git(user, "status", "--porcelain") == "?? far.txt\n"
    git(user, "stash", "-q", "-u")
    git(user, "checkout", "-q", "mulligan/r1")
    git(user, "submodule", "update", "-q", "--recursive")
    assert files(user)["lib/deep/calc.py"] == b"best\n"
    assert files(user)["calc.py"] == b"better\n"
    assert files(user)["far.txt"] == b"uncommitted\n"
    assert git(user, "diff", "--name-only", "HEAD~1", "HEAD") == "calc.py\nlib\n"
    assert git(user / "lib", "diff", "--name-only", "HEAD~1", "HEAD") == "deep\n"
    for path in ("", "lib", "lib/deep"):
        git(user / path, "fsck", "--strict")


@pytest.mark.slow
async def test_a_branch_leaves_submodules_alone_that_did_not_change(user: Path, tmp_path: Path) -> None:
    (user / "lib" / "calc.py").write_text("uncommitted\n")
    workspace = workspace_of(user, tmp_path)
    place = await workspace.open(EPISODE)
    write(place.folder, "calc.py", "better\n")
    state, _ = await place.save(1, place.start)
    await workspace.close(EPISODE)
    assert "submodule" not in await deliver(workspace, solved(state))
    assert git(user, "diff", "--name-only", "HEAD", "mulligan/r1") == "calc.py\n"
    assert git(user, "rev-parse", "mulligan/r1~1") == git(user, "rev-parse", "HEAD")
    assert git(user / "lib", "branch", "--list", "mulligan/*") == ""


@pytest.mark.slow
async def test_a_change_of_a_submodule_is_applied_in_place_with_the_work_that_was_there(
    user: Path, tmp_path: Path
) -> None:
    (user / "lib" / "calc.py").write_text("uncommitted\n")
    workspace = workspace_of(user, tmp_path)
    place = await workspace.open(EPISODE)
    write(place.folder, "lib/calc.py", "uncommitted\nbetter\n")
    state, _ = await place.save(1, place.start)
    await workspace.close(EPISODE)
    patch = tmp_path / "it.patch"
    await deliver(workspace, solved(state), "patch", str(patch))
    assert b"+++ b/lib/calc.py" in patch.read_bytes()
    await deliver(workspace, solved(state), "in_place")
    assert (user / "lib" / "calc.py").read_text() == "uncommitted\nbetter\n"
    assert git(user / "lib", "branch", "--list", "mulligan/*") == ""


@pytest.mark.slow
async def test_writes_to_the_users_submodules_are_noticed(user: Path, tmp_path: Path) -> None:
    workspace = workspace_of(user, tmp_path)
    place = await workspace.open(EPISODE)
    (user / "lib" / "calc.py").write_text("strayed\n")
    (user / "lib" / "deep" / "check.py").unlink()
    assert await place.strayed() == ("lib/calc.py", "lib/deep/check.py")
    git(user / "lib", "commit", "-q", "-am", "Strayed")
    assert "the repository's commit of the submodule lib" in await place.strayed()
    await workspace.close(EPISODE)


async def test_in_place_a_change_in_a_submodule_is_named_as_not_kept(user: Path, tmp_path: Path) -> None:
    workspace = GitWorkspace(folder=str(user), mode="in_place", data=str(tmp_path / "data"))
    place = await workspace.open(EPISODE)
    assert await place.changed() == ()
    (user / "lib" / "calc.py").write_text("better\n")
    (user / "calc.py").write_text("better\n")
    state, notes = await place.save(1, place.start)
    assert [note.partition(":")[0] for note in notes] == ["lib/ was not kept"]
    assert "worktree" in notes[0]
    assert git(user, "diff", "--name-only", place.start, state) == "calc.py\n"
    await workspace.close(EPISODE)


async def test_a_submodule_itself_is_a_workspace(user: Path, tmp_path: Path) -> None:
    before = image(user)
    workspace = workspace_of(user / "lib", tmp_path)
    place = await workspace.open(EPISODE)
    assert files(place.folder) == files(user / "lib")
    write(place.folder, "deep/calc.py", "better\n")
    assert await place.changed() == ("deep/calc.py",)
    await workspace.close(EPISODE)
    await workspace.discard("e1")
    after = image(user)
    ours = ("objects", "refs", "worktrees", "logs")
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} <= {
        name for name in after if any(f".git/modules/lib/{part}" in name for part in ours)
    }


async def test_what_git_cannot_read_or_take_along_is_refused_with_a_way_out(user: Path, tmp_path: Path) -> None:
    (user / "lib" / ".git").write_text("gitdir: ../nowhere\n")
    with pytest.raises(InvalidInput, match=r"submodule lib .*git status.*mode copy"):
        await workspace_of(user, tmp_path).open(EPISODE)
    shutil.rmtree(user / "lib")
    project(user / "own")
    with pytest.raises(InvalidInput, match=r"not submodules \(own/\).*mode copy"):
        await workspace_of(user, tmp_path).open(EPISODE)


async def test_a_changed_submodule_that_is_gone_is_delivered_as_a_patch(user: Path, tmp_path: Path) -> None:
    workspace = workspace_of(user, tmp_path)
    place = await workspace.open(EPISODE)
    write(place.folder, "lib/calc.py", "better\n")
    state, _ = await place.save(1, place.start)
    await workspace.close(EPISODE)
    git(user, "submodule", "deinit", "-q", "-f", "lib")
    with pytest.raises(InvalidInput, match=r"submodule lib, which is no longer checked out.*deliver a patch"):
        await deliver(workspace, solved(state))
    assert git(user, "branch", "--list", "mulligan/*") == ""
