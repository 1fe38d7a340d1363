"""What helps somebody who does not know the commands by heart: suggestions, `help`, completion, JSON."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("typed", "meant"), [("slove", "solve"), ("docto", "doctor"), ("doc", "docs"), ("askgraph", "ask-graph")]
)
def test_a_misspelt_command_is_suggested(mulligan: Run, typed: str, meant: str) -> None:
    for arguments in ((typed, "x"), ("help", typed)):
        ended = mulligan(*arguments)
        assert ended.status == 2
        assert f"No such command '{typed}'. Did you mean '{meant}'?" in ended.err


def test_what_is_near_no_command_is_only_refused(mulligan: Run) -> None:
    assert mulligan("xyzzy").err.endswith("No such command 'xyzzy'.\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("runs delete", "'rm'"),
        ("runs remove", "'rm'"),
        ("runs ls", "'list'"),
        ("runs lst", "'list'"),
        ("memory delete", "'purge' or 'retire'"),
        ("memory find", "'search'"),
        ("memory relase", "'release'"),
        ("hooks delete", "'forget' or 'uninstall'"),
        ("hooks info", "'status'"),
        ("models delete", "'remove'"),
        ("models download", "'pull'"),
        ("bench info", ""),
        ("bench rnu", "'run'"),
        ("store list", "'status'"),
        ("delete", "'runs rm' or 'memory purge'"),
        ("list", "'runs list' or 'memory list'"),
        ("strategies xyzzy", ""),
    ],
)
def test_a_group_suggests_what_was_meant_and_nothing_else(mulligan: Run, typed: str, meant: str) -> None:
    ended = mulligan(*typed.split(), "x")
    wrong = f"No such command {typed.split()[-1]!r}."
    assert ended.status == 2
    assert ended.err.splitlines()[-1] == f"Error: {wrong}" + (f" Did you mean {meant}?" if meant else "")


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("group", ["", "runs", "memory", "hooks", "models", "graph", "store", "strategies", "bench"])
def test_no_line_of_a_help_is_cut(mulligan: Run, group: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = mulligan(*group.split(), "--help").out
    listed = shown[shown.index("--help ") :].partition("  Documentation:")[0].partition("  Examples:")[0].splitlines()
    assert not [line for line in listed if line.endswith(("...", "…"))]
    assert max(map(len, listed)) <= columns


@pytest.mark.parametrize("command", [(), ("solve",), ("runs", "show"), ("ask-graph",)])
def test_help_says_what_the_option_says(mulligan: Run, command: tuple[str, ...]) -> None:
    by_command, by_option = mulligan("help", *command), mulligan(*command, "--help")
    assert by_command.status == by_option.status == 0
    assert by_command.out == by_option.out
    assert by_command.out.startswith(" ".join(("Usage: mulligan", *command)))


def test_help_of_what_has_no_commands_is_refused(mulligan: Run) -> None:
    ended = mulligan("help", "solve", "it")
    assert (ended.status, ended.err.splitlines()[-1]) == (2, "Error: mulligan solve has no subcommands.")


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("words", "wanted"),
    [("mulligan so", "solve"), ("mulligan runs sh", "show"), ("mulligan solve --wor", "--workspace")],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes(
    process: Run, shell: str, words: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = len(words.split()) - 1
    last = words.split()[-1]
    env = {**os.environ, "_MULLIGAN_COMPLETE": f"{shell}_complete", "COMP_WORDS": words}
    env["COMP_CWORD"] = last if shell == "fish" else str(number)
    ended = process(env=env)
    assert ended.status == 0
    assert wanted in ended.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_is_given_its_script(process: Run, shell: str) -> None:
    ended = process(env={**os.environ, "_MULLIGAN_COMPLETE": f"{shell}_source"})
    assert ended.status == 0
    assert f"_MULLIGAN_COMPLETE={shell}_complete" in ended.out


def test_doctor_models_and_a_run_as_json(
    mulligan: Run, second: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    doctor = mulligan("doctor", "--json")
    said = json.loads(doctor.out)
    assert said["fine"] == (doctor.status == 0)
    assert {"name", "ok", "detail", "remedy"} == set(said["rows"][0])
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-none-at-all")
    listed = json.loads(mulligan("models", "list", "--json").out)
    assert {"name": "local:smollm2-135m", "path": None}.items() <= listed["models"][0].items()
    assert listed["embedders"]
    keys = {provider["provider"]: (provider["key_set"], provider["needs_key"]) for provider in listed["providers"]}
    assert keys["alibaba"] == (True, True)
    assert keys["ollama"] == (False, False)
    mulligan(*second)
    (row,) = json.loads(mulligan("runs", "list", "--json").out)
    (shown,) = json.loads(mulligan("runs", "show", row["run"], "--json").out)
    trials = shown.pop("trials")
    assert shown.pop("ratings") == []
    assert {**shown, "trials": len(trials)} == row
    assert [trial["attempt"]["output"] for trial in trials] == ["wrong", "right"]
    assert trials[0]["reflection"]["text"] == "Say right."


def test_weights_that_are_not_here_cannot_be_removed(mulligan: Run, tmp_path: Path) -> None:
    ended = mulligan("models", "remove", "smollm2-135m", "--yes")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "Error: The weights of smollm2-135m are not on this machine, so there is nothing to remove. Available: none.\n"
    )


def test_identical_0_never_stops(mulligan: Run, here: Path) -> None:
    (here / "same.txt").write_text("\n---\n".join(["wrong"] * 5))
    solve = ("solve", "say it", "--evaluator", "./judge.py", "--strategy", "none", "--trials", "5")
    assert "attempts are identical" in mulligan(*solve, "--model", "scripted:same.txt").err
    assert "5 of 5 tries used" in mulligan(*solve, "--model", "scripted:same.txt", "--identical", "0").err
    (here / "mulligan.toml").write_text("[limits]\nidentical = 0\n")
    assert "5 of 5 tries used" in mulligan(*solve, "--model", "scripted:same.txt").err
    assert mulligan("lint").status == 0


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ((), ""),
        (("solve",), " cli"),
        (("bench", "run"), " benchmarks"),
        (("bench", "report"), " benchmark-report"),
        (("runs", "show"), " record"),
        (("demo",), " tour"),
    ],
)
def test_help_ends_with_examples_and_the_docs(mulligan: Run, command: tuple[str, ...], page: str) -> None:
    shown = mulligan(*command, "--help").out
    _, _, examples = shown.partition("\n  Examples:\n")
    assert " ".join(("mulligan", *command)) in examples
    assert shown.endswith(f"Documentation: mulligan docs{page}\n")


def test_the_examples_are_commands_that_parse() -> None:
    import shlex

    import click

    from mulligan.cli.commands import EXAMPLES
    from mulligan.cli.main import cli

    for lines in EXAMPLES.values():
        for line in lines:
            words, command, ctx = shlex.split(line)[1:], cli, click.Context(cli)
            while isinstance(command, click.Group):
                _, found, words = command.resolve_command(ctx, words)
                assert found is not None, line
                command = found
            command.make_context(line, words)


@pytest.mark.parametrize(("short", "long"), [("-m", "--model"), ("-n", "--tries"), ("-s", "--strategy")])
def test_a_short_flag_means_the_same_in_each_command(mulligan: Run, short: str, long: str) -> None:
    for command in (("solve",), ("bench", "run")):
        assert f"{short}, {long} " in mulligan(*command, "--help").out


def test_a_command_that_was_removed_or_moved_says_so(mulligan: Run) -> None:
    assert "It was removed" in mulligan("memory", "kinds").err
    assert "It was removed" in mulligan("memory", "import-config", "x").err
    assert "Specify the coding agent" in mulligan("hooks", "prove", "tasks.toml").err
