"""`mulligan.toml` as a pydantic model: its shape, and what the docs and the JSON Schema say of it.

What the file is read with stays the truth: the keys and defaults of roles, calls and tools are taken from their own
classes, and a test holds the others against theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast, get_type_hints

from pydantic import Field, create_model

from mulligan.agentfile.schema import Count, LimitsTable, Maybe, Name, Table, Text
from mulligan.app.memory_config import OF_BANK, STRATEGIES, MemorySettings
from mulligan.app.model_roles import BUILT_IN, RoleSettings
from mulligan.app.plugins import find, names, settings_of
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
_OF_TOOLS = {
    "hosts": "The hosts that it may ask, instead of `tools.http_hosts`.",
    "memory": "Megabytes that it may take.",
    "most": "Files that are listed at most.",
    "readable": "Folders beyond the workspace that it may read, such as a virtual environment.",
    "seconds": "Seconds that one call may take.",
    "size": "Bytes that are read or written at most.",
}
_OF_BANK = {
    "top_k": "Lessons that one recall gives at most; with the strategy `cosine`, experiences of up to three lessons.",
    "threshold": "The relevance, 0 to 1, below which a lesson is not given; or `strict`, `standard` or `lenient`. It "
    "is calibrated for each embedder, so that it means the same for all.",
    "tokens": "Tokens that the recalled lessons may take in a prompt.",
    "trajectory_tokens": "Tokens that an episode may take in what a judge or an extractor is asked.",
    "fold": "Whether lessons that are equal, letter by letter, become one that counts them.",
    "near_duplicates": "What is done with a new lesson that nearly says what another says: `link` keeps both and links "
    "them, `skip` does not keep the new one.",
    "auto_merge": "Whether lessons that are alike are merged in the background.",
    "quarantine": "Whether a lesson that tries to instruct its reader is held back until it is released.",
    "attempts": "How often queued work is tried before it has failed.",
}


def words_of(cls: type[Any]) -> dict[str, str]:
    """What the docstring of a dataclass says of its fields, in lines such as `name: text` or `one, other: text`."""
    said: dict[str, str] = {}
    for found in re.finditer(r"^ +(\w+(?:, \w+)*): ((?:.+\n?)+?)(?=^ +\w+(?:, \w+)*: |\s*\Z)", cls.__doc__ or "", re.M):
        text = " ".join(found[2].split()).rstrip(".")
        said |= dict.fromkeys(found[1].split(", "), f"{text[:1].upper()}{text[1:]}.")
    return said


def _key(name: str, about: str, default: object) -> Any:
    said = _DEFAULTS.get(name) or (None if default in (None, ()) else str(default))
    extra: dict[str, Any] = {"x-default": said} if said else {}
    return Field(default=None, description=about, examples=[_EXAMPLES.get(name, default)], json_schema_extra=extra)


def _of_dataclass(cls: type[Any]) -> dict[str, Any]:
    said, hints = words_of(cls), get_type_hints(cls)
    return {f.name: (Maybe[hints[f.name]], _key(f.name, said[f.name], f.default)) for f in fields(cls)}


def _of_tools() -> dict[str, Any]:
    """A table for each tool that has settings, by the tool's name."""
    made: dict[str, Any] = {}
    for name in names("tools"):
        cls = find("tools", name)
        hints = get_type_hints(cls.__init__)
        known = {key: p.default for key, p in settings_of(cls).items() if p.default is not p.empty}
        if name == "mcp" or not known:
            continue
        keys: Any = {
            key: (Maybe[hints[key]], _key(key, _OF_TOOLS.get(key, ""), default)) for key, default in known.items()
        }
        table = create_model(f"{name}_tool", __base__=Table, __doc__=f"Settings of the tool {name}.", **keys)
        first, default = next(iter(known.items()))
        about = Field(
            default=None,
            description=f"Settings of the tool `{name}`.",
            examples=[{first: _EXAMPLES.get(first, default)}],
        )
        made[name] = (Maybe[table], about)
    return made


def _of_memory() -> dict[str, Any]:
    """Its own keys, a strategy as text or table, then those of the bank."""
    said, hints = words_of(MemorySettings), get_type_hints(MemorySettings)
    made: dict[str, Any] = {}
    for f in fields(MemorySettings):
        if f.name in STRATEGIES:
            name = cast(Spec, f.default).name
            made[f.name] = (Maybe[Text | dict[str, Any]], _key(f.name, said[f.name], name))
        elif f.name != "bank":
            made[f.name] = (Maybe[hints[f.name]], _key(f.name, said[f.name], f.default))
    hints = get_type_hints(Settings)
    return made | {key: (Maybe[hints[key]], _key(key, _OF_BANK[key], getattr(Settings, key))) for key in OF_BANK}


_calls = _of_dataclass(CallSettings)
CallsTable = create_model("CallsTable", __base__=Table, __doc__="How providers are called.", **_calls)
RoleTable = create_model(
    "RoleTable",
    __base__=Table,
    __doc__="A model role: its model, how it samples, and how its provider is called.",
    **{**_of_dataclass(RoleSettings), **_calls},
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
        description="The model that reflects in `mulligan solve`, if it is another. Where one is named here, the "
        "strategy is `evidence_and_reflexion`, unless another is named.",
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
