"""An agent belongs to the project that it lies in, from whichever folder it is run; tama's projects work as they are."""

import json
import os
from pathlib import Path

import pytest
from seed_agents import lay

import mulligan
from mulligan import ScriptedModel
from mulligan.app.config import load
from mulligan.app.lint import lint
from mulligan.app.model_roles import role_of
from mulligan.app.trusting import trust
from mulligan.core.errors import InvalidInput

AGENT = (
    "---\nname: helper\ndescription: d\nversion: '1'\npattern: react\ncall: {uses: [house]}\n---\nWork, then finish.\n"
)
SKILL = "---\nname: house\ndescription: How it is done here.\n---\nUse tabs.\n"
EXAMPLES = Path(__file__).parents[3] / "shared" / "data" / "tama" / "examples"


def project(folder: Path, file: str, text: str = "") -> Path:
    lay(folder, {"agents/helper/AGENT.md": AGENT, "skills/house/SKILL.md": SKILL, file: text})
    trust(folder)
    return folder / "agents" / "helper"


def answers(folder: Path, said: str) -> None:
    lines = [json.dumps({"tool": "finish", "arguments": {"key": "done", "value": said}})]
    (folder / "answers.jsonl").write_text("\n".join(lines))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("given", ["path", "relative", "AGENT.md"])
async def test_an_agent_run_by_its_path_has_its_projects_settings_and_skills(
    elsewhere: Path, tmp_path: Path, given: str
) -> None:
    agent = project(tmp_path / "proj", "mulligan.toml", '[models]\nthinker = "scripted:answers.jsonl"\n')
    answers(tmp_path / "proj", "with tabs")
    named = {"path": str(agent), "relative": "../proj/agents/helper", "AGENT.md": str(agent / "AGENT.md")}[given]
    episode = await mulligan.run(named, "t")
    assert episode.best is not None
    assert episode.best.attempt.output == "with tabs"


async def test_its_run_is_recorded_in_its_project_and_resumed_from_there(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MULLIGAN_HOME")
    agent = project(tmp_path / "proj", "mulligan.toml")
    said: list[str] = []
    episode = await mulligan.run(str(agent), "t", model=ScriptedModel([]), notice=said.append)
    assert episode.stop is not None
    assert episode.stop.reason == "error"
    assert (tmp_path / "proj" / ".mulligan" / "mulligan.db").is_file()
    assert [line for line in said if f"cd {tmp_path / 'proj'}" in line]
    assert os.listdir(elsewhere) == []


async def test_a_run_is_resumed_with_the_settings_of_its_project(elsewhere: Path, tmp_path: Path) -> None:
    role = '[models]\nthinker = "scripted:answers.jsonl"\n'
    agent = project(tmp_path / "proj", "mulligan.toml", role)
    reads = json.dumps({"tool": "read_skill", "arguments": {"name": "house"}})
    (tmp_path / "proj" / "answers.jsonl").write_text(reads)
    first = await mulligan.run(str(agent), "t")
    assert first.stop is not None
    assert first.stop.reason == "error"
    done = json.dumps({"tool": "finish", "arguments": {"key": "done", "value": "at last"}})
    (tmp_path / "proj" / "answers.jsonl").write_text(f"{reads}\n{done}")
    again = await mulligan.resume(first.run, fork=True)  # the same home, another folder
    assert again.best is not None
    assert again.best.attempt.output == "at last"


async def test_skills_are_found_beside_agents_where_no_project_file_is(elsewhere: Path, tmp_path: Path) -> None:
    agent = project(tmp_path / "bare", "notes.txt")
    finish = {"tool": "finish", "arguments": {"key": "done", "value": "v"}}
    episode = await mulligan.run(str(agent), "t", model=ScriptedModel([finish]))
    assert episode.best is not None


def test_the_models_of_a_tama_project_are_used(tmp_path: Path) -> None:
    text = """
    [project]
    name = "p"
    entrypoint = "helper"
    [models]
    default = "ollama:qwen3"
    worker = { name = "ollama:small", temperature = 0.3 }
    thinker = "anthropic:claude-haiku-4-5"
    [providers.ollama]
    base_url = "http://127.0.0.1:9/v1"
    """
    agent = project(tmp_path, "tama.toml", text)
    config = load(agent)
    found = {name: role_of(config, name) for name in ("default", "worker", "thinker")}
    assert {name: role.model for name, role in found.items()} == {
        "default": "ollama:qwen3",
        "worker": "ollama:small",
        "thinker": "anthropic:claude-haiku-4-5",
    }
    assert found["worker"].temperature == 0.3
    urls = {name: role.calls.get("base_url") for name, role in found.items()}
    assert urls == {"default": "http://127.0.0.1:9/v1", "worker": "http://127.0.0.1:9/v1", "thinker": None}


def test_a_mulligan_toml_goes_before_a_tama_toml(tmp_path: Path) -> None:
    lay(tmp_path, {"mulligan.toml": 'model = "openai:one"\n', "tama.toml": '[models]\ndefault = "openai:two"\n'})
    trust(tmp_path)
    assert role_of(load(tmp_path), "default").model == "openai:one"


async def test_a_mistake_in_a_tama_toml_names_its_line(tmp_path: Path) -> None:
    agent = project(tmp_path, "tama.toml", '[models]\nthinker = "worker"\n')
    assert [str(problem).partition(":")[2] for problem in lint(tmp_path).problems] == [
        "2: 'worker' is a role. Specify the model itself, such as 'local'."
    ]
    with pytest.raises(InvalidInput, match=r"tama\.toml:2"):
        await mulligan.run(str(agent), "t")


def test_tamas_own_examples() -> None:
    """The figures of docs/agents.md, and that each thing that keeps an agent from running is said once."""
    if not EXAMPLES.is_dir():
        pytest.skip("needs ../shared/data/tama")
    known = runs = 0
    for agent in sorted(EXAMPLES.glob("*/agents/*")):
        text = (agent / "AGENT.md").read_text()
        found = lint(agent)
        lines = [str(problem) for problem in found.problems]
        assert len(lines) == len(set(lines)), agent
        if any(f"\npattern: {pattern}\n" in text for pattern in ("react", "reflexion", "oneshot")):
            known += 1
            runs += found.ok
        else:
            assert len(lines) == 1, lines
    assert (known, runs) == (46, 28)
    for example in sorted(EXAMPLES.iterdir()):
        lines = [str(problem) for problem in lint(example).problems]
        assert len(lines) == len(set(lines))
        tools = [line for line in lines if "tama_mem" in line]
        assert all("of tama does not exist" in line for line in tools)
