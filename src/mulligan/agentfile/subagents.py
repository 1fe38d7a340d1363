"""Agents as coding agents keep them: one file each, in `.claude/agents`, `.gemini/agents` or `.codex/agents`.

Such an agent is one react step. What it may do is what its file names, in the terms of Mulligan's own tools.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from mulligan.agentfile.agent import Agent, ModelChoice, Source, StepSpec
from mulligan.agentfile.frontmatter import Document, read_document
from mulligan.agentfile.problems import Problem
from mulligan.core.records import Json
from mulligan.sessions.records import as_record

FOLDERS: Mapping[str, str] = {".claude/agents": ".md", ".gemini/agents": ".md", ".codex/agents": ".toml"}
"""Where coding agents keep their agents in a project, and how the files' names end."""

READING = ("read_file", "list_files")
"""The tools of an agent whose file names none."""

_WRITING = ("write_file", "run_command")
_TOOLS: Mapping[str, tuple[str, ...]] = {
    "read_file": ("read", "readfile", "readmanyfiles", "notebookread", "view", "cat"),
    "list_files": ("ls", "glob", "grep", "list", "listdirectory", "searchfilecontent", "grepsearch", "listfiles"),
    "write_file": ("write", "edit", "multiedit", "notebookedit", "writefile", "replace", "create", "applypatch"),
    "run_command": ("bash", "shell", "runshellcommand", "runcommand", "execute", "terminal"),
    "http_get": ("webfetch", "fetch", "httpget"),
}
_OWN = {name: tool for tool, names in _TOOLS.items() for name in (tool.replace("_", ""), *names)}
_USED = frozenset(
    {
        "name",
        "description",
        "tools",
        "disallowedTools",
        "model",
        "kind",
        "temperature",
        "max_turns",
        "maxTurns",
        "version",
    }
)
_USED_CODEX = frozenset({"name", "description", "developer_instructions", "model", "sandbox_mode"})


def subagents(project: Path) -> dict[str, Path]:
    """The files of a project's agents of other programs, by the names of the files; the nearest of a name wins."""
    found: dict[str, Path] = {}
    for folder, ending in FOLDERS.items():
        for path in sorted((project / folder).rglob(f"*{ending}"), key=lambda one: (len(one.parts), one)):
            if path.is_file() and path.stem.casefold() != "readme":
                found.setdefault(path.stem, path)
    return found


def read_subagent(path: Path) -> tuple[Agent | None, list[Problem]]:
    """The agent in this file, and every problem with it. The agent is None where at least one problem is an error."""
    document, problems = _codex(path) if path.suffix == ".toml" else read_document(path, lenient=True)
    if document is None:
        return None, problems
    source, values = document.source, document.values

    def add(key: str, why: str, level: str = "error") -> None:
        problems.append(source.problem(key, why, "error" if level == "error" else "warning"))

    name, description = (_text(values.get(key)) for key in ("name", "description"))
    if values.get("kind", "local") != "local":
        add("kind", f"kind: {values['kind']} is not run here: only local agents are.")
    if not document.present:
        add("", "this file has no front matter: it begins with ---, name: ..., description: ... and ---.")
    elif not document.body:
        where = "developer_instructions" if path.suffix == ".toml" else ""
        add(where, "this agent has no prompt.")
    if any(problem.level == "error" for problem in problems):
        return None, problems
    tools, unknown = _tools(values)
    if unknown:
        add("tools", f"these tools do not exist in Mulligan and are left out: {', '.join(unknown)}.", "warning")
    used = _USED_CODEX if path.suffix == ".toml" else _USED
    if unused := [key for key in values if key not in used]:
        add(unused[0], f"these keys have no effect here: {', '.join(unused)}.", "warning")
    model = _text(values.get("model"))
    ours = model if ":" in model and "/" not in model.partition(":")[0] else None
    temperature, turns = _number(values.get("temperature")), _number(values.get("max_turns", values.get("maxTurns")))
    step = StepSpec(
        source,
        "react",
        document.body,
        ModelChoice(name=ours, temperature=temperature),
        max_iter=int(turns) if turns is not None and turns >= 1 else None,
        tools=tools,
    )
    agent = Agent(
        folder=path.parent,
        name=name or path.stem,
        description=description or name or path.stem,
        version=_text(values.get("version")) or "0",
        pattern="react",
        source=source,
        act=step,
    )
    return agent, problems


def _codex(path: Path) -> tuple[Document | None, list[Problem]]:
    """A TOML file as a document: its instructions are the body."""
    document, problems = read_document(path)
    if document is None:
        return None, problems
    text = document.source.text
    try:
        values: dict[str, Json] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return None, [Problem(path, None, f"this file is not TOML: {error}.")]
    lines = {found[1]: text.count("\n", 0, found.start()) + 1 for found in re.finditer(r"(?m)^(\w+)\s*=", text)}
    body = _text(values.get("developer_instructions"))
    return Document(Source(path, text, lines), values, present=True, body=body), []


def _tools(values: Mapping[str, Json]) -> tuple[tuple[str, ...], list[str]]:
    """Mulligan's tools for those that a file names, and the names that mean none of them."""
    named = values.get("tools")
    if named is None:
        writing = values.get("sandbox_mode") in ("workspace-write", "danger-full-access")
        found, unknown = [*READING, *(_WRITING if writing else ())], list[str]()
    else:
        found, unknown = _own_tools(named)
    denied, _ = _own_tools(values.get("disallowedTools"))
    return tuple(tool for tool in dict.fromkeys(found) if tool not in denied), unknown


def _own_tools(named: Json) -> tuple[list[str], list[str]]:
    """Mulligan's tools for these of another program, and the names that mean none: a text, a list, or a table of what
    is allowed."""
    if isinstance(named, dict):
        named = [name for name, allowed in as_record(named).items() if allowed in (True, "allow")]
    parts: Sequence[Json] = cast(Sequence[Json], named) if isinstance(named, list) else split_names(_text(named))
    found, unknown = list[str](), list[str]()
    for part in filter(None, (str(part).strip().strip("\"'") for part in parts)):
        if part == "*":
            found += [*READING, *_WRITING]
        elif tool := _OWN.get(re.sub(r"[^a-z]", "", re.sub(r"\(.*", "", part).lower())):
            found.append(tool)
        else:
            unknown.append(part)
    return found, unknown


def split_names(text: str) -> list[str]:
    """The names in a text: with commas between them, of which those within brackets are not meant; else spaces."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    return re.split(r",\s*(?![^()]*\))" if "," in inner else r"\s+(?![^()]*\))", inner)


def _number(value: Json) -> float | None:
    """The value of a number, or of a text that is one."""
    with suppress(ValueError):
        if isinstance(value, int | float | str) and math.isfinite(number := float(value)):
            return number
    return None


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)
