"""What is read from the files of git is what git answers, in all forms in which a repository can stand on a disk."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from mulligan.workspace.git_files import repository

Layout = Callable[[Path], "Path | tuple[Path, Mapping[str, str]]"]
L = TypeVar("L", bound=Layout)
URL = "https://git.acme.dev/team/shop.git"
LAYOUTS: dict[str, Layout] = {}


def git(folder: Path, *arguments: str) -> str:
    names = ("user.name=a", "user.email=a@b", "init.defaultBranch=main", "protocol.file.allow=always")
    words = ["git", *(word for name in names for word in ("-c", name)), *arguments]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def shop(at: Path, *, origin: str = URL) -> Path:
    """A repository with a commit."""
    shutil.copytree(template(at), at / "shop", symlinks=True)
    if origin:
        configure(at / "shop", f'[remote "origin"]\n\turl = {origin}\n')
    return at / "shop"


def template(at: Path) -> Path:
    there = at / ".template"
    there.mkdir(parents=True)
    git(there, "init", "-q")
    (there / "a.txt").write_text("a")
    git(there, "add", "a.txt")
    git(there, "commit", "-qm", "first")
    return there


def configure(folder: Path, text: str, name: str = ".git/config") -> Path:
    with (folder / name).open("a") as file:
        file.write(text)
    return folder


def layout(make: L) -> L:
    LAYOUTS[make.__name__.replace("_", " ").strip()] = make
    return make


@layout
def plain(at: Path) -> Path:
    return shop(at)


@layout
def a_folder_inside(at: Path) -> Path:
    (inside := shop(at) / "src" / "deep").mkdir(parents=True)
    return inside


@layout
def clone_of_a_folder(at: Path) -> Path:
    shop(at, origin="")
    git(at, "clone", "-q", "shop", "copy")
    return at / "copy"


@layout
def worktree(at: Path) -> Path:
    git(shop(at), "worktree", "add", "-q", "../tree")
    return at / "tree"


@layout
def worktree_that_was_moved(at: Path) -> Path:
    git(shop(at), "worktree", "add", "-q", "../tree")
    (at / "tree").rename(at / "moved")
    return at / "moved"


@layout
def worktree_whose_repository_is_gone(at: Path) -> Path:
    git(shop(at), "worktree", "add", "-q", "../tree")
    shutil.rmtree(at / "shop")
    return at / "tree"


@layout
def worktree_gone_inside_another_repository(at: Path) -> Path:
    outer = shop(at)
    git(outer, "clone", "-q", ".", "inner")
    git(outer / "inner", "worktree", "add", "-q", "../tree")
    shutil.rmtree(outer / "inner")
    return outer / "tree"


@layout
def submodule(at: Path) -> Path:
    git(shop(at), "submodule", "--quiet", "add", str(shop(at / "lib")), "lib")
    return at / "shop" / "lib"


@layout
def nested_repository(at: Path) -> Path:
    shutil.copytree(at / ".template", shop(at) / "vendor" / "lib")
    return at / "shop" / "vendor" / "lib"


@layout
def bare(at: Path) -> Path:
    shop(at)
    git(at, "clone", "-q", "--bare", "shop", "shop.git")
    return at / "shop.git"


@layout
def clone_of_a_bare_one(at: Path) -> Path:
    git(bare(at), "remote", "remove", "origin")
    git(at, "clone", "-q", "shop.git", "copy")
    return at / "copy"


@layout
def bare_beside_its_worktrees(at: Path) -> Path:
    (project := at / "project").mkdir(parents=True)
    git(at, "clone", "-q", "--bare", str(shop(at)), "project/.bare")
    (project / ".git").write_text("gitdir: ./.bare\n")
    git(project, "worktree", "add", "-q", "main")
    return project / "main"


@layout
def folder_above_those_worktrees(at: Path) -> Path:
    return bare_beside_its_worktrees(at).parent


@layout
def git_elsewhere_absolute(at: Path) -> Path:
    there = shop(at)
    (there / ".git").rename(at / "store")
    (there / ".git").write_text(f"gitdir: {at / 'store'}\n")
    return there


@layout
def git_elsewhere_relative(at: Path) -> Path:
    there = shop(at)
    (there / ".git").rename(at / "store")
    (there / ".git").write_text("gitdir: ../store\n")
    return there


@layout
def link_without_a_space(at: Path) -> Path:
    there = git_elsewhere_relative(at)
    (there / ".git").write_text("gitdir:../store\n")
    return there


@layout
def symlinked_folder(at: Path) -> Path:
    (at / "link").symlink_to(shop(at))
    return at / "link"


@layout
def symlinked_git(at: Path) -> Path:
    there = shop(at)
    (there / ".git").rename(at / "store")
    (there / ".git").symlink_to(at / "store")
    return there


@layout
def named_by_the_environment(at: Path) -> tuple[Path, Mapping[str, str]]:
    (elsewhere := at / "elsewhere").mkdir(parents=True)
    return elsewhere, {"GIT_DIR": str(shop(at) / ".git")}


@layout
def named_relatively_by_the_environment(at: Path) -> tuple[Path, Mapping[str, str]]:
    return shop(at), {"GIT_DIR": ".git"}


@layout
def bare_and_named_by_the_environment(at: Path) -> tuple[Path, Mapping[str, str]]:
    return at, {"GIT_DIR": str(bare(at))}


@layout
def named_by_the_environment_and_wrong(at: Path) -> tuple[Path, Mapping[str, str]]:
    return shop(at), {"GIT_DIR": "/nowhere"}


@layout
def common_folder_elsewhere(at: Path) -> Path:
    own = shop(at) / ".git"
    (at / "own").mkdir()
    shutil.copytree(at / ".template" / ".git", at / "own" / ".git")
    (at / "own" / ".git" / "commondir").write_text(f"{own}\n")
    return at / "own"


@layout
def tracked_folder_that_looks_like_a_repository(at: Path) -> Path:
    fake = shop(at) / "fixtures"
    for name in ("objects", "refs"):
        (fake / name).mkdir(parents=True)
    (fake / "HEAD").write_text("ref: refs/heads/main\n")
    (fake / "config").write_text('[core]\n\tbare = true\n[remote "origin"]\n\turl = https://git.acme.dev/other/bank\n')
    return fake


@layout
def folder_below_one_that_looks_like_a_repository(at: Path) -> Path:
    fake = tracked_folder_that_looks_like_a_repository(at)
    return fake / "objects"


@layout
def ceiling(at: Path) -> tuple[Path, Mapping[str, str]]:
    (inside := shop(at) / "src").mkdir()
    return inside, {"GIT_CEILING_DIRECTORIES": str(at / "shop")}


@layout
def empty_git_folder(at: Path) -> Path:
    (inside := shop(at) / "src").mkdir()
    (inside / ".git").mkdir()
    return inside


@layout
def garbage_in_the_link(at: Path) -> Path:
    (inside := shop(at) / "src").mkdir()
    (inside / ".git").write_text("garbage")
    return inside


@layout
def no_repository(at: Path) -> Path:
    (at / "plain").mkdir(parents=True)
    return at / "plain"


@layout
def no_origin(at: Path) -> Path:
    return configure(shop(at, origin=""), '[remote "upstream"]\n\turl = https://git.acme.dev/up/shop\n')


@layout
def several_remotes(at: Path) -> Path:
    there = shop(at, origin="")
    return configure(
        there, f'[remote "a"]\n\turl = https://a.dev/x\n[remote "origin"]\n url={URL}\n[remote "z"]\nurl=z:z\n'
    )


@layout
def several_addresses(at: Path) -> Path:
    return configure(shop(at), "\turl = https://git.acme.dev/second\n\tpushurl = https://git.acme.dev/push\n")


@layout
def odd_case(at: Path) -> Path:
    text = '[remote "Origin"]\n\turl = https://a.dev/wrong\n[REMOTE "origin"]\n\tURL = https://a.dev/right\n'
    return configure(shop(at, origin=""), text)


@layout
def old_form_of_a_section(at: Path) -> Path:
    return configure(shop(at, origin=""), "[remote.ORIGIN] url = https://a.dev/old # a comment\n")


@layout
def quotes_comments_and_escapes(at: Path) -> Path:
    text = '[remote "ori\\gin"] ; [remote "x"]\n url = "https://a.dev/a#b" /c\\t\\"d\\\\ ; no\n'
    return configure(shop(at, origin=""), text)


@layout
def value_on_two_lines(at: Path) -> Path:
    return configure(shop(at, origin=""), '[remote "origin"]\n\turl = https://a.dev/\\\n  shop\\\n.git\n')


@layout
def windows_lines_and_a_mark(at: Path) -> Path:
    there = shop(at)
    config = there / ".git" / "config"
    config.write_bytes(b"\xef\xbb\xbf" + config.read_bytes().replace(b"\n", b"\r\n"))
    return there


@layout
def broken_configuration(at: Path) -> Path:
    return configure(shop(at), '[remote "origin"\n')


@layout
def broken_value(at: Path) -> Path:
    return configure(shop(at), '\turl = "never closed\n')


@layout
def included(at: Path) -> Path:
    there = configure(shop(at, origin=""), "[include]\n\tpath = more/config\n")
    (there / ".git" / "more").mkdir()
    (there / ".git" / "more" / "config").write_text("[include] path = last")
    (there / ".git" / "more" / "last").write_text(f'[remote "origin"] url = {URL}')
    return there


def _if(at: Path, condition: str, *, origin: str = "") -> Path:
    there = configure(shop(at, origin=origin), f'[includeIf "{condition}"]\n\tpath = other\n')
    (there / ".git" / "other").write_text('[url "https://there.dev/"]\n\tinsteadOf = here:\n')
    return configure(there, '[remote "origin"]\n\turl = here:shop\n') if not origin else there


@layout
def included_for_a_folder(at: Path) -> Path:
    return _if(at, f"gitdir:{at}/*/")


@layout
def included_for_another_folder(at: Path) -> Path:
    return _if(at, "gitdir:~/elsewhere/")


@layout
def included_for_a_name_in_any_case(at: Path) -> Path:
    return _if(at, "gitdir/i:SHOP/**")


@layout
def included_beside_the_configuration(at: Path) -> Path:
    return _if(at, "gitdir:./")


@layout
def included_for_a_branch(at: Path) -> Path:
    return _if(at, "onbranch:ma*")


@layout
def included_for_another_branch(at: Path) -> Path:
    return _if(at, "onbranch:topic/")


@layout
def included_for_a_remote(at: Path) -> Path:
    return _if(at, "hasconfig:remote.*.url:here:*", origin="here:shop")


@layout
def configuration_of_a_worktree(at: Path) -> Path:
    git(shop(at), "worktree", "add", "-q", "../tree")
    git(at / "shop", "config", "extensions.worktreeConfig", "true")
    git(at / "tree", "config", "--worktree", "--add", "url.https://there.dev/.insteadOf", "https://git.acme.dev/")
    return at / "tree"


@layout
def rewritten_by_the_longest(at: Path) -> Path:
    text = '[url "ssh://a/"]\n\tinsteadOf = https://\n[url "ssh://b/"]\n\tinsteadOf = https://git.acme.dev/\n'
    return configure(shop(at), text)


@layout
def rewritten_by_the_user(at: Path) -> tuple[Path, Mapping[str, str]]:
    there = shop(at, origin="gh:team/shop")
    (at / "home").mkdir()
    (at / "home" / ".gitconfig").write_text('[url "git@github.com:"]\n\tinsteadOf = "gh:"\n')
    return there, {"HOME": str(at / "home"), "GIT_CONFIG_GLOBAL": str(at / "home" / ".gitconfig")}


@layout
def set_by_the_environment(at: Path) -> tuple[Path, Mapping[str, str]]:
    values = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "Remote.origin.URL", "GIT_CONFIG_VALUE_0": "https://e.dev/x"}
    return shop(at, origin=""), values


@layout
def set_by_a_parameter(at: Path) -> tuple[Path, Mapping[str, str]]:
    return shop(at, origin=""), {"GIT_CONFIG_PARAMETERS": "'remote.origin.url'='https://p.dev/it'\\''s'"}


@layout
def sparse(at: Path) -> Path:
    git(shop(at), "sparse-checkout", "set", "src")
    return at / "shop"


@layout
def sha256(at: Path) -> Path:
    (there := at / "shop").mkdir(parents=True)
    git(there, "init", "-q", "--object-format=sha256")
    git(there, "commit", "-qm", "first", "--allow-empty")
    git(there, "remote", "add", "origin", URL)
    return there


@layout
def detached(at: Path) -> Path:
    git(shop(at), "checkout", "-q", "--detach")
    return at / "shop"


@layout
def unborn(at: Path) -> Path:
    (there := at / "shop").mkdir(parents=True)
    git(there, "init", "-q")
    git(there, "remote", "add", "origin", "git@git.acme.dev:team/shop.git")
    return there


@layout
def packed(at: Path) -> Path:
    git(shop(at), "gc", "-q")
    return at / "shop"


@layout
def of_another_owner(at: Path) -> Path:
    there = shop(at)
    if os.geteuid() == 0:
        for path in (there, there / ".git"):
            os.chown(path, 12345, 12345)
    return there


@layout
def of_another_owner_and_called_safe(at: Path) -> tuple[Path, Mapping[str, str]]:
    there = of_another_owner(at)
    (at / "safe").write_text(f"[safe]\n\tdirectory = /elsewhere\n\tdirectory = {there}\n")
    return there, {"GIT_CONFIG_GLOBAL": str(at / "safe")}


def answers(folder: Path, environ: Mapping[str, str]) -> tuple[str, str, str] | None:
    """What git says: its common folder, the address of origin, the commit; None where it fails."""

    def ask(*words: str) -> str | None:
        command = ["git", "-c", "safe.bareRepository=explicit", *words]
        done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout.rstrip("\n") if done.returncode == 0 else None

    common = ask("rev-parse", "--path-format=absolute", "--git-common-dir")
    if common is None:
        return None
    url = ask("ls-remote", "--get-url", "origin") or ""
    return os.path.realpath(common), "" if url == "origin" else url, ask("rev-parse", "-q", "HEAD^0") or ""


@pytest.mark.light_cases(8)
@pytest.mark.parametrize("name", LAYOUTS)
def test_git_answers_the_same(name: str, tmp_path: Path) -> None:
    made = LAYOUTS[name](tmp_path / "at")
    folder, more = made if isinstance(made, tuple) else (made, dict[str, str]())
    empty = tmp_path / "empty"
    empty.mkdir()
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "XDG_"))}
    environ = {**outside, "HOME": str(empty), "GIT_CONFIG_NOSYSTEM": "1", **more}
    found = repository(str(folder), environ)
    assert (found and (found.common, found.origin, found.head)) == answers(folder, environ)
    if found and found.head:
        assert found.has(found.head) or name.startswith("common folder")
        assert not found.has("0" * len(found.head))
