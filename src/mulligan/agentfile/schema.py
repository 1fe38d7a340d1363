"""The keys of an agent's files as pydantic models, from which the reader, the docs and the JSON Schemas are made.

`keys.toml` describes each key for the docs: its meaning, an example, and its default in words. Files of tama, another
format for agents, use some of the same keys.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, GetJsonSchemaHandler, Tag
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError

from mulligan.core.records import MOST_KIND

KEBAB = r"^[a-z0-9][a-z0-9-]*$"
FOLDER = r"^[^/\\.][^/\\]*$"

FOREIGN_PATTERNS = (
    "scatter",
    "parallel",
    "fsm",
    "critic",
    "constitutional",
    "chain-of-verification",
    "plan-execute",
    "debate",
    "best-of-n",
    "human",
)
"""Patterns of tama that Mulligan does not run."""

FOREIGN_KEYS = ("worker", "workers", "initial", "states", "agents", "rounds", "judge", "n")
"""The keys of these patterns in AGENT.md. They are not reported, because the pattern itself is."""

TOOL_ALIASES = {
    "tama_bash": "run_command",
    "tama_http_get": "http_get",
    "tama_files_read": "read_file",
    "tama_files_write": "write_file",
}
"""The names in Mulligan of tools of tama."""

MISSING_TOOLS = ("tama_http_post", "tama_mem_set", "tama_mem_get", "tama_mem_append")
"""Tools of tama that Mulligan does not have."""

T = TypeVar("T")


def _refuse_none(value: object) -> object:
    if value is None:
        raise PydanticCustomError("no_value", "has no value")
    return value


Maybe: TypeAlias = Annotated[T | None, BeforeValidator(_refuse_none)]
"""The type of a key that may be left out. A key without a value is a mistake."""

Text: TypeAlias = Annotated[str, Field(min_length=1, pattern=r"\S")]
Name: TypeAlias = Annotated[str, Field(pattern=KEBAB, max_length=64)]
SkillName: TypeAlias = Annotated[str, Field(pattern=FOLDER, max_length=255)]
Count: TypeAlias = Annotated[int, Field(ge=1)]


@cache
def _texts() -> dict[str, dict[str, dict[str, Any]]]:
    return tomllib.loads((Path(__file__).parent / "keys.toml").read_text(encoding="utf-8"))


class Table(BaseModel):
    """A table that refuses unknown keys and does not convert types: "4" is not a number."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The JSON Schema, with the texts of `keys.toml` for the keys of this model and of its base classes."""
        schema = handler(core_schema)
        keys = handler.resolve_ref_schema(schema).get("properties", {})
        for table in (_texts().get(base.__name__, {}) for base in reversed(cls.__mro__)):
            for key, texts in table.items():
                keys[key] |= texts
        return schema


class ModelTable(Table):
    """A model with its settings."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["role", "name"]}})

    role: Maybe[Text] = None
    name: Maybe[Text] = None
    temperature: Maybe[Annotated[float, Field(ge=0, le=2)]] = None
    max_tokens: Maybe[Count] = None


def _zero_or_more(value: object) -> str:
    return "zero" if value == 0 and not isinstance(value, bool) else "more"


Identical: TypeAlias = Annotated[
    Annotated[Annotated[int, Field(ge=2)], Tag("more")] | Annotated[Literal[0], Tag("zero")],
    Discriminator(_zero_or_more),
]
"""At least 2, or 0 for no limit. As in the unions below, the tag lets an error describe the form that was meant."""


def _form(value: object) -> str | None:
    tags = {str: "text", dict: "table", bool: "switch"}
    return next((tag for kind, tag in tags.items() if isinstance(value, kind)), None)


ModelKey: TypeAlias = Annotated[
    Annotated[Text, Tag("text")] | Annotated[ModelTable, Tag("table")], Discriminator(_form)
]


class CallTable(Table):
    """How a step calls its model."""

    model: Maybe[ModelKey] = None
    uses: Maybe[list[SkillName]] = None
    max_iter: Maybe[Count] = None


class MemoryTable(Table):
    """Which lessons an agent recalls, and whether it adds any."""

    bank: Maybe[Text] = None
    top_k: Maybe[Count] = None
    forms: Maybe[list[Literal["notebook", "lessons", "history"]]] = None
    mode: Maybe[Literal["online", "frozen"]] = "online"


class EvaluateTable(Table):
    """The evaluator that judges instead of the reflector. Every other key is a setting of that evaluator."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"oneOf": [{"required": [key]} for key in ("tests", "check", "judge", "evaluator")]},
    )

    tests: Maybe[Text] = None
    check: Maybe[Text] = None
    judge: Maybe[Text] = None
    evaluator: Maybe[Text] = None


class ReflectTable(Table):
    """The reflector for failed trials. Every other key is a setting of that reflector."""

    model_config = ConfigDict(extra="allow")

    reflector: Text


class ForesightTable(Table):
    """What is asked before critical actions. Every other key is a setting of that foresight."""

    model_config = ConfigDict(extra="allow")

    name: Maybe[Text] = None
    before: Maybe[
        Annotated[
            Annotated[Text, Tag("text")] | Annotated[list[Text], Tag("list")],
            Discriminator(lambda value: "list" if isinstance(value, list) else "text"),
        ]
    ] = None
    checks: Maybe[Count] = None
    unclear: Maybe[Literal["go_on", "refuse"]] = None


class LimitsTable(Table):
    """What an episode may take."""

    tokens: Maybe[Count] = None
    cost: Maybe[Annotated[float, Field(gt=0)]] = None
    seconds: Maybe[Annotated[float, Field(gt=0)]] = None
    identical: Maybe[Identical] = None
    tries: Maybe[Count] = None
    trials: Maybe[Count] = None


MemoryKey: TypeAlias = Annotated[
    Annotated[bool, Tag("switch")] | Annotated[MemoryTable, Tag("table")], Discriminator(_form)
]
EvaluateKey: TypeAlias = Annotated[
    Annotated[Text, Tag("text")] | Annotated[EvaluateTable, Tag("table")], Discriminator(_form)
]
ReflectKey: TypeAlias = Annotated[
    Annotated[Text, Tag("text")] | Annotated[ReflectTable, Tag("table")], Discriminator(_form)
]
ForesightKey: TypeAlias = Annotated[
    Annotated[bool, Tag("switch")] | Annotated[Text, Tag("text")] | Annotated[ForesightTable, Tag("table")],
    Discriminator(_form),
]


class AgentFile(Table):
    """The front matter of AGENT.md."""

    name: Name
    description: Text
    version: Text
    pattern: Literal["reflexion", "react", "oneshot"]
    max_iter: Maybe[Count] = None
    model: Maybe[ModelKey] = None
    uses: Maybe[list[SkillName]] = None
    skills: Maybe[Literal["found"]] = None
    call: Maybe[CallTable] = None
    strategy: Maybe[Text] = None
    memory: Maybe[MemoryKey] = None
    evaluate: Maybe[EvaluateKey] = None
    reflect: Maybe[ReflectKey] = None
    limits: Maybe[LimitsTable] = None
    scale: Maybe[Text] = None
    foresight: Maybe[ForesightKey] = None
    judge_last: Maybe[bool] = True
    kind: Maybe[Annotated[Text, Field(max_length=MOST_KIND)]] = None
    env: Any = None


class StepKeys(Table):
    """The front matter of act.md and reflect.md, which may be left out as a whole."""

    pattern: Maybe[Literal["react", "oneshot"]] = None
    model: Maybe[ModelKey] = None
    uses: Maybe[list[SkillName]] = None
    max_iter: Maybe[Count] = None
    call: Maybe[CallTable] = None


class SkillFile(Table):
    """The front matter of SKILL.md."""

    name: Maybe[Text] = None
    description: Text
    tools: Maybe[list[Text]] = None
    uses: Maybe[list[Name]] = None
    license: Any = None
    version: Any = None
    compatibility: Any = None
    metadata: Any = None
    allowed_tools: Any = Field(default=None, alias="allowed-tools")
    tama: Any = None
