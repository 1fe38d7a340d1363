"""Finds every mistake in a `mulligan.toml` and gives its line.

`project_schema` checks keys and kinds; the code that uses a value checks the value.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from mulligan.agentfile.agent import Source
from mulligan.agentfile.checking import checked
from mulligan.agentfile.frontmatter import Document
from mulligan.agentfile.problems import Problem, problem_of
from mulligan.app.config import FILE, MODELS, TAMA, located_model, parse, project_file, read_dotenv, read_project
from mulligan.app.foresight import foresight_of
from mulligan.app.kinds import check_rule
from mulligan.app.memory_config import check_key, check_together
from mulligan.app.model_roles import (
    BUILT_IN,
    check_model_name,
    check_role_name,
    check_setting,
    role_names,
    role_of,
)
from mulligan.app.plugins import find, names, settings_of, tried
from mulligan.app.project_schema import McpTable, ProjectFile, RoleTable, ToolsTable
from mulligan.app.toolbox import check_tools
from mulligan.core.errors import InvalidInput
from mulligan.core.limits import Limits
from mulligan.core.records import Json
from mulligan.models.settings import CallSettings
from mulligan.sandbox.levels import level_named
from mulligan.text.files import read_text
from mulligan.text.model_names import model_names
from mulligan.text.toml_lines import key_lines

EXAMPLE = Path(__file__).parent.parent / "agentfile" / "scaffolds" / "project" / "mulligan.toml"
"""What `mulligan init` writes."""


def check_project(path: Path) -> list[Problem]:
    """Every mistake in a mulligan.toml and in the .env beside it, with its line; in a tama.toml, those in its models.

    path: the file or its folder. Nothing is called, and no key or server is needed.
    """
    file = project_file(path) or path / FILE if path.is_dir() else path
    problems: list[Problem] = []
    with _collecting(problems, file):
        if file.name == TAMA:
            config = read_project(file.parent)[0]
            for name in role_names(config):
                role_of(config, name)
        else:
            text = read_text(file)
            values = parse(file, text)
            problems += _Checks(file, text, values).problems()
    dotenv = file.parent / ".env"
    if dotenv.is_file():
        with _collecting(problems, dotenv):
            read_dotenv(dotenv)
    return sorted(problems, key=lambda problem: (problem.file != file, problem.line or 0))


@contextmanager
def _collecting(problems: list[Problem], file: Path) -> Generator[None]:
    """Turns an `InvalidInput` into a problem with its file and line."""
    try:
        yield
    except InvalidInput as error:
        problems.append(problem_of(file, error) or Problem(file, None, str(error)))


@dataclass
class _Checks:
    """The checks of one file that is valid TOML."""

    file: Path
    text: str
    values: Mapping[str, Json]
    found: list[Problem] = field(default_factory=list[Problem])

    def __post_init__(self) -> None:
        self._lines = key_lines(self.text)
        self.values = cast(dict[str, Json], self._undated((), self.values))

    def problems(self) -> list[Problem]:
        inner = {key for key in ("models", "memory", "mcp", "tools") if isinstance(self.values.get(key), dict)}
        self._fits((), {key: {} if key in inner else value for key, value in self.values.items()}, ProjectFile)
        for name, value in self._table("models").items():
            self._role(name, value)
        self._values(("limits",), _check_limit)
        self._values(("calls",), check_setting)
        self._values(("kinds",), check_rule)
        self._pairs("calls")
        for key in MODELS:
            if isinstance(value := self.values.get(key), str) and value.strip():
                self._model((key,), value)
        self._rest()
        if (table := self._table("foresight")) and not self._inside(("foresight",)):
            with self._reporting(("foresight",)):
                tried("foresights", foresight_of(table, self.file.parent))
        self._memory()
        self._tools()
        return self.found

    def _role(self, name: str, value: Json) -> None:
        at = ("models", name)
        with self._reporting(at):
            check_role_name(name, "")
        if isinstance(value, str):
            self._model(at, value, role=True)
        elif not isinstance(value, dict):
            self._report(at, f"{name} must be a model's name or a table, not {value!r}.")
        else:
            table = cast(dict[str, Json], value)
            self._fits(at, table, RoleTable)
            self._values(at, check_setting)
            self._pairs(*at)
            model = table.get("name")
            if isinstance(model, str) and model.strip():
                self._model((*at, "name"), model, role=True)

    def _rest(self) -> None:
        level, folder = self.values.get("sandbox"), self.values.get("prompts")
        if isinstance(level, str) and level not in ("auto", "strict"):
            with self._reporting(("sandbox",)):
                level_named(level)
        if isinstance(folder, str) and not (self.file.parent / folder).is_dir():
            self._report(("prompts",), f"the folder {folder} does not exist next to this file.")

    def _memory(self) -> None:
        self._values(("memory",), lambda key, value: check_key(key, value, self.file.parent))
        table = self._table("memory")
        with self._reporting(("memory", "preset")):
            check_together(table)
        if isinstance(model := table.get("model"), str) and model.strip():
            self._model(("memory", "model"), model)

    def _tools(self) -> None:
        tools = self._table("tools")
        self._fits(("tools",), tools, ToolsTable)
        hosts = {"http_hosts": tools["http_hosts"]} if "http_hosts" in tools else {}
        if hosts and not self._reported(("tools", "http_hosts")):
            with self._reporting(("tools", "http_hosts")):
                check_tools((n for n in names("tools") if "hosts" in settings_of(find("tools", n))), hosts, {})
        for name, table in tools.items():
            if name in names("tools") and isinstance(table, dict) and not self._inside(("tools", name)):
                with self._reporting(("tools", name)):
                    check_tools([name], {"http_hosts": ["localhost"], **hosts, name: table}, {})
        for name, table in self._table("mcp").items():
            at = ("mcp", name)
            if not isinstance(table, dict):
                self._report(at, f"{name} must be a table with a command or a url, not {table!r}.")
                continue
            server = cast(dict[str, Json], table)
            self._fits(at, server, McpTable)
            if not self._inside(at):
                with self._reporting(at):  # env and headers may refer to keys that are not set here
                    bare = {key: value for key, value in server.items() if key not in ("env", "headers")}
                    check_tools([f"mcp:{name}"], {}, {name: bare})

    def _fits(self, at: tuple[str, ...], values: Mapping[str, Json], model: Any) -> None:
        """Checks that the keys exist and the values have the right types."""
        lines = {".".join(keys[len(at) :]): line for keys, line in self._lines.items() if keys[: len(at)] == at}
        if at and at not in self._lines:
            lines[""] = self._line(at) or 1
        source = Source(self.file, self.text, lines)
        self.found += checked(Document(source, values, present=True), model, strict=True)[1]

    def _values(self, at: tuple[str, ...], attempt: Callable[[str, Json], object]) -> None:
        """Checks each value of a table with the function that reads it."""
        for key, value in self._table(*at).items():
            if not self._reported((*at, key)):
                with self._reporting((*at, key)):
                    attempt(key, value)

    def _pairs(self, *at: str) -> None:
        table = self._table(*at)
        if ("input_price" in table) != ("output_price" in table):
            with self._reporting((*at, "input_price" if "input_price" in table else "output_price")):
                CallSettings.parse({key: 1.0 for key in table if key.endswith("_price")})

    def _model(self, at: tuple[str, ...], name: str, *, role: bool = False) -> None:
        for model in model_names(name):
            if not self._is_role(model):
                with self._reporting(at):
                    check_model_name(located_model(model, self.file.parent))
            elif role:
                self._report(at, f"{model!r} is a role; name the model itself.")

    def _is_role(self, name: str) -> bool:
        try:
            check_role_name(name, "")
        except InvalidInput:
            return False
        return name in BUILT_IN or name in self._table("models")

    def _table(self, *at: str) -> Mapping[str, Json]:
        value: Json = self.values
        for key in at:
            value = cast(dict[str, Json], value).get(key) if isinstance(value, dict) else None
        return cast(dict[str, Json], value) if isinstance(value, dict) else {}

    def _line(self, at: tuple[str, ...]) -> int | None:
        return next((self._lines[at[:n]] for n in range(len(at), 0, -1) if at[:n] in self._lines), None)

    def _reported(self, at: tuple[str, ...]) -> bool:
        """Whether a problem was reported on this line already."""
        return self._line(at) in {problem.line for problem in self.found}

    def _inside(self, at: tuple[str, ...]) -> bool:
        """Whether a problem was reported in this table already."""
        lines = {line for keys, line in self._lines.items() if keys[: len(at)] == at}
        return bool(lines & {problem.line for problem in self.found})

    def _report(self, at: tuple[str, ...], message: str) -> None:
        self.found.append(Problem(self.file, self._line(at), message))

    @contextmanager
    def _reporting(self, at: tuple[str, ...]) -> Generator[None]:
        try:
            yield
        except InvalidInput as error:
            self._report(at, str(error).removeprefix(": "))

    def _undated(self, at: tuple[str, ...], value: Any) -> Any:
        """The value without dates and times, which no setting accepts and JSON does not have. Each is reported."""
        if isinstance(value, dict):
            table = cast(dict[str, Any], value)
            return {
                key: self._undated((*at, key), item) for key, item in table.items() if not self._date((*at, key), item)
            }
        if isinstance(value, list):
            return [self._undated(at, item) for item in cast(list[Any], value) if not self._date(at, item)]
        return value

    def _date(self, at: tuple[str, ...], value: object) -> bool:
        if not isinstance(value, (datetime.date, datetime.time)):
            return False
        self._report(at, f"{at[-1]} must not be a date or a time: write it in quotes if it is a string.")
        return True


def _check_limit(key: str, value: Json) -> None:
    Limits(**{"trials" if key == "tries" else key: value})
