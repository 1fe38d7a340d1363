"""A foresight as users reach it: in AGENT.md, in mulligan.toml, in Python, on the command line, in benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mortal_check import FILES
from seed_agents import lay
from toy_bench import HERE

import mulligan
from mulligan import ScriptedModel
from mulligan.app.config import load
from mulligan.app.trusting import trust
from mulligan.bench.harness.running import run_benchmark
from mulligan.cli.main import main
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Json
from mulligan.store import open_store

READ = {"tool": "read_skill", "arguments": {"name": "deleting"}}
DELETE = {"tool": "delete", "arguments": {"thing": "ledger"}}
FINISH = {"tool": "finish", "arguments": {"key": "done", "value": "tidy"}}
CHANGE: dict[str, Json] = {
    "risk": "The ledger is needed.",
    "critical": True,
    "reason": "The task says so.",
    "decision": "change",
    "action": 'delete(thing="drafts")',
    "question": "",
}
OWN = """
from mulligan.plugins import Ahead, Check

class Own:
    checks = 1
    def __init__(self, *, change: str = "delete(thing='x')"):
        self._change = change
    def critical(self, ahead: Ahead) -> str:
        return "mine" if "ledger" in ahead.action else ""
    async def check(self, ahead: Ahead, because: str):
        return Check(ahead.action, decision="change", change=self._change)
"""


def project(folder: Path, foresight: str = "", toml: str = "", tool: str = FILES["delete.py"]) -> None:
    agent = FILES["agents/tidy/AGENT.md"].replace("foresight: true\n", foresight)
    lay(folder, {**FILES, "agents/tidy/AGENT.md": agent, "mulligan.toml": toml, "delete.py": tool, "own.py": OWN})
    trust(folder)


async def tidied(model: ScriptedModel, **options: Any) -> Episode:
    async with open_store("memory:") as store:
        return await mulligan.run("tidy", "Tidy up, but keep the ledger.", model=model, store=store, **options)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("front", "toml", "options"),
    [
        ("foresight: true\n", "", {}),
        ("", "[foresight]\n", {}),
        ("foresight: false\n", "[foresight]\n", {"foresight": {"before": "declared"}}),
        ("", "", {"foresight": "premortem"}),
    ],
)
async def test_a_call_of_a_tool_is_changed(front: str, toml: str, options: dict[str, Any], here: Path) -> None:
    project(here, front, toml)
    model = ScriptedModel([READ, DELETE, CHANGE, FINISH])
    episode = await tidied(model, **options)
    assert (here / "done").read_text() == "delete drafts\n"
    step = episode.trials[0].attempt.steps[1]
    assert (step.action, step.observation) == ('delete(thing="drafts")', "gone")
    assert step.check is not None
    assert step.check.action == 'delete(thing="ledger")'
    told = model.questions[-1].messages[-1].text
    assert told.startswith("[What could go wrong: The ledger is needed. Decision: not delete(")
    assert told.endswith("]\ngone")


async def test_without_one_nothing_is_checked(here: Path) -> None:
    project(here, "foresight: false\n", "[foresight]\nbefore = 'delete'\n")
    episode = await tidied(ScriptedModel([READ, DELETE, FINISH]))
    assert (here / "done").read_text() == "delete ledger\n"
    assert all(step.check is None for step in episode.trials[0].attempt.steps)
    assert episode.head.settings["foresight"] is None


async def test_a_pattern_finds_calls_that_are_not_declared(here: Path) -> None:
    project(here, "foresight: {before: [DELETE], checks: 1}\n", tool=FILES["delete.py"].replace(", critical=True", ""))
    episode = await tidied(ScriptedModel([READ, DELETE, CHANGE, FINISH]))
    check = episode.trials[0].attempt.steps[1].check
    assert check is not None
    assert check.because == "pattern DELETE"


async def test_a_foresight_of_ones_own_beside_the_agent(here: Path) -> None:
    project(here, "foresight: {name: ../../own.py, change: 'delete(thing=\"drafts\")'}\n")
    episode = await tidied(ScriptedModel([READ, DELETE, DELETE, FINISH]))
    checks = [step.check for step in episode.trials[0].attempt.steps if step.check]
    assert [(check.because, check.asked) for check in checks] == [("mine", True), ("mine", False)]
    assert (here / "done").read_text() == "delete drafts\ndelete ledger\n"
    project(here, "foresight: ../../own.py\n")
    episode = await tidied(ScriptedModel([READ, DELETE, FINISH]))
    assert episode.stop is not None
    assert (episode.stop.reason, "Own.check replaced a call with" in episode.stop.detail) == ("error", True)


@pytest.mark.parametrize(
    ("front", "toml", "said"),
    [
        ('foresight: {before: ["("]}\n', "", "AGENT.md:7: premortem: '(' in `before` is not a regular expression"),
        ("foresight: {chekcs: 2}\n", "", "'chekcs'"),
        ("", "[foresight]\nchecks = 0\n", "mulligan.toml:2: foresight.checks must be"),
        ("", "[foresight]\nlessons = -1\n", "mulligan.toml:1: premortem: checks must be at least 1"),
    ],
)
def test_lint_finds_settings_that_cannot_be(
    front: str, toml: str, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project(here, front, toml)
    with pytest.raises(SystemExit) as ended:
        main(["lint"])
    assert ended.value.code != 0
    assert said in "".join(capsys.readouterr())


def test_a_number_of_checks_needs_what_is_checked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project(here)
    with pytest.raises(SystemExit) as ended:
        main(["run", "tidy", "Tidy.", "--checks", "3"])
    assert ended.value.code == 2
    assert "--check-before" in capsys.readouterr().err


def test_the_command_line_shows_what_was_checked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project(here, tool=FILES["delete.py"].replace(", critical=True", ""))
    (here / "model.json").write_text(json.dumps([READ, DELETE, CHANGE, FINISH]))
    for command in (
        ["run", "tidy", "Tidy.", "--model", "scripted:model.json", "--check-before", "delete", "--checks", "2", "-q"],
        ["runs", "list", "--json"],
    ):
        with pytest.raises(SystemExit):
            main(command)
    run = json.loads(capsys.readouterr().out.partition("\n")[2])[0]["run"]
    with pytest.raises(SystemExit):
        main(["runs", "show", run])
    shown = capsys.readouterr().out
    assert "Check before the action (pattern delete" in shown
    assert 'Decision: not delete(thing="ledger"), but delete(thing="drafts") (The task says so.).' in shown
    assert load().root == here


async def test_where_nothing_is_done_there_is_nothing_to_check(here: Path) -> None:
    (here / "toy.json").write_text('[{"id": "c", "prompt": "say"}]')
    async with open_store("memory:") as store:
        for method in ("reflexion", "reflexion-ucs"):
            with pytest.raises(InvalidInput, match="oresight"):
                await run_benchmark(
                    HERE, method=method, model=ScriptedModel([]), store=store, data="toy.json", foresight={}
                )


SHELF = str(Path(__file__).parent.parent / "support" / "shelf_world.py")
LEAVE: dict[str, Json] = {**CHANGE, "action": "delete drafts"}


def shelf(folder: Path) -> dict[str, Any]:
    """The options of `solve` that let it act at the shelf."""
    lay(folder, {"prompts/interact.shelf_world.md": "[[user]]\n{{task}}\n\n{{past}}\n\n{{trajectory}}"})
    return {"environment": SHELF, "prompts": "prompts"}


@pytest.mark.parametrize("foresight", ["premortem", {"before": "declared", "checks": 1}])
async def test_solve_checks_the_actions_in_an_environment(foresight: str | dict[str, Json], here: Path) -> None:
    model = ScriptedModel(["delete ledger", LEAVE])
    async with open_store("memory:") as store:
        episode = await mulligan.solve("Tidy up.", **shelf(here), foresight=foresight, model=model, store=store)
    assert episode.solved
    (check,) = [step.check for step in episode.trials[0].attempt.steps if step.check]
    assert (check.action, check.change, check.because) == ("delete ledger", "delete drafts", "declared")


async def test_a_solve_that_resumes_checks_as_before(here: Path) -> None:
    """The first trial has used up the only check; the trial after the resume finds none left."""
    options: dict[str, Any] = {**shelf(here), "foresight": {"checks": 1}, "reflector": "feedback"}
    harmless = {**CHANGE, "decision": "go_on", "action": ""}
    async with open_store("memory:") as store:
        first = ScriptedModel(["delete ledger", harmless])
        episode = await mulligan.solve("Tidy up.", trials=1, **options, model=first, store=store)
        assert not episode.solved
        second = ScriptedModel(["delete drafts"])
        run = (await store.list())[0].run
        episode = await mulligan.resume(run, fork=True, limits={"trials": 2}, model=second, store=store)
    assert episode.solved
    checks = [step.check for trial in episode.trials for step in trial.attempt.steps if step.check]
    assert [(check.action, check.asked) for check in checks] == [("delete ledger", True), ("delete drafts", False)]


def test_solve_checks_on_the_command_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = shelf(here)
    lay(here, {"says.json": json.dumps(["look", {**LEAVE, "decision": "go_on"}, "delete drafts"])})
    command = ["solve", "Tidy up.", "--environment", SHELF, "--prompts", options["prompts"], "--model"]
    command += ["scripted:says.json", "--check-before", "look", "--checks", "1", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 0
    run = json.loads(capsys.readouterr().out.splitlines()[-1])["run"]
    with pytest.raises(SystemExit):
        main(["runs", "show", run])
    shown = capsys.readouterr().out
    assert "The ledger is needed." in shown
    assert "The episode's limit of 1 check is reached." in shown


@pytest.mark.parametrize("actor", ["complete", "command:true"])
async def test_solve_refuses_to_check_an_actor_that_only_writes(actor: str, here: Path) -> None:
    model = ScriptedModel([])
    async with open_store("memory:") as store:
        with pytest.raises(InvalidInput, match="uses neither tools nor a Mulligan environment"):
            await mulligan.solve("t", actor=actor, check="true", foresight="premortem", model=model, store=store)
    assert not model.questions
