"""Imports the part of the MCP SDK that a server needs, and the rest when it is first used: a quicker start.

design/012 has the figures, and why this is safe.
"""

from __future__ import annotations

import gc
import sys

from mulligan.core.packages import import_parts

PACKAGES = ("mcp", "mcp.server")
"""Their `__init__` imports clients and a second server framework."""

PARTS = ("mcp.server.lowlevel", "mcp.shared.message")


def import_server() -> None:
    """Imports `PARTS` without running the `__init__` of `PACKAGES`. Does nothing if the SDK is imported already."""
    if "mcp" in sys.modules:
        return
    from pydantic import BaseModel

    gc.disable()
    BaseModel.model_config["defer_build"] = True  # builds each of 500 models when it is first used
    try:
        import_parts(PARTS, PACKAGES)
    finally:
        BaseModel.model_config.pop("defer_build", None)
        gc.freeze()  # what was imported lives as long as the process: never examine it again
        gc.enable()
