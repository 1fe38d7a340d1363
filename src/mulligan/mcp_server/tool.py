"""Tools of the server: their definitions, calls and replies, and the conversion of arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.mcp_server.messages import too_many_values
from mulligan.text.arguments import matched

SOLVE = "solve_"
"""The prefix of the id of a task that solves; the id of the episode follows."""

MAX_NAME = 200
"""Characters of an agent_id."""


async def no_progress(progress: float, total: float | None, message: str) -> None:
    return None


class OtherAgent(InvalidInput):
    """A caller that is bound to one agent named another."""


class NeedsPerson(Exception):
    """A tool needs the decision of a person to continue. It has not changed anything yet.

    Attributes:
        questions: yes-or-no questions for the person, by key.
        state: what the tool needs when it is called again with the decisions; the client cannot change it.
    """

    def __init__(self, questions: Mapping[str, str], state: str) -> None:
        super().__init__(*questions)
        self.questions, self.state = questions, state


@dataclass
class ConnectionState:
    """What tools keep between the calls of one connection, for clients that do not name an episode.

    It lives as long as the process over stdio, the stream over SSE, and the session of an older revision over HTTP.

    Attributes:
        values: what each tool keeps, by the tool's name.
        weight: characters kept in `values`; the tool that keeps them counts them.
    """

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    weight: int = 0


@dataclass(frozen=True)
class Call:
    """The circumstances of a call.

    Attributes:
        service: what the tools work on.
        bound: the only agent_id that the caller may see or name; None: any.
        state: what is kept between calls; None where nothing can be (stateless HTTP).
        progress: reports progress: done, total, a message.
        bare: whether the call came without arguments; the tool then gets an empty mapping.
        offered: the names of the tools that this server has.
        on_task: receives the id of a task, once the work continues in the background and the caller need not wait.
        decisions: a person's decisions on the questions of `NeedsPerson`, by key, without unanswered ones. None: the
            client cannot ask a person.
        request_state: the state that went with these questions; "" if there were none.
    """

    service: Service
    bound: str | None = None
    state: ConnectionState | None = None
    progress: Callable[[float, float | None, str], Awaitable[None]] = no_progress
    bare: bool = False
    offered: Collection[str] = ()
    on_task: Callable[[str], object] | None = None
    decisions: Mapping[str, bool] | None = None
    request_state: str = ""

    def agent(self, named: Json) -> str | None:
        """The agent_id to use: the bound one, else the named one; None if there is neither.

        Raises:
            InvalidInput: `named` is not a valid name, or not the bound one.
        """
        if named is not None and not isinstance(named, str):
            raise InvalidInput("The agent id must be a string.")
        name = (named or "").strip()
        if named is not None and not name and self.bound is None:
            raise InvalidInput("The agent id is empty: pass a name, or omit it.")
        if len(name) > MAX_NAME or not name.isprintable():
            raise InvalidInput(f"The agent id must be a name of at most {MAX_NAME} characters, on one line.")
        if self.bound is None:
            return name or None
        if name and name != self.bound:
            raise OtherAgent(f"This server serves only {self.bound!r}: omit the agent id, or use this one.")
        return self.bound


@dataclass(frozen=True)
class Reply:
    """A tool's answer.

    Attributes:
        data: the answer as structured content and as text; if it is an error, only as text.
        error: whether it is an error.
        indent: the indentation of the JSON in the text; None: compact.
        shown: the content of the text, if that is less than `data`.
    """

    data: Mapping[str, Json]
    error: bool = False
    indent: int | None = 2
    shown: Mapping[str, Json] | None = None

    @property
    def text(self) -> str:
        shown = self.data if self.shown is None else self.shown
        separators = (",", ":") if self.indent is None else None
        return json.dumps(shown, ensure_ascii=False, indent=self.indent, separators=separators)


def failed(message: str, arguments: Mapping[str, Json]) -> Reply:
    return Reply({"error": message}, error=True, indent=None)


@dataclass(frozen=True)
class Tool:
    """A tool of the server.

    Attributes:
        definition: its description for clients, in the form of the protocol.
        call: validates the arguments and runs the tool. A `MulliganError` becomes an error of the tool; any other
            exception is a bug, and is logged.
        failed: the answer for an error message and the arguments.
        offered: whether this service has the tool.
        listed: whether an offered tool appears in the list.
    """

    definition: Mapping[str, Json]
    call: Callable[[Mapping[str, Json], Call], Awaitable[Reply]]
    failed: Callable[[str, Mapping[str, Json]], Reply]
    offered: Callable[[Service], bool] = lambda service: True
    listed: Callable[[Service], bool] = lambda service: True

    @property
    def name(self) -> str:
        return self.definition["name"]

    @property
    def input_schema(self) -> Mapping[str, Json]:
        return self.definition["inputSchema"]

    @property
    def output_schema(self) -> Mapping[str, Json]:
        return self.definition["outputSchema"]


def definition(file: str, output_of: str = "") -> Mapping[str, Json]:
    """Reads `tools/FILE.json`, a tool in the words of the protocol, its description in pieces.

    Args:
        file: the file's name.
        output_of: another file, whose output schema it shares.
    """
    path = Path(__file__).with_name("tools") / f"{file}.json"
    tool: dict[str, Json] = json.loads(path.read_text(encoding="utf-8"))
    tool["description"] = "".join(tool["description"])
    return {**tool, "outputSchema": definition(output_of)["outputSchema"]} if output_of else tool


_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.0+)?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")
_BOOLEANS = {"true": True, "false": False}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def coerce(value: Json, schema: Mapping[str, Json]) -> Json:
    """Converts strings with one clear meaning to the types that the schema requires, also inside the value.

    `"3"` becomes 3, `"true"` true, the JSON text of an array or object its value, `"Self_Reflection"` the word of a
    fixed set. Fields get their names in the schema, and optional fields that are null are dropped. Everything else is
    unchanged, so that the tool can refuse it in its own words.
    """
    schemas: list[Json] = schema.get("anyOf") or [schema]
    fitting = [option for option in schemas if _fits(value, option)]
    if not fitting and isinstance(value, str):
        for option in schemas:
            converted = _convert(value.strip(), option)
            if _fits(converted, option):
                return _coerce_children(converted, option)
    return _coerce_children(value, fitting[0]) if fitting else value


def _fits(value: Json, schema: Mapping[str, Json]) -> bool:
    kind = schema.get("type", "null")
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _convert(text: str, schema: Mapping[str, Json]) -> Json:
    """The value of the schema's type that this text stands for; the text itself if that is not clear."""
    match schema.get("type"):
        case "integer" if _INTEGER.fullmatch(text):
            return int(text.partition(".")[0])
        case "number" if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        case "boolean":
            return _BOOLEANS.get(text.lower(), text)
        case "array" | "object" if not too_many_values(raw := text.encode("utf-8", "surrogatepass")):
            try:
                return from_json(raw, allow_inf_nan=False)
            except ValueError:
                return text
        case _:
            return text


def _coerce_children(value: Json, schema: Mapping[str, Json]) -> Json:
    if isinstance(value, list):
        items: Mapping[str, Json] = schema.get("items", {})
        return [coerce(item, items) for item in cast("list[Json]", value)]
    if isinstance(value, str):
        return matched(value, schema["enum"]) or value if "enum" in schema else value
    if not isinstance(value, dict):
        return value
    fields: Mapping[str, Any] = schema.get("properties", {})
    optional = fields.keys() - set(schema.get("required", ()))
    table, coerced = cast("dict[str, Json]", value), dict[str, Json]()
    for name, item in table.items():
        field = matched(name, fields) or name
        if field != name and field in table:  # the exact name comes first
            field = name
        if item is not None or field not in optional:
            coerced[field] = coerce(item, fields.get(field, {}))
    return coerced
