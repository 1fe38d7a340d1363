"""`mulligan.toml` as a pydantic model, from which lint, the docs and the JSON Schema are made.

The keys, types, defaults and descriptions for roles, calls, tools and the bank come from the classes that read them. A
test compares the other keys with the code that reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast, get_type_hints

from pydantic import Field, create_model

from mulligan.agentfile.schema import ForesightTable, LimitsTable, Maybe, Name, Table, Text
from mulligan.app.config import OPTIONS
from mulligan.app.memory_config import OF_BANK, STRATEGIES, MemorySettings
from mulligan.app.model_roles import RoleSettings
from mulligan.app.plugins import find, names, settings_of
from mulligan.app.toolbox import MCP
from mulligan.bank.ports import Settings
from mulligan.core.records import Json, Spec
from mulligan.models.settings import CallSettings

_EXAMPLES: Mapping[str, Json] = {
    "hosts": ["docs.python.org"],
    "readable": ["/opt/venv"],
    "expires": {"fact": "90d"},
    "reader": "small",
}
"""Examples for settings whose default is empty."""


def _keys(annotated: Any, defaults: Mapping[str, object]) -> dict[str, Any]:
    """A key for each default, with the type and the description of its annotation (`Annotated[type, "text"]`)."""
    kinds, full = get_type_hints(annotated), get_type_hints(annotated, include_extras=True)
    keys: dict[str, Any] = {}
    for name, default in defaults.items():
        about = next((note for note in getattr(full[name], "__metadata__", ()) if isinstance(note, str)), "")
        keys[name] = (Maybe[kinds[name]], _key(name, about, default))
    return keys


def _key(name: str, about: str, default: object) -> Any:
    extra: dict[str, Any] = {} if default in (None, ()) else {"x-default": _as_written(default)}
    return Field(default=None, description=about, examples=[_EXAMPLES.get(name, default)], json_schema_extra=extra)


def _as_written(default: object) -> str:
    """The default as it is written in mulligan.toml, without quotes around strings, as Markdown code."""
    return f"`{default if isinstance(default, str) and default else json.dumps(default)}`"


def _tool_keys() -> dict[str, Any]:
    """A table for each tool that has settings, by the tool's name."""
    tables: dict[str, Any] = {}
    for name in names("tools"):
        cls = find("tools", name)
        defaults = {key: p.default for key, p in settings_of(cls).items() if p.default is not p.empty}
        if name == MCP or not defaults:
            continue
        first, default = next(iter(defaults.items()))
        table = create_model(
            f"{name}_tool", __base__=Table, __doc__=f"Settings of the tool {name}.", **_keys(cls.__init__, defaults)
        )
        example = {first: _EXAMPLES.get(first, default)}
        tables[name] = (
            Maybe[table],
            Field(default=None, description=f"Settings for the tool `{name}`.", examples=[example]),
        )
    return tables


def _memory_keys() -> dict[str, Any]:
    """The keys of [memory] itself, with strategies as strings or tables, then those of the bank."""
    defaults = {f.name: f.default.name if isinstance(f.default, Spec) else f.default for f in fields(MemorySettings)}
    del defaults["bank"]
    keys = _keys(MemorySettings, defaults)
    keys |= {name: (Maybe[Text | dict[str, Any]], keys[name][1]) for name in STRATEGIES}
    return keys | _keys(Settings, {key: getattr(Settings(), key) for key in OF_BANK})


_calls = _keys(CallSettings, vars(CallSettings()))
CallsTable = create_model("CallsTable", __base__=Table, __doc__="How providers are called.", **_calls)
RoleTable = create_model(
    "RoleTable",
    __base__=Table,
    __doc__="A model role: its model, how it samples, and how its provider is called.",
    **{**_keys(RoleSettings, vars(RoleSettings())), **_calls},
)
ToolsTable = create_model(
    "ToolsTable",
    __base__=Table,
    __doc__="Tools that skills unlock.",
    **cast(dict[str, Any], {"http_hosts": (Maybe[list[Text]], None), **_tool_keys()}),
)
BankTable = create_model("BankTable", __base__=Table, __doc__="How the bank behaves.", **_memory_keys())


class ProjectTable(Table):
    """What the project is."""

    name: Maybe[Name] = None


class ProjectLimits(LimitsTable):
    """What an episode may take."""


class McpTable(Table):
    """A server of tools that speaks MCP: one that is started (`command`), or one that is reached (`url`)."""

    command: Maybe[list[Text]] = None
    env: Maybe[dict[str, str]] = None
    cwd: Maybe[Text] = None
    url: Maybe[Text] = None
    headers: Maybe[dict[str, str]] = None
    seconds: Maybe[float] = None


class GraphsTable(Table):
    """How graph databases are queried."""

    procedures: Maybe[list[Text]] = None


RunTable: Any = create_model(
    "RunTable", __base__=Table, **cast(dict[str, Any], dict.fromkeys(OPTIONS, (Maybe[Text], None)))
)


class ProjectFile(RunTable):
    """mulligan.toml: what holds in its folder and below."""

    project: Maybe[ProjectTable] = None
    models: Maybe[dict[str, Text | RoleTable]] = None  # pyright: ignore[reportInvalidTypeForm]
    limits: Maybe[ProjectLimits] = None
    calls: Maybe[CallsTable] = None  # pyright: ignore[reportInvalidTypeForm]
    foresight: Maybe[ForesightTable] = None
    memory: Maybe[BankTable] = None  # pyright: ignore[reportInvalidTypeForm]
    tools: Maybe[ToolsTable] = None  # pyright: ignore[reportInvalidTypeForm]
    mcp: Maybe[dict[str, McpTable]] = None
    kinds: Maybe[dict[str, Text]] = None
    graphs: Maybe[GraphsTable] = None
