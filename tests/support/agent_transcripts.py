"""Transcripts of coding agents, as small as possible: the same story in the form of each of them.

A story is a list of turns in plain words: `("user", text)`, `("agent", text)`, `("sh", command, output, exit code)`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

FORMATS = ("claude", "codex", "copilot", "gemini", "opencode", "qwen")
STORY: tuple[tuple[Any, ...], ...] = (
    ("user", "Make the tests pass."),
    ("agent", "I run them."),
    ("sh", "pytest", "1 failed", 1),
    ("user", "They run with make check."),
    ("agent", "Done."),
)
AT = "2026-03-01T10:00:00Z"
INJECTED = "mulligan remembers: use make check"


def in_format(name: str, story: Sequence[tuple[Any, ...]] = STORY, *, folder: str = "/p", session: str = "s1") -> str:
    """The story as this agent writes it, among lines that are no conversation and texts that a hook put in."""
    rows = _head(name, folder, session)
    for n, (kind, *rest) in enumerate(story):
        rows += _EACH[name](kind, f"{session}-{n}", folder, *rest)
    if name == "opencode":
        info = {"id": session, "directory": folder}
        return json.dumps({"info": info, "messages": rows})
    return "".join(json.dumps(row) + "\n" for row in rows)


def _claude(kind: str, id: str, folder: str, text: str, output: str = "", code: int = 0) -> list[dict[str, Any]]:
    def row(role: str, content: Any, **more: Any) -> dict[str, Any]:
        said = {"role": role, "content": content}
        return {"type": role, "uuid": f"{id}-{role}", "cwd": folder, "timestamp": AT, "message": said, **more}

    if kind == "user":
        return [row("user", text)]
    if kind == "agent":
        thinking = {"type": "thinking", "thinking": "Hm."}
        return [row("assistant", [thinking]), row("assistant", [{"type": "text", "text": text}])]
    shown = f"Exit code {code}\n{output}" if code and output != "1 failed" else output
    attachment = {"type": "hook_additional_context", "hookName": "PostToolUseFailure", "content": [INJECTED]}
    return [
        row("assistant", [{"type": "tool_use", "id": id, "name": "shell", "input": {"command": text}}]),
        row("user", [{"type": "tool_result", "tool_use_id": id, "is_error": bool(code), "content": shown}]),
        {"type": "attachment", "uuid": f"{id}-a", "attachment": attachment},
        {"type": "api-request", "sessionId": "s"},
    ]


def _codex(kind: str, id: str, folder: str, text: str, output: str = "", code: int = 0) -> list[dict[str, Any]]:
    def item(**payload: Any) -> dict[str, Any]:
        return {"timestamp": AT, "type": "response_item", "payload": payload}

    if kind != "sh":
        role, part = ("user", "input_text") if kind == "user" else ("assistant", "output_text")
        return [item(type="message", role=role, content=[{"type": part, "text": text}])]
    done = {"type": "CommandExecution", "id": id, "status": "failed" if code else "completed", "exit_code": code}
    completed = {"type": "item_completed", "item": {**done, "aggregated_output": output}}
    shown = f"Chunk ID: 1\nWall time: 0.1\nProcess exited with code {code}\nOutput:\n{output}"
    return [
        item(type="reasoning", summary=[]),
        item(type="function_call", name="shell", arguments=json.dumps({"command": text}), call_id=id),
        {"timestamp": AT, "type": "event_msg", "payload": completed},
        item(type="message", role="developer", content=[{"type": "input_text", "text": INJECTED}]),
        item(type="function_call_output", call_id=id, output=shown),
    ]


def _copilot(kind: str, id: str, folder: str, text: str, output: str = "", code: int = 0) -> list[dict[str, Any]]:
    def event(type: str, **data: Any) -> dict[str, Any]:
        return {"type": type, "id": f"{id}-{type}", "timestamp": AT, "parentId": None, "data": data}

    if kind == "user":
        return [event("user.message", content=f"{text}\n<system-reminder>{INJECTED}</system-reminder>")]
    if kind == "agent":
        return [event("assistant.message", content=text, toolRequests=[])]
    shown = f"{output}\n<shellId: 1 completed with exit code {code}>"
    return [
        event("tool.execution_start", toolCallId=id, toolName="shell", arguments={"command": text}),
        event("tool.execution_complete", toolCallId=id, success=True, result={"content": shown}),
    ]


def _gemini(kind: str, id: str, folder: str, text: str, output: str = "", code: int = 0) -> list[dict[str, Any]]:
    if kind == "user":
        context = f"<hook_context>{INJECTED}</hook_context>"
        return [{"id": id, "timestamp": AT, "type": "user", "content": [{"text": text}, {"text": context}]}]
    row = {"id": id, "timestamp": AT, "type": "gemini", "content": text if kind == "agent" else ""}
    if kind == "agent":
        return [row, {"$set": {"lastUpdated": AT}}]
    shown = output if not code or output == "1 failed" else f"Output: {output}\nExit Code: {code}"
    response = [{"functionResponse": {"id": id, "response": {"output": shown}}}]
    status = "error" if code and shown == output else "success"
    call = {"id": id, "name": "shell", "args": {"command": text}, "status": "executing"}
    return [{**row, "toolCalls": [call]}, {**row, "toolCalls": [{**call, "status": status, "result": response}]}]


def _opencode(kind: str, id: str, folder: str, text: str, output: str = "", code: int = 0) -> list[dict[str, Any]]:
    info = {"id": f"m{id}", "role": "user" if kind == "user" else "assistant", "time": {"created": 1772359200000}}
    part: dict[str, Any] = {"id": f"p{id}", "type": "text", "text": text}
    if kind == "sh":
        state = {"status": "completed", "input": {"command": text}, "output": output, "metadata": {"exit": code}}
        part = {"id": f"p{id}", "type": "tool", "tool": "shell", "callID": id, "state": state}
    injected = {"id": f"q{id}", "type": "text", "text": INJECTED, "synthetic": True}
    return [{"info": info, "parts": [{"id": f"o{id}", "type": "step-start"}, part, injected]}]


def _qwen(kind: str, id: str, folder: str, text: str, output: str = "", code: int = 0) -> list[dict[str, Any]]:
    def row(type: str, part: dict[str, Any], **more: Any) -> dict[str, Any]:
        role = "model" if type == "assistant" else "user"
        said = {"role": role, "parts": [part]}
        return {"type": type, "uuid": f"{id}{type}", "cwd": folder, "timestamp": AT, "message": said, **more}

    if kind == "user":
        return [row("user", {"text": text}), row("user", {"text": INJECTED}, subtype="notification")]
    if kind == "agent":
        return [row("assistant", {"text": "Hm.", "thought": True}), row("assistant", {"text": text})]
    shown = output if not code or output == "1 failed" else f"Output: {output}\nExit Code: {code}"
    answer = {"id": id, "name": "shell", "response": {"output": shown}}
    status = "error" if code and shown == output else "success"
    return [
        row("assistant", {"functionCall": {"id": id, "name": "shell", "args": {"command": text}}}),
        row("tool_result", {"functionResponse": answer}, toolCallResult={"callId": id, "status": status}),
        {"type": "system", "uuid": f"{id}s", "subtype": "ui_telemetry", "systemPayload": {}},
    ]


_EACH = {
    "claude": _claude,
    "codex": _codex,
    "copilot": _copilot,
    "gemini": _gemini,
    "opencode": _opencode,
    "qwen": _qwen,
}


def _head(name: str, folder: str, session: str) -> list[dict[str, Any]]:
    if name == "claude":
        return [{"type": "queue-operation", "sessionId": session}]
    if name == "codex":
        environment = [{"type": "input_text", "text": "<environment_context>\n</environment_context>"}]
        said = {"type": "message", "role": "user", "content": environment}
        return [
            {"timestamp": AT, "type": "session_meta", "payload": {"id": session, "cwd": folder}},
            {"timestamp": AT, "type": "response_item", "payload": said},
        ]
    if name == "copilot":
        start = {"sessionId": session, "context": {"cwd": folder}}
        return [{"type": "session.start", "id": "h", "timestamp": AT, "parentId": None, "data": start}]
    if name == "gemini":
        context = [{"text": "<session_context>\nToday"}]
        return [
            {"sessionId": session, "projectHash": "h", "startTime": AT},
            {"id": "c", "timestamp": AT, "type": "user", "content": context},
        ]
    return []
