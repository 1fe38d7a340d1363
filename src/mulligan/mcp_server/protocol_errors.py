"""What went wrong with a request that is no tool's call, as the protocol says it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from mulligan.core.errors import InvalidInput

log = logging.getLogger("mulligan.serve")

RESOURCE_NOT_FOUND = -32002
"""Of the revisions before 2026-07-28, which says `INVALID_PARAMS` (SEP-2164)."""

ECHOED = 2000
"""Characters of a URI that an error says back."""


@asynccontextmanager
async def told(context: ServerRequestContext[Any, Any]) -> AsyncGenerator[None]:
    """Bad input as `INVALID_PARAMS`; what went wrong in the server is logged, and not told to the client."""
    try:
        yield
    except MCPError:
        raise
    except InvalidInput as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    except Exception as error:
        log.exception("%s failed", context.method)
        raise MCPError(types.INTERNAL_ERROR, "Something in the server failed; its log says what.") from error


def no_resource(context: ServerRequestContext[Any, Any], uri: str) -> MCPError:
    """One answer for a resource that is not there and for one that is another agent's."""
    from mcp_types.version import is_version_at_least

    new = is_version_at_least(context.protocol_version, "2026-07-28")
    return MCPError(types.INVALID_PARAMS if new else RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri[:ECHOED]})
