"""The rules for macOS's sandbox, read as text: none of this runs on a Mac, where a trial job decides."""

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mulligan.core.errors import SandboxError
from mulligan.core.protocols import Job
from mulligan.sandbox import confine, policy
from mulligan.sandbox.detect import choose, usable
from mulligan.sandbox.levels import level_named

Rule = list["str | Rule"]


def command(job: Job, scratch: str = "/private/tmp/mulligan-1") -> list[str]:
    return confine.command(policy.specify(job, level_named("seatbelt"), scratch))


def read(profile: str) -> list[Rule]:
    """The profile as nested lists. Fails on parentheses that do not match."""
    stack: list[Rule] = [[]]
    words = profile.replace("(", " ( ").replace(")", " ) ").split()
    for word in words:
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(word)
    assert len(stack) == 1
    assert all(isinstance(rule, list) for rule in stack[0])
    return [rule for rule in stack[0] if isinstance(rule, list)]


def parts(argv: list[str]) -> tuple[dict[str, str], str, list[str]]:
    """The parameters by name, the profile, and the command behind it."""
    at = argv.index("-p")
    values = [argv[n + 1].partition("=") for n in range(1, at, 2)]
    assert argv[1:at:2] == ["-D"] * len(values)
    return {name: value for name, _, value in values}, argv[at + 1], argv[at + 2 :]


def allowed(operation: str, argv: list[str]) -> set[str]:
    """The paths at and below which the profile allows this."""
    values, profile, _ = parts(argv)
    found: set[str] = set()
    for rule in read(profile):
        if rule[0] == "allow" and operation in rule:
            for word in rule[2:]:
                if isinstance(word, list) and isinstance(word[1], list):
                    found.add(values[str(word[1][1]).strip('"')])
    return found


def test_all_is_denied_that_is_not_allowed() -> None:
    argv = command(Job(("python", "-c", "1")))
    _, profile, behind = parts(argv)
    assert argv[0] == "/usr/bin/sandbox-exec"
    assert behind == ["python", "-c", "1"]
    assert read(profile)[:2] == [["version", "1"], ["deny", "default"]]
    assert "network" not in profile
    assert all(rule[0] in ("version", "deny", "allow") for rule in read(profile))


def test_a_job_writes_its_own_folders_alone(tmp_path: Path) -> None:
    argv = command(Job(("x",), cwd=str(tmp_path)))
    assert allowed("file-write*", argv) == {"/private/tmp/mulligan-1"}
    argv = command(Job(("x",), writable=(str(tmp_path),)))
    assert allowed("file-write*", argv) == {"/private/tmp/mulligan-1", str(tmp_path.resolve())}


def test_of_the_home_folder_a_job_reads_the_interpreters_parts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python below home, as pyenv and uv lay it: its prefix is read, and nothing beside it."""
    prefix = tmp_path / ".pyenv" / "versions" / "3.12"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").touch()
    (tmp_path / ".ssh").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("prefix", "exec_prefix", "base_prefix", "base_exec_prefix"):
        monkeypatch.setattr(sys, name, str(prefix))
    monkeypatch.setattr(sys, "executable", str(prefix / "bin" / "python"))
    policy._interpreter.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        read_at = allowed("file-read*", command(Job(("x",))))
    finally:
        policy._interpreter.cache_clear()  # pyright: ignore[reportPrivateUsage]
    home = str(tmp_path.resolve())
    inside = {path for path in read_at if path == home or path.startswith(home + "/")}
    assert inside == {f"{home}/.pyenv/versions/3.12", f"{home}/.pyenv/versions/3.12/bin/python"}
    assert not any(home.startswith(path.rstrip("/") + "/") for path in read_at)


def test_a_job_with_the_network_may_use_it() -> None:
    _, profile, _ = parts(command(Job(("x",), network=True)))
    assert ["allow", "network*"] in read(profile)


@given(name=st.text(st.characters(blacklist_characters="/\0", blacklist_categories=("Cs",)), min_size=1, max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_becomes_a_rule(tmp_path: Path, name: str) -> None:
    """Whatever a folder is called, it stands among the parameters, and the rules differ in nothing."""
    folder = tmp_path / f"{name}{'x' if name in ('.', '..') else ''}"
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return
    plain = tmp_path / "plain"
    plain.mkdir(exist_ok=True)
    hostile, usual = (parts(command(Job(("x",), writable=(str(path),)))) for path in (folder, plain))
    assert hostile[1] == usual[1]
    assert str(folder.resolve()) in hostile[0].values()


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has the level that is refused here")
def test_on_other_systems_it_is_refused() -> None:
    with pytest.raises(SandboxError, match="seatbelt is part of macOS"):
        choose("seatbelt")
    assert "seatbelt" not in [level.name for level in usable()]
