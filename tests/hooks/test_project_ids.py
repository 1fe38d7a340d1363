"""The id of a project: one for the worktrees and clones of a repository, another for a fork."""

import subprocess
from pathlib import Path

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.hooks.project import address, project_id

PART = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,9}", fullmatch=True)
HOST = st.from_regex(r"[a-z][a-z0-9-]{1,8}\.(com|org|dev)", fullmatch=True)
SECRET = st.from_regex(r"[A-Za-z0-9@:]{0,8}", fullmatch=True)


def git(folder: Path, *arguments: str) -> None:
    name = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True, timeout=60)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    return folder


@given(host=HOST, owner=PART, name=PART, user=PART, secret=SECRET)
def test_all_ways_to_a_repository_are_one_address(host: str, owner: str, name: str, user: str, secret: str) -> None:
    ways = [
        f"https://{host}/{owner}/{name}.git",
        f"https://{user}:{secret}@{host.upper()}/{owner}/{name}",
        f"https://{host}:443/{owner}/{name}/",
        f"http://{host}:80/{owner}//{name}.git/",
        f"ssh://git@{host}/{owner}/{name}.git",
        f"ssh://git@{host}:2222/{owner}/{name}.git",
        f"git@{host}:{owner}/{name}.git",
        f"{host}:{owner}/{name}",
        f"git://{host}:9418/{owner}/{name}.git",
    ]
    assert {address(way) for way in ways} == {f"{host}/{owner}/{name}"}


@given(host=HOST, owner=PART, other=PART, name=PART)
def test_a_fork_has_another_address(host: str, owner: str, other: str, name: str) -> None:
    same = owner == other
    assert (address(f"https://{host}/{owner}/{name}") == address(f"git@{host}:{other}/{name}.git")) is same


@given(st.text(max_size=60))
def test_any_text_has_an_address(text: str) -> None:
    assert address(text) == address(text.strip())


@given(host=HOST, name=PART, user=PART, secret=st.from_regex(r"[a-z0-9]{8,20}", fullmatch=True))
def test_no_password_is_kept(host: str, name: str, user: str, secret: str) -> None:
    found = address(f"https://{user}:x/{secret}zz@{host}/{name}")
    assert f"{secret}zz" not in found


@each_row(
    ("given", "wanted"),
    [
        ("git@GitHub.com:Acme/Shop.git", "github.com/acme/shop"),
        ("ssh://git@ssh.github.com:443/acme/shop.git", "github.com/acme/shop"),
        ("https://git.acme.dev:8443/Acme/shop", "git.acme.dev:8443/Acme/shop"),
        ("ssh://git@[::1]:22/shop.git", "[::1]/shop"),
        ("git@[::1]:shop.git", "[::1]/shop"),
        ("git@[2001:db8::1]:shop.git", "[2001:db8::1]/shop"),
        ("[git@shop.example:22]:team/shop.git", "shop.example/team/shop"),
        ("https://github.com/acme/shop?token=abc\x1b[2j", "github.com/acme/shop"),
        ("https://git.acme.dev/shop.git#token", "git.acme.dev/shop"),
        ("https://", ""),
        ("/srv/git/shop.git", "/srv/git/shop"),
        ("file:///srv/git/shop.git", "/srv/git/shop"),
        (r"C:\work\shop.git", r"C:\work\shop"),
    ],
)
def test_addresses(given: str, wanted: str) -> None:
    assert address(given) == wanted


def test_clones_and_worktrees_share_and_forks_do_not(repository: Path, tmp_path: Path) -> None:
    git(repository, "remote", "add", "origin", "git@github.com:acme/shop.git")
    git(repository, "worktree", "add", "../tree")
    clone, fork = tmp_path / "clone", tmp_path / "fork"
    for folder, url in ((clone, "https://user:pw@github.com/acme/shop"), (fork, "https://github.com/ana/shop")):
        git(tmp_path, "clone", str(repository), str(folder))
        git(folder, "remote", "set-url", "origin", url)
    inside = clone / "src" / "deep"
    inside.mkdir(parents=True)
    assert {project_id(str(one)) for one in (repository, tmp_path / "tree", clone, inside)} == {
        "project:github.com/acme/shop"
    }
    assert project_id(str(fork)) == "project:github.com/ana/shop"


def test_without_an_origin_the_shared_folder_of_git_counts(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "../tree")
    git(tmp_path, "clone", str(repository), "clone")  # its origin is a folder on this disk
    git(tmp_path, "clone", str(tmp_path / "clone"), "clone of the clone")
    own = project_id(str(repository))
    assert own == f"project:{repository.resolve() / '.git'}"
    for name in ("tree", "clone", "clone of the clone"):
        assert project_id(str(tmp_path / name)) == own


def test_a_bare_repository_and_its_clones_share(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--bare", str(repository), "shop.git")
    git(tmp_path / "shop.git", "remote", "remove", "origin")
    for name in ("one", "two"):
        git(tmp_path, "clone", str(tmp_path / "shop.git"), name)
    assert (
        project_id(str(tmp_path / "one")) == project_id(str(tmp_path / "two")) == project_id(str(tmp_path / "shop.git"))
    )


def test_a_submodule_is_a_project_of_its_own(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "lib"
    other.mkdir()
    git(other, "init")
    git(other, "commit", "--allow-empty", "-m", "first")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", str(other), "lib")
    assert project_id(str(repository / "lib")) == project_id(str(other)) != project_id(str(repository))


def test_a_folder_without_git_is_its_own_project(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert (
        project_id(str(tmp_path / "a")) == project_id(str(tmp_path / "link")) == f"project:{(tmp_path / 'a').resolve()}"
    )
    assert project_id(str(tmp_path / "gone")) == f"project:{tmp_path.resolve() / 'gone'}"


@pytest.mark.parametrize("broken", ["", "gitdir:", "gitdir: /nowhere/at/all", "\x00\xff"])
def test_a_broken_link_to_git_is_passed_over(tmp_path: Path, broken: str) -> None:
    (tmp_path / ".git").write_text(broken)
    assert project_id(str(tmp_path)) == f"project:{tmp_path.resolve()}"


def test_the_configuration_of_git_is_read_as_git_reads_it(repository: Path) -> None:
    config = repository / ".git" / "config"
    config.write_text(
        config.read_text()
        + '[remote "upstream"]\n\turl = https://a.dev/up/shop\n'
        + '[Remote "origin"] # the own one\n\tfetch = x\n\tURL = "https://a.dev/own/shop.git" ; a comment\n'
    )
    assert project_id(str(repository)) == "project:a.dev/own/shop"


def test_an_address_without_a_host_is_no_project_that_all_share(repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://")
    assert project_id(str(repository)) == f"project:{repository / '.git'}"
