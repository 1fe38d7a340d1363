"""What an agent's files name, tried before any model is called: lint and run say the same, each at its line."""

from collections.abc import Callable
from pathlib import Path

import pytest
from seed_agents import lay

import mulligan
from mulligan import ScriptedModel
from mulligan.app.lint import lint
from mulligan.app.trusting import trust
from mulligan.core.errors import InvalidInput

ACT = "---\npattern: oneshot\n---\nAnswer.\n"
STRATEGY = """
from mulligan.plugins import Past

class Mine:
    reflects = False

    def past(self, episode):
        return Past()
"""


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Lays down a project with the agent `tried`, whose front matter ends with this, from line 6."""
    monkeypatch.chdir(tmp_path)

    def made(more: str, toml: str = "", **beside: str) -> Path:
        head = f"---\nname: tried\ndescription: d\nversion: '1'\npattern: reflexion\n{more}---\n"
        files = {"AGENT.md": head, "act.md": ACT, "reflect.md": "Review. Say DONE.\n"}
        lay(tmp_path, {"mulligan.toml": toml})
        folder = lay(tmp_path / "agents" / "tried", {**files, **{f"{name}.py": text for name, text in beside.items()}})
        trust(tmp_path)
        return folder

    return made


async def refused(model: ScriptedModel) -> str:
    with pytest.raises(InvalidInput) as error:
        await mulligan.run("tried", "t", model=model)
    assert model.questions == []
    return str(error.value)


@pytest.mark.parametrize(
    ("more", "line", "says"),
    [
        ("evaluate:\n  tests: t.py\n", 7, "t.py, line 2: '(' was never closed"),
        ("evaluate:\n  tests: gone.py\n", 7, "gone.py does not exist"),
        ("evaluate: exact_match\n", 6, "exact_match needs an answer"),
        ("evaluate: 'regex:('\n", 6, "the pattern `(` cannot be used"),
        ("evaluate: 'contains:'\n", 6, "'contains' needs a non-empty string to look for"),
        ("evaluate:\n  check: 'true {attempt}'\n  secnds: 5\n", 8, "Did you mean 'seconds'?"),
        ("evaluate:\n  check: 'true {attempt}'\n  seconds: fast\n", 8, "must be a number, not 'fast'"),
        ("evaluate:\n  check: 'true {attempt}'\n  seconds: -1\n", 7, "seconds must be greater than 0"),
        ("strategy: ./gone.py\n", 6, "agents/tried/gone.py does not exist"),
        ("strategy: reflexion:0\n", 6, "window"),
    ],
)
async def test_what_judges_and_what_is_shown(agent: Callable[..., Path], more: str, line: int, says: str) -> None:
    agent(more, t="\nassert (\n")
    (problem,) = lint().problems
    assert (problem.line, says in problem.message) == (line, True), problem
    assert await refused(ScriptedModel([])) == str(problem)


async def test_a_check_of_a_folder_asks_for_the_folder(agent: Callable[..., Path]) -> None:
    agent("evaluate: {check: 'true'}\n")
    assert "workspace=DIR" in (said := await refused(ScriptedModel([])))
    assert "actor=" not in said


async def test_a_server_of_tools_that_no_table_defines(agent: Callable[..., Path]) -> None:
    folder = agent("uses: [s]\n")
    lay(
        folder.parent.parent / "skills" / "s",
        {"SKILL.md": "---\nname: s\ndescription: d\ntools: [mcp:foo]\n---\nRead.\n"},
    )
    (folder / "act.md").write_text("---\npattern: react\nuses: [s]\n---\nAnswer, then finish.\n")
    (problem,) = (one for one in lint().problems if one.level == "error")
    assert (problem.file.name, problem.line) == ("SKILL.md", 4)
    assert "No MCP server is called 'foo'" in problem.message
    assert "[mcp.NAME]" in problem.message
    assert str(problem) in await refused(ScriptedModel([]))


async def test_a_tool_of_the_user_that_is_none(agent: Callable[..., Path]) -> None:
    folder = agent("uses: [s]\n")
    skill = "---\nname: s\ndescription: d\ntools: [./half.py]\n---\nRead.\n"
    lay(folder, {"act.md": "Act, then finish.", "skills/s/SKILL.md": skill})
    (folder / "skills" / "s" / "half.py").write_text("class Half:\n    async def call(self, tool, arguments): ...\n")
    (problem,) = lint().problems
    assert problem.message.endswith("half.py is not a tool: it has no offer(), close().")
    assert await refused(ScriptedModel([])) == str(problem)


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("\n[models]\nworker = {name = 'local', temperature = 9}\n", "mulligan.toml:3: The temperature must be"),
        ("\nmodel = 5\n", "mulligan.toml:2: model must be a string, not 5."),
        ("\n[models]\nworker = {nam = 'local'}\n", "mulligan.toml:3: No setting of a model role is called 'nam'."),
    ],
)
async def test_a_mistake_in_the_project_file_is_reported_once_at_its_line(
    agent: Callable[..., Path], toml: str, says: str
) -> None:
    agent("", toml)
    assert [problem.line for problem in lint().problems] == [int(says.split(":")[1])]
    with pytest.raises(InvalidInput) as error:
        await mulligan.run("tried", "t")
    assert str(error.value).startswith(says)
    assert len(str(error.value).splitlines()) == 1


async def test_a_strategy_of_the_user_lies_beside_the_agent(
    agent: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = agent("strategy: ./mine.py\n", mine=STRATEGY)
    assert lint().ok
    monkeypatch.chdir(tmp_path.parent)
    model = ScriptedModel(["a", "No.", "b", "DONE"])
    episode = await mulligan.run(folder, "t", model=model)
    assert episode.solved
    assert [question.messages[-1].text for question in model.questions[::2]] == ["t", "t"]


async def test_a_strategy_beside_an_agent_decides_how_it_goes_on(agent: Callable[..., Path]) -> None:
    decides = (
        STRATEGY.replace("import Past", "import Decision, Past")
        + """
    def decide(self, episode):
        return Decision(temperature=1.5, stop="Enough." if episode.trials else "")
"""
    )
    agent("strategy: ./mine.py\n", mine=decides)
    model = ScriptedModel(["a", "No."])
    episode = await mulligan.run("tried", "t", model=model)
    assert episode.stop is not None
    assert (episode.stop.reason, episode.stop.detail) == ("gave_up", "Enough.")
    assert model.samplings[0].temperature == 1.5
