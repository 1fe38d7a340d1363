"""The keys of an agent's files as pydantic models, from which reader, docs and JSON Schemas are made.

A description is for a reader who has never seen the file.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

KEBAB = r"^[a-z0-9][a-z0-9-]*$"

FOREIGN_PATTERNS = (
    *("scatter", "parallel", "fsm", "critic", "constitutional", "chain-of-verification", "plan-execute"),
    *("debate", "best-of-n", "human"),
)
"""Patterns of tama that are not run here."""

FOREIGN_KEYS = ("worker", "workers", "initial", "states", "agents", "rounds", "judge", "n")
"""The keys of those patterns in AGENT.md: not reported, because the pattern itself is."""

TOOL_ALIASES = {
    "tama_bash": "run_command",
    "tama_http_get": "http_get",
    "tama_files_read": "read_file",
    "tama_files_write": "write_file",
}
"""Tools of tama under the names that they have here."""

MISSING_TOOLS = ("tama_http_post", "tama_mem_set", "tama_mem_get", "tama_mem_append")

T = TypeVar("T")


def _refuse_none(value: object) -> object:
    if value is None:
        raise PydanticCustomError("no_value", "has no value")
    return value


Maybe: TypeAlias = Annotated[T | None, BeforeValidator(_refuse_none)]
"""A key that may be left out. A key that stands there without a value is a mistake."""

Text: TypeAlias = Annotated[str, Field(min_length=1, pattern=r"\S")]
Name: TypeAlias = Annotated[str, Field(pattern=KEBAB, max_length=64)]
Count: TypeAlias = Annotated[int, Field(ge=1)]


def _of_tama(why: str) -> Any:
    """A key that is accepted with a warning, so that an agent written for tama runs."""
    return Field(default=None, description=f"Of tama; ignored. {why}", json_schema_extra={"deprecated": True})


class Table(BaseModel):
    """Refuses unknown keys, and converts no types: "4" is not a number."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ModelTable(Table):
    """A model with its settings."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["role", "name"]}})

    role: Maybe[Text] = Field(
        default=None,
        description="The role whose model in mulligan.toml is taken: thinker, worker, default, or one of your own. "
        "Give a role or a name, not both; with neither, a react step takes the role thinker, a oneshot step worker.",
        examples=["thinker"],
    )
    name: Maybe[Text] = Field(
        default=None, description="The model itself, as `provider:model`.", examples=["openai:gpt-5"]
    )
    temperature: Maybe[Annotated[float, Field(ge=0, le=2)]] = Field(
        default=None,
        description="How freely it samples: 0 gives its likeliest words. Left out, mulligan.toml decides.",
        examples=[0.1],
    )
    max_tokens: Maybe[Count] = Field(
        default=None, description="Tokens of one answer at most. Left out, mulligan.toml decides.", examples=[2000]
    )


def _number(value: object) -> str:
    return "none" if value == 0 and not isinstance(value, bool) else "some"


Identical: TypeAlias = Annotated[
    Annotated[Annotated[int, Field(ge=2)], Tag("some")] | Annotated[Literal[0], Tag("none")], Discriminator(_number)
]


def _form(value: object) -> str | None:
    """The form of a union that a value has, so that an error describes that form."""
    return next(
        (tag for kind, tag in ((str, "text"), (dict, "table"), (bool, "switch")) if isinstance(value, kind)), None
    )


ModelKey: TypeAlias = Annotated[
    Annotated[Text, Tag("text")] | Annotated[ModelTable, Tag("table")], Discriminator(_form)
]

_MODEL = "The model: its name as text, or a table. It may stand at the top level or under `call`, not in both places."
_USES = (
    "The skills that are offered, by name. The model is shown their descriptions, and reads one when it needs it. It "
    "may stand at the top level or under `call`. Only a react step has skills."
)
_MODEL_EXAMPLE = {"role": "thinker", "temperature": 0.1}
_CALLS = "Model calls that a react step may take. When they are used up without a call of `finish`, the step is halted."


class CallTable(Table):
    """How a step calls its model."""

    model: Maybe[ModelKey] = Field(default=None, description=_MODEL, examples=[_MODEL_EXAMPLE])
    uses: Maybe[list[Name]] = Field(default=None, description=_USES, examples=[["code-style"]])
    max_iter: Maybe[Count] = Field(
        default=None, description=_CALLS, examples=[20], json_schema_extra={"x-default": "10"}
    )


class MemoryTable(Table):
    """Which lessons an agent recalls, and whether it adds any."""

    bank: Maybe[Text] = Field(
        default=None, description="The bank's name. Left out, the bank of the project.", examples=["coding"]
    )
    top_k: Maybe[Count] = Field(default=None, description="Lessons that are recalled at most.", examples=[3])
    mode: Maybe[Literal["online", "frozen"]] = Field(
        default="online",
        description="`online`: the agent recalls lessons, and its episodes teach new ones. `frozen`: it only recalls.",
        examples=["frozen"],
    )


class EvaluateTable(Table):
    """Who judges instead of the reflector. Every other key is a setting of that evaluator."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"oneOf": [{"required": [key]} for key in ("tests", "check", "evaluator")]},
    )

    tests: Maybe[Text] = Field(
        default=None,
        description="A file of tests beside AGENT.md; an attempt passes when all of them do.",
        examples=["tests.py"],
    )
    check: Maybe[Text] = Field(
        default=None,
        description="A command; an attempt passes when it ends with status 0. It runs in the folder that the agent "
        "works in (`--workspace`), or is given a file with the attempt as `{attempt}`.",
        examples=["ruff check {attempt}"],
    )
    evaluator: Maybe[Text] = Field(
        default=None,
        description="An evaluator by name, or a file of your own beside AGENT.md (`./mine.py`).",
        examples=["contains:42"],
    )


class LimitsTable(Table):
    """What an episode may take."""

    tokens: Maybe[Count] = Field(
        default=None, description="Tokens of all its model calls together, input and output.", examples=[200000]
    )
    cost: Maybe[Annotated[float, Field(gt=0)]] = Field(
        default=None, description="US dollars. Needs models of known price.", examples=[0.5]
    )
    seconds: Maybe[Annotated[float, Field(gt=0)]] = Field(
        default=None, description="Seconds of work; pauses before a resume do not count.", examples=[600]
    )
    identical: Maybe[Identical] = Field(
        default=None,
        description="Equal attempts in a row after which it is stuck and stops; 0 never stops.",
        examples=[3],
    )
    trials: Maybe[Count] = Field(
        default=None,
        description="Attempts at most. In a reflexion agent this is another word for `max_iter`: give one of them.",
        examples=[2],
        json_schema_extra={"x-default": "`max_iter`; 1 with react and oneshot"},
    )


MemoryKey: TypeAlias = Annotated[
    Annotated[bool, Tag("switch")] | Annotated[MemoryTable, Tag("table")], Discriminator(_form)
]
EvaluateKey: TypeAlias = Annotated[
    Annotated[Text, Tag("text")] | Annotated[EvaluateTable, Tag("table")], Discriminator(_form)
]


class AgentFile(Table):
    """The front matter of AGENT.md."""

    name: Name = Field(
        description="What the agent is called: `mulligan run NAME`. Usually the name of its folder.",
        examples=["code-improver"],
    )
    description: Text = Field(
        description="What it is for, in a sentence. People read it when they choose an agent.",
        examples=["Writes and iteratively improves code through reflection."],
    )
    version: Text = Field(
        description="The version of these files, in quotes (YAML reads a bare 1.0 as a number). Count it up when you "
        "change a prompt: the record of a run says which version ran.",
        examples=["1.0.0"],
    )
    pattern: Literal["reflexion", "react", "oneshot"] = Field(
        description="How it works. `reflexion`: act.md acts, reflect.md judges and says what to improve, and it tries "
        "again. `react`: it thinks and calls tools until it calls `finish`. `oneshot`: one model call. With `react` "
        "and `oneshot` the text below the front matter is the system prompt, and there are no step files.",
        examples=["reflexion"],
    )
    max_iter: Maybe[Count] = Field(
        default=None,
        description=f"With `reflexion`: cycles of acting and reflecting. With `react`: {_CALLS[0].lower()}{_CALLS[1:]} "
        "With `oneshot` it means nothing.",
        examples=[4],
        json_schema_extra={"x-default": "4 with reflexion, 10 with react"},
    )
    model: Maybe[ModelKey] = Field(
        default=None, description=f"{_MODEL} The same as `call.model`.", examples=["openai:gpt-5"]
    )
    uses: Maybe[list[Name]] = Field(
        default=None, description=f"{_USES} The same as `call.uses`.", examples=[["code-style"]]
    )
    call: Maybe[CallTable] = Field(
        default=None,
        description="How the model is called. With `reflexion` these are the defaults of act.md and reflect.md: a step "
        "file that has the same key keeps its own.",
        examples=[{"model": {"role": "thinker"}, "uses": ["code-style"]}],
    )
    strategy: Maybe[Text] = Field(
        default=None,
        description="What of the past the next trial is shown: `evidence`, `evidence_and_reflexion`, `none`, "
        "`last_attempt`, `reflexion`, `last_attempt_and_reflexion`, or a file of your own beside AGENT.md "
        "(`./mine.py`). Left out: `last_attempt` where reflect.md judges, `last_attempt_and_reflexion` where "
        "`evaluate` does; with `react` and `oneshot` `none`, or `evidence` with `evaluate`.",
        examples=["last_attempt"],
        json_schema_extra={"x-default": "by pattern"},
    )
    memory: Maybe[MemoryKey] = Field(
        default=None,
        description="Lessons from earlier episodes. `true` recalls and teaches with the defaults; a table of the keys "
        "below says which bank and how. Left out or `false`: no lessons.",
        examples=[{"bank": "coding", "top_k": 3, "mode": "frozen"}],
        json_schema_extra={"x-default": "`false`"},
    )
    evaluate: Maybe[EvaluateKey] = Field(
        default=None,
        description="Who judges, so that the reflector only reflects: exactly one of `tests`, `check` and `evaluator`. "
        "Every other key is a setting of that evaluator. A text alone is the name of an evaluator.",
        examples=[{"tests": "tests.py"}],
    )
    limits: Maybe[LimitsTable] = Field(
        default=None,
        description="What an episode may take before it is stopped. A limit left out is that of mulligan.toml.",
        examples=[{"tokens": 200000, "seconds": 600}],
    )
    judge_last: Maybe[bool] = Field(
        default=True,
        description="Whether the reflector judges the last trial of a reflexion agent too. With `false` that call is "
        "saved (as tama does), and a run that used up its trials cannot say whether the last one was good.",
        examples=[False],
    )
    env: Any = _of_tama("Keys of providers are taken from the environment and from .env.")


class StepKeys(Table):
    """The front matter of act.md and reflect.md, which may be left out as a whole."""

    pattern: Maybe[Literal["react", "oneshot"]] = Field(
        default=None,
        description="`react`: the step thinks and calls tools until it calls `finish`. `oneshot`: one model call, "
        "whose text is the result.",
        examples=["react"],
        json_schema_extra={"x-default": "act.md: react; reflect.md: oneshot, or react when it has `uses`"},
    )
    model: Maybe[ModelKey] = Field(
        default=None, description=f"{_MODEL} Left out, that of AGENT.md.", examples=[_MODEL_EXAMPLE]
    )
    uses: Maybe[list[Name]] = Field(
        default=None, description=f"{_USES} Left out, those of AGENT.md.", examples=[["code-style"]]
    )
    max_iter: Maybe[Count] = Field(
        default=None, description=_CALLS, examples=[20], json_schema_extra={"x-default": "10"}
    )
    call: Maybe[CallTable] = Field(
        default=None,
        description="Another place for `model`, `uses` and `max_iter`, as tama has it.",
        examples=[{"model": {"role": "thinker"}}],
    )


class SkillFile(Table):
    """The front matter of SKILL.md."""

    name: Name = Field(description="What the skill is called; the name of its folder.", examples=["code-style"])
    description: Text = Field(
        description="When to read it, in a sentence: this is all that the model is shown until it reads the skill.",
        examples=["How code is written in this project. Read it before you write any."],
    )
    tools: Maybe[list[Text]] = Field(
        default=None,
        description="The tools that can be called once the skill was read: `read_file`, `write_file`, `list_files`, "
        "`run_command`, `http_get`, `mcp:SERVER` for a server that is named in mulligan.toml, or a file of your own "
        "beside SKILL.md (`./mine.py`). The names that they have in tama are taken too: "
        + ", ".join(f"`{theirs}`" for theirs in TOOL_ALIASES)
        + ".",
        examples=[["read_file", "run_command"]],
    )
    uses: Maybe[list[Name]] = Field(
        default=None, description="Further skills that can be read once this one was read.", examples=[["testing"]]
    )
    license: Maybe[Text] = Field(default=None, description="For people; changes nothing.", examples=["MIT"])
    version: Maybe[Text] = Field(default=None, description="For people; changes nothing.", examples=["1.0.0"])
    compatibility: Any = Field(default=None, description="For people; changes nothing.")
    metadata: Any = Field(default=None, description="For other programs; changes nothing.")
    allowed_tools: Any = Field(
        default=None,
        alias="allowed-tools",
        description="Of other programs; ignored. Name tools under `tools`.",
        json_schema_extra={"deprecated": True},
    )
    tama: Any = _of_tama("What a skill depends on is not installed: it must be there.")
