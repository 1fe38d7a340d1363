"""An MCP server over stdio whose calls leave lines in a file, so that one that happened twice is seen.

    python tests/support/mcp_effects_server.py FILE

`stall` writes a line to the pipe FILE.pipe and never answers, unless FILE.go is there.
"""

import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import MCPServer

server = MCPServer("effects")
LOG = Path(sys.argv[1])


def happened(what: str) -> None:
    with LOG.open("a") as out:
        out.write(what + "\n")


@server.tool()
def note(text: str) -> str:
    happened(text)
    return f"noted {text}"


@server.tool()
async def stall() -> str:
    happened("stall")
    if not LOG.with_suffix(".go").exists():
        LOG.with_suffix(".pipe").write_text("stalled\n")
        await anyio.sleep(3600)
    return "went on"


if __name__ == "__main__":
    server.run("stdio")
