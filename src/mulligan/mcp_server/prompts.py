"""The prompts that a client offers its user: rules for the memory, and how to make second tries."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from mulligan.app.prompts import FilePrompts
from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.mcp_server.messages import protocol_errors
from mulligan.mcp_server.prompt_texts import TRIALS, memory_rules, reflexion
from mulligan.mcp_server.tool import MAX_NAME, Call
from mulligan.mcp_server.tools import topics
from mulligan.text.arguments import renamed


class Prompts:
    """The prompts about the tools that are served. A caller that is bound to an agent cannot name one.

    Raises:
        InvalidInput: a prompt file of the user's is invalid.
    """

    def __init__(self, service: Service, which: str) -> None:
        self._service, self._files = service, FilePrompts.of(service.config)
        known = json.loads(Path(__file__).with_name("prompts.json").read_text(encoding="utf-8"))
        offers = [types.Prompt.model_validate(known[topic]) for topic in topics(which)]
        self._offers = {prompt.name: prompt for prompt in offers}
        for name in self._offers:
            _TEXTS[name](self._files, {})

    def find(self, name: str) -> types.Prompt:
        """Raises `UnknownName` for a prompt that is not offered."""
        if name not in self._offers:
            raise UnknownName("prompt", name[:MAX_NAME], self._offers)
        return self._offers[name]

    async def list(self, context: ServerRequestContext[Any, Any], params: Any) -> types.ListPromptsResult:
        bound = context.lifespan_context.bound(context)
        shown = [
            one.model_copy(update={"arguments": [*arguments_of(one, bound).values()]}) for one in self._offers.values()
        ]
        return types.ListPromptsResult(prompts=shown)

    async def get(
        self, context: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        async with protocol_errors(context):
            prompt = self.find(params.name)
            given = self._given(prompt, params.arguments or {}, context.lifespan_context.bound(context))
            text = types.TextContent(type="text", text=_TEXTS[prompt.name](self._files, given))
            message = types.PromptMessage(role="user", content=text)
            return types.GetPromptResult(description=prompt.description, messages=[message])

    def _given(self, prompt: types.Prompt, arguments: Mapping[str, str], bound: str | None) -> dict[str, str]:
        """The arguments without empty ones, and with the agent_id to use."""
        arguments = renamed(arguments, arguments_of(prompt), prompt.name)
        given = {name: value for name, value in arguments.items() if value.strip()}
        if "agent_id" in arguments_of(prompt):
            given["agent_id"] = Call(self._service, bound).agent(given.get("agent_id")) or ""
        return given


def _trials(text: str | None) -> int:
    if text is None:
        return TRIALS
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text.strip(), re.ASCII):
        raise InvalidInput(f"max_trials must be an integer of at least 1, not {text[:40]!r}.")
    return int(text)


def arguments_of(prompt: types.Prompt, bound: str | None = None) -> Mapping[str, types.PromptArgument]:
    """The arguments, by name, that a caller bound to this agent may give.

    None is required, because many clients have no field for them, or pass single words.
    """
    return {one.name: one for one in prompt.arguments or () if one.name != "agent_id" or bound is None}


_TEXTS: Mapping[str, Callable[[FilePrompts, Mapping[str, str]], str]] = {
    "memory-rules": lambda files, given: memory_rules(files, given.get("agent_id")),
    "reflexion": lambda files, given: reflexion(files, given.get("task"), _trials(given.get("max_trials"))),
}
"""What makes the text of each prompt from the prompt files and the arguments."""
