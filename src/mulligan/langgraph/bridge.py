"""One way of writing for code that runs in an event loop and code that does not.

What a node does is a coroutine. In a loop it is awaited. In synchronous code it is run to its end without ever waiting
(`finish`): while `blocking` is set, whatever would have to wait for something does so on a portal, an event loop in a
thread of its own, and this thread stands still meanwhile.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar, cast

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

blocking: ContextVar[bool] = ContextVar("mulligan_langgraph_blocking", default=False)
"""True while a coroutine is run by synchronous code, which may wait but not await."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`. Inside a running loop (a notebook) it runs in a thread of its own; Ctrl-C here ends it
    there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    done: Future[T] = Future()
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def worked() -> T:
        begun.append((asyncio.get_running_loop(), cast(asyncio.Task[Any], asyncio.current_task())))
        return await work

    def elsewhere() -> None:
        try:
            done.set_result(asyncio.run(worked()))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=elsewhere, name="mulligan").start()
    try:
        return done.result()
    except KeyboardInterrupt:
        for loop, task in begun:
            with suppress(RuntimeError):  # it is over, and its loop closed
                loop.call_soon_threadsafe(task.cancel)
        wait([done])
        raise


def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that awaits nothing but what comes at once while `blocking` is set."""
    token = blocking.set(True)
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    else:
        work.close()
        raise RuntimeError(f"{work} waits for what synchronous code cannot wait for: use ainvoke or astream.")
    finally:
        blocking.reset(token)


class Portal:
    """An event loop in a thread of its own, started when it is first asked for; a forked process gets another."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True).start()
            return self._loop

    @property
    def here(self) -> bool:
        """Whether this is the portal's own thread."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def run(self, work: Awaitable[T]) -> T:
        """The result of `work`, for which this thread waits. On the portal itself, another thread does the work."""
        if self.here:
            return run(_awaited(work))
        future = asyncio.run_coroutine_threadsafe(_awaited(work), self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C here: it does not go on over there
            raise

    async def within(self, work: Awaitable[T]) -> T:
        """The result of `work`, which always runs over there: for what belongs to one event loop for life."""
        if blocking.get():
            return self.run(work)
        if self.here:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_awaited(work), self.loop))


portal = Portal("mulligan-portal")
"""Where what is asynchronous of a user's runs, for synchronous code."""

keeper = Portal("mulligan-keeper")
"""Where a store is spoken to, for synchronous code. No other code runs there, so that it never waits for itself."""


async def _awaited(work: Awaitable[T]) -> T:
    blocking.set(False)
    return await work


async def settled(work: Awaitable[T], where: Portal = portal) -> T:
    """The result of `work`: awaited, or waited for where this is run by synchronous code."""
    return where.run(work) if blocking.get() else await work


class Settling:
    """An object whose methods are coroutine functions; here each of them can be called from both kinds of code."""

    def __init__(self, inner: Any, where: Portal = portal) -> None:
        self._inner, self._where = inner, where

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def call(*given: Any, **named: Any) -> Any:
            return await settled(method(*given, **named), self._where)

        return call


def both_ways(function: F) -> F:
    """Marks a coroutine function that can be run by `finish`."""
    cast(Any, function).both_ways = True
    return function


async def called(function: Callable[..., Any], *given: Any) -> Any:
    """The function's result. In a loop, one that is not async runs in a thread, so that it may take its time."""
    if getattr(function, "both_ways", False):
        return await function(*given)
    quick = blocking.get() or inspect.iscoroutinefunction(function) or _called_async(function)
    result = function(*given) if quick else await asyncio.to_thread(function, *given)
    return await settled(result) if inspect.isawaitable(result) else result


async def invoke(runnable: Any, given: Any, **options: Any) -> Any:
    """The result of a runnable, in both kinds of code. In a loop, one that is not async runs in a thread."""
    if blocking.get():
        return runnable.invoke(given, **options)
    if not hasattr(runnable, "ainvoke"):
        return await asyncio.to_thread(runnable.invoke, given, **options)
    return await runnable.ainvoke(given, **options)


def _called_async(thing: Any) -> bool:
    """Whether it is an object whose call is a coroutine function."""
    return not inspect.isroutine(thing) and inspect.iscoroutinefunction(type(thing).__call__)
