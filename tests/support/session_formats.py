"""One small session in forms that hold no chat messages: a command fails, the user corrects, another form passes.

Where a form has no exit codes, the verdicts are unknown; `KNOWN` names those that have them.
"""

import json
from typing import Any

ERROR = "Error: Cannot find module 'left-pad'"
AT = "2026-05-02T10:00:0{}.000Z"


def _lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _pi() -> str:
    def entry(n: int, parent: int | None, **message: Any) -> dict[str, Any]:
        at = {"id": f"e{n}", "parentId": parent and f"e{parent}", "timestamp": AT.format(n)}
        return {"type": "message", **at, "message": message}

    def result(call: str, text: str, failed: bool) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {"role": "toolResult", "toolCallId": call, "toolName": "bash", "content": content, "isError": failed}

    def runs(call: str, command: str) -> dict[str, Any]:
        part = {"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": command}}
        return {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, part]}

    return _lines(
        {"type": "session", "version": 3, "id": "pi-1", "timestamp": AT.format(0), "cwd": "/p"},
        entry(1, None, role="user", content="Run the tests."),
        entry(2, 1, **runs("c0", "rm -rf build")),  # a branch that was left
        entry(3, 1, **runs("c1", "node test.js")),
        {"type": "model_change", "id": "e4", "parentId": "e3", "timestamp": AT.format(4)},
        entry(5, 4, **result("c1", ERROR, True)),
        entry(6, 5, role="user", content="No, use pnpm in this repository."),
        entry(7, 6, **runs("c2", "pnpm test")),
        entry(8, 7, **result("c2", "ok", False)),
    )


def _openhands() -> str:
    def run(id: int, command: str, output: str, code: int) -> list[dict[str, Any]]:
        extras = {"command": command, "metadata": {"exit_code": code}}
        return [
            {"id": id, "source": "agent", "action": "run", "args": {"command": command, "thought": ""}},
            {"id": id + 1, "source": "agent", "observation": "run", "cause": id, "content": output, "extras": extras},
        ]

    said = [{"id": n, "source": "user", "action": "message", "args": {"content": text}} for n, text in _SAID]
    return json.dumps([said[0], *run(2, "node test.js", ERROR, 1), said[1], *run(5, "pnpm test", "ok", 0)])


_SAID = ((1, "Run the tests."), (4, "No, use pnpm in this repository."))


def _swe_agent() -> str:
    steps = [("node test.js", ERROR), ("pnpm test", "ok")]
    trajectory: list[dict[str, Any]] = [
        {"action": a, "observation": b, "thought": "", "response": a, "state": {}} for a, b in steps
    ]
    demo = {"role": "user", "content": "An example.", "is_demo": True}
    history = [{"role": "system", "content": "x"}, demo, {"role": "user", "content": "Run the tests."}]
    return json.dumps({"trajectory": trajectory, "history": history, "info": {"exit_status": "submitted"}}, indent=1)


def _claude_stream() -> str:
    def said(role: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"type": role, "message": {"role": role, "content": list(content)}, "session_id": "st-1", **more}

    def run(id: str, command: str, output: str, failed: bool) -> list[dict[str, Any]]:
        call = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": id, "content": output, "is_error": failed}
        return [said("assistant", call, parent_tool_use_id=None), said("user", result)]

    return _lines(
        {"type": "system", "subtype": "init", "session_id": "st-1", "cwd": "/p", "tools": ["Bash"]},
        said("user", {"type": "text", "text": "Run the tests."}),
        *run("c1", "node test.js", f"Exit code 1\n{ERROR}", True),
        said("user", {"type": "text", "text": "No, use pnpm in this repository."}),
        *run("c2", "pnpm test", "ok", False),
        {"type": "result", "subtype": "success", "session_id": "st-1", "result": "Done."},
    )


def _gemini_stream() -> str:
    def run(n: int, command: str, output: str, status: str) -> list[dict[str, Any]]:
        about = {"tool_id": f"t{n}", "timestamp": AT.format(n)}
        called = {"type": "tool_use", "tool_name": "run_shell_command", "parameters": {"command": command}}
        return [{**called, **about}, {"type": "tool_result", "status": status, "output": output, **about}]

    def said(role: str, text: str, **more: Any) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": text, "timestamp": AT.format(5), **more}

    return _lines(
        {"type": "init", "timestamp": AT.format(0), "session_id": "gm-1", "model": "auto"},
        said("user", "Run the tests."),
        said("assistant", "I r", delta=True),
        said("assistant", "un them.", delta=True),
        *run(1, "node test.js", f"{ERROR}\nExit Code: 1", "success"),  # a command that fails is a tool that succeeds
        said("user", "No, use pnpm in this repository."),
        *run(2, "pnpm test", "ok", "success"),
        {"type": "result", "status": "success", "stats": {}},
    )


MORE = {"pi": _pi(), "openhands": _openhands(), "swe_agent": _swe_agent()}
STREAMS = {"claude": _claude_stream(), "gemini": _gemini_stream()}
KNOWN = ("pi", "openhands", "claude", "gemini")
