"""What a tool is: its schemas, what it is called with, what it answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json

MAX_NAME = 200
"""Characters of an agent_id."""


async def _no_progress(done: float, total: float | None, message: str) -> None:
    return None


@dataclass
class ConnectionState:
    """What tools keep between the calls of one connection, for clients that name no episode.

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
    """

    service: Service
    bound: str | None = None
    state: ConnectionState | None = None
    progress: Callable[[float, float | None, str], Awaitable[None]] = _no_progress
    bare: bool = False
    offered: Collection[str] = ()

    def agent(self, named: Json) -> str | None:
        """The agent_id to use: the bound one, else the named one; None if there is neither.

        Raises:
            InvalidInput: `named` is not a valid name, or not the bound one.
        """
        if named is not None and not isinstance(named, str):
            raise InvalidInput("The agent id must be a string.")
        name = (named or "").strip()
        if len(name) > MAX_NAME or not name.isprintable():
            raise InvalidInput(f"The agent id must be a name of at most {MAX_NAME} characters, in one line.")
        if self.bound is None:
            return name or None
        if name and name != self.bound:
            raise InvalidInput(f"This server answers {self.bound!r} only: leave the agent id out, or name that one.")
        return self.bound


@dataclass(frozen=True)
class Reply:
    """A tool's answer.

    Attributes:
        data: the answer as structured content and as text; as text alone if it is an error.
        error: whether it is an error.
        indent: of the JSON in the text; None: compact.
        shown: what the text says, if that is less than `data`.
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


@dataclass(frozen=True)
class Tool:
    """A tool of the server.

    Attributes:
        definition: what clients are told of it, in the words of the protocol.
        call: takes the arguments as they came, and validates them. The server answers a `MulliganError` from it as an
            error of the tool; any other exception is a bug, and logged.
        failed: the answer for an error message and the arguments.
        offered: whether this service has the tool.
        listed: whether the tool is in the list, where it is offered.
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
