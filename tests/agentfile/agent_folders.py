"""Agents written into a folder, and what is said of them in the form `file:line: message`."""

from collections.abc import Mapping
from pathlib import Path

from mulligan.agentfile.agent import Agent
from mulligan.agentfile.problems import Problem
from mulligan.agentfile.reading import read_agent

HEAD = 'name: x\ndescription: Does it.\nversion: "1"\n'
AGENT = f"---\n{HEAD}pattern: reflexion\n---\n"
ALONE = f"---\n{HEAD}pattern: react\n---\nDo it, then call finish.\n"
ACT = "Do it, then call finish.\n"
REFLECT = "Say DONE if it is good.\n"
SOUND: Mapping[str, str | bytes] = {"AGENT.md": AGENT, "act.md": ACT, "reflect.md": REFLECT}


def write(folder: Path, files: Mapping[str, str | bytes | None]) -> Path:
    """Writes an agent; None leaves a file out. Gives the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def agent_with(front: str, pattern: str = "reflexion") -> str:
    """An AGENT.md with these lines of front matter after the four that it must have: they begin on line 6."""
    body = "" if pattern == "reflexion" else "Do it, then call finish.\n"
    return f"---\n{HEAD}pattern: {pattern}\n{front}\n---\n{body}"


def told(problems: list[Problem], folder: Path) -> list[str]:
    """`file:line: message`; without a line where the whole file is meant."""
    lines: list[str] = []
    for problem in problems:
        where = str(problem.file.relative_to(folder)) if problem.file != folder else "."
        line = f":{problem.line}" if problem.line else ""
        lines.append(f"{where}{line}: {'warning: ' if problem.level == 'warning' else ''}{problem.message}")
    return lines


def lint(folder: Path, files: Mapping[str, str | bytes | None] = {}, *, strict: bool = True) -> list[str]:
    """What is said of the sound agent with these files changed. An error must leave no agent, save for unknown keys."""
    write(folder, {**SOUND, **files})
    agent, problems = read_agent(folder, [], strict=strict)
    errors = [problem for problem in problems if problem.level == "error"]
    if not errors:
        assert agent is not None
    elif any(not problem.message.startswith("unknown key") for problem in errors):
        assert agent is None
    return told(problems, folder)


def sound(folder: Path, files: Mapping[str, str | bytes | None], skills: list[Path] | None = None) -> Agent:
    """The agent of these files, which must have nothing wrong with it."""
    agent, problems = read_agent(write(folder, files), skills or [], strict=True)
    assert told(problems, folder) == []
    assert agent is not None
    return agent
