"""Completes the ids of episodes and lessons, and arguments of prompts, from what the caller's agent may see."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import merge
from itertools import groupby
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.lessons import Selection
from mulligan.mcp_server.prompts import Prompts
from mulligan.mcp_server.protocol_errors import protocol_errors
from mulligan.mcp_server.resources import EPISODES, MAX_ID, TEMPLATES

MAX_VALUES = 100
"""Values in one answer; the protocol's own limit."""

TRIALS = tuple(str(n) for n in range(1, 11))


class Completion:
    def __init__(self, service: Service, prompts: Prompts) -> None:
        self._service, self._prompts = service, prompts

    async def complete(
        self, context: ServerRequestContext[Any, Any], params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        async with protocol_errors(context):
            bound = context.lifespan_context.bound(context)
            prefix, name = params.argument.value, params.argument.name
            if isinstance(params.ref, types.PromptReference):
                self._check_argument(params.ref.name, name, bound)
            else:
                _check_variable(params.ref.uri, name)
            values: Sequence[str] = ()
            if len(prefix) <= MAX_ID and prefix.isprintable():  # half a character, say, is not text for a database
                values = await self._values(params.ref, name, prefix, bound)
            more = len(values) > MAX_VALUES
            return types.CompleteResult(completion=types.Completion(values=list(values[:MAX_VALUES]), has_more=more))

    def _check_argument(self, prompt: str, name: str, bound: str | None) -> None:
        """Raises `UnknownName` for a prompt or an argument that this caller is not offered."""
        if prompt not in self._prompts.offers:
            raise UnknownName("prompt", prompt[:MAX_ID], self._prompts.offers)
        arguments = self._prompts.arguments(self._prompts.offers[prompt], bound)
        if name not in arguments:
            raise UnknownName(f"argument of {prompt}", name[:MAX_ID], arguments)

    async def _values(self, ref: Any, name: str, prefix: str, bound: str | None) -> Sequence[str]:
        store, limit = self._service.store, MAX_VALUES + 1
        if isinstance(ref, types.PromptReference):
            if name == "agent_id":
                of_episodes = await store.agents(prefix, limit=limit)
                of_lessons = await store.memory.lessons.agents(prefix, limit=limit)
                return [agent for agent, _ in groupby(merge(of_episodes, of_lessons)) if agent.isprintable()]
            return [number for number in TRIALS if number.startswith(prefix)] if name == "max_trials" else ()
        if ref.uri.startswith(EPISODES):
            return await store.ids(prefix, agent=bound, limit=limit)
        lessons = await store.memory.lessons.list(bound, Selection(prefix=prefix, limit=limit))
        return [lesson.id for lesson in lessons]


def _check_variable(uri: str, name: str) -> None:
    if uri not in TEMPLATES:
        raise InvalidInput("There is no such resource template: resources/templates/list says which there are.")
    if name != "id":
        raise UnknownName("variable of this template", name[:MAX_ID], ["id"])
