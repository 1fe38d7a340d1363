"""An MCP server over stdio of the standard library alone, as it starts in no time. One tool, `note`, of which each call
leaves a line in a file.

    python tests/support/mcp_plain_server.py FILE
"""

import json
import sys
import time
from typing import Any

NOTE: dict[str, Any] = {
    "name": "note",
    "description": "Notes a text.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        about = {"name": "plain", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [NOTE]}
    text = params["arguments"]["text"]
    time.sleep(0.02)
    with open(sys.argv[1], "a") as out:
        out.write(text + "\n")
    time.sleep(0.02)
    return {"content": [{"type": "text", "text": f"noted {text}"}]}


for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") in ("initialize", "tools/list", "tools/call"):
        reply = {"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked["method"], asked.get("params") or {})}
        print(json.dumps(reply), flush=True)
    elif "id" in asked:
        missing = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": missing}), flush=True)
