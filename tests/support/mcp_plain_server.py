"""An MCP server over stdio of the standard library alone, as it starts in no time, for tests of what asks it. One that
is made with the official package is mcp_example_server.py.

    python tests/support/mcp_plain_server.py [FILE]

Each call of `note` leaves a line in the file.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any


def note(text: str) -> str:
    time.sleep(0.02)
    with open(sys.argv[1], "a") as out:
        out.write(text + "\n")
    time.sleep(0.02)
    return f"noted {text}"


def add(a: int, b: int) -> str:
    return str(a + b)


def fail() -> str:
    raise ValueError("the moon is too far away")


def die() -> str:
    print("out of cheese", file=sys.stderr, flush=True)
    os._exit(3)


TOOLS: Mapping[str, tuple[str, Callable[..., str | None], Mapping[str, str]]] = {
    "note": ("Notes a text.", note, {"text": "string"}),
    "add": ("Adds two numbers.", add, {"a": "integer", "b": "integer"}),
    "where": ("Its folder.", os.getcwd, {}),
    "process": ("Its process id.", lambda: str(os.getpid()), {}),
    "fail": ("Fails.", fail, {}),
    "die": ("Ends the server.", die, {}),
    "hang": ("Never answers.", lambda: None, {}),
}
"""By name: the description, what it does, the types of its arguments."""


def listed(name: str) -> Mapping[str, Any]:
    description, _, types = TOOLS[name]
    properties = {key: {"type": kind} for key, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(types)}
    return {"name": name, "description": description, "inputSchema": schema}


def answer(method: str, params: dict[str, Any]) -> Mapping[str, Any] | None:
    if method == "initialize":
        about = {"name": "plain", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [listed(name) for name in TOOLS]}
    try:
        text, failed = TOOLS[params["name"]][1](**params["arguments"]), False
    except ValueError as error:
        text, failed = str(error), True
    return {"content": [{"type": "text", "text": text}], "isError": failed} if text is not None else None


for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") in ("initialize", "tools/list", "tools/call"):
        result = answer(asked["method"], asked.get("params") or {})
        if result is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    elif "id" in asked:
        missing = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": missing}), flush=True)
