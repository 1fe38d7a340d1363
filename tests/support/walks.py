"""The seeds' example calls as walks that any client can make, and what has to come back.

A step is {tool, arguments, isError, answer, also}, the last two as in tests/mcp_server/golden; in arguments "{name}"
stands for the newest `name` of any structured content. A report is what a walker brings back: `server`, `revision`,
`instructions`, `tools`, and for each step a result {structuredContent, content, isError}, or {thrown}.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from mcp import Client

Step = dict[str, Any]
Report = dict[str, Any]

GOLDEN = Path(__file__).parent.parent / "mcp_server" / "golden"
TOOLS = {"reflexion-thinking", "retrieve_memory", "extract_memory"}
"""Those of a server that no model was named for."""

SEEDS: dict[str, dict[str, Any]] = {
    "reflexion-thinking": {"command": "npx", "args": ["-y", "mcp-server-reflexion-thinking"]},
    "reasoning-bank": {"command": "reasoning-bank-mcp", "env": {"DASHSCOPE_API_KEY": "your Bailian APIKEY"}},
}
"""What stands in the configuration of a client of the seeds' servers, word for word."""


def reflexion_walk(*, named: bool = False, file: str = "three_trials") -> list[Step]:
    """Seed 000's example. named: each call names the episode, from the second on, as a client without a session has
    to."""
    calls = _golden(f"reflexion/{file}")["calls"]
    return [
        {
            "tool": "reflexion-thinking",
            "arguments": {**call["request"], **({"episodeId": "{episodeId}"} if named and number else {})},
            "isError": call["isError"],
            "answer": call["answer"] if call["isError"] else {**call["answer"], "episodeId": "<text>"},
            "also": {},
        }
        for number, call in enumerate(calls)
    ]


def memory_walk() -> list[Step]:
    """Seed 002's example calls, on a server without a model: the client thinks about what `extract_memory` asks."""
    recall, extract = _golden("memory/retrieve_success")["request"], _golden("memory/extract_async")["request"]
    known = _golden("memory/retrieve_success")["response"]
    found = {**known, "memories": [{**known["memories"][0], "title": "Whole history"}]}
    task = {"task_id": "{task_id}", "agent_id": "claude-code"}
    return [
        _step("retrieve_no_memories", recall),
        _step("borrowed_success", extract),
        _step("borrowed_success", task, tool="memory_task"),
        _step("borrowed_verdict", {**task, "success_signal": True}),
        _step("borrowed_commit", {**_golden("memory/borrowed_commit")["request"], "task_id": "{task_id}"}),
        _step("task_done", task),
        _step("retrieve_success", recall, answer=found),
        _step("retrieve_no_memories", {"query": "Check for code security issues", "agent_id": "code-reviewer"}),
        _step("retrieve_success", {"query": recall["query"]}, answer=found),
        _step("retrieve_no_query", _golden("memory/retrieve_no_query")["request"]),
    ]


def check(report: Report, steps: Sequence[Step], tools: set[str] = TOOLS) -> None:
    """Every step was answered as the golden files have it, and the tools are listed as a strict client wants them."""
    assert report["server"]["name"] == "mulligan"
    assert {tool["name"] for tool in report["tools"]} == tools
    for tool in report["tools"]:
        assert tool["title"], tool
        assert len(tool["description"]) > 40, tool
        assert tool["inputSchema"]["type"] == "object", tool
    assert len(report["results"]) == len(steps)
    for step, result in zip(steps, report["results"], strict=True):
        _check(step, result)


def _check(step: Step, result: dict[str, Any]) -> None:
    assert "thrown" not in result, f"{step['tool']} {step['arguments']}: {result['thrown']}"
    (block,) = result["content"]
    text = json.loads(block["text"])
    assert result["isError"] == step["isError"], text
    if step["isError"]:
        assert result["structuredContent"] is None
        said = text
    else:
        said = result["structuredContent"]
        assert in_full(text, said) == said
    wrong = misfit(step["answer"], {key: value for key, value in said.items() if key not in step["also"]})
    assert not wrong, f"{step['tool']} {json.dumps(step['arguments'])}: {wrong} in {json.dumps(said)[:2000]}"


def in_full(text: dict[str, Any], whole: Any) -> dict[str, Any]:
    """The answer in the text with its lessons in full: there `retrieve_memory` says each lesson once."""
    if "memories" not in text:
        return text
    for short, memory in zip(text["memories"], whole["memories"], strict=True):
        assert short.items() <= memory.items(), f"two answers in one: {short} and {memory}"
    return {**text, "memories": whole["memories"]}


def misfit(wanted: Any, got: Any, at: str = "answer") -> str:
    """Where an answer is not as a golden file has it, in words; "" where it is."""
    if isinstance(wanted, str) and "<" in wanted:
        return "" if _fits(wanted, got) else f"{at} is {got!r}, not {wanted}"
    if isinstance(wanted, dict) and isinstance(got, dict):
        ours, theirs = cast(dict[str, Any], wanted), cast(dict[str, Any], got)
        if set(ours) != set(theirs):
            return f"{at} has {sorted(set(theirs) - set(ours))} too many and {sorted(set(ours) - set(theirs))} too few"
        return next((said for key in ours if (said := misfit(ours[key], theirs[key], f"{at}.{key}"))), "")
    if isinstance(wanted, list) and isinstance(got, list):
        ours, theirs = list[Any](wanted), list[Any](got)  # pyright: ignore[reportUnknownArgumentType]
        if at.endswith(".tags") or (len(ours) == 1 and theirs and _is_pattern(ours[0])):
            return next((said for one in theirs if (said := misfit(ours[0], one, f"{at}[]"))), "")
        if len(ours) != len(theirs):
            return f"{at} has {len(theirs)} entries, not {len(ours)}"
        pairs = zip(ours, theirs, strict=True)
        return next((said for n, (one, other) in enumerate(pairs) if (said := misfit(one, other, f"{at}[{n}]"))), "")
    same = json.dumps(wanted) == json.dumps(got)  # 1 and true are not
    return "" if same else f"{at} is {got!r}, not {wanted!r}"


def _is_pattern(value: Any) -> bool:
    return "<" in json.dumps(value)


def _fits(wanted: str, got: Any) -> bool:
    number = isinstance(got, int | float) and not isinstance(got, bool)
    whole = number and isinstance(got, int)
    kinds = {
        "<whole>": whole,
        "<whole above 0>": whole and got > 0,
        "<number>": number,
        "<true or false>": isinstance(got, bool),
        "<text or null>": got is None or isinstance(got, str),
        "<object>": isinstance(got, dict),
    }
    if wanted in kinds:
        return kinds[wanted]
    start, _, _ = wanted.partition("<text>")
    return isinstance(got, str) and got.startswith(start) and len(got) > len(start)


def _golden(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def _step(golden: str, arguments: dict[str, Any], *, tool: str | None = None, answer: Any = None) -> Step:
    """The call of a golden file with other arguments; of these, what the answer repeats is theirs."""
    file = _golden(f"memory/{golden}")
    wanted = dict(answer or file["response"])
    if "query" in wanted and "query" in arguments:
        wanted["query"] = arguments["query"]
    return {
        "tool": tool or file["tool"],
        "arguments": arguments,
        "isError": file["isError"],
        "answer": wanted,
        "also": file.get("also", {}),
    }


async def walked(client: Client, steps: Sequence[Step]) -> Report:
    """The walk of the official Python client."""
    report: Report = {
        "server": client.server_info and client.server_info.model_dump(),
        "instructions": client.instructions,
        "revision": client.protocol_version,
        "tools": [tool.model_dump(by_alias=True, mode="json") for tool in (await client.list_tools()).tools],
        "results": [],
    }
    seen: dict[str, Any] = {}
    for step in steps:
        result = await client.call_tool(step["tool"], filled(step["arguments"], seen))
        seen.update(result.structured_content or {})
        report["results"].append(result.model_dump(by_alias=True, mode="json"))
    return report


def filled(value: Any, seen: dict[str, Any]) -> Any:
    """The arguments with what "{name}" stands for."""
    if isinstance(value, str):
        found = re.fullmatch(r"\{(\w+)\}", value)
        return seen.get(found[1], value) if found else value
    if isinstance(value, list):
        return [filled(one, seen) for one in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: filled(one, seen) for key, one in cast(dict[str, Any], value).items()}
    return value
