"""mulligan.toml is described once: the model for docs and lint holds what the code reads, and finds every mistake."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from format_pages import page
from mulligan.agentfile.formats import properties, resolved, schema_of
from mulligan.agentfile.scaffold import init
from mulligan.app.config import KEYS, load
from mulligan.app.model_roles import RoleSettings
from mulligan.app.project_file import check_project
from mulligan.app.project_schema import CallsTable, McpTable, ProjectFile, ProjectLimits, RoleTable, ToolsTable
from mulligan.core.limits import Limits
from mulligan.models.settings import CallSettings
from mulligan.tools import mcp


def known(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields)


def names(cls: Any) -> set[str]:
    return {field.name for field in fields(cls)}


def test_its_keys_are_those_that_are_read() -> None:
    assert known(ProjectFile) == set(KEYS)
    assert known(ProjectLimits) == {*names(Limits), "tries"}
    assert known(CallsTable) == names(CallSettings)
    assert known(RoleTable) == names(CallSettings) | names(RoleSettings)
    assert known(McpTable) == {*mcp._KEYS, "seconds"}  # pyright: ignore[reportPrivateUsage]
    assert known(ToolsTable) == {"http_hosts", "http_get", "list_files", "read_file", "run_command", "write_file"}


def test_every_key_is_described_and_has_an_example_that_fits() -> None:
    root = schema_of(ProjectFile)  # pyright: ignore[reportArgumentType]
    for name, schema in properties(root, root).items():
        tables = [(name, schema), *properties(schema, root).items()]
        for key, inner in tables:
            own = resolved(inner, root)
            assert len(own.get("description", "")) > 10, f"{name}: {key}"
            assert own.get("examples"), f"{name}: {key}"
        ProjectFile.model_validate({name: resolved(schema, root)["examples"][0]})
    for model in (RoleTable, CallsTable, McpTable, ProjectLimits, ToolsTable):
        for key, schema in schema_of(model)["properties"].items():
            assert schema["description"], f"{model.__name__}.{key}"
            model.model_validate({key: schema["examples"][0]})
    assert "`models.NAME.base_url`" in page("mulligan.toml", "It.", ProjectFile, "", "toml")


MISTAKES = [
    ("modle = 1", 1, "unknown key 'modle'. Did you mean 'model'?"),
    ("\nmodel = 1", 2, "model must be a string, not 1"),
    ("model = 'opnai:gpt'", 1, "Did you mean 'openai'?"),
    ("judge_model = 'gpt'", 1, "No model is called 'gpt'"),
    ("model = 'scripted:none.txt'", 1, "none.txt cannot be read"),
    ("model = 1979-05-27", 1, "model must not be a date or a time"),
    ("prompts = 'none'", 1, "the folder none does not exist"),
    ("sandbox = 'strickt'", 1, "Did you mean 'strict'?"),
    ("project = 'x'", 1, "project must be a table"),
    ("[project]\nname = 'My Project'", 2, "lowercase letters"),
    ("[project]\nnme = 'x'", 2, "Did you mean 'name'?"),
    ("models = 1", 1, "models must be a table"),
    ("[models]\nlocal = 'openai:x'", 2, "'local' is reserved for model names"),
    ("[models]\n'A B' = 'openai:x'", 2, "must be in lower case"),
    ("[models]\nthinker = 1", 2, "thinker must be a model's name or a table, not 1"),
    ("[models]\nthinker = ['x']", 2, "thinker must be a model's name or a table"),
    ("[models]\nthinker = 'worker'", 2, "'worker' is a role; name the model itself"),
    ("[models]\nthinker = {name = 'openai:'}", 2, "openai is a provider"),
    ("[models.my-own]\nname = 'local'\ntempratur = 1", 3, "Did you mean 'temperature'?"),
    ("[models.my-own]\nname = 'local'\ntemperature = -1", 3, "The temperature must be"),
    ("[models.my-own]\ntemperature = 'hot'", 2, "temperature must be a number, not 'hot'"),
    ("[models.my-own]\nmax_tokens = 1.5", 2, "max_tokens must be an integer"),
    ("[models.my-own]\n\nbase_url = 'x'", 3, "must begin with http"),
    ("[models.my-own]\noutput_price = 1.0", 2, "Set both"),
    ("[limits]\ntokns = 1", 2, "Did you mean 'tokens'?"),
    ("[limits]\ntrials = 0", 2, "trials must be an integer of at least 1, not 0"),
    ("[limits]\ncost = inf", 2, "The limit 'cost' must be more than 0"),
    ("limits = 3", 1, "limits must be a table"),
    ("[calls]\ntimeout = true", 2, "timeout must be a number, not true"),
    ("[calls]\ntimeout = 0", 2, "'timeout' must be more than 0"),
    ("[calls]\nkey = ''", 2, "'key' must be a string"),
    ("[tools]\nhttp_host = ['x']", 2, "Did you mean 'http_hosts'?"),
    ("[tools]\nhttp_hosts = 'x.org'", 2, "http_hosts must be a list of strings"),
    ("[tools]\nhttp_hosts = ['https://x.org/a']", 2, "accepts hosts such as"),
    ("[tools.run_command]\nseconds = 0", 1, "seconds must be greater than 0"),
    ("[tools.run_command]\nsecond = 1", 2, "Did you mean 'seconds'?"),
    ("[mcp]\na = 1", 2, "a must be a table with a command or a url"),
    ("[mcp.a]\ncomand = ['x']", 2, "Did you mean 'command'?"),
    ("[mcp.a]\ncommand = 'x y'", 2, "command must be a list of strings"),
    ("[mcp.a]\nenv = {A = '1'}", 1, "needs either a command"),
    ("[models\nx", 1, "Expected ']'"),
    ("model = 'a'\nmodel = 'b'", 2, "Cannot overwrite a value"),
]


@pytest.mark.parametrize(("text", "line", "says"), MISTAKES)
def test_a_mistake_is_found_once_with_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    (tmp_path / "mulligan.toml").write_text(text)
    (problem,) = check_project(tmp_path)
    assert (problem.file, problem.line, problem.level) == (tmp_path / "mulligan.toml", line, "error")
    assert says in problem.message


def test_every_mistake_is_found_at_once_and_those_of_dotenv_too(tmp_path: Path) -> None:
    texts = [text for text, line, _ in MISTAKES if text.startswith("[") and line == 2 and "." not in text.split("]")[0]]
    tables: dict[str, list[str]] = {}
    for text in texts:
        head, _, rest = text.partition("\n")
        if rest.partition("=")[0] not in "".join(tables.get(head, ())) and head.endswith("]"):
            tables.setdefault(head, []).append(rest)
    lines = [line for head, rest in tables.items() for line in (head, *rest)]
    (tmp_path / "mulligan.toml").write_text("\n".join(lines))
    (tmp_path / ".env").write_text("A=1\nhush\n")
    found = check_project(tmp_path / "mulligan.toml")
    wrong = [number for number, line in enumerate(lines, 1) if not line.startswith("[")]
    assert len(wrong) > 8
    assert [problem.line for problem in found] == [*wrong, 2]
    assert str(found[-1]).startswith(f"{tmp_path / '.env'}:2: ")
    assert "hush" not in str(found[-1])


def test_a_file_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    (problem,) = check_project(tmp_path)
    assert "cannot be read: No such file" in problem.message
    (tmp_path / "mulligan.toml").write_bytes(b"model = 'a'\n\xff")
    (problem,) = check_project(tmp_path)
    assert (problem.line, "not valid UTF-8" in problem.message) == (2, True)


def test_what_init_writes_is_sound_with_and_without_its_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(tmp_path, "my-project")
    file = tmp_path / "mulligan.toml"
    assert check_project(tmp_path) == []
    prose = ("# The", "# steps", "# overrides", "# Limits", "# How", "# MCP", "# Project")
    lines = [line for line in file.read_text().splitlines() if not line.startswith(prose)]
    file.write_text("\n".join(line.removeprefix("# ") for line in lines))
    assert check_project(tmp_path) == []
    monkeypatch.chdir(tmp_path)
    assert set(load().values) == {"model", "project", "models", "limits", "calls", "tools", "mcp"}
