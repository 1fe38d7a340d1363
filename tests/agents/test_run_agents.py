"""Agents found, refused, judged by something real, resumed after an edit, at work in a folder."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from seed_agents import code_improver, lay

import mulligan
from mulligan import Episode, ScriptedModel
from mulligan.app.agents import remade
from mulligan.app.config import load
from mulligan.app.recipe import Recipe
from mulligan.app.trusting import trust
from mulligan.core.errors import InvalidInput, JournalDiverged, UnknownName
from mulligan.core.protocols import Learned
from mulligan.core.records import Lesson, Recall, Task

ONESHOT = {
    "AGENT.md": "---\nname: {name}\ndescription: d\nversion: '1'\npattern: oneshot\n{more}---\nAnswer.\n",
}
REACT = "---\nname: {name}\ndescription: d\nversion: '1'\npattern: react\ncall: {{uses: [kit]}}\n{more}---\nWork, then finish.\n"


def single(project: Path, name: str, text: str, more: str = "") -> None:
    lay(project / "agents" / name, {"AGENT.md": text.format(name=name, more=more)})


def reflexion(project: Path, more: str = "") -> Path:
    files = {
        "AGENT.md": f"---\nname: tried\ndescription: d\nversion: '1'\npattern: reflexion\nmax_iter: 3\n{more}---\n",
        "act.md": "---\npattern: oneshot\n---\nAnswer.",
        "reflect.md": "Review. Say DONE when it is right.",
    }
    return lay(project / "agents" / "tried", files)


def finish(value: str) -> dict[str, Any]:
    return {"tool": "finish", "arguments": {"key": "done", "value": value}}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def reason(episode: Episode) -> str | None:
    return episode.stop.reason if episode.stop else None


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "given", ["my-reflexion", "code-improver", "agents/my-reflexion", "agents/my-reflexion/AGENT.md"]
)
async def test_an_agent_is_found_by_folder_by_name_and_by_path(project: Path, given: str) -> None:
    code_improver(project)
    episode = await mulligan.run(given, "t", model=ScriptedModel([finish("v"), finish("ok")]))
    assert (reason(episode), episode.agent) == ("solved", "code-improver")


@pytest.mark.parametrize("name", ["code-improver", "answerer", "writer"])
async def test_the_agents_that_ship_run_anywhere(project: Path, name: str) -> None:
    episode = await mulligan.run(name, "t", model=ScriptedModel(["v1", "RETRY: shorter", "v2", "DONE"]))
    assert (reason(episode), len(episode.trials)) == ("solved", 2)


async def test_a_name_that_is_not_there_brings_the_nearest(project: Path) -> None:
    code_improver(project)
    with pytest.raises(UnknownName, match="my-reflexion"):
        await mulligan.run("my-reflexio", "t", model=ScriptedModel([]))


async def test_two_agents_of_one_name_are_refused(project: Path) -> None:
    for folder in ("a", "b"):
        lay(project / "agents" / folder, {"AGENT.md": ONESHOT["AGENT.md"].format(name="twin", more="")})
    with pytest.raises(InvalidInput, match=r"2 agents are named 'twin'"):
        await mulligan.run("twin", "t", model=ScriptedModel([]))


async def test_an_unknown_key_is_a_warning_here(project: Path) -> None:
    single(project, "one", ONESHOT["AGENT.md"], "max_iters: 3\n")
    told: list[str] = []
    await mulligan.run("one", "t", model=ScriptedModel(["v"]), notice=told.append)
    assert [line for line in told if "max_iters" in line and "warning" in line]


async def test_a_step_that_nobody_judges_has_no_verdict(project: Path) -> None:
    single(project, "one", ONESHOT["AGENT.md"])
    episode = await mulligan.run("one", "t", model=ScriptedModel(["v"]))
    assert (reason(episode), episode.judged) == ("exhausted", False)
    assert episode.best
    assert episode.best.attempt.output == "v"


async def test_max_iter_without_a_judge_says_that_it_has_no_effect(project: Path) -> None:
    single(project, "one", ONESHOT["AGENT.md"])
    notices: list[str] = []
    episode = await mulligan.run("one", "t", model=ScriptedModel(["v"]), max_iter=3, notice=notices.append)
    assert len(episode.trials) == 1
    assert [line for line in notices if "max_iter has no effect" in line and "evaluate" in line]


@pytest.mark.slow
async def test_tests_judge_and_the_reflector_reflects(project: Path) -> None:
    folder = reflexion(project, "evaluate: {tests: tests.py}\n")
    lay(folder, {"tests.py": "assert add(1, 2) == 3\n"})
    model = ScriptedModel(["def add(a, b): return a - b", "Add them.", "def add(a, b): return a + b"])
    episode = await mulligan.run("tried", "Write add(a, b).", model=model)
    assert (reason(episode), len(episode.trials)) == ("solved", 2)
    first = episode.trials[0]
    assert first.feedback
    assert first.feedback.source == "unit_tests"
    assert first.reflection
    assert first.reflection.text == "Add them."
    reviewed, again = (model.questions[n].messages[-1].text for n in (1, 2))
    assert reviewed.startswith("Task: Write add(a, b).\n\nResult:\ndef add(a, b): return a - b\n\nFeedback:\n")
    assert again.startswith("Original task: Write add(a, b).\n\nPrevious attempt:\ndef add")
    assert again.endswith("- Add them.\n\nPlease improve your answer based on this feedback.")


async def test_with_the_strategy_reflexion_the_review_is_the_lesson(project: Path) -> None:
    reflexion(project, "strategy: reflexion\n")
    model = ScriptedModel(["v1", "RETRY: shorter", "v2", "DONE"])
    episode = await mulligan.run("tried", "t", model=model)
    assert [r.text for r in episode.reflections] == ["RETRY: shorter"]
    assert "v1" not in model.questions[2].messages[-1].text
    assert "- RETRY: shorter" in model.questions[2].messages[-1].text


async def test_an_edited_file_is_named_when_the_run_is_resumed(project: Path) -> None:
    folder = reflexion(project)
    script = project / "answers.json"
    script.write_text('["v1", "RETRY: no"]')
    episode = await mulligan.run("tried", "t", model=f"scripted:{script}", limits={"seconds": 60})
    assert reason(episode) == "error"
    (folder / "act.md").write_text("---\npattern: oneshot\n---\nAnswer better.")
    with pytest.raises(JournalDiverged, match=r"agents/tried/act\.md"):
        await mulligan.resume(episode.run)
    forked = await mulligan.resume(episode.run, fork=True, model=ScriptedModel(["v2", "DONE"]))
    assert (reason(forked), len(forked.trials)) == ("solved", 2)


async def test_max_iter_and_limits_are_kept_on_a_resume(project: Path) -> None:
    reflexion(project)
    script = project / "answers.json"
    script.write_text('["v1", "RETRY: no", "v2", "RETRY: no", "v3"]')
    episode = await mulligan.run("tried", "t", model=f"scripted:{script}", max_iter=2)
    assert (reason(episode), len(episode.trials)) == ("exhausted", 2)
    assert episode.head.settings["agent"]["max_iter"] == 2


async def test_max_iter_limits_the_tries_of_an_agent_that_answers_once(project: Path) -> None:
    single(project, "judged", ONESHOT["AGENT.md"], "evaluate: {evaluator: 'exact_match:42'}\nlimits: {trials: 3}\n")
    model = ScriptedModel(["1", "2", "3"])
    episode = await mulligan.run("judged", "t", model=model, max_iter=1)
    assert (reason(episode), len(episode.trials)) == ("exhausted", 1)


async def test_what_of_the_bank_is_shown_is_kept_on_a_resume(project: Path) -> None:
    reflexion(project)
    script = project / "answers.json"
    script.write_text('["v1", "DONE"]')
    options: dict[str, Any] = {"model": f"scripted:{script}", "bank": "own", "forms": ["notebook"]}
    paused = await mulligan.run("tried", "t", **options, max_tokens=1)
    assert reason(paused) == "over_budget"
    resumed = await mulligan.resume(paused.run, limits={"tokens": None})
    assert (reason(resumed), resumed.head.settings["memory"]) == ("solved", {"forms": ["notebook"]})


async def test_memory_recalls_from_the_bank_that_is_handed_in(project: Path) -> None:
    single(project, "one", ONESHOT["AGENT.md"], "memory: {top_k: 2}\n")
    trust(project)

    class Bank:
        asked: int | None = None
        taught: Any = None

        async def recall(self, task: Task, *, top_k: int | None = None) -> Recall:
            self.asked = top_k
            return Recall("r1", (Lesson("l1", "t", "c", "success"),), formatted_prompt="Mind the gap.")

        async def learn(self, episodes: Any) -> Learned:
            self.taught = [reason(episode) for episode in episodes]
            return Learned(("l2",), success=True)

    bank, model, told = Bank(), ScriptedModel(["v"]), list[str]()
    await mulligan.run("one", "t", model=model, bank=bank, notice=told.append)
    assert bank.asked == 2
    assert model.questions[0].messages[-1].text == "t\n\nMind the gap."
    assert bank.taught == ["exhausted"]
    assert told == ["1 lesson learned: l2"]


# --- tools ------------------------------------------------------------------------------------------------------

DICE = """
from mulligan.core.questions import Tool

class Dice:
    async def offer(self):
        return (Tool("roll", "Rolls.", {"type": "object", "properties": {}}, repeatable=True),)

    async def call(self, tool, arguments):
        return "six"

    async def close(self): ...
"""


def kit(project: Path, tools: str) -> None:
    text = f"---\nname: kit\ndescription: What there is.\ntools: {tools}\n---\nUse it.\n"
    lay(project / "skills" / "kit", {"SKILL.md": text, "dice.py": DICE})


async def test_a_tool_of_the_users_own(project: Path) -> None:
    kit(project, '["./dice.py"]')
    single(project, "worker", REACT)
    trust(project)
    model = ScriptedModel([call("read_skill", name="kit"), call("roll"), finish("rolled")])
    episode = await mulligan.run("worker", "Roll.", model=model)
    assert [step.observation for step in episode.trials[0].attempt.steps][1] == "six"
    assert [tool.name for tool in model.questions[0].tools] == ["finish", "read_skill"]
    assert [tool.name for tool in model.questions[1].tools] == ["finish", "read_skill", "roll"]


async def test_tools_on_files_need_a_workspace(project: Path) -> None:
    kit(project, "[write_file]")
    single(project, "worker", REACT)
    model = ScriptedModel([])
    with pytest.raises(InvalidInput, match=r"worker works in a folder \(write_file\): .*workspace="):
        await mulligan.run("worker", "Write.", model=model)
    assert model.questions == []


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
    ran = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    return ran.stdout


@pytest.mark.slow
async def test_work_in_a_worktree_comes_back_as_a_branch(project: Path) -> None:
    kit(project, "[write_file, read_file, run_command]")
    single(project, "worker", REACT)
    trust(project)
    repo = lay(project / "repo", {"a.txt": "old\n"})
    git(repo, "init", "-q")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "start")
    answers = [
        call("read_skill", name="kit"),
        call("write_file", path="a.txt", content="new\n"),
        call("run_command", command="cat a.txt >> b.txt"),
        call("read_file", path="../secret"),
        finish("written"),
    ]
    told: list[str] = []
    episode = await mulligan.run("worker", "Write.", model=ScriptedModel(answers), workspace=repo, notice=told.append)
    steps = episode.trials[0].attempt.steps
    assert steps[3].observation.startswith("[error: ")
    assert (repo / "a.txt").read_text() == "old\n"
    assert not (repo / "b.txt").exists()
    branch = f"mulligan/{episode.run}"
    assert git(repo, "show", f"{branch}:a.txt") == git(repo, "show", f"{branch}:b.txt") == "new\n"
    assert any(branch in line for line in told)


@pytest.mark.slow
async def test_a_result_that_was_not_handed_over_is_on_a_resume(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a process that was killed between the end of its episode and the hand-over."""
    kit(project, "[write_file]")
    single(project, "worker", REACT)
    repo = lay(project / "repo", {"a.txt": "old\n"})
    git(repo, "init", "-q")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "start")
    answers = [call("read_skill", name="kit"), call("write_file", path="a.txt", content="new\n"), finish("written")]
    runs: list[str] = []

    def power_cut(*_: Any) -> Any:
        raise OSError("the power is gone")

    def noted(episode: Episode, _: Any) -> None:
        runs.append(episode.run)

    model = ScriptedModel(answers)
    with monkeypatch.context() as patch:
        patch.setattr("mulligan.workspace.deliver.deliver", power_cut)
        with pytest.raises(OSError, match="power"):
            await mulligan.run("worker", "Write.", model=model, workspace=repo, on_start=noted)
    assert git(repo, "branch", "--list", "mulligan/*") == ""
    told: list[str] = []
    episode = await mulligan.resume(runs[0], model=ScriptedModel([]), notice=told.append)
    assert reason(episode) == "exhausted"
    assert git(repo, "show", f"mulligan/{runs[0]}:a.txt") == "new\n"
    assert any(f"mulligan/{runs[0]}" in line for line in told)
    with pytest.raises(InvalidInput, match="nothing to resume"):
        await mulligan.resume(runs[0], model=ScriptedModel([]))


async def test_a_task_that_is_not_text_is_refused_before_anything_begins(project: Path) -> None:
    model = ScriptedModel([])
    with pytest.raises(InvalidInput, match="not valid UTF-8"):
        await mulligan.run("answerer", "t\udcff", model=model)
    assert model.questions == []


async def test_the_local_model_that_nobody_named_does_not_judge_for_one_that_was(project: Path) -> None:
    folder = reflexion(project)
    (project / "answers.json").write_text('["v1", "RETRY: shorter", "v2", "DONE"]')
    (folder / "act.md").write_text("---\npattern: oneshot\nmodel: {name: 'scripted:answers.json'}\n---\nAnswer.")
    told: list[str] = []
    episode = await mulligan.run("tried", "t", notice=told.append)
    assert (reason(episode), len(episode.trials)) == ("solved", 2)
    assert episode.head.models["evaluator"] == episode.head.models["actor"]
    assert told == [
        "reflect.md also uses the model of act.md: it names none, and the small local model does not judge for another "
        "model."
    ]
    before = replace(Recipe.from_json(episode.head.settings), judge_model="worker")
    assert remade(before, load(), None).judge_model == "worker"
    assert remade(before, load(), "scripted:answers.json").judge_model == "scripted:answers.json"


async def test_a_role_that_names_a_model_judges(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = reflexion(project)
    (project / "answers.json").write_text('["v1", "v2"]')
    (project / "verdicts.json").write_text('["RETRY: shorter", "DONE"]')
    (folder / "act.md").write_text("---\npattern: oneshot\nmodel: {name: 'scripted:answers.json'}\n---\nAnswer.")
    monkeypatch.setenv("MULLIGAN_MODEL_WORKER", f"scripted:{project / 'verdicts.json'}")
    told: list[str] = []
    episode = await mulligan.run("tried", "t", notice=told.append)
    assert (reason(episode), told) == ("solved", [])
    assert episode.head.models["evaluator"] != episode.head.models["actor"]
