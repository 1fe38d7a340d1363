"""Hooks in the settings of coding agents: what is written, what stays, and what is given back."""

import hashlib
import json
import os
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from forked import run_forked

from mulligan.hooks.journal import Journal
from mulligan.sessions.agents import NAMES, agent

ODD = '{"model": "opus",\n\n   "hooks": {"Stop": [ {"hooks": [{"type": "command", "command": "say done"}]} ],\n\t"Über": []}}'

NOTES = (
    '\ufeff// My settings\r\n{\r\n\t"model": "opus", // the large one\r\n\t"hooks": {\r\n\t\t/* mine */\r\n'
    '\t\t"Stop": [\r\n\t\t\t{"hooks": [{"type": "command", "command": "say // done"}]}, // aloud\r\n\t\t],\r\n'
    "\t},\r\n\t// the end\r\n}\r\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's home, with a project in it that is the working folder."""
    (tmp_path / "home" / "project").mkdir(parents=True)
    return tmp_path / "home"


def hooks(home: Path, *words: str, status: int = 0, given: str | None = None, **env: str) -> str:
    """What `mulligan hooks` prints, standard error last."""
    mulligan = str(home.parent / "mulligan")
    own = {**os.environ, "HOME": str(home), "MULLIGAN_HOME": mulligan, "PATH": "/usr/bin:/bin", **env}
    command = [sys.executable, "-m", "mulligan", "hooks", *words]
    ran = run_forked(command, cwd=home / "project", env=own)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def everything(home: Path) -> Mapping[str, bytes | None]:
    """Each file with its bytes, and each folder."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(home.rglob("*"))}


def commands(file: Path) -> list[str]:
    return [
        hook["command"]
        for groups in json.loads(file.read_text())["hooks"].values()
        for group in groups
        for hook in group["hooks"]
    ]


@pytest.mark.light_cases(4)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "copilot"])
@pytest.mark.parametrize(
    "there",
    [None, "{}", ODD, '{\n    "a": [\n    ]\n}\n', NOTES, ""],
    ids=["none", "empty", "odd", "other", "notes", "nothing"],
)
def test_a_file_is_given_back_byte_for_byte(home: Path, name: str, there: str | None) -> None:
    settings = agent(name).settings
    file = home / settings.folder.removeprefix("~/") / settings.user
    if there is not None and file.suffix == ".json":
        file.parent.mkdir(parents=True)
        file.write_bytes(there.encode())
    before = everything(home)
    said = hooks(home, "install", name, "--yes")
    assert f"+++ {file}" in said
    assert "mulligan-hook" in file.read_text()
    after = everything(home)
    assert "already contains the hooks" in hooks(home, "install", name, "--yes")
    assert everything(home) == after, "twice is once"
    hooks(home, "uninstall", "--yes")
    assert everything(home) == before
    assert "No Mulligan hooks" in hooks(home, "uninstall", "--yes")


def test_what_others_wrote_stays_and_ours_is_for_each_event(home: Path) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(ODD)
    hooks(home, "install", "claude", "--yes")
    text = file.read_text()
    assert text.startswith(ODD[:70]), "not one character of theirs is moved"
    settings = json.loads(text)
    assert settings["model"] == "opus"
    assert settings["hooks"]["Stop"][0] == {"hooks": [{"type": "command", "command": "say done"}]}
    (failure,) = settings["hooks"]["PostToolUseFailure"]
    (hook,) = failure["hooks"]
    assert hook["type"] == "command"
    assert hook["command"].endswith("mulligan-hook claude PostToolUseFailure")
    assert 1 <= hook["timeout"] <= 10, "seconds"


@pytest.mark.parametrize(
    "own", ["/opt/mulligan-hook-extras/notify.sh", "bash ~/mulligan-hook.d/log.sh", "my-mulligan-hook x"]
)
def test_a_hook_of_the_user_with_our_name_in_its_path_stays(home: Path, own: str) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": own}]}]}}))
    before = file.read_bytes()
    hooks(home, "install", "claude", "--yes")
    assert own in commands(file)
    hooks(home, "install", "claude", "--yes")
    assert commands(file).count(own) == 1
    hooks(home, "uninstall", "--yes")
    assert file.read_bytes() == before


def test_limits_are_in_the_unit_of_each_agent(home: Path) -> None:
    hooks(home, "install", "gemini", "codex", "--yes")
    for name, least in (("gemini", 1000), ("codex", 1)):
        file = home / f".{name}" / agent(name).settings.user
        entries = [h for groups in json.loads(file.read_text())["hooks"].values() for g in groups for h in g["hooks"]]
        assert {least <= hook["timeout"] <= least * 3600 for hook in entries} == {True}


def test_a_guard_of_a_path_lets_hooks_see_edits(home: Path) -> None:
    hooks(home, "install", "claude", "gemini", "--yes")
    with Journal(str(home.parent / "mulligan" / "hooks.db")) as journal:
        journal.guard({"a": "git stash"})
        assert "already contains the hooks" in hooks(home, "install", "claude", "--yes")
        journal.guard({"b": "src/generated/"})
    hooks(home, "install", "claude", "gemini", "--yes")
    before = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["PreToolUse"]
    assert [one["matcher"] for one in before] == ["Bash|Edit|Write|MultiEdit|NotebookEdit"]
    assert "run_shell_command|write_file" in (home / ".gemini" / "settings.json").read_text()


def test_hooks_of_an_older_mulligan_are_replaced(home: Path) -> None:
    file = home / ".claude" / "settings.json"
    hooks(home, "install", "claude", "--yes")
    now = file.read_text()
    file.write_text(
        now.replace("/mulligan-hook claude", "/old/mulligan-hook claude").replace('"Stop"', '"Notification"')
    )
    said = hooks(home, "install", "claude", "--yes")
    assert "-" in said
    assert json.loads(file.read_text())["hooks"].keys() >= json.loads(now)["hooks"].keys()
    assert not [command for command in commands(file) if "/old/" in command]
    assert "Notification" not in json.loads(file.read_text())["hooks"]


def test_where_a_person_changed_the_file_only_our_entries_go(home: Path) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(ODD)
    hooks(home, "install", "claude", "--yes")
    settings: Any = json.loads(file.read_text())
    settings["model"] = "haiku"
    settings["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "theirs"})
    file.write_text(json.dumps(settings, indent=3))
    said = hooks(home, "uninstall", "claude", "--yes")
    assert "has changed since" in said
    theirs: Any = json.loads(ODD)
    theirs["model"] = "haiku"
    theirs["hooks"]["PreToolUse"] = [{"matcher": "Bash", "hooks": [{"type": "command", "command": "theirs"}]}]
    assert json.loads(file.read_text()) == theirs


@pytest.mark.parametrize(
    "text", ['{"a": 1 // why\n "b": 2}', '{"hooks": [1]}', '{"hooks": {"Stop": 3}}', "[1]", "{", "/* {}", "{,}"]
)
def test_a_file_that_cannot_be_changed_with_care_is_left_alone(home: Path, text: str) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(text)
    (home / ".gemini").mkdir()
    before = everything(home)
    said = hooks(home, "install", "claude", "gemini", "--yes", status=2)
    assert str(file) in said
    assert "Nothing was written" in said
    assert everything(home) == before, "nor in another agent's file"
    assert f"Skipped Claude Code: {file}" in hooks(home, "install", "--yes")
    assert file.read_text() == text
    assert "mulligan-hook" in (home / ".gemini" / "settings.json").read_text()


def test_comments_stay_where_a_person_changed_the_file_since(home: Path) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_bytes(NOTES.encode())
    hooks(home, "install", "claude", "--yes")
    text = file.read_bytes().decode()
    for line in NOTES.splitlines():
        assert line in text.splitlines()
    assert "\n" not in text.replace("\r\n", ""), "lines end as those around"
    file.write_bytes(text.replace("the large one", "the small one").encode())
    assert "already contains the hooks" in hooks(home, "install", "claude", "--yes")
    hooks(home, "uninstall", "--yes")
    assert file.read_bytes().decode() == NOTES.replace("the large one", "the small one")


def test_where_a_file_cannot_be_changed_the_lines_to_add_are_said(home: Path) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"hooks": {"Stop": [}')
    said = hooks(home, "install", "claude", "--yes", status=2)
    lines = json.loads("{" + said.partition("\n\n{")[2])
    assert "mulligan-hook" in lines["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert file.read_text() == '{"hooks": {"Stop": [}'


@pytest.mark.parametrize("record", ["{", "[]", '{"files": [], "folders": 3}', "null"])
def test_where_the_record_is_damaged_the_entries_go_all_the_same(home: Path, record: str) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(ODD)
    hooks(home, "install", "claude", "--yes")
    (home.parent / "mulligan" / "hooks_installed.json").write_text(record)
    hooks(home, "uninstall", "--yes")
    assert json.loads(file.read_text()) == json.loads(ODD)


def test_a_plugin_of_the_same_name_that_is_not_ours_stays(home: Path) -> None:
    file = home / ".config" / "opencode" / "plugins" / "mulligan.js"
    file.parent.mkdir(parents=True)
    file.write_text("export const Mine = async () => ({})\n")
    assert "is not Mulligan's plug-in" in hooks(home, "install", "opencode", "--yes", status=2)
    assert "No Mulligan hooks" in hooks(home, "uninstall", "--yes")
    assert file.read_text() == "export const Mine = async () => ({})\n"


def test_nothing_is_written_without_a_yes(home: Path) -> None:
    (home / ".claude").mkdir()
    before = everything(home)
    assert "mulligan-hook claude" in hooks(home, "install", status=2)
    assert everything(home) == before


def test_a_project_gets_settings_that_stay_on_this_machine(home: Path) -> None:
    project = home / "project"
    hooks(home, "install", "claude", "--project", "--yes")
    assert [path.name for path in project.rglob("*") if path.is_file()] == ["settings.local.json"]
    hooks(home, "install", "claude", "--project", "--shared", "--yes")
    shared = commands(project / ".claude" / "settings.json")
    assert {command.split()[0] for command in shared} == {"mulligan-hook"}, "no path of this machine"
    assert "--shared" in hooks(home, "install", "gemini", "--project", "--yes", status=2)
    hooks(home, "uninstall", "--project", "--yes")
    assert [path.name for path in project.rglob("*") if path.is_file()] == ["settings.json"]
    hooks(home, "uninstall", "--yes")
    assert not list(project.iterdir())


def test_only_agents_that_are_here_get_hooks(home: Path) -> None:
    assert "No coding agent was found" in hooks(home, "install", "--yes", status=2)
    (home / ".gemini").mkdir()
    hooks(home, "install", "--yes")
    assert [path.name for path in (home / ".gemini").iterdir()] == ["settings.json"]
    assert not (home / ".claude").exists()


def test_a_linked_file_stays_a_link_and_keeps_its_mode(home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o600)
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").symlink_to(real)
    hooks(home, "install", "claude", "--yes")
    assert (home / ".claude" / "settings.json").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert "mulligan-hook" in real.read_text()
    hooks(home, "uninstall", "--yes")
    assert real.read_text() == "{}"


@pytest.mark.parametrize("linked", ["the file", "the folder"])
def test_a_link_that_leads_nowhere_stays_one(home: Path, linked: str) -> None:
    folder = home / ".claude"
    if linked == "the folder":
        folder.symlink_to("dotfiles/claude")
    else:
        folder.mkdir()
        (folder / "settings.json").symlink_to("../dotfiles/settings.json")
    before = everything(home)
    hooks(home, "install", "claude", "--yes")
    assert "mulligan-hook" in (folder / "settings.json").read_text()
    hooks(home, "uninstall", "--yes")
    assert everything(home) == before
    assert folder.is_symlink() == (linked == "the folder")
    assert (folder / "settings.json").is_symlink() == (linked == "the file")


def test_a_link_whose_file_is_gone_since_has_nothing_to_uninstall(home: Path) -> None:
    (home / ".claude").mkdir()
    (home / "dotfiles.json").write_text("{}")
    (home / ".claude" / "settings.json").symlink_to(home / "dotfiles.json")
    hooks(home, "install", "claude", "--yes")
    (home / "dotfiles.json").unlink()
    assert "No Mulligan hooks" in hooks(home, "uninstall", "--yes")
    assert (home / ".claude" / "settings.json").is_symlink()
    hooks(home, "install", "claude", "--yes")
    hooks(home, "uninstall", "--yes")
    assert not (home / "dotfiles.json").exists()


def test_where_nothing_can_be_noted_no_settings_are_written(home: Path) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(ODD)
    said = hooks(home, "install", "claude", "--yes", status=2, MULLIGAN_HOME="/proc/mulligan")
    assert "/proc/mulligan/hooks_installed.json cannot be written" in said
    assert f"{file} was not changed" in said
    assert file.read_text() == ODD


def test_an_install_that_was_killed_before_it_wrote_costs_nothing(home: Path) -> None:
    """Its record is there already; that of the install before gives the file back all the same."""
    file, record = home / ".claude" / "settings.json", home.parent / "mulligan" / "hooks_installed.json"
    file.parent.mkdir()
    file.write_text(ODD)
    hooks(home, "install", "claude", "--yes")
    now = file.read_text()
    older = now.replace("/mulligan-hook claude", "/old/mulligan-hook claude")
    file.write_text(older)
    record.write_text(record.read_text().replace(_sha256(now), _sha256(older)))  # as an older Mulligan has left it
    hooks(home, "install", "claude", "--yes")
    file.write_text(older)
    hooks(home, "uninstall", "--yes")
    assert file.read_text() == ODD


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


CODEX = """#!{python}
import json, os, sys
for line in sys.stdin:
    if json.loads(line).get("id") == 2:
        print(open(os.environ["LISTED"]).read(), flush=True)
"""


def codex_lists(home: Path, answer: Any) -> Mapping[str, Any]:
    """Puts a `codex` on the PATH that answers `hooks/list` so; the environment for it."""
    (home / "bin").mkdir(exist_ok=True)
    program, listed = home / "bin" / "codex", home / "listed.json"
    program.write_text(CODEX.format(python=sys.executable))
    program.chmod(0o755)
    listed.write_text(json.dumps({"id": 2, "result": answer}))
    return {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "LISTED": str(listed)}


def listed_hooks(*told: tuple[str, str, str]) -> Any:
    """What Codex answers about hooks with these keys, hashes and states."""
    hooks = [
        {"key": key, "currentHash": hash, "trustStatus": trust, "command": "mulligan-hook codex"}
        for key, hash, trust in told
    ]
    return {"data": [{"hooks": hooks}]}


def test_codex_hooks_that_were_trusted_stay_trusted(home: Path) -> None:
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text('model = "x"\n')
    install = ("install", "codex", "--yes", "--trust")
    hooks(home, *install, **codex_lists(home, listed_hooks(("a", "1", "untrusted"), ("b", "2", "untrusted"))))
    hooks(home, *install, **codex_lists(home, listed_hooks(("a", "3", "modified"), ("b", "2", "trusted"))))
    assert tomllib.loads(config.read_text()) == {
        "model": "x",
        "hooks": {"state": {"a": {"trusted_hash": "3"}, "b": {"trusted_hash": "2"}}},
    }
    hooks(home, "uninstall", "codex", "--yes")
    assert config.read_text() == 'model = "x"\n'


@pytest.mark.parametrize("answer", ["[]", "{}", '{"data": [{}]}', '{"data": [{"hooks": [{}, 1]}]}'])
def test_another_answer_of_codex_is_said_and_breaks_nothing(home: Path, answer: str) -> None:
    said = hooks(home, "install", "codex", "--yes", "--trust", **codex_lists(home, json.loads(answer)))
    assert "hooks/list" in said
    assert "mulligan-hook" in (home / ".codex" / "hooks.json").read_text()
