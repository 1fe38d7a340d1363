"""`mulligan.toml` as a pydantic model, from which lint, the docs and the JSON Schema are made.

Keys, types, defaults and descriptions of roles, calls, tools and the bank come from the classes that read them; a test
compares the others with theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast, get_type_hints

from pydantic import Field, create_model

from mulligan.agentfile.schema import Count, LimitsTable, Maybe, Name, Table, Text
from mulligan.app.memory_config import OF_BANK, STRATEGIES, MemorySettings
from mulligan.app.model_roles import BUILT_IN, RoleSettings
from mulligan.app.plugins import find, names, settings_of
from mulligan.app.toolbox import MCP
from mulligan.bank.settings import Settings
from mulligan.core.limits import Limits
from mulligan.core.records import Json
from mulligan.core.specs import Spec
from mulligan.models.settings import CallSettings

_EXAMPLES: Mapping[str, Json] = {
    "name": "anthropic:claude-haiku-4-5",
    "temperature": 0.2,
    "max_tokens": 2000,
    "base_url": "http://127.0.0.1:8000/v1",
    "key": "MY_OPENAI_KEY",
    "input_price": 0.25,
    "output_price": 2.0,
    "hosts": ["docs.python.org"],
    "readable": ["/opt/venv"],
    "preset": "paper",
    "model": "anthropic:claude-haiku-4-5",
    "embedder": "local",
    "threshold": "standard",
}
_MODEL: Json = "openai:gpt-6-luna"
_DEFAULTS = {"temperature": ", ".join(f"{heat} for {role}" for role, heat in BUILT_IN.items())}


def _keys(annotated: Any, defaults: Mapping[str, object]) -> dict[str, Any]:
    """A key for each of these, with the type and the description of its annotation (`Annotated[type, "text"]`)."""
    kinds, full = get_type_hints(annotated), get_type_hints(annotated, include_extras=True)
    found: dict[str, Any] = {}
    for name, default in defaults.items():
        about = next((said for said in getattr(full[name], "__metadata__", ()) if isinstance(said, str)), "")
        found[name] = (Maybe[kinds[name]], _key(name, about, default))
    return found


def _key(name: str, about: str, default: object) -> Any:
    said = _DEFAULTS.get(name) or (None if default in (None, ()) else str(default))
    extra: dict[str, Any] = {"x-default": said} if said else {}
    return Field(default=None, description=about, examples=[_EXAMPLES.get(name, default)], json_schema_extra=extra)


def _of_tools() -> dict[str, Any]:
    """A table for each tool that has settings, by the tool's name."""
    made: dict[str, Any] = {}
    for name in names("tools"):
        cls = find("tools", name)
        known = {key: p.default for key, p in settings_of(cls).items() if p.default is not p.empty}
        if name == MCP or not known:
            continue
        first, default = next(iter(known.items()))
        table = create_model(
            f"{name}_tool", __base__=Table, __doc__=f"Settings of the tool {name}.", **_keys(cls.__init__, known)
        )
        example = {first: _EXAMPLES.get(first, default)}
        made[name] = (
            Maybe[table],
            Field(default=None, description=f"Settings of the tool `{name}`.", examples=[example]),
        )
    return made


def _of_memory() -> dict[str, Any]:
    """Its own keys, a strategy as text or table, then those of the bank."""
    own = {f.name: f.default.name if isinstance(f.default, Spec) else f.default for f in fields(MemorySettings)}
    del own["bank"]
    made = _keys(MemorySettings, own)
    made |= {name: (Maybe[Text | dict[str, Any]], made[name][1]) for name in STRATEGIES}
    return made | _keys(Settings, {key: getattr(Settings, key) for key in OF_BANK})


_calls = _keys(CallSettings, vars(CallSettings()))
CallsTable = create_model("CallsTable", __base__=Table, __doc__="How providers are called.", **_calls)
RoleTable = create_model(
    "RoleTable",
    __base__=Table,
    __doc__="A model role: its model, how it samples, and how its provider is called.",
    **{**_keys(RoleSettings, vars(RoleSettings())), **_calls},
)
_HOSTS = (
    Maybe[list[Text]],
    Field(
        default=None,
        description="The hosts that the tool `http_get` may ask; none without this. `*.example.org` is what is below "
        "it; a port that is none of the usual two has to be named.",
        examples=[["docs.python.org", "localhost:8000"]],
    ),
)
ToolsTable = create_model(
    "ToolsTable",
    __base__=Table,
    __doc__="Tools that skills unlock.",
    **cast(dict[str, Any], {"http_hosts": _HOSTS, **_of_tools()}),
)

MemoryTable = create_model("MemoryTable", __base__=Table, __doc__="How the bank behaves.", **_of_memory())


class ProjectTable(Table):
    """What the project is."""

    name: Maybe[Name] = Field(
        default=None,
        description="What the project is called. Facts in the bank are kept under this name; without it, under that of "
        "the folder of the git repository.",
        examples=["my-project"],
    )


class ProjectLimits(LimitsTable):
    """What an episode may take."""

    trials: Maybe[Count] = Field(
        default=None,
        description="Attempts at most, the first included. An agent of pattern reflexion has its own: `max_iter`.",
        examples=[4],
        json_schema_extra={"x-default": str(Limits.trials)},
    )


class McpTable(Table):
    """A server of tools that speaks MCP: one that is started (`command`), or one that is reached (`url`)."""

    command: Maybe[list[Text]] = Field(
        default=None,
        description="The program and its arguments. It is started at the first use, as by hand, in no sandbox.",
        examples=[["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]],
    )
    env: Maybe[dict[str, str]] = Field(
        default=None,
        description="Variables that it is given beside PATH, HOME and the like. `${NAME}` is taken from the "
        "environment or .env.",
        examples=[{"TOKEN": "${MY_TOKEN}"}],
    )
    cwd: Maybe[Text] = Field(
        default=None,
        description="The folder that it runs in, from that of mulligan.toml.",
        examples=["."],
        json_schema_extra={"x-default": "the folder of mulligan.toml"},
    )
    url: Maybe[Text] = Field(
        default=None, description="The server's address (Streamable HTTP).", examples=["https://mcp.example.org/mcp"]
    )
    headers: Maybe[dict[str, str]] = Field(
        default=None,
        description="Headers of each request. `${NAME}` is taken from the environment or .env.",
        examples=[{"Authorization": "Bearer ${MY_TOKEN}"}],
    )
    seconds: Maybe[float] = Field(
        default=None,
        description="Seconds for connecting, and for each call.",
        examples=[30],
        json_schema_extra={"x-default": "60"},
    )


class ProjectFile(Table):
    """mulligan.toml: what holds in its folder and below."""

    model: Maybe[Text] = Field(
        default=None,
        description="The model of all that names no other: `PROVIDER:MODEL`, `local` (embedded, no key), "
        "`scripted:FILE`, `replay:FILE`, or a role of [models]. MULLIGAN_MODEL goes before it.",
        examples=[_MODEL],
        json_schema_extra={"x-default": "local"},
    )
    reflect_model: Maybe[Text] = Field(
        default=None,
        description="The model that reflects in `mulligan solve`, if it is another.",
        examples=[_MODEL],
        json_schema_extra={"x-default": "that of model"},
    )
    judge_model: Maybe[Text] = Field(
        default=None,
        description="The model that judges where a model does, if it is another.",
        examples=[_MODEL],
        json_schema_extra={"x-default": "that of model"},
    )
    sandbox: Maybe[Text] = Field(
        default=None,
        description="How code is confined: `auto` (the strongest way that works here), `strict`, or a level that "
        "`mulligan doctor` names.",
        examples=["strict"],
        json_schema_extra={"x-default": "auto"},
    )
    prompts: Maybe[Text] = Field(
        default=None,
        description="A folder with prompts of your own, from that of this file; what it lacks, ours fill.",
        examples=["my-prompts"],
    )
    project: Maybe[ProjectTable] = Field(
        default=None, description="What the project is.", examples=[{"name": "my-project"}]
    )
    models: Maybe[dict[str, Text | RoleTable]] = Field(  # pyright: ignore[reportInvalidTypeForm]
        default=None,
        description="Model roles, by name: what front matter means by `model: {role: NAME}`, and `--model NAME` too. A "
        "role is a model's name, or a table of the keys below. `thinker` is taken by react steps, `worker` by oneshot "
        "steps, `default` by roles that name no model; any other name is your own. The environment goes before: "
        "MULLIGAN_MODEL_THINKER, MULLIGAN_MODEL_THINKER_TEMPERATURE and so on.",
        examples=[{"thinker": "anthropic:claude-haiku-4-5"}],
    )
    limits: Maybe[ProjectLimits] = Field(
        default=None,
        description="What an episode may take before it is stopped. Options and an agent's own limits go before these.",
        examples=[{"tokens": 200000}],
    )
    calls: Maybe[CallsTable] = Field(  # pyright: ignore[reportInvalidTypeForm]
        default=None,
        description="How every provider is called; a role's own keys go before.",
        examples=[{"timeout": 60}],
    )
    memory: Maybe[MemoryTable] = Field(  # pyright: ignore[reportInvalidTypeForm]
        default=None,
        description="The bank: how lessons are kept, found and merged.",
        examples=[{"threshold": "strict"}],
    )
    tools: Maybe[ToolsTable] = Field(  # pyright: ignore[reportInvalidTypeForm]
        default=None,
        description="What the tools that skills unlock may do.",
        examples=[{"http_hosts": ["docs.python.org"]}],
    )
    mcp: Maybe[dict[str, McpTable]] = Field(
        default=None,
        description="Servers of tools, by a name of your own; a skill unlocks one as `mcp:NAME`.",
        examples=[{"files": {"command": ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]}}],
    )
