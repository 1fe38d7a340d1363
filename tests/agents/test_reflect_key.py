"""The key `reflect` of AGENT.md: who reflects on a failed trial of an agent of one step."""

from collections.abc import Callable
from pathlib import Path

import pytest
from seed_agents import lay

import mulligan
from mulligan import ScriptedModel
from mulligan.app.lint import lint
from mulligan.app.trusting import trust

REFLECT = "evaluate: 'exact_match:water'\nlimits: {trials: 2}\n"


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Lays down a project with the agent `tried`, whose front matter ends with this, from line 6."""
    monkeypatch.chdir(tmp_path)

    def made(more: str, pattern: str = "oneshot", **beside: str) -> Path:
        head = f"---\nname: tried\ndescription: d\nversion: '1'\npattern: {pattern}\n{more}---\n"
        files = {"AGENT.md": f"{head}Answer.\n"} | {f"{name}.py": text for name, text in beside.items()}
        folder = lay(tmp_path / "agents" / "tried", {"../../mulligan.toml": "", **files})
        trust(tmp_path)
        return folder

    return made


async def test_the_next_trial_is_shown_the_lesson_and_the_evidence(agent: Callable[..., Path]) -> None:
    agent(f"{REFLECT}reflect: {{reflector: verbal, max_tokens: 77}}\n")
    model = ScriptedModel(["tea", "The answer tea was wrong: a drink without leaves is asked for.", "water"])
    episode = await mulligan.run("tried", "Name a drink.", model=model)
    assert episode.solved
    assert model.samplings[1].max_tokens == 77
    assert "without leaves is asked for" in model.questions[2].messages[-1].text
    assert episode.head.settings["strategy"]["name"] == "evidence_and_reflexion"


MINE = """
from mulligan.plugins import Reflection

class Mine:
    async def reflect(self, episode):
        return Reflection("No leaves in " + episode.task.prompt)
"""


async def test_a_reflector_of_ones_own_stands_beside_it(agent: Callable[..., Path]) -> None:
    agent(f"{REFLECT}reflect: ./mine.py\n", mine=MINE)
    model = ScriptedModel(["tea", "water"])
    assert (await mulligan.run("tried", "Name a drink.", model=model)).solved
    assert "No leaves in Name a drink." in model.questions[1].messages[-1].text


@pytest.mark.parametrize(
    ("more", "pattern", "line", "says"),
    [
        ("reflect: verbal\n", "oneshot", 6, "reflect needs evaluate"),
        (f"{REFLECT}reflect: verbl\n", "oneshot", 8, "Did you mean 'verbal'?"),
        (f"{REFLECT}reflect: {{reflector: verbal, windw: 2}}\n", "oneshot", 8, "Did you mean 'window'?"),
        (f"{REFLECT}reflect: {{reflector: verbal, window: 0}}\n", "oneshot", 8, "at least 1"),
        (f"{REFLECT}reflect: {{window: 2}}\n", "oneshot", 8, "reflector"),
        ("evaluate: human\nreflect: verbal\n", "reflexion", 7, "reflect.md reflects in a reflexion agent"),
    ],
)
def test_what_cannot_be_is_said_at_its_line(
    agent: Callable[..., Path], more: str, pattern: str, line: int, says: str
) -> None:
    agent(more, pattern)
    found = {problem.line: problem.message for problem in lint().problems}
    assert says in found[line]
