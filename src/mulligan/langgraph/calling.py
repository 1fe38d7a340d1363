"""Calls runnables, async or not, from code that serves synchronous and asynchronous callers."""

from __future__ import annotations

import asyncio
from typing import Any

from mulligan.running import blocking


async def invoke(runnable: Any, value: Any, **options: Any) -> Any:
    """Return the result of a runnable. In a loop, one without `ainvoke` runs in a thread."""
    if blocking.get():
        return runnable.invoke(value, **options)
    if not hasattr(runnable, "ainvoke"):
        return await asyncio.to_thread(runnable.invoke, value, **options)
    return await runnable.ainvoke(value, **options)
