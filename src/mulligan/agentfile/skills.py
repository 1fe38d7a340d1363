"""Reads the skills that an agent can reach: `skills/<name>/SKILL.md`."""

from __future__ import annotations

import graphlib
import os
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from mulligan.agentfile.agent import Source
from mulligan.agentfile.checking import checked, meant
from mulligan.agentfile.frontmatter import Document, read_document
from mulligan.agentfile.problems import Problem
from mulligan.agentfile.schema import KEBAB, MISSING_TOOLS, TOOL_ALIASES, SkillFile
from mulligan.agentfile.subagents import split_names
from mulligan.core.records import Json
from mulligan.models.steps import Skill

_KEYS = [field.alias or name for name, field in SkillFile.model_fields.items()]


@dataclass(frozen=True)
class SkillUse:
    """A use of a skill in a file. key: the key of the entry, such as "uses.0"."""

    name: str
    source: Source
    key: str


def uses(source: Source, key: str, names: Iterable[str] | None) -> list[SkillUse]:
    return [SkillUse(name, source, f"{key}.{number}") for number, name in enumerate(names or ())]


def skill_file(folder: Path) -> Path | None:
    """The file of the skill in this folder; None if there is none."""
    names = sorted(name for name in _entries(folder) if name.lower() == "skill.md")
    return folder / names[0] if names else None


def misnamed(folder: Path, name: str) -> str:
    """A hint, after a space, if the folder has a file whose name differs only in its capitals; else ""."""
    other = [entry for entry in _entries(folder) if entry.lower() == name.lower() and entry != name]
    return f" There is {other[0]}: rename it to {name}." if other else ""


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


@dataclass
class Skills:
    """Reads skills from folders, of which earlier ones take precedence.

    Attributes:
        found: the skills that were read, by name.
        usable: False once a skill cannot be used.
    """

    folders: Sequence[Path]
    found: dict[str, Skill] = field(default_factory=dict[str, Skill])
    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    problems: list[Problem] = field(default_factory=list[Problem])
    usable: bool = True

    def reach(self, wanted: Iterable[SkillUse]) -> None:
        """Reads these skills and those that they use. Reports missing skills and circles."""
        waiting, read = deque(wanted), set[str]()
        graph: dict[str, list[SkillUse]] = {}
        while waiting:
            use = waiting.popleft()
            path = next((path for folder in self.folders if (path := skill_file(folder / use.name))), None)
            if path is None:
                self._blame(use.source.problem(use.key, self._missing(use.name)))
            elif use.name not in read:
                read.add(use.name)
                graph[use.name] = self._read(path)
                waiting += graph[use.name]
        self._circles(graph)

    def reach_all(self, source: Source, key: str) -> list[str]:
        """Reads all skills in the folders, and returns the names of the usable ones. The others give a warning."""
        names = sorted({name for folder in self.folders for name in _entries(folder)})
        for name in names:
            if any((path := skill_file(folder / name)) and path.is_file() for folder in self.folders):
                skill = Skills(self.folders)
                skill.reach([SkillUse(name, source, key)])
                self.problems += [replace(problem, level="warning") for problem in skill.problems]
                if skill.usable:
                    self.found |= skill.found
                    self.sources |= skill.sources
        return [name for name in names if name in self.found]

    def _blame(self, *problems: Problem) -> None:
        self.problems += problems
        self.usable = self.usable and not problems

    def _missing(self, name: str) -> str:
        existing = sorted({n for folder in self.folders for n in _entries(folder) if skill_file(folder / n)})
        where = f" Put it in skills/{name}/SKILL.md, in the agent's folder or the project's."
        return f"there is no skill {name!r}.{meant(name, existing)}{where}"

    def _read(self, path: Path) -> list[SkillUse]:
        """Reads one skill; returns the skills that it uses."""
        document, problems = read_document(path, lenient=True)
        if document is None:
            self._blame(*problems)
            return []
        self.problems += problems
        source, folder = document.source, path.parent
        if path.name != "SKILL.md":
            self.problems.append(source.problem("", f"programs may look for SKILL.md, not {path.name}.", "warning"))
        if not document.present:
            why = f"this file has no front matter. Begin it with ---, name: {folder.name}, description: ... and ---."
            if not document.body:
                self._blame(source.problem("", why))
                return []
            self.problems.append(source.problem("", why, "warning"))
        document, problems = _normalized(document)
        self.problems += problems
        values, problems = checked(document, SkillFile, strict=False)  # other programs have keys of their own
        self.problems += problems
        if not document.body:
            why = "this file has no text below its front matter: reading it tells the model nothing."
            self.problems.append(source.problem("", why, "warning"))
        if values is None:
            self.usable = False
            return []
        if values.name != folder.name and document.present:
            named = "there is no name" if values.name is None else f"the name {values.name!r} is not the folder's"
            self.problems.append(source.problem("name", f"{named}: the skill is called {folder.name}.", "warning"))
        for number, tool in enumerate(values.tools or ()):
            if tool in MISSING_TOOLS:
                self._blame(source.problem(f"tools.{number}", f"the tool {tool!r} of tama does not exist in Mulligan."))
        there = (tool for tool in values.tools or () if tool not in MISSING_TOOLS)
        tools = tuple(TOOL_ALIASES.get(tool, tool) for tool in there)
        self.found[folder.name] = Skill(
            folder.name, values.description, document.body, tools, tuple(values.uses or ()), str(folder.resolve())
        )
        self.sources[folder.name] = source
        return uses(source, "uses", values.uses)

    def _circles(self, graph: dict[str, list[SkillUse]]) -> None:
        """Reports each circle once, at the use that closes it."""
        uses_left = {name: [use.name for use in skill_uses] for name, skill_uses in graph.items()}
        while True:
            try:
                graphlib.TopologicalSorter(uses_left).prepare()
                return
            except graphlib.CycleError as error:
                circle: list[str] = error.args[1][::-1]  # each uses the next
            start = min(range(len(circle) - 1), key=lambda n: list(graph).index(circle[n]))
            circle = [*circle[start:-1], *circle[: start + 1]]
            user = circle[-2]
            closing = next(use for use in graph[user] if use.name == circle[-1])
            why = f"these skills use each other in a cycle: {' → '.join(circle)}. Remove one of them."
            self._blame(closing.source.problem(closing.key, why))
            uses_left[user].remove(circle[-1])


def _normalized(document: Document) -> tuple[Document, list[Problem]]:
    """The document with values of other programs converted to those of `SkillFile`, and a warning for each value that
    was dropped or made up."""
    values, problems = dict(document.values), list[Problem]()

    def warn(key: str, why: str) -> None:
        problems.append(document.source.problem(key, why, "warning"))

    if unused := [key for key in values if key not in _KEYS and not meant(key, _KEYS)]:
        warn(unused[0], f"these keys have no effect here: {', '.join(unused)}.")
        values = {key: value for key, value in values.items() if key not in unused}
    description = values.get("description")
    if description in (None, "", []) and (text := _first_paragraph(document.body)):
        values["description"] = text
        if document.present:
            warn("description", "there is no description: the first paragraph of the text takes its place.")
    elif description is not None and not isinstance(description, str):
        values["description"] = " ".join(_as_list(description))
    if not isinstance(values.get("name", ""), str):
        values["name"] = str(values["name"])
    if isinstance(tools := values.get("tools"), str):
        values["tools"] = cast(Json, split_names(tools))
    elif tools is not None:
        values["tools"] = cast(Json, _as_list(tools))
    if (listed := values.pop("uses", None)) is not None:
        names = [] if isinstance(listed, str) else [name for name in _as_list(listed) if re.fullmatch(KEBAB, name)]
        values["uses"] = cast(Json, names)
        if invalid := [name for name in _as_list(listed) if name not in names]:
            warn("uses", f"these are not names of skills and are ignored: {', '.join(invalid)}.")
    return replace(document, values=values), problems


def _as_list(value: Json) -> list[str]:
    return [str(item) for item in (cast("list[Json]", value) if isinstance(value, list) else [value])]


def _first_paragraph(body: str) -> str:
    """The first paragraph of a text on one line; its first heading if there is no paragraph."""
    blocks = [" ".join(line for line in block.split("\n") if line[:1] != "#") for block in re.split(r"\n\s*\n", body)]
    text = next((block for block in blocks if block.strip()), body.split("\n")[0].lstrip("# "))
    return " ".join(text.split())[:1024]
