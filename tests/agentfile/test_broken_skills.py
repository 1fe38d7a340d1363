"""Skills that cannot be used: missing, misnamed, going round in a circle, or with keys that do not fit."""

from pathlib import Path

import pytest
from agent_folders import SOUND, lint, told, write

from mulligan.agentfile.reading import read_agent

USES = {"act.md": "---\nuses:\n- a\n---\nfinish"}


def skill(name: str, more: str = "", body: str = "text") -> str:
    """A SKILL.md with further lines of front matter: they begin on line 4."""
    return f"---\nname: {name}\ndescription: d\n{more}\n---\n{body}"


SKILLS: dict[str, tuple[dict[str, str | bytes], list[str]]] = {
    "missing": (
        {},
        ["act.md:3: there is no skill 'a'. Put it in skills/a/SKILL.md, in the agent's folder or the project's."],
    ),
    "near miss": (
        {"skills/aa/SKILL.md": skill("aa")},
        [
            "act.md:3: there is no skill 'a'. Did you mean 'aa'? Put it in skills/a/SKILL.md, in the agent's folder or the project's."
        ],
    ),
    "skill.md": (
        {"skills/a/skill.md": skill("a")},
        ["skills/a/skill.md: warning: programs may look for SKILL.md, not skill.md."],
    ),
    "another name": (
        {"skills/a/SKILL.md": skill("b")},
        ["skills/a/SKILL.md:2: warning: the name 'b' is not the folder's: the skill is called a."],
    ),
    "no front matter": (
        {"skills/a/SKILL.md": "text"},
        [
            "skills/a/SKILL.md: warning: this file has no front matter. Begin it with ---, name: a, description: ... and ---."
        ],
    ),
    "nothing": (
        {"skills/a/SKILL.md": ""},
        ["skills/a/SKILL.md: this file has no front matter. Begin it with ---, name: a, description: ... and ---."],
    ),
    "no text": (
        {"skills/a/SKILL.md": skill("a", body="")},
        [
            "skills/a/SKILL.md: warning: this file has no text below its front matter: reading it tells the model nothing."
        ],
    ),
    "circle of two": (
        {"skills/a/SKILL.md": skill("a", "uses:\n- b"), "skills/b/SKILL.md": skill("b", "uses: [a]")},
        ["skills/b/SKILL.md:4: these skills use each other in a cycle: a → b → a. Remove one of them."],
    ),
    "circle of one": (
        {"skills/a/SKILL.md": skill("a", "uses: [a]")},
        ["skills/a/SKILL.md:4: these skills use each other in a cycle: a → a. Remove one of them."],
    ),
    "two circles": (
        {
            "skills/a/SKILL.md": skill("a", "uses: [b, c]"),
            "skills/b/SKILL.md": skill("b", "uses: [c]"),
            "skills/c/SKILL.md": skill("c", "uses: [d]"),
            "skills/d/SKILL.md": skill("d", "uses: [b, a]"),
        },
        [
            "skills/d/SKILL.md:4: these skills use each other in a cycle: a → c → d → a. Remove one of them.",
            "skills/d/SKILL.md:4: these skills use each other in a cycle: b → c → d → b. Remove one of them.",
        ],
    ),
    "missing further on": (
        {"skills/a/SKILL.md": skill("a", "uses:\n- z")},
        [
            "skills/a/SKILL.md:5: there is no skill 'z'. Put it in skills/z/SKILL.md, in the agent's folder or the project's."
        ],
    ),
    "tools of tama": (
        {"skills/a/SKILL.md": skill("a", "tools:\n- tama_bash\n- tama_mem_set\n- tama_http_post")},
        [
            "skills/a/SKILL.md:6: the tool 'tama_mem_set' of tama does not exist in Mulligan.",
            "skills/a/SKILL.md:7: the tool 'tama_http_post' of tama does not exist in Mulligan.",
        ],
    ),
    "tools as text": ({"skills/a/SKILL.md": skill("a", "tools: read_file, run_command")}, []),
    "keys of others": (
        {"skills/a/SKILL.md": skill("a", "tama:\n  depends: {apt: [jq]}\nallowed-tools: Bash")},
        [
            "skills/a/SKILL.md:4: warning: the key 'tama' is ignored. Mulligan does not install a skill's dependencies. Install them yourself.",
        ],
    ),
    "unknown key": (
        {"skills/a/SKILL.md": skill("a", "tool: [x]")},
        ["skills/a/SKILL.md:4: warning: unknown key 'tool'. Did you mean 'tools'?"],
    ),
    "no description": (
        {"skills/a/SKILL.md": "---\nname: a\n---\ntext"},
        ["skills/a/SKILL.md: warning: there is no description: the first paragraph of the text takes its place."],
    ),
    "key of a step": (
        {"skills/a/SKILL.md": skill("a", "pattern: react\ncolor: red")},
        ["skills/a/SKILL.md:4: warning: these keys have no effect here: pattern, color."],
    ),
    "tab": (
        {"skills/a/SKILL.md": "---\nname: a\ndescription: x\nmetadata:\n\tauthor: y\n---\nt"},
        ["skills/a/SKILL.md:5: warning: there is a tab where YAML allows only spaces. Indent with spaces."],
    ),
    "not UTF-8": (
        {"skills/a/SKILL.md": b"---\nname: a\ndescription: caf\xff\n---\ntext"},
        ["skills/a/SKILL.md:3: warning: this file is not UTF-8 text (byte 0xff at position 28). Save it as UTF-8."],
    ),
}


@pytest.mark.parametrize(("files", "said"), SKILLS.values(), ids=SKILLS)
def test_skills_that_are_broken(tmp_path: Path, files: dict[str, str | bytes], said: list[str]) -> None:
    assert lint(tmp_path, {**USES, **files}) == said


def test_each_file_that_names_a_missing_skill_is_reported(tmp_path: Path) -> None:
    files = {
        **SOUND,
        "AGENT.md": SOUND["AGENT.md"].replace("pattern:", "uses: [b]\npattern:")
        if isinstance(SOUND["AGENT.md"], str)
        else "",
        "act.md": "---\nuses: [a]\n---\nfinish",
        "reflect.md": "---\npattern: react\n---\nfinish",
    }
    agent, problems = read_agent(write(tmp_path / "x", files), [tmp_path / "gone"], strict=False)
    assert agent is None
    assert told(problems, tmp_path / "x") == [
        "AGENT.md:5: there is no skill 'b'. Put it in skills/b/SKILL.md, in the agent's folder or the project's.",
        "act.md:2: there is no skill 'a'. Put it in skills/a/SKILL.md, in the agent's folder or the project's.",
    ]


@pytest.mark.slow
def test_a_long_chain_of_skills_is_no_danger(tmp_path: Path) -> None:
    count = 1500  # more than Python's own stack
    for number in range(count):
        more = f"uses: [s{number + 1}]" if number + 1 < count else "uses: [s0]"
        write(tmp_path / "all" / f"s{number}", {"SKILL.md": skill(f"s{number}", more)})
    folder = write(tmp_path / "agent", {**SOUND, "act.md": "---\nuses: [s0]\n---\nfinish"})
    agent, (problem,) = read_agent(folder, [tmp_path / "all"], strict=True)
    assert agent is None
    assert problem.message.startswith("these skills use each other in a cycle: s0 → s1 → ")
    assert (problem.file.parent.name, problem.line) == (f"s{count - 1}", 4)
