"""Turns exceptions in requests other than tool calls into the protocol's errors."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import is_version_at_least

from mulligan.core.errors import InvalidInput

log = logging.getLogger("mulligan.serve")

RESOURCE_NOT_FOUND = -32002
"""In revisions before 2026-07-28, which has `INVALID_PARAMS` instead (SEP-2164)."""

MAX_URI = 2000
"""Characters of a URI that an error repeats."""


@asynccontextmanager
async def protocol_errors(context: ServerRequestContext[Any, Any]) -> AsyncGenerator[None]:
    """Raises `InvalidInput` as `INVALID_PARAMS`; logs any other exception, and raises `INTERNAL_ERROR` for it."""
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
    """The same error for a resource that does not exist and for another agent's."""
    new = is_version_at_least(context.protocol_version, "2026-07-28")
    return MCPError(types.INVALID_PARAMS if new else RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri[:MAX_URI]})
