"""Agents of coding agents, one file each: which are read, with which tools, and what is said of the rest."""

from pathlib import Path

import pytest

from mulligan.agentfile.reading import read_agent
from mulligan.agentfile.subagents import subagents

READING = ("read_file", "list_files")
ALL = ("read_file", "list_files", "write_file", "run_command")

MARKDOWN: dict[str, tuple[str, tuple[str, ...], str]] = {
    # front matter; the tools that the agent gets; a word of the warnings, "" for none
    "no tools named": ("name: tidy\ndescription: Tidies up.", READING, ""),
    "with commas": ("name: tidy\ndescription: d\ntools: Read, Grep, Glob", READING, ""),
    "with spaces": ("name: tidy\ndescription: d\ntools: Read Write", ("read_file", "write_file"), ""),
    "a list": ("name: tidy\ndescription: d\ntools:\n  - Read\n  - Bash", ("read_file", "run_command"), ""),
    "a flow list": ("name: tidy\ndescription: d\ntools: [Read, Edit]", ("read_file", "write_file"), ""),
    "a restricted command": (
        "name: t\ndescription: d\ntools: Bash(git log:*, git diff:*), Read",
        ("run_command", "read_file"),
        "",
    ),
    "tools we lack": ("name: t\ndescription: d\ntools: Read, Task, TodoWrite", ("read_file",), "Task, TodoWrite"),
    "a server": ("name: t\ndescription: d\ntools: Read, mcp__github__list", ("read_file",), "mcp__github__list"),
    "only tools we lack": ("name: t\ndescription: d\ntools: Task", (), "Task"),
    "no tools on purpose": ('name: t\ndescription: d\ntools: ""', (), ""),
    "every tool": ('name: t\ndescription: d\ntools: ["*"]', ALL, ""),
    "edits of two kinds": ("name: t\ndescription: d\ntools: Edit, MultiEdit, Write", ("write_file",), ""),
    "the web": ("name: t\ndescription: d\ntools: WebFetch", ("http_get",), ""),
    "a colour": ("name: t\ndescription: d\ncolor: purple", READING, "color"),
    "more keys": ("name: t\ndescription: d\npermissionMode: plan\nhooks: {}", READING, "permissionMode, hooks"),
    "a colon in the text": ("name: t\ndescription: Use this for reviews: style, names", READING, "colon"),
    "examples in the text": (
        'name: t\ndescription: Use it late. Examples: <example>user: "Is it done?"\\nassistant: "Let us see"</example>',
        READING,
        "colon",
    ),
    "a text over lines": ("name: t\ndescription: |\n  One line.\n  Another line.", READING, ""),
    "a star first": ("name: t\ndescription: *very* careful", READING, "quotes"),
    "a display name": ("name: Code Tidier\ndescription: d", READING, ""),
    "no name": ("description: d", READING, ""),
    "a date": ("name: t\ndescription: d\nupdated: 2026-10-01", READING, "date"),
    "an inherited model": ("name: t\ndescription: d\nmodel: inherit", READING, ""),
    "a model of another maker": ("name: t\ndescription: d\nmodel: sonnet", READING, ""),
    "Gemini's tools": (
        "name: t\ndescription: d\nkind: local\ntools:\n  - read_file\n  - run_shell_command\n  - list_directory",
        ("read_file", "run_command", "list_files"),
        "",
    ),
    "a star alone": ("name: t\ndescription: d\ntools: *", ALL, "quotes"),
    "a table": ("name: t\ndescription: d\ntools:\n  write: false\n  read: true\n  bash: ask", ("read_file",), ""),
    "tools without a value": ("name: t\ndescription: d\ntools:", READING, ""),
    "denied": ("name: t\ndescription: d\ntools: Read, Write, Bash\ndisallowedTools: Bash, Write", ("read_file",), ""),
    "all but": (
        "name: t\ndescription: d\ntools: '*'\ndisallowedTools: [Bash(rm:*)]",
        ("read_file", "list_files", "write_file"),
        "",
    ),
    "a list in a text": ("name: t\ndescription: d\ntools: \"['Read', 'Edit']\"", ("read_file", "write_file"), ""),
    "a list that is not closed": (
        "name: t\ndescription: d\ntools: [Read, Edit",
        ("read_file", "write_file"),
        "bracket",
    ),
    "lines of examples": (
        "name: t\ndescription: Use it: late.\n\n<example>\nuser: Is it done?\n</example>\ntools: Read",
        ("read_file",),
        "user",
    ),
    "limits in quotes": ("name: t\ndescription: d\nmaxTurns: '7'\ntemperature: '0.5'", READING, ""),
    "Gemini's limits": ("name: t\ndescription: d\nmax_turns: 7\ntimeout_mins: 5", READING, "timeout_mins"),
}

TOML: dict[str, tuple[str, tuple[str, ...], str]] = {
    "Codex": ('name = "t"\ndescription = "d"\ndeveloper_instructions = "Look closely."', READING, ""),
    "Codex that writes": (
        'name = "t"\ndescription = "d"\nsandbox_mode = "workspace-write"\ndeveloper_instructions = """\nMend it.\n"""',
        ALL,
        "",
    ),
    "Codex that reads": (
        'name = "t"\nsandbox_mode = "read-only"\nmodel = "gpt-5"\ndeveloper_instructions = "Look."',
        READING,
        "",
    ),
    "Codex with more": (
        'name = "t"\ndeveloper_instructions = "Look."\nmodel_reasoning_effort = "high"\n[mcp_servers.x]\ncommand = "y"',
        READING,
        "model_reasoning_effort, mcp_servers",
    ),
}

TOML["Codex on Windows"] = (
    "\ufeffname = \"t\"\r\ndeveloper_instructions = '''\r\nLook.\r\n'''\r\n[[skills.config]]\r\npath = \"x\"\r\n",
    READING,
    "skills",
)

REFUSED: dict[str, tuple[str, str]] = {
    "remote": ("---\nname: t\ndescription: d\nkind: remote\nagent_card_url: x\n---\nText", "only local agents"),
    "no front matter": ("Just text.", "no front matter"),
    "no prompt": ("---\nname: t\ndescription: d\n---\n", "no prompt"),
    "not closed": ("---\nname: t\n", "not closed"),
}


@pytest.mark.parametrize(("front", "tools", "warned"), MARKDOWN.values(), ids=MARKDOWN)
def test_a_markdown_file_is_an_agent(tmp_path: Path, front: str, tools: tuple[str, ...], warned: str) -> None:
    path = tmp_path / "t.md"
    path.write_text(f"---\n{front}\n---\nYou look after this code.\n", encoding="utf-8")
    agent, problems = read_agent(path, [], strict=False)
    assert agent is not None, problems
    assert agent.act.tools == tools
    assert agent.act.body == "You look after this code."
    assert agent.act.model.name is None, "the configured model"
    assert {problem.level for problem in problems} <= {"warning"}
    assert warned in " ".join(problem.message for problem in problems)
    assert bool(problems) == bool(warned)


@pytest.mark.parametrize(("text", "tools", "warned"), TOML.values(), ids=TOML)
def test_a_toml_file_is_an_agent(tmp_path: Path, text: str, tools: tuple[str, ...], warned: str) -> None:
    path = tmp_path / "t.toml"
    path.write_bytes(text.encode())
    agent, problems = read_agent(path, [], strict=False)
    assert agent is not None, problems
    assert agent.act.tools == tools
    assert agent.act.body in ("Look closely.", "Look.", "Mend it.")
    assert warned in " ".join(problem.message for problem in problems)
    assert bool(problems) == bool(warned)


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_is_no_agent_of_ours_says_why(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "t.md"
    path.write_text(text, encoding="utf-8")
    agent, problems = read_agent(path, [], strict=False)
    assert agent is None
    assert why in " ".join(problem.message for problem in problems if problem.level == "error")


@pytest.mark.parametrize("text", ["name = [", "name = " + "1" * 5000, "name = " + "[" * 5000])
def test_a_file_that_is_not_toml_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.toml"
    path.write_text(text)
    agent, problems = read_agent(path, [], strict=False)
    assert agent is None
    assert [problem.message.partition(":")[0] for problem in problems] == ["this file is not valid TOML"]


def test_the_files_of_three_programs_are_found(tmp_path: Path) -> None:
    names = (".claude/agents/a.md", ".claude/agents/team/d.md", ".gemini/agents/b.md", ".codex/agents/c.toml")
    for name in (*names, ".claude/agents/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    assert list(subagents(tmp_path)) == ["a", "d", "b", "c"]
