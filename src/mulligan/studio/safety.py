"""Keeps strangers and foreign text harmless: one layer in front of every page.

It refuses a Host that somebody made to point here (DNS rebinding), visitors without the token where one is set, changes
where the studio is read-only, and posts from other sites (CSRF). It sends the headers by which a browser runs no script
and loads nothing but the studio's own files, whatever a page holds.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mulligan.serving import HostPolicy, Token, bearer_of
from mulligan.studio.rendering import Studio

MAX_FORM = 1_000_000
"""Bytes of a form."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers leave the origin out of posts, too
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Safety:
    """The layer.

    Args:
        policy: which Host and Origin headers are accepted.
        tokens: what visitors must bear; none: anybody on this machine may look.
        cookie: the name under which a browser keeps the token.
    """

    def __init__(self, app: ASGIApp, studio: Studio, policy: HostPolicy, tokens: Sequence[Token], cookie: str) -> None:
        self._app, self._studio, self._policy = app, studio, policy
        self._tokens, self._cookie = tokens, cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        request = Request(scope, receive)
        response = self._stranger(request) or await self._unwanted_change(request)
        await (response or self._app)(scope, receive, guarded)

    def _stranger(self, request: Request) -> Response | None:
        if not self._policy.allows_host(request.headers.get("host")):
            return _refused(421, "This Host is not served here: use the address that the studio printed.")
        if not self._tokens:
            return None
        if (given := request.query_params.get("token")) is not None and bearer_of(self._tokens, given):
            rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
            page = RedirectResponse(f"{request.url.path}{'?' if rest else ''}{urlencode(rest)}", 303)
            page.set_cookie(self._cookie, given, httponly=True, samesite="strict", path="/")
            return page
        if bearer_of(self._tokens, request.cookies.get(self._cookie, "")):
            return None
        return _refused(401, "This studio needs its token: open its address with ?token=TOKEN once.")

    async def _unwanted_change(self, request: Request) -> Response | None:
        """Reads the form of a POST, which pages find with `form_of`."""
        if request.method in ("GET", "HEAD"):
            return None
        if request.method != "POST":
            return _refused(405, "Only GET and POST are served.")
        if not self._studio.write:
            return _refused(403, "This studio is read-only: start it with --write to change anything.")
        if not self._policy.allows_origin(request.headers.get("origin")):
            return _refused(403, "Pages of other sites may not change anything here.")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _refused(403, "Pages of other sites may not change anything here.")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_FORM:
                return _refused(413, f"A form may have {MAX_FORM:,} bytes at most.")
        fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000))
        if not hmac.compare_digest(fields.pop("csrf", "").encode(), self._studio.csrf.encode()):
            return _refused(403, "This form is not from this studio, or from before it was started: reload the page.")
        request.scope["mulligan.form"] = fields
        return None


def form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form that `Safety` let through; the last value of each name."""
    return request.scope["mulligan.form"]


def _refused(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status)
