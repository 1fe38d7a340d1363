"""Formats a journal step as lines, for `--trace`. It prints nothing itself."""

from __future__ import annotations

import json
from typing import Any

from mulligan.cli.terminal import clean
from mulligan.core.records import Json

WIDTH = 600
"""The number of characters of a text that are shown."""


def lines(key: str, request: Json, result: Json, recorded: bool) -> list[str]:
    """Returns a step as lines: its key, its request (for a model call, the newest message), and its result."""
    request_text, result_text = _texts(key, request, result)
    head = f"  {key}{' (recorded)' if recorded else ''}"
    return [head, *_indented("→", request_text), *_indented("←", result_text)]


def _texts(key: str, request: Any, result: Any) -> tuple[str, str]:
    name = key.rpartition("/")[2]
    if name.startswith("model."):
        calls = [
            f"{call['name']}({json.dumps(call['arguments'], ensure_ascii=False)})" for call in result.get("calls", [])
        ]
        content = result.get("content", result.get("text", ""))
        answer = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        return request["messages"][-1]["text"], "\n".join(part for part in (answer, *calls) if part)
    if name.startswith("tool."):
        return json.dumps(request.get("arguments", request), ensure_ascii=False), _text(result)
    if name.startswith("verdict"):
        feedback = result["feedback"]
        return "", f"{ {True: 'passed', False: 'failed', None: 'no verdict'}[feedback['passed']] }: {feedback['text']}"
    return "", json.dumps(result, ensure_ascii=False)


def _text(result: Any) -> str:
    if result.get("offers"):  # the tools that a skill unlocked
        return f"unlocked: {', '.join(tool['name'] for tools in result['offers'].values() for tool in tools)}"
    text = result.get("text") or result.get("failed") or json.dumps(result, ensure_ascii=False)
    return f"failed: {text}" if result.get("failed") else str(text)


def _indented(mark: str, text: str) -> list[str]:
    text = clean(text).strip()
    if not text:
        return []
    shown = text if len(text) <= WIDTH else f"{text[:WIDTH]}… ({len(text):,} characters)"
    first, *rest = shown.split("\n")
    return [f"    {mark} {first}", *(f"      {line}" for line in rest)]
