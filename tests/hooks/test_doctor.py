"""`mulligan hooks doctor`: the hooks as they are installed, tried with what agents have sent."""

import json
import re
from pathlib import Path

import pytest
from test_install import hooks

from mulligan.sessions.agents import agent


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "project").mkdir(parents=True)
    return tmp_path / "home"


def doctor(home: Path, *words: str, status: int = 0, **env: str) -> str:
    return hooks(home, "doctor", *words, status=status, MULLIGAN_HOOKS_SECONDS="20", **env)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("name", "failure", "silent"),
    [
        ("claude", "PostToolUseFailure", "Stop"),
        ("gemini", "AfterTool", "AfterAgent"),
        ("opencode", "tool.execute.after", "session.idle"),
        ("qwen", "PostToolUseFailure", "Stop"),
    ],
)
def test_a_lesson_reaches_the_model_through_the_hooks_as_installed(
    home: Path, name: str, failure: str, silent: str
) -> None:
    hooks(home, "install", name, "--yes")
    said = doctor(home)
    lines = {line.split()[0]: line for line in said.splitlines() if line.startswith("  ")}
    assert "`python3 tasks.py generate` makes it." in lines[failure]
    assert " ms " in lines[failure]
    assert "nothing for the model" in lines[silent]
    assert "!" not in said
    assert not (home.parent / "mulligan" / "mulligan.db").exists(), "the user's own bank is not touched"


@pytest.mark.slow
def test_codex_needs_trust_and_the_transcript_says_what_failed(home: Path) -> None:
    hooks(home, "install", "codex", "--yes")
    said = doctor(home, status=1)
    (failure,) = [line for line in said.splitlines() if line.startswith("  PostToolUse ")]
    assert "`python3 tasks.py generate` makes it." in failure
    assert "`codex` is not on the PATH" in said


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("settings", "trouble"),
    [
        ({"disableAllHooks": True}, "turns all hooks off: disableAllHooks"),
        ({"timeout": 5000}, "The time limit for Stop is 5000: Claude Code counts seconds"),
        (
            {"command": "/gone/mulligan-hook claude Stop"},
            "  ! The program /gone/mulligan-hook does not exist, so Claude Code neither shows nor learns lessons.",
        ),
        ({"event": "Stopp"}, "There is no hook for Stop"),
    ],
    ids=["off", "unit", "gone", "misspelt"],
)
def test_what_keeps_hooks_from_running_is_named(home: Path, settings: dict[str, object], trouble: str) -> None:
    hooks(home, "install", "claude", "--yes")
    file = home / ".claude" / "settings.json"
    given = json.loads(file.read_text())
    for name, value in settings.items():
        if name in ("timeout", "command"):
            given["hooks"]["Stop"][0]["hooks"][0][name] = value
        elif name == "event":
            given["hooks"][value] = given["hooks"].pop("Stop")
        else:
            given[name] = value
    file.write_text(json.dumps(given))
    assert trouble in doctor(home, status=1)


@pytest.mark.slow
def test_what_is_tried_does_not_learn_on_in_a_folder_that_is_gone(home: Path) -> None:
    hooks(home, "install", "claude", "--yes")
    file = home / ".claude" / "settings.json"
    given = json.loads(file.read_text())
    stop = given["hooks"]["Stop"][0]["hooks"][0]
    stop["command"] = f"printenv MULLIGAN_HOOKS > {home}/mode; {stop['command']}"
    file.write_text(json.dumps(given))
    doctor(home, MULLIGAN_HOOKS="off", status=1)
    assert (home / "mode").read_text() == "recall\n"


@pytest.mark.slow
def test_status_names_a_program_that_is_gone(home: Path) -> None:
    assert "does not exist" not in hooks(home, "install", "claude", "--yes") + hooks(home, "status")
    file = home / ".claude" / "settings.json"
    file.write_text(re.sub(r'"[^"]*/mulligan-hook claude', '"/moved/bin/mulligan-hook claude', file.read_text()))
    assert hooks(home, "status").count("The program /moved/bin/mulligan-hook does not exist") == 1
    hooks(home, "install", "claude", "--yes")
    assert json.loads(hooks(home, "status", "--json"))["gone"] == []
    file.write_text("{broken mulligan-hook")
    assert "settings.json" not in hooks(home, "status")


@pytest.mark.slow
def test_gemini_counts_milliseconds(home: Path) -> None:
    hooks(home, "install", "gemini", "--yes")
    file = home / ".gemini" / "settings.json"
    file.write_text(file.read_text().replace("5000", "5"))
    assert "The time limit for AfterTool is 5: Gemini CLI counts milliseconds" in doctor(home, status=1)


@pytest.mark.slow
def test_hooks_that_are_paused_or_in_two_files_are_named(home: Path) -> None:
    hooks(home, "install", "claude", "--yes")
    hooks(home, "pause")
    hooks(home, "pause", str(home))
    said = doctor(home, status=1)
    assert "Hooks are paused everywhere: `mulligan hooks resume` ends the pause" in said
    assert f"Hooks are paused in {home}: `mulligan hooks resume {home}` ends the pause" in said
    hooks(home, "resume", str(home))
    hooks(home, "resume")
    hooks(home, "install", "claude", "--project", "--yes")
    shared = home / "project" / agent("claude").settings.local
    assert f"The same hooks are also in {shared}" in doctor(home, status=1)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("name", "untried"),
    [("claude", []), ("gemini", []), ("qwen", ["SessionEnd"]), ("opencode", ["session.compacted"])],
)
def test_each_hook_is_tried_or_said_not_to_be(home: Path, name: str, untried: list[str]) -> None:
    hooks(home, "install", name, "--yes")
    lines = [line.split(maxsplit=1) for line in doctor(home).splitlines() if line.startswith("  ")]
    assert sorted(event for event, _ in lines) == sorted(hook.event for hook in agent(name).hooks)
    assert [event for event, said in lines if said.startswith("not tested")] == untried


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("name", "file", "text", "out"),
    [
        ("claude", ".claude/settings.json", '{"enabledPlugins": {"mulligan@m": true}}', "claude plugin uninstall"),
        ("codex", ".codex/config.toml", '[plugins."mulligan@m"]\nenabled = true\n', "codex plugin remove mulligan@m"),
        ("gemini", ".gemini/extensions/mulligan/x.json", "{}", "gemini extensions uninstall mulligan"),
    ],
)
def test_hooks_beside_the_plug_in_are_named(home: Path, name: str, file: str, text: str, out: str) -> None:
    (home / file).parent.mkdir(parents=True)
    (home / file).write_text(text)
    alone = doctor(home, status=1)
    assert "has Mulligan's plug-in" in alone
    assert "No Mulligan hooks" not in alone
    hooks(home, "install", name, "--yes")
    said = doctor(home, status=1)
    assert "The plug-in has the same hooks, so each of them runs twice" in said
    assert out in said
    assert f"`mulligan hooks uninstall {name}` removes these hooks" in said
    (home / file).unlink() if name != "claude" else None
    if name == "gemini":
        (home / file).parent.rmdir()
    if name == "claude":
        (home / file).write_text((home / file).read_text().replace("true", "false"))
    assert "plug-in" not in doctor(home, status=int(name == "codex"))


def test_without_hooks_it_says_how_to_get_them(home: Path) -> None:
    assert "mulligan hooks install" in doctor(home, status=1)
