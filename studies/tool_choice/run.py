"""Whether a small model calls the right MCP tool: `situations.json`, written before any model saw them.

    mulligan models pull qwen2.5-coder-1.5b
    python studies/tool_choice/run.py

Each situation is one question: the server's instructions as the system's text, the tools as a real client lists them
from a server without a model, and `answer` to say something instead. A call is "usable" where that server takes it
without an error and none of its texts is empty or "...". `--source` serves another version: its folder `src`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from mulligan.core.protocols import Model
from mulligan.core.questions import Message, Question, Sampling, Tool
from mulligan.core.records import Json
from mulligan.models import embedded
from mulligan.models.catalog import open_model
from mulligan.models.embedded.llama import Load, Server, loaded
from mulligan.models.failures import Unreadable

SITUATIONS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "situations.json").read_text(encoding="utf-8"))[
    "situations"
]

WORDS = Tool(
    "answer",
    "Answer the user in words, where no other tool is called for.",
    {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


SAMPLING = Sampling(temperature=0, seed=0, max_tokens=256)


class ReadOnce:
    """A loaded model that reads once what its prompts begin with alike, here the instructions and the tools. Mulligan
    itself lets none do so, since the last bits of its numbers then depend on what was asked before.
    """

    def __init__(self, inner: Server) -> None:
        self._inner = inner

    def handle_chat_completions(self, request: Json, callback: Callable[[dict[str, Any]], bool], /) -> object:
        return self._inner.handle_chat_completions({**request, "cache_prompt": True}, callback)


def read_once(load: Load) -> Server:
    return ReadOnce(loaded(load))


@asynccontextmanager
async def served(source: Path | None) -> AsyncGenerator[tuple[ClientSession, str]]:
    """A client of a server with an empty store in a process of its own, and that server's instructions."""
    with tempfile.TemporaryDirectory() as home:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MULLIGAN_")}
        environment |= {"MULLIGAN_HOME": home} | ({"PYTHONPATH": str(source)} if source else {})
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "mulligan", "serve"], env=environment, cwd=home
        )
        async with stdio_client(command) as streams, ClientSession(*streams) as client:
            yield client, (await client.initialize()).instructions or ""


async def choice(model: Model, question: Question) -> tuple[str, Json]:
    """The name of the tool that the model calls, and its arguments: None where the answer was cut off."""
    try:
        answer = await model.ask(question, SAMPLING)
    except Unreadable as cut:
        begun = cut.text.partition('"arguments"')[0]
        return next((tool.name for tool in question.tools if f'"{tool.name}"' in begun), "(none)"), None
    if not answer.calls:
        return WORDS.name, {"text": answer.content}
    return answer.calls[0].name, answer.calls[0].arguments


async def usable(client: ClientSession, name: str, arguments: Json) -> bool:
    if not isinstance(arguments, dict) or not all(text.strip(" .") for text in texts(arguments)):
        return False
    return name == WORDS.name or not (await client.call_tool(name, cast(dict[str, Any], arguments))).is_error


def texts(value: Any) -> Sequence[str]:
    """All texts within this value."""
    if isinstance(value, str):
        return [value]
    inner: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []  # pyright: ignore
    return [text for one in inner for text in texts(one)]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--source", type=Path, help="the folder src of another version, whose server is asked")
    asked = parser.parse_args()
    model = open_model(asked.model)
    embedded.loaded = read_once  # pyright: ignore[reportPrivateImportUsage]
    rights = usables = both = 0
    print(f"Model: `{model.id}`. {SAMPLING}.\n\n| said | right | called | usable | seconds |\n|---|---|---|---|--:|")
    for each in SITUATIONS:
        began, wanted = time.monotonic(), each["right"] or WORDS.name
        async with served(asked.source) as (client, instructions):
            listed = (await client.list_tools()).tools
            tools = [Tool(one.name, one.description or "", one.input_schema) for one in listed]
            messages = (Message("system", instructions), Message("user", each["said"]))
            name, arguments = await choice(model, Question(messages, tools=(*tools, WORDS)))
            good = await usable(client, name, arguments)
        rights, usables, both = rights + (name == wanted), usables + good, both + (name == wanted and good)
        row = (each["said"], wanted, name, "yes" if good else "no", f"{time.monotonic() - began:.0f}")
        print(f"| {' | '.join(row)} |", flush=True)
        print(json.dumps(arguments, ensure_ascii=False), file=sys.stderr, flush=True)
    print(f"\nOf {len(SITUATIONS)}: right tool {rights}, usable arguments {usables}, both {both}.")


if __name__ == "__main__":
    asyncio.run(main())
