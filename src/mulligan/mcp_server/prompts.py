"""The prompts that a client offers its user: rules for the memory, and how to make second tries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from mulligan.app.prompts import FilePrompts
from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.mcp_server.prompt_texts import TRIALS, memory_rules, prompt_files, reflexion
from mulligan.mcp_server.protocol_errors import protocol_errors
from mulligan.mcp_server.tool import MAX_NAME, Call
from mulligan.mcp_server.tools import topics


@dataclass(frozen=True)
class Offer:
    """A prompt. No argument is required, because many clients have no field for them, or pass single words.

    Attributes:
        arguments: their descriptions by name.
        text: makes the text from the prompt files and the arguments.
    """

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]
    text: Callable[[FilePrompts, Mapping[str, str]], str]


class Prompts:
    """The prompts about the tools that are served. A caller that is bound to an agent cannot name one.

    Raises:
        InvalidInput: a prompt file of the user's is invalid.
    """

    def __init__(self, service: Service, which: str) -> None:
        self._service, self._files = service, prompt_files(service.config)
        offers = {"memory": MEMORY_RULES, "reflexion": REFLEXION}
        self.offers = {offers[topic].name: offers[topic] for topic in topics(which)}
        for offer in self.offers.values():
            offer.text(self._files, {})

    def arguments(self, offer: Offer, bound: str | None) -> Mapping[str, str]:
        """The arguments that a caller bound to this agent may give."""
        return {name: said for name, said in offer.arguments.items() if name != "agent_id" or bound is None}

    async def list(self, context: ServerRequestContext[Any, Any], params: Any) -> types.ListPromptsResult:
        bound = context.lifespan_context.bound(context)
        return types.ListPromptsResult(prompts=[self._describe(offer, bound) for offer in self.offers.values()])

    async def get(
        self, context: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        async with protocol_errors(context):
            if params.name not in self.offers:
                raise UnknownName("prompt", params.name[:MAX_NAME], self.offers)
            offer = self.offers[params.name]
            bound = context.lifespan_context.bound(context)
            text = offer.text(self._files, self._given(offer, params.arguments or {}, bound))
            message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
            return types.GetPromptResult(description=offer.description, messages=[message])

    def _describe(self, offer: Offer, bound: str | None) -> types.Prompt:
        arguments = [
            types.PromptArgument(name=name, title=name.replace("_", " "), description=said, required=False)
            for name, said in self.arguments(offer, bound).items()
        ]
        return types.Prompt(name=offer.name, title=offer.title, description=offer.description, arguments=arguments)

    def _given(self, offer: Offer, arguments: Mapping[str, str], bound: str | None) -> dict[str, str]:
        """The arguments without empty ones, and with the agent_id to use."""
        for name in arguments:
            if name not in offer.arguments:
                raise UnknownName(f"argument of {offer.name}", name[:MAX_NAME], self.arguments(offer, bound))
        given = {name: value for name, value in arguments.items() if value.strip()}
        if "agent_id" in offer.arguments:
            given["agent_id"] = Call(self._service, bound).agent(given.get("agent_id")) or ""
        return given


def _trials(text: str | None) -> int:
    if text is None:
        return TRIALS
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text.strip(), re.ASCII):
        raise InvalidInput(f"max_trials must be a whole number of at least 1, not {text[:40]!r}.")
    return int(text)


MEMORY_RULES = Offer(
    name="memory-rules",
    title="Rules for using the memory",
    description="When to call retrieve_memory and extract_memory, and with what: for an agent's standing instructions.",
    arguments={"agent_id": "The agent's name in the memory, such as claude-code. Left out, the agent chooses."},
    text=lambda files, given: memory_rules(files, given.get("agent_id")),
)
REFLEXION = Offer(
    name="reflexion",
    title="Solve a task by second tries",
    description="How to lead a task through reflexion-thinking: try, judge, reflect, and try again.",
    arguments={
        "task": "What is to be done, and what has to hold for it to count as done. Left out: what the user says next.",
        "max_trials": f"Trials at most (default: {TRIALS}).",
    },
    text=lambda files, given: reflexion(files, given.get("task"), _trials(given.get("max_trials"))),
)
