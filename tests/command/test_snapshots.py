"""What a workspace begins with, and that making it changes nothing of the user's."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
from command_project import CALC, Bench, files, git, image, project, stopped, write

from mulligan.core.errors import InvalidInput, WorkspaceError
from mulligan.core.records import Episode, Task
from mulligan.workspace.git_workspace import GitWorkspace, Mode
from mulligan.workspace.leftovers import leftovers

EPISODE = Episode("e1", Task("x"), run="r1")


@pytest.mark.slow
async def test_uncommitted_untracked_and_staged_work_is_in_it(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    (folder / "calc.py").write_text(CALC + "# mine\n")
    (folder / "staged.py").write_text("s")
    git(folder, "add", "staged.py")
    (folder / "untracked ü.txt").write_bytes(b"one\r\ntwo\n")
    (folder / "forced.ignored").write_text("f")
    git(folder, "add", "-f", "forced.ignored")
    (folder / "left.ignored").write_text("i")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("calc.py")
    (folder / "check.py").unlink()
    git(folder, "stash", "list")
    before = image(folder)
    workspace = GitWorkspace(folder=str(folder), data=str(tmp_path / "data"))
    place = await workspace.open(EPISODE)
    assert files(place.folder) == {k: v for k, v in files(str(folder)).items() if k != "left.ignored"}
    assert os.access(os.path.join(place.folder, "run.sh"), os.X_OK)
    assert os.readlink(os.path.join(place.folder, "link")) == "calc.py"
    assert git(Path(place.folder), "status", "--porcelain") == ""
    await workspace.close(EPISODE)
    assert image(folder) == before
    assert not (tmp_path / "data" / "e1").exists()


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("mode", ["worktree", "copy"])
async def test_a_folder_may_be_called_anything(tmp_path: Path, mode: Mode) -> None:
    for name in ("my prøject..x", ".dotted.lock", "a~b^c:d?e*[f", "…"):
        folder = project(tmp_path / name)
        workspace = GitWorkspace(folder=str(folder), mode=mode, data=str(tmp_path / "data"))
        place = await workspace.open(EPISODE)
        assert files(place.folder) == files(folder)
        await workspace.close(EPISODE)
        assert not list((tmp_path / "data" / "e1").glob("*-e1"))
        shutil.rmtree(tmp_path / "data")


@pytest.mark.slow
async def test_hooks_signing_and_a_missing_name_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path / "user")
    for hook in ("post-checkout", "pre-commit", "reference-transaction", "post-commit"):
        write(folder, f".git/hooks/{hook}", f"#!/bin/sh\ntouch {tmp_path}/fired\nexit 1\n", 0o755)
    for setting in ("commit.gpgSign=true", "gpg.program=false", "core.safecrlf=true", "core.autocrlf=input"):
        git(folder, "config", *setting.split("="))
    (folder / "crlf.txt").write_bytes(b"a\r\nb\r\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("HOME", str(tmp_path))
    bench = Bench(tmp_path, folder)
    episode = await bench.solve(trials=1)
    assert stopped(episode).startswith("exhausted")
    await bench.workspace.close(episode)
    assert not (tmp_path / "fired").exists()


async def test_a_repository_without_a_commit_and_one_on_no_branch(tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    git(new, "init", "-q")
    (new / "a.txt").write_text("a")
    detached = project(tmp_path / "user")
    git(detached, "checkout", "-q", "--detach")
    for folder in (new, detached):
        workspace = GitWorkspace(folder=str(folder), data=str(tmp_path / "data"))
        place = await workspace.open(EPISODE)
        assert files(place.folder) == files(str(folder))
        await workspace.close(EPISODE)


async def test_a_linked_worktree_and_a_folder_below_the_top(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    (folder / "part").mkdir()
    (folder / "part" / "x.txt").write_text("x")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "part")
    git(folder, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    (tmp_path / "linked" / "part" / "y.txt").write_text("y")
    workspace = GitWorkspace(folder=str(tmp_path / "linked" / "part"), data=str(tmp_path / "data"))
    place = await workspace.open(EPISODE)
    assert files(place.folder) == {"x.txt": b"x", "y.txt": b"y"}
    assert place.folder == os.path.join(place.root, "part")
    assert git(tmp_path / "linked", "status", "--porcelain") == "?? part/y.txt\n"
    await workspace.close(EPISODE)


async def test_the_usual_ignored_folders_are_linked_and_kept_out_of_the_states(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "tool").write_text("t")
    workspace = GitWorkspace(folder=str(folder), data=str(tmp_path / "data"))
    place = await workspace.open(EPISODE)
    assert files(f"{place.folder}/.venv") == {"bin/tool": b"t"}
    os.unlink(os.path.join(place.folder, ".venv"))
    os.mkdir(os.path.join(place.folder, ".venv"))
    state, notes = await place.save(1, place.start)
    assert await place.diff(state) == ""
    assert notes == ()
    await place.reset(place.start, ignored=True)
    assert os.readlink(os.path.join(place.folder, ".venv")) == str(folder / ".venv")
    await workspace.close(EPISODE)
    assert (folder / ".venv" / "bin" / "tool").read_text() == "t"


@pytest.mark.slow
async def test_what_cannot_work_is_refused_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = str(tmp_path / "data")
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", str(bare))
    plain = tmp_path / "plain"
    plain.mkdir()
    outer = project(tmp_path / "outer")
    project(outer / "sub")
    conflict = project(tmp_path / "conflict")
    git(conflict, "checkout", "-q", "-b", "b")
    for branch in ("b", "main"):
        git(conflict, "checkout", "-q", branch)
        (conflict / "calc.py").write_text(branch)
        git(conflict, "commit", "-q", "-am", branch)
    with pytest.raises(AssertionError):
        git(conflict, "merge", "-q", "b")
    dirty = project(tmp_path / "dirty")
    (dirty / "calc.py").write_text("changed")
    refused: list[tuple[Path, Mode, str]] = [
        (tmp_path / "none", "worktree", "is not a folder"),
        (bare, "worktree", "bare repository"),
        (plain, "worktree", "Mode copy works without one"),
        (plain, "in_place", "git init"),
        (outer, "worktree", "sub.*Use mode copy"),
        (conflict, "worktree", "merge is in progress.*calc.py"),
        (dirty, "in_place", "Commit or stash"),
    ]
    for folder, mode, says in refused:
        with pytest.raises(InvalidInput, match=says):
            await GitWorkspace(folder=str(folder), mode=mode, data=data).open(EPISODE)
        assert EPISODE.id not in os.listdir(data), f"refused, and left behind: {says}"
    with pytest.raises(InvalidInput, match="worktree, copy or in_place"):
        GitWorkspace(folder=str(dirty), mode="elsewhere", data=data)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="must be a valid name"):
        await GitWorkspace(folder=str(dirty), data=data).open(Episode("../up", Task("x")))
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    with pytest.raises(InvalidInput, match="GIT_DIR is set"):
        GitWorkspace(folder=str(dirty), data=data)


@pytest.mark.slow
async def test_a_copy_serves_folders_without_git_and_submodules(tmp_path: Path) -> None:
    inner, outer = project(tmp_path / "inner"), project(tmp_path / "outer")
    git(outer, "submodule", "add", "-q", str(inner), "sub")
    plain = tmp_path / "plain"
    (plain / "node_modules").mkdir(parents=True)
    (plain / "a.txt").write_text("a")
    for name, folder in (("c1", outer), ("c2", plain)):
        episode, before = Episode(name, Task("x")), image(folder)
        workspace = GitWorkspace(folder=str(folder), mode="copy", data=str(tmp_path / "data"))
        place = await workspace.open(episode)
        assert files(place.folder) == files(str(folder))
        write(place.folder, "a.txt", "b")
        state, _ = await place.save(1, place.start)
        await workspace.close(episode)
        again = await workspace.open(episode)
        await again.reset(state)
        assert files(again.folder)["a.txt"] == b"b"
        assert "+b" in await again.diff(state)
        await workspace.close(episode)
        assert image(folder) == before


@pytest.mark.slow
async def test_two_processes_never_share_a_place_and_a_sweep_takes_what_the_dead_left(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    code = (
        "import asyncio, sys\n"
        "from mulligan.core.records import Episode, Task\n"
        "from mulligan.workspace.git_workspace import GitWorkspace\n"
        f"w = GitWorkspace(folder={str(folder)!r}, data={str(tmp_path / 'data')!r})\n"
        "print(asyncio.run(w.open(Episode('e1', Task('x')))).folder, flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert other.stdout
        await asyncio.wait_for(other.stdout.readline(), 30)
        with pytest.raises(InvalidInput, match="Another process"):
            await GitWorkspace(folder=str(folder), data=str(tmp_path / "data")).open(EPISODE)
        left = leftovers([str(tmp_path / "data")], [])["e1"]
        assert left.in_use
        assert not left.remove(states=False)
    finally:
        other.kill()
        await asyncio.wait_for(other.communicate(), 30)
    assert left.working
    assert left.remove(states=False)
    assert "e1" not in os.listdir(tmp_path / "data")
    assert git(folder, "worktree", "list").count("\n") == 1
    assert "refs/mulligan/e1/start" in git(folder, "for-each-ref")


async def test_states_hold_any_change_and_can_be_gone_back_to(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    write(folder, "dir/a.txt", "a")
    write(folder, "was_file", "f")
    os.symlink("was_file", folder / "pointer")
    workspace = GitWorkspace(folder=str(folder), data=str(tmp_path / "data"))
    place = await workspace.open(EPISODE)
    first = files(place.folder)
    for name in ("was_file", "pointer", "dir/a.txt", "check.py"):
        os.unlink(os.path.join(place.folder, name))
    write(place.folder, "was_file/now_folder", "x")
    write(place.folder, "pointer", "a file now")
    os.rmdir(os.path.join(place.folder, "dir"))
    os.symlink(str(folder), os.path.join(place.folder, "dir"))
    write(place.folder, "calc.py", CALC, 0o755)
    write(place.folder, "out.ignored", "i")
    state, notes = await place.save(1, place.start)
    assert notes == ()
    await place.reset(place.start)
    assert files(place.folder) == {**first, "out.ignored": b"i"}
    await place.reset(state, ignored=True)
    assert os.readlink(os.path.join(place.folder, "dir")) == str(folder)
    assert os.access(os.path.join(place.folder, "calc.py"), os.X_OK)
    assert sorted(os.listdir(place.folder)) == sorted(
        [".git", ".gitignore", "calc.py", "dir", "pointer", "test_calc.py", "was_file"]
    )
    await place.reset(place.start)
    assert files(place.folder) == first
    assert files(folder) == first
    await workspace.close(EPISODE)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("mode", ["worktree", "copy"])
async def test_mulligans_own_data_in_the_users_tree_is_left_out(tmp_path: Path, mode: Mode) -> None:
    folder = project(tmp_path / "user")
    write(folder, ".mulligan/mulligan.db", "before")
    first = files(folder)
    workspace = GitWorkspace(folder=str(folder), mode=mode, data=str(folder / "data"))
    place = await workspace.open(EPISODE)
    write(folder, ".mulligan/mulligan.db", "after")
    assert files(place.folder) == {name: text for name, text in first.items() if not name.startswith(".mulligan")}
    assert await place.strayed() == ()
    write(folder, "other.txt", "x")
    assert await place.strayed() == ("other.txt",)
    await workspace.close(EPISODE)


async def test_what_the_disk_and_git_cannot_do_is_reported(tmp_path: Path) -> None:
    folder = project(tmp_path / "user")
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match=r"could not be read or written: .*Not a directory"):
        await GitWorkspace(folder=str(folder), data=str(tmp_path / "file")).open(EPISODE)
    workspace = GitWorkspace(folder=str(folder), mode="in_place", data=str(tmp_path / "data"))
    place = await workspace.open(EPISODE)
    with pytest.raises(WorkspaceError, match=r"^git .* failed in"):
        await place.reset("0" * 40)
    await workspace.close(EPISODE)
    assert git(folder, "status", "--porcelain") == ""
