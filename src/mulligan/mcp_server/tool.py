"""What a tool is to the server, what it is called with, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json

LONGEST_NAME = 200
"""Characters of an agent_id."""


async def _untold(done: float, total: float | None, message: str) -> None:
    return None


@dataclass
class Link:
    """What one connection keeps between calls, for clients of the older servers, which name no episode.

    Over stdio it lives as long as the process, over SSE as the connection, over HTTP as the session of the older
    protocol. `kept` is free for a tool to use under its own name; it says in `weight` how many characters that is.
    """

    kept: dict[str, Any] = field(default_factory=dict[str, Any])
    weight: int = 0


@dataclass(frozen=True)
class Call:
    """Who calls, and what there is to answer with.

    bound: the only agent_id that this caller may see or name; None: any. link: None where nothing can be kept between
    calls (the protocol's stateless revision over HTTP). progress: tells how far it is (done, total, in words). bare:
    no arguments were sent at all, which a tool is handed as none of them. offered: the names of the tools that this
    server has.
    """

    service: Service
    bound: str | None = None
    link: Link | None = None
    progress: Callable[[float, float | None, str], Awaitable[None]] = _untold
    bare: bool = False
    offered: Collection[str] = ()

    def agent(self, named: Json) -> str | None:
        """The agent_id that counts: the bound one, else the one that was named; None: none was. Raises `InvalidInput`
        for what is no name, and for another than the bound one, in words that tell nothing of it.
        """
        if named is not None and not isinstance(named, str):
            raise InvalidInput("The agent id must be a text.")
        name = (named or "").strip()
        if len(name) > LONGEST_NAME or not name.isprintable():
            raise InvalidInput(f"The agent id must be a name of at most {LONGEST_NAME} characters, in one line.")
        if self.bound is None:
            return name or None
        if name and name != self.bound:
            raise InvalidInput(f"This server answers {self.bound!r} only: leave the agent id out, or name that one.")
        return self.bound


@dataclass(frozen=True)
class Reply:
    """What a tool answers: `data` as structured content and as text, or as text alone where it is an error.

    indent: of the JSON in the text; None: compact, as the seed's server of that tool writes it. shown: what the text
    says, where that is less than `data`.
    """

    data: Mapping[str, Json]
    error: bool = False
    indent: int | None = 2
    shown: Mapping[str, Json] | None = None

    @property
    def text(self) -> str:
        separators = (",", ":") if self.indent is None else None
        return json.dumps(
            self.data if self.shown is None else self.shown,
            ensure_ascii=False,
            indent=self.indent,
            separators=separators,
        )


@dataclass(frozen=True)
class Tool:
    """One tool. The schemas are JSON Schema objects; `call` takes the arguments as they came, and validates them.

    `offered` says whether it is there at all in this service, `listed` whether it is shown there. What `call` raises as
    `InvalidInput` and its like is answered as an error of the tool, worded by `failed`; anything else is our mistake,
    and is logged.
    """

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Json]
    output_schema: Mapping[str, Json]
    call: Callable[[Mapping[str, Json], Call], Awaitable[Reply]]
    failed: Callable[[str, Mapping[str, Json]], Reply]
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    offered: Callable[[Service], bool] = lambda service: True
    listed: Callable[[Service], bool] = lambda service: True


def either(*kinds: str, **more: Json) -> dict[str, Json]:
    """The schema of a value of one of these kinds. A list of kinds under "type" is legal too, and some clients hand
    tools to models whose schemas know no such list.
    """
    return {"anyOf": [{"type": kind} for kind in kinds], **more}
