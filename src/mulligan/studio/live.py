"""Tells open pages that what they show has changed, by server-sent events.

Other processes may write to the store at any time, so each page polls it. On a change, the browser fetches its page
again: live or not, a page is rendered by the same code.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from mulligan.plugins import MulliganError

POLL_SECONDS = 1.0

MAX_LISTENERS = 64
"""How many pages may listen at the same time."""

POLLS_PER_COMMENT = 15
"""After this many polls without a change, a comment is sent, which detects a closed connection."""


class Listeners:
    """The pages that are open."""

    def __init__(self) -> None:
        self._open, self._closed = 0, asyncio.Event()

    async def close(self) -> None:
        """Ends all streams."""
        self._closed.set()

    def stream(self, look: Callable[[], Awaitable[object]]) -> Response:
        """Sends an event named `change` each time that `look` returns something new."""
        if self._open >= MAX_LISTENERS:
            text = f"{MAX_LISTENERS} pages are already live. Close one, or reload this page manually.\n"
            return PlainTextResponse(text, 503, {"Retry-After": "30"})
        return StreamingResponse(self._events(look), media_type="text/event-stream")

    async def _events(self, look: Callable[[], Awaitable[object]]) -> AsyncGenerator[str]:
        self._open += 1
        try:
            seen, unchanged = await look(), 0
            yield "retry: 2000\n: follows\n\n"
            while not self._closed.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closed.wait(), POLL_SECONDS)
                try:
                    current = await look()
                except MulliganError:  # the episode may have been removed
                    current = None
                unchanged += 1
                if current != seen:
                    seen, unchanged = current, 0
                    yield "event: change\ndata: 1\n\n"
                elif unchanged % POLLS_PER_COMMENT == 0:
                    yield ": still here\n\n"
        finally:
            self._open -= 1
