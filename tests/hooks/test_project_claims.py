"""Which folders may use the lessons of a project: anybody can write its address into a configuration."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mulligan.app.config import Config, load, project_here
from mulligan.app.memory import open_bank
from mulligan.app.trusting import trust
from mulligan.core.home import home
from mulligan.hooks.journal import Journal
from mulligan.hooks.project import FILE, PREFIX, allow, project_id, project_of
from mulligan.sessions.events import Notice

URL = "https://git.acme.dev/team/shop.git"
CLAIM = "git.acme.dev/team/shop"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def git(folder: Path, *arguments: str) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


def a_repository(folder: Path, url: str = URL) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", str(folder))
    if url:
        git(folder, "remote", "add", "origin", url)
    return folder


@pytest.fixture
def owner(tmp_path: Path) -> Path:
    """The first folder that uses the project."""
    folder = a_repository(tmp_path / "work" / "shop")
    assert project_id(str(folder)) == f"{PREFIX}{CLAIM}"
    return folder


def alone(folder: Path) -> bool:
    """Whether a folder has lessons of its own, and says how it gets those of the project that it names."""
    found = project_of(str(folder))
    hint = found.notice.endswith(f": mulligan hooks rebind --folder {found.folder.removesuffix('/.git')}")
    return found.id == found.folder and bool(found.claim) and hint


def of_its_own_history(owner: Path, at: Path) -> Path:
    return a_repository(at)


def without_a_commit(owner: Path, at: Path) -> Path:
    at.mkdir()
    git(at, "init", "-q")
    git(at, "remote", "add", "origin", URL)
    return at


def by_another_way_to_the_address(owner: Path, at: Path) -> Path:
    return a_repository(at, "git@git.acme.dev:team/shop")


def by_an_included_file(owner: Path, at: Path) -> Path:
    a_repository(at, "")
    (at / "team.config").write_text(f'[remote "origin"]\n\turl = {URL}\n')
    git(at, "config", "include.path", "../team.config")
    return at


def by_the_path_of_the_folder(owner: Path, at: Path) -> Path:
    return a_repository(at, str(owner))


def by_a_link_to_its_git(owner: Path, at: Path) -> Path:
    at.mkdir()
    (at / ".git").write_text(f"gitdir: {owner / '.git'}\n")
    return at


def by_a_symlink_to_its_git(owner: Path, at: Path) -> Path:
    at.mkdir()
    (at / ".git").symlink_to(owner / ".git")
    return at


def by_its_common_folder(owner: Path, at: Path) -> Path:
    (a_repository(at, "") / ".git" / "commondir").write_text(f"{owner / '.git'}\n")
    return at


def by_objects_that_it_borrows(owner: Path, at: Path) -> Path:
    a_repository(at)
    (at / ".git/objects/info").mkdir(exist_ok=True)
    (at / ".git/objects/info/alternates").write_text(f"{owner / '.git/objects'}\n")
    return at


def by_a_symlink_to_its_objects(owner: Path, at: Path) -> Path:
    a_repository(at)
    shutil.rmtree(at / ".git/objects")
    (at / ".git/objects").symlink_to(owner / ".git/objects")
    return at


def by_a_symlink_to_its_branch(owner: Path, at: Path) -> Path:
    branch = a_repository(at) / ".git/refs/heads/main"
    branch.unlink()
    branch.symlink_to(owner / ".git/refs/heads/main")
    return at


def by_the_id_of_its_commit(owner: Path, at: Path) -> Path:
    shutil.copy(owner / ".git/refs/heads/main", a_repository(at) / ".git/refs/heads/main")
    return at


def by_the_id_of_its_commit_and_a_symlink(owner: Path, at: Path) -> Path:
    shutil.copy(owner / ".git/refs/heads/main", by_a_symlink_to_its_objects(owner, at) / ".git/HEAD")
    return at


FORGERIES = [
    by_the_id_of_its_commit,
    by_the_id_of_its_commit_and_a_symlink,
    of_its_own_history,
    without_a_commit,
    by_another_way_to_the_address,
    by_an_included_file,
    by_the_path_of_the_folder,
    by_a_link_to_its_git,
    by_a_symlink_to_its_git,
    by_its_common_folder,
    by_objects_that_it_borrows,
    by_a_symlink_to_its_objects,
    by_a_symlink_to_its_branch,
]


@pytest.mark.parametrize("forge", FORGERIES)
def test_an_address_alone_opens_no_lessons(owner: Path, tmp_path: Path, forge: Callable[[Path, Path], Path]) -> None:
    folder = forge(owner, tmp_path / "stranger")
    assert alone(folder)
    assert project_of(str(owner)).id == CLAIM
    assert allow(str(folder)).id == project_of(str(folder)).id == CLAIM, "a person has said so"
    assert not project_of(str(folder)).notice


def test_a_tracked_folder_that_looks_like_a_repository_claims_nothing(owner: Path, tmp_path: Path) -> None:
    (fake := a_repository(tmp_path / "stranger", "") / "fixtures" / "db").mkdir(parents=True)
    for name in ("objects", "refs"):
        (fake / name).mkdir()
    (fake / "HEAD").write_text("ref: refs/heads/main\n")
    (fake / "config").write_text(f'[remote "origin"]\n\turl = {URL}\n')
    assert project_id(str(fake)) == f"{PREFIX}{fake}"


def test_a_clone_shares_by_its_history(owner: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(owner), "clone")
    assert project_of(str(tmp_path / "clone")).id == CLAIM, "its origin is the first folder"
    git(tmp_path, "clone", "-q", "--no-local", str(owner), "far")
    git(tmp_path / "far", "remote", "set-url", "origin", "ssh://git@git.acme.dev/team/shop.git")
    git(tmp_path / "far", "commit", "-q", "--allow-empty", "-m", "more")
    git(tmp_path / "far", "gc", "-q")
    assert project_of(str(tmp_path / "far")).id == CLAIM
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{owner}", "shallow")
    git(tmp_path / "shallow", "remote", "set-url", "origin", URL)
    assert project_of(str(tmp_path / "shallow")).id == CLAIM


def test_a_folder_that_was_moved_keeps_its_lessons(owner: Path, tmp_path: Path) -> None:
    owner.rename(tmp_path / "moved")
    assert project_of(str(tmp_path / "moved")).id == CLAIM


def test_a_clone_of_what_had_no_commit_shares_once_there_is_one(tmp_path: Path) -> None:
    first = without_a_commit(tmp_path, tmp_path / "first")
    assert project_of(str(first)).id == CLAIM
    git(first, "commit", "-q", "--allow-empty", "-m", "first")
    git(tmp_path, "clone", "-q", str(first), "clone")
    git(tmp_path / "clone", "remote", "set-url", "origin", URL)
    assert project_of(str(tmp_path / "clone")).id == CLAIM


def test_of_two_folders_that_are_first_at_once_one_has_the_lessons(tmp_path: Path) -> None:
    folders = [a_repository(tmp_path / str(n) / "shop") for n in range(4)]
    threads = [threading.Thread(target=project_id, args=(str(folder),)) for folder in folders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(project_of(str(folder)).id == CLAIM for folder in folders) == [False, False, False, True]


def test_folders_of_earlier_sessions_keep_their_lessons_and_others_do_not_get_them(tmp_path: Path) -> None:
    stranger, used = a_repository(tmp_path / "stranger"), a_repository(tmp_path / "used")
    with Journal() as journal:
        journal.seen(Notice("claude", "start", "s1", str(used)), f"{PREFIX}{CLAIM}")
    assert not (home() / FILE).exists()
    assert alone(stranger)
    assert project_of(str(used)).id == CLAIM


def test_a_bare_repository_of_this_disk_is_that_of_the_first_clone(tmp_path: Path) -> None:
    git(a_repository(tmp_path / "seed", ""), "clone", "-q", "--bare", ".", str(tmp_path / "shop.git"))
    git(tmp_path / "shop.git", "remote", "remove", "origin")
    git(tmp_path, "clone", "-q", "shop.git", "one")
    assert project_of(str(tmp_path / "one")).id == str(tmp_path / "shop.git")
    assert alone(a_repository(tmp_path / "stranger", str(tmp_path / "shop.git")))
    (tmp_path / "shop.git").rename(tmp_path / "away")
    assert project_of(str(tmp_path / "one")).id == str(tmp_path / "shop.git"), "its disk is not there now"


def test_a_plain_folder_is_not_opened_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert project_id(str(tmp_path / "notes")) == f"{PREFIX}{tmp_path / 'notes'}"
    assert alone(a_repository(tmp_path / "stranger", str(tmp_path / "notes")))
    assert alone(a_repository(tmp_path / "other", str(tmp_path / "gone")))


def test_a_name_in_the_settings_is_a_claim_like_an_address(tmp_path: Path) -> None:
    def named(folder: Path) -> Config:
        (folder / "mulligan.toml").write_text('[project]\nname = "shop"\n')
        trust(folder)
        return load(folder)

    one, two = a_repository(tmp_path / "one", ""), a_repository(tmp_path / "two", "")
    assert project_here(named(one), one).id == "shop"
    assert project_here(named(two), two).id == str(two / ".git")
    assert "mulligan hooks rebind" in project_here(load(two), two).notice
    assert project_here(load(two), two, allowed=True).id == project_here(load(two), two).id == "shop"


def test_facts_have_the_same_project_as_hooks(owner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (inside := owner / "src").mkdir()
    monkeypatch.chdir(inside)
    assert project_here(Config()).id == CLAIM
    (plain := tmp_path / "plain").mkdir()
    monkeypatch.chdir(plain)
    assert project_here(Config()).id == "", "of no project that is known"
    assert project_here(Config(root=plain)).id == project_here(Config(), plain).id == str(plain)


def test_what_cannot_be_noted_is_not_used(tmp_path: Path, own_home: Path) -> None:
    own_home.write_text("a file where the folder should be")
    folder = a_repository(tmp_path / "shop")
    assert project_of(str(folder)).id == str(folder / ".git")
    with pytest.raises(OSError, match="home"):
        allow(str(folder))


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe\n", b'["a"]\n', b'{"project": 1}\n', b"null\n", b"\x00" * 50])
def test_a_damaged_line_costs_no_other(owner: Path, own_home: Path, damage: bytes) -> None:
    file = own_home / FILE
    file.write_bytes(file.read_bytes() + damage)
    assert project_of(str(owner)).id == CLAIM
    other = a_repository(owner.parent / "other", "https://git.acme.dev/team/other")
    assert project_of(str(other)).id == project_of(str(other)).id == "git.acme.dev/team/other"


def test_the_notes_are_the_users_alone(owner: Path, own_home: Path) -> None:
    assert os.stat(own_home / FILE).st_mode & 0o077 == 0
    (line,) = map(json.loads, (own_home / FILE).read_text().split("\n")[1:-1])
    assert (line["project"], line["folder"], line["by"]) == (CLAIM, str(owner / ".git"), "first")


def test_a_notice_holds_no_control_characters(owner: Path, tmp_path: Path) -> None:
    (folder := a_repository(tmp_path / "two", "") / "a").mkdir()
    (folder / "mulligan.toml").write_text('[project]\nname = "shop\\u001b[2J\\nnext"\n')
    (other := a_repository(tmp_path / "three", "")).joinpath("mulligan.toml").write_bytes(
        (folder / "mulligan.toml").read_bytes()
    )
    project_here(load(folder), folder)
    assert project_here(load(other), other).notice.isprintable()


async def test_repositories_of_one_name_share_no_facts_and_clones_of_one_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stand(folder: Path) -> None:
        monkeypatch.chdir(folder)

    async def recalled() -> list[str]:
        async with open_bank(embedder="none") as bank:
            return [one.title for one in (await bank.recall("Which port does the database use?", threshold=0)).lessons]

    one = a_repository(tmp_path / "one" / "api", "https://git.acme.dev/one/api.git")
    two = a_repository(tmp_path / "two" / "api", "https://git.acme.dev/two/api.git")
    bare = a_repository(tmp_path / "three" / "api", "")
    stand(one)
    async with open_bank(embedder="none") as bank:
        await bank.add(title="Database port", content="The database listens on port 5433.", nature="fact")
    git(one, "clone", "-q", ".", "../../copy")
    git(tmp_path / "copy", "remote", "set-url", "origin", "git@git.acme.dev:one/api.git")
    git(one, "worktree", "add", "-q", "../tree")
    for folder, found in ((one, True), (two, False), (bare, False), (tmp_path / "copy", True), (one / "../tree", True)):
        stand(folder)
        assert (await recalled() == ["Database port"]) is found, folder
