"""Lets one coroutine serve synchronous and asynchronous callers.

Asynchronous callers await the coroutine. For synchronous ones `finish` runs it to its end: while `blocking` is set, it
never waits, but runs whatever would wait on a portal (an event loop in another thread) and blocks until that is done.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar, cast

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Portal:
    """An event loop in its own thread, started by its first use. A forked process gets another one."""

    blocking: ContextVar[bool] = ContextVar("mulligan_blocking", default=False)
    """True while synchronous code runs a coroutine. It may block but not await."""

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
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """End the thread and its loop. The next use starts others. Not to be called on the portal itself."""
        with self._starting:
            loop, self._loop = self._loop, None
            if loop is not None and self._process == os.getpid():
                loop.call_soon_threadsafe(loop.stop)
                self._thread.join()
                loop.close()

    @property
    def here(self) -> bool:
        """Whether the current thread is the portal's."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    @staticmethod
    def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`. Inside a running loop, such as a notebook's, it runs in another thread, which
        Ctrl-C in this thread cancels."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(work)
        result: Future[T] = Future()
        started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

        async def noted() -> T:
            started.append((asyncio.get_running_loop(), cast(asyncio.Task[Any], asyncio.current_task())))
            return await work

        def run_in_thread() -> None:
            try:
                result.set_result(asyncio.run(noted()))
            except BaseException as error:
                result.set_exception(error)

        threading.Thread(target=run_in_thread, name="mulligan").start()
        try:
            return result.result()
        except KeyboardInterrupt:
            for loop, task in started:
                with suppress(RuntimeError):  # the task has ended and closed its loop
                    loop.call_soon_threadsafe(task.cancel)
            wait([result])
            raise

    @staticmethod
    def finish(work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine that never waits while `blocking` is set."""
        token = Portal.blocking.set(True)
        try:
            work.send(None)
        except StopIteration as end:
            return end.value
        else:
            work.close()
            raise RuntimeError(
                f"{work} waits for something that synchronous code cannot wait for. Use ainvoke or astream."
            )
        finally:
            Portal.blocking.reset(token)

    @staticmethod
    def both_ways(function: F) -> F:
        """Mark a coroutine function, or a class with such methods, that `finish` can run."""
        cast(Any, function).both_ways = True
        return function

    def run(self, work: Awaitable[T]) -> T:
        """Return the result of `work` and block until it is done. On the portal itself, another thread runs it."""
        if self.here:
            return self.run_coroutine(_awaited(work))
        future = asyncio.run_coroutine_threadsafe(_awaited(work), self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C here also ends it there
            raise

    async def within(self, work: Awaitable[T]) -> T:
        """Return the result of `work`, which always runs on the portal: for objects that belong to one event loop."""
        if Portal.blocking.get():
            return self.run(work)
        if self.here:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_awaited(work), self.loop))

    async def settled(self, value: Awaitable[T] | T) -> T:
        """Return the value, or its result if it is awaitable: awaited, or in synchronous code run on the portal."""
        if not inspect.isawaitable(value):
            return value
        return self.run(value) if Portal.blocking.get() else await value

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a user's function, in a thread if it is synchronous and there is an event loop. Return its result."""
        if getattr(function, "both_ways", False):
            return await function(*arguments)
        at_once = Portal.blocking.get() or is_asynchronous(function)
        return await self.settled(function(*arguments) if at_once else await asyncio.to_thread(function, *arguments))

    def wrap(self, inner: T) -> T:
        """The object for synchronous and asynchronous callers: what its methods return is `settled`.

        An object that is marked as `both_ways` needs no wrapper.
        """
        return inner if getattr(inner, "both_ways", False) else cast(T, _Settling(inner, self))


portal = Portal("mulligan-portal")
"""Runs a user's asynchronous code for synchronous callers."""

keeper = Portal("mulligan-keeper")
"""Runs the calls of a store for synchronous callers. No other code runs there, so it never waits for itself."""


async def _awaited(work: Awaitable[T]) -> T:
    Portal.blocking.set(False)
    return await work


class _Settling:
    """See `Portal.wrap`."""

    def __init__(self, inner: Any, portal: Portal) -> None:
        self._inner, self._portal = inner, portal

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not inspect.isroutine(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            return self._portal.settled(result) if inspect.isawaitable(result) else result

        return call


async def pause(seconds: float) -> None:
    """Wait for so many seconds, in synchronous and in asynchronous code."""
    if Portal.blocking.get():
        time.sleep(seconds)  # noqa: ASYNC251 - synchronous code runs this coroutine
    else:
        await asyncio.sleep(seconds)


def is_asynchronous(thing: Any) -> bool:
    """Whether a function, or an object with `__call__`, gives a coroutine."""
    if inspect.iscoroutinefunction(thing):
        return True
    return not inspect.isroutine(thing) and inspect.iscoroutinefunction(type(thing).__call__)
