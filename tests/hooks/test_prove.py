"""`mulligan bench prove`, with an agent that is a script: it does what a lesson says if its hooks show one."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_story import taught
from agent_transcripts import in_format
from coding_agents import CLAUDE, FAILS, MENDS, desk

from mulligan.bench.harness.proof import Plan, ProofTask, Row
from mulligan.bench.report.proof import proof_report, verdict
from mulligan.cli.main import main
from mulligan.hooks.entry import answer
from mulligan.hooks.journal import Journal
from mulligan.sessions.agents import agent as hook_agent
from mulligan.sessions.events import Notice

STUDY = Path(__file__).parents[2] / "studies" / "hooks"
AGENT = f"""
import json, os, sys
from pathlib import Path
sys.path.insert(0, {str(STUDY)!r})
from agent import Session
from mulligan.core.home import home

prompt = sys.stdin.read()
with open(os.environ["ASKED"], "a") as asked:
    asked.write(prompt + "\\n")
if "die" in prompt and not os.path.exists(os.environ["ASKED"] + ".died"):
    Path(os.environ["ASKED"] + ".died").touch()
    os.kill(int(os.environ["PROVE"]), 9)
session = Session(os.getcwd(), home() / "transcripts" / "one.jsonl", hooks="silent" not in prompt)
session.hook("SessionStart", source="startup")
session.write("user", prompt)
for command in ("sh tool.sh billing", "sh tool.sh billing"):
    code, shown = session.run(command)
    if "sh open.sh" in shown:
        session.run("sh open.sh")
session.hook("SessionEnd")
print(json.dumps({{"usage": {{"input_tokens": 5, "output_tokens": 7}}}}))
"""
TOOL = '[ -e .open ] || { echo "error: the gate is closed" >&2; exit 1; }\ntouch out-$1\n'


def project(folder: Path) -> None:
    folder.mkdir()
    (folder / "tool.sh").write_text(TOOL)
    (folder / "open.sh").write_text("touch .open; echo open")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a project `p` whose bank holds a lesson, and agent.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # of which agents may write to some folders
    (tmp_path / ".cache").mkdir()
    monkeypatch.setenv("ASKED", str(tmp_path / ".cache" / "asked"))
    monkeypatch.setenv("MULLIGAN_HOOKS_SECONDS", "30")
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)
    project(tmp_path / "p")
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "teach.py").write_text(
        f"import sys; sys.path.insert(0, {str(STUDY)!r})\n"
        "from pathlib import Path\nfrom agent import Session\n"
        "session = Session('p', Path('old.jsonl'), hooks=False)\n"
        "session.write('user', 'Use the tool on orders.')\n"
        "for command in ('sh tool.sh orders', 'sh open.sh', 'sh tool.sh orders'):\n    session.run(command)\n"
    )
    subprocess.run([sys.executable, "teach.py"], check=True)
    for made in (tmp_path / "p").glob("out-*"):
        made.unlink()
    (tmp_path / "p" / ".open").unlink()
    text = (tmp_path / "old.jsonl").read_text().replace('"cwd": "p"', f'"cwd": "{tmp_path / "p"}"')
    (tmp_path / "old.jsonl").write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["learn", "old.jsonl"])
    assert ended.value.code == 0
    return tmp_path


Prove = Callable[..., tuple[object, str, str]]


@pytest.fixture
def prove(here: Path, capsys: pytest.CaptureFixture[str]) -> Prove:
    """Runs the command in this process: its status, and what it prints."""

    def run(*arguments: str) -> tuple[object, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["bench", "prove", *arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


def tasks(
    folder: Path, *more: str, prompt: str = "Use the tool on billing.", check: str = "test -e out-billing"
) -> str:
    """A file with a task for each of these names, or one."""
    file = folder / "tasks.toml"
    each = '[[task]]\nname = "{}"\nprompt = "{}"\ncheck = "{}"\nfolder = "p"\n'
    file.write_text("".join(each.format(name, prompt, check) for name in more or ("one",)))
    return str(file)


def agent(folder: Path) -> tuple[str, str]:
    return "--agent", f"command:{sys.executable} {folder / 'agent.py'}"


def rows(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "runs.csv").read_text().splitlines()))


@pytest.mark.slow
def test_an_agent_that_heeds_lessons_solves_the_task_with_the_bank_and_not_without(here: Path, prove: Prove) -> None:
    status, out, err = prove(tasks(here), *agent(here), "--into", "into")
    assert status == 0, err
    by = {row["arm"]: row for row in rows(here / "into")}
    with_, without = by["treatment"], by["control"]
    assert (with_["solved"], with_["failed"], with_["again"], with_["calls"], with_["shown"]) == (
        "True",
        "1",
        "0",
        "3",
        "1",
    )
    assert (without["solved"], without["failed"], without["again"], without["calls"]) == ("False", "2", "1", "2")
    assert without["shown"] == "0"
    assert with_["tokens"] == "12"
    assert "only with the bank: 1" in out
    assert sorted(file.name for file in (here / "p").iterdir()) == ["open.sh", "tool.sh"]
    assert not list((here / "into" / "homes").iterdir())
    assert not any((here / "into" / "work").iterdir())


@pytest.mark.slow
def test_nothing_is_learned_and_the_bank_of_the_user_is_not_touched(here: Path, prove: Prove) -> None:
    home = Path(os.environ["MULLIGAN_HOME"])
    before = (home / "mulligan.db").read_bytes()
    prove(tasks(here), *agent(here), "--into", "into")
    assert (home / "mulligan.db").read_bytes() == before
    with Journal() as journal:
        assert journal.sessions() == []
        assert journal.errors() == []


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(("value", "started"), [("recall", 0), ("on", 1)])
def test_hooks_that_only_recall_start_no_process_that_learns(
    here: Path, monkeypatch: pytest.MonkeyPatch, value: str, started: int
) -> None:
    commands = list[list[str]]()

    def spawn(_: str, command: list[str], environ: object, **options: object) -> int:
        commands.append(command)
        return 2**22

    monkeypatch.setattr(os, "posix_spawn", spawn)
    with Journal() as journal:
        notice = Notice("claude", "end", "s1", str(here / "p"), event="SessionEnd", transcript="t.jsonl")
        assert answer(hook_agent("claude"), notice, journal, {"MULLIGAN_HOOKS": value}) == ""
    assert len(commands) == started


@pytest.mark.slow
def test_a_project_in_git_is_run_in_worktrees_and_left_as_it_was(here: Path, prove: Prove) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(here / "p")]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    (here / "tasks.toml").write_text(Path(tasks(here)).read_text())
    file = here / "tasks.toml"
    file.write_text(f'bank = "project:{here / "p"}"\n{file.read_text()}')
    status, out, _ = prove(str(file), *agent(here), "--into", "into")
    assert status == 0
    assert "only with the bank: 1" in out
    said = subprocess.run([*git, "for-each-ref"], capture_output=True, text=True, check=True).stdout
    assert "mulligan" not in said
    assert (
        subprocess.run([*git, "worktree", "list"], capture_output=True, text=True, check=True).stdout.count("\n") == 1
    )


@pytest.mark.slow
def test_what_has_ended_is_not_run_again_after_a_kill(here: Path) -> None:
    file = tasks(here, "first", "second")
    Path(file).write_text(Path(file).read_text()[::-1].replace("gnillib no", "gnillib no eid", 1)[::-1])
    command = f"exec env PROVE=$$ {sys.executable} -m mulligan hooks prove"
    ran = subprocess.run(["sh", "-c", f'{command} {file} {agent(here)[0]} "{agent(here)[1]}" --into into'], timeout=120)
    assert ran.returncode == -signal.SIGKILL
    with (here / "into" / "runs.jsonl").open("a") as kept:
        kept.write('{"n": 3, "task"')  # as if the kill had come a little earlier
    resume = [sys.executable, "-m", "mulligan", "bench", "prove", "--resume", "into"]
    done = subprocess.run(resume, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    asked = (here / ".cache" / "asked").read_text()
    assert (asked.count("tool on billing"), asked.count("die on billing")) == (2, 3)
    assert [row["n"] for row in rows(here / "into")] == ["1", "2", "3", "4"]
    assert not any((here / "into" / "work").iterdir())


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no task"),
        ('[[task]]\nname = "a"\nprompt = "b"\n', "has no check"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "false"\nchek = "c"\n', "chek"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "false"\nfolder = "nowhere"\n', "does not exist"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "true"\nfolder = "p"\n', "already passes"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "no-such-program"\nfolder = "p"\n', "starts 'no-such-program'"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "./none.sh"\nfolder = "p"\n', "none.sh"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "sh -c nope-nope"\nfolder = "p"\n', "nope-nope: not found"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "test -e x && ls"\n', "Write sh -c 'test -e x && ls'"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "ls | grep x"\n', "Write sh -c 'ls | grep x'"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "false"\nsetup = "rm x; touch y"\n', "setup 'rm x; touch y'"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "false"\nsetup = "no-such-setup"\n', "starts 'no-such-setup'"),
        ('[[task]]\nname = "a"\nprompt = "b"\ncheck = "false"\nsetup = "false"\nfolder = "p"\n', "setup failed"),
        ('bank = "project:other"\n[[task]]\nname = "a"\nprompt = "b"\ncheck = "false"\n', "no lessons"),
    ],
)
def test_a_mistake_is_named_before_the_agent_is_called(here: Path, prove: Prove, text: str, said: str) -> None:
    (here / "tasks.toml").write_text(text)
    status, _, err = prove("tasks.toml", *agent(here), "--into", "into")
    assert status == 2
    assert said in err
    assert "tasks.toml" in err or said == "no lessons"
    assert not (here / ".cache" / "asked").exists()
    assert not (here / "into").exists(), "no copy of the bank is left"


def test_an_agent_that_cannot_be_started_or_a_missing_file_is_named(here: Path, prove: Prove) -> None:
    status, _, err = prove(tasks(here), "--agent", "command:no-such-agent -p", "--into", "into")
    assert status == 2
    assert "'no-such-agent' was not found" in err
    status, _, err = prove("none.toml", *agent(here))
    assert status == 2
    assert "none.toml does not exist" in err
    status, _, err = prove("--resume", "p")
    assert status == 2
    assert "contains no comparison" in err
    status, _, err = prove(tasks(here), *agent(here), "--into", "p/into")
    assert status == 2
    assert "is inside the project" in err


@pytest.mark.slow
def test_an_agent_without_hooks_ends_the_proof_at_its_first_run(here: Path, prove: Prove) -> None:
    status, _, err = prove(tasks(here, prompt="Be silent."), *agent(here), "--into", "into")
    assert status == 2
    assert "did not call Mulligan" in err
    assert (here / ".cache" / "asked").read_text().count("silent") == 1


@pytest.mark.slow
def test_setup_brings_the_copy_into_the_state_of_the_task(here: Path, prove: Prove) -> None:
    file = Path(tasks(here))
    file.write_text(file.read_text() + 'setup = "touch .open"\n')
    assert prove(str(file), *agent(here), "--into", "into")[0] == 0
    assert {row["solved"] for row in rows(here / "into")} == {"True"}
    assert {row["failed"] for row in rows(here / "into")} == {"0"}
    assert "No lesson was shown" in prove("--report", "into")[1]


@pytest.mark.slow
def test_a_draft_has_the_command_that_was_green_and_can_be_read(here: Path, prove: Prove, tmp_path: Path) -> None:
    os.chdir(here / "p")
    status, _, err = prove("--draft", "../drafted.toml")
    assert status == 0, err
    text = (here / "drafted.toml").read_text()
    assert 'check = "sh tool.sh orders"' in text
    assert "works after:" in text
    assert prove("--draft", "../drafted.toml")[0] == 2
    status, out, err = prove("../drafted.toml", *agent(here), "--into", "../into", "--format", "json")
    assert status == 0, err
    assert json.loads(out)["ended"] == 2


@pytest.mark.slow
def test_a_draft_quotes_what_the_user_had_said(here: Path, prove: Prove) -> None:
    with Journal() as journal:
        id = str(json.loads((here / "old.jsonl").read_text().partition("\n")[0])["sessionId"])
        notice = Notice("claude", "stop", id, str(here / "p"), transcript=str(here / "old.jsonl"))
        journal.seen(notice, f"project:{here / 'p'}")
    os.chdir(here / "p")
    assert prove("--draft", "../drafted.toml")[0] == 0
    assert 'prompt = "Use the tool on orders."' in (here / "drafted.toml").read_text()


def test_a_draft_gives_what_only_a_shell_understands_to_a_shell(here: Path, prove: Prove) -> None:
    again = "make *.o"
    story = (("user", "Build."), ("sh", again, "error: no clock", 2), ("sh", "make clock", "", 0), ("sh", again, "", 0))
    (here / "two.jsonl").write_text(in_format("claude", story, folder=str(here / "p"), session="s2"))
    with pytest.raises(SystemExit):
        main(["learn", "two.jsonl"])
    os.chdir(here / "p")
    assert prove("--draft", "../drafted.toml")[0] == 0
    assert f"""check = "sh -c '{again}'\"""" in (here / "drafted.toml").read_text()


@pytest.mark.slow
def test_what_a_killed_proof_left_is_removed_at_the_next_start(here: Path, prove: Prove) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(here / "p")]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], check=True)
    file = Path(tasks(here, check="sh -c 'kill -9 $PROVE'"))
    bank = f'bank = "project:{here / "p"}"\n'
    file.write_text(bank + file.read_text())
    command = f"exec env PROVE=$$ {sys.executable} -m mulligan hooks prove"
    ran = subprocess.run(["sh", "-c", f'{command} {file} {agent(here)[0]} "{agent(here)[1]}"'], timeout=120)
    assert ran.returncode == -signal.SIGKILL
    (left,) = (Path(os.environ["MULLIGAN_HOME"]) / "proofs").iterdir()
    assert any((left / "work").iterdir())
    file.write_text(bank + Path(tasks(here)).read_text())
    status, _, err = prove(str(file), *agent(here), "--into", "into")
    assert status == 0, err
    assert "Removed leftovers of 1 session from killed comparisons" in err
    assert not left.exists()
    listed = subprocess.run([*git, "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert listed.count("\n") == 1


@pytest.mark.slow
async def test_claude_code_itself_is_run_with_the_bank_and_without(tmp_path: Path) -> None:
    async with desk(CLAUDE, tmp_path) as at:
        await at.mulligan("hooks", "install", "claude", "--yes")
        await at.session("Write the report.", [FAILS, MENDS, FAILS])
        await taught(at)
        (at.project / "orders.schema").unlink()
        task = f'[[task]]\nname = "one"\nprompt = "Write it."\ncheck = "{FAILS}"\nfolder = "{at.project}"\n'
        (tmp_path / "tasks.toml").write_text(task)
        fails, mends = ([at.agent.call(command, f"call_{n}")] for n, command in enumerate((FAILS, MENDS)))
        at.server.script.load(
            [
                {"when": "the report is written", "answer": "Done."},
                {"when": "generated orders.schema", "calls": [at.agent.call(FAILS, "call_again")]},
                {"when": "mulligan-lessons", "calls": mends},
                {"after": 0, "calls": fails},
                {"when": "", "answer": "I give up."},
            ]
        )
        program = at.node.folder / "node_modules" / at.agent.program
        command = f"command:{program} {' '.join(CLAUDE.options)} --output-format json"
        into = tmp_path / "into"
        await at.mulligan("bench", "prove", str(tmp_path / "tasks.toml"), "--agent", command, "--into", str(into))
        by = {one["arm"]: one for one in rows(into)}
        measured = {arm: [one[name] for name in ("solved", "calls", "failed", "shown")] for arm, one in by.items()}
        assert measured == {"treatment": ["True", "3", "1", "1"], "control": ["False", "1", "1", "0"]}
        assert all(int(one["tokens"]) > 0 for one in by.values())


# --- figures ---------------------------------------------------------------------------------------------------------


def row(task: str, arm: str, solved: bool, n: int = 0) -> Row:
    return Row(n, task, task[0], 1, arm, solved, True, 1, 3, 1, 0, 1.0, None, "", 0)  # pyright: ignore[reportArgumentType]


def plan(names: list[str]) -> Plan:
    return Plan(tuple(ProofTask(name, "", "", "", name[0], "", "b", "") for name in names), "agent")


def test_differences_are_paired_by_task_and_clustered_by_family() -> None:
    names = [f"{family}{n}" for family in "abcdef" for n in (1, 2)]
    done = [row(name, "control", False) for name in names] + [row(name, "treatment", name < "d") for name in names]
    report = proof_report(plan(names), done)
    solved = report.differences["solved"]
    assert (solved.value, solved.n, solved.clusters) == (0.5, 12, 6)
    assert report.clusters == "family"
    assert report.counts is not None
    assert (report.counts.only_b, report.counts.only_a, report.counts.neither) == (6, 0, 6)
    assert "tokens" not in report.differences
    assert "No difference in solved tasks was shown. These tasks could have shown one of" in verdict(report)[0]


def test_a_task_that_only_one_arm_has_ended_is_in_no_difference() -> None:
    names = ["a1", "b1", "c1"]
    done = [row("a1", "control", False), row("a1", "treatment", True), row("b1", "treatment", True)]
    report = proof_report(plan(names), done)
    assert report.differences["solved"].n == 1
    assert "too few" in verdict(report)[0]
    assert report.planned == 6


def test_a_difference_that_all_tasks_share_is_shown_and_its_direction_said() -> None:
    names = [f"{family}1" for family in "abcdefgh"]
    done = [row(name, "control", True) for name in names] + [row(name, "treatment", False) for name in names]
    assert verdict(proof_report(plan(names), done))[0].startswith("With the bank, fewer tasks are solved: -100%")


def test_the_order_of_arms_is_drawn_and_the_same_each_time() -> None:
    names = [f"{n}" for n in range(20)]
    first = [one.arm for one in plan(names).runs()]
    assert first == [one.arm for one in plan(names).runs()]
    assert {tuple(first[n : n + 2]) for n in range(0, 40, 2)} == {("control", "treatment"), ("treatment", "control")}
