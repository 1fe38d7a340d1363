"""What an id, or an argument of a prompt, can be completed to: of what the caller's agent has, and of no other's."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import groupby
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.mcp_server.prompts import Prompts
from mulligan.mcp_server.protocol_errors import told
from mulligan.mcp_server.resources import EPISODES, LONGEST_ID, TEMPLATES

MOST = 100
"""Values of one answer (the protocol's own limit)."""

TRIALS = tuple(str(n) for n in range(1, 11))


class Completion:
    def __init__(self, service: Service, prompts: Prompts) -> None:
        self._service, self._prompts = service, prompts

    async def complete(
        self, context: ServerRequestContext[Any, Any], params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        async with told(context):
            bound = context.lifespan_context.bound(context)
            begun = params.argument.value
            values: Sequence[str] = ()
            if isinstance(params.ref, types.PromptReference):
                name = self._argument(params.ref.name, params.argument.name, bound)
                if _sensible(begun):
                    values = await self._of_prompt(name, begun)
            else:
                uri = self._template(params.ref.uri, params.argument.name)
                if _sensible(begun):
                    values = await self._ids(uri, begun, bound)
            more = len(values) > MOST
            return types.CompleteResult(completion=types.Completion(values=list(values[:MOST]), has_more=more))

    def _argument(self, prompt: str, name: str, bound: str | None) -> str:
        """Raises `UnknownName` for a prompt or an argument that this caller is not offered."""
        if prompt not in self._prompts.offers:
            raise UnknownName("prompt", prompt[:LONGEST_ID], self._prompts.offers)
        arguments = self._prompts.arguments(self._prompts.offers[prompt], bound)
        if name not in arguments:
            raise UnknownName(f"argument of {prompt}", name[:LONGEST_ID], arguments)
        return name

    def _template(self, uri: str, name: str) -> str:
        if uri not in TEMPLATES:
            raise InvalidInput("There is no such resource template: resources/templates/list says which there are.")
        if name != "id":
            raise UnknownName("variable of this template", name[:LONGEST_ID], ["id"])
        return uri

    async def _of_prompt(self, name: str, begun: str) -> Sequence[str]:
        if name == "agent_id":
            store = self._service.store
            of_episodes = await store.agents(begun, limit=MOST + 1)
            of_lessons = await store.memory.lessons.agents(begun, limit=MOST + 1)
            return [agent for agent, _ in groupby(merge(of_episodes, of_lessons)) if agent.isprintable()]
        return [number for number in TRIALS if number.startswith(begun)] if name == "max_trials" else ()

    async def _ids(self, uri: str, begun: str, bound: str | None) -> Sequence[str]:
        store = self._service.store
        if uri.startswith(EPISODES):
            return await store.ids(begun, agent=bound, limit=MOST + 1)
        from mulligan.core.lessons import Selection

        lessons = await store.memory.lessons.list(bound, Selection(prefix=begun, limit=MOST + 1))
        return [lesson.id for lesson in lessons]


def _sensible(begun: str) -> bool:
    """Whether anything could begin so: half a character, say, is no text that a database takes."""
    return len(begun) <= LONGEST_ID and begun.isprintable()
