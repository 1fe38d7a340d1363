"""`mulligan run`, `lint` and `schema` at the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seed_agents import code_improver, lay

Mulligan = Callable[..., Any]
FINISHED = [
    {"tool": "finish", "arguments": {"key": "done", "value": "v1"}},
    {"tool": "finish", "arguments": {"key": "done", "value": "fine"}},
]
ONE = "---\nname: one\ndescription: d\nversion: '1'\npattern: oneshot\n---\nAnswer.\n"


@pytest.fixture
def script(here: Path) -> str:
    code_improver(here)
    lay(here, {"agents/one/AGENT.md": ONE, "script.json": json.dumps(FINISHED), "said.json": '["v1"]'})
    return "scripted:script.json"


def test_the_result_is_on_stdout_and_the_rest_on_stderr(mulligan: Mulligan, script: str) -> None:
    ended = mulligan("run", "my-reflexion", "t", "--model", script)
    assert (ended.status, ended.out) == (0, "v1\n")
    first, *_, last = ended.err.splitlines()
    assert first.endswith("code-improver, scripted:script.json@" + first.partition("@")[2])
    assert "judged by review, at most 4 tries" in first
    assert last.startswith("recorded: mulligan runs show ")


def test_one_that_nobody_judges_is_done_with_status_0(mulligan: Mulligan, script: str) -> None:
    ended = mulligan("run", "one", "t", "--model", "scripted:said.json")
    assert (ended.status, ended.out) == (0, "v1\n")
    assert "done, without a judge" in ended.err
    assert "judging" not in ended.err
    assert "no verdict" not in ended.err
    listed = mulligan("runs", "list", "--json")
    assert [row["state"] for row in json.loads(listed.out)] == ["done"]


def test_a_react_agent_at_its_step_limit_has_not_solved_it(mulligan: Mulligan, here: Path) -> None:
    lay(here, {"agents/r/AGENT.md": ONE.replace("oneshot", "react").replace("one", "r")})
    lay(here, {"script.json": json.dumps([{"tool": "look", "arguments": {"at": n}} for n in range(2)])})
    ended = mulligan("run", "r", "t", "--model", "scripted:script.json", "--max-iter", "2", "--json")
    last = json.loads(ended.out.splitlines()[-1])
    assert (ended.status, last["stop"]["reason"], last["passed"]) == (1, "exhausted", False)
    acted = next(json.loads(line) for line in ended.out.splitlines() if '"acted"' in line)
    assert acted["attempt"]["outcome"]["halted"] == "the step limit of 2 was reached without a call of finish"
    assert len(acted["attempt"]["steps"]) == 2


def test_the_trace_shows_each_call(mulligan: Mulligan, script: str) -> None:
    ended = mulligan("run", "my-reflexion", "Add up.", "--model", script, "--trace", "--quiet")
    lines = ended.err.splitlines()
    assert lines[:3] == [
        "  trial.1/act/model.actor#1",
        "    → Add up.",
        '    ← finish({"key": "done", "value": "v1"})',
    ]
    assert lines[-2:] == ["  trial.1/evaluate/verdict#1", "    ← passed: fine"]


@pytest.mark.slow
def test_the_trace_says_which_tools_a_skill_unlocked(mulligan: Mulligan, here: Path) -> None:
    skill = "---\nname: s\ndescription: d\ntools: [list_files, read_file]\n---\nRead.\n"
    agent = ONE.replace("oneshot", "react\nuses: [s]").replace("one", "r")
    calls = [{"tool": "read_skill", "arguments": {"name": "s"}}, FINISHED[0]]
    lay(here, {"agents/r/AGENT.md": agent, "skills/s/SKILL.md": skill, "script.json": json.dumps(calls)})
    options = ("--workspace", "agents", "--mode", "copy", "--trace")
    ended = mulligan("run", "r", "t", "--model", "scripted:script.json", *options)
    assert "    ← unlocked: list_files, read_file" in ended.err.splitlines()


def test_the_trace_is_json_with_json(mulligan: Mulligan, script: str) -> None:
    ended = mulligan("run", "my-reflexion", "t", "--model", script, "--trace", "--json")
    events = [json.loads(line) for line in ended.out.splitlines()]
    steps = [event for event in events if event["event"] == "step"]
    assert [step["key"] for step in steps] == [
        "trial.1/act/model.actor#1",
        "trial.1/evaluate/verdict#1/model.evaluator#1",
        "trial.1/evaluate/verdict#1",
    ]


def told(mulligan: Mulligan, *arguments: str) -> str:
    """What the model is told of the task."""
    ended = mulligan("run", "one", *arguments, "--model", "scripted:said.json", "--trace", "--quiet")
    assert ended.status == 0, ended.err
    return ended.err.partition("→ ")[2].partition("    ←")[0].strip()


def test_a_file_is_the_task_or_what_it_is_about(mulligan: Mulligan, here: Path, script: str) -> None:
    (here / "notes.txt").write_text("Some notes.\n")
    assert told(mulligan, "--input", "notes.txt") == "Some notes."
    assert " ".join(told(mulligan, "Sum up.", "--input", "notes.txt").split()) == "Sum up. notes.txt: Some notes."


@pytest.mark.slow
def test_standard_input_is_the_task(process: Mulligan, here: Path, script: str) -> None:
    ended = process("run", "one", "-", "--model", "scripted:said.json", "--trace", "--quiet", stdin="From a pipe.\n")
    assert (ended.status, ended.out) == (0, "v1\n")
    assert "→ From a pipe." in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("my-reflexion",), "Specify the task"),
        (("my-reflexion", " "), "The task is empty"),
        (("my-reflexio", "t"), "Did you mean 'my-reflexion'?"),
        (("./nowhere", "t"), "does not exist"),
        (("my-reflexion", "t", "--max-iter", "0"), "max_iter must be at least 1"),
        (("my-reflexion", "t", "--mode", "copy"), "pass its folder"),
        (("my-reflexion", "-", "--input", "-"), "Standard input can be the task or the input"),
        (("my-reflexion", "--input", "nowhere.txt"), "does not exist"),
        (("my-reflexion", "t", "--model", "nobody"), "No model is called 'nobody'"),
    ],
)
def test_bad_input_is_refused_with_status_2(
    mulligan: Mulligan, script: str, arguments: tuple[str, ...], said: str
) -> None:
    ended = mulligan("run", *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_a_broken_agent_says_all_that_is_wrong_before_any_model_is_called(
    mulligan: Mulligan, here: Path, script: str
) -> None:
    lay(here, {"agents/bad/AGENT.md": ONE.replace("name: one", "name: Bad One").replace("version: '1'\n", "")})
    ended = mulligan("run", "bad", "t", "--model", script)
    assert ended.status == 2
    assert "agents/bad/AGENT.md:2: " in ended.err
    assert "version" in ended.err


# --- lint and schema --------------------------------------------------------------------------------------------


def test_lint_finds_nothing_in_the_seeds_agent(mulligan: Mulligan, here: Path) -> None:
    code_improver(here)
    ended = mulligan("lint")
    assert ended == (0, "", "1 agent, 0 skills: no mistake\n")


def test_lint_collects_everything_in_a_project(mulligan: Mulligan, here: Path) -> None:
    code_improver(here)
    lay(
        here,
        {
            "mulligan.toml": "modle = 'local'\n",
            "agents/one/AGENT.md": ONE.replace("pattern", "max_iters: 3\npattern"),
            "agents/two/AGENT.md": ONE,
            "skills/unused/SKILL.md": "---\nname: unused\ndescription: d\ntools: [read_fil]\n---\nRead.\n",
        },
    )
    ended = mulligan("lint")
    assert ended.status == 2
    assert [line.partition(": ")[0] for line in ended.out.splitlines()] == [
        "mulligan.toml:1",
        "agents/one/AGENT.md:5",
        "agents/two/AGENT.md:2",
    ]
    (here / "mulligan.toml").write_text("")
    ended = mulligan("lint", "skills")
    assert ended.out.startswith("skills/unused/SKILL.md:4: ")
    assert "Did you mean 'read_file'?" in ended.out


def test_lint_takes_the_project_that_the_folder_is_in(
    mulligan: Mulligan, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(here, {"mulligan.toml": "modle = 'local'\n", "agents/one/AGENT.md": ONE, "deep/down/x": ""})
    monkeypatch.chdir(here / "deep" / "down")
    ended = mulligan("lint")
    assert (ended.status, ended.out.partition(" ")[0]) == (2, f"{here}/mulligan.toml:1:")


def test_lint_for_a_program(mulligan: Mulligan, here: Path) -> None:
    folder = lay(here / "agents" / "one", {"AGENT.md": ONE.replace("oneshot", "debate")})
    ended = mulligan("lint", str(folder / "AGENT.md"), "--json")
    (row,) = json.loads(ended.out)
    assert (ended.status, row["file"], row["line"], row["level"]) == (2, str(folder / "AGENT.md"), 5, "error")


@pytest.mark.parametrize(
    ("path", "said"), [("nowhere", "does not exist"), ("empty", "There is nothing to check in empty")]
)
def test_lint_of_nothing_is_bad_input(mulligan: Mulligan, here: Path, path: str, said: str) -> None:
    (here / "empty").mkdir()
    ended = mulligan("lint", path)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
