"""Reads the agents of coding agents: one file each, in `.claude/agents`, `.gemini/agents` or `.codex/agents`.

Such an agent is one react step. The tools that its file names are translated to Mulligan's own.
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
"""The folders in which coding agents keep the agents of a project, with the suffixes of the files."""

READING = ("read_file", "list_files")
"""The tools of an agent whose file names none."""

_WRITING = ("write_file", "run_command")
_FOREIGN_NAMES: Mapping[str, tuple[str, ...]] = {
    "read_file": ("read", "readfile", "readmanyfiles", "notebookread", "view", "cat"),
    "list_files": ("ls", "glob", "grep", "list", "listdirectory", "searchfilecontent", "grepsearch", "listfiles"),
    "write_file": ("write", "edit", "multiedit", "notebookedit", "writefile", "replace", "create", "applypatch"),
    "run_command": ("bash", "shell", "runshellcommand", "runcommand", "execute", "terminal"),
    "http_get": ("webfetch", "fetch", "httpget"),
}
_OWN_TOOL_BY_NAME = {name: tool for tool, names in _FOREIGN_NAMES.items() for name in (tool.replace("_", ""), *names)}
_USED = ("name", "description", "tools", "disallowedTools", "model", "kind", "temperature", "max_turns", "maxTurns")
_USED_CODEX = ("name", "description", "developer_instructions", "model", "sandbox_mode")


def subagents(project: Path) -> dict[str, Path]:
    """The files of a project's agents of other programs, by name. Of files with the same name, the least nested
    counts."""
    files: dict[str, Path] = {}
    for folder, ending in FOLDERS.items():
        for path in sorted((project / folder).rglob(f"*{ending}"), key=lambda file: (len(file.parts), file)):
            if path.is_file() and path.stem.casefold() != "readme":
                files.setdefault(path.stem, path)
    return files


def read_subagent(path: Path) -> tuple[Agent | None, list[Problem]]:
    """The agent in this file, and every problem with it. The agent is None if a problem is an error."""
    document, problems = _codex(path) if path.suffix == ".toml" else read_document(path, lenient=True)
    if document is None:
        return None, problems
    source, values = document.source, document.values

    def report(key: str, why: str, level: str = "error") -> None:
        problems.append(source.problem(key, why, "error" if level == "error" else "warning"))

    name, description = (_text(values.get(key)) for key in ("name", "description"))
    if values.get("kind", "local") != "local":
        report("kind", f"kind: {values['kind']} is not run here: only local agents are.")
    if not document.present:
        report("", "this file has no front matter: it begins with ---, name: ..., description: ... and ---.")
    elif not document.body:
        where = "developer_instructions" if path.suffix == ".toml" else ""
        report(where, "this agent has no prompt.")
    if any(problem.level == "error" for problem in problems):
        return None, problems
    tools, unknown = _tools(values)
    if unknown:
        report("tools", f"these tools do not exist in Mulligan and are left out: {', '.join(unknown)}.", "warning")
    used = _USED_CODEX if path.suffix == ".toml" else (*_USED, "version")
    if unused := [key for key in values if key not in used]:
        report(unused[0], f"these keys have no effect here: {', '.join(unused)}.", "warning")
    model = _text(values.get("model"))
    model_name = model if ":" in model and "/" not in model.partition(":")[0] else None
    temperature, turns = _number(values.get("temperature")), _number(values.get("max_turns", values.get("maxTurns")))
    step = StepSpec(
        source,
        "react",
        document.body,
        ModelChoice(name=model_name, temperature=temperature),
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
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, or a thousand brackets
        return None, [Problem(path, None, f"this file is not valid TOML: {error}.")]
    lines = {match[1]: text.count("\n", 0, match.start()) + 1 for match in re.finditer(r"(?m)^(\w+)\s*=", text)}
    body = _text(values.get("developer_instructions"))
    return Document(Source(path, text, lines), values, present=True, body=body), []


def _tools(values: Mapping[str, Json]) -> tuple[tuple[str, ...], list[str]]:
    """Mulligan's tools for those that a file names, and the names that have no counterpart."""
    names = values.get("tools")
    if names is None:
        writing = values.get("sandbox_mode") in ("workspace-write", "danger-full-access")
        tools, unknown = [*READING, *(_WRITING if writing else ())], list[str]()
    else:
        tools, unknown = _own_tools(names)
    denied, _ = _own_tools(values.get("disallowedTools"))
    return tuple(tool for tool in dict.fromkeys(tools) if tool not in denied), unknown


def _own_tools(tools: Json) -> tuple[list[str], list[str]]:
    """Mulligan's tools for those of another program, and the names that have no counterpart.

    tools: a text, a list, or a table that says which are allowed.
    """
    if isinstance(tools, dict):
        tools = [name for name, allowed in as_record(tools).items() if allowed in (True, "allow")]
    parts: Sequence[Json] = cast(Sequence[Json], tools) if isinstance(tools, list) else split_names(_text(tools))
    own, unknown = list[str](), list[str]()
    for part in filter(None, (str(part).strip().strip("\"'") for part in parts)):
        if part == "*":
            own += [*READING, *_WRITING]
        elif tool := _OWN_TOOL_BY_NAME.get(re.sub(r"[^a-z]", "", re.sub(r"\(.*", "", part).lower())):
            own.append(tool)
        else:
            unknown.append(part)
    return own, unknown


def split_names(text: str) -> list[str]:
    """The names in a text, separated by commas, or else by spaces. Separators within parentheses do not count."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    return re.split(r",\s*(?![^()]*\))" if "," in inner else r"\s+(?![^()]*\))", inner)


def _number(value: Json) -> float | None:
    """The value as a number, if it is a finite number or a text with one."""
    with suppress(ValueError):
        if isinstance(value, int | float | str) and math.isfinite(number := float(value)):
            return number
    return None


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)
