"""Agents that are sound: what is read of them, and the rules for what their files leave out."""

from pathlib import Path

import pytest
import seed_agents
from agent_folders import ACT, AGENT, ALONE, HEAD, REFLECT, SOUND, agent_with, sound, write

from mulligan.agentfile.agent import Memory, ModelChoice
from mulligan.agentfile.reading import read_agent
from mulligan.models.steps import Skill

SEED = {"AGENT.md": seed_agents.AGENT, "act.md": seed_agents.ACT, "reflect.md": seed_agents.REACT_REFLECTOR}


@pytest.mark.parametrize(("newline", "mark"), [("\n", ""), ("\r\n", ""), ("\n", "\ufeff")])
def test_the_seeds_agent_reads_as_printed(tmp_path: Path, newline: str, mark: str) -> None:
    agent = sound(tmp_path, {name: mark + text.replace("\n", newline) for name, text in SEED.items()})
    assert (agent.name, agent.version, agent.pattern, agent.max_iter) == ("code-improver", "1.0.0", "reflexion", 4)
    assert agent.description == "Writes and iteratively improves code through reflection."
    assert (agent.act.pattern, agent.act.model) == ("react", ModelChoice(role="thinker"))
    assert agent.act.body == seed_agents.ACT.split("---\n")[2].strip()
    assert agent.reflect is not None
    assert (agent.reflect.pattern, agent.reflect.model) == ("react", ModelChoice(role="thinker", temperature=0.1))
    assert agent.reflect.body == seed_agents.REACT_REFLECTOR.split("---\n")[2].strip()
    assert (agent.judge_last, agent.evaluate, agent.strategy, agent.memory, dict(agent.limits)) == (
        True,
        None,
        None,
        None,
        {},
    )
    assert [source.path.name for source in agent.sources] == ["AGENT.md", "act.md", "reflect.md"]
    assert agent.reflect.source.lines == {"pattern": 2, "model": 3, "model.role": 4, "model.temperature": 5}


def test_the_seeds_oneshot_reflector_needs_no_front_matter(tmp_path: Path) -> None:
    agent = sound(tmp_path, {**SEED, "reflect.md": seed_agents.ONESHOT_REFLECTOR})
    assert agent.reflect is not None
    assert (agent.reflect.pattern, agent.reflect.model, agent.reflect.body) == (
        "oneshot",
        ModelChoice(),
        seed_agents.ONESHOT_REFLECTOR.strip(),
    )


# --- what the files leave out -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "reflect", "patterns"),
    [
        (ACT, REFLECT, ("react", "oneshot")),
        ("---\n---\n" + ACT, "---\n---\n" + REFLECT, ("react", "oneshot")),
        ("---\npattern: oneshot\n---\nDo it.", REFLECT, ("oneshot", "oneshot")),
        (ACT, "---\npattern: react\n---\nfinish, DONE", ("react", "react")),
        (ACT, "---\nuses: [s]\n---\nfinish, DONE", ("react", "react")),
        (ACT, "---\ncall: {uses: [s]}\n---\nfinish, DONE", ("react", "react")),
        (ACT, "---\nuses: []\n---\nDONE", ("react", "oneshot")),
        (ACT, "---\nmodel: {temperature: 0}\n---\nDONE", ("react", "oneshot")),
    ],
)
def test_patterns_of_steps(tmp_path: Path, act: str, reflect: str, patterns: tuple[str, str]) -> None:
    skill = "---\nname: s\ndescription: d\n---\ntext"
    agent = sound(tmp_path, {**SOUND, "act.md": act, "reflect.md": reflect, "skills/s/SKILL.md": skill})
    assert agent.reflect is not None
    assert (agent.act.pattern, agent.reflect.pattern) == patterns


def test_an_agent_of_one_step_is_its_own_step(tmp_path: Path) -> None:
    agent = sound(tmp_path, {"AGENT.md": agent_with("max_iter: 7\ncall: {model: {name: 'openai:gpt-5'}}", "react")})
    assert (agent.pattern, agent.act.pattern, agent.reflect) == ("react", "react", None)
    assert (agent.act.max_iter, agent.max_iter) == (7, 4)
    assert agent.act.body == "Do it, then call finish."
    assert (agent.act.model.name, agent.act.model.key) == ("openai:gpt-5", "call.model")
    assert agent.act.source is agent.source
    assert sound(tmp_path, {"AGENT.md": ALONE}).act.max_iter is None


def test_agent_md_speaks_for_steps_that_do_not_say(tmp_path: Path) -> None:
    front = "model: {role: worker, max_tokens: 9}\nmax_iter: 2\ncall: {uses: [s], max_iter: 5}"
    files = {
        **SOUND,
        "AGENT.md": agent_with(front),
        "act.md": ACT,
        "reflect.md": "---\npattern: react\nmodel: mine\nuses: []\nmax_iter: 3\n---\nfinish",
        "skills/s/SKILL.md": "---\nname: s\ndescription: d\n---\ntext",
    }
    agent = sound(tmp_path, files)
    assert agent.reflect is not None
    assert agent.max_iter == 2
    assert (agent.act.model, agent.act.uses, agent.act.max_iter) == (
        ModelChoice(role="worker", max_tokens=9),
        ("s",),
        5,
    )
    assert agent.act.model.source == agent.source
    assert (agent.reflect.model, agent.reflect.uses, agent.reflect.max_iter) == (ModelChoice(name="mine"), (), 3)
    assert agent.reflect.model.source is None


def test_every_key_of_our_own(tmp_path: Path) -> None:
    front = """strategy: last_attempt
memory: {bank: b, top_k: 2, mode: frozen}
evaluate: {check: make test, timeout: 3, env: {A: null}}
limits: {tokens: 5, cost: 1, seconds: 2.5, identical: 2}"""
    agent = sound(tmp_path, {**SOUND, "AGENT.md": agent_with(front)})
    assert (agent.strategy, agent.memory) == ("last_attempt", Memory("b", 2, "frozen"))
    assert agent.evaluate == {"check": "make test", "timeout": 3, "env": {"A": None}}
    assert agent.limits == {"tokens": 5, "cost": 1, "seconds": 2.5, "identical": 2}


@pytest.mark.parametrize(
    ("front", "memory"), [("memory: true", Memory()), ("memory: false", None), ("memory: {}", Memory())]
)
def test_memory_may_be_a_switch(tmp_path: Path, front: str, memory: Memory | None) -> None:
    assert sound(tmp_path, {**SOUND, "AGENT.md": agent_with(front)}).memory == memory


def test_an_evaluator_by_name_alone(tmp_path: Path) -> None:
    agent = sound(tmp_path, {**SOUND, "AGENT.md": agent_with("evaluate: contains:42")})
    assert agent.evaluate == {"evaluator": "contains:42"}
    assert sound(tmp_path, {**SOUND, "AGENT.md": agent_with("judge_last: false")}).judge_last is False


# --- skills -----------------------------------------------------------------------------------------------------


def skill(name: str, more: str = "", body: str = "text") -> str:
    return f"---\nname: {name}\ndescription: {name}!\n{more}\n---\n{body}"


def test_skills_that_can_be_reached_are_read_the_agents_own_first(tmp_path: Path) -> None:
    files = {
        **SOUND,
        "act.md": "---\nuses: [near, far]\n---\nfinish",
        "skills/near/SKILL.md": skill("near", "uses: [deep, far]", "own"),
        "skills/unused/SKILL.md": "broken",
    }
    shared = write(
        tmp_path / "shared",
        {
            "near/SKILL.md": skill("near", body="shared"),
            "far/SKILL.md": skill("far", "license: MIT\nversion: '1'\nmetadata: {author: me}"),
            "deep/SKILL.md": skill("deep", "tools: [tama_bash, tama_files_read, mcp:s, write_file]"),
        },
    )
    agent = sound(tmp_path / "agent", files, [tmp_path / "nowhere", shared])
    assert agent.skills == {
        "near": Skill("near", "near!", "own", (), ("deep", "far"), str(tmp_path / "agent/skills/near")),
        "far": Skill("far", "far!", "text", folder=str(shared / "far")),
        "deep": Skill(
            "deep", "deep!", "text", ("run_command", "read_file", "mcp:s", "write_file"), (), str(shared / "deep")
        ),
    }
    assert agent.skill_sources["deep"].path == shared / "deep" / "SKILL.md"
    assert agent.skill_sources["deep"].lines["tools.3"] == 4
    assert {source.path for source in agent.sources} >= {shared / "far" / "SKILL.md"}


def test_skills_may_meet_again_without_a_circle(tmp_path: Path) -> None:
    files = {
        "AGENT.md": ALONE.replace("pattern: react", "pattern: react\nuses: [a, b, a]"),
        "skills/a/SKILL.md": skill("a", "uses: [c]"),
        "skills/b/SKILL.md": skill("b", "uses: [c, a]"),
        "skills/c/SKILL.md": skill("c"),
    }
    assert sorted(sound(tmp_path, files).skills) == ["a", "b", "c"]


def test_an_agent_without_errors_runs_with_unknown_keys_and_lint_still_sees_it(tmp_path: Path) -> None:
    write(tmp_path, {**SOUND, "AGENT.md": f"---\n{HEAD}pattern: reflexion\nmax_iters: 9\nlimits: {{tokns: 1}}\n---\n"})
    for strict, level in ((True, "error"), (False, "warning")):
        agent, problems = read_agent(tmp_path, [], strict=strict)
        assert agent is not None
        assert (agent.max_iter, dict(agent.limits)) == (4, {})
        assert [problem.level for problem in problems] == [level, level]


def test_the_sound_agent_of_these_tests_is_sound(tmp_path: Path) -> None:
    assert AGENT in sound(tmp_path, SOUND).source.text
