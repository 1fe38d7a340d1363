"""Calls a user's functions and runnables, async or not, from code that serves synchronous and asynchronous callers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from mulligan.running import blocking, is_asynchronous, portal


async def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the function's result. In a loop, a function that is not async runs in a thread, so it may block."""
    if getattr(function, "both_ways", False):
        return await function(*arguments)
    at_once = blocking.get() or is_asynchronous(function)
    result = function(*arguments) if at_once else await asyncio.to_thread(function, *arguments)
    return await portal.settled(result)


async def invoke(runnable: Any, value: Any, **options: Any) -> Any:
    """Return the result of a runnable. In a loop, one without `ainvoke` runs in a thread."""
    if blocking.get():
        return runnable.invoke(value, **options)
    if not hasattr(runnable, "ainvoke"):
        return await asyncio.to_thread(runnable.invoke, value, **options)
    return await runnable.ainvoke(value, **options)
