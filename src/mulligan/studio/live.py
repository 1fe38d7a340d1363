"""Tells open pages that what they show has changed, by server-sent events.

Another process may record at any time, so the store is asked at an interval; pages with the same question share the
answer. A browser that hears of a change fetches its page again: a page is made in one place, live or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from mulligan.plugins import MulliganError

SECONDS = 1.0
"""Between two looks at the store."""

MAX_LISTENERS = 64
"""Pages that may listen at once."""

QUIET = 15
"""Looks without a change after which a comment is sent, so that a connection that is gone is noticed."""


class Listeners:
    """The pages that listen."""

    def __init__(self) -> None:
        self._open, self._closed = 0, asyncio.Event()

    def close(self) -> None:
        """Ends all streams, in good form."""
        self._closed.set()

    def stream(self, look: Callable[[], Awaitable[object]]) -> Response:
        """Events named `change`, one whenever `look` gives something else than before."""
        if self._open >= MAX_LISTENERS:
            text = f"{MAX_LISTENERS} pages are live already: close one, or reload this page by hand.\n"
            return PlainTextResponse(text, 503, {"Retry-After": "30"})
        return StreamingResponse(self._events(look), media_type="text/event-stream")

    async def _events(self, look: Callable[[], Awaitable[object]]) -> AsyncGenerator[str]:
        self._open += 1
        try:
            before, quiet = await look(), 0
            yield "retry: 2000\n: follows\n\n"
            while not self._closed.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closed.wait(), SECONDS)
                try:
                    now = await look()
                except MulliganError:  # such as an episode that was removed
                    now = None
                if now != before:
                    before, quiet = now, 0
                    yield "event: change\ndata: 1\n\n"
                elif (quiet := quiet + 1) % QUIET == 0:
                    yield ": still here\n\n"
        finally:
            self._open -= 1
